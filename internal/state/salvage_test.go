package state

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSalvage checks that lineage and key are found in files that cannot be decoded, as long as the files contain
// them.
func TestSalvage(t *testing.T) {
	for name, test := range map[string]struct {
		damage func(string) string
		backup bool
		want   int // how many lineages and keys
	}{
		"whole":                 {func(s string) string { return s }, false, 1},
		"cut in half":           {func(s string) string { return s[:len(s)/2] }, false, 1},
		"one bit turned":        {func(s string) string { return strings.Replace(s, "lab", "lac", 1) }, false, 1},
		"empty":                 {func(string) string { return "" }, false, 0},
		"empty, with a backup":  {func(string) string { return "" }, true, 1},
		"whole, with a backup":  {func(s string) string { return s }, true, 1},
		"lineage cut, backup":   {func(s string) string { return s[:strings.Index(s, `"lineage"`)+20] }, true, 1},
		"lineage cut":           {func(s string) string { return s[:strings.Index(s, `"lineage"`)+20] }, false, 0},
		"another key, a backup": {func(s string) string { return strings.Replace(s, `"key": "`, `"key": "0`, 1) }, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := Store{Path: filepath.Join(t.TempDir(), FileName)}
			saved := save(t, s, some())
			if test.backup {
				saved = save(t, s, saved)
			}
			write(t, s.Path, []byte(test.damage(read(t, s.Path))))
			found := s.Salvage()
			if len(found.Lineages) != test.want || len(found.Keys) != test.want {
				t.Fatalf("%d lineages and %d keys, want %d", len(found.Lineages), len(found.Keys), test.want)
			}
			if test.want == 1 && (found.Lineages[0] != saved.Lineage || found.Keys[0] != saved.Key || found.Serial == 0) {
				t.Errorf("%+v is not of %s", found, saved.Lineage)
			}
		})
	}
}

// TestSetAside checks that a renamed file keeps its content, and never replaces a file that was renamed before.
func TestSetAside(t *testing.T) {
	s := Store{Path: filepath.Join(t.TempDir(), FileName)}
	if moved, err := s.SetAside("reset"); err != nil || len(moved) != 0 {
		t.Fatal(moved, err)
	}
	save(t, s, save(t, s, some()))
	first := read(t, s.Path)
	moved, err := s.SetAside("reset")
	if d := cmp.Diff([]string{s.Path + ".reset-1", s.BackupPath() + ".reset-1"}, moved); err != nil || d != "" {
		t.Fatal(err, d)
	}
	write(t, s.JournalPath(), []byte("x"))
	moved, err = s.SetAside("reset")
	// The files of one reset have one number.
	if d := cmp.Diff([]string{s.JournalPath() + ".reset-2"}, moved); err != nil || d != "" {
		t.Error(err, d)
	}
	if read(t, s.Path+".reset-1") != first {
		t.Error("what was set aside was changed")
	}
	if prior, err := s.Load(); err != nil || prior.Lineage != "" {
		t.Error("the state is still there")
	}
}
