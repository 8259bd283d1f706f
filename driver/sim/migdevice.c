/* MIG devices: a compute instance in the clothes of a GPU. */
#include "sim.h"

nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int *is_mig)
{
    DEVICE_CALL(device, is_mig);
    *is_mig = call.compute != NULL;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int *count)
{
    GPU_READ(device, count);
    *count = gpu->mig ? gpu->compute_slices : 0;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index, nvmlDevice_t *mig)
{
    GPU_READ(device, mig);
    if (!gpu->mig)
        return NVML_ERROR_NOT_SUPPORTED;
    if (index >= gpu->compute_slices)
        return NVML_ERROR_INVALID_ARGUMENT;
    FOR_INSTANCES(instance, gpu)
        FOR_COMPUTE(compute, instance)
            if (index-- == 0) {
                *mig = mig_handle(gpu, instance, compute);
                return NVML_SUCCESS;
            }
    return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t mig, nvmlDevice_t *device)
{
    DEVICE_CALL(mig, device);
    if (!call.compute)
        return NVML_ERROR_INVALID_ARGUMENT;
    *device = gpu_handle(gpu);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t mig, unsigned int *id)
{
    DEVICE_READ(mig, id);
    if (!call.compute)
        return NVML_ERROR_NOT_SUPPORTED;
    *id = instance_id(gpu, call.instance);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t mig, unsigned int *id)
{
    DEVICE_READ(mig, id);
    if (!call.compute)
        return NVML_ERROR_NOT_SUPPORTED;
    *id = compute_id(call.instance, call.compute);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t mig, nvmlDeviceAttributes_t *attributes)
{
    DEVICE_CALL(mig, attributes);
    if (!call.compute)
        return NVML_ERROR_NOT_SUPPORTED;
    const struct sim_profile *profile = profile_of(gpu, call.instance);
    struct engines engines = engines_of(gpu, profile);
    *attributes = (nvmlDeviceAttributes_t){
        .multiprocessorCount = compute_sms(gpu, profile, call.compute->size),
        .sharedCopyEngineCount = engines.copy,
        .sharedDecoderCount = engines.decoder,
        .sharedJpegCount = engines.jpeg,
        .sharedOfaCount = engines.ofa,
        .gpuInstanceSliceCount = profile->compute_slices,
        .computeInstanceSliceCount = call.compute->size,
        .memorySizeMB = profile->memory_mib,
    };
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetAttributes(nvmlDevice_t mig, nvmlDeviceAttributes_t *attributes)
{
    return nvmlDeviceGetAttributes_v2(mig, attributes);
}
