// Package proc reads what the kernel shows of processes, which change while they are read.
package proc

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Root is where the kernel shows processes.
const Root = "/proc"

// Each gives every process of this machine to a function, once. A process that ended before it was read may have handed
// over to a child, so the list is read again until it names none that is new, as far as a machine lets it.
func Each(visit func(pid int)) error {
	read := map[int]bool{}
	for range listings {
		entries, err := os.ReadDir(Root)
		if err != nil {
			return fmt.Errorf("listing the processes: %w", err)
		}
		before := len(read)
		for _, e := range entries {
			if pid, err := strconv.Atoi(e.Name()); err == nil && !read[pid] {
				read[pid] = true
				visit(pid)
			}
		}
		if len(read) == before {
			break
		}
	}
	return nil
}

// listings bounds how often Each lists the processes of a machine that always starts new ones.
const listings = 20

// Environment are the variables of a process in a folder as Root: none where it has ended and is not reaped. While the
// kernel replaces a process's program it has none: that is waited for. The error is of the reading: the process has
// ended, or belongs to another user.
func Environment(root string, pid int) ([]string, error) {
	for end := time.Now().Add(replacing); ; time.Sleep(time.Millisecond) {
		environment, err := os.ReadFile(filepath.Join(root, strconv.Itoa(pid), "environ"))
		if err != nil {
			return nil, err
		}
		if len(environment) > 0 {
			return strings.Split(strings.TrimSuffix(string(environment), "\x00"), "\x00"), nil
		}
		if s, err := StatOf(root, pid); err != nil || !s.replaced() || time.Now().After(end) {
			return nil, err
		}
	}
}

// replacing bounds how long a process may have no environment since its program is replaced: what it needs of a disk,
// and more. A kernel that does not show where environments are costs it for each process that has none.
const replacing = 2 * time.Second

// Stat is a line of the kernel about a process. Its fields are numbered from 1, as in proc(5).
type Stat [][]byte

// StatOf reads the line of a process in a folder as Root. The error is fs.ErrNotExist where there is no such process.
func StatOf(root string, pid int) (Stat, error) {
	path := filepath.Join(root, strconv.Itoa(pid), "stat")
	line, err := os.ReadFile(path)
	if errors.Is(err, unix.ESRCH) {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, err
	}
	// The name is in brackets, and may contain brackets and spaces: "12 (a) b) S 11 ...".
	s := Stat(append([][]byte{nil, nil}, bytes.Fields(line[bytes.LastIndexByte(line, ')')+1:])...))
	if len(s) < startField {
		return nil, fmt.Errorf("%s is too short", path)
	}
	return s, nil
}

const (
	stateField            = 3
	parentField           = 4
	flagsField            = 9
	startField            = 22
	environmentStartField = 50
	environmentEndField   = 51
	kernelThread          = 0x00200000 // PF_KTHREAD of the kernel's include/linux/sched.h
)

func (s Stat) field(number int) string {
	if number > len(s) {
		return ""
	}
	return string(s[number-1])
}

// Ended reports whether the process has ended and is not reaped yet.
func (s Stat) Ended() bool { return strings.ContainsAny(s.field(stateField), "ZXx") }

// Start is when the process started, in ticks since the boot.
func (s Stat) Start() string { return s.field(startField) }

// Parent is the pid of the parent of a process in a folder as Root; 0 if unknown.
func Parent(root string, pid int) int {
	stat, _ := StatOf(root, pid)
	parent, _ := strconv.Atoi(stat.field(parentField))
	return parent
}

// replaced reports whether a process that showed no environment has one, or will have: its program is just replaced.
func (s Stat) replaced() bool {
	flags, _ := strconv.ParseUint(s.field(flagsField), 10, 64)
	start, end := s.field(environmentStartField), s.field(environmentEndField)
	return !s.Ended() && flags&kernelThread == 0 && (end == "0" || start != end)
}
