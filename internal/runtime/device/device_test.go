package device

import (
	"bytes"
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

// TestHolders finds the containers that have a session's folder, and not those that say so, enters one with no more rights
// than it has, and ends it.
func TestHolders(t *testing.T) {
	need.Root(t, "unshare", "setpriv")
	r, s, given := onHost(t)
	if _, err := r.Exec(context.Background(), s.ID, runtime.Program{Argv: []string{"id"}}, runtime.Streams{}); !errors.As(err, new(runtime.VacantError)) {
		t.Errorf("without a container: %v", err)
	}
	_, err := r.Prepare(context.Background(), s, given)
	check(t, err)
	inside := r.Inside(s.ID)
	start := func(script string) *exec.Cmd {
		c := exec.Command("unshare", "--mount", "sh", "-c", "mount -t tmpfs tmpfs /run && mkdir -p /run/cosplay && "+script, inside)
		c.Env = append(os.Environ(), mark(s.ID), "LD_PRELOAD=/nonexistent.so")
		c.Stderr = nil
		check(t, c.Start())
		t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
		return c
	}
	holders := func(n int) (found []container) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			found, err = r.holders(s.ID)
			if check(t, err); len(found) == n {
				break
			}
		}
		if len(found) != n {
			t.Fatalf("found %v, want %d", found, n)
		}
		return found
	}
	start("rmdir /run/cosplay && ln -s $0 /run/cosplay && exec sleep 60") // a link proves nothing
	start("exec sleep 60")                                                // and the environment does not
	time.Sleep(300 * time.Millisecond)
	holders(0)

	start(`mount --bind $0 /run/cosplay && unshare --mount sleep 3 & exec setpriv --reuid 1000 --regid 1000 --clear-groups --bounding-set -all,+chown --no-new-privs sleep 60`)
	holders(1) // also where a process of the container has another mount namespace
	time.Sleep(300 * time.Millisecond)
	holders(1)
	var out bytes.Buffer
	code, err := r.Exec(context.Background(), s.ID, runtime.Program{Argv: []string{"grep", "-E", "^(Uid|CapBnd|CapEff|NoNewPrivs|NSpid)", "/proc/self/status"}}, runtime.Streams{Out: &out, Err: &out})
	text := out.String()
	if err != nil || code != 0 || !strings.Contains(text, "Uid:\t1000") || !strings.Contains(text, "CapEff:\t0000000000000000") || !strings.Contains(text, "NoNewPrivs:\t1") || !strings.Contains(text, "CapBnd:\t0000000000000001") {
		t.Errorf("a program in it ends with %d, %v:\n%s", code, err, text)
	}
	if code, err := r.Exec(context.Background(), s.ID, runtime.Program{Argv: []string{"no-such-program"}}, runtime.Streams{}); code != runtime.NotFound || err == nil {
		t.Errorf("a program that does not exist: %d, %v", code, err)
	}
	check(t, r.End(context.Background(), s.ID, "", time.Minute))
	holders(0)
}
