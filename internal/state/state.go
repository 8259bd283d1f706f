// Package state keeps the project's state file: what cosplay made and what it
// found before, with lineage, serial and checksum, and the journal of a run
// beside it. It also changes what a state remembers, for the state commands.
package state

import (
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

// LockPath is where the state's lock lies.
func (s Store) LockPath() string { return s.Path + ".lock" }

// JournalPath is where the journal of a run lies: while it is there, the run
// has not been folded into the state.
func (s Store) JournalPath() string { return s.Path + ".journal" }

// BackupPath is where the state before the last Save lies.
func (s Store) BackupPath() string { return s.Path + ".backup" }

// Load reads the state; no file is an empty one. A file that is not wholly what
// Save wrote gives a *Refusal and stays untouched.
func (s Store) Load() (resource.Prior, error) {
	_, prior, err := s.read()
	return prior, err
}

// read gives the file's bytes too; nil without a file.
func (s Store) read() ([]byte, resource.Prior, error) {
	data, err := durable.ReadFile(s.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, resource.Prior{}, nil
	}
	if err != nil {
		return nil, resource.Prior{}, fmt.Errorf("reading the state: %w", err)
	}
	prior, refusal := decode(data)
	if refusal != nil {
		return data, resource.Prior{}, s.refuse(refusal)
	}
	return data, prior, nil
}

// Stamp tells one version of the state file from another without reading it.
func (s Store) Stamp() string {
	info, err := os.Stat(s.Path)
	if err != nil {
		return ""
	}
	inode := info.Sys().(*syscall.Stat_t).Ino // each Save is a new file
	return fmt.Sprint(inode, info.Size(), info.ModTime().UnixNano())
}

// Save writes the state with the next serial, after keeping the one that was
// there as .backup, and returns what it wrote. It writes only over the state
// that p was made from: one that was damaged or put there since gives a
// *Refusal and stays.
func (s Store) Save(p resource.Prior) (resource.Prior, error) { return s.SaveOver(p, p.Serial) }

// SaveOver does the same with a state whose serial has overtaken the one that it was
// made from, which had the serial given.
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

// NewLineage names a new line of states: two states with different lineages
// have nothing to do with each other.
func NewLineage() string { return random(16) }

// NewKey makes a state's secret.
func NewKey() string { return random(32) }

func random(bytes int) string {
	b := make([]byte, bytes)
	_, _ = rand.Read(b) // never fails, says its documentation
	return hex.EncodeToString(b)
}
