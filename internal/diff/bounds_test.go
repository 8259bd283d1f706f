package diff

import (
	"fmt"
	"strings"
	"testing"

	"cosplay/internal/resource"
)

// TestRebound: each bound has its attribute's name, and the engine cannot remove a limit on CPUs or memory.
func TestRebound(t *testing.T) {
	limited := resource.ContainerSpec{Image: "debian:12", Restart: "no", Limits: resource.Limits{CPUs: 0.29, MemoryMiB: 256, PIDs: 50}}
	free := resource.ContainerSpec{Image: "debian:12", Restart: "unless-stopped"}
	for _, test := range []struct {
		name string
		made resource.ContainerSpec
		now  func(*resource.Body)
		want string
	}{
		{"as it was made", limited, func(*resource.Body) {}, ""},
		{"more CPUs", limited, func(c *resource.Body) { c.Bounds.MilliCPUs = 1500 }, "limits.cpus: 0.29 -> 1.5"},
		{"less memory", limited, func(c *resource.Body) { c.Bounds.MemoryMiB = 64 }, "limits.memory: 256 -> 64"},
		{"no limit of processes", limited, func(c *resource.Body) { c.Bounds.PIDs = 0 }, "limits.pids: 50 -> <nil>"},
		{"another policy", limited, func(c *resource.Body) { c.Bounds.Restart = "always" }, "restart: no -> always"},
		{"two at once", limited, func(c *resource.Body) { c.Bounds.MilliCPUs, c.Bounds.Restart = 500, "always" }, "limits.cpus: 0.29 -> 0.5, restart: no -> always"},
		{"CPUs where there was no limit", free, func(c *resource.Body) { c.Bounds.MilliCPUs = 500 }, "limits.cpus: <nil> -> 0.5 (stays)"},
		{"memory where there was no limit", free, func(c *resource.Body) { c.Bounds.MemoryMiB = 1024 }, "limits.memory: <nil> -> 1024 (stays)"},
		{"processes where there was no limit", free, func(c *resource.Body) { c.Bounds.PIDs = 9 }, "limits.pids: <nil> -> 9"},
		{"imported", limited, func(c *resource.Body) { c.Foreign, c.Bounds.PIDs = true, 9 }, ""},
		{"not asked for", limited, func(c *resource.Body) { c.Bounds = nil }, ""},
	} {
		bounds := test.made.Bounds()
		c := resource.Body{Bounds: &bounds}
		test.now(&c)
		made := resource.PriorSession{Session: resource.Session{Spec: test.made}, Body: &resource.Body{Foreign: c.Foreign}}
		c.Foreign = false // which the state knows, and no look
		var got []string
		canRepair := false
		for _, b := range rebound(made, c) {
			words := fmt.Sprintf("%s: %v -> %v", b.Kind, b.From, b.To)
			if b.stays() {
				words += " (stays)"
			}
			canRepair = canRepair || !b.stays()
			got = append(got, words)
		}
		if said := strings.Join(got, ", "); said != test.want || repairable(made, c) != canRepair {
			t.Errorf("%s: %q, not %q", test.name, said, test.want)
		}
	}
}

// TestBoundsDrift: what docker update did is drift. What only a new container repairs is informational, and changes
// nothing.
func TestBoundsDrift(t *testing.T) {
	spec := resource.ContainerSpec{Image: "debian:12", Restart: "no", Limits: resource.Limits{PIDs: 50}}
	was := resource.PriorSession{Session: resource.Session{ID: "one", Runtime: "docker", Spec: spec}, Body: &resource.Body{}}
	was.Slice.Host = "lab"
	now := resource.Body{Session: "one", Runtime: "docker", State: resource.Running, Bounds: &resource.Bounds{Restart: "no", PIDs: 9, MemoryMiB: 64}}
	all := sessionDrift(was, resource.Live{Hosts: []resource.Host{{Name: "lab", Bodies: []resource.Body{now}}}})
	if len(all) != 2 || all[0].Class != BodyLimited || !all[0].Informational || all[1].Class != BodyChanged || all[1].Informational {
		t.Errorf("%+v", all)
	}
}

// TestReplacedDrift: what was replaced on the host counts as drift if the session mounts it, and changes nothing.
func TestReplacedDrift(t *testing.T) {
	was := resource.PriorSession{Session: resource.Session{ID: "one", Runtime: "docker"}, Body: &resource.Body{}}
	was.Slice.Host, was.Workspace = "lab", "/w"
	was.Spec = resource.ContainerSpec{Image: "debian:12", Volumes: []resource.Volume{{Source: "/a.conf", Target: "/a"}, {Source: "/b", Target: "/b"}}}
	now := resource.Body{Session: "one", Runtime: "docker", State: resource.Running, Replaced: []string{"/a.conf", "/sessions/one", "/w"}}
	all := sessionDrift(was, resource.Live{Hosts: []resource.Host{{Name: "lab", Bodies: []resource.Body{now}}}})
	if len(all) != 2 || all[0].Name != "/w" || all[1].Name != "/a.conf" || all[1].Class != MountReplaced || all[1].Informational || repairable(was, now) {
		t.Errorf("%+v", all)
	}
}
