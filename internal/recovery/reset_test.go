package recovery

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cosplay/internal/machine"
	"cosplay/internal/need"
	"cosplay/internal/project"
	"cosplay/internal/projecttest"
	"cosplay/internal/resource"
	"cosplay/internal/state"
)

// bookOf is a snapshot in whose ledger these holders have a GPU.
func bookOf(holders ...resource.Holder) resource.Live {
	for i := range holders {
		holders[i].User = machine.UserName()
	}
	return resource.Live{Hosts: []resource.Host{{Name: "lab", Ledger: []resource.Page{{UUID: "GPU-0", Holders: holders}}}}}
}

// written is a state of a lineage at a path.
func written(t *testing.T, path, lineage string) resource.Prior {
	t.Helper()
	prior, err := state.Store{Path: path}.Save(resource.Prior{Lineage: lineage, Key: state.NewKey()})
	if err != nil {
		t.Fatal(err)
	}
	return prior
}

// TestOwnLineages: which lineages are this project's, with any file at the path of its
// state.
func TestOwnLineages(t *testing.T) {
	mine, theirs, old := state.NewLineage(), state.NewLineage(), state.NewLineage()
	for _, test := range []struct {
		name   string
		here   string // lineage of the state; "" for none
		damage bool
		there  string // lineage of the other project's state
		held   func(here, there string) []resource.Holder
		own    []string
		fault  string
	}{
		{"its own", mine, false, theirs, func(here, there string) []resource.Holder {
			return []resource.Holder{{Lineage: mine, State: here}, {Lineage: theirs, State: there}}
		}, []string{mine}, ""},
		{"lost", "", false, theirs, func(here, there string) []resource.Holder {
			return []resource.Holder{{Lineage: mine, State: here}, {Lineage: theirs, State: there}}
		}, []string{mine}, ""},
		{"damaged", mine, true, theirs, func(here, there string) []resource.Holder {
			return []resource.Holder{{Lineage: mine, State: here}, {Lineage: theirs, State: there}}
		}, []string{mine}, "checksum"},
		{"another's", theirs, false, theirs, func(here, there string) []resource.Holder {
			return []resource.Holder{{Lineage: theirs, State: there}, {Lineage: mine, State: here}}
		}, []string{mine}, "copy of another project's"},
		{"another's, which is not on this host", theirs, false, "", func(here, _ string) []resource.Holder {
			return []resource.Holder{{Lineage: mine, State: here}}
		}, []string{mine}, "belongs to another project"},
		{"another's, and no own lineage", theirs, false, theirs, func(_, there string) []resource.Holder {
			return []resource.Holder{{Lineage: theirs, State: there}}
		}, []string{""}, "copy of another project's"},
		{"moved here", mine, false, "", func(_, there string) []resource.Holder {
			return []resource.Holder{{Lineage: mine, State: there}}
		}, []string{mine}, ""},
		{"moved here, and damaged", mine, true, "", func(_, there string) []resource.Holder {
			return []resource.Holder{{Lineage: mine, State: there}}
		}, []string{mine}, "checksum"},
		{"started again", mine, false, "", func(here, _ string) []resource.Holder {
			return []resource.Holder{{Lineage: mine, State: here, Since: "2026-02-02"}, {Lineage: old, State: here, Since: "2026-01-01"}}
		}, []string{old, mine}, ""},
		{"started again and lost", "", false, "", func(here, _ string) []resource.Holder {
			return []resource.Holder{{Lineage: mine, State: here, Since: "2026-02-02"}, {Lineage: old, State: here, Since: "2026-01-01"}}
		}, []string{old, mine}, ""},
		{"ledger lost", mine, false, "", func(string, string) []resource.Holder { return nil }, []string{mine}, ""},
		{"nothing at all", "", false, "", func(string, string) []resource.Holder { return nil }, []string{""}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			here, there := filepath.Join(t.TempDir(), state.FileName), filepath.Join(t.TempDir(), state.FileName)
			if test.here != "" {
				written(t, here, test.here)
			}
			if test.there != "" {
				written(t, there, test.there)
			}
			if test.damage {
				data, err := os.ReadFile(here)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(here, []byte(strings.Replace(string(data), `"serial": 1`, `"serial": 3`, 1)), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			p := &project.Project{Files: project.Files{Dir: filepath.Dir(here), Store: state.Store{Path: here}}}
			live := bookOf(test.held(here, there)...)
			v := stateView(p, live)
			if !strings.Contains(v.Fault, test.fault) || (v.Fault == "") != (test.fault == "") {
				t.Errorf("the fault is %q, want %q", v.Fault, test.fault)
			}
			var own []string
			for _, h := range ownHolders(p, v, live) {
				own = append(own, h.Lineage)
			}
			if got, want := strings.Join(own, " "), strings.Join(test.own, " "); got != want {
				t.Errorf("own are %q, want %q (mine %s, theirs %s)", got, want, mine, theirs)
			}
		})
	}
}

// TestElsewhere: of a project whose state is on another machine, nothing here says that it is lost, replaced or this one.
func TestElsewhere(t *testing.T) {
	if machine.ID() == "" {
		need.Lacking(t, "this machine has no machine-id")
	}
	path := filepath.Join(t.TempDir(), "state")
	for of, here := range map[string]bool{"": true, machine.ID(): true, "another": false} {
		h := resource.Holder{Lineage: "theirs", State: path, Machine: of}
		if project.IsLost(h) != here || project.At(h, path) != here || project.Elsewhere(h) == here {
			t.Errorf("on %q: lost %v, at its path %v, elsewhere %v", of, project.IsLost(h), project.At(h, path), project.Elsewhere(h))
		}
	}
}

// TestIsLost: a project is lost if its state does not exist, or if another state has its
// path; not if the file cannot be read, or belongs to another user.
func TestIsLost(t *testing.T) {
	dir := t.TempDir()
	mine, other := state.NewLineage(), state.NewLineage()
	path := func(name string) string { return filepath.Join(dir, name) }
	written(t, path("mine"), mine)
	written(t, path("other"), other)
	if err := os.WriteFile(path("damaged"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"mine": false, "other": true, "missing": true, "no/folder": true, "damaged": false, "mine/not-a-folder": false} {
		if got := project.IsLost(resource.Holder{Lineage: mine, State: path(name)}); got != want {
			t.Errorf("%s: IsLost is %v", name, got)
		}
	}
	uid := *machine.UserID() + 1
	for name, want := range map[string]bool{"other": false, "missing": true} {
		if got := project.IsLost(resource.Holder{Lineage: mine, State: path(name), UID: &uid}); got != want {
			t.Errorf("%s, of another user: IsLost is %v", name, got)
		}
	}
}

// TestResetInAnyFolder: reset finds the simulated hosts without their blocks, with any
// name of the project's folder.
func TestResetInAnyFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "exp[1]")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	projecttest.Write(t, dir, projecttest.SevenWorkers)
	projecttest.Apply(t, dir, project.AsConfigured)
	if err := os.Remove(filepath.Join(dir, "cosplay.hcl")); err != nil {
		t.Fatal(err)
	}
	p, _, err := project.OpenForRecovery(project.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if got := p.SimDirs(); got["lab"] != p.Machine.SimDir("lab") {
		t.Errorf("the simulated hosts are %v", got)
	}
}

// TestResetOneHost: a host that cannot be read is reported, the others are reset, and the
// state keeps the sessions of that host.
func TestResetOneHost(t *testing.T) {
	const two = `host "a" { simulate = "1 x h200" }
host "b" { simulate = "1 x h200" }
session "on_a" {
  target = "2060"
  host   = "a"
}
session "on_b" {
  target = "2060"
  host   = "b"
}`
	dir := projecttest.New(t, two)
	projecttest.Apply(t, dir, project.AsConfigured)
	lost := filepath.Join(dir, machine.ScratchDir, "sim", "b", "host")
	data, err := os.ReadFile(lost)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(lost, []byte("rubbish"), 0o600); err != nil {
		t.Fatal(err)
	}
	done := func(want int) []string {
		t.Helper()
		p, complaint, err := project.OpenForRecovery(project.Options{Dir: dir})
		if err != nil || complaint != nil {
			t.Fatal(err, complaint)
		}
		defer p.Close()
		r, err := PlanReset(context.Background(), p, ResetOptions{})
		if err != nil || len(r.Failures) != want {
			t.Fatalf("%v, failures %v", err, r.Failures)
		}
		results := CarryOut(context.Background(), p, r, nil, 1)
		for _, d := range results {
			if d.Err != nil || len(d.Result.Failures) > 0 {
				t.Fatal(d.Err, d.Result.Failures)
			}
		}
		if _, _, err := Settle(p, r, results); err != nil {
			t.Fatal(err)
		}
		prior, err := p.Store.Load()
		if err != nil {
			t.Fatal(err)
		}
		var left []string
		for _, s := range prior.Sessions {
			left = append(left, s.Address.Short())
		}
		return left
	}
	if left := done(1); len(left) != 1 || left[0] != "on_b" {
		t.Fatalf("remaining: %v", left)
	}
	if err := os.WriteFile(lost, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if left := done(0); len(left) != 0 {
		t.Errorf("remaining: %v", left)
	}
}

// TestRenamed: if no configuration names this machine, the sessions of the state on its
// GPUs are on it, whatever name the state has for the host.
func TestRenamed(t *testing.T) {
	on := func(host, gpu string) resource.Prior {
		return resource.Prior{GPUs: []resource.PriorGPU{{Host: host, UUID: gpu}},
			Sessions: []resource.PriorSession{{Session: resource.Session{Slice: resource.Slice{Host: host, GPU: gpu}}}}}
	}
	live := resource.Live{Hosts: []resource.Host{{Name: "local", GPUs: []resource.GPU{{Host: "local", UUID: "GPU-0"}}}, {Name: "sim"}}}
	for _, test := range []struct{ unnamed, host, gpu, want string }{
		{"local", "lab", "GPU-0", "local"},
		{"local", "lab", "GPU-1", "lab"},
		{"local", "sim", "GPU-0", "sim"},
		{"", "lab", "GPU-0", "lab"},
	} {
		before := on(test.host, test.gpu)
		got := renamed(&project.Project{Unnamed: test.unnamed}, before, live)
		if got.GPUs[0].Host != test.want || got.Sessions[0].Slice.Host != test.want || before.GPUs[0].Host != test.host {
			t.Errorf("%+v: %+v", test, got)
		}
	}
}

// A session ends with each of its GPUs: with one that is chosen, it is in the part that is reset.
func TestSplitSessionOfSeveralGPUs(t *testing.T) {
	prior := resource.Prior{
		GPUs: []resource.PriorGPU{{Host: "lab", UUID: "GPU-0"}, {Host: "lab", UUID: "GPU-1"}, {Host: "lab", UUID: "GPU-2"}},
		Sessions: []resource.PriorSession{
			{Session: resource.Session{ID: "two", Slice: resource.Slice{Host: "lab", GPU: "GPU-0"}, More: []resource.Slice{{Host: "lab", GPU: "GPU-1"}}}},
			{Session: resource.Session{ID: "one", Slice: resource.Slice{Host: "lab", GPU: "GPU-2"}}},
		},
	}
	for _, chosen := range []string{"GPU-0", "GPU-1"} {
		part, rest := split(prior, func(_, gpu string) bool { return gpu == chosen })
		if len(part.Sessions) != 1 || part.Sessions[0].ID != "two" || len(rest.Sessions) != 1 || rest.Sessions[0].ID != "one" || len(part.GPUs) != 1 {
			t.Errorf("with %s chosen the part is %+v, the rest %+v", chosen, part, rest)
		}
	}
}
