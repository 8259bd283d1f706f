package docker

import (
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/mount"

	"cosplay/internal/cdi"
	"cosplay/internal/initd"
	"cosplay/internal/inside"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
)

// TestInside checks a session from the inside, by exec and by ssh.
func TestInside(t *testing.T) {
	w := newWorld(t)
	w.s.Spec.Volumes = []resource.Volume{{Source: t.TempDir(), Target: "/data", ReadOnly: true}}
	made := w.prepare(t)
	ways := map[string]func(...string) string{
		"exec": func(argv ...string) string { out, _, _ := w.exec(t, nil, argv...); return strings.TrimSpace(out) },
		"ssh":  func(argv ...string) string { return w.ssh(t, made.SSHPort, argv...) },
	}
	for name, run := range ways {
		if got := run("id"); !strings.Contains(got, "uid=1234(jane) gid=1235(people)") {
			t.Errorf("%s: %s", name, got)
		}
		env := strings.Split(run("env"), "\n")
		for _, want := range []string{"SEED=14", "FROM_IMAGE=yes", "GPU_COSPLAY_CARD=rtx-2060", "PIP_BREAK_SYSTEM_PACKAGES=1", "HOST_USER=jane", "HOST_UID=1234", "HOST_GID=1235",
			"NVIDIA_DRIVER_CAPABILITIES=compute,utility", "NVIDIA_VISIBLE_DEVICES=" + w.given.UUID, "CUDA_VISIBLE_DEVICES=0", "HOME=/home/jane",
			"NVIDIA_TF32_OVERRIDE=0", "PYTHONPATH=" + initd.Dir + "/python:/of/the/image"} {
			if !slices.Contains(env, want) {
				t.Errorf("%s: no %s in %q", name, want, env)
			}
		}
		run("touch", "/workspace/by-"+name)
		if info, err := os.Stat(filepath.Join(w.s.Workspace, "by-"+name)); err != nil || !strings.Contains(run("ls", "-ln", "/workspace/by-"+name), "1234") {
			t.Errorf("%s: a file of the workspace: %v, %v", name, info, err)
		}
	}
	in := ways["exec"]
	for _, folder := range cdi.LoaderFolders() {
		if got := in("ls", folder); got != "libcuda.so\nlibcuda.so.1\nlibnvidia-ml.so\nlibnvidia-ml.so.1" {
			t.Errorf("in %s is %q", folder, got)
		}
	}
	for _, path := range []string{initd.Dir + "/new", initd.Dir + "/figures", initd.Dir + "/python/sitecustomize.py", "/usr/lib64/libnvidia-ml.so.1", "/usr/lib64/libcuda.so.1", w.SimDir + "/libcuda.so.1", "/data/new"} {
		if _, _, code := w.exec(t, nil, "sh", "-c", "echo x >>"+path); code == 0 {
			t.Errorf("%s can be written to", path)
		}
	}
	for _, secret := range []string{initd.ConfigPath, initd.HostKeyPath} {
		if _, _, code := w.exec(t, nil, "cat", secret); code == 0 && os.Geteuid() != 1234 { // his own files
			t.Errorf("the user can read %s", secret)
		}
	}
	if got := in("sh", "-c", "ls "+w.SimDir+"; stat -c %s "+initd.Dir+"/"+driverFile); !strings.Contains(got, "host") || strings.HasSuffix(got, "\n0") {
		t.Errorf("the simulated driver: %s", got)
	}
}

// TestOwnFolder: a session in whose workspace the project is finds an empty
// folder in the place of the project's own, and cannot write there.
func TestOwnFolder(t *testing.T) {
	w := newWorld(t)
	project := w.s.Workspace
	check(t, inside.MakeWorkspace(project, w.s.Spec.User))
	check(t, os.Mkdir(filepath.Join(project, ".cosplay"), 0o755)) // what hides it has its mode
	w.Folders = filepath.Join(project, ".cosplay", "sessions")
	w.s.Spec.SSH.Enabled = false
	w.s.Spec.Volumes = []resource.Volume{{Source: project, Target: "/src", ReadOnly: true}}
	w.prepare(t)
	for _, folder := range []string{"/workspace/.cosplay", "/src/.cosplay"} {
		out, failed, code := w.exec(t, nil, "sh", "-c", "ls -a "+folder+"; touch /workspace/file; touch "+folder+"/file")
		if out != ".\n..\n" || !strings.Contains(failed, "Read-only file system") || code == 0 {
			t.Errorf("inside %s: %q, %q, %d", folder, out, failed, code)
		}
	}
	// Some engines copy into a tmpfs what it covers.
	for _, m := range w.mounts(w.s, false) {
		if m.Type == mount.TypeTmpfs {
			t.Errorf("%s is a tmpfs", m.Target)
		}
	}
	if _, err := os.Stat(filepath.Join(project, "file")); err != nil {
		t.Error(err)
	}
}

// TestWithoutSSH: a session without ssh has no port and comes up all the same.
func TestWithoutSSH(t *testing.T) {
	w := newWorld(t)
	w.s.Spec.SSH.Enabled = false
	w.s.Command = []string{"sh", "-c", "echo out; echo err >&2; exec sleep 1000"}
	if c := w.prepare(t); c.SSHPort != 0 || c.State != resource.Running {
		t.Errorf("made %+v", c)
	}
	var out, failed strings.Builder
	check(t, w.Logs(context.Background(), w.s.ID, runtime.LogOptions{}, &out, &failed))
	if out.String() != "out\n" || !strings.Contains(failed.String(), "err\n") || !strings.Contains(failed.String(), "cosplay-init: ") {
		t.Errorf("the log: %q, %q", out.String(), failed.String())
	}
	var last, none strings.Builder
	check(t, w.Logs(context.Background(), w.s.ID, runtime.LogOptions{Tail: "1", Timestamps: true}, &last, &none))
	if all := last.String() + none.String(); strings.Count(all, "\n") != 1 || !strings.HasPrefix(all, "20") {
		t.Errorf("the last line: %q", all)
	}
}

// TestOlderContainer: one that an older cosplay made has no disguise of CUDA. It
// is kept, started again, and goes on without.
func TestOlderContainer(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	g, err := w.grant(ctx, w.access(), w.s, w.given, false)
	check(t, err)
	check(t, w.Furnish(w.s, w.given, g.Grant, nil))
	check(t, inside.MakeWorkspace(w.s.Workspace, w.s.Spec.User))
	port, err := freePort("127.0.0.1", 0)
	check(t, err)
	id, err := w.create(ctx, w.s, w.given.UUID, g, port)
	check(t, err)
	if made := w.prepare(t); made.ID != id {
		t.Errorf("it was replaced: %s, was %s", made.ID, id)
	}
	if out, _, _ := w.exec(t, nil, "sh", "-c", "ls /usr/lib64 /run/cosplay /run/cosplay/lib"); strings.Contains(out, "libcuda") || strings.Contains(out, inside.UsageFile) {
		t.Errorf("it has %s", out)
	}
	if _, err := w.Usage(w.s.ID); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what it uses: %v", err)
	}
}

// TestUsed: the peak memory use of a session is returned when it ends, and none if it has ended already.
func TestUsed(t *testing.T) {
	w := newWorld(t)
	w.s.Spec.SSH.Enabled = false
	w.prepare(t)
	file, err := os.OpenFile(filepath.Join(w.Inside(w.s.ID), inside.UsageFile), os.O_WRONLY, 0)
	check(t, err)
	_, err = file.WriteAt(binary.NativeEndian.AppendUint64(binary.NativeEndian.AppendUint64(nil, 5812<<20), 3), 40) // peak, refused: driver/facade/usage.h
	check(t, errors.Join(err, file.Close()))
	for _, want := range []resource.Use{{PeakMiB: 5812, OutOfMemory: 3}, {}} {
		if used, err := w.Unprepare(context.Background(), w.s.ID); err != nil || !reflect.DeepEqual(used, want) {
			t.Errorf("it used %+v, %v, want %+v", used, err, want)
		}
	}
}
