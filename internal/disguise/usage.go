package disguise

import (
	"errors"
	"io/fs"
	"path/filepath"

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
	Processes []Process // of an account of ReadAccounts, with allocations; their bytes add up to Total
	Peaks     []int64   // of ReadUsage, of each device; Peak is the largest
}

// Process is a program of a session that has allocated memory. It may have ended: only the session's own programs can
// determine that, and free its slot at the next query or when an allocation does not fit.
type Process struct {
	PID       int    // in the session's pid namespace
	Namespace uint64 // inode of that pid namespace; 0 if unknown
	Bytes     int64
}

// Use returns the memory use so far, with the peak rounded up to whole MiB.
func (u Usage) Use() resource.Use {
	const mib = 1 << 20
	up := func(bytes int64) int { return int((bytes + mib - 1) / mib) }
	use := resource.Use{NowBytes: u.Total + u.Overhead, PeakMiB: up(u.Peak), OutOfMemory: int(u.Refused), Overcome: int(min(u.Overcome, u.Refused))}
	for _, peak := range u.Peaks {
		use.PeaksMiB = append(use.PeaksMiB, up(peak))
	}
	return use
}

// LastUse returns the use of a session that is about to end. If it cannot be read, LastUse returns nothing, so that
// the error does not prevent the end.
func LastUse(path string) resource.Use {
	u, err := ReadUsage(path)
	if err != nil {
		return resource.Use{}
	}
	last := u.Use()
	report, _ := ReadReport(filepath.Dir(path)) // without one, nothing more is known
	if last = report.Discount(last); last.RanOut() > 0 {
		last = report.Explain(last)
	}
	last.NowBytes, last.PeaksMiB = 0, nil
	return last
}

type unsoundError struct{ path string }

func (e unsoundError) Error() string {
	return e.path + " does not show what the session uses: it is damaged, or of another version of cosplay; replace the session"
}

func together(accounts []Usage) (all Usage) {
	for _, u := range accounts {
		all.Total += u.Total
		all.Overhead += u.Overhead
		all.Peak = max(all.Peak, u.Peak)
		all.Refused += u.Refused
		all.Overcome += u.Overcome
		all.Peaks = append(all.Peaks, u.Peak)
	}
	return all
}

// readUpTo reads the beginning of a regular file. A command reads thousands of small files: os.ReadFile makes twice as
// many system calls, and garbage.
func readUpTo(path string, buffer []byte) (n int, err error) {
	fd, err := durable.WorkingFolder.Open(path, 0)
	if err != nil {
		return 0, err
	}
	defer func() { _ = unix.Close(fd) }()
	if n, err = readOnce(fd, buffer, 0); err != nil {
		return 0, &fs.PathError{Op: "read", Path: path, Err: err}
	}
	return n, nil
}

func readOnce(fd int, buffer []byte, from int64) (n int, err error) {
	for err = unix.EINTR; errors.Is(err, unix.EINTR); {
		n, err = unix.Pread(fd, buffer, from)
	}
	return n, err
}
