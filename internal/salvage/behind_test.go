package salvage_test

import (
	"testing"

	"cosplay/internal/resource"
	"cosplay/internal/salvage"
)

// older returns a state with nothing but a GPU, and a world in which run 5 of its project has created a slice and a
// container.
func older() (resource.Prior, *resource.Host) {
	slice := resource.LiveSlice{Slice: resource.Slice{Host: "lab", GPU: "GPU-0", Profile: "1g.18gb", Start: 4, Size: 1}, Handle: resource.Handle{GPUInstance: 9, UUID: "MIG-9"}}
	noted := slice
	noted.Serial = 5
	host := &resource.Host{Name: "lab", BootID: "boot",
		GPUs:   []resource.GPU{{Host: "lab", UUID: "GPU-0", MIG: true, Slices: []resource.LiveSlice{slice}}},
		Ledger: []resource.Page{{UUID: "GPU-0", BootID: "boot", Holders: []resource.Holder{{Lineage: lineage, Serial: 5, Slices: []resource.LiveSlice{noted}}}}},
		Bodies: []resource.Body{{ID: "c9", Session: "worker-1", Host: "lab", Runtime: "docker", State: resource.Running, SliceID: "MIG-9", Serial: 5}}}
	return resource.Prior{Lineage: lineage, Serial: 3, LastRun: 3, GPUs: []resource.PriorGPU{{Host: "lab", UUID: "GPU-0"}}, BootIDs: map[string]string{"lab": "boot"}}, host
}

// TestBehind checks that a state is older than its hosts only because of objects that a later run has certainly
// created and no run has given up.
func TestBehind(t *testing.T) {
	noSlice := func(h *resource.Host) { h.Ledger[0].Holders[0].Slices = nil }
	noContainer := func(h *resource.Host) { h.Bodies = nil }
	for _, test := range []struct {
		name   string
		change func(*resource.Prior, *resource.Host)
		behind bool
	}{
		{"a slice", func(_ *resource.Prior, h *resource.Host) { noContainer(h) }, true},
		{"a container", func(_ *resource.Prior, h *resource.Host) { noSlice(h) }, true},
		{"no lineage", func(p *resource.Prior, _ *resource.Host) { p.Lineage = "" }, false},
		{"nothing", func(_ *resource.Prior, h *resource.Host) { noContainer(h); noSlice(h) }, false},
		{"a slice of an older cosplay", func(_ *resource.Prior, h *resource.Host) { noContainer(h); h.Ledger[0].Holders[0].Slices[0].Serial = 0 }, false},
		{"a slice that was only going to be created", func(_ *resource.Prior, h *resource.Host) { noContainer(h); h.Ledger[0].Holders[0].Slices[0].UUID = "" }, false},
		{"a slice that does not exist", func(_ *resource.Prior, h *resource.Host) { noContainer(h); h.GPUs[0].Slices = nil }, false},
		{"a slice that was given up", func(p *resource.Prior, h *resource.Host) { noContainer(h); p.Forgotten = []string{"MIG-9"} }, false},
		{"a slice that another project imported", func(_ *resource.Prior, h *resource.Host) {
			noContainer(h)
			h.Ledger[0].Holders = append(h.Ledger[0].Holders, resource.Holder{Lineage: "other", Slices: h.Ledger[0].Holders[0].Slices})
		}, false},
		{"a slice of another project", func(_ *resource.Prior, h *resource.Host) { noContainer(h); h.Ledger[0].Holders[0].Lineage = "other" }, false},
		{"a GPU", func(p *resource.Prior, h *resource.Host) { noContainer(h); noSlice(h); p.GPUs = nil }, true},
		{"a GPU that was given up", func(p *resource.Prior, h *resource.Host) {
			noContainer(h)
			noSlice(h)
			p.GPUs, p.Forgotten = nil, []string{"GPU-0"}
		}, false},
		{"a GPU that is lost", func(p *resource.Prior, h *resource.Host) { noContainer(h); p.GPUs, h.GPUs = nil, nil }, false},
		{"a setting", func(_ *resource.Prior, h *resource.Host) {
			noContainer(h)
			noSlice(h)
			h.Ledger[0].Set = h.Ledger[0].Set.With(resource.PowerLimit, 0)
		}, true},
		{"a setting of a run that the state knows", func(p *resource.Prior, h *resource.Host) {
			noContainer(h)
			noSlice(h)
			h.Ledger[0].Set, p.LastRun = h.Ledger[0].Set.With(resource.PowerLimit, 0), 5
		}, false},
		{"a session that was removed", func(p *resource.Prior, h *resource.Host) {
			p.Sessions = known(h)
			noContainer(h)
			noSlice(h)
		}, true},
		{"a session that is lost since the last run", func(p *resource.Prior, h *resource.Host) {
			p.Sessions, p.Serial = known(h), 5
			noContainer(h)
			noSlice(h)
		}, false},
		{"a GPU that was released", func(_ *resource.Prior, h *resource.Host) {
			noContainer(h)
			h.Ledger, h.Released = nil, []string{"GPU-0"}
		}, true},
		{"a container of an older cosplay", func(_ *resource.Prior, h *resource.Host) { noSlice(h); h.Bodies[0].Serial = 0 }, false},
		{"a container that was given up", func(p *resource.Prior, h *resource.Host) { noSlice(h); p.Forgotten = []string{"c9"} }, false},
		{"a container that never ran", func(_ *resource.Prior, h *resource.Host) { noSlice(h); h.Leftovers = h.Bodies }, false},
		{"a container that the state has", func(p *resource.Prior, h *resource.Host) {
			noSlice(h)
			p.Sessions = known(h)
		}, false},
		{"a container that was replaced", func(p *resource.Prior, h *resource.Host) {
			noSlice(h)
			p.Sessions = known(h)
			p.Sessions[0].Body.ID = "c1"
		}, true},
		{"a container that another tool replaced", func(p *resource.Prior, h *resource.Host) {
			noSlice(h)
			p.Sessions, p.LastRun = known(h), 5
			p.Sessions[0].Body.ID = "c1"
		}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			prior, host := older()
			test.change(&prior, host)
			if got := salvage.Behind(prior, resource.Live{Hosts: []resource.Host{*host}}); got != test.behind {
				t.Errorf("behind is %v", got)
			}
		})
	}
}

func known(h *resource.Host) []resource.PriorSession {
	c := h.Bodies[0]
	return []resource.PriorSession{{Session: resource.Session{Address: resource.Nth("worker", 1), ID: c.Session, Runtime: c.Runtime, Slice: resource.Slice{Host: "lab", GPU: "GPU-0"}}, Body: &c}}
}

// TestCaughtUp checks that recovered sessions are complete, and that the state is then no longer behind.
func TestCaughtUp(t *testing.T) {
	prior, host := older()
	live := resource.Live{Hosts: []resource.Host{*host}}
	c := host.Bodies[0]
	remains := []resource.Remains{{Session: resource.Session{Address: resource.Nth("worker", 1), ID: c.Session, Runtime: c.Runtime}, Body: c, Proven: true}}
	ahead, certain, doubtful := salvage.Ahead(prior, live, remains)
	if len(certain) != 1 || len(doubtful) != 0 {
		t.Fatalf("certain %v, doubtful %v", certain, doubtful)
	}
	now, notes := salvage.Prior(salvage.Sources{Lineage: lineage, Known: prior, Live: ahead, Remains: certain})
	if len(notes) > 0 || len(now.Sessions) != 1 || now.Serial != 5 {
		t.Fatalf("%v, %+v", notes, now)
	}
	if s := now.Sessions[0]; s.Address != resource.Nth("worker", 1) || s.Handle == nil || s.Handle.UUID != "MIG-9" || s.Body == nil || s.Body.ID != "c9" {
		t.Errorf("%+v", s)
	}
	if salvage.Behind(now, live) {
		t.Error("it is still behind")
	}

	remains[0].Proven = false
	if _, certain, doubtful := salvage.Ahead(prior, live, remains); len(certain) != 0 || len(doubtful) != 1 {
		t.Errorf("what only labels claim: certain %v, doubtful %v", certain, doubtful)
	}
}

// TestGPUTakenUp checks that a GPU that the state gave up belongs to the project again once a later run is known to
// have created something on it.
func TestGPUTakenUp(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*resource.Host)
		taken  bool
	}{
		{"a slice", func(*resource.Host) {}, true},
		{"a container on the whole GPU", func(h *resource.Host) { h.Ledger[0].Holders[0].Slices = nil }, true},
		{"nothing", func(h *resource.Host) { h.Ledger[0].Holders[0].Slices, h.Bodies = nil, nil }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			prior, host := older()
			prior.GPUs, prior.Forgotten = nil, []string{"GPU-0"}
			test.change(host)
			live := resource.Live{Hosts: []resource.Host{*host}}
			var remains []resource.Remains
			for _, c := range host.Bodies {
				s := resource.Session{Address: resource.Nth("worker", 1), ID: c.Session, Runtime: c.Runtime, Slice: resource.Slice{Host: "lab", GPU: "GPU-0"}}
				remains = append(remains, resource.Remains{Session: s, Body: c, Proven: true})
			}
			ahead, certain, _ := salvage.Ahead(prior, live, remains)
			now, _ := salvage.Prior(salvage.Sources{Lineage: lineage, Known: prior, Live: ahead, Remains: certain})
			if _, taken := now.GPU("lab", "GPU-0"); taken != test.taken || now.HasForgotten("GPU-0") == test.taken {
				t.Errorf("taken up: %v; given up: %v", taken, now.Forgotten)
			}
		})
	}
}
