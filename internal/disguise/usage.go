package disguise

// #include "usage.h"
import "C"

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"unsafe"

	"cosplay/internal/durable"
	"cosplay/internal/resource"
)

// Usage is what the programs of a session use of their GPU's memory, as the CUDA
// facade counts it, all in bytes. Peak and Refused last as long as the session.
type Usage struct {
	Total     int64     // what programs allocated
	Overhead  int64     // what contexts and code take besides, as last seen
	Peak      int64     // the most that both together came to
	Refused   int64     // allocations that did not fit
	Overcome  int64     // of these, those whose process got as much after all
	Processes []Process // with memory of their own; their bytes add up to Total
}

// Process is a program of a session that allocated memory. It may have ended
// since: only the session's own programs see that for certain, and free its
// place at the next query or when something does not fit.
type Process struct {
	PID       int    // in the session's own numbering
	Namespace uint64 // inode of the pid namespace that numbers so; 0 unknown
	Bytes     int64
}

// MakeUsage makes the file in which a session's programs count, unless a sound
// one is there. All users of the session may write to it.
func MakeUsage(path string) error {
	_, err := ReadUsage(path)
	if err == nil {
		return os.Chmod(path, countedMode)
	}
	var unsound unsoundError
	if !errors.Is(err, fs.ErrNotExist) && !errors.As(err, &unsound) {
		return err
	}
	var c C.struct_usage
	if err := put(c.magic[:], C.USAGE_MAGIC); err != nil {
		return err
	}
	c.version, c.size = C.USAGE_VERSION, C.sizeof_struct_usage
	if err := durable.WriteFile(path, unsafe.Slice((*byte)(unsafe.Pointer(&c)), C.sizeof_struct_usage), countedMode); err != nil {
		return fmt.Errorf("writing the file of what the session uses: %w", err)
	}
	return os.Chmod(path, countedMode) // it may have the mode of the one before
}

// Use is what the programs came to so far, the peak in whole MiB upwards.
func (u Usage) Use() resource.Use {
	const mib = 1 << 20
	return resource.Use{PeakMiB: int((u.Peak + mib - 1) / mib), OutOfMemory: int(u.Refused), Overcome: int(min(u.Overcome, u.Refused))}
}

// LastUse is what the programs of a session came to that is about to end; nothing
// where that cannot be told, since it must keep nobody from ending it.
func LastUse(path string) resource.Use {
	u, err := ReadUsage(path)
	if err != nil {
		return resource.Use{}
	}
	return u.Use()
}

// ForgetPeak begins anew with what a session comes to, as it does with another
// GPU to pass for.
func ForgetPeak(path string) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err == nil {
		var c C.struct_usage // the refusals come after the peak
		_, err = file.WriteAt(make([]byte, unsafe.Offsetof(c.slots)-unsafe.Offsetof(c.peak)), int64(unsafe.Offsetof(c.peak)))
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		return fmt.Errorf("writing the file of what the session uses: %w", err)
	}
	return nil
}

// unsoundError is about a file of which nothing can be told.
type unsoundError struct{ path string }

func (e unsoundError) Error() string {
	return e.path + " does not tell what the session uses: it is damaged, or of another version of cosplay; replace the session"
}

// mostBytes is more than any GPU has.
const mostBytes = 1 << 50

// ReadUsage reads what the programs of a session use. It takes no lock: a
// program may be about to change it, but each number is one that was true.
func ReadUsage(path string) (Usage, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Usage{}, fmt.Errorf("reading what the session uses: %w", err)
	}
	var c C.struct_usage
	if len(data) != C.sizeof_struct_usage {
		return Usage{}, unsoundError{path}
	}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&c)), C.sizeof_struct_usage), data)
	if C.GoString(&c.magic[0]) != C.USAGE_MAGIC || c.version != C.USAGE_VERSION || c.size != C.sizeof_struct_usage {
		return Usage{}, unsoundError{path}
	}
	u := Usage{Total: int64(c.total), Overhead: int64(c.overhead), Peak: int64(c.peak), Refused: int64(c.refused), Overcome: int64(c.overcome)}
	if min(u.Total, u.Overhead, u.Peak) < 0 || max(u.Total, u.Overhead, u.Peak) > mostBytes || max(u.Refused, u.Overcome) > math.MaxInt32 {
		return Usage{}, unsoundError{path} // the session's programs can write what they like
	}
	for _, slot := range c.slots {
		if slot.process == 0 || slot.bytes == 0 {
			continue
		}
		u.Processes = append(u.Processes, Process{
			PID:       int(slot.process & (1<<C.USAGE_PID_BITS - 1)),
			Namespace: uint64(slot.pids) &^ C.USAGE_TRIAL,
			Bytes:     int64(slot.bytes),
		})
	}
	return u, nil
}
