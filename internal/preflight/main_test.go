package preflight_test

import _ "cosplay/internal/runtime/all" // the runtimes that users have
