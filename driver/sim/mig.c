/* MIG mode, and the profiles that it offers. */
#include "sim.h"

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *current, unsigned int *pending)
{
    GPU_CALL(device, current && pending);
    if (!gpu->memory_slices)
        return NVML_ERROR_NOT_SUPPORTED;
    *current = gpu->mig;
    *pending = gpu->mig_pending;
    return NVML_SUCCESS;
}

/* A GPU that runs something cannot be reset, so the mode stays pending. */
nvmlReturn_t nvmlDeviceSetMigMode(nvmlDevice_t device, unsigned int mode, nvmlReturn_t *activation)
{
    GPU_CALL(device, activation && (mode == NVML_DEVICE_MIG_DISABLE || mode == NVML_DEVICE_MIG_ENABLE));
    if (!gpu->memory_slices)
        return NVML_ERROR_NOT_SUPPORTED;
    WRITES;
    if (mode == NVML_DEVICE_MIG_DISABLE)
        FOR_INSTANCES(instance, gpu)
            return *activation = NVML_ERROR_IN_USE;
    gpu->mig_pending = mode;
    *activation = NVML_SUCCESS;
    if (gpu->mig == mode)
        return NVML_SUCCESS;
    if (gpu_busy(gpu))
        *activation = NVML_ERROR_IN_USE;
    else
        gpu->mig = mode;
    return NVML_SUCCESS;
}

struct engines engines_of(const struct sim_gpu *gpu, const struct sim_profile *profile)
{
    unsigned slices = profile->compute_slices;
    unsigned whole = slices == gpu->compute_slices;
    return (struct engines){
        .copy = whole ? gpu->memory_slices : slices,
        .decoder = slices,
        .jpeg = slices,
        .ofa = whole,
    };
}

static const struct sim_profile *find_profile(const struct sim_gpu *gpu, unsigned kind)
{
    for (unsigned i = 0; gpu->mig && i < gpu->profile_count; i++)
        if (gpu->profiles[i].kind == kind)
            return &gpu->profiles[i];
    return NULL;
}

static int graphics(const struct sim_profile *profile)
{
    return profile->kind >= NVML_GPU_INSTANCE_PROFILE_1_SLICE_GFX &&
           profile->kind <= NVML_GPU_INSTANCE_PROFILE_4_SLICE_GFX;
}

static void add_profile_name(struct text *text, const struct sim_profile *profile)
{
    add(text, "MIG ");
    add(text, profile->name);
}

/* The three versions of the struct have the same figures at other places. */
#define FILL_PROFILE(info, gpu, profile)                   \
    do {                                                   \
        struct engines engines = engines_of(gpu, profile); \
        (info)->id = (profile)->id;                        \
        (info)->sliceCount = (profile)->compute_slices;    \
        (info)->instanceCount = (profile)->max_instances;  \
        (info)->multiprocessorCount = (profile)->sms;      \
        (info)->copyEngineCount = engines.copy;            \
        (info)->decoderCount = engines.decoder;            \
        (info)->encoderCount = 0;                          \
        (info)->jpegCount = engines.jpeg;                  \
        (info)->ofaCount = engines.ofa;                    \
        (info)->memorySizeMB = (profile)->memory_mib;      \
    } while (0)

nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfo(nvmlDevice_t device, unsigned int kind,
                                                 nvmlGpuInstanceProfileInfo_t *info)
{
    GPU_CALL(device, info && kind < NVML_GPU_INSTANCE_PROFILE_COUNT);
    const struct sim_profile *profile = find_profile(gpu, kind);
    if (!profile)
        return NVML_ERROR_NOT_SUPPORTED;
    memset(info, 0, sizeof *info);
    FILL_PROFILE(info, gpu, profile);
    return NVML_SUCCESS;
}

static nvmlReturn_t give_profile(const struct sim_gpu *gpu, const struct sim_profile *profile,
                                 nvmlGpuInstanceProfileInfo_v2_t *v2)
{
    nvmlGpuInstanceProfileInfo_v3_t *v3 = (nvmlGpuInstanceProfileInfo_v3_t *)v2;
    struct text name = {0};
    if (v2->version != nvmlGpuInstanceProfileInfo_v2 && v2->version != nvmlGpuInstanceProfileInfo_v3)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (!profile)
        return NVML_ERROR_NOT_SUPPORTED;
    add_profile_name(&name, profile);
    if (v2->version == nvmlGpuInstanceProfileInfo_v2) {
        FILL_PROFILE(v2, gpu, profile);
        v2->isP2pSupported = 0;
        return give_text(v2->name, sizeof v2->name, name.s);
    }
    FILL_PROFILE(v3, gpu, profile);
    v3->capabilities = graphics(profile) ? NVML_GPU_INSTANCE_PROFILE_CAPS_GFX : 0;
    return give_text(v3->name, sizeof v3->name, name.s);
}

nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoV(nvmlDevice_t device, unsigned int kind,
                                                  nvmlGpuInstanceProfileInfo_v2_t *info)
{
    GPU_CALL(device, info && kind < NVML_GPU_INSTANCE_PROFILE_COUNT);
    return give_profile(gpu, find_profile(gpu, kind), info);
}

nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoByIdV(nvmlDevice_t device, unsigned int id,
                                                      nvmlGpuInstanceProfileInfo_v2_t *info)
{
    GPU_CALL(device, info);
    return give_profile(gpu, profile_by_id(gpu, id), info);
}
