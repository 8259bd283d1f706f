package config_test

import _ "cosplay/internal/runtime/all" // registers the runtimes
