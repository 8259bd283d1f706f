package docker

import (
	"cmp"
	"context"
	"math"

	"github.com/docker/docker/api/types/container"

	"cosplay/internal/resource"
)

func restartPolicy(b resource.ContainerSpec) container.RestartPolicy {
	return container.RestartPolicy{Name: container.RestartPolicyMode(b.Restart)}
}

// resources are the limits of a container in the engine's terms.
func resources(l resource.Limits) container.Resources {
	all := container.Resources{NanoCPUs: int64(math.Round(l.CPUs * 1e9)), Memory: int64(l.MemoryMiB) * mib}
	if pids := int64(l.PIDs); pids > 0 {
		all.PidsLimit = &pids
	}
	return all
}

// bounds are the present limits of a container.
func bounds(there *container.InspectResponse) *resource.Bounds {
	host := there.HostConfig
	if host == nil {
		return nil
	}
	b := resource.Bounds{
		MilliCPUs: int(math.Round(float64(host.NanoCPUs) / 1e6)),
		MemoryMiB: int(max(0, host.Memory) / mib),
		Restart:   cmp.Or(string(host.RestartPolicy.Name), string(container.RestartPolicyDisabled)),
	}
	if host.PidsLimit != nil {
		b.PIDs = int(max(0, *host.PidsLimit))
	}
	return &b
}

// hold restores the limits of a container that stays, if another program changed them. An
// added limit on CPUs or memory stays: the engine cannot remove it.
func (r Runtime) hold(ctx context.Context, s resource.Session, there *container.InspectResponse) error {
	now, wanted := bounds(there), s.Spec.Bounds()
	if now == nil || *now == wanted {
		return nil
	}
	limits := resources(s.Spec.Limits)
	limits.MemorySwap = 2 * limits.Memory // the engine's default
	if limits.PidsLimit == nil {
		limits.PidsLimit = new(int64)
		*limits.PidsLimit = -1
	}
	ctx, cancel := soon(ctx)
	defer cancel()
	_, err := r.Engine.client.ContainerUpdate(ctx, there.ID, container.UpdateConfig{Resources: limits, RestartPolicy: restartPolicy(s.Spec)})
	if err != nil {
		return explain("setting the limits of the container "+Name(s.ID), err, about(s, 0))
	}
	return nil
}
