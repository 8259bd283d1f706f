//go:build cgo && linux

package agent

// #cgo LDFLAGS: -ldl
// #include "direct.h"
import "C"

import (
	"slices"
	"unsafe"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// clockList lists the SM clocks (MHz, ascending) that the GPU runs at with its highest memory clock. go-nvml's own
// calls have room for a single number and so can only fail; these ask the library that go-nvml has loaded already.
func (d device) clockList() ([]int, error) {
	path, id := C.CString(d.lib.path), C.CString(d.uuid)
	defer C.free(unsafe.Pointer(path))
	defer C.free(unsafe.Pointer(id))
	var handle unsafe.Pointer
	if err := d.call("nvmlDeviceGetHandleByUUID", func() nvml.Return {
		return nvml.Return(C.device_handle(path, id, &handle))
	}); err != nil {
		return nil, err
	}
	memory, err := d.memoryClock()
	if _, lacks := degradation(err); lacks {
		var clocks []int
		clocks, err = d.clocks("nvmlDeviceGetSupportedMemoryClocks", func(count, list *C.uint) C.int {
			return C.supported_memory_clocks(path, handle, count, list)
		})
		if len(clocks) > 0 {
			memory = uint32(clocks[len(clocks)-1])
		}
	}
	if err != nil {
		return nil, err
	}
	return d.clocks("nvmlDeviceGetSupportedGraphicsClocks", func(count, list *C.uint) C.int {
		return C.supported_graphics_clocks(path, handle, C.uint(memory), count, list)
	})
}

func (d device) clocks(name string, call func(count, list *C.uint) C.int) ([]int, error) {
	list := make([]C.uint, 1024)
	count := C.uint(len(list))
	if err := d.call(name, func() nvml.Return { return nvml.Return(call(&count, &list[0])) }); err != nil {
		return nil, err
	}
	clocks := make([]int, count)
	for i := range clocks {
		clocks[i] = int(list[i])
	}
	slices.Sort(clocks)
	return slices.Compact(clocks), nil
}
