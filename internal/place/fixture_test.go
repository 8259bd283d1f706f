package place

import (
	"fmt"
	"slices"
	"testing"

	"cosplay/catalog"
	"cosplay/internal/resource"
)

func model(key string) resource.Model {
	m, err := catalog.HostModel(key)
	if err != nil {
		panic(err)
	}
	return m
}

func target(key string) resource.Target {
	t, err := catalog.Target(key)
	if err != nil {
		panic(err)
	}
	return t
}

// rack returns a host with GPUs of these models, with MIG off and no slices.
func rack(host string, models ...string) []GPU {
	var gpus []GPU
	for i, key := range models {
		gpus = append(gpus, GPU{GPU: resource.GPU{
			Host: host, Index: i, UUID: fmt.Sprintf("GPU-%s%d", host, i), Model: model(key),
		}})
	}
	return gpus
}

func times(n int, key string) []string { return slices.Repeat([]string{key}, n) }

// ask returns n requests for a target on a host, with the default fit.
func ask(host, name string, n int, key string) []Request {
	var all []Request
	for i := range n {
		all = append(all, Request{
			Address: resource.Nth(name, i),
			Want:    resource.Request{Host: host, Target: key, Fit: resource.DefaultFit()},
			Target:  target(key),
		})
	}
	return all
}

// keep marks the placements of a result as existing: requests keep their slices, and GPUs keep their locks.
func keep(gpus []GPU, requests []Request, r Result) ([]GPU, []Request) {
	gpus, requests = slices.Clone(gpus), slices.Clone(requests)
	placed, setups := map[resource.Address]Placed{}, map[string]Setup{}
	for _, p := range r.Placed {
		placed[p.Address] = p
	}
	for _, s := range r.GPUs {
		setups[s.UUID] = s
	}
	for i := range requests {
		requests[i].Kept, requests[i].KeptMore = nil, nil
		if p, ok := placed[requests[i].Address]; ok {
			requests[i].Kept, requests[i].KeptMore = &p.Slice, p.More
		}
	}
	for i := range gpus {
		gpus[i].LockMHz = nil
		if s, ok := setups[gpus[i].UUID]; ok {
			if mhz, locks := s.Settings.Get(resource.SMClock); locks {
				gpus[i].LockMHz = &mhz
			}
			if s.Settings.Has(resource.MIGMode) {
				gpus[i].MIG = s.Settings.Is(resource.MIGMode, resource.On)
			}
		}
	}
	return gpus, requests
}

// foreign returns a slice on a GPU that cosplay does not own.
func foreign(g GPU, profile string, start int) resource.LiveSlice {
	p, ok := g.Model.Profile(profile)
	if !ok {
		panic(profile)
	}
	return resource.LiveSlice{Slice: resource.Slice{Host: g.Host, GPU: g.UUID, Profile: profile, Start: start, Size: p.MemorySlices}}
}

func check(t *testing.T, gpus []GPU, requests []Request, r Result) {
	t.Helper()
	for _, problem := range illegal(gpus, requests, r) {
		t.Errorf("illegal: %s\n%s", problem, r)
	}
}
