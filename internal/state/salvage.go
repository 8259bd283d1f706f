package state

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"cosplay/internal/durable"
	"cosplay/internal/pattern"
)

// Salvaged is the identifying data of a state, read from files that may be damaged. No value is certain, because any
// bit may be wrong, so callers compare them with the hosts.
type Salvaged struct {
	Lineages []string
	Keys     []string
	Serial   int // the highest
}

var (
	lineagePattern = pattern.Of(`"lineage":\s*"([0-9a-f]{32})"`)
	keyPattern     = pattern.Of(`"key":\s*"([0-9a-f]{64})"`)
	serialPattern  = pattern.Of(`"serial":\s*(\d{1,9})\b`)
)

// Salvage reads this data from the state, its backup and the journal, in whatever condition they are.
func (s Store) Salvage() Salvaged {
	var found Salvaged
	for _, path := range []string{s.Path, s.BackupPath(), s.JournalPath()} {
		data, err := durable.ReadFile(path)
		if err != nil {
			continue
		}
		found.Lineages = collect(found.Lineages, lineagePattern(), data)
		found.Keys = collect(found.Keys, keyPattern(), data)
		if m := serialPattern().FindSubmatch(data); m != nil {
			serial, _ := strconv.Atoi(string(m[1])) // digits
			found.Serial = max(found.Serial, serial)
		}
	}
	return found
}

// collect adds the matches of a pattern, each once.
func collect(all []string, pattern *regexp.Regexp, data []byte) []string {
	for _, m := range pattern.FindAllSubmatch(data, -1) {
		if word := string(m[1]); !slices.Contains(all, word) {
			all = append(all, word)
		}
	}
	return all
}

// SetAside renames state, backup and journal, with a word and a number that is free for all of them:
// state.json.reset-1. It returns the new paths of the files that existed.
func (s Store) SetAside(word string) ([]string, error) {
	var moved []string
	paths := []string{s.Path, s.BackupPath(), s.JournalPath()}
	suffix := freeSuffix(paths, word)
	for _, path := range paths {
		err := os.Rename(path, path+suffix)
		switch {
		case os.IsNotExist(err):
		case err != nil:
			return moved, fmt.Errorf("moving the state aside: %w", err)
		default:
			moved = append(moved, path+suffix)
		}
	}
	return moved, durable.SyncDir(filepath.Dir(s.Path))
}

func freeSuffix(paths []string, word string) string {
	for n := 1; ; n++ {
		suffix := fmt.Sprintf(".%s-%d", word, n)
		taken := slices.ContainsFunc(paths, func(path string) bool {
			_, err := os.Lstat(path + suffix)
			return err == nil
		})
		if !taken {
			return suffix
		}
	}
}
