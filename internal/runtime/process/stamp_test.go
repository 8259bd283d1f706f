package process

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cosplay/internal/disguise"
	"cosplay/internal/resource"
	"cosplay/internal/shared"
)

// TestStampsHideNothing checks that List with the stamps of the state reports what it reports without them, whatever
// changed in a folder. Of a session that it does not inspect, it returns the state's body.
func TestStampsHideNothing(t *testing.T) {
	const asRecorded = "as recorded"
	for name, c := range map[string]struct {
		change   func(t *testing.T, base, dir string)
		recorded []string // sessions that List does not inspect
	}{
		"nothing":                {func(*testing.T, string, string) {}, []string{"worker-3", "worker-4"}},
		"a program counts":       {overwrite(disguise.UsageFile, 64), []string{"worker-3", "worker-4"}},
		"figures":                {overwrite(disguise.FiguresFile, 100), []string{"worker-4"}},
		"session.json":           {overwrite(figuresFile, 300), []string{"worker-4"}},
		"facade":                 {replace("lib/libcuda.so.1"), []string{"worker-4"}},
		"shared facade":          {overwrite("lib/libnvidia-ml.so.1", 5000), nil},
		"short name":             {relink("lib/libnvidia-ml.so"), []string{"worker-4"}},
		"link to the driver":     {relink("real"), []string{"worker-4"}},
		"link to the python":     {relink("python"), []string{"worker-4"}},
		"python removed":         {remove("python"), []string{"worker-4"}},
		"shared python":          {overwrite("python/sitecustomize.py", 0), nil},
		"shared python, a file":  {remove("python/sitecustomize.py"), nil},
		"shared python, removed": {func(t *testing.T, base, dir string) { removeAll(t, follow(t, base, dir, "python")) }, nil},
		"shared real, removed":   {func(t *testing.T, base, dir string) { removeAll(t, follow(t, base, dir, "real")) }, nil},
		"shared real, another":   {relink("real/libcuda.so.1"), nil},
		"shared folder, removed": {func(t *testing.T, base, _ string) { removeAll(t, filepath.Join(base, shared.Dir)) }, nil},
		"driver":                 {overwrite("real/libcuda.so.1", -1), nil},
		"driver removed":         {func(t *testing.T, base, _ string) { removeAll(t, filepath.Join(base, "../libcuda.so.1")) }, nil},
		"usage closed":           {func(t *testing.T, _, dir string) { ok(t, os.Chmod(filepath.Join(dir, disguise.UsageFile), 0o600)) }, []string{"worker-4"}},
		"usage truncated":        {func(t *testing.T, _, dir string) { ok(t, os.Truncate(filepath.Join(dir, disguise.UsageFile), 9)) }, []string{"worker-4"}},
		"usage damaged":          {overwrite(disguise.UsageFile, 0), []string{"worker-4"}},
		"usage removed":          {remove(disguise.UsageFile), []string{"worker-4"}},
		"session.json removed":   {remove(figuresFile), []string{"worker-4"}},
		"manifest removed":       {remove("seal"), []string{"worker-4"}},
		"all removed":            {func(t *testing.T, _, dir string) { removeAll(t, dir) }, []string{"worker-4"}},
		"a copy": {func(t *testing.T, _, dir string) {
			ok(t, exec.Command("cp", "-a", dir, dir+"-copy").Run())
			removeAll(t, dir)
			ok(t, os.Rename(dir+"-copy", dir))
		}, []string{"worker-4"}},
	} {
		t.Run(name, func(t *testing.T) {
			r, s := worker(t)
			s.Target.Architecture, s.Target.TensorTypes = "turing", []string{"fp16"} // it has a Python part
			stamped := map[string]*resource.Body{}
			for _, id := range []string{"worker-3", "worker-4"} {
				s.ID = id
				made := prepareStamped(t, r, s)
				made.Image = asRecorded
				stamped[id] = &made
			}
			dir := filepath.Join(r.Folders, "worker-3")
			awaitTick(t, dir)
			c.change(t, r.Folders, dir)

			want, err := r.List(context.Background())
			ok(t, err)
			r.Owner.Stamped = stamped
			got, err := r.List(context.Background())
			ok(t, err)
			var recorded []string
			for i := range got {
				if got[i].Image == asRecorded {
					recorded = append(recorded, got[i].Session)
				}
				got[i].Image = ""
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(c.recorded, recorded); d != "" {
				t.Errorf("not inspected: %s", d)
			}
		})
	}
}

// TestCopiedFacades covers a file system without hard links: a change of one session's facade shows in no other one.
func TestCopiedFacades(t *testing.T) {
	r, s := worker(t)
	r.Owner.Stamped = map[string]*resource.Body{}
	for _, id := range []string{"worker-3", "worker-4", "worker-5"} {
		s.ID = id
		made := prepare(t, r, s)
		facade := filepath.Join(made.ID, disguise.LibraryDir, "libcuda.so.1")
		copied, err := os.ReadFile(facade)
		ok(t, err)
		removeAll(t, facade)
		ok(t, os.WriteFile(facade, copied, 0o755))
		ok(t, r.writeManifest(made.ID, true))
		r.stamp(&made)
		r.Owner.Stamped[id] = &made
	}
	dir := filepath.Join(r.Folders, "worker-4")
	awaitTick(t, dir)
	for changed := range 2 {
		for _, one := range list(t, r) {
			if damaged := one.Damaged != ""; damaged != (changed == 1 && one.Session == "worker-4") {
				t.Errorf("%d changed: %s has %q", changed, one.Session, one.Damaged)
			}
		}
		overwrite("lib/libcuda.so.1", 5000)(t, r.Folders, dir)
	}
}

// TestStampsOfMovedProject: in a project that was moved, a session has the folder that it has now.
func TestStampsOfMovedProject(t *testing.T) {
	r, s := worker(t)
	made := prepareStamped(t, r, s)
	made.Image = "as recorded"
	moved := r.Folders + "-moved"
	ok(t, os.Rename(r.Folders, moved))
	r.Folders, r.Owner.Stamped = moved, map[string]*resource.Body{s.ID: &made}
	all := list(t, r)
	if len(all) != 1 || all[0].Image != made.Image || all[0].ID != filepath.Join(moved, s.ID) || all[0].Stamp != "" {
		t.Errorf("listed %+v", all)
	}
}

// TestRemainsAreStamped: a state that is rebuilt from intact folders has the stamps again.
func TestRemainsAreStamped(t *testing.T) {
	r, s := worker(t)
	made := prepareStamped(t, r, s)
	remains, err := r.Remains(context.Background())
	ok(t, err)
	if made.Stamp == "" || len(remains) != 1 || remains[0].Body.Stamp != made.Stamp {
		t.Errorf("%+v, made %+v", remains, made)
	}
	replace("lib/libcuda.so.1")(t, r.Folders, made.ID)
	remains, err = r.Remains(context.Background())
	ok(t, err)
	if remains[0].Body.Stamp != "" {
		t.Errorf("damaged: %+v", remains)
	}
}

// awaitTick waits until the file system would give a change another time than the last one.
func awaitTick(t *testing.T, dir string) {
	t.Helper()
	probe := filepath.Join(t.TempDir(), "tick")
	for last := changeTime(t, dir); ; {
		ok(t, os.WriteFile(probe, nil, 0o600))
		if changeTime(t, probe) > last {
			return
		}
		removeAll(t, probe)
	}
}

func changeTime(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Lstat(path)
	ok(t, err)
	return info.Sys().(*syscall.Stat_t).Ctim.Nano()
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func removeAll(t *testing.T, path string) {
	t.Helper()
	ok(t, os.RemoveAll(path))
}

// follow returns what a link in a session's folder leads to.
func follow(t *testing.T, base, dir, link string) string {
	t.Helper()
	to, err := os.Readlink(filepath.Join(dir, link))
	ok(t, err)
	return filepath.Join(base, shared.Dir, filepath.Base(to))
}

type change = func(t *testing.T, base, dir string)

// overwrite changes one byte of a file, or appends one with -1. A change in place leaves size and modification time.
func overwrite(file string, at int64) change {
	return func(t *testing.T, _, dir string) {
		path := filepath.Join(dir, file)
		before, err := os.Stat(path)
		ok(t, err)
		ok(t, os.Chmod(path, 0o777))
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		ok(t, err)
		if at < 0 {
			at = before.Size()
		}
		_, err = f.WriteAt([]byte{7}, at)
		ok(t, err)
		ok(t, f.Close())
		ok(t, os.Chmod(path, before.Mode()))
		if own := filepath.Dir(file) == "."; own {
			ok(t, os.Chtimes(path, before.ModTime(), before.ModTime()))
		}
	}
}

func replace(file string) change {
	return func(t *testing.T, _, dir string) {
		removeAll(t, filepath.Join(dir, file))
		ok(t, os.WriteFile(filepath.Join(dir, file), []byte("another"), 0o755))
	}
}

func relink(file string) change {
	return func(t *testing.T, _, dir string) {
		removeAll(t, filepath.Join(dir, file))
		ok(t, os.Symlink("/elsewhere", filepath.Join(dir, file)))
	}
}

func remove(file string) change {
	return func(t *testing.T, _, dir string) { ok(t, os.Remove(filepath.Join(dir, file))) }
}
