package disguise

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cosplay/driver"
)

func TestSystemLibrary(t *testing.T) {
	empty, full := t.TempDir(), t.TempDir()
	want := filepath.Join(full, driver.NVML)
	if err := os.WriteFile(want, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(empty, driver.NVML), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("LD_LIBRARY_PATH", "relative:"+empty+":"+full)
	if got, err := SystemLibrary(); err != nil || got != want {
		t.Errorf("it is %q, %v; want %q", got, err, want)
	}
	if got, err := libraryIn([]string{empty}); err == nil || !strings.Contains(err.Error(), "name the library") {
		t.Errorf("in an empty folder it is %q, %v", got, err)
	}
}
