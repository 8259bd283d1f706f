package durable

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Lines is a file of lines that is rotated by size. Its writers take turns: the caller locks it.
type Lines struct {
	Path  string
	Max   int64    // bytes; a file above it is renamed before the next line
	Older []string // paths of the renamed files, the newest first; what is older than the last is removed
	Mode  os.FileMode

	// First returns what a new file begins with, read before the old one is renamed. It may be nil.
	First func() []byte
}

// Append appends a line, which has no newline at its end, or several. After an incomplete line, which a full disk or a
// kill can leave, it begins a new one.
func (l Lines) Append(line []byte) error {
	file, err := os.OpenFile(l.Path, os.O_RDWR|os.O_APPEND|os.O_CREATE, l.Mode)
	if err != nil {
		return plainly(err)
	}
	defer func() { file.Close() }()
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return plainly(err)
	}
	text := append(append([]byte{}, line...), '\n')
	last := []byte{'\n'}
	if size > 0 {
		if _, err := file.ReadAt(last, size-1); err != nil {
			return plainly(err)
		}
	}
	switch {
	case size > l.Max:
		if l.First != nil {
			text = append(l.First(), text...)
		}
		if err := l.rotate(); err != nil {
			return err
		}
		file.Close()
		if file, err = os.OpenFile(l.Path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, l.Mode); err != nil {
			return plainly(err)
		}
	case last[0] != '\n':
		text = append([]byte{'\n'}, text...)
	}
	_, err = file.Write(text)
	return plainly(err)
}

// rotate renames the file and those before it.
func (l Lines) rotate() error {
	all := append([]string{l.Path}, l.Older...)
	for i := len(all) - 1; i > 0; i-- {
		if err := os.Rename(all[i-1], all[i]); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("rotating %s: %w", l.Path, plainly(err))
		}
	}
	return nil
}
