/* GPU performance monitoring: samples of a GPU or a GPU instance, and metrics between two of them. */
#include "sim.h"

/* Plausible, not measured: what has a process is busy all the time, with half of the memory's bandwidth. */
struct nvmlGpmSample_st {
    int busy;
};

nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t device, nvmlGpmSupport_t *support)
{
    GPU_CALL(device, support);
    support->isSupportedDevice = gpu->capability_major >= 9;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t *sample)
{
    HOST_CALL(sample);
    sample->handle = sys_memory(sizeof *sample->handle);
    return sample->handle ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}

nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t sample)
{
    HOST_CALL(sample.handle);
    sys_unmap(sample.handle, sizeof *sample.handle);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t device, nvmlGpmSample_t sample)
{
    GPU_CALL(device, sample.handle);
    if (gpu->capability_major < 9)
        return NVML_ERROR_NOT_SUPPORTED;
    sample.handle->busy = gpu_busy(gpu);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmMigSampleGet(nvmlDevice_t device, unsigned int gpu_instance, nvmlGpmSample_t sample)
{
    GPU_CALL(device, sample.handle);
    if (gpu->capability_major < 9)
        return NVML_ERROR_NOT_SUPPORTED;
    if (gpu_instance >= SIM_MAX_GPU_INSTANCES || !gpu->instances[gpu_instance].used)
        return NVML_ERROR_INVALID_ARGUMENT;
    sample.handle->busy = instance_busy(gpu, gpu_instance);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t *get)
{
    HOST_CALL(get && get->sample1.handle && get->sample2.handle && get->numMetrics <= NVML_GPM_METRIC_MAX);
    if (get->version != NVML_GPM_METRICS_GET_VERSION)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    for (nvmlGpmMetric_t *m = get->metrics; m < get->metrics + get->numMetrics; m++) {
        double full = m->metricId == NVML_GPM_METRIC_GRAPHICS_UTIL || m->metricId == NVML_GPM_METRIC_SM_UTIL ? 100
                      : m->metricId == NVML_GPM_METRIC_DRAM_BW_UTIL                                          ? 50
                                                                                                             : 0;
        m->nvmlReturn = full > 0 ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
        m->value = get->sample2.handle->busy ? full : 0;
    }
    return NVML_SUCCESS;
}
