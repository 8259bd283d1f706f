package agent

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdlib.h>

typedef int (*handle_by_uuid)(const char *uuid, void **device);
typedef int (*graphics_clocks)(void *device, unsigned memory, unsigned *count, unsigned *clocks);

// Answers NVML's code; 13 is its "function not found".
static int supported_clocks(const char *library, const char *uuid, unsigned memory, unsigned *count, unsigned *clocks)
{
	void *lib = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
	if (!lib)
		return 13;
	handle_by_uuid handle = (handle_by_uuid)dlsym(lib, "nvmlDeviceGetHandleByUUID");
	graphics_clocks list = (graphics_clocks)dlsym(lib, "nvmlDeviceGetSupportedGraphicsClocks");
	void *device = 0;
	int ret = handle && list ? handle(uuid, &device) : 13;
	if (ret == 0)
		ret = list(device, memory, count, clocks);
	dlclose(lib);
	return ret;
}
*/
import "C"

import (
	"slices"
	"unsafe"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// supportedClocks lists the SM clocks (MHz, ascending) that a GPU runs at with
// a memory clock. go-nvml's own call has room for a single number and so can
// only fail; this one asks the library that go-nvml has loaded already.
func supportedClocks(library, uuid string, memoryMHz uint32) ([]int, nvml.Return) {
	path, id := C.CString(library), C.CString(uuid)
	defer C.free(unsafe.Pointer(path))
	defer C.free(unsafe.Pointer(id))
	list := make([]C.uint, 1024)
	count := C.uint(len(list))
	if ret := C.supported_clocks(path, id, C.uint(memoryMHz), &count, &list[0]); ret != 0 {
		return nil, nvml.Return(ret)
	}
	clocks := make([]int, count)
	for i := range clocks {
		clocks[i] = int(list[i])
	}
	slices.Sort(clocks)
	return slices.Compact(clocks), nvml.SUCCESS
}
