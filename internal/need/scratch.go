package need

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// runPrefix is the prefix of the folder of one test run of a package.
const runPrefix = "cosplay-test-"

// memory is the parent of such folders if it has room: cosplay syncs what it writes, and on a disk the tests spend
// most of their time waiting for that.
const (
	memory = "/dev/shm"
	room   = 2 << 30 // bytes
	noExec = 8       // ST_NOEXEC of Linux, which alone has this folder
)

// Tests runs the tests of a package, as testing.M does.
type Tests interface{ Run() int }

// Scratch creates a temporary folder for the tests of a package and sets TMPDIR to it. It is in memory if there is
// room, unless TMPDIR is set already. The returned tests remove the folder when they end; the next run removes the
// folder of a killed run.
func Scratch(tests Tests) (Tests, error) {
	remove, err := makeRun()
	return scratched{tests, remove}, err
}

type scratched struct {
	Tests
	remove func()
}

func (s scratched) Run() int {
	defer s.remove()
	return s.Tests.Run()
}

// runLock is held while this process runs. It is a lock on the run's folder, and shows other runs that this one is
// alive.
var runLock *os.File

func makeRun() (remove func(), err error) {
	remove = func() {}
	base := os.TempDir()
	if os.Getenv("TMPDIR") == "" && roomy(memory) {
		base = memory
	}
	sweepRuns(base)
	dir, err := os.MkdirTemp(base, runPrefix)
	if err != nil {
		return remove, err
	}
	runLock, err = os.Open(dir)
	if err == nil {
		err = errors.Join(unix.Flock(int(runLock.Fd()), unix.LOCK_EX), os.Chmod(dir, 0o755), os.Setenv("TMPDIR", dir))
	}
	return func() { _ = os.RemoveAll(dir) }, err // the next run removes what remains
}

// roomy reports whether a folder has room and permits running programs.
func roomy(dir string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(dir, &fs) == nil && int64(fs.Bavail)*int64(fs.Bsize) >= room && fs.Flags&noExec == 0 && unix.Access(dir, unix.W_OK) == nil
}

// sweepRuns removes the folders of runs that were killed.
func sweepRuns(base string) {
	found, _ := filepath.Glob(filepath.Join(base, runPrefix+"*"))
	for _, dir := range found {
		if !runs(dir) {
			_ = os.RemoveAll(dir) // as far as possible: it may belong to another user
		}
	}
}

// Abandoned reports whether a file or folder belongs to a run of tests that has ended.
func Abandoned(path string) bool {
	for dir := path; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if strings.HasPrefix(filepath.Base(dir), runPrefix) {
			return !runs(dir)
		}
	}
	return false
}

// runs reports whether the run of a folder is alive. A folder that is being created has no lock yet, but is empty.
func runs(dir string) bool {
	folder, err := os.Open(dir)
	if err != nil {
		return !errors.Is(err, os.ErrNotExist)
	}
	defer folder.Close()
	if unix.Flock(int(folder.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return true
	}
	_, err = folder.ReadDir(1)
	return err != nil
}
