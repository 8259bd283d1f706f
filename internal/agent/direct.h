/* NVML functions that go-nvml calls wrongly or at too high a cost, called in the library that it has loaded. */
#ifndef DIRECT_H
#define DIRECT_H

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

/* nvmlGpmMetricsGet_t of NVML's header, version 1: 8,424 bytes */
struct gpm {
    unsigned version, count;
    void *before, *after;
    struct {
        unsigned id;
        int answer;
        double value;
        const char *name, *long_name, *unit;
    } metrics[210];
};
typedef int (*gpm_metrics)(struct gpm *gpm);

/* gpm_metric returns one metric of the time between two samples. */
static int gpm_metric(const char *library, unsigned id, void *before, void *after, double *value)
{
    struct gpm gpm = {.version = 1, .count = 1, .before = before, .after = after, .metrics[0].id = id};
    gpm_metrics f = (gpm_metrics)function(library, "nvmlGpmMetricsGet");
    int answer = f ? f(&gpm) : FUNCTION_NOT_FOUND;
    *value = gpm.metrics[0].value;
    return answer ? answer : gpm.metrics[0].answer;
}

#endif
