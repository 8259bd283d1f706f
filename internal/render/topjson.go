package render

import (
	"time"

	"cosplay/internal/public"
	"cosplay/internal/resource"
)

func (v TopView) data() any {
	return public.Top{Format: public.V1, Time: v.At.UTC().Format(time.RFC3339), HasDrift: v.drifted() > 0,
		GPUs: each(v.gpus, v.fleet.topGPU), Sessions: each(v.rows(), topSession)}
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

func topSession(r topRow) public.TopSession {
	out := public.TopSession{Address: r.Address.String(), Name: r.Address.Short(), Host: r.Slice.Host, State: r.state, Utilization: r.busy, LimitBytes: int(r.limit()),
		PeakMiB: r.use.PeakMiB, OutOfMemory: r.use.OutOfMemory, Processes: each(r.programs, func(p resource.Process) public.TopProcess {
			return public.TopProcess{PID: p.PID, Name: p.Name, MemoryMiB: p.MemoryMiB}
		})}
	if r.counted {
		out.UsedBytes = new(int(r.use.NowBytes))
	}
	return out
}
