package durable

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// lookInto turns the test binary into a process of another user that reads a folder of announcements.
const lookInto = "COSPLAY_LOOK_INTO"

func TestMain(m *testing.M) {
	if dir := os.Getenv(lookInto); dir != "" {
		look(dir)
		return
	}
	os.Exit(m.Run())
}

// look prints whether a change is visible, and how many announcements this process can lock.
func look(dir string) {
	locks := 0
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		file, err := os.Open(filepath.Join(dir, e.Name()))
		if err == nil && unix.Flock(int(file.Fd()), unix.LOCK_SH|unix.LOCK_NB) == nil {
			locks++
		}
	}
	fmt.Println("LOCKS", locks)
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if Quiet(ctx, dir) != nil {
		fmt.Println("MOVING")
	}
}

// asOtherUser runs this program as the user "nobody", from a path that this user can read.
func asOtherUser(t *testing.T, run func(*exec.Cmd)) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "test")
	data, err := os.ReadFile(os.Args[0])
	if err == nil {
		err = os.WriteFile(program, data, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	openToAll(filepath.Dir(program))
	c := exec.Command(program)
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	run(c)
}

// openToAll gives other users access to a folder of t.TempDir.
func openToAll(dir string) {
	for _, at := range []string{dir, filepath.Dir(dir)} {
		_ = os.Chmod(at, 0o755)
	}
}
