package state

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cosplay/internal/resource"
)

func TestSaveAndLoad(t *testing.T) {
	s := Store{Path: filepath.Join(t.TempDir(), "deep", FileName), Version: "1.2.3"}
	if p, err := s.Load(); err != nil || p.Serial != 0 || p.Lineage != "" {
		t.Fatalf("no file is an empty state, got %+v, %v", p, err)
	}
	on := true
	want := resource.Prior{
		BootIDs:  map[string]string{"lab": "boot-1"},
		GPUs:     []resource.PriorGPU{{Host: "lab", UUID: "GPU-0", Baseline: resource.Settings{MIG: new(bool)}, Applied: resource.Settings{MIG: &on}}},
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
	old, err := Store{Path: s.Path + ".backup"}.Load()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(saved, old); d != "" {
		t.Errorf("the backup is not the state before: %s", d)
	}
}

// TestDamage: each kind of damage is told apart, and the file left as it is.
func TestDamage(t *testing.T) {
	s := Store{Path: filepath.Join(t.TempDir(), FileName)}
	if _, err := s.Save(resource.Prior{}); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(s.Path)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ content, want string }{
		"empty":         {"", "it is empty"},
		"blank":         {" \n", "it is empty"},
		"cut off":       {string(good[:len(good)/2]), "cut off"},
		"not ours":      {`{"version": 4, "terraform_version": "1.9"}`, "not a state of cosplay"},
		"newer":         {strings.Replace(string(good), `"format_version": 1`, `"format_version": 99`, 1), "newer cosplay"},
		"newer and odd": {`{"format_version": 99, "serial": "a"}`, "newer cosplay"},
		"wrong type":    {strings.Replace(string(good), `"serial": 1`, `"serial": "one"`, 1), "serial"},
		"no lineage":    {`{"format_version": 1}`, "no lineage"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(s.Path, []byte(test.content), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := s.Load()
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), s.Path) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if now, _ := os.ReadFile(s.Path); string(now) != test.content {
				t.Error("the file was touched")
			}
		})
	}
}
