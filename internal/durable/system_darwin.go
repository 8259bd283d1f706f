package durable

import (
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// forNames is the flag of open(2) for a folder of which only names are used. macOS has none that does not read.
const forNames = unix.O_RDONLY

// fileOfByte is the file that holds the lock of a byte: each byte has a file, since the locks of parts of a file belong
// to the process on macOS. Only bytes of the ledger come from requests, and that is on Linux.
func fileOfByte(path string, at int64) string { return fmt.Sprintf("%s.%d", path, at) }

func lockByte(file *os.File, _ int64) error {
	return unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
}

// Reserve is not possible: the caller writes.
func Reserve(*os.File, int64) error { return unix.EOPNOTSUPP }

// startOf returns when a process started. A zombie counts as ended.
func startOf(pid int) (string, error) {
	const zombie = 5 // SZOMB of sys/proc.h
	process, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	switch {
	case err != nil: // the kernel answers nothing where there is no such process
		return "", fmt.Errorf("%w: process %d: %w", fs.ErrNotExist, pid, err)
	case process.Proc.P_stat == zombie:
		return "", errEnded
	}
	return fmt.Sprintf("%d.%06d", process.Proc.P_starttime.Sec, process.Proc.P_starttime.Usec), nil
}
