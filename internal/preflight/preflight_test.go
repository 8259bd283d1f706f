package preflight_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"cosplay/catalog"
	"cosplay/internal/config"
	"cosplay/internal/diff"
	"cosplay/internal/plan"
	"cosplay/internal/preflight"
	"cosplay/internal/resource"
)

const gpu = "GPU-0"

// flight is a plan with one GPU and one session that was made in its slice.
func flight(t *testing.T, runtime string) *preflight.Flight {
	t.Helper()
	intent, diags := config.Load(map[string][]byte{"fleet.hcl": []byte(`
host "lab" {
  gpus = [0]
}
session "w" {
  target = "2060"
  image  = "here"
}`)}, config.Options{Dir: "/project", Home: "/home/me", Target: catalog.Target})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	slice := resource.Slice{Host: "lab", GPU: gpu, Profile: "1g.18gb", Size: 1}
	session := resource.Session{Address: resource.One("w"), ID: "w", Slice: slice, Runtime: runtime}
	if runtime == "docker" {
		session.Spec = resource.ContainerSpec{Image: "here:latest"}
	}
	was := resource.PriorSession{Session: session, Handle: &resource.Handle{GPUInstance: 7, UUID: "MIG-0"}, Body: &resource.Body{ID: "body-w"}}
	return &preflight.Flight{
		Intent: intent,
		Prior:  resource.Prior{Sessions: []resource.PriorSession{was}},
		Live: resource.Live{Hosts: []resource.Host{{Name: "lab",
			Engine: &resource.Engine{Images: map[string]string{"here:latest": "sha256:1"}},
			GPUs:   []resource.GPU{{Host: "lab", UUID: gpu}},
			Bodies: []resource.Body{{ID: "body-w", Session: "w", Runtime: runtime}}}}},
		Plan: &plan.Plan{
			Desired: resource.Desired{Sessions: []resource.Session{session}},
			Diff: diff.Diff{
				GPUs:     []diff.GPUChange{{Host: "lab", UUID: gpu, Action: diff.Create}},
				Sessions: []diff.SessionChange{{Address: session.Address, Action: diff.NoOp, Slice: diff.Keep, Body: diff.Keep, Before: &was, After: &session}},
			},
		},
	}
}

// reported writes diagnostics as severity, line and summary.
func reported(diags hcl.Diagnostics) string {
	var all []string
	for _, d := range diags {
		word := "error"
		if d.Severity == hcl.DiagWarning {
			word = "warning"
		}
		all = append(all, fmt.Sprintf("%s %d %s", word, d.Subject.Start.Line, d.Summary))
	}
	return strings.Join(all, "; ")
}

// TestGPUs: each case that the driver would refuse is reported at its line, and no other
// case is.
func TestGPUs(t *testing.T) {
	seven, eight := 7, 8
	const stuck = "3 MIG mode of GPU 0 cannot be switched on"
	for _, c := range []struct {
		name   string
		before func(f *preflight.Flight, g *resource.GPU, c *diff.GPUChange, s *diff.SessionChange)
		docker bool
		want   string
	}{
		{"no process", func(_ *preflight.Flight, _ *resource.GPU, c *diff.GPUChange, _ *diff.SessionChange) {
			c.Settings = c.Settings.With(resource.MIGMode, resource.On)
		}, false, ""},
		{"a process", func(_ *preflight.Flight, g *resource.GPU, c *diff.GPUChange, _ *diff.SessionChange) {
			g.Processes, c.Settings = []resource.Process{{PID: 1}}, c.Settings.With(resource.MIGMode, resource.On)
		}, false, "error " + stuck},
		{"a process, and the mode stays", func(_ *preflight.Flight, g *resource.GPU, c *diff.GPUChange, _ *diff.SessionChange) {
			g.Processes, c.Settings = []resource.Process{{PID: 1}}, c.Settings.With(resource.MIGMode, resource.Off)
		}, false, ""},
		{"a process, and the plan destroys all", func(f *preflight.Flight, g *resource.GPU, c *diff.GPUChange, _ *diff.SessionChange) {
			g.Processes, c.Settings, f.Plan.Desired = []resource.Process{{PID: 1}}, c.Settings.With(resource.MIGMode, resource.On), resource.Desired{}
		}, false, "warning " + stuck},
		{"pending, and the plan sets it", func(_ *preflight.Flight, g *resource.GPU, c *diff.GPUChange, _ *diff.SessionChange) {
			g.MIGPending, c.Settings = true, c.Settings.With(resource.MIGMode, resource.On)
		}, false, "warning 3 MIG mode of GPU 0 is about to change"},
		{"pending, and the plan does not set it", func(_ *preflight.Flight, g *resource.GPU, c *diff.GPUChange, _ *diff.SessionChange) {
			g.MIGPending, c.Action = true, diff.Update
		}, false, "warning 3 MIG mode of GPU 0 is about to change"},
		{"pending on a GPU of the project whose mode the plan sets", func(_ *preflight.Flight, g *resource.GPU, c *diff.GPUChange, _ *diff.SessionChange) {
			g.MIG, c.Action, c.Settings = true, diff.Update, c.Settings.With(resource.MIGMode, resource.On)
		}, false, ""},
		{"pending on a GPU that the plan does not change", func(_ *preflight.Flight, g *resource.GPU, c *diff.GPUChange, _ *diff.SessionChange) {
			g.MIGPending, c.Action = true, diff.NoOp
		}, false, ""},
		{"a program in a slice that the plan destroys", func(_ *preflight.Flight, g *resource.GPU, _ *diff.GPUChange, s *diff.SessionChange) {
			g.Processes, s.Slice = []resource.Process{{PID: 1, GPUInstance: &seven}}, diff.Remake
		}, false, "error 6 the slice of session.w is in use"},
		{"a program in another slice", func(_ *preflight.Flight, g *resource.GPU, _ *diff.GPUChange, s *diff.SessionChange) {
			g.Processes, s.Slice = []resource.Process{{PID: 1, GPUInstance: &eight}}, diff.Remake
		}, false, ""},
		{"a program in a slice that stays", func(_ *preflight.Flight, g *resource.GPU, _ *diff.GPUChange, _ *diff.SessionChange) {
			g.Processes = []resource.Process{{PID: 1, GPUInstance: &seven}}
		}, false, ""},
		{"a program that ends with its container", func(_ *preflight.Flight, g *resource.GPU, c *diff.GPUChange, s *diff.SessionChange) {
			g.Processes, s.Slice, s.Body = []resource.Process{{PID: 1, GPUInstance: &seven}}, diff.Remove, diff.Remove
			c.Settings = c.Settings.With(resource.MIGMode, resource.On)
		}, true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			runtime := "process"
			if c.docker {
				runtime = "docker"
			}
			f := flight(t, runtime)
			c.before(f, &f.Live.Hosts[0].GPUs[0], &f.Plan.Diff.GPUs[0], &f.Plan.Diff.Sessions[0])
			f.GPUs()
			if got := reported(f.Diagnostics()); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestImages: an image that was removed since the plan was made is reported, unless a
// step gets it.
func TestImages(t *testing.T) {
	f := flight(t, "docker")
	f.Plan.Diff.Sessions[0].Body = diff.Remake
	f.Images()
	f.Live.Hosts[0].Engine.Images = nil
	f.Plan.Steps = []plan.Step{{Do: plan.OpJSON{Op: plan.EnsureImage{Host: "lab", Image: "here:latest"}}}}
	f.Images()
	if got := reported(f.Diagnostics()); got != "" {
		t.Errorf("got %q", got)
	}
	f.Plan.Steps = nil
	f.Images()
	if got := reported(f.Diagnostics()); got != `error 7 there is no image here:latest on host "lab"` {
		t.Errorf("got %q", got)
	}
}

// TestMadeAndRemoved: which sessions are checked, and which containers the plan removes
// before. The plan has no order for a container on another GPU.
func TestMadeAndRemoved(t *testing.T) {
	f := flight(t, "docker")
	if made := f.Made("lab"); len(made) != 0 {
		t.Errorf("without changes %d are made", len(made))
	}
	f.Plan.Diff.Sessions[0].Body = diff.Remake
	made := f.Made("lab")
	if len(made) != 1 || len(f.Made("den")) != 0 {
		t.Fatalf("made: %+v", made)
	}
	for _, other := range []struct{ name, gpu string }{{"near", gpu}, {"far", "GPU-1"}} {
		was := *f.Plan.Diff.Sessions[0].Before
		was.ID, was.Slice.GPU = other.name, other.gpu
		f.Plan.Diff.Sessions = append(f.Plan.Diff.Sessions, diff.SessionChange{Address: resource.One(other.name), Body: diff.Remove, Before: &was})
		f.Live.Hosts[0].Bodies = append([]resource.Body{{ID: "body-" + other.name, Session: other.name, Runtime: "docker"}}, f.Live.Hosts[0].Bodies...)
	}
	if removed := f.RemovedBefore(made[0]); len(removed) != 2 || !removed["body-w"] || !removed["body-near"] {
		t.Errorf("removed: %v", removed)
	}
}

// TestOncePerBlock: equal problems at the same line are reported once.
func TestOncePerBlock(t *testing.T) {
	f := flight(t, "process")
	for _, summary := range []string{"a", "a", "b"} {
		f.Session(resource.One("w"), preflight.Problem{Attribute: "workspace", Summary: summary})
	}
	f.Session(resource.One("unknown"), preflight.Problem{Summary: "a"})
	if n := len(f.Diagnostics()); n != 3 {
		t.Errorf("%d problems are reported, want 3", n)
	}
}

// TestForeignMPS: a plan that starts an MPS daemon on a GPU that another user's daemon serves is refused, and warned
// about where cosplay's daemon runs there already.
func TestForeignMPS(t *testing.T) {
	for _, test := range []struct {
		serves string
		had    bool
		want   string
	}{
		{gpu + ",GPU-1", false, "error"},
		{"0", false, "error"},
		{"GPU-1", false, ""},
		{"", false, ""},
		{gpu, true, "warning"},
	} {
		f := flight(t, "process")
		run := plan.RunMPS{Host: "lab", GPU: gpu, MPS: resource.MPS{Folder: "/state/cosplay/mps/1/2", MemoryMiB: 6656}}
		f.Plan.Steps = []plan.Step{{Do: plan.OpJSON{Op: run}}}
		if test.had {
			f.Prior.GPUs = []resource.PriorGPU{{Host: "lab", UUID: gpu, Daemons: resource.Daemons{MPS: &run.MPS}}}
		}
		f.MPS("lab", []resource.ForeignDaemon{{PID: 77, User: "bob", GPUs: test.serves}})
		if got := reported(f.Diagnostics()); (got == "") != (test.want == "") || !strings.HasPrefix(got, test.want) {
			t.Errorf("a daemon for %q: %q", test.serves, got)
		}
	}
}
