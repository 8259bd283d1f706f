package sim

// #include "state.h"
import "C"

import (
	"fmt"

	"cosplay/internal/resource"
)

// Resize adds GPUs to the host, or removes the last ones, until it has one for each model; the others stay as they are.
// It fails, and changes nothing, if a GPU would become another model, or if a GPU to remove is not as it was created
// or inUse reports that it is used. The seed must be that of Create.
func (h *Host) Resize(models []resource.Model, opts Options, inUse func(uuid string) bool) error {
	data, err := newState(models, opts)
	if err != nil {
		return err
	}
	want := view(data)
	return h.locked(func(host *C.struct_sim_host) error {
		for i, gpu := range gpus(host) {
			switch {
			case i >= len(models):
				if !unused(&gpu) || inUse(text(gpu.uuid[:])) {
					return fmt.Errorf("GPU %d is in use", i)
				}
			case gpu.name != gpus(want)[i].name:
				return fmt.Errorf("GPU %d would become another model: it is simulated as %s", i, text(gpu.name[:]))
			}
		}
		if want.size > host.size {
			if err := h.file.Truncate(int64(want.size)); err != nil {
				return fmt.Errorf("cannot enlarge %s: %w", h.file.Name(), err)
			}
		}
		had := host.gpu_count
		host.gpu_count, host.size, host.simulates = want.gpu_count, want.size, want.simulates
		for i := had; i < want.gpu_count; i++ {
			gpus(host)[i] = gpus(want)[i]
		}
		return h.file.Truncate(int64(want.size))
	})
}

// unused reports whether a GPU has the settings of a new one, no GPU instance and no process.
func unused(gpu *C.struct_sim_gpu) bool {
	return !anyInstance(gpu) && !anyProcess(gpu) && gpu.mig == 0 && gpu.mig_pending == 0 && gpu.persistence == 0 &&
		gpu.lock_max_mhz == 0 && gpu.power_limit_mw == gpu.power_default_mw
}
