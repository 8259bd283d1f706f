package state

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cosplay/internal/resource"
)

func TestSaveAndLoad(t *testing.T) {
	s := Store{Path: filepath.Join(t.TempDir(), "deep", FileName), Version: "1.2.3"}
	if p, err := s.Load(); err != nil || p.Serial != 0 || p.Lineage != "" {
		t.Fatalf("no file is an empty state, got %+v, %v", p, err)
	}
	want := resource.Prior{
		BootIDs:  map[string]string{"lab": "boot-1"},
		GPUs:     []resource.PriorGPU{{Host: "lab", UUID: "GPU-0", Baseline: resource.Settings{}.With(resource.MIGMode, resource.Off), Applied: resource.Settings{}.With(resource.MIGMode, resource.On)}},
		Sessions: []resource.PriorSession{{Session: resource.Session{Address: resource.Nth("worker", 3), ID: "worker-3"}, Handle: &resource.Handle{GPUInstance: 7, UUID: "MIG-1"}}},
	}
	saved, err := s.Save(want)
	if err != nil {
		t.Fatal(err)
	}
	if saved.Serial != 1 || saved.Lineage == "" {
		t.Errorf("saved as serial %d, lineage %q", saved.Serial, saved.Lineage)
	}
	back, err := s.Load()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(saved, back); d != "" {
		t.Error(d)
	}
	info, err := os.Stat(s.Path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}

	stamp := s.Stamp()
	if s.Stamp() != stamp || stamp == "" {
		t.Errorf("the stamp of the same file: %q, then %q", stamp, s.Stamp())
	}

	// The next save keeps lineage, raises the serial, and leaves the old one.
	again, err := s.Save(back)
	if err != nil || again.Serial != 2 || again.Lineage != saved.Lineage {
		t.Errorf("saved again as %+v, %v", again, err)
	}
	if s.Stamp() == stamp {
		t.Error("a new state has the old one's stamp")
	}
	old, err := Store{Path: s.BackupPath()}.Load()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(saved, old); d != "" {
		t.Errorf("the backup is not the state before: %s", d)
	}
}

// TestSaveOverItsOwnOnly: a state that was damaged or put there since is never
// written over.
func TestSaveOverItsOwnOnly(t *testing.T) {
	for name, test := range map[string]struct {
		meanwhile func(t *testing.T, s Store, mine resource.Prior)
		fault     Fault
	}{
		"another lineage": {func(t *testing.T, s Store, _ resource.Prior) {
			save(t, Store{Path: s.Path + ".other"}, resource.Prior{})
			rename(t, s.Path+".other", s.Path)
		}, Foreign},
		"another serial": {func(t *testing.T, s Store, mine resource.Prior) { save(t, s, mine) }, Moved},
		"damage": {func(t *testing.T, s Store, _ resource.Prior) {
			write(t, s.Path, nil)
		}, Empty},
	} {
		t.Run(name, func(t *testing.T) {
			s := Store{Path: filepath.Join(t.TempDir(), FileName)}
			mine := save(t, s, resource.Prior{})
			test.meanwhile(t, s, mine)
			before := read(t, s.Path)
			_, err := s.Save(mine)
			wantFault(t, err, test.fault)
			if after := read(t, s.Path); after != before {
				t.Error("the file was written over")
			}
		})
	}

	// A first run finds a state where there was none; a state that was removed
	// meanwhile is written again.
	s := Store{Path: filepath.Join(t.TempDir(), FileName)}
	mine := save(t, s, resource.Prior{})
	_, err := s.Save(resource.Prior{})
	wantFault(t, err, Foreign)
	if err := os.Remove(s.Path); err != nil {
		t.Fatal(err)
	}
	if again := save(t, s, mine); again.Serial != 2 {
		t.Errorf("serial %d", again.Serial)
	}
}
