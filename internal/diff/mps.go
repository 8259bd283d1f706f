package diff

import (
	"fmt"

	"cosplay/internal/resource"
)

// setUpMPS starts, changes or ends the control daemons of MPS of a GPU and its slices.
func (c *GPUChange) setUpMPS(wants, helds resource.Daemons, live resource.Live) {
	for _, held := range helds.All() {
		if _, wanted := wants.Find(held.Folder); !wanted {
			c.StopMPS = append(c.StopMPS, held)
			c.Fields = append(c.Fields, Field{Kind: FieldMPS, Name: DaemonName(held), From: MPSNow(held, live, c.Host), To: IsStopped, Reason: resource.Reason{Kind: resource.NoMoreMPS}})
		}
	}
	for _, want := range wants.All() {
		held, had := helds.Find(want.Folder)
		now := MPSNow(want, live, c.Host)
		if !had && now == IsMissing {
			now = nil // and not lost
		}
		if to := MPS(want); now != to || !had || held != want {
			c.RunMPS = append(c.RunMPS, want)
			c.Fields = append(c.Fields, Field{Kind: FieldMPS, Name: DaemonName(want), From: now, To: to, Reason: resource.Reason{Kind: resource.OneProgram}})
		}
	}
}

// DaemonName names the MIG slice or the GPUs that a daemon serves; "" for one whole GPU.
func DaemonName(m resource.MPS) string {
	switch {
	case m.GPUs != "":
		return fmt.Sprintf("%d GPUs", m.Devices())
	case m.Profile == "":
		return ""
	}
	return fmt.Sprintf("%s, slot %d", m.Profile, m.Start)
}

// MPSNow is a daemon as it is: the wanted one if it runs with the wanted defaults.
func MPSNow(want resource.MPS, live resource.Live, host string) Value {
	h, _ := live.Host(host)
	now, there := h.MPS.Daemon(want.Folder)
	switch {
	case there && now.Silent != "":
		return IsSilent
	case !there || !now.Running:
		return IsMissing
	case now.Has(want):
		return MPS(want)
	}
	if now.HasMemory(want.MemoryMiB) {
		now.MemoryMiB = want.MemoryMiB
	}
	now.Profile, now.Start, now.GPUs = want.Profile, want.Start, want.GPUs
	return MPS(now.MPS)
}
