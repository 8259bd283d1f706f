package disguise

// #include "usage.h"
import "C"

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"unsafe"
)

// RestoreUsage takes out of what a session came to what was only tried in it
// since before was read: the peak and the refusals. A program of the session's
// own that reached a new peak meanwhile is counted as far as it has memory now.
func RestoreUsage(path string, before Usage) error {
	now, err := ReadUsage(path)
	if err != nil {
		return err
	}
	var c C.struct_usage
	restored := map[uintptr]int64{
		unsafe.Offsetof(c.peak):    max(before.Peak, now.Total+now.Overhead),
		unsafe.Offsetof(c.refused): before.Refused,
	}
	if len(now.Processes) == 0 { // contexts end with their processes
		restored[unsafe.Offsetof(c.overhead)] = 0
		restored[unsafe.Offsetof(c.peak)] = before.Peak
	}
	return writeUsage(path, restored)
}

// ForgetPeak begins anew with what a session comes to, as it does with another
// GPU to pass for.
func ForgetPeak(path string) error {
	var c C.struct_usage
	return writeUsage(path, map[uintptr]int64{unsafe.Offsetof(c.peak): 0, unsafe.Offsetof(c.refused): 0})
}

// writeUsage writes some numbers of a file of usage, by where they lie in it.
func writeUsage(path string, values map[uintptr]int64) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("writing the file of what the session uses: %w", err)
	}
	var number [8]byte
	for at, value := range values {
		binary.NativeEndian.PutUint64(number[:], uint64(value))
		if _, err = file.WriteAt(number[:], int64(at)); err != nil {
			break
		}
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("writing the file of what the session uses: %w", err)
	}
	return nil
}
