package sim

// #cgo LDFLAGS: -ldl
// #include <stdlib.h>
// #include "admin.h"
// #include "state.h"
import "C"

import (
	"fmt"
	"slices"
	"unsafe"
)

// CreateSlice creates a slice as an admin would with nvidia-smi: a GPU instance of a profile at a start, and one
// compute instance that fills it. It returns the id of the GPU instance. If the driver refuses, it returns an error.
func (h *Host) CreateSlice(gpu int, profile string, start int) (int, error) {
	var found C.struct_sim_profile
	err := h.onGPU(gpu, func(g *C.struct_sim_gpu) error {
		if g.memory_slices == 0 {
			return fmt.Errorf("GPU %d has no MIG", gpu)
		}
		all := g.profiles[:g.profile_count]
		at := slices.IndexFunc(all, func(p C.struct_sim_profile) bool { return text(p.name[:]) == profile })
		if at < 0 {
			return fmt.Errorf("GPU %d has no profile %q; it has %s", gpu, profile, profileNames(all))
		}
		found = all[at]
		return nil
	})
	if err != nil {
		return 0, err
	}
	if start < 0 || !slices.Contains(found.starts[:found.start_count], C.uint32_t(start)) {
		return 0, fmt.Errorf("%s cannot start at %d; it can at %v", profile, start, found.starts[:found.start_count])
	}
	library := C.CString(LibraryPath(h.dir))
	defer C.free(unsafe.Pointer(library))
	var id C.uint
	failed := C.admin_create(library, C.uint(gpu), C.uint(found.id), C.uint(start), C.uint(found.memory_slices),
		C.uint(computeProfile(int(found.compute_slices))), &id)
	return int(id), adminError(gpu, failed)
}

// DestroySlice removes a GPU instance with its compute instances, whichever program created it. It fails while
// programs run there.
func (h *Host) DestroySlice(gpu, gpuInstance int) error {
	err := h.onGPU(gpu, func(g *C.struct_sim_gpu) error {
		if gpuInstance < 0 || gpuInstance >= len(g.instances) || g.instances[gpuInstance].used == 0 {
			return fmt.Errorf("GPU %d has no GPU instance %d; cosplay sim show lists those that there are", gpu, gpuInstance)
		}
		return nil
	})
	if err != nil {
		return err
	}
	library := C.CString(LibraryPath(h.dir))
	defer C.free(unsafe.Pointer(library))
	return adminError(gpu, C.admin_destroy(library, C.uint(gpu), C.uint(gpuInstance)))
}

func adminError(gpu int, failed C.struct_admin_error) error {
	if failed.why == nil {
		return nil
	}
	defer C.free(unsafe.Pointer(failed.why))
	return fmt.Errorf("GPU %d: cannot %s: %s", gpu, C.GoString(failed.step), C.GoString(failed.why))
}

// computeProfile returns NVML's number of the compute instance profile with so many slices.
func computeProfile(slices int) int {
	if slices == 7 {
		return 4
	}
	return slices - 1
}

func profileNames(profiles []C.struct_sim_profile) []string {
	var names []string
	for _, p := range profiles {
		names = append(names, text(p.name[:]))
	}
	return names
}
