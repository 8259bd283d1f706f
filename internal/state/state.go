// Package state keeps the project's state file: what cosplay made and what it
// found before, with lineage and serial, and the journal of a run beside it.
package state

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
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

// formatVersion is raised when a field changes its meaning; Load then has to
// bring older files up to date.
const formatVersion = 1

// file is the state on disk. The tags of resource.Prior are the format.
type file struct {
	FormatVersion  int    `json:"format_version"`
	CosplayVersion string `json:"cosplay_version"`
	resource.Prior
}

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

// Load reads the state; no file is an empty one. A file that cannot be read for
// what it is gives an error and stays untouched.
func (s Store) Load() (resource.Prior, error) {
	data, err := os.ReadFile(s.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return resource.Prior{}, nil
	}
	if err != nil {
		return resource.Prior{}, fmt.Errorf("reading the state: %w", err)
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return resource.Prior{}, s.damaged("it is empty")
	}
	var f file
	misread := json.Unmarshal(data, &f)
	var syntax *json.SyntaxError
	switch {
	case errors.As(misread, &syntax):
		return resource.Prior{}, s.damaged("it is cut off or not JSON: " + misread.Error())
	case f.FormatVersion > formatVersion: // whatever else there is about it
		return resource.Prior{}, fmt.Errorf("the state %s has format version %d and was written by a newer cosplay; this one reads up to %d. Use the newer one", s.Path, f.FormatVersion, formatVersion)
	case misread != nil:
		return resource.Prior{}, s.damaged(misread.Error())
	case f.FormatVersion == 0:
		return resource.Prior{}, s.damaged("it has no format_version, so it is not a state of cosplay")
	case f.Lineage == "":
		return resource.Prior{}, s.damaged("it has no lineage")
	}
	return f.Prior, nil
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

func (s Store) damaged(what string) error {
	return fmt.Errorf("the state %s cannot be used: %s. Nothing was touched. The state before the last run is in %s.backup: if it is good, copy it over; slices that the last run made are then no longer known, and have to be removed by hand (nvidia-smi mig -lgi)", s.Path, what, s.Path)
}

// Save writes the state with the next serial, after keeping the one that was
// there as .backup, and returns what it wrote.
func (s Store) Save(p resource.Prior) (resource.Prior, error) {
	p.Serial++
	if p.Lineage == "" {
		p.Lineage, p.Key = NewLineage(), NewKey()
	}
	data, err := json.MarshalIndent(file{FormatVersion: formatVersion, CosplayVersion: s.Version, Prior: p}, "", "  ")
	if err != nil {
		return p, err
	}
	if err := os.MkdirAll(filepath.Dir(s.Path), 0o755); err != nil {
		return p, err
	}
	if old, err := os.ReadFile(s.Path); err == nil {
		if err := durable.WriteFile(s.Path+".backup", old, 0o600); err != nil {
			return p, fmt.Errorf("keeping a backup of the state: %w", err)
		}
	}
	if err := durable.WriteFile(s.Path, append(data, '\n'), 0o600); err != nil {
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
