/* The head of every call: lock, faults, handles. */
#include "sim.h"

/*
 * A handle is an address in this table, which nothing reads or writes: per GPU
 * one place for itself, 16 for GPU instances, 128 for their compute instances,
 * which are the MIG devices at the same time.
 */
enum { PLACES = 256, FIRST_INSTANCE = 1, FIRST_COMPUTE = 32 };
static char places[(size_t)SIM_MAX_GPUS * PLACES];

static void *place(const struct sim_gpu *gpu, unsigned offset)
{
    return places + (size_t)gpu_index(gpu) * PLACES + offset;
}

unsigned gpu_index(const struct sim_gpu *gpu) { return (unsigned)(gpu - host->gpus); }

unsigned instance_id(const struct sim_gpu *gpu, const struct sim_gpu_instance *instance)
{
    return (unsigned)(instance - gpu->instances);
}

unsigned compute_id(const struct sim_gpu_instance *instance, const struct sim_compute_instance *compute)
{
    return (unsigned)(compute - instance->compute);
}

static unsigned compute_place(const struct sim_gpu *gpu, const struct sim_gpu_instance *instance,
                              const struct sim_compute_instance *compute)
{
    return FIRST_COMPUTE + instance_id(gpu, instance) * SIM_MAX_COMPUTE_INSTANCES + compute_id(instance, compute);
}

nvmlDevice_t gpu_handle(const struct sim_gpu *gpu) { return (nvmlDevice_t){place(gpu, 0)}; }

nvmlGpuInstance_t gpu_instance_handle(const struct sim_gpu *gpu, const struct sim_gpu_instance *instance)
{
    return (nvmlGpuInstance_t){place(gpu, FIRST_INSTANCE + instance_id(gpu, instance))};
}

nvmlComputeInstance_t compute_instance_handle(const struct sim_gpu *gpu, const struct sim_gpu_instance *instance,
                                              const struct sim_compute_instance *compute)
{
    return (nvmlComputeInstance_t){place(gpu, compute_place(gpu, instance, compute))};
}

nvmlDevice_t mig_handle(const struct sim_gpu *gpu, const struct sim_gpu_instance *instance,
                        const struct sim_compute_instance *compute)
{
    return (nvmlDevice_t){place(gpu, compute_place(gpu, instance, compute))};
}

int is_gpu(nvmlDevice_t device)
{
    const char *at = (const char *)device.handle;
    return at >= places && at < places + sizeof places && (size_t)(at - places) % PLACES == 0;
}

/* Looks up the object of a handle; returns 0 if it no longer exists. */
static int resolve(struct call *call, const void *handle)
{
    const char *at = handle;
    if (at < places || at >= places + (size_t)host->gpu_count * PLACES)
        return 0;
    unsigned offset = (unsigned)(at - places) % PLACES;
    call->gpu = &host->gpus[(at - places) / PLACES];
    if (offset == 0)
        return 1;
    if (offset >= FIRST_INSTANCE && offset < FIRST_INSTANCE + SIM_MAX_GPU_INSTANCES) {
        call->instance = &call->gpu->instances[offset - FIRST_INSTANCE];
        return call->instance->used != 0;
    }
    if (offset < FIRST_COMPUTE || offset >= FIRST_COMPUTE + SIM_MAX_GPU_INSTANCES * SIM_MAX_COMPUTE_INSTANCES)
        return 0;
    offset -= FIRST_COMPUTE;
    call->instance = &call->gpu->instances[offset / SIM_MAX_COMPUTE_INSTANCES];
    call->compute = &call->instance->compute[offset % SIM_MAX_COMPUTE_INSTANCES];
    return call->instance->used && call->compute->used;
}

/* A fault set for nvmlInit is for nvmlInit_v2 too: programs differ in which they call. */
static int is_for(const struct sim_fault *fault, const char *function)
{
    if (!fault->function[0] || !starts_with(function, fault->function))
        return 0;
    const char *rest = function + length(fault->function);
    return !*rest || (rest[0] == '_' && rest[1] == 'v' && rest[2] && !rest[3]);
}

/* Counts a fault down; true if it affects this call. gpu is 0 until the GPU of the call is known. */
static int strikes(struct sim_fault *fault, const char *function, uint32_t gpu)
{
    if (fault->gpu != gpu || fault->action == SIM_FAULT_ABSENT || !is_for(fault, function))
        return 0;
    if (fault->nth <= 1)
        return 1;
    if (state_writable())
        fault->nth--;
    return 0;
}

static __attribute__((noreturn)) void hang(void)
{
    for (;;)
        sys_sleep_ms(60 * 1000);
}

/* True when the call is over before it began. */
static int fault(struct call *call, const char *function, uint32_t gpu)
{
    for (struct sim_fault *f = host->faults; f < host->faults + SIM_MAX_FAULTS; f++) {
        if (!strikes(f, function, gpu))
            continue;
        struct sim_fault struck = *f;
        if (f->nth == 1 && state_writable())
            memset(f, 0, sizeof *f);
        if (struck.action == SIM_FAULT_HANG) {
            leave(call);
            hang();
        }
        call->answer = struck.action == SIM_FAULT_IGNORE ? NVML_SUCCESS : (nvmlReturn_t)struck.code;
        return 1;
    }
    return 0;
}

static int refuse(struct call *call, nvmlReturn_t answer)
{
    call->answer = answer;
    return 0;
}

/* A fault may count down. */
static int has_faults(void)
{
    for (unsigned i = 0; i < SIM_MAX_FAULTS; i++)
        if (host->faults[i].function[0])
            return 1;
    return 0;
}

static int lock(struct call *call)
{
    state_lock_threads();
    call->locked = 1;
    call->answer = call->simple && host && !has_faults() ? NVML_SUCCESS : state_lock_file();
    return call->answer == NVML_SUCCESS;
}

int enter_init(struct call *call, const char *function)
{
    if (!lock(call))
        return 0;
    call->answer = state_open();
    return call->answer == NVML_SUCCESS && !fault(call, function, 0);
}

int enter_host(struct call *call, const char *function)
{
    if (!lock(call))
        return 0;
    if (!host)
        return refuse(call, NVML_ERROR_UNINITIALIZED);
    return !fault(call, function, 0);
}

int enter_found(struct call *call, const char *function, struct sim_gpu *gpu)
{
    call->gpu = gpu;
    if (fault(call, function, gpu_index(gpu) + 1))
        return 0;
    if (gpu->lost)
        return refuse(call, gpu->lost == 1 ? NVML_ERROR_GPU_IS_LOST : (nvmlReturn_t)gpu->lost);
    return 1;
}

static int enter(struct call *call, const char *function, const void *handle)
{
    if (!enter_host(call, function))
        return 0;
    if (!resolve(call, handle))
        return refuse(call, NVML_ERROR_INVALID_ARGUMENT);
    if (!enter_found(call, function, call->gpu))
        return 0;
    if (!call->simple)
        sweep_processes(call->gpu);
    return 1;
}

int enter_device(struct call *call, const char *function, nvmlDevice_t device)
{
    if (!enter(call, function, device.handle))
        return 0;
    if (call->instance && !call->compute)
        return refuse(call, NVML_ERROR_INVALID_ARGUMENT);
    return 1;
}

int enter_gpu(struct call *call, const char *function, nvmlDevice_t device)
{
    if (!enter_device(call, function, device))
        return 0;
    return call->compute ? refuse(call, NVML_ERROR_NOT_SUPPORTED) : 1;
}

int enter_gpu_instance(struct call *call, const char *function, nvmlGpuInstance_t instance)
{
    if (!enter(call, function, instance.handle))
        return 0;
    return call->instance && !call->compute ? 1 : refuse(call, NVML_ERROR_INVALID_ARGUMENT);
}

int enter_compute_instance(struct call *call, const char *function, nvmlComputeInstance_t compute)
{
    if (!enter(call, function, compute.handle))
        return 0;
    return call->compute ? 1 : refuse(call, NVML_ERROR_INVALID_ARGUMENT);
}

void leave(struct call *call)
{
    if (call->locked)
        state_unlock();
    call->locked = 0;
}

nvmlReturn_t give_text(char *to, unsigned size, const char *text)
{
    size_t n = length(text) + 1;
    if (n > size)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    memcpy(to, text, n);
    return NVML_SUCCESS;
}

nvmlReturn_t give_count(unsigned *count, unsigned have, const void *array)
{
    unsigned room = array ? *count : 0;
    *count = have;
    return room >= have ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}
