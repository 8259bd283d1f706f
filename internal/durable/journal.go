package durable

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Journal is a file of JSON lines, each on disk before Write returns.
type Journal struct{ file *os.File }

// CreateJournal creates a journal. It fails if one exists, because that belongs to an interrupted run.
func CreateJournal(path string) (*Journal, error) {
	Moment("before %s", path)
	defer Moment("after %s", path)
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("starting the journal: %w", err)
	}
	if err := errors.Join(inherit(file, filepath.Dir(path)), SyncDir(filepath.Dir(path))); err != nil {
		file.Close()
		return nil, err
	}
	return &Journal{file: file}, nil
}

// Write appends entries.
func (j *Journal) Write(entries ...any) error {
	var lines []byte
	for _, entry := range entries {
		line, err := json.Marshal(entry)
		if err != nil {
			return err
		}
		Moment("before journal %s", line)
		defer Moment("after journal %s", line)
		lines = append(append(lines, line...), '\n')
	}
	if len(lines) == 0 {
		return nil
	}
	if _, err := j.file.Write(lines); err != nil {
		return fmt.Errorf("writing the journal: %w", err)
	}
	if err := j.file.Sync(); err != nil {
		return fmt.Errorf("writing the journal: %w", err)
	}
	return nil
}

// Close closes the file and keeps it on disk.
func (j *Journal) Close() error { return j.file.Close() }

// ReadJournal reads all entries; without a file there are none. A last line that is incomplete or invalid was being
// written when the process died or the power failed. The action that it announced had not begun, so ReadJournal drops
// it.
func ReadJournal[T any](path string) ([]T, error) {
	data, err := ReadRecord(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the journal: %w", err)
	}
	var entries []T
	lines := bytes.SplitAfter(data, []byte("\n"))
	for i, line := range lines {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break
		}
		var entry T
		if err := json.Unmarshal(line, &entry); err != nil {
			if last := len(bytes.Join(lines[i+1:], nil)) == 0; last {
				break
			}
			return nil, fmt.Errorf("%s line %d is damaged: %w. Keep a copy, remove the damaged line, and run the command again: it recovers from the other lines", path, i+1, err)
		}
		entries = append(entries, entry)
	}
	return entries, nil
}
