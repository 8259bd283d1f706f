package ledger

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cosplay/internal/durable"
)

// Attempted is one line of a user's history: a requested change and, if it was refused, why. User and UID are who made the
// request.
type Attempted struct {
	At      string `json:"at"` // RFC 3339
	User    string `json:"user"`
	UID     int    `json:"uid"`
	For     string `json:"for,omitempty"` // the user whose project it is, if that is another one
	Op      string `json:"op"`
	GPU     string `json:"gpu,omitempty"`
	Was     string `json:"was,omitempty"` // the value before
	Value   string `json:"value,omitempty"`
	Lineage string `json:"lineage,omitempty"`
	State   string `json:"state,omitempty"`
	Refused string `json:"refused,omitempty"` // "" if it was done
}

// Stamp is a moment in RFC 3339 with microseconds: users have a file each, and the order of their lines counts.
func Stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z07:00") }

const (
	maxHistory = 512 << 10 // bytes of a file; one older file is kept
	maxWords   = 300       // bytes of one value, which a user may have chosen
)

func (b Book) history() string { return filepath.Join(b.Dir, "history") }

// Record appends to the history of users. Each user has one file for changes that were made and one for requests
// that were refused, so a flood of requests removes only lines of its author, and a flood of refused requests no line
// about a change. The history does not replace pages, which have what the next holder needs.
func (b Book) Record(all ...Attempted) error {
	if b.Dir == "" {
		return nil
	}
	files := map[string][][]byte{} // lines by the name of their file
	for _, a := range all {
		for _, text := range []*string{&a.Op, &a.GPU, &a.Was, &a.Value, &a.Lineage, &a.State, &a.Refused} {
			*text = strings.ToValidUTF8((*text)[:min(len(*text), maxWords)], "")
		}
		line, err := json.Marshal(a)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("%d.jsonl", a.UID)
		if a.Refused != "" {
			name = fmt.Sprintf("%d.refused.jsonl", a.UID)
		}
		files[name] = append(files[name], line)
	}
	if err := os.MkdirAll(b.history(), 0o755); err != nil {
		return unwritable(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockWait)
	defer cancel()
	if lock, err := b.lock(ctx, pagesByte); err == nil { // the line counts more than the lock
		defer lock.Close()
	}
	for name, added := range files {
		path := filepath.Join(b.history(), name)
		lines := durable.Lines{Path: path, Max: maxHistory, Older: []string{path + ".old"}, Mode: 0o644, First: func() []byte { return lastChanges(path) }}
		if err := lines.Append(bytes.Join(added, []byte("\n"))); err != nil {
			return unwritable(err)
		}
	}
	return nil
}

// Released lists the GPUs, by UUID, that a project has acquired and released since. Only
// its own user and root can do either under its lineage.
func (b Book) Released(lineage string) ([]string, error) {
	if b.Dir == "" {
		return nil, nil
	}
	all, err := b.History()
	released := map[string]bool{}
	for _, a := range all {
		if a.Lineage == lineage && a.Refused == "" && (a.Op == "take" || a.Op == "release") {
			released[a.GPU] = a.Op == "release"
		}
	}
	maps.DeleteFunc(released, func(_ string, is bool) bool { return !is })
	return slices.Sorted(maps.Keys(released)), err
}

// lastChanges are the lines of a file with the last change of each kind that each project made to each GPU that was
// acquired, oldest first: they are kept however long the history becomes.
func lastChanges(path string) (lines []byte) {
	all, _ := attempts(path)
	acquired, seen := map[string]bool{}, map[[3]string]bool{}
	for _, a := range all {
		acquired[a.GPU] = acquired[a.GPU] || a.Op == "take"
	}
	for _, a := range slices.Backward(all) {
		kind := [3]string{a.GPU, a.Lineage, a.Op}
		if a.Refused != "" || !acquired[a.GPU] || seen[kind] || len(lines) > maxHistory/4 {
			continue
		}
		seen[kind] = true
		if line, err := json.Marshal(a); err == nil {
			lines = append(append(line, '\n'), lines...)
		}
	}
	return lines
}

// attempts reads one file. It skips incomplete lines, which a full disk can leave.
func attempts(path string) (all []Attempted, err error) {
	data, err := durable.ReadFile(path)
	for line := range strings.Lines(string(data)) {
		var a Attempted
		if json.Unmarshal([]byte(line), &a) == nil {
			all = append(all, a)
		}
	}
	return all, err
}

// History reads what is kept of all users, oldest first. The lines of a file are in their order: a time after that of
// a later line, or in the future, is by a clock that was ahead, and counts as that one; a time before there was a ledger
// is by a clock that was behind, and counts as that of the line before.
func (b Book) History() ([]Attempted, error) {
	if b.Dir == "" {
		return nil, nil
	}
	var all []Attempted
	older := map[Attempted]bool{} // a newer file begins with copies of these
	for _, pattern := range []string{"*.jsonl.old", "*.jsonl"} {
		files, err := filepath.Glob(filepath.Join(b.history(), pattern))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			read, err := attempts(file)
			if err != nil && !errors.Is(err, fs.ErrNotExist) { // it was just renamed
				return nil, fmt.Errorf("reading the history of the ledger: %w", err)
			}
			isOld := strings.HasSuffix(file, ".old")
			read = slices.DeleteFunc(read, func(a Attempted) bool {
				copied := older[a]
				older[a] = copied || isOld
				return copied && !isOld
			})
			inOrder(read)
			all = append(all, read...)
		}
	}
	slices.SortStableFunc(all, func(a, b Attempted) int { return strings.Compare(a.At, b.At) })
	return all, nil
}

// noEarlier is before the first ledger.
const noEarlier = "2026-01-01"

// inOrder corrects the times of lines that are in their order.
func inOrder(lines []Attempted) {
	for i := range lines[min(1, len(lines)):] {
		if at := &lines[i+1].At; *at != "" && *at < noEarlier {
			*at = lines[i].At
		}
	}
	latest := Stamp(time.Now())
	for i := range slices.Backward(lines) {
		if at := &lines[i].At; *at != "" {
			*at = min(*at, latest)
			latest = *at
		}
	}
}
