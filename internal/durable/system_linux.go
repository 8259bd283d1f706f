package durable

import (
	"io"
	"os"

	"golang.org/x/sys/unix"

	"cosplay/internal/proc"
)

// forNames is the flag of open(2) for a folder of which only names are used.
const forNames = unix.O_PATH

// fileOfByte is the file that holds the lock of a byte.
func fileOfByte(path string, _ int64) string { return path }

func lockByte(file *os.File, at int64) error {
	return unix.FcntlFlock(file.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: at, Len: 1})
}

// Reserve reserves bytes of a file on the disk. The error is EOPNOTSUPP or ENOSYS where that is not possible.
func Reserve(file *os.File, bytes int64) error { return unix.Fallocate(int(file.Fd()), 0, 0, bytes) }

// startOf returns when a process started, in ticks since the boot. A zombie counts as ended.
func startOf(pid int) (string, error) {
	stat, err := proc.StatOf(proc.Root, pid)
	if err == nil && stat.Ended() {
		err = errEnded
	}
	if err != nil {
		return "", err
	}
	return stat.Start(), nil
}
