// Package all registers the runtimes of cosplay: one line each, the preferred first.
package all

import (
	"cosplay/internal/runtime"
	"cosplay/internal/runtime/device"
	"cosplay/internal/runtime/docker"
	"cosplay/internal/runtime/process"
)

func init() { //nolint:gochecknoinits // a program registers its runtimes by importing this package
	runtime.Register(docker.Driver)
	runtime.Register(device.Driver)
	runtime.Register(process.Driver)
}
