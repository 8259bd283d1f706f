//go:build !cgo || !linux

package sim

import (
	"cosplay/driver"
	"cosplay/internal/public"
	"cosplay/internal/resource"
)

// Host is a simulated host, of which there is none here: everything but Keys fails.
type Host struct{}

func Open(string) (*Host, error)                        { return nil, driver.ErrNotHere }
func BootID(string) (string, error)                     { return "", driver.ErrNotHere }
func Create(string, []resource.Model, Options) error    { return driver.ErrNotHere }
func CreateLike(string, resource.Host, Options) error   { return driver.ErrNotHere }
func Relocate(string) error                             { return driver.ErrNotHere }
func Keys() []string                                    { return nil }
func (*Host) Close() error                              { return nil }
func (*Host) Made() (string, bool, error)               { return "", false, driver.ErrNotHere }
func (*Host) Show() (public.Simulated, error)           { return public.Simulated{}, driver.ErrNotHere }
func (*Host) Set(int, string, string) error             { return driver.ErrNotHere }
func (*Host) SetCompute(bool) error                     { return driver.ErrNotHere }
func (*Host) SetFault(Fault) error                      { return driver.ErrNotHere }
func (*Host) ClearFaults() error                        { return driver.ErrNotHere }
func (*Host) Reboot() error                             { return driver.ErrNotHere }
func (*Host) CreateSlice(int, string, int) (int, error) { return 0, driver.ErrNotHere }
func (*Host) DestroySlice(int, int) error               { return driver.ErrNotHere }

// Resize fails.
func (*Host) Resize([]resource.Model, Options, func(string) bool) error { return driver.ErrNotHere }
