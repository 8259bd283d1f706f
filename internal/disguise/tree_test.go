package disguise_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"cosplay/driver"
	"cosplay/internal/disguise"
	"cosplay/internal/resource"
	"cosplay/internal/shared"
)

// TestShared: what sessions have in common is on the disk once, a damaged file of it is seen in each of them, and the
// next installation repairs it for all.
func TestShared(t *testing.T) {
	m := newMachine(t, "h200")
	base := t.TempDir()
	s := session(t, "rtx-2060")
	s.Compute = "cpu"
	dirs := []string{filepath.Join(base, "a"), filepath.Join(base, "b")}
	write := func(dir string) {
		check(t, disguise.WriteManifest(dir, "1.0", []string{disguise.RealDir, disguise.PythonDir, "lib/" + driver.NVML}, nil, nil))
	}
	for _, dir := range dirs {
		check(t, os.Mkdir(dir, 0o755))
		check(t, disguise.Install(dir, s, resource.Handle{UUID: "MIG-1"}, m.library(), m.cuda()))
		write(dir)
	}
	for _, file := range []string{"lib/" + driver.NVML, "lib/" + driver.CUDA, "python/sitecustomize.py"} {
		one, err := os.Stat(filepath.Join(dirs[0], file))
		check(t, err)
		if other, err := os.Stat(filepath.Join(dirs[1], file)); err != nil || !os.SameFile(one, other) {
			t.Errorf("%s is on the disk twice: %v", file, err)
		}
	}
	if bytes := taken(t, dirs[0]); bytes > 20_000 {
		t.Errorf("a session has %d bytes that no other has", bytes)
	}
	for _, c := range []struct {
		damage func(path string) error
		file   string
		want   string
	}{
		{func(path string) error { return os.WriteFile(path, []byte("another"), 0o600) }, "python/cosplay_cuda/devices.py", "was changed"},
		{os.Remove, "python/session.json", "is missing"},
		{os.Remove, "real/" + driver.CUDA, "is missing"},
		{func(path string) error { return os.Remove(filepath.Join(filepath.Dir(path), "seal")) }, "python/seal", "is damaged"},
	} {
		check(t, c.damage(filepath.Join(dirs[0], c.file)))
		want := c.file + " " + c.want
		if filepath.Base(c.file) == "seal" {
			want = "python " + c.want
		}
		inspector := disguise.Inspector{Version: "1.0"}
		for _, dir := range dirs {
			if sight, err := inspector.Glance(dir); err != nil || sight.Damaged != want {
				t.Errorf("%s: a glance reports %q, %v; want %q", dir, sight.Damaged, err, want)
			}
			if all, err := disguise.Examine(dir); err != nil || len(all) != 1 || all[0].String() != want {
				t.Errorf("%s: an examination reports %v, %v; want %q", dir, all, err, want)
			}
		}
		check(t, disguise.Install(dirs[1], s, resource.Handle{UUID: "MIG-1"}, m.library(), m.cuda()))
		write(dirs[1])
		if all, err := disguise.Examine(dirs[0]); err != nil || len(all) > 0 {
			t.Errorf("after %s was repaired for one, the other has %v, %v", c.file, all, err)
		}
	}
	for i, dir := range dirs {
		check(t, os.RemoveAll(dir))
		shared.Remove(base)
		if _, err := os.Stat(filepath.Join(base, shared.Dir)); (err == nil) != (i == 0) {
			t.Errorf("after %d of 2 are removed, the shared folder: %v", i+1, err)
		}
	}
}

// taken are the bytes of the files in a folder that no other folder has, without what links lead to.
func taken(t *testing.T, dir string) (bytes int64) {
	t.Helper()
	check(t, filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			info, err := entry.Info()
			check(t, err)
			if !links(info) {
				bytes += info.Size()
			}
		}
		return err
	}))
	return bytes
}

// links reports whether a file has several names.
func links(info os.FileInfo) bool { return info.Sys().(*syscall.Stat_t).Nlink > 1 }
