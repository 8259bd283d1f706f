package main

import (
	"context"
	"regexp"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
)

// TestPublish: what eight H200 publish is within the limits of the API, and no GPU can give more than it has.
func TestPublish(t *testing.T) {
	w := newWorld(t, "8 x h200")
	gpus, err := w.gpus(context.Background())
	check(t, err)
	pool := resources(nodeName, gpus, projects{}.sharingOf, nil).Pools[nodeName]
	label := regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
	sets, names := map[string]map[string]resourceapi.Counter{}, map[string]bool{}
	for _, s := range pool.Slices {
		if len(s.SharedCounters) > 0 && len(s.Devices) > 0 || len(s.SharedCounters) > maxSets || len(s.Devices) > maxDevices {
			t.Errorf("a slice has %d counter sets and %d devices", len(s.SharedCounters), len(s.Devices))
		}
		for _, set := range s.SharedCounters {
			if sets[set.Name] = set.Counters; len(set.Counters) > 32 {
				t.Errorf("%s has %d counters", set.Name, len(set.Counters))
			}
		}
	}
	taken := map[string]int64{} // if every device of 1g.18gb is allocated
	for _, s := range pool.Slices {
		for _, d := range s.Devices {
			if names[d.Name] || len(d.Name) > 63 || !label.MatchString(d.Name) || len(d.Attributes)+len(d.Capacity) > 32 {
				t.Errorf("the device %q: twice, or not as the API has it", d.Name)
			}
			names[d.Name] = true
			for _, c := range d.ConsumesCounters {
				for name, counter := range c.Counters {
					has, exists := sets[c.CounterSet][name]
					if !exists || counter.Value.Cmp(has.Value) > 0 {
						t.Errorf("%s takes %s of %s of %s", d.Name, counter.Value.String(), has.Value.String(), name)
					}
					if *d.Attributes["profile"].StringValue == "1g.18gb" {
						taken[c.CounterSet+name] += counter.Value.Value()
					}
				}
			}
		}
	}
	if len(sets) != 8 || len(names) != 8*(7+4+4+3+2+1+1+1)-8*4 && len(names) != 8*26 {
		t.Errorf("there are %d counter sets and %d devices", len(sets), len(names))
	}
	if taken[setOf(gpus[7])+"compute"] != 7 {
		t.Errorf("seven slices take %d compute slices", taken["gpu-7compute"])
	}
}
