//go:build cgo && linux

package disguise

// #include "usage.h"
import "C"

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"cosplay/internal/durable"
	"cosplay/internal/resource"
)

// MakeUsage creates the usage file of a session with this number of devices, unless a sound one exists. All users of
// the session may write to it.
func MakeUsage(path string, devices int) error {
	accounts, err := ReadAccounts(path)
	if err == nil && len(accounts) == devices {
		return os.Chmod(path, countedMode)
	}
	var unsound unsoundError
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.As(err, &unsound) {
		return err
	}
	write := durable.ReplaceFile
	if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
		write = writeInPlace // running containers have mounted this file, and would lose another
	}
	if err := write(path, unusedFile(devices), countedMode); err != nil {
		return fmt.Errorf("writing the file of what the session uses: %w", err)
	}
	return os.Chmod(path, countedMode) // an existing file may have another mode
}

func writeInPlace(path string, data []byte, _ os.FileMode) error {
	file, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteAt(data, 0)
	return errors.Join(err, file.Truncate(int64(len(data))), file.Close())
}

// unusedFile returns the content of the usage file of a session that has used nothing.
func unusedFile(devices int) []byte {
	accounts := make([]C.struct_usage, devices)
	for i := range accounts {
		accounts[i].version, accounts[i].size = usageVersion(devices), C.sizeof_struct_usage
		_ = put(accounts[i].magic[:], C.USAGE_MAGIC) // it fits
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&accounts[0])), devices*C.sizeof_struct_usage)
}

// usageVersion is the version of a usage file with this number of accounts. That of one device is the first version,
// which programs of sessions of an earlier cosplay have mapped.
func usageVersion(devices int) C.uint32_t {
	if devices > 1 {
		return C.USAGE_VERSION_OF_SEVERAL
	}
	return C.USAGE_VERSION
}

// usageHeaders are how a usage file begins that programs use: of one device, and of several. With another one each
// program counts separately.
var usageHeaders = func() [2][]byte {
	var c C.struct_usage
	return [2][]byte{unusedFile(1)[:unsafe.Offsetof(c.lock)], unusedFile(2)[:unsafe.Offsetof(c.lock)]}
}()

// counts reports whether a usage file of this size begins as programs require, and returns the use if the rest is
// sound too.
func counts(in durable.Folder, name string, size int64) (begins bool, use *resource.Use) {
	fd, err := in.Open(name, 0)
	if err != nil {
		return false, nil
	}
	defer func() { _ = unix.Close(fd) }()
	return countsIn(fd, size)
}

// countsIn is counts for a file that is open.
func countsIn(fd int, size int64) (begins bool, use *resource.Use) {
	accounts, begins := sumsIn(fd, size)
	if accounts == nil {
		return begins, nil
	}
	return begins, new(together(accounts).Use())
}

// sumsIn reads the sums of the accounts of a file, and not the slots of the programs, which are two hundred times longer.
// Without accounts the file is not sound; begins reports whether it still begins as programs require.
func sumsIn(fd int, size int64) (accounts []Usage, begins bool) {
	c := accountBuffers.Get().(*accountBuffer)
	defer accountBuffers.Put(c)
	for i := range devicesOf(int(size)) {
		head := unsafe.Slice((*byte)(unsafe.Pointer(&c[i])), unsafe.Offsetof(c[i].slots))
		n, err := readOnce(fd, head, int64(i)*C.sizeof_struct_usage)
		if err != nil || n < len(head) {
			return nil, false
		}
		for _, header := range usageHeaders {
			begins = begins || i == 0 && bytes.HasPrefix(head, header)
		}
	}
	accounts, _ = c.accounts(int(size), sumsOf)
	return accounts, begins
}

// ReadUsage reads the use of a session's programs on all of its devices together, without the programs. The peak is that
// of the device with the largest: each has its own limit.
func ReadUsage(path string) (Usage, error) {
	fd, err := durable.WorkingFolder.Open(path, 0)
	if err != nil {
		return Usage{}, fmt.Errorf("reading what the session uses: %w", err)
	}
	defer func() { _ = unix.Close(fd) }()
	var file unix.Stat_t
	if err := unix.Fstat(fd, &file); err != nil {
		return Usage{}, fmt.Errorf("reading what the session uses: %w", &fs.PathError{Op: "stat", Path: path, Err: err})
	}
	accounts, _ := sumsIn(fd, file.Size)
	if accounts == nil {
		return Usage{}, unsoundError{path}
	}
	return together(accounts), nil
}

// ForgetPeak resets the peak of a session on each of its devices, as a new target requires.
func ForgetPeak(path string) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	var size int64
	if err == nil {
		defer file.Close()
		size, err = file.Seek(0, io.SeekEnd)
	}
	var c C.struct_usage // the counts of refusals follow the peak
	nothing := make([]byte, unsafe.Offsetof(c.slots)-unsafe.Offsetof(c.peak))
	for account := int64(0); err == nil && account < max(1, size); account += C.sizeof_struct_usage {
		_, err = file.WriteAt(nothing, account+int64(unsafe.Offsetof(c.peak)))
	}
	if err != nil {
		return fmt.Errorf("writing the file of what the session uses: %w", err)
	}
	return nil
}

// mostBytes exceeds the memory of any GPU.
const mostBytes = 1 << 50

// ReadAccounts reads the use of a session's programs on each of its devices, in the order of the figures file. It
// takes no lock: a program may be changing the file, but each number was correct at some moment.
func ReadAccounts(path string) ([]Usage, error) {
	c := accountBuffers.Get().(*accountBuffer)
	defer accountBuffers.Put(c)
	size, err := readUpTo(path, c.bytes())
	if err != nil {
		return nil, fmt.Errorf("reading what the session uses: %w", err)
	}
	accounts, sound := c.accounts(size, readAccount)
	if !sound {
		return nil, unsoundError{path}
	}
	return accounts, nil
}

// accountBuffer has room for more than a sound file has.
type accountBuffer [mostDevices + 1]C.struct_usage

var accountBuffers = sync.Pool{New: func() any { return new(accountBuffer) }}

func (c *accountBuffer) bytes() []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(c)), mostDevices*C.sizeof_struct_usage+1)
}

// devicesOf is the number of devices in a file of this size, or 0.
func devicesOf(size int) int {
	devices := size / C.sizeof_struct_usage
	if devices > mostDevices || size%C.sizeof_struct_usage != 0 {
		return 0
	}
	return devices
}

// accounts returns the accounts in a buffer into which a file of this size was read.
func (c *accountBuffer) accounts(size int, read func(*C.struct_usage) (Usage, bool)) (accounts []Usage, sound bool) {
	devices := devicesOf(size)
	if devices == 0 {
		return nil, false
	}
	accounts = make([]Usage, devices)
	for i := range accounts {
		if accounts[i], sound = read(&c[i]); !sound || c[i].version != usageVersion(devices) {
			return nil, false
		}
	}
	return accounts, true
}

// sumsOf returns an account without its processes, and false if it is not sound: the session's programs can write any
// values.
func sumsOf(c *C.struct_usage) (u Usage, sound bool) {
	if C.GoString(&c.magic[0]) != C.USAGE_MAGIC || c.size != C.sizeof_struct_usage {
		return Usage{}, false
	}
	u = Usage{Total: int64(c.total), Overhead: int64(c.overhead), Peak: int64(c.peak), Refused: int64(c.refused), Overcome: int64(c.overcome)}
	if min(u.Total, u.Overhead, u.Peak) < 0 || max(u.Total, u.Overhead, u.Peak) > mostBytes || max(u.Refused, u.Overcome) > math.MaxInt32 {
		return Usage{}, false
	}
	return u, true
}

func readAccount(c *C.struct_usage) (u Usage, sound bool) {
	if u, sound = sumsOf(c); !sound {
		return u, false
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
	return u, true
}
