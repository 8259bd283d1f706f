package device

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cosplay/catalog"
	"cosplay/internal/apply"
	"cosplay/internal/cdi"
	"cosplay/internal/inside"
	"cosplay/internal/need"
	"cosplay/internal/observe"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
	"cosplay/internal/sim"
)

var (
	_ apply.Runtime      = Runtime{}
	_ apply.Ender        = Runtime{}
	_ observe.BodyLister = Runtime{}
	_ runtime.Offerer    = Runtime{}
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// onHost is a runtime on a simulated host with a session and its slice.
func onHost(t *testing.T) (r Runtime, s resource.Session, given resource.Handle) {
	t.Helper()
	dir := t.TempDir()
	model, err := catalog.HostModel("h200")
	check(t, err)
	check(t, sim.Create(filepath.Join(dir, "sim"), []resource.Model{model}, sim.Options{Simulates: "h200", Seed: "test"}))
	r = Runtime{inside.On(runtime.Host{Name: "lab", Folders: filepath.Join(dir, "sessions"), Owner: resource.Owner{Lineage: "l", Key: "key"}, SimDir: filepath.Join(dir, "sim")})}
	r.Library, r.Specs = sim.LibraryPath(r.SimDir), filepath.Join(dir, "cdi")
	target, err := catalog.Target("rtx-2060")
	check(t, err)
	s = resource.Session{Address: resource.One("one"), ID: "one-test", Target: target, Runtime: name, Compute: "cpu",
		Slice:   resource.Slice{Host: "lab", GPU: "GPU-0", Profile: "1g.18gb", Size: 1},
		Program: resource.Program{Workspace: dir, Env: map[string]string{"SEED": "14"}}}
	return r, s, resource.Handle{UUID: "MIG-1"}
}

func list(t *testing.T, r Runtime) []resource.Body {
	t.Helper()
	all, err := r.List(context.Background())
	check(t, err)
	return all
}

// TestDevice makes a device, changes it, loses it, and removes it.
func TestDevice(t *testing.T) {
	resource.RegisterRuntime(Driver.Runtime)
	r, s, given := onHost(t)
	if s.Device() != Of(s.ID).Qualified() {
		t.Errorf("the session's device is %s, and the runtime's %s", s.Device(), Of(s.ID).Qualified())
	}
	made, err := r.Prepare(context.Background(), s, given)
	check(t, err)
	all := list(t, r)
	if len(all) != 1 || all[0].ID != made.ID || all[0].Hash != made.Hash || all[0].SliceID != "MIG-1" || all[0].State != resource.Running || all[0].Damaged != "" {
		t.Fatalf("listed: %+v, made: %+v", all, made)
	}
	before, err := os.ReadFile(made.ID)
	check(t, err)
	s.Env["SEED"] = "15"
	again, err := r.Prepare(context.Background(), s, given)
	check(t, err)
	after, err := os.ReadFile(made.ID)
	check(t, err)
	if again.Hash == made.Hash || again.ID != made.ID || !strings.Contains(string(before), "SEED=14") || !strings.Contains(string(after), "SEED=15") {
		t.Errorf("a changed session: %+v\n%s", again, after)
	}
	offer, err := r.Offer(s.ID)
	check(t, err)
	writable := map[string]bool{}
	for _, m := range offer.Mounts {
		if m.Writable {
			writable[m.Container] = true
		}
	}
	state := sim.StatePath(r.SimDir) // of the simulated host, in which programs keep what they use
	if want := 3; len(writable) != want || !writable["/run/cosplay/usage"] || !writable["/run/cosplay/report"] || !writable[state] || offer.Env["SEED"] != "15" {
		t.Errorf("it offers %+v", offer)
	}

	check(t, os.WriteFile(made.ID, append(after, '\n'), 0o644))
	if all := list(t, r); len(all) != 1 || all[0].Damaged != "its specification was changed" {
		t.Errorf("a changed specification: %+v", all)
	}
	check(t, os.Remove(made.ID))
	if all := list(t, r); len(all) != 0 {
		t.Errorf("a lost specification: %+v", all)
	}
	remains, err := r.Remains(context.Background())
	check(t, err)
	if len(remains) != 1 || remains[0].Session.Address != s.Address || remains[0].Body.State != resource.Stopped || !remains[0].Proven {
		t.Errorf("it has left %+v", remains)
	}
	_, err = r.Prepare(context.Background(), s, given)
	check(t, err)
	for range 2 { // a body that does not exist is no error
		_, err = r.Unprepare(context.Background(), s.ID)
		check(t, err)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(r.Specs), "*", "*")); err != nil || strings.Contains(strings.Join(left, " "), s.ID) {
		t.Errorf("left: %v, %v", left, err)
	}
	if _, err := r.Unprepare(context.Background(), "../x"); err == nil {
		t.Error("a path was taken for an ID")
	}
}

// TestLoader: what a container says that the loader is to load is loaded in it alone, not in the program of this machine
// that enters it.
func TestLoader(t *testing.T) {
	need.Root(t, "unshare", "nsenter")
	r, s, _ := onHost(t)
	stand := exec.Command("unshare", "--mount", "sleep", "60")
	stand.Env = append(os.Environ(), mark(s.ID), "LD_PRELOAD=/missing.so")
	check(t, stand.Start())
	t.Cleanup(func() { _ = stand.Process.Kill(); _ = stand.Wait() })
	program := runtime.Program{Argv: []string{"sh", "-c", "echo $LD_PRELOAD $SEED"}, Env: map[string]string{"SEED": "14"}}
	var out, said strings.Builder
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		_, err := r.Exec(context.Background(), s.ID, program, runtime.Streams{Out: &out, Err: &said})
		if !errors.As(err, new(runtime.VacantError)) || time.Now().After(end) {
			check(t, err)
			break
		}
	}
	if out.String() != "/missing.so 14\n" || strings.Count(said.String(), "cannot be preloaded") != 1 {
		t.Errorf("it printed %q, and the loaders said %q", out.String(), said.String())
	}
}

// TestDamagedUsage: a program that damages the usage file does not keep CUDA from being checked.
func TestDamagedUsage(t *testing.T) {
	r, s, given := onHost(t)
	_, err := r.Prepare(context.Background(), s, given)
	check(t, err)
	before, err := r.Interior(resource.PriorSession{Session: s})
	check(t, err)
	check(t, os.Truncate(filepath.Join(r.Inside(s.ID), "usage"), 0))
	after, err := r.Interior(resource.PriorSession{Session: s})
	check(t, err)
	if before.UsageFile != after.UsageFile || before.UsageFile == "" {
		t.Errorf("before: %+v\nafter:  %+v", before, after)
	}
}

// TestTaken: the device of another project is neither written over nor removed, and the check before an apply finds it.
func TestTaken(t *testing.T) {
	r, s, given := onHost(t)
	other := Of(s.ID)
	check(t, other.Write(r.Specs, cdi.Edits{Env: map[string]string{"OF": "another"}}))
	if _, err := r.Prepare(context.Background(), s, given); err == nil || !strings.Contains(err.Error(), "the device of another project") {
		t.Errorf("over another's: %v", err)
	}
	survey, err := r.Survey(context.Background())
	check(t, err)
	if found := survey.Check(context.Background(), s, nil); len(found) != 1 || found[0].Summary != "the name of its device is taken" || found[0].Fix == "" {
		t.Errorf("before an apply: %+v", found)
	}
	_, err = r.Unprepare(context.Background(), s.ID)
	check(t, err)
	if _, err := os.Stat(other.File(r.Specs)); err != nil {
		t.Errorf("the other's was removed: %v", err)
	}
	for _, id := range []string{"_x-test", "one-test_", "one---", strings.Repeat("n", 230)} {
		s.ID = id
		if found := survey.Check(context.Background(), s, nil); len(found) != 1 || found[0].Summary != "CDI does not accept the name of its device" || found[0].Fix == "" {
			t.Errorf("the name %s: %+v", id, found)
		}
	}
	s.ID, s.Secret = "two-test", map[string]string{"TOKEN": "hidden"}
	if found := survey.Check(context.Background(), s, nil); len(found) != 1 || found[0].Attribute != "env" {
		t.Errorf("with sensitive values: %+v", found)
	}
}

// TestOwned: a device is known by the folder that it names, whatever characters are in its path, also where one path
// contains the other, the project has moved, or the specification was damaged.
func TestOwned(t *testing.T) {
	for _, folder := range []string{`r&d`, `"quoted" <x>\\y`} {
		r, s, given := onHost(t)
		r.Folders = filepath.Join(filepath.Dir(r.Folders), folder)
		made, err := r.Prepare(context.Background(), s, given)
		check(t, err)
		_, err = r.Prepare(context.Background(), s, given)
		check(t, err)

		other := r
		if other.Folders, err = filepath.Abs(r.Folders + r.Folders); err != nil {
			t.Fatal(err)
		}
		if _, err := other.Prepare(context.Background(), s, given); err == nil {
			t.Errorf("%s: the device was written over by a project whose path contains that", folder)
		}

		check(t, os.WriteFile(made.ID, nil, 0o644))
		_, err = r.Prepare(context.Background(), s, given)
		check(t, err)

		moved := r
		moved.Folders += "-moved"
		check(t, os.Rename(r.Folders, moved.Folders))
		_, err = moved.Prepare(context.Background(), s, given)
		check(t, err)
		check(t, os.Rename(moved.Folders, r.Folders))
		_, err = r.Unprepare(context.Background(), s.ID)
		check(t, err)
		if _, err := os.Stat(made.ID); err == nil {
			t.Errorf("%s: the device is left", folder)
		}
	}
	long, s, given := onHost(t)
	short := long
	long.Folders = filepath.Join(filepath.Dir(long.Folders), long.Folders)
	made, err := long.Prepare(context.Background(), s, given)
	check(t, err)
	if _, err := short.Prepare(context.Background(), s, given); err == nil {
		t.Error("the device of a project was written over by one whose path is the end of that")
	}
	_, err = short.Unprepare(context.Background(), s.ID)
	check(t, err)
	if _, err := os.Stat(made.ID); err != nil {
		t.Errorf("the other's was removed: %v", err)
	}
}

// TestHolders finds processes by what is in their environment, and ends them.
func TestHolders(t *testing.T) {
	r, s, _ := onHost(t)
	if _, err := r.Exec(context.Background(), s.ID, runtime.Program{Argv: []string{"id"}}, runtime.Streams{}); !errors.As(err, new(runtime.VacantError)) {
		t.Errorf("without a container: %v", err)
	}
	need.Root(t, "unshare")
	stand := exec.Command("unshare", "--mount", "sleep", "60")
	stand.Env = append(os.Environ(), mark(s.ID))
	check(t, stand.Start())
	t.Cleanup(func() { _ = stand.Process.Kill() })
	var found []container
	for end := time.Now().Add(10 * time.Second); len(found) == 0 && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		var err error
		found, err = holders(mark(s.ID))
		check(t, err)
	}
	if len(found) != 1 || found[0].pid != stand.Process.Pid {
		t.Fatalf("found %v, it is process %d", found, stand.Process.Pid)
	}
	ended := make(chan error)
	go func() { ended <- stand.Wait() }()
	check(t, r.End(context.Background(), s.ID, "", time.Minute))
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Error("it still runs")
	}
}
