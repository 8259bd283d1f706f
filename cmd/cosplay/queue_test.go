package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// waiting is a cosplay run that waits, or has its session.
type waiting struct {
	*process
	input io.WriteCloser
}

// process is a command whose output grows while it runs.
type process struct {
	p     *os.Process
	wait  func() error
	lock  sync.Mutex
	lines []string
}

func (c *process) said(text string) bool {
	c.lock.Lock()
	defer c.lock.Unlock()
	return slices.ContainsFunc(c.lines, func(l string) bool { return strings.Contains(l, text) })
}

func (c *process) all() string {
	c.lock.Lock()
	defer c.lock.Unlock()
	return strings.Join(c.lines, "\n")
}

// wait starts a run that appends its name to the file order, and ends with its input.
func (p project) wait(t *testing.T, name string) *waiting {
	t.Helper()
	c := p.command("run", "2060", "--wait", "--", "sh", "-c", "echo "+name+" >>order; echo up; read end")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Stdout, c.Stderr = w, w
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	one := &waiting{&process{p: c.Process, wait: c.Wait}, in}
	go func() {
		defer r.Close()
		for lines := bufio.NewScanner(r); lines.Scan(); {
			one.lock.Lock()
			one.lines = append(one.lines, lines.Text())
			one.lock.Unlock()
		}
	}()
	return one
}

// end ends the command of a run that has its session.
func (w *waiting) end(t *testing.T) {
	t.Helper()
	fmt.Fprintln(w.input)
	if err := w.process.wait(); err != nil {
		t.Errorf("%v\n%s", err, w.all())
	}
}

// TestQueue: ten runs wait for two slices. They get them in the order in which they came, but for one that is killed, one
// that leaves with Ctrl-C, and one that is stopped and ignores its turn: that one goes to the end.
func TestQueue(t *testing.T) {
	t.Parallel()
	p, _ := runnable(t)
	p.run("sim", "set", "0", "mig", "on")
	p.run("sim", "create-slice", "0", "4g.71gb", "0")
	p.run("sim", "create-slice", "0", "1g.18gb", "4")
	free := p.hardware()
	var runs []*waiting
	for i := range 12 {
		w := p.wait(t, fmt.Sprintf("n%d", i))
		runs = append(runs, w)
		if i < 2 {
			wait(t, "a session", func() bool { return w.said("up") })
			continue
		}
		position := fmt.Sprintf("position %d in its queue", i-1)
		wait(t, position, func() bool { return w.said(position) || w.said("Error") })
		if !w.said(position) {
			t.Fatalf("run %d: %s", i, w.all())
		}
	}
	if out, err := p.command("run", "2060", "--", "true").CombinedOutput(); err == nil || !strings.Contains(string(out), "--wait") {
		t.Errorf("without --wait: %v\n%s", err, out)
	}
	killed, left, stopped := runs[4], runs[6], runs[8]
	if err := killed.p.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = killed.process.wait()
	if err := left.p.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := left.process.wait(); err == nil || !strings.Contains(err.Error(), "130") {
		t.Errorf("Ctrl-C: %v", err)
	}
	if err := stopped.p.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	wait(t, "the last to have moved up by two", func() bool { return runs[11].said("position 8 in its queue") })

	order := []*waiting{runs[0], runs[1], runs[2], runs[3], runs[5], runs[7], runs[9], runs[10], runs[11]}
	for i := range order[:7] { // two have sessions at a time
		order[i].end(t)
		next := order[i+2]
		begun := time.Now()
		wait(t, "the next session", func() bool { return next.said("up") })
		if next == runs[9] && time.Since(begun) < 5*time.Second {
			t.Errorf("the run that is stopped had its turn for %s only", time.Since(begun))
		}
	}
	if err := stopped.p.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	order[7].end(t)
	order[8].end(t)
	wait(t, "the run that was stopped", func() bool { return stopped.said("up") })
	stopped.end(t)

	got, err := os.ReadFile(filepath.Join(p.dir, "order"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"n0", "n1", "n2", "n3", "n5", "n7", "n9", "n10", "n11", "n8"}
	if order := strings.Fields(string(got)); !slices.Equal(order, want) {
		t.Errorf("the order is %v, want %v", order, want)
	}
	if now := p.hardware(); string(now) != string(free) {
		t.Errorf("left is\n%s", now)
	}
}
