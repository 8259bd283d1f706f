package disguise

// #include "usage.h"
import "C"

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"cosplay/internal/durable"
	"cosplay/internal/resource"
)

// Usage is the GPU memory that the programs of a session use, as the CUDA facade counts it, in bytes. Peak and
// Refused accumulate until the session ends.
type Usage struct {
	Total     int64     // allocations of programs
	Overhead  int64     // additional memory of contexts and code, as last measured
	Peak      int64     // peak of the sum of both
	Refused   int64     // allocations that did not fit
	Overcome  int64     // those of the refused whose process later got as much
	Processes []Process // with allocations; their bytes add up to Total
}

// Process is a program of a session that has allocated memory. It may have ended: only the session's own programs can
// determine that, and free its slot at the next query or when an allocation does not fit.
type Process struct {
	PID       int    // in the session's pid namespace
	Namespace uint64 // inode of that pid namespace; 0 if unknown
	Bytes     int64
}

// MakeUsage creates a session's usage file unless a sound one exists. All users of the session may write to it.
func MakeUsage(path string) error {
	_, err := ReadUsage(path)
	if err == nil {
		return os.Chmod(path, countedMode)
	}
	var unsound unsoundError
	if !errors.Is(err, fs.ErrNotExist) && !errors.As(err, &unsound) {
		return err
	}
	if err := durable.WriteFile(path, unusedFile(), countedMode); err != nil {
		return fmt.Errorf("writing the file of what the session uses: %w", err)
	}
	return os.Chmod(path, countedMode) // an existing file may have another mode
}

// unusedFile returns the content of the usage file of a session that has used nothing.
func unusedFile() []byte {
	c := C.struct_usage{version: C.USAGE_VERSION, size: C.sizeof_struct_usage}
	_ = put(c.magic[:], C.USAGE_MAGIC) // it fits
	return unsafe.Slice((*byte)(unsafe.Pointer(&c)), C.sizeof_struct_usage)
}

// usageHeader is how a usage file begins that programs use. With another one each counts separately.
var usageHeader = func() []byte {
	var c C.struct_usage
	return unusedFile()[:unsafe.Offsetof(c.lock)]
}()

// counts reports whether a usage file begins as programs require.
func (f Folder) counts(name string) bool {
	fd, err := openAt(f.fd, name, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return false
	}
	defer func() { _ = unix.Close(fd) }()
	header := make([]byte, len(usageHeader))
	n, err := unix.Read(fd, header)
	return err == nil && n == len(header) && bytes.Equal(header, usageHeader)
}

// Use returns the memory use so far, with the peak rounded up to whole MiB.
func (u Usage) Use() resource.Use {
	const mib = 1 << 20
	return resource.Use{NowBytes: u.Total + u.Overhead, PeakMiB: int((u.Peak + mib - 1) / mib), OutOfMemory: int(u.Refused), Overcome: int(min(u.Overcome, u.Refused))}
}

// LastUse returns the use of a session that is about to end. If it cannot be read, LastUse returns nothing, so that
// the error does not prevent the end.
func LastUse(path string) resource.Use {
	u, err := ReadUsage(path)
	if err != nil {
		return resource.Use{}
	}
	last := u.Use()
	last.NowBytes = 0
	return last
}

// ForgetPeak resets the peak of a session, as a new target requires.
func ForgetPeak(path string) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err == nil {
		var c C.struct_usage // the counts of refusals follow the peak
		_, err = file.WriteAt(make([]byte, unsafe.Offsetof(c.slots)-unsafe.Offsetof(c.peak)), int64(unsafe.Offsetof(c.peak)))
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		return fmt.Errorf("writing the file of what the session uses: %w", err)
	}
	return nil
}

type unsoundError struct{ path string }

func (e unsoundError) Error() string {
	return e.path + " does not show what the session uses: it is damaged, or of another version of cosplay; replace the session"
}

// mostBytes exceeds the memory of any GPU.
const mostBytes = 1 << 50

// ReadUsage reads the use of a session's programs. It takes no lock: a program may be changing the file, but each
// number was correct at some moment.
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
		return Usage{}, unsoundError{path} // the session's programs can write any values
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
