// Package state stores the project's state file: the objects that cosplay created and the settings that it found
// before, with lineage, serial and checksum, and the journal of a run beside it. It also edits the state for the
// state commands.
package state

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"cosplay/internal/durable"
	"cosplay/internal/resource"
)

// FileName is the state file's name in a project's folder.
const FileName = "cosplay.state.json"

// Store is one state file.
type Store struct {
	Path    string
	Version string // of cosplay, noted in the file
}

// LockPath is the path of the state's lock.
func (s Store) LockPath() string { return s.Path + ".lock" }

// JournalPath is the path of the journal of a run. While it exists, the run has not been folded into the state.
func (s Store) JournalPath() string { return s.Path + ".journal" }

// BackupPath is the path of the state before the last Save.
func (s Store) BackupPath() string { return s.Path + ".backup" }

// Load reads the state; a missing file is an empty state. If the file is not exactly what Save wrote, the error is a
// *Refusal, and the file does not change.
func (s Store) Load() (resource.Prior, error) {
	_, prior, err := s.read()
	return prior, err
}

// LoadOwned is Load of at most so many bytes, with the UID of the owner of the file.
func (s Store) LoadOwned(most int64) (prior resource.Prior, uid int, err error) {
	data, uid, err := durable.ReadOwnedRecord(s.Path, most)
	if err == nil {
		_, prior, err = s.decode(data)
	}
	return prior, uid, err
}

// read also returns the file's bytes; nil without a file.
func (s Store) read() ([]byte, resource.Prior, error) {
	data, err := durable.ReadRecord(s.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, resource.Prior{}, nil
	}
	if err != nil {
		return nil, resource.Prior{}, fmt.Errorf("reading the state: %w", err)
	}
	return s.decode(data)
}

func (s Store) decode(data []byte) ([]byte, resource.Prior, error) {
	prior, refusal := decode(data)
	if refusal != nil {
		return data, resource.Prior{}, s.refuse(refusal)
	}
	return data, prior, nil
}

// Stamp identifies a version of the state file without reading its content.
func (s Store) Stamp() string {
	info, err := os.Stat(s.Path)
	if err != nil {
		return ""
	}
	inode := info.Sys().(*syscall.Stat_t).Ino // each Save is a new file
	return fmt.Sprint(inode, info.Size(), info.ModTime().UnixNano())
}

// FolderOfSessions is the folder of the project by the path that the sessions of the state were created by: the one
// before their folders in the scratch folder, or else the workspace of a session. "" without a session. It reads the
// text, which takes a fraction of the time of decoding it.
func (s Store) FolderOfSessions(scratch string) string {
	data, err := durable.ReadRecord(s.Path)
	if err != nil {
		return ""
	}
	if at := bytes.Index(data, []byte("/"+scratch+"/sessions/")); at >= 0 {
		return string(data[bytes.LastIndexByte(data[:at], '"')+1 : at])
	}
	_, rest, _ := bytes.Cut(data, []byte(`"workspace"`))
	_, rest, found := bytes.Cut(rest, []byte(`"`))
	if !found {
		return ""
	}
	folder, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(folder)
}

// Save writes the state with the next serial, after keeping the previous one as .backup, and returns what it wrote.
// It overwrites only the state that p was derived from. If that was damaged or replaced meanwhile, the error is a
// *Refusal, and the file does not change.
func (s Store) Save(p resource.Prior) (resource.Prior, error) { return s.SaveOver(p, p.Serial) }

// SaveOver does the same for a state whose serial was raised since it was read with the given serial.
func (s Store) SaveOver(p resource.Prior, from int) (resource.Prior, error) {
	old, there, err := s.read()
	if err != nil {
		return p, err
	}
	if refusal := succeeds(p, from, there); old != nil && refusal != nil {
		return p, s.refuse(refusal)
	}
	p.Serial++
	if p.Lineage == "" {
		p.Lineage, p.Key = NewLineage(), NewKey()
	}
	data, err := encode(p, s.Version)
	if err != nil {
		return p, err
	}
	if err := os.MkdirAll(filepath.Dir(s.Path), 0o755); err != nil {
		return p, err
	}
	if old != nil {
		if err := durable.WriteFile(s.BackupPath(), old, 0o600); err != nil {
			return p, fmt.Errorf("keeping a backup of the state: %w", err)
		}
	}
	if err := durable.WriteFile(s.Path, data, 0o600); err != nil {
		return p, fmt.Errorf("writing the state: %w", err)
	}
	return p, nil
}

// NewLineage returns the name of a new line of states: states with different lineages are unrelated.
func NewLineage() string { return random(16) }

// NewKey returns a new secret for a state.
func NewKey() string { return random(32) }

func random(bytes int) string {
	b := make([]byte, bytes)
	_, _ = rand.Read(b) // never fails, says its documentation
	return hex.EncodeToString(b)
}
