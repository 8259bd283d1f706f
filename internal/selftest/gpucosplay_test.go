package selftest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestGPUCosplay: doctor warns of the earlier tool while it is installed or has sessions.
func TestGPUCosplay(t *testing.T) {
	home, bin := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("PATH", bin)
	warns := func() string {
		var c checkup
		c.gpuCosplay()
		if len(c.found) == 0 {
			return ""
		}
		f := c.found[0]
		if f.Grade != Notice || f.Fix == "" || !strings.Contains(f.Found, "removes every container whose name begins with cosplay-") {
			t.Errorf("%+v", f)
		}
		return f.Found + " " + f.Fix
	}
	if w := warns(); w != "" {
		t.Error(w)
	}
	folder := filepath.Join(home, ".cache", "gpu-cosplay")
	write := func(path, text string, mode os.FileMode) {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(folder, "state.json"), "{}", 0o644)
	if w := warns(); w != "" {
		t.Errorf("without sessions: %s", w)
	}
	write(filepath.Join(bin, "gpu-cosplay"), "#!/bin/sh\n", 0o755)
	if w := warns(); !strings.Contains(w, "pip uninstall") {
		t.Errorf("installed: %q", w)
	}
	write(filepath.Join(folder, "state.json"), `{"a": `, 0o644)
	if w := warns(); !strings.Contains(w, "cannot be read") || !strings.Contains(w, "cosplay init --from-gpu-cosplay") {
		t.Errorf("a damaged state: %q", w)
	}
}
