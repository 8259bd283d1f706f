package process

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cosplay/internal/disguise"
	"cosplay/internal/disguise/verify"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
)

func worker(t *testing.T) (Runtime, resource.Session) {
	t.Helper()
	dir := t.TempDir()
	s := resource.Session{
		Address: resource.Nth("worker", 3), ID: "worker-3", Runtime: "process",
		Target: resource.Target{Key: "rtx-2060", Name: "NVIDIA GeForce RTX 2060", MemoryMiB: 6144, PowerW: 160},
		Slice:  resource.Slice{Host: "lab", GPU: "GPU-0", Profile: "1g.18gb", Start: 3, Size: 1},
		Program: resource.Program{Command: []string{"sh", "-c", "echo own"}, Workspace: filepath.Join(dir, "work", "deep"),
			Env: map[string]string{"SEED": "14", "GPU_COSPLAY_CARD": "mine"}},
	}
	library := filepath.Join(dir, "libnvidia-ml.so.1")
	for _, path := range []string{library, filepath.Join(dir, "libcuda.so.1")} {
		if err := os.WriteFile(path, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return open(runtime.Host{Folders: filepath.Join(dir, "sessions"), Library: library, Owner: resource.Owner{Key: "key"}, Version: "1.0"}), s
}

// prepare returns the body as List reports it.
func prepare(t *testing.T, r Runtime, s resource.Session) resource.Body {
	t.Helper()
	c := prepareStamped(t, r, s)
	c.Stamp = ""
	return c
}

func prepareStamped(t *testing.T, r Runtime, s resource.Session) resource.Body {
	t.Helper()
	c, err := r.Prepare(context.Background(), s, resource.Handle{UUID: "MIG-1"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// list lists sessions that use no memory.
func list(t *testing.T, r Runtime) []resource.Body {
	t.Helper()
	all, err := r.List(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		if use := all[i].Use; use != nil && !use.IsZero() {
			t.Errorf("%s uses %+v", all[i].Session, use)
		}
		all[i].Use = nil // Prepare does not read it
	}
	return all
}

func TestPrepareListUnprepare(t *testing.T) {
	r, s := worker(t)
	if all := list(t, r); all != nil {
		t.Errorf("before anything there is %+v", all)
	}
	made := prepare(t, r, s)
	if again := prepare(t, r, s); !cmp.Equal(again, made) {
		t.Errorf("preparing twice gives %+v, then %+v", made, again)
	}
	all := list(t, r)
	if len(all) != 1 || !cmp.Equal(all[0], made) || made.Hash != s.Hash("key") || made.SliceID != "MIG-1" || made.State != resource.Running {
		t.Errorf("listed %+v, made %+v", all, made)
	}
	keep := filepath.Join(s.Workspace, "result")
	if err := os.WriteFile(keep, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := r.Unprepare(context.Background(), s.ID); err != nil {
			t.Fatal(err)
		}
	}
	if all := list(t, r); len(all) != 0 {
		t.Errorf("left: %+v", all)
	}
	if _, err := os.Stat(keep); err != nil {
		t.Error("the workspace was removed, too")
	}
	if _, err := os.Stat(r.Folders); err == nil {
		t.Error("the empty folder of the sessions stays")
	}
}

func TestUnprepareKeepsToItsFolder(t *testing.T) {
	r, s := worker(t)
	prepare(t, r, s)
	for _, wrong := range []string{"", ".", "..", "../sessions/worker-3", "/", "a/b"} {
		if _, err := r.Unprepare(context.Background(), wrong); err == nil {
			t.Errorf("%q was taken for the id of a session", wrong)
		}
	}
	if len(list(t, r)) != 1 {
		t.Error("the session does not exist any more")
	}
}

// TestTampering: List reports a session.json that was edited, damaged or removed.
func TestTampering(t *testing.T) {
	r, s := worker(t)
	made := prepare(t, r, s)
	file := filepath.Join(made.ID, figuresFile)
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	rewrite := func(content string) {
		t.Helper()
		if err := os.Chmod(file, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range map[string]string{
		"edited":     strings.Replace(string(good), "6144", "12288", 1),
		"truncated":  string(good[:100]),
		"of another": strings.Replace(string(good), `"id": "worker-3"`, `"id": "worker-4"`, 1),
	} {
		rewrite(content)
		if all := list(t, r); len(all) != 1 || all[0].Session != s.ID || all[0].Hash == made.Hash {
			t.Errorf("%s: listed as %+v", name, all)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if all := list(t, r); len(all) != 1 || all[0].State != resource.Stopped {
		t.Errorf("half removed: listed as %+v", all)
	}
	prepare(t, r, s)
	if all := list(t, r); len(all) != 1 || !cmp.Equal(all[0], made) {
		t.Errorf("prepared again: %+v", all)
	}
}

func TestCommand(t *testing.T) {
	r, s := worker(t)
	if _, err := r.command(context.Background(), s.ID, runtime.Program{}); err == nil || !strings.Contains(err.Error(), "apply") {
		t.Errorf("without a folder: %v", err)
	}
	made := prepare(t, r, s)
	t.Setenv("LD_LIBRARY_PATH", "/theirs")
	t.Setenv("SEED", "99")
	t.Setenv("PYTHONPATH", "/mine")
	run := func(argv ...string) string {
		t.Helper()
		c, err := r.command(context.Background(), s.ID, runtime.Program{Argv: argv})
		if err != nil {
			t.Fatal(err)
		}
		out, err := c.Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(out))
	}
	if got := run(); got != "own" {
		t.Errorf("the session's own command says %q", got)
	}
	for variable, want := range map[string]string{
		"SEED":                 "14",
		"GPU_COSPLAY_CARD":     "mine", // what the user asks for wins
		"GPU_COSPLAY_PRETTY":   "NVIDIA GeForce RTX 2060",
		"GPU_COSPLAY_VRAM_GB":  "6",
		"GPU_COSPLAY_TDP_W":    "160",
		"CUDA_VISIBLE_DEVICES": "MIG-1",
		"LD_LIBRARY_PATH":      filepath.Join(made.ID, disguise.LibraryDir) + ":/theirs",
		"PYTHONPATH":           filepath.Join(made.ID, "python") + ":/mine",
		"NVIDIA_TF32_OVERRIDE": "0",
		"PWD":                  s.Workspace,
	} {
		if got := run("sh", "-c", "echo $"+variable); got != want {
			t.Errorf("%s is %q, want %q", variable, got, want)
		}
	}
	if to, err := os.Readlink(filepath.Join(made.ID, "real", "libnvidia-ml.so.1")); err != nil || to != r.Library {
		t.Errorf("the library behind the disguise is %q, %v", to, err)
	}
	if info, err := os.Lstat(filepath.Join(made.ID, disguise.LibraryDir, "libnvidia-ml.so.1")); err != nil || !info.Mode().IsRegular() {
		t.Errorf("the library in front: %v, %v", info, err)
	}
}

// TestReaddress: a new address changes nothing else of what List reports: neither of an
// edited folder, nor of one that a lost key has sealed.
func TestReaddress(t *testing.T) {
	for name, change := range map[string]func(r *Runtime, figures string){
		"as written":  func(*Runtime, string) {},
		"another key": func(r *Runtime, _ string) { r.Owner.Key = "another" },
		"edited": func(_ *Runtime, path string) {
			text, err := os.ReadFile(path)
			if err == nil {
				err = errors.Join(os.Chmod(path, 0o600), os.WriteFile(path, bytes.Replace(text, []byte("memory_mib"), []byte("memory_gib"), 1), 0o600))
			}
			if err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, s := worker(t)
			change(&r, filepath.Join(prepare(t, r, s).ID, figuresFile))
			before := list(t, r)
			if err := r.Readdress(s.ID, resource.Nth("other", 1)); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(before, list(t, r)); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestBrokenDisguise: a missing or damaged file of the disguise is reported, and restored
// by Prepare; a sound usage file stays.
func TestBrokenDisguise(t *testing.T) {
	r, s := worker(t)
	made := prepare(t, r, s)
	for _, c := range []struct {
		file  string
		spoil func(string) error
	}{
		{"lib/libcuda.so.1", os.Remove},
		{"lib/libcuda.so.1", func(path string) error { return os.Truncate(path, 0) }},
		{"lib/libnvidia-ml.so.1", os.Remove},
		{"figures", os.Remove},
		{"usage", os.Remove},
		{"usage", func(path string) error { return os.Truncate(path, 100) }},
	} {
		if err := c.spoil(filepath.Join(made.ID, c.file)); err != nil {
			t.Fatal(err)
		}
		if all := list(t, r); len(all) != 1 || all[0].State != resource.Running || !strings.HasPrefix(all[0].Damaged, c.file) {
			t.Errorf("with a spoilt %s it lists %+v", c.file, all)
		}
		prepare(t, r, s)
		if all := list(t, r); len(all) != 1 || !cmp.Equal(all[0], made) {
			t.Errorf("prepared again: %+v", all)
		}
	}
	if u, err := r.Usage(s.ID); err != nil || u.Total != 0 {
		t.Errorf("it uses %+v, %v", u, err)
	}
}

// TestOlderSession: a session of an older cosplay has no disguise of CUDA until Prepare updates it.
func TestOlderSession(t *testing.T) {
	r, s := worker(t)
	made := prepare(t, r, s)
	file := filepath.Join(made.ID, figuresFile)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	older := strings.Replace(string(data), ",\n  \"cuda\": true", "", 1)
	if older == string(data) || os.Remove(file) != nil || os.WriteFile(file, []byte(older), 0o400) != nil {
		t.Fatalf("it cannot be made older: %s", data)
	}
	for _, name := range []string{"lib/libcuda.so.1", "real/libcuda.so.1", "usage", "seal"} {
		if err := os.Remove(filepath.Join(made.ID, name)); err != nil {
			t.Fatal(err)
		}
	}
	outdated := made
	outdated.Outdated = []resource.Outdated{{Part: resource.Facades, From: "an older cosplay", To: "cosplay 1.0"}}
	if all := list(t, r); len(all) != 1 || !cmp.Equal(all[0], outdated) {
		t.Errorf("it lists %+v", all)
	}
	if _, err := r.Usage(s.ID); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what it uses: %v", err)
	}
	again := prepare(t, r, s)
	if all := list(t, r); len(all) != 1 || !cmp.Equal(all[0], again) || !cmp.Equal(again, made) {
		t.Errorf("brought up to date it lists %+v", all)
	}
	if _, err := r.Usage(s.ID); err != nil {
		t.Errorf("what it uses: %v", err)
	}
}

// TestRuns: what has the session's libraries in front, itself or by an ancestor, runs in the session.
func TestRuns(t *testing.T) {
	c := resource.Body{ID: "/sessions/worker-3"}
	for mark, want := range map[string]bool{"LD_LIBRARY_PATH=/sessions/worker-3/lib": true, "LD_LIBRARY_PATH=/sessions/worker-33/lib": false, "/sessions/worker-3/lib": false} {
		if got := runs(resource.Process{Marks: []string{mark}}, c); got != want {
			t.Errorf("%s: %v", mark, got)
		}
	}
}

// TestAltered: a damaged file is reported under its check; also a file of the driver, which List does not read.
func TestAltered(t *testing.T) {
	r, s := worker(t)
	made := prepare(t, r, s)
	session := resource.PriorSession{Session: s}
	altered := func() map[string]string {
		t.Helper()
		all, err := r.Altered(context.Background(), session)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	if all := altered(); len(all) != 0 {
		t.Errorf("at first %v", all)
	}
	for path, check := range map[string]string{
		filepath.Join(made.ID, "figures"): verify.FiguresCheck, filepath.Join(made.ID, "usage"): verify.UsageCheck,
		filepath.Join(made.ID, "real", "libcuda.so.1"): verify.FacadesCheck, r.Library: verify.DriverCheck,
	} {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if all := altered(); len(all) != 1 || !strings.Contains(all[check], filepath.Base(path)+" is missing") {
			t.Errorf("without %s: %v", path, all)
		}
		if check == verify.DriverCheck {
			if err := os.WriteFile(path, []byte("updated"), 0o755); err != nil {
				t.Fatal(err)
			}
			if all := altered(); !strings.Contains(all[check], path+" was changed") || list(t, r)[0].Damaged != "" {
				t.Errorf("with another driver: %v, %q", all, list(t, r)[0].Damaged)
			}
		}
		prepare(t, r, s)
	}
	if err := os.Remove(filepath.Join(made.ID, "seal")); err != nil {
		t.Fatal(err)
	}
	if all := altered(); len(all) != 3 || !strings.Contains(all[verify.DriverCheck], "unknown:") {
		t.Errorf("without a manifest: %v", all)
	}
}

// A session of several GPUs has an account for each, and its programs get all of them by their UUIDs.
func TestSeveralGPUs(t *testing.T) {
	r, s := worker(t)
	one := s.Hash("key")
	s.Slice = resource.Slice{Host: "lab", GPU: "GPU-2"}
	whole := s.Hash("key")
	s.More = []resource.Slice{{Host: "lab", GPU: "GPU-0"}}
	made, err := r.Prepare(context.Background(), s, resource.Handle{UUID: "GPU-2"})
	if err != nil {
		t.Fatal(err)
	}
	made.Stamp = ""
	accounts, err := disguise.ReadAccounts(filepath.Join(made.ID, disguise.UsageFile))
	if err != nil || len(accounts) != 2 {
		t.Errorf("the accounts are %+v, %v", accounts, err)
	}
	if env := environment(made.ID, s, made.SliceID); env["CUDA_VISIBLE_DEVICES"] != "GPU-2,GPU-0" || env["NVIDIA_VISIBLE_DEVICES"] != "GPU-2,GPU-0" {
		t.Errorf("the environment is %v", env)
	}
	if made.Hash == one || made.Hash == whole {
		t.Error("its content has the hash of a session of one GPU")
	}
	if all := list(t, r); len(all) != 1 || !cmp.Equal(all[0], made) {
		t.Errorf("listed %+v, made %+v", all, made)
	}
	s.More = nil // with one GPU again, it has one account
	prepare(t, r, s)
	if accounts, err := disguise.ReadAccounts(filepath.Join(made.ID, disguise.UsageFile)); err != nil || len(accounts) != 1 {
		t.Errorf("the accounts are %+v, %v", accounts, err)
	}
}
