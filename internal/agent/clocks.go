package agent

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdlib.h>

typedef int (*handle_by_uuid)(const char *uuid, void **device);
typedef int (*memory_clocks)(void *device, unsigned *count, unsigned *clocks);
typedef int (*graphics_clocks)(void *device, unsigned memory, unsigned *count, unsigned *clocks);

// The functions answer NVML's code; 13 is its "function not found".
static void *function(const char *library, const char *name)
{
	void *lib = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
	if (!lib)
		return 0;
	void *f = dlsym(lib, name);
	dlclose(lib); // go-nvml keeps it open
	return f;
}

static int device_handle(const char *library, const char *uuid, void **device)
{
	handle_by_uuid f = (handle_by_uuid)function(library, "nvmlDeviceGetHandleByUUID");
	return f ? f(uuid, device) : 13;
}

static int supported_memory_clocks(const char *library, void *device, unsigned *count, unsigned *clocks)
{
	memory_clocks f = (memory_clocks)function(library, "nvmlDeviceGetSupportedMemoryClocks");
	return f ? f(device, count, clocks) : 13;
}

static int supported_graphics_clocks(const char *library, void *device, unsigned memory, unsigned *count, unsigned *clocks)
{
	graphics_clocks f = (graphics_clocks)function(library, "nvmlDeviceGetSupportedGraphicsClocks");
	return f ? f(device, memory, count, clocks) : 13;
}
*/
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
