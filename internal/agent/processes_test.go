package agent

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cosplay/internal/resource"
)

// TestIdentify: a process that was started with a session's variables has their marks, and so have its children with any
// environment. On a MIG slice a process has its name alone.
func TestIdentify(t *testing.T) {
	c := exec.Command("sh", "-c", "env -i sh -c 'echo $$; read wait'; echo done")
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "LD_LIBRARY_PATH=/session/lib:/other", resource.PipeVariable + "=/mps/pipe"}
	in, _ := c.StdinPipe()
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	child := 0
	if _, err := fmt.Fscan(out, &child); err != nil {
		t.Fatal(err)
	}
	for pid, marked := range map[int]bool{c.Process.Pid: true, child: true, os.Getpid(): false, 1: false, 1 << 30: false} {
		p := resource.Process{PID: pid}
		identify(&p, procRoot)
		for _, mark := range []string{"LD_LIBRARY_PATH=/session/lib", resource.PipeVariable + "=/mps/pipe"} {
			if p.Marked(mark) != marked {
				t.Errorf("%d: marked %s: %v", pid, mark, !marked)
			}
		}
		if name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); p.Name != strings.TrimSpace(string(name)) {
			t.Errorf("%d is called %q, %v", pid, p.Name, err)
		}
	}
	instance := 1
	p := resource.Process{PID: child, GPUInstance: &instance}
	if identify(&p, procRoot); p.Marks != nil || p.Name == "" {
		t.Errorf("on a slice: %+v", p)
	}
	in.Close()
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
}

// TestContainers: the container of a process is in its control group, with either version of these.
func TestContainers(t *testing.T) {
	id := strings.Repeat("0123456789abcdef", 4)
	for groups, want := range map[string]string{
		"0::/system.slice/docker-" + id + ".scope\n":                id,
		"12:cpu:/docker/" + id + "\n11:memory:/docker/" + id + "\n": id,
		"0::/user.slice/user-1000.slice/session-2.scope\n":          "",
		"0::/machine.slice/libpod-" + id + ".scope/container\n":     id,
	} {
		root := t.TempDir()
		dir := filepath.Join(root, "7")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "cgroup"), []byte(groups), 0o644); err != nil {
			t.Fatal(err)
		}
		p := resource.Process{PID: 7}
		identify(&p, root)
		if got := strings.Join(p.Marks, " "); got != want {
			t.Errorf("%q: %q, want %q", groups, got, want)
		}
	}
}
