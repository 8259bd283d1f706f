/* Events of NVML: the loss of a GPU and a change of its MIG configuration, found by looking every few milliseconds. */
#include "sim.h"

enum { SETS = 4, LOOK_MS = 20, LOSS = nvmlEventTypeXidCriticalError, CHANGE = nvmlEventMigConfigChange, FELL_OFF = 79 };

struct seen {
    uint16_t types; /* 0: the GPU is not registered */
    uint16_t lost;
    uint64_t mig;
};

static struct event_set {
    int used;
    struct seen gpus[SIM_MAX_GPUS];
} sets[SETS];

static void mix(uint64_t *hash, uint64_t value) { *hash = (*hash ^ value) * 1099511628211ULL; }

static uint64_t configuration(struct sim_gpu *gpu)
{
    uint64_t hash = gpu->mig + 1;
    FOR_INSTANCES(instance, gpu) {
        mix(&hash, instance_id(gpu, instance) << 16 | instance->profile << 8 | instance->start);
        FOR_COMPUTE(compute, instance)
            mix(&hash, compute->start << 8 | compute->size);
    }
    return hash;
}

static struct event_set *set_of(nvmlEventSet_t handle)
{
    for (struct event_set *set = sets; set < sets + SETS; set++)
        if ((void *)set == (void *)handle.handle && set->used)
            return set;
    return NULL;
}

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *handle)
{
    HOST_CALL(handle);
    for (struct event_set *set = sets; set < sets + SETS; set++) {
        if (set->used)
            continue;
        *set = (struct event_set){.used = 1};
        *handle = (nvmlEventSet_t){(struct nvmlEventSet_st *)set};
        return NVML_SUCCESS;
    }
    return NVML_ERROR_MEMORY;
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t handle)
{
    HOST_CALL(set_of(handle));
    set_of(handle)->used = 0;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *types)
{
    GPU_CALL(device, types);
    *types = LOSS | (gpu->memory_slices ? CHANGE : 0);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, nvmlEventSet_t handle)
{
    GPU_CALL(device, set_of(handle));
    if (types & ~(unsigned long long)(LOSS | (gpu->memory_slices ? CHANGE : 0)))
        return NVML_ERROR_NOT_SUPPORTED;
    struct seen *seen = &set_of(handle)->gpus[gpu_index(gpu)];
    *seen = (struct seen){.types = (uint16_t)(seen->types | types), .lost = gpu->lost != 0, .mig = configuration(gpu)};
    return NVML_SUCCESS;
}

/* Whether something has happened to a GPU since it was last looked at. */
static int happened(struct sim_gpu *gpu, struct seen *seen, nvmlEventData_t *data)
{
    struct seen now = {.types = seen->types, .lost = gpu->lost != 0, .mig = configuration(gpu)};
    unsigned long long events = (now.lost && !seen->lost ? LOSS : 0) | (now.mig != seen->mig && !now.lost ? CHANGE : 0);
    *seen = now;
    if (!(events & seen->types))
        return 0;
    *data = (nvmlEventData_t){.device = gpu_handle(gpu), .eventType = events & seen->types};
    data->eventData = events & LOSS ? FELL_OFF : 0;
    return 1;
}

static nvmlReturn_t look(struct event_set *set, nvmlEventData_t *data)
{
    CALL(1, enter_host(&call, "nvmlEventSetWait_v2"));
    for (unsigned i = 0; i < host->gpu_count; i++)
        if (set->gpus[i].types && happened(&host->gpus[i], &set->gpus[i], data))
            return NVML_SUCCESS;
    return NVML_ERROR_TIMEOUT;
}

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t handle, nvmlEventData_t *data, unsigned int timeout_ms)
{
    struct event_set *set = set_of(handle);
    if (!set || !data)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned waited = 0;; waited += LOOK_MS) {
        nvmlReturn_t found = look(set, data);
        if (found != NVML_ERROR_TIMEOUT || waited >= timeout_ms)
            return found;
        sys_sleep_ms(LOOK_MS);
    }
}

nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t handle, nvmlEventData_t *data, unsigned int timeout_ms)
{
    return nvmlEventSetWait_v2(handle, data, timeout_ms);
}
