package disguise_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cosplay/internal/disguise"
)

// TestFolder: files of any length are read whole, one after the other into the
// same buffer, and what cannot be read is named by its whole path.
func TestFolder(t *testing.T) {
	dir := t.TempDir()
	contents := map[string]string{"long": strings.Repeat("0123456789", 1000), "page": strings.Repeat("p", 4<<10), "empty": "", "short": "s"}
	for name, content := range contents {
		check(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	folder, err := disguise.OpenFolder(dir)
	check(t, err)
	defer folder.Close()
	var buffer []byte
	for _, name := range []string{"short", "long", "page", "empty", "short"} {
		buffer, err = folder.Read(name, buffer)
		check(t, err)
		if string(buffer) != contents[name] {
			t.Errorf("%s is read as %d bytes: %.20q", name, len(buffer), buffer)
		}
	}
	for name, want := range map[string]error{"nosuch": fs.ErrNotExist, "../" + filepath.Base(dir): nil} {
		_, err := folder.Read(name, buffer)
		if err == nil || want != nil && !errors.Is(err, want) || !strings.Contains(err.Error(), filepath.Join(dir, name)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := disguise.OpenFolder(filepath.Join(dir, "short")); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file is opened as a folder: %v", err)
	}
	// A folder that does not exist yet has no seal and no damage.
	if got := glance(t, "1.0", filepath.Join(dir, "nosuch")); got.Damaged != "" || len(got.Outdated) == 0 {
		t.Errorf("a glance at nothing reports %+v", got)
	}
}
