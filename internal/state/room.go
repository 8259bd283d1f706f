package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"cosplay/internal/durable"
)

// Room is the approximate size, in bytes, of what a run writes besides the backup and the state.
type Room int64

const block = 64 << 10

// RoomToApply returns the room for a plan with so many steps: each step writes its session twice to the journal and
// once to the state.
func RoomToApply(steps int) Room { return 1<<20 + Room(steps)*8<<10 }

// RoomToDestroy is the room for a plan that removes everything. Its steps only name what they remove, and a full disk
// must not prevent users from removing sessions.
func RoomToDestroy(steps int) Room { return 64<<10 + Room(steps)*2<<10 }

// Writable checks, before anything is changed, that a run will be able to write its journal, the backup and the
// state.
func (s Store) Writable(needed Room) error {
	dir := filepath.Dir(s.Path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return s.unwritable(err)
	}
	room := int64(needed)
	for _, path := range []string{s.Path, s.BackupPath(), s.JournalPath()} {
		info, err := os.Lstat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return s.unwritable(err)
		case !info.Mode().IsRegular():
			return fmt.Errorf("%s blocks the state: it is not a regular file. Nothing was changed. Move it away, or put the state elsewhere with --state", path)
		case path == s.Path:
			room += 2 * info.Size() // the next one, and the backup
		}
	}
	trial, err := os.CreateTemp(dir, "."+filepath.Base(s.Path)+".room*")
	if err != nil {
		return s.unwritable(err)
	}
	defer trial.Close()
	if err := os.Remove(trial.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) { // the reserved room is released in any case
		return s.unwritable(err)
	}
	if err := fill(trial, room); err != nil {
		return fmt.Errorf("there is no room for state and journal in %s, about %d KiB: %w. Nothing was changed. Make room, or put the state elsewhere with --state", dir, room>>10, plainly(err))
	}
	return nil
}

func (s Store) unwritable(err error) error {
	return fmt.Errorf("the state %s could not be written: %w. Nothing was changed. Make its folder writable, or put the state elsewhere with --state", s.Path, plainly(err))
}

// plainly drops the name of a file that users never see.
func plainly(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// fill reserves bytes on the disk, by writing them if the file system cannot reserve them.
func fill(file *os.File, bytes int64) error {
	err := durable.Reserve(file, bytes)
	if !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.ENOSYS) {
		return err
	}
	zeros := make([]byte, block)
	for ; bytes > 0; bytes -= block {
		if _, err := file.Write(zeros); err != nil {
			return err
		}
	}
	return file.Sync()
}
