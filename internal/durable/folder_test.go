package durable

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"cosplay/internal/need"
)

// TestCanWriteIn checks that the error names the one folder or file that prevents writing, and that nothing is
// created.
func TestCanWriteIn(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, err := range []error{
		os.WriteFile(at("file"), nil, 0o644), os.Symlink("nowhere", at("link")), os.Mkdir(at("shut"), 0o555), os.Symlink(".", at("here")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ path, words string }{
		{"", ""}, {"new/and/deep", ""}, {"here/new", ""},
		{"file", "/file is a file"}, {"file/in/it", "/file is a file"},
		{"link", "/link is a link to what is not there"}, {"link/in", "/link is a link to what is not there"},
		{"shut", "/shut cannot be written into: permission denied"}, {"shut/in/it", "/shut cannot be written into: permission denied"},
	} {
		if strings.HasPrefix(c.path, "shut") && os.Geteuid() == 0 {
			continue // root may write anywhere
		}
		err := CanWriteIn(at(c.path))
		if (err == nil) != (c.words == "") || err != nil && !strings.Contains(err.Error(), dir+c.words) {
			t.Errorf("%q: %v, want %q", c.path, err, c.words)
		}
	}
	if all, err := os.ReadDir(dir); err != nil || len(all) != 4 {
		t.Errorf("there are %v now, %v", all, err)
	}
}

// TestFoldersOfOneOwner: folders that several threads create at the same time under a new one belong to the owner of what was there.
func TestFoldersOfOneOwner(t *testing.T) {
	need.Root(t)
	base := t.TempDir()
	if err := os.Chown(base, 1234, 1234); err != nil {
		t.Fatal(err)
	}
	for round := range 200 {
		var all sync.WaitGroup
		for i := range 4 {
			path := filepath.Join(base, fmt.Sprint(round), fmt.Sprint(i))
			all.Go(func() {
				if err := MakeFolder(path, 0o755); err != nil {
					t.Error(err)
				}
				if info, err := os.Stat(path); err != nil || info.Sys().(*syscall.Stat_t).Uid != 1234 {
					t.Errorf("%s: %v", path, err)
				}
			})
		}
		all.Wait()
	}
}
