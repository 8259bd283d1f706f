package shared

import (
	"os"
	"path/filepath"
	"testing"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestReplaceRepairs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, before := range []string{"", "damaged", "exactly"} {
		check(t, os.WriteFile(path, []byte(before), 0o600))
		check(t, Replace(path, []byte("content"), 0o755))
		holds(t, path, "content")
	}
}

func holds(t *testing.T, path, content string) {
	t.Helper()
	data, err := os.ReadFile(path)
	info, _ := os.Stat(path)
	if err != nil || string(data) != content || info.Mode().Perm() != 0o755 {
		t.Errorf("%s: %q, %v, %v", path, data, info, err)
	}
}

// TestLink: sessions have names of one file. A damaged one is repaired for all, and where the file system has no links
// a session gets a copy.
func TestLink(t *testing.T) {
	base := t.TempDir()
	f := NewFile("program", []byte("content"), 0o755)
	paths := []string{filepath.Join(base, "a"), filepath.Join(base, "b")}
	for range 2 {
		for _, path := range paths {
			check(t, f.Link(base, path))
			holds(t, path, "content")
		}
		one, err := os.Stat(paths[0])
		check(t, err)
		if other, err := os.Stat(paths[1]); err != nil || !os.SameFile(one, other) {
			t.Errorf("they are two files: %v", err)
		}
		check(t, os.WriteFile(paths[0], []byte("damaged, and longer"), 0o600))
		f = NewFile("program", []byte("content"), 0o755) // as another process has it
	}
	if err := os.RemoveAll(filepath.Join(base, Dir)); err != nil {
		t.Fatal(err)
	}
	check(t, os.WriteFile(filepath.Join(base, Dir), nil, 0o600)) // no folder can be there
	check(t, f.Link(base, paths[0]))
	holds(t, paths[0], "content")
}

func TestRemove(t *testing.T) {
	base := filepath.Join(t.TempDir(), "sessions")
	check(t, os.MkdirAll(filepath.Join(base, "a"), 0o755))
	check(t, NewFile("program", nil, 0o755).Link(base, filepath.Join(base, "a", "program")))
	Remove(base)
	if _, err := os.Stat(filepath.Join(base, Dir)); err != nil {
		t.Errorf("with a session: %v", err)
	}
	check(t, os.RemoveAll(filepath.Join(base, "a")))
	Remove(base)
	if _, err := os.Stat(base); err == nil {
		t.Error("without one the folder stays")
	}
}

// TestFoldersVanish: a file is written in another way where other sessions remove the shared folder again and again.
func TestFoldersVanish(t *testing.T) {
	base, tries, instead := t.TempDir(), 0, 0
	check(t, inFolders(base, filepath.Join(base, "a"), func() error {
		tries++
		return os.ErrNotExist
	}, func() error {
		instead++
		return nil
	}))
	if tries != 3 || instead != 1 {
		t.Errorf("%d tries, and then %d times in the other way", tries, instead)
	}
}
