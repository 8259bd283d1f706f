package config_test

import _ "cosplay/internal/runtime/all" // the runtimes that users have
