package project_test

import (
	"os"
	"path/filepath"
	"testing"

	"cosplay/internal/project"
)

// TestRemoveRun: the folder of a run is removed while another run creates its lock there.
func TestRemoveRun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run-1")
	for range 2000 {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		created, looking := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(created)
			close(looking)
			_ = os.WriteFile(filepath.Join(dir, "a.lock"), nil, 0o600)
			_ = os.WriteFile(filepath.Join(dir, "b.lock"), nil, 0o600)
		}()
		<-looking
		if err := project.RemoveRun(dir); err != nil {
			t.Fatal(err)
		}
		<-created
		if _, err := os.Lstat(dir); err == nil {
			t.Fatal("the folder still exists")
		}
	}
}
