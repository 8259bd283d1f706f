package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFolder: files of any length are read whole, one after the other into the
// same buffer, and what cannot be read is named by its whole path.
func TestFolder(t *testing.T) {
	dir := t.TempDir()
	contents := map[string]string{"long": strings.Repeat("0123456789", 1000), "page": strings.Repeat("p", 4<<10), "empty": "", "short": "s"}
	for name, content := range contents {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	folder, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	var buffer []byte
	for _, name := range []string{"short", "long", "page", "empty", "short"} {
		buffer, err = folder.Read(name, buffer)
		if err != nil || string(buffer) != contents[name] {
			t.Errorf("%s is read as %d bytes: %.20q, %v", name, len(buffer), buffer, err)
		}
	}
	for name, want := range map[string]error{"nosuch": fs.ErrNotExist, "../" + filepath.Base(dir): nil} {
		_, err := folder.Read(name, buffer)
		if err == nil || want != nil && !errors.Is(err, want) || !strings.Contains(err.Error(), filepath.Join(dir, name)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := OpenFolder(filepath.Join(dir, "short")); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file is opened as a folder: %v", err)
	}
}
