package durable

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestDestination: a link leads to its file and stays; a pipe, a socket and a folder are refused and untouched.
func TestDestination(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(os.WriteFile(at("file"), []byte("old"), 0o600))
	check(os.Symlink("file", at("link")))
	check(os.Symlink("nothing", at("dangling")))
	check(unix.Mkfifo(at("pipe"), 0o600))
	check(os.Symlink("pipe", at("link-to-pipe")))
	check(os.Mkdir(at("folder"), 0o700))
	socket, err := net.Listen("unix", at("socket"))
	check(err)
	defer socket.Close()
	for name, want := range map[string]string{"file": "file", "new": "new", "link": "file", "dangling": "nothing"} {
		if got, err := Destination(at(name)); err != nil || got != at(want) {
			t.Errorf("%s leads to %s, %v; want %s", name, got, err, want)
		}
	}
	for name, what := range map[string]string{"pipe": "a pipe", "link-to-pipe": "a pipe", "socket": "a socket", "folder": "a folder"} {
		before, _ := os.Lstat(at(name))
		_, err := Destination(at(name))
		if err == nil || !strings.Contains(err.Error(), "is "+what+"; cosplay replaces regular files only. Fix: ") {
			t.Errorf("%s: %v", name, err)
		}
		if strings.HasPrefix(name, "link") {
			continue
		}
		for _, write := range []func(string, []byte, os.FileMode) error{WriteFile, ReplaceFile} {
			if err := write(at(name), []byte("new"), 0o600); err == nil {
				t.Errorf("%s was written", name)
			}
			if after, err := os.Lstat(at(name)); err != nil || !os.SameFile(before, after) {
				t.Errorf("%s is another file", name)
			}
		}
	}
}

// TestWriteOutput: a new file has the mode that the umask leaves, one that exists keeps its mode, and a link stays a link.
func TestWriteOutput(t *testing.T) {
	defer unix.Umask(unix.Umask(0o027))
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.WriteFile(at("kept"), []byte("old"), 0o600), os.Symlink("kept", at("link")), os.Mkdir(at("folder"), 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		path, file string
		mode       os.FileMode
	}{{"new", "new", 0o640}, {"kept", "kept", 0o600}, {"link", "kept", 0o600}} {
		if err := WriteOutput(at(test.path), []byte(test.path)); err != nil {
			t.Fatal(err)
		}
		data, _ := os.ReadFile(at(test.file))
		info, err := os.Lstat(at(test.file))
		if err != nil || info.Mode() != test.mode || string(data) != test.path {
			t.Errorf("%s has mode %v and content %q, %v", test.path, info.Mode(), data, err)
		}
	}
	if info, err := os.Lstat(at("link")); err != nil || info.Mode().Type() != os.ModeSymlink {
		t.Errorf("the link was replaced: %v", err)
	}
	if err := WriteOutput(at("folder"), nil); err == nil {
		t.Error("a folder was replaced")
	}
	if left, _ := filepath.Glob(at(".*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
