/* Compute instances: how the compute slices of a GPU instance are shared out. */
#include "sim.h"

/* Profiles count compute slices; the id of a profile is its NVML number. */
static const unsigned sizes[] = {
    [NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE] = 1, [NVML_COMPUTE_INSTANCE_PROFILE_2_SLICE] = 2,
    [NVML_COMPUTE_INSTANCE_PROFILE_3_SLICE] = 3, [NVML_COMPUTE_INSTANCE_PROFILE_4_SLICE] = 4,
    [NVML_COMPUTE_INSTANCE_PROFILE_7_SLICE] = 7,
};
enum { KINDS = sizeof sizes / sizeof *sizes };

/* The size of a profile in a GPU instance of so many compute slices; 0 where
 * there is none: four slices are not cut into three. */
static unsigned size_of(unsigned kind, unsigned slices)
{
    if (kind >= KINDS || sizes[kind] > slices || (slices == 4 && sizes[kind] == 3))
        return 0;
    return sizes[kind];
}

static unsigned kind_of(unsigned size)
{
    unsigned kind = 0;
    while (kind + 1 < KINDS && sizes[kind] != size)
        kind++;
    return kind;
}

/* Permitted starts of instances of a size: multiples of the size, and for three slices the same as for four. */
static unsigned stride(unsigned size) { return size == 3 ? 4 : size; }

static unsigned place_count(unsigned size, unsigned slices) { return (slices - size) / stride(size) + 1; }

static unsigned bits(unsigned start, unsigned size) { return ((1U << size) - 1) << start; }

static unsigned taken(struct sim_gpu_instance *instance)
{
    unsigned all = 0;
    FOR_COMPUTE(compute, instance)
        all |= bits(compute->start, compute->size);
    return all;
}

void add_compute_name(struct text *text, const struct sim_profile *profile, unsigned slices)
{
    if (slices < profile->compute_slices) {
        add_number(text, slices, 10, 1);
        add(text, "c.");
    }
    add(text, profile->name);
}

/* A part has the SMs of as many of the smallest slices. */
unsigned compute_sms(const struct sim_gpu *gpu, const struct sim_profile *profile, unsigned slices)
{
    unsigned unit = profile->sms / profile->compute_slices;
    if (slices == profile->compute_slices)
        return profile->sms;
    for (unsigned i = 0; i < gpu->profile_count; i++)
        if (gpu->profiles[i].compute_slices == 1 && gpu->profiles[i].sms < unit)
            unit = gpu->profiles[i].sms;
    return unit * slices;
}

#define FILL_COMPUTE_PROFILE(info, gpu, profile, kind, size)                  \
    do {                                                                      \
        struct engines engines = engines_of(gpu, profile);                    \
        (info)->id = kind;                                                    \
        (info)->sliceCount = size;                                            \
        (info)->instanceCount = place_count(size, (profile)->compute_slices); \
        (info)->multiprocessorCount = compute_sms(gpu, profile, size);        \
        (info)->sharedCopyEngineCount = engines.copy;                         \
        (info)->sharedDecoderCount = engines.decoder;                         \
        (info)->sharedEncoderCount = 0;                                       \
        (info)->sharedJpegCount = engines.jpeg;                               \
        (info)->sharedOfaCount = engines.ofa;                                 \
    } while (0)

nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfo(nvmlGpuInstance_t handle, unsigned int kind,
                                                          unsigned int engine, nvmlComputeInstanceProfileInfo_t *info)
{
    GPU_INSTANCE_CALL(handle, info && kind < NVML_COMPUTE_INSTANCE_PROFILE_COUNT);
    const struct sim_profile *profile = profile_of(gpu, call.instance);
    unsigned size = size_of(kind, profile->compute_slices);
    if (!size || engine != NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED)
        return NVML_ERROR_NOT_SUPPORTED;
    FILL_COMPUTE_PROFILE(info, gpu, profile, kind, size);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfoV(nvmlGpuInstance_t handle, unsigned int kind,
                                                           unsigned int engine, nvmlComputeInstanceProfileInfo_v2_t *v2)
{
    GPU_INSTANCE_CALL(handle, v2 && kind < NVML_COMPUTE_INSTANCE_PROFILE_COUNT);
    if (v2->version != nvmlComputeInstanceProfileInfo_v2 && v2->version != nvmlComputeInstanceProfileInfo_v3)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    const struct sim_profile *profile = profile_of(gpu, call.instance);
    unsigned size = size_of(kind, profile->compute_slices);
    if (!size || engine != NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED)
        return NVML_ERROR_NOT_SUPPORTED;
    /* Version 3 appends a word to version 2. */
    if (v2->version == nvmlComputeInstanceProfileInfo_v3)
        ((nvmlComputeInstanceProfileInfo_v3_t *)v2)->capabilities = 0;
    struct text name = {0};
    add(&name, "MIG ");
    add_compute_name(&name, profile, size);
    FILL_COMPUTE_PROFILE(v2, gpu, profile, kind, size);
    return give_text(v2->name, sizeof v2->name, name.s);
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstancePossiblePlacements(nvmlGpuInstance_t handle, unsigned int kind,
                                                                 nvmlComputeInstancePlacement_t *placements,
                                                                 unsigned int *count)
{
    GPU_INSTANCE_CALL(handle, count);
    unsigned slices = profile_of(gpu, call.instance)->compute_slices, size = size_of(kind, slices);
    if (!size)
        return NVML_ERROR_INVALID_ARGUMENT;
    unsigned have = place_count(size, slices);
    if (!placements) {
        *count = have;
        return NVML_SUCCESS;
    }
    nvmlReturn_t answer = give_count(count, have, placements);
    for (unsigned i = 0; answer == NVML_SUCCESS && i < have; i++)
        placements[i] = (nvmlComputeInstancePlacement_t){i * stride(size), size};
    return answer;
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstanceRemainingCapacity(nvmlGpuInstance_t handle, unsigned int kind,
                                                                unsigned int *count)
{
    GPU_INSTANCE_CALL(handle, count);
    unsigned slices = profile_of(gpu, call.instance)->compute_slices, size = size_of(kind, slices);
    if (!size)
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = 0;
    for (unsigned i = 0; i < place_count(size, slices); i++)
        *count += !(taken(call.instance) & bits(i * stride(size), size));
    return NVML_SUCCESS;
}

static int make_uuid(char *uuid, unsigned size)
{
    unsigned char random[16];
    struct text text = {0};
    if (!sys_random(random, sizeof random))
        return 0;
    random[6] = (unsigned char)((random[6] & 0x0f) | 0x50);
    random[8] = (unsigned char)((random[8] & 0x3f) | 0x80);
    add(&text, "MIG-");
    for (unsigned i = 0; i < sizeof random; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            add(&text, "-");
        add_number(&text, random[i], 16, 2);
    }
    for (char *c = text.s + 4; *c; c++)
        *c = *c >= 'A' && *c <= 'F' ? (char)(*c - 'A' + 'a') : *c;
    return give_text(uuid, size, text.s) == NVML_SUCCESS;
}

/* placement NULL: the first that is free. */
static nvmlReturn_t create(struct sim_gpu *gpu, struct sim_gpu_instance *instance, unsigned kind,
                           const nvmlComputeInstancePlacement_t *placement, nvmlComputeInstance_t *handle)
{
    unsigned slices = profile_of(gpu, instance)->compute_slices, size = size_of(kind, slices);
    if (!size)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (placement && (placement->size != size || placement->start % stride(size) || placement->start + size > slices))
        return NVML_ERROR_INVALID_ARGUMENT;
    unsigned start = placement ? placement->start : 0, last = placement ? start : slices - size;
    while (start <= last && taken(instance) & bits(start, size))
        start += stride(size);
    if (start > last)
        return NVML_ERROR_INSUFFICIENT_RESOURCES;
    struct sim_compute_instance *compute = instance->compute;
    while (compute->used) /* there are more places than compute slices */
        compute++;
    if (!make_uuid(compute->uuid, sizeof compute->uuid))
        return NVML_ERROR_UNKNOWN;
    compute->used = 1;
    compute->start = start;
    compute->size = size;
    *handle = compute_instance_handle(gpu, instance, compute);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpuInstanceCreateComputeInstance(nvmlGpuInstance_t handle, unsigned int kind,
                                                  nvmlComputeInstance_t *compute)
{
    GPU_INSTANCE_CALL(handle, compute);
    WRITES;
    return create(gpu, call.instance, kind, NULL, compute);
}

nvmlReturn_t nvmlGpuInstanceCreateComputeInstanceWithPlacement(nvmlGpuInstance_t handle, unsigned int kind,
                                                               const nvmlComputeInstancePlacement_t *placement,
                                                               nvmlComputeInstance_t *compute)
{
    GPU_INSTANCE_CALL(handle, placement && compute);
    WRITES;
    return create(gpu, call.instance, kind, placement, compute);
}

nvmlReturn_t nvmlComputeInstanceDestroy(nvmlComputeInstance_t handle)
{
    COMPUTE_INSTANCE_CALL(handle, 1);
    WRITES;
    if (compute_busy(&call))
        return NVML_ERROR_IN_USE;
    memset(call.compute, 0, sizeof *call.compute);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstances(nvmlGpuInstance_t handle, unsigned int kind,
                                                nvmlComputeInstance_t *instances, unsigned int *count)
{
    GPU_INSTANCE_CALL(handle, instances && count);
    unsigned size = size_of(kind, profile_of(gpu, call.instance)->compute_slices);
    if (!size)
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = 0;
    FOR_COMPUTE(compute, call.instance)
        if (compute->size == size)
            instances[(*count)++] = compute_instance_handle(gpu, call.instance, compute);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstanceById(nvmlGpuInstance_t handle, unsigned int id,
                                                   nvmlComputeInstance_t *compute)
{
    GPU_INSTANCE_CALL(handle, compute);
    if (id >= SIM_MAX_COMPUTE_INSTANCES || !call.instance->compute[id].used)
        return NVML_ERROR_NOT_FOUND;
    *compute = compute_instance_handle(gpu, call.instance, &call.instance->compute[id]);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlComputeInstanceGetInfo_v2(nvmlComputeInstance_t handle, nvmlComputeInstanceInfo_t *info)
{
    COMPUTE_INSTANCE_CALL(handle, info);
    *info = (nvmlComputeInstanceInfo_t){
        .device = gpu_handle(gpu),
        .gpuInstance = gpu_instance_handle(gpu, call.instance),
        .id = compute_id(call.instance, call.compute),
        .profileId = kind_of(call.compute->size),
        .placement = {call.compute->start, call.compute->size},
    };
    return NVML_SUCCESS;
}

/* The older struct ends before the placement. */
nvmlReturn_t nvmlComputeInstanceGetInfo(nvmlComputeInstance_t handle, nvmlComputeInstanceInfo_t *info)
{
    nvmlComputeInstanceInfo_t whole;
    nvmlReturn_t answer = info ? nvmlComputeInstanceGetInfo_v2(handle, &whole) : NVML_ERROR_INVALID_ARGUMENT;
    if (answer == NVML_SUCCESS)
        memcpy(info, &whole, offsetof(nvmlComputeInstanceInfo_t, placement));
    return answer;
}
