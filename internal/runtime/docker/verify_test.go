package docker

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/google/go-cmp/cmp"

	"cosplay/driver"
	"cosplay/internal/cdi"
	"cosplay/internal/disguise"
	"cosplay/internal/disguise/verify"
	"cosplay/internal/inside"
	"cosplay/internal/resource"
)

// TestDamaged: what is damaged of a session's files is seen by a glance, named by the check that it belongs to, and
// written again with a new container; a file that many sessions share is not given out damaged again.
func TestDamaged(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	made := w.prepare(t)
	session := resource.PriorSession{Session: w.s, Handle: &w.given, Body: &made}
	for file, check_ := range map[string]string{
		facadeFile: verify.FacadesCheck, cudaFacadeFile: verify.FacadesCheck, "figures": verify.FiguresCheck, "init.json": verify.FiguresCheck, inside.UsageFile: verify.UsageCheck,
	} {
		path := filepath.Join(w.Inside(w.s.ID), file)
		check(t, os.Chmod(path, 0o600))
		appended, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		check(t, err)
		_, err = appended.WriteString("x")
		check(t, err)
		check(t, appended.Close())
		all, err := w.List(ctx)
		if err != nil || len(all) != 1 || all[0].Damaged != "inside/"+file+" was changed" {
			t.Errorf("with %s damaged it lists %+v, %v", file, all, err)
		}
		altered, err := w.Altered(ctx, session)
		if err != nil || len(altered) != 1 || altered[check_] != "inside/"+file+" was changed" {
			t.Errorf("with %s damaged, altered is %v, %v", file, altered, err)
		}
		again := w.prepare(t)
		if again.ID == made.ID {
			t.Errorf("with %s damaged the container stays", file)
		}
		made = again
		if altered, err := w.Altered(ctx, session); err != nil || len(altered) != 0 {
			t.Errorf("recreated, altered is %v, %v", altered, err)
		}
		want, err := disguise.Facade(driver.CUDA, inside.InContainer("driver/"+driver.CUDA), inside.InContainer("figures"))
		check(t, err)
		if got, err := os.ReadFile(filepath.Join(w.Inside(w.s.ID), cudaFacadeFile)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("the CUDA facade is damaged still, %v", err)
		}
	}
}

// TestUpdatedDriver: a container keeps the driver that it was started with, also
// when it is woken; once it was stopped, it has the one of now.
func TestUpdatedDriver(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	folder := t.TempDir()
	install := func(version, end string) {
		t.Helper()
		for _, soname := range []string{driver.NVML, driver.CUDA} {
			library, err := os.ReadFile(filepath.Join(w.SimDir, soname))
			check(t, err)
			file := strings.TrimSuffix(soname, "1") + version
			check(t, os.WriteFile(filepath.Join(folder, file), append(library, end...), 0o755))
			check(t, os.RemoveAll(filepath.Join(folder, soname)))
			check(t, os.Symlink(file, filepath.Join(folder, soname)))
		}
	}
	has := func(end string) {
		t.Helper()
		for _, soname := range []string{driver.NVML, driver.CUDA} {
			if out, failed, _ := w.exec(t, nil, "sh", "-c", "tail -c 4 /run/cosplay/driver/"+soname); out != end {
				t.Errorf("%s ends with %q, want %q; %s", soname, out, end, failed)
			}
		}
	}
	outdated := func(want ...resource.Outdated) {
		t.Helper()
		if all := w.list(t); len(all) != 1 || all[0].Damaged != "" || !cmp.Equal(all[0].Outdated, want) {
			t.Errorf("it lists %+v, want %+v", all, want)
		}
	}
	install("550.1", "then")
	w.Library = filepath.Join(folder, driver.NVML)
	made := w.prepare(t)
	has("then")
	outdated()

	install("560.2", " now")
	for _, file := range []string{"libcuda.so.550.1", "libnvidia-ml.so.550.1"} {
		check(t, os.Remove(filepath.Join(folder, file)))
	}
	updated := resource.Outdated{Part: resource.Driver, From: "550.1", To: "560.2"}
	outdated(updated)
	check(t, w.Engine.client.ContainerPause(ctx, made.ID))
	if again := w.prepare(t); again.ID != made.ID {
		t.Errorf("woken it is another container: %+v, was %+v", again, made)
	}
	has("then")
	outdated(updated)

	check(t, w.Engine.client.ContainerStop(ctx, made.ID, container.StopOptions{}))
	if again := w.prepare(t); again.ID != made.ID {
		t.Errorf("started again it is another container: %+v, was %+v", again, made)
	}
	has(" now")
	outdated()
}

func TestMisplaced(t *testing.T) {
	wanted := []mount.Mount{bind(cdi.File{Host: "/a", Container: "/run/cosplay"}), bind(cdi.File{Host: "/w", Container: "/workspace", Writable: true}), {Type: mount.TypeTmpfs, Target: "/tmp"}}
	good := []container.MountPoint{{Destination: "/run/cosplay", Source: "/a"}, {Destination: "/workspace", Source: "/w", RW: true}}
	if wrong := misplaced(good, wanted); len(wrong) != 0 {
		t.Errorf("good mounts are %v", wrong)
	}
	covered := []mount.Mount{bind(cdi.File{Host: "/s/one/empty", Container: "/workspace/.cosplay"})}
	if wrong := misplaced([]container.MountPoint{{Type: mount.TypeTmpfs, Destination: "/workspace/.cosplay"}}, covered); len(wrong) != 0 {
		t.Errorf("a container of an older cosplay: %v", wrong)
	}
	if wrong := misplaced(nil, covered); len(wrong) != 1 {
		t.Errorf("the project's own folder is open, and it says %v", wrong)
	}
	for words, mounts := range map[string][]container.MountPoint{
		"/workspace is not mounted":                              good[:1],
		"/run/cosplay can be written to":                         {{Destination: "/run/cosplay", Source: "/a", RW: true}, good[1]},
		"/workspace cannot be written to":                        {good[0], {Destination: "/workspace", Source: "/w"}},
		"/run/cosplay comes from /b":                             {{Destination: "/run/cosplay", Source: "/b"}, good[1]},
		"/run/cosplay is not mounted; /workspace is not mounted": nil,
	} {
		if got := strings.Join(misplaced(mounts, wanted), "; "); got != words {
			t.Errorf("it says %q, want %q", got, words)
		}
	}
}
