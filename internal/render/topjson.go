package render

import (
	"time"

	"cosplay/internal/public"
	"cosplay/internal/resource"
)

func (v TopView) data() any {
	utc := func(at time.Time) string { return at.UTC().Format(time.RFC3339) }
	return public.Top{Format: public.V1, Time: utc(v.At), GPUsTime: utc(v.GPUsAt), AllTime: utc(v.AllAt), HasDrift: v.drifted() > 0,
		GPUs: each(v.gpus, v.fleet.topGPU), Sessions: each(v.rows(), v.topSession)}
}

func (f fleet) topGPU(one gpuLine) public.TopGPU {
	g := *one.GPU
	out := public.TopGPU{Host: g.Host, UUID: g.UUID, Index: g.Index, Utilization: g.UtilizationPercent, SMClockMHz: g.SMClockMHz, PowerDrawW: watts(g.DrawMW),
		PowerLimitW: watts(g.PowerMW), Temperature: g.TemperatureC, MemoryUsed: g.MemoryUsedMiB, MemoryMiB: g.Model.MemoryMiB, Processes: len(g.Processes)}
	if state, mhz := f.lock(g); state == lockHeld {
		out.ClockLockMHz = &mhz
	}
	return out
}

func (v TopView) topSession(r topRow) public.TopSession {
	use, counted := v.Used[r.address]
	out := public.TopSession{Address: r.Address.String(), Name: r.Address.Short(), Host: r.Slice.Host, State: r.state, Utilization: v.busy(r), LimitBytes: int(r.limit()),
		PeakMiB: use.PeakMiB, OutOfMemory: use.OutOfMemory, Processes: each(r.programs, func(p resource.Process) public.TopProcess {
			return public.TopProcess{PID: p.PID, Name: p.Name, MemoryMiB: p.MemoryMiB}
		})}
	if counted {
		out.UsedBytes = new(int(use.NowBytes))
	}
	return out
}
