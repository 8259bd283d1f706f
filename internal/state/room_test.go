package state

import (
	"errors"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestWritable checks that a folder that cannot hold state and journal is reported before anything is changed, and
// that the check leaves no files.
func TestWritable(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "file"), nil)
	if err := os.MkdirAll(filepath.Join(dir, "odd", FileName+".backup"), 0o755); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "new", FileName):  "",
		filepath.Join(dir, "file", FileName): "could not be written: not a directory. Nothing was changed",
		"/proc/" + FileName:                  "could not be written", // not even root can write there
		filepath.Join(dir, "odd", FileName):  FileName + ".backup blocks",
	} {
		err := Store{Path: path}.Writable(RoomToApply(20))
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", path, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "--state")):
			t.Errorf("%s: got %v, want %q", path, err, want)
		}
	}
	if left, _ := os.ReadDir(filepath.Join(dir, "new")); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// TestNoRoom checks that a nearly full disk is reported, with the room that a run needs. A limit on the size of files
// simulates the disk.
func TestNoRoom(t *testing.T) {
	s := Store{Path: filepath.Join(t.TempDir(), FileName)}
	save(t, s, some())
	signal.Ignore(unix.SIGXFSZ)
	defer signal.Reset(unix.SIGXFSZ)
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	small := before
	small.Cur = uint64(RoomToApply(100))
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &small); err != nil {
		t.Fatal(err)
	}
	few, many := s.Writable(RoomToApply(50)), s.Writable(RoomToApply(100)) // the state that is there counts too
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	if few != nil {
		t.Error(few)
	}
	if !errors.Is(many, unix.EFBIG) || !strings.Contains(many.Error(), "no room for state and journal") || strings.Contains(many.Error(), ".room") {
		t.Errorf("got %v", many)
	}
	if _, err := os.Stat(s.Path); errors.Is(err, fs.ErrNotExist) {
		t.Error("the state was deleted")
	}
}
