/* Calls of NVML functions through the library that go-nvml has loaded. */
#ifndef CLOCKS_H
#define CLOCKS_H

#include <dlfcn.h>
#include <stdlib.h>

typedef int (*handle_by_uuid)(const char *uuid, void **device);
typedef int (*memory_clocks)(void *device, unsigned *count, unsigned *clocks);
typedef int (*graphics_clocks)(void *device, unsigned memory, unsigned *count, unsigned *clocks);

enum { FUNCTION_NOT_FOUND = 13 }; /* NVML's code */

static void *function(const char *library, const char *name)
{
    void *lib = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    if (!lib)
        return 0;
    void *f = dlsym(lib, name);
    dlclose(lib); /* go-nvml keeps it open */
    return f;
}

static int device_handle(const char *library, const char *uuid, void **device)
{
    handle_by_uuid f = (handle_by_uuid)function(library, "nvmlDeviceGetHandleByUUID");
    return f ? f(uuid, device) : FUNCTION_NOT_FOUND;
}

static int supported_memory_clocks(const char *library, void *device, unsigned *count, unsigned *clocks)
{
    memory_clocks f = (memory_clocks)function(library, "nvmlDeviceGetSupportedMemoryClocks");
    return f ? f(device, count, clocks) : FUNCTION_NOT_FOUND;
}

static int supported_graphics_clocks(const char *library, void *device, unsigned memory, unsigned *count,
                                     unsigned *clocks)
{
    graphics_clocks f = (graphics_clocks)function(library, "nvmlDeviceGetSupportedGraphicsClocks");
    return f ? f(device, memory, count, clocks) : FUNCTION_NOT_FOUND;
}

#endif
