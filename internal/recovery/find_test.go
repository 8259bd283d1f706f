package recovery

import (
	"context"
	"errors"
	"strings"
	"testing"

	"cosplay/internal/config"
	"cosplay/internal/projecttest"
	"cosplay/internal/resource"
)

// TestImportInMode: a container is not imported for a slice that the mode of the GPU excludes.
func TestImportInMode(t *testing.T) {
	slice := resource.Slice{GPU: "GPU-1", Profile: "1g.18gb", Size: 1}
	for name, test := range map[string]struct {
		mig   bool
		slice resource.Slice
		want  string
	}{
		"a slice, MIG off": {false, slice, "MIG mode is off there"},
		"a slice, MIG on":  {true, slice, ""},
		"whole, MIG on":    {true, resource.Slice{GPU: "GPU-1"}, "MIG mode is on there"},
		"whole, MIG off":   {false, resource.Slice{GPU: "GPU-1"}, ""},
	} {
		err := inMode(resource.GPU{UUID: "GPU-1", MIG: test.mig}, resource.Session{Slice: test.slice}, "big")
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

// TestImportOfAnothersSlice: where a session of the project has the slice already, the error names the command that
// releases it.
func TestImportOfAnothersSlice(t *testing.T) {
	slice, handle := resource.Slice{Host: "lab", GPU: "GPU-1", Profile: "1g.18gb", Size: 1}, resource.Handle{UUID: "MIG-1"}
	f := finder{id: "MIG-1",
		prior: resource.Prior{Sessions: []resource.PriorSession{{Session: resource.Session{Address: resource.Nth("lost", 0), Slice: slice}, Handle: &handle}}},
		live:  resource.Live{Hosts: []resource.Host{{Name: "lab", GPUs: []resource.GPU{{UUID: "GPU-1", Slices: []resource.LiveSlice{{Slice: slice, Handle: handle}}}}}}}}
	if _, err := f.slice("ours"); err == nil || !strings.Contains(err.Error(), "that of session.lost[0] already") || !strings.Contains(err.Error(), "cosplay state rm lost-0") {
		t.Error(err)
	}
}

// TestImportDoubtsClock: with a stated baseline the clock may be locked, also where an interrupted import has acquired
// the GPU and not recorded the doubt.
func TestImportDoubtsClock(t *testing.T) {
	var none resource.Settings
	stated, locked := none.With(resource.MIGMode, resource.Off), none.With(resource.SMClock, 1575)
	held := func(g resource.PriorGPU) resource.Prior {
		g.Host, g.UUID = "lab", "GPU-1"
		return resource.Prior{GPUs: []resource.PriorGPU{g}}
	}
	for name, test := range map[string]struct {
		stated resource.Settings
		prior  resource.Prior
		want   bool
	}{
		"nothing is stated":         {none, resource.Prior{}, false},
		"the GPU is not held":       {stated, resource.Prior{}, true},
		"it is held":                {stated, held(resource.PriorGPU{}), true},
		"cosplay has set the clock": {stated, held(resource.PriorGPU{Applied: locked}), false},
		"the doubt is on record":    {stated, held(resource.PriorGPU{ClockUnsure: true}), false},
	} {
		if got := (&finder{baseline: test.stated, prior: test.prior}).doubts("lab", "GPU-1"); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestImportOnlyRoot: that only root may import an object is the last thing that is checked, and the object is returned.
func TestImportOnlyRoot(t *testing.T) {
	p := projecttest.Open(t, projecttest.New(t, "host \"lab\" { simulate = \"1 x h200\" }\nsession \"a\" { target = \"2060\" }\nsession \"big\" { target = \"3090\" }\n"))
	prior, live, err := p.Refresh(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	p.Machine.Hosts()["lab"].Rooted = true
	g := &live.Hosts[0].GPUs[0]
	g.MIG = true
	g.Slices = []resource.LiveSlice{{Slice: resource.Slice{GPU: g.UUID, Profile: "1g.18gb", Start: 2, Size: 1}, Handle: resource.Handle{UUID: "MIG-1"}}}
	import1 := func(session string) (bool, error) {
		found, _, err := FindImport(context.Background(), p, prior, live, config.Import{To: resource.One(session), ID: "MIG-1"}, nil)
		return found != nil, err
	}
	if there, err := import1("a"); !there || !errors.Is(err, ErrOnlyRoot) || !strings.Contains(err.Error(), "sudo cosplay import session.a MIG-1") {
		t.Errorf("%v %v", there, err)
	}
	if there, err := import1("big"); there || err == nil || errors.Is(err, ErrOnlyRoot) {
		t.Errorf("%v %v", there, err)
	}
	p.Machine.Hosts()["lab"].Config.Connect = "ssh://gpu1"
	if _, err := import1("a"); !errors.Is(err, ErrOnlyRoot) || strings.Contains(err.Error(), "sudo") || !strings.Contains(err.Error(), "on that machine") {
		t.Error(err)
	}
	describe := func() error {
		_, _, err := Describe(context.Background(), p, "lab", "trainer")
		return err
	}
	if err := describe(); err == nil || !strings.Contains(err.Error(), "is another machine") {
		t.Error(err)
	}
}
