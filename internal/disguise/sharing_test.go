package disguise_test

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
)

// sharers are two programs of a session with a socket between them.
type sharers struct{ first, second *holder }

func (s cudaSession) sharers(t *testing.T, program string) sharers {
	t.Helper()
	ends, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	check(t, err)
	var both [2]*holder
	for i, end := range ends {
		c := s.command(program, s.facade())
		file := os.NewFile(uintptr(end), "socket")
		c.ExtraFiles = []*os.File{file}
		both[i] = holdOn(t, c)
		file.Close()
	}
	return sharers{both[0], both[1]}
}

// order sends commands to the programs. Each command has the form "PROGRAM: COMMAND=ANSWER" and expects the answer, 0
// by default.
func (both sharers) tell(t *testing.T, story string) {
	t.Helper()
	for order := range strings.SplitSeq(story, ", ") {
		who, what, _ := strings.Cut(order, ": ")
		what, want, refused := strings.Cut(what, " = ")
		if !refused {
			want = "0"
		}
		h := both.first
		if who == "2" {
			h = both.second
		}
		if got := h.ask(what); got != want {
			t.Fatalf("%q is answered %q, want %q", order, got, want)
		}
	}
}

// Exported memory exists as long as any process has it: by a handle, a mapping, a file or an import. It counts
// towards the limit, whichever process released it, and is available again once no process has it, if the driver's
// own figure confirms that.
func TestExportedMemory(t *testing.T) {
	program := compiled(t, "sharer")
	for name, story := range map[string]struct{ keeps, then, ends string }{
		"by its file": {
			"1: create 3000, 1: export, 1: release",
			"1: create 3000 = 2, 2: create 3000 = 2, 2: info = 2544", "1: shut",
		},
		"by a mapping of an import": {
			"1: create 3000, 1: export, 1: send, 2: receive, 2: import 3000, 2: map, 2: release, 2: shut, 1: shut, 1: map, 1: release, 1: unmap",
			"1: create 3000 = 2, 2: create 3000 = 2", "2: unmap",
		},
		"by the handle of an import": {
			"1: create 3000, 1: export, 1: send, 1: release, 1: shut, 2: receive, 2: import 3000, 2: shut",
			"1: take 3000 = 2, 2: take 3000 = 2", "2: release",
		},
		"by a multicast object": {
			"1: create 3000, 1: bind, 1: release", "1: take 3000 = 2, 2: take 3000 = 2", "",
		},
		"by who opened it": {
			"1: take 3000, 1: ipc, 2: open, 1: free", "1: take 3000 = 2, 2: take 3000 = 2", "2: close",
		},
		"by who opened it in a context that ended": {
			"1: take 3000, 1: ipc, 2: open, 2: take 1, 2: free", "1: leave, 2: take 3000 = 2, 2: close, 2: take 5000", "",
		},
		"by a pool's import": {
			"1: pool 3000, 1: pool-export, 1: send, 1: shut, 2: receive, 2: pool-import, 2: shut, 1: pointer, 2: pointer-import, 1: destroy, 1: empty",
			"1: take 3000 = 2, 2: take 3000 = 2", "2: empty, 2: destroy",
		},
		"by a destroyed pool's piece": {
			"1: pool 3000, 1: destroy", "1: take 3000 = 2, 2: take 3000 = 2", "1: empty",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSession(t)
			both := s.sharers(t, program)
			both.tell(t, story.keeps)
			if got := s.trueUse(t); got < 2*contextMiB+3000 || got > 2*contextMiB+3032 {
				t.Errorf("%d MiB are in use, want 3000 beside the contexts", got)
			}
			both.tell(t, story.then)
			if story.ends != "" {
				both.tell(t, story.ends)
				both.tell(t, "1: take 5000, 1: free, 2: take 5000")
			}
		})
	}
}

// A process that imported memory keeps it after the exporting process has died.
func TestMemoryOfTheDead(t *testing.T) {
	program := compiled(t, "sharer")
	for name, story := range map[string]string{
		"physical": "1: create 5000, 1: export, 1: send, 2: receive, 2: import 5000, 2: map",
		"linear":   "1: take 5000, 1: ipc, 2: open",
		"pool":     "1: pool 5000, 1: pool-export, 1: send, 2: receive, 2: pool-import, 1: pointer, 2: pointer-import",
	} {
		t.Run(name, func(t *testing.T) {
			s := newSession(t)
			both := s.sharers(t, program)
			both.tell(t, "2: take 1, 2: free") // after this it has read the driver's figure
			both.tell(t, story)
			both.first.kill()
			s.write(t, map[int64]uint64{atLock: 7<<16 | 1}) // the process had the first slot; the next process that takes its lock frees the slots of dead processes
			both.tell(t, "2: take 1000 = 2")
			third := s.hold(t, compiled(t, "holder"))
			third.tell("take 1000", outOfMemory)
			third.kill()
			if got := s.trueUse(t); got < contextMiB+5000 || got > contextMiB+5032 {
				t.Errorf("%d MiB are in use, want 5000 beside the context", got)
			}
		})
	}
}

// Programs that share memory repeatedly are never refused: memory that both have counts once.
func TestSharingAgainAndAgain(t *testing.T) {
	both := newSession(t).sharers(t, compiled(t, "sharer"))
	for range 20 {
		both.tell(t, "1: create 4000, 1: map, 1: export, 1: send, 1: shut, 2: receive, 2: import 4000, 2: shut, 2: map, 2: unmap, 2: release, 1: unmap, 1: release")
		both.tell(t, "1: take 4000, 1: ipc, 2: open, 2: close, 1: free")
		both.tell(t, "1: pool 4000, 1: pool-export, 1: send, 1: shut, 2: receive, 2: pool-import, 2: shut, 1: pointer, 2: pointer-import, 2: empty, 2: destroy, 1: empty, 1: destroy")
	}
	both.tell(t, fmt.Sprintf("1: info = %d", 6144-2*contextMiB))
}

// If foreign processes use the slice, too, the driver's figure does not help: an export then counts until the
// exporting process ends, and an import counts for the importing process.
func TestSharingOnASharedSlice(t *testing.T) {
	program := compiled(t, "sharer")
	for name, story := range map[string]string{
		"no handle left": "1: create 3000, 1: map, 1: map, 1: release, 1: release = 1, 1: release = 1, 1: unmap, 1: take 3145 = 2, 1: take 3144",
		"a file":         "1: create 4000, 1: export, 1: release, 1: create 4000 = 2, 1: shut, 1: create 4000 = 2",
		"an import":      "1: create 3000, 1: export, 1: send, 2: receive, 2: import 3000, 2: map, 1: take 145 = 2, 1: take 144, 1: free, 2: unmap, 2: release, 1: take 3000",
		"too much":       "1: create 4000, 1: export, 1: send, 2: receive, 2: import 4000, 2: map = 2, 2: release, 2: take 2144",
		"an opened one":  "1: take 3000, 1: ipc, 2: open, 1: take 145 = 2, 1: free, 2: take 3145 = 2, 2: close, 1: take 6144",
		"opened twice":   "1: take 2000, 1: ipc, 1: ipc, 2: open, 2: open, 2: take 2145 = 2, 2: take 2144, 2: free, 2: close, 2: take 2145 = 2, 2: close, 2: take 4144",
		"too much, open": "1: take 4000, 1: ipc, 2: open = 2, 1: free, 1: take 6144",
		"a pool":         "1: pool 3000, 1: pool-export, 1: send, 2: receive, 2: pool-import, 1: pointer, 2: pointer-import, 1: empty, 1: destroy, 1: take 150 = 2, 2: empty, 1: take 3000",
	} {
		t.Run(name, func(t *testing.T) {
			newSession(t).shared().sharers(t, program).tell(t, story)
		})
	}
}
