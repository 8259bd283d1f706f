package disguise_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cosplay/internal/disguise"
	"cosplay/internal/resource"
)

// TestOutdatedFacades checks that facades of another cosplay are reported whatever its version is, and that another
// version with equal facades is not.
func TestOutdatedFacades(t *testing.T) {
	for name, c := range map[string]struct {
		edit     func(manifest string) string
		version  string
		from, to string
	}{
		"the same":            {func(s string) string { return s }, "1.0", "", ""},
		"the same, renamed":   {func(s string) string { return s }, "2.0", "", ""},
		"others":              {otherFacades, "2.0", "cosplay 1.0", "cosplay 2.0"},
		"others of one name":  {otherFacades, "1.0", "cosplay 1.0 (00000000)", "cosplay 1.0 (DIGEST)"},
		"before it was noted": {func(s string) string { _, rest, _ := strings.Cut(s, "\n"); return rest }, "2.0", "an older cosplay", "cosplay 2.0"},
		"cut short":           {func(string) string { return "" }, "2.0", "an older cosplay", "cosplay 2.0"},
	} {
		dir, _ := listed(t)
		path := filepath.Join(dir, "seal")
		manifest, err := os.ReadFile(path)
		check(t, err)
		digest := strings.Fields(string(manifest))[1]
		check(t, os.WriteFile(path, []byte(c.edit(string(manifest))), 0o600))
		var want []resource.Outdated
		if c.from != "" {
			want = []resource.Outdated{{Part: resource.Facades, From: c.from, To: strings.Replace(c.to, "DIGEST", digest[:8], 1)}}
		}
		if got := glance(t, c.version, dir); got.Damaged != "" || !cmp.Equal(got.Outdated, want) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	for _, dir := range []string{t.TempDir(), filepath.Join(t.TempDir(), "nosuch")} { // without a manifest there is no damage
		if got := glance(t, "2.0", dir); got.Damaged != "" || len(got.Outdated) != 1 || got.Outdated[0].From != "an older cosplay" {
			t.Errorf("no manifest: %+v", got)
		}
	}
}

// otherFacades is a manifest by a cosplay with others.
func otherFacades(manifest string) string {
	digest := strings.Fields(manifest)[1]
	return strings.Replace(manifest, digest, strings.Repeat("0", len(digest)), 1)
}

// TestOutdatedDriver covers the ways of an update: it links the library's name to another file, removes the old file,
// or overwrites it.
func TestOutdatedDriver(t *testing.T) {
	for name, c := range map[string]struct {
		update   func(dir string)
		from, to string
	}{
		"nothing":         {func(string) {}, "", ""},
		"installed again": {func(dir string) { rewrite(t, dir+"/libcuda.so.535.104.05", "old") }, "", ""},
		"beside the old":  {func(dir string) { lead(t, dir, "550.163.01") }, "535.104.05", "550.163.01"},
		"instead of it":   {func(dir string) { lead(t, dir, "550.163.01"); os.Remove(dir + "/libcuda.so.535.104.05") }, "535.104.05", "550.163.01"},
		"to the same file": {func(dir string) {
			check(t, os.Rename(dir+"/libcuda.so.535.104.05", dir+"/moved"))
			relink(t, dir, "moved")
		}, "", ""},
		"written over": {func(dir string) { rewrite(t, dir+"/libcuda.so.535.104.05", "new") }, "535.104.05", "another"},
		"removed":      {func(dir string) { os.Remove(dir + "/libcuda.so.535.104.05") }, "535.104.05", "missing"},
	} {
		dir, folder := t.TempDir(), t.TempDir()
		rewrite(t, folder+"/libcuda.so.535.104.05", "old")
		relink(t, folder, "libcuda.so.535.104.05")
		check(t, disguise.WriteManifest(dir, "1.0", nil, nil, []string{folder + "/libcuda.so.1"}))
		c.update(folder)
		var want []resource.Outdated
		if c.from != "" {
			want = []resource.Outdated{{Part: resource.Driver, From: c.from, To: c.to}}
		}
		if got := glance(t, "1.0", dir); got.Damaged != "" || !cmp.Equal(got.Outdated, want) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
		if all, err := disguise.Examine(dir); err != nil || (len(all) > 0) != (c.from != "") {
			t.Errorf("%s: an examination reports %v, %v", name, all, err)
		}
	}
}

// lead installs a driver of another version.
func lead(t *testing.T, dir, version string) {
	t.Helper()
	rewrite(t, dir+"/libcuda.so."+version, "newer")
	relink(t, dir, "libcuda.so."+version)
}

func relink(t *testing.T, dir, to string) {
	t.Helper()
	_ = os.Remove(dir + "/libcuda.so.1")
	check(t, os.Symlink(to, dir+"/libcuda.so.1"))
}

// rewrite replaces a file's content and gives it a different time.
func rewrite(t *testing.T, path, content string) {
	t.Helper()
	when := time.Unix(1e9, 0)
	if _, err := os.Stat(path); err == nil {
		when = when.Add(time.Second)
	}
	check(t, os.WriteFile(path, []byte(content), 0o600))
	check(t, os.Chtimes(path, when, when))
}
