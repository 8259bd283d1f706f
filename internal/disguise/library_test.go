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
	if got, err := nvmlIn([]string{empty}); err == nil || !strings.Contains(err.Error(), "name the library") {
		t.Errorf("in an empty folder it is %q, %v", got, err)
	}
}

// CUDALibrary searches in the folder of the NVML library, in the folder that its link leads to, and then where
// programs search.
func TestCUDALibrary(t *testing.T) {
	beside, elsewhere, searched := t.TempDir(), t.TempDir(), t.TempDir()
	nvml := filepath.Join(beside, driver.NVML)
	if err := os.Symlink(filepath.Join(elsewhere, driver.NVML), nvml); err != nil {
		t.Fatal(err)
	}
	t.Setenv("LD_LIBRARY_PATH", searched)
	for _, folder := range []string{searched, elsewhere, beside} { // the folders that take precedence come last
		for _, name := range []string{driver.NVML, driver.CUDA} {
			if err := os.WriteFile(filepath.Join(folder, name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got, want := CUDALibrary(nvml), filepath.Join(folder, driver.CUDA); got != want {
			t.Errorf("it is %q, want %q", got, want)
		}
	}
	if got := libraryIn([]string{t.TempDir()}, driver.CUDA); got != "" {
		t.Errorf("in an empty folder it is %q", got)
	}
}
