package docker

import (
	"os"
	"path/filepath"
	"testing"
)

// TestOutdatedMount: a mount is outdated if its file was unlinked, or renamed in its folder. What cosplay and the engine
// may see differently is not.
func TestOutdatedMount(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	check(t, err)
	for _, name := range []string{"app.conf", "a b"} {
		check(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	check(t, os.Symlink("app.conf", filepath.Join(dir, "link")))
	own := []mounted{{"8:3", "/", "/proc"}, {"8:2", "/home/x", dir}, {"8:1", "/", "/"}}
	for _, test := range []struct {
		device, root, source string
		want                 bool
	}{
		{"8:2", "/home/x/app.conf", "app.conf", false},
		{"8:2", "/home/x/app.conf//deleted", "app.conf", true},
		{"8:2", "/home/x/app.conf~", "app.conf", true},
		{"8:2", "/home/x/a b", "a b", false},
		{"8:2", "/home/x/app.conf", "link", false},
		{"8:2", "/home/x/old.conf", "link", true},
		{"8:2", "/home/x", "", false},
		{"8:1", "/home/x/app.conf~", "app.conf", false}, // of another file system
		{"8:2", "/elsewhere/app.conf", "app.conf", false},
		{"8:2", "/home/x/app.conf~", "missing", false},
	} {
		m := mounted{device: test.device, root: test.root}
		if got := m.outdated(own, filepath.Join(dir, test.source)); got != test.want {
			t.Errorf("%s of %s mounted for %s: outdated is %t", test.root, test.device, test.source, got)
		}
	}
}
