//go:build cgo && linux

#include "admin.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

struct placement {
    unsigned start, size;
};

struct nvml {
    void *library;
    const char *(*text)(int);
    int (*init)(void);
    int (*shutdown)(void);
    int (*device)(unsigned, void **);
    int (*instance)(void *, unsigned, void **);
    int (*create)(void *, unsigned, const struct placement *, void **);
    int (*instance_info)(void *, void *);
    int (*destroy)(void *);
    int (*create_compute)(void *, unsigned, void **);
    int (*compute)(void *, unsigned, void **);
    int (*destroy_compute)(void *);
};

static struct admin_error failed(const char *step, const char *why) { return (struct admin_error){step, strdup(why)}; }

static int load(struct nvml *nvml, const char *path)
{
    const struct {
        void *to;
        const char *name;
    } names[] = {
        {&nvml->text, "nvmlErrorString"},
        {&nvml->init, "nvmlInit_v2"},
        {&nvml->shutdown, "nvmlShutdown"},
        {&nvml->device, "nvmlDeviceGetHandleByIndex_v2"},
        {&nvml->instance, "nvmlDeviceGetGpuInstanceById"},
        {&nvml->create, "nvmlDeviceCreateGpuInstanceWithPlacement"},
        {&nvml->instance_info, "nvmlGpuInstanceGetInfo"},
        {&nvml->destroy, "nvmlGpuInstanceDestroy"},
        {&nvml->create_compute, "nvmlGpuInstanceCreateComputeInstance"},
        {&nvml->compute, "nvmlGpuInstanceGetComputeInstanceById"},
        {&nvml->destroy_compute, "nvmlComputeInstanceDestroy"},
    };
    nvml->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    for (unsigned i = 0; nvml->library && i < sizeof names / sizeof *names; i++) {
        void *symbol = dlsym(nvml->library, names[i].name);
        if (!symbol)
            return 0;
        memcpy(names[i].to, &symbol, sizeof symbol);
    }
    return nvml->library != NULL;
}

#define TRY(step, call)                              \
    do {                                             \
        int answer = (call);                         \
        if (answer)                                  \
            return failed(step, nvml->text(answer)); \
    } while (0)

static struct admin_error create(struct nvml *nvml, unsigned gpu, unsigned profile, struct placement placement,
                                 unsigned compute_profile, unsigned *id)
{
    void *device = NULL, *instance = NULL, *compute = NULL;
    struct {
        void *device;
        unsigned id, profile;
        struct placement placement;
    } info = {0};
    TRY("reach it", nvml->device(gpu, &device));
    TRY("create the GPU instance", nvml->create(device, profile, &placement, &instance));
    TRY("read the GPU instance", nvml->instance_info(instance, &info));
    int answer = nvml->create_compute(instance, compute_profile, &compute);
    if (answer) {
        nvml->destroy(instance);
        return failed("create the compute instance", nvml->text(answer));
    }
    *id = info.id;
    return (struct admin_error){0};
}

static struct admin_error destroy(struct nvml *nvml, unsigned gpu, unsigned id)
{
    void *device = NULL, *instance = NULL, *compute = NULL;
    TRY("reach it", nvml->device(gpu, &device));
    TRY("find the GPU instance", nvml->instance(device, id, &instance));
    for (unsigned i = 0; i < 8; i++)
        if (nvml->compute(instance, i, &compute) == 0)
            TRY("destroy the compute instance", nvml->destroy_compute(compute));
    TRY("destroy the GPU instance", nvml->destroy(instance));
    return (struct admin_error){0};
}

static struct admin_error start(struct nvml *nvml, const char *path)
{
    if (!load(nvml, path))
        return failed("load the simulated driver", dlerror());
    TRY("start the simulated driver", nvml->init());
    return (struct admin_error){0};
}

struct admin_error admin_create(const char *library, unsigned gpu, unsigned profile, unsigned start_slot, unsigned size,
                                unsigned compute_profile, unsigned *gpu_instance)
{
    struct nvml nvml = {0};
    struct admin_error error = start(&nvml, library);
    if (!error.why) {
        error = create(&nvml, gpu, profile, (struct placement){start_slot, size}, compute_profile, gpu_instance);
        nvml.shutdown();
    }
    if (nvml.library)
        dlclose(nvml.library);
    return error;
}

struct admin_error admin_destroy(const char *library, unsigned gpu, unsigned gpu_instance)
{
    struct nvml nvml = {0};
    struct admin_error error = start(&nvml, library);
    if (!error.why) {
        error = destroy(&nvml, gpu, gpu_instance);
        nvml.shutdown();
    }
    if (nvml.library)
        dlclose(nvml.library);
    return error;
}
