package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cosplay/internal/durable"
	"cosplay/internal/ledger"
	"cosplay/internal/resource"
)

// TestPrivilegedKill: cosplay is killed while root's agent is in the middle of a
// change, which no user can stop. The next command waits for its end, and adds what it
// finds to the state.
func TestPrivilegedKill(t *testing.T) {
	m := newMachine(t)
	const project = "/home/ann/fleet"
	m.write(project+"/fleet.hcl", workers(0, 3), ann)
	m.allow("ann ALL=(root) NOPASSWD: " + installed + " agent --privileged --library " + hardware)
	before := m.state()
	apply := []string{installed, "apply", "--auto-approve"}

	var (
		first *exec.Cmd
		agent int
		lock  io.Closer
	)
	m.run(0, "/", "mkdir", "-p", ledger.SystemDir) // agents are counted only if there is a ledger
	for try := 0; agent == 0; try++ {
		if try == 20 {
			t.Fatal("every run was over before it could be stopped")
		}
		m.run(ann, project, installed, "destroy", "--auto-approve")
		first = m.as(ann, project, apply...)
		if err := first.Start(); err != nil {
			t.Fatal(err)
		}
		agent, lock = m.hold(func() bool { return hasEnded(first.Process.Pid) })
		if agent == 0 {
			_ = first.Wait()
		}
	}
	defer lock.Close()
	wait(t, "the agent to wait for the pages, which it does after its last question whether the client lives", func() bool {
		return opens(agent, "/ledger.lock") == 4 // for its place, its user, the GPU and the pages
	})
	_ = first.Process.Kill() // nsenter became env, sh, and then cosplay
	_ = first.Wait()
	if journals(t, filepath.Join(m.root, project)) != 1 {
		t.Fatal("no run was interrupted: the test proves nothing")
	}

	ended := make(chan error, 1)
	var said []byte
	go func() {
		var err error
		said, err = m.as(ann, project, installed, "plan").CombinedOutput()
		ended <- err
	}()
	select {
	case <-ended:
		t.Fatalf("the next command did not wait:\n%s", said)
	case <-time.After(500 * time.Millisecond):
	}
	lock.Close()
	if err := <-ended; err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	m.run(ann, project, apply...)
	m.run(ann, project, installed, "plan", "--detailed-exitcode")
	if slices := m.gpus()[0].Slices; len(slices) != 3 {
		t.Errorf("slices: %+v", slices)
	}
	m.run(ann, project, installed, "destroy", "--auto-approve")
	if m.state() != before || len(m.book()) > 0 {
		t.Errorf("the host is not as it was: %+v, %+v", m.gpus()[0], m.book())
	}
	wait(t, "the agent to end", func() bool { return hasEnded(agent) })
}

// hold makes root's agent stand in the middle of making a slice: those are noted
// in the ledger first, so it is enough to have the ledger's lock. Without an agent
// the run was over before.
func (m *machine) hold(over func() bool) (agent int, lock io.Closer) {
	m.t.Helper()
	wait(m.t, "the clock to be locked", func() bool {
		book := m.book()
		return over() || len(book) == 1 && book[0].Set.Has(resource.SMClock)
	})
	lock, err := durable.LockByte(m.t.Context(), filepath.Join(m.root, ledger.SystemDir, "ledger.lock"), 0)
	if err != nil {
		m.t.Fatal(err)
	}
	wait(m.t, "a change under way", func() bool {
		found, _ := filepath.Glob(filepath.Join(m.root, "var/lib/cosplay/moving/[0-9]*"))
		if len(found) == 0 {
			return over()
		}
		_, err := fmt.Sscan(filepath.Base(found[0]), &agent)
		return err == nil
	})
	if agent == 0 {
		lock.Close()
	}
	return agent, lock
}

func wait(t *testing.T, what string, until func() bool) {
	t.Helper()
	for end := time.Now().Add(hang); !until(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// opens counts how often a process has a file of this name open.
func opens(pid int, name string) (count int) {
	found, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	for _, fd := range found {
		if path, err := os.Readlink(fd); err == nil && strings.HasSuffix(path, name) {
			count++
		}
	}
	return count
}

// hasEnded reports whether a process has ended, reaped or not.
func hasEnded(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(stat), ") Z ")
}
