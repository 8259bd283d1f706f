package project

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"cosplay/internal/disguise"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
)

// TestEnded: the memory of an account counts as in use unless the driver lists no program on the session's GPU, and it is
// what it was then.
func TestEnded(t *testing.T) {
	instance := 3
	slice := func(start, gi int) resource.LiveSlice {
		return resource.LiveSlice{Slice: resource.Slice{Host: "lab", GPU: "GPU-a", Profile: "1g.18gb", Start: start, Size: 1}, Handle: resource.Handle{GPUInstance: gi, UUID: "MIG-" + string(rune('0'+gi))}}
	}
	gpu := resource.GPU{Host: "lab", UUID: "GPU-a", MIG: true, Slices: []resource.LiveSlice{slice(0, 3), slice(1, 4)}, Processes: []resource.Process{{PID: 1, GPUInstance: &instance}}}
	world := func(g resource.GPU) resource.Live {
		live := resource.Live{Hosts: []resource.Host{{Name: "lab", GPUs: []resource.GPU{g}}}}
		live.Hosts[0].Index()
		return live
	}
	var prior resource.Prior
	for i, s := range gpu.Slices {
		one := resource.PriorSession{Handle: new(s.Handle)}
		one.Address, one.Slice = resource.Nth("worker", i), s.Slice
		prior.Sessions = append(prior.Sessions, one)
	}
	counted := func() map[resource.Address]resource.Use {
		return map[resource.Address]resource.Use{resource.Nth("worker", 0): {NowBytes: 10, PeakMiB: 1}, resource.Nth("worker", 1): {NowBytes: 20, PeakMiB: 1}}
	}
	unlisted := gpu
	unlisted.Processes, unlisted.Degraded = nil, []resource.Degradation{{Feature: resource.ReadingProcesses}}
	for name, test := range map[string]struct {
		live resource.Live
		want [2]int64
	}{
		"a program on one":                 {world(gpu), [2]int64{10, 0}},
		"a driver that lists no processes": {world(unlisted), [2]int64{10, 20}},
		"nothing was read":                 {resource.Live{}, [2]int64{10, 20}},
	} {
		all := counted()
		free(all, ended(all, prior, test.live))
		for i, want := range test.want {
			if got := all[resource.Nth("worker", i)]; got.NowBytes != want || got.PeakMiB != 1 {
				t.Errorf("%s: worker[%d] %+v, want %d", name, i, got, want)
			}
		}
	}
	all := counted()
	found := ended(all, prior, world(gpu))
	all[resource.Nth("worker", 1)] = resource.Use{NowBytes: 21}
	if free(all, found); all[resource.Nth("worker", 1)].NowBytes != 21 {
		t.Error("a program that has started since counts as ended")
	}
}

// counting is a runtime whose sessions use as many MiB as they were read.
type counting struct {
	runtime.Runtime
	reads map[string]int
}

func (c counting) Usage(session string) (disguise.Usage, error) {
	c.reads[session]++
	return disguise.Usage{Total: int64(c.reads[session]) << 20}, nil
}

// TestAccounts: accounts are read in turn, so that none is left out where time is short.
func TestAccounts(t *testing.T) {
	in := counting{reads: map[string]int{}}
	now := time.Now()
	a := accounts{uses: map[resource.Address]resource.Use{}, last: now}
	for i := range 100 {
		s := &resource.PriorSession{}
		s.Address, s.ID = resource.Nth("worker", i), fmt.Sprint(i)
		a.here = append(a.here, account{s, in})
	}
	for round := range 100/leastAccounts + 1 {
		if changed := a.read(&Fleet{}, resource.Prior{}, now); len(changed) != leastAccounts || len(a.uses) != min(100, (round+1)*leastAccounts) {
			t.Errorf("in round %d, %d accounts were read, and %d so far", round, len(changed), len(a.uses))
		}
	}
	if first, last := a.uses[resource.Nth("worker", 0)], a.uses[resource.Nth("worker", 99)]; first.NowBytes != 2<<20 || last.NowBytes != 1<<20 {
		t.Errorf("the first has %+v, the last %+v", first, last)
	}
	a.read(&Fleet{}, resource.Prior{}, now.Add(time.Hour))
	if got := a.uses[resource.Nth("worker", 99)]; got.NowBytes != 2<<20 {
		t.Errorf("with time enough, the last has %+v", got)
	}
}

// TestDifferences: sessions that came, went, or use something else.
func TestDifferences(t *testing.T) {
	one := resource.One
	found := differences(map[resource.Address]resource.Use{one("same"): {NowBytes: 1}, one("other"): {NowBytes: 1}, one("gone"): {}},
		map[resource.Address]resource.Use{one("same"): {NowBytes: 1}, one("other"): {NowBytes: 2}, one("new"): {}})
	names := prose.Each(found, resource.Address.Short)
	if slices.Sort(names); !slices.Equal(names, []string{"gone", "new", "other"}) {
		t.Errorf("they differ in %v", names)
	}
}

// TestBusyGPUs: a session on whole GPUs is as busy as they are on average, where the driver says it of each.
func TestBusyGPUs(t *testing.T) {
	live := resource.Live{Hosts: []resource.Host{{Name: "lab", GPUs: []resource.GPU{
		{Host: "lab", UUID: "GPU-a", UtilizationPercent: new(100)}, {Host: "lab", UUID: "GPU-b", UtilizationPercent: new(50)}, {Host: "lab", UUID: "GPU-c"}}}}}
	live.Hosts[0].Index()
	on := func(profile string, uuids ...string) (s resource.PriorSession) {
		for _, uuid := range uuids {
			s.More = append(s.More, resource.Slice{Host: "lab", GPU: uuid, Profile: profile})
		}
		s.Slice, s.More = s.More[0], s.More[1:]
		return s
	}
	for _, test := range []struct {
		session resource.PriorSession
		want    int
		known   bool
	}{{on("", "GPU-a"), 100, true}, {on("", "GPU-a", "GPU-b"), 75, true}, {on("", "GPU-b", "GPU-c"), 0, false}, {on("1g.18gb", "GPU-a"), 0, false}, {on("", "GPU-none"), 0, false}} {
		if percent, known := busyGPUs(&test.session, live); percent != test.want || known != test.known {
			t.Errorf("on %v: %d, %v", test.session.On(), percent, known)
		}
	}
}

// TestWithGPUs: a snapshot gets the GPUs of a later one, except those of a host that could not be read.
func TestWithGPUs(t *testing.T) {
	read := func(unreachable string, uuids ...string) resource.Live {
		h := resource.Host{Name: "lab", Unreachable: unreachable, Bodies: []resource.Body{{Session: "one"}}}
		for _, uuid := range uuids {
			h.GPUs = append(h.GPUs, resource.GPU{Host: "lab", UUID: uuid})
		}
		h.Index()
		return resource.Live{Hosts: []resource.Host{h}}
	}
	for name, test := range map[string]struct {
		later resource.Live
		want  []string
	}{
		"another GPU is first": {read("", "GPU-b", "GPU-a"), []string{"GPU-b", "GPU-a"}},
		"it cannot be read":    {read("no route"), []string{"GPU-a"}},
	} {
		got := withGPUs(read("", "GPU-a"), test.later)
		for i, uuid := range test.want {
			if g, there := got.GPU("lab", uuid); !there || g.UUID != uuid || got.Hosts[0].GPUs[i].UUID != uuid || len(got.Hosts[0].Bodies) != 1 || got.Hosts[0].Unreachable != "" {
				t.Errorf("%s: %+v", name, got)
			}
		}
	}
}
