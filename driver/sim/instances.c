/* GPU instances: their permitted placements, their ids, and the permission to remove them. */
#include "sim.h"

const struct sim_profile *profile_of(const struct sim_gpu *gpu, const struct sim_gpu_instance *instance)
{
    return &gpu->profiles[instance->profile];
}

/* NULL as well while MIG is off. */
const struct sim_profile *profile_by_id(const struct sim_gpu *gpu, unsigned id)
{
    for (unsigned i = 0; gpu->mig && i < gpu->profile_count; i++)
        if (gpu->profiles[i].id == id)
            return &gpu->profiles[i];
    return NULL;
}

/* The free capacity of a GPU: bits of memory slices, compute slices, instances of a profile. */
struct room {
    unsigned taken;
    int compute_slices;
    int instances;
};

static unsigned bits(unsigned start, unsigned size) { return ((1U << size) - 1) << start; }

static struct room room_for(struct sim_gpu *gpu, const struct sim_profile *profile)
{
    struct room room = {0, (int)gpu->compute_slices, (int)profile->max_instances};
    FOR_INSTANCES(instance, gpu) {
        const struct sim_profile *other = profile_of(gpu, instance);
        room.taken |= bits(instance->start, other->memory_slices);
        room.compute_slices -= (int)other->compute_slices;
        room.instances -= other == profile;
    }
    return room;
}

static int fits(const struct room *room, const struct sim_profile *profile, unsigned start)
{
    return room->instances > 0 && room->compute_slices >= (int)profile->compute_slices &&
           !(room->taken & bits(start, profile->memory_slices));
}

static int legal(const struct sim_profile *profile, unsigned start)
{
    for (unsigned i = 0; i < profile->start_count; i++)
        if (profile->starts[i] == start)
            return 1;
    return 0;
}

/* If the driver may choose the slot on a GPU with seven, it starts with 6, 4 and 5. */
static int choose_start(const struct sim_gpu *gpu, const struct room *room, const struct sim_profile *profile)
{
    static const unsigned habit[] = {6, 4, 5, 0, 1, 2, 3};
    int single = gpu->compute_slices == 7 && profile->memory_slices == 1;
    for (unsigned i = 0; i < (single ? 7 : profile->start_count); i++) {
        unsigned start = single ? habit[i] : profile->starts[i];
        if (legal(profile, start) && fits(room, profile, start))
            return (int)start;
    }
    return -1;
}

/* Ids come in classes by compute slices, and within them by the place. */
static struct sim_gpu_instance *deal_id(struct sim_gpu *gpu, const struct sim_profile *profile, unsigned start)
{
    unsigned first, last, id, seven = gpu->compute_slices == 7;
    switch (profile->compute_slices) {
    case 1:
        first = seven ? 7 : 3;
        last = seven ? 14 : 6;
        id = first + start;
        break;
    case 2:
        first = seven ? 3 : 1;
        last = seven ? 6 : 2;
        id = first + start / 2;
        break;
    case 3:
        first = 1, last = 2;
        id = start ? 1 : 2;
        break;
    case 4:
        first = seven, last = seven ? 2 : 0;
        id = first;
        break;
    default:
        first = last = id = 0;
    }
    if (id <= last && !gpu->instances[id].used)
        return &gpu->instances[id];
    for (id = first; id <= last; id++)
        if (!gpu->instances[id].used)
            return &gpu->instances[id];
    return NULL;
}

static nvmlReturn_t create(struct sim_gpu *gpu, const struct sim_profile *profile,
                           const nvmlGpuInstancePlacement_t *placement, nvmlGpuInstance_t *handle)
{
    if (!gpu->mig)
        return NVML_ERROR_NOT_SUPPORTED;
    if (!profile)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (placement && (placement->size != profile->memory_slices || !legal(profile, placement->start)))
        return NVML_ERROR_INVALID_ARGUMENT;
    struct room room = room_for(gpu, profile);
    int start = placement ? (int)placement->start : choose_start(gpu, &room, profile);
    if (start < 0 || !fits(&room, profile, (unsigned)start))
        return NVML_ERROR_INSUFFICIENT_RESOURCES;
    struct sim_gpu_instance *instance = deal_id(gpu, profile, (unsigned)start);
    if (!instance)
        return NVML_ERROR_INSUFFICIENT_RESOURCES;
    instance->used = 1;
    instance->profile = (uint32_t)(profile - gpu->profiles);
    instance->start = (uint32_t)start;
    *handle = gpu_instance_handle(gpu, instance);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceCreateGpuInstance(nvmlDevice_t device, unsigned int id, nvmlGpuInstance_t *instance)
{
    GPU_CALL(device, instance);
    WRITES;
    return create(gpu, profile_by_id(gpu, id), NULL, instance);
}

nvmlReturn_t nvmlDeviceCreateGpuInstanceWithPlacement(nvmlDevice_t device, unsigned int id,
                                                      const nvmlGpuInstancePlacement_t *placement,
                                                      nvmlGpuInstance_t *instance)
{
    GPU_CALL(device, placement && instance);
    WRITES;
    return create(gpu, profile_by_id(gpu, id), placement, instance);
}

nvmlReturn_t nvmlGpuInstanceDestroy(nvmlGpuInstance_t handle)
{
    GPU_INSTANCE_CALL(handle, 1);
    WRITES;
    FOR_COMPUTE(compute, call.instance)
        return NVML_ERROR_IN_USE;
    if (instance_busy(gpu, instance_id(gpu, call.instance)))
        return NVML_ERROR_IN_USE;
    memset(call.instance, 0, sizeof *call.instance);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements_v2(nvmlDevice_t device, unsigned int id,
                                                           nvmlGpuInstancePlacement_t *placements, unsigned int *count)
{
    GPU_CALL(device, count);
    const struct sim_profile *profile = profile_by_id(gpu, id);
    if (!profile)
        return gpu->mig ? NVML_ERROR_INVALID_ARGUMENT : NVML_ERROR_NOT_SUPPORTED;
    if (!placements) {
        *count = profile->start_count;
        return NVML_SUCCESS;
    }
    nvmlReturn_t answer = give_count(count, profile->start_count, placements);
    for (unsigned i = 0; answer == NVML_SUCCESS && i < profile->start_count; i++)
        placements[i] = (nvmlGpuInstancePlacement_t){profile->starts[i], profile->memory_slices};
    return answer;
}

nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements(nvmlDevice_t device, unsigned int id,
                                                        nvmlGpuInstancePlacement_t *placements, unsigned int *count)
{
    return nvmlDeviceGetGpuInstancePossiblePlacements_v2(device, id, placements, count);
}

nvmlReturn_t nvmlDeviceGetGpuInstanceRemainingCapacity(nvmlDevice_t device, unsigned int id, unsigned int *count)
{
    GPU_CALL(device, count);
    const struct sim_profile *profile = profile_by_id(gpu, id);
    if (!profile)
        return gpu->mig ? NVML_ERROR_INVALID_ARGUMENT : NVML_ERROR_NOT_SUPPORTED;
    struct room room = room_for(gpu, profile);
    *count = 0;
    for (unsigned i = 0; i < profile->start_count; i++) {
        if (!fits(&room, profile, profile->starts[i]))
            continue;
        room.taken |= bits(profile->starts[i], profile->memory_slices);
        room.compute_slices -= (int)profile->compute_slices;
        room.instances--;
        ++*count;
    }
    return NVML_SUCCESS;
}

/* The caller's array has room for as many as the profile allows. */
nvmlReturn_t nvmlDeviceGetGpuInstances(nvmlDevice_t device, unsigned int id, nvmlGpuInstance_t *instances,
                                       unsigned int *count)
{
    GPU_CALL(device, instances && count);
    const struct sim_profile *profile = profile_by_id(gpu, id);
    if (!profile)
        return gpu->mig ? NVML_ERROR_INVALID_ARGUMENT : NVML_ERROR_NOT_SUPPORTED;
    *count = 0;
    FOR_INSTANCES(instance, gpu)
        if (profile_of(gpu, instance) == profile)
            instances[(*count)++] = gpu_instance_handle(gpu, instance);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceById(nvmlDevice_t device, unsigned int id, nvmlGpuInstance_t *handle)
{
    GPU_CALL(device, handle);
    if (!gpu->mig)
        return NVML_ERROR_NOT_SUPPORTED;
    if (id >= SIM_MAX_GPU_INSTANCES || !gpu->instances[id].used)
        return NVML_ERROR_NOT_FOUND;
    *handle = gpu_instance_handle(gpu, &gpu->instances[id]);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpuInstanceGetInfo(nvmlGpuInstance_t handle, nvmlGpuInstanceInfo_t *info)
{
    GPU_INSTANCE_CALL(handle, info);
    const struct sim_profile *profile = profile_of(gpu, call.instance);
    *info = (nvmlGpuInstanceInfo_t){
        .device = gpu_handle(gpu),
        .id = instance_id(gpu, call.instance),
        .profileId = profile->id,
        .placement = {call.instance->start, profile->memory_slices},
    };
    return NVML_SUCCESS;
}
