package need

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

type spy func() int

func (s spy) Run() int { return s() }

// TestRunFolders checks that the folder of a run is removed when the run ends, and that the next run removes the
// folders of killed runs and no others.
func TestRunFolders(t *testing.T) {
	base := t.TempDir()
	t.Setenv("TMPDIR", base)
	made := func(name string) string {
		dir := filepath.Join(base, name)
		if err := os.MkdirAll(filepath.Join(dir, "project"), 0o755); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	dead, alive, other := made(runPrefix+"dead"), made(runPrefix+"alive"), made("other")
	lock, err := os.Open(alive)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{dead + "/project": true, alive + "/project": false, other: false, base + "/" + runPrefix + "gone/project": true} {
		if got := Abandoned(path); got != want {
			t.Errorf("%s: abandoned is %v", path, got)
		}
	}
	var own string
	tests, err := Scratch(spy(func() int {
		own = os.TempDir()
		for dir, want := range map[string]bool{dead: false, alive: true, other: true, own: true} {
			if _, err := os.Stat(dir); (err == nil) != want {
				t.Errorf("%s: %v", dir, err)
			}
		}
		if filepath.Dir(own) != base || Abandoned(filepath.Join(own, "x")) {
			t.Errorf("the run's folder is %s", own)
		}
		return 3
	}))
	if err != nil {
		t.Fatal(err)
	}
	ended := tests.Run()
	if _, err := os.Stat(own); err == nil || ended != 3 {
		t.Errorf("left is %s; the exit code is %d", own, ended)
	}
}
