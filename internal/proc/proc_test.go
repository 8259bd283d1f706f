package proc

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

const marked = "COSPLAY_TEST=marked"

// TestReplaced: a process has its environment also while the kernel replaces its program.
func TestReplaced(t *testing.T) {
	again := filepath.Join(t.TempDir(), "again")
	if err := os.WriteFile(again, []byte(`exec sh "$0"`), 0o644); err != nil {
		t.Fatal(err)
	}
	pid := start(t, []string{marked}, "/bin/sh", again)
	for range 2000 {
		if environment, err := Environment(Root, pid); err != nil || !slices.Contains(environment, marked) {
			t.Fatalf("the environment is %q, %v", environment, err)
		}
	}
}

// TestWithout: a process without environment, one that has ended and one of the kernel are not waited for.
func TestWithout(t *testing.T) {
	none := start(t, []string{}, "/bin/sleep", "600")
	ended := start(t, []string{marked}, "/bin/true")
	for s, err := StatOf(Root, ended); !s.Ended(); s, err = StatOf(Root, ended) {
		if err != nil {
			t.Fatal(err)
		}
	}
	kernel := filepath.Join(t.TempDir(), "2")
	const line = "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 33 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0"
	if err := errors.Join(os.Mkdir(kernel, 0o755), os.WriteFile(kernel+"/environ", nil, 0o644), os.WriteFile(kernel+"/stat", []byte(line), 0o644)); err != nil {
		t.Fatal(err)
	}
	for root, pid := range map[string]int{Root: none, Root + "/": ended, filepath.Dir(kernel): 2} {
		for range 2000 { // each would take seconds
			if environment, _ := Environment(root, pid); len(environment) > 0 {
				t.Fatalf("process %d has the environment %q", pid, environment)
			}
		}
	}
}

// TestEachFindsHeirs: a process that starts after the list was read, as the child of one that then ends, is visited, too.
func TestEachFindsHeirs(t *testing.T) {
	heir, visits := 0, map[int]int{}
	if err := Each(func(pid int) {
		if heir == 0 {
			heir = start(t, nil, "/bin/sleep", "600")
		}
		visits[pid]++
	}); err != nil {
		t.Fatal(err)
	}
	if visits[heir] != 1 || visits[os.Getpid()] != 1 {
		t.Errorf("visited the new process %d times, and this one %d times", visits[heir], visits[os.Getpid()])
	}
}

func TestParent(t *testing.T) {
	if of := Parent(Root, start(t, nil, "/bin/sleep", "600")); of != os.Getpid() {
		t.Errorf("a child of %d has the parent %d", os.Getpid(), of)
	}
	dir := t.TempDir()
	if err := os.Mkdir(dir+"/7", 0o755); err != nil {
		t.Fatal(err)
	}
	line := "7 (a) S 1 (b) S 11 7 7 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0"
	if err := os.WriteFile(dir+"/7/stat", []byte(line), 0o644); err != nil {
		t.Fatal(err)
	}
	if s, err := StatOf(dir, 7); err != nil || s.Start() != "4711" || Parent(dir, 7) != 11 {
		t.Errorf("a name with brackets: start %q, parent %d, %v", s.Start(), Parent(dir, 7), err)
	}
	if Parent(dir, 8) != 0 {
		t.Error("a process that does not exist has a parent")
	}
}

// start starts a program that ends with the test.
func start(t *testing.T, environment []string, program ...string) int {
	command := exec.Command(program[0], program[1:]...)
	command.Env = environment
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill(); _ = command.Wait() })
	return command.Process.Pid
}
