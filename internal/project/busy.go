package project

import (
	"context"
	"maps"
	"slices"

	"cosplay/internal/diff"
	"cosplay/internal/resource"
)

// busy is how busy the GPUs of sessions are, in percent, where the driver says it. It measures MIG slices for a tenth of
// a second.
func (l *Fleet) busy(ctx context.Context, prior resource.Prior, live resource.Live) map[resource.Address]int {
	all, on := map[resource.Address]int{}, map[string]map[resource.GPUInstance][]resource.Address{}
	for i := range prior.Sessions {
		s := &prior.Sessions[i]
		if own, there := diff.OwnSlice(*s, live); there {
			if on[own.Host] == nil {
				on[own.Host] = map[resource.GPUInstance][]resource.Address{}
			}
			at := resource.GPUInstance{GPU: own.GPU, ID: own.GPUInstance}
			on[own.Host][at] = append(on[own.Host][at], s.Address)
		} else if percent, known := busyGPUs(s, live); known {
			all[s.Address] = percent
		}
	}
	for host, sessions := range on {
		instances := slices.Collect(maps.Keys(sessions))
		h, open := l.Machine.Hosts()[host]
		if !open {
			continue
		}
		percents, err := h.Agent.Activity(ctx, instances)
		if err != nil {
			continue // the next reading of the host reports why
		}
		for i, at := range instances {
			for _, a := range sessions[at] {
				if percents[i] != resource.ActivityUnknown {
					all[a] = percents[i]
				}
			}
		}
	}
	return all
}

// busyGPUs is the mean of a session's whole GPUs.
func busyGPUs(s *resource.PriorSession, live resource.Live) (percent int, known bool) {
	sum, on := 0, s.On()
	for _, at := range on {
		g, _ := live.GPU(at.Host, at.UUID)
		if !s.Slice.Whole() || g.UtilizationPercent == nil {
			return 0, false
		}
		sum += *g.UtilizationPercent
	}
	return sum / max(1, len(on)), len(on) > 0
}
