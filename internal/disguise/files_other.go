//go:build !cgo || !linux

package disguise

import (
	"cosplay/driver"
	"cosplay/internal/durable"
	"cosplay/internal/resource"
	"cosplay/internal/shared"
)

// Sessions are on other machines, and so are their files.

func Facade(string, string, string) ([]byte, error)                         { return nil, driver.ErrNotHere }
func WriteFigures(string, resource.Target, ...resource.Handle) error        { return driver.ErrNotHere }
func MakeUsage(string, int) error                                           { return driver.ErrNotHere }
func ForgetPeak(string) error                                               { return driver.ErrNotHere }
func ReadAccounts(string) ([]Usage, error)                                  { return nil, driver.ErrNotHere }
func ReadUsage(string) (Usage, error)                                       { return Usage{}, driver.ErrNotHere }
func counts(durable.Folder, string, int64) (begins bool, use *resource.Use) { return false, nil }
func countsIn(int, int64) (begins bool, use *resource.Use)                  { return false, nil }

func beside(string) func() (*shared.File, error) {
	return func() (*shared.File, error) { return nil, driver.ErrNotHere }
}
