package disguise

import (
	"os"
	"path/filepath"
	"slices"
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

// TestLoaderFolders: a driver in a folder that only the configuration of the loader names is found, as by the loader.
func TestLoaderFolders(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"ld.so.conf":      "include conf.d/*.conf\n/opt/first # a comment\n# /opt/none\nhwcap 1 nosegneg\n",
		"conf.d/a.conf":   "/opt/driver/lib64\n",
		"conf.d/b.conf":   "\t/opt/other\nrelative\ninclude /nowhere/*.conf\n",
		"conf.d/d.conf":   "include d.conf\n", // itself
		"conf.d/c.ignore": "/opt/ignored\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, want := configured(filepath.Join(dir, "ld.so.conf"), 1), []string{"/opt/driver/lib64", "/opt/other", "/opt/first"}
	if !slices.Equal(got, want) {
		t.Errorf("the folders are %q, want %q", got, want)
	}
	if got := configured(filepath.Join(dir, "missing"), 1); got != nil {
		t.Errorf("without a configuration the folders are %q", got)
	}
}
