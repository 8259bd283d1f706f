//go:build !cgo || !linux

package agent

import (
	"io"

	"cosplay/driver"
)

// Serve fails.
func Serve(io.Reader, io.Writer, Service) error { return driver.ErrNotHere }

// ServePrivileged fails.
func ServePrivileged(string) error { return driver.ErrNotHere }
