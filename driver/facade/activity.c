/*
 * What the session's slice does: utilization and power. The driver measures power of the whole GPU only, so a slice is
 * shown the part that its memory is of the GPU's, and never more than the target's limit.
 */
#include "facade.h"

static unsigned long long total_memory(nvmlDevice_t device)
{
    nvmlMemory_t memory = {0};
    return DRIVER(nvmlDeviceGetMemoryInfo)(device, &memory) == NVML_SUCCESS ? memory.total : 0;
}

static unsigned long long share(const struct figures *target, unsigned long long of_gpu)
{
    nvmlDevice_t slice, gpu;
    if (find_slice(target, &slice) != NVML_SUCCESS || find_gpu(target, &gpu) != NVML_SUCCESS)
        return of_gpu;
    unsigned long long part = total_memory(slice) >> 20, whole = total_memory(gpu) >> 20;
    return part && part < whole ? of_gpu * part / whole : of_gpu;
}

unsigned shown_power(const struct figures *target, unsigned mw)
{
    unsigned long long part = share(target, mw);
    return part < target->power_limit_mw ? (unsigned)part : target->power_limit_mw;
}

unsigned long long shown_energy(const struct figures *target, unsigned long long mj) { return share(target, mj); }

nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int *mw)
{
    DISGUISE_DEVICE(nvmlDeviceGetPowerUsage, device, mw);
    nvmlReturn_t answer = DRIVER(nvmlDeviceGetPowerUsage)(device, mw);
    if (answer == NVML_SUCCESS)
        *mw = shown_power(target, *mw);
    return answer;
}

nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, unsigned long long *mj)
{
    DISGUISE_DEVICE(nvmlDeviceGetTotalEnergyConsumption, device, mj);
    nvmlReturn_t answer = DRIVER(nvmlDeviceGetTotalEnergyConsumption)(device, mj);
    if (answer == NVML_SUCCESS)
        *mj = shown_energy(target, *mj);
    return answer;
}

static nvmlReturn_t sample_slice(const struct figures *target, nvmlDevice_t gpu, nvmlGpmSample_t sample)
{
    nvmlDevice_t slice;
    unsigned instance;
    nvmlReturn_t answer = find_slice(target, &slice);
    if (answer == NVML_SUCCESS)
        answer = DRIVER(nvmlDeviceGetGpuInstanceId)(slice, &instance);
    return answer == NVML_SUCCESS ? DRIVER(nvmlGpmMigSampleGet)(gpu, instance, sample) : answer;
}

/* The driver counts all the time; NVML's manual asks for more than 100 ms between two samples. */
enum { BETWEEN_SAMPLES_MS = 110 };

static nvmlReturn_t measure(const struct figures *target, nvmlDevice_t gpu, nvmlUtilization_t *utilization)
{
    nvmlGpmMetricsGet_t get = {.version = NVML_GPM_METRICS_GET_VERSION, .numMetrics = 2};
    get.metrics[0].metricId = NVML_GPM_METRIC_GRAPHICS_UTIL;
    get.metrics[1].metricId = NVML_GPM_METRIC_DRAM_BW_UTIL;
    nvmlReturn_t answer = DRIVER(nvmlGpmSampleAlloc)(&get.sample1);
    if (answer != NVML_SUCCESS)
        return answer;
    answer = DRIVER(nvmlGpmSampleAlloc)(&get.sample2);
    if (answer == NVML_SUCCESS) {
        answer = sample_slice(target, gpu, get.sample1);
        if (answer == NVML_SUCCESS) {
            sys_sleep_ms(BETWEEN_SAMPLES_MS);
            answer = sample_slice(target, gpu, get.sample2);
        }
        if (answer == NVML_SUCCESS)
            answer = DRIVER(nvmlGpmMetricsGet)(&get);
        DRIVER(nvmlGpmSampleFree)(get.sample2);
    }
    DRIVER(nvmlGpmSampleFree)(get.sample1);
    if (answer != NVML_SUCCESS)
        return answer;
    utilization->gpu = get.metrics[0].nvmlReturn == NVML_SUCCESS ? (unsigned)(get.metrics[0].value + 0.5) : 0;
    utilization->memory = get.metrics[1].nvmlReturn == NVML_SUCCESS ? (unsigned)(get.metrics[1].value + 0.5) : 0;
    return get.metrics[0].nvmlReturn;
}

/* With MIG on, the driver has no utilization of the GPU, but monitors each slice since Hopper. */
nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *utilization)
{
    DISGUISE_DEVICE(nvmlDeviceGetUtilizationRates, device, utilization);
    nvmlReturn_t answer = DRIVER(nvmlDeviceGetUtilizationRates)(device, utilization);
    if (answer != NVML_ERROR_NOT_SUPPORTED || measure(target, device, utilization) != NVML_SUCCESS)
        return answer;
    return NVML_SUCCESS;
}

/* A session's own samples are those of its slice. */
nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t device, nvmlGpmSample_t sample)
{
    DISGUISE_DEVICE(nvmlGpmSampleGet, device, sample);
    if (!starts_with(target->slice, "MIG-"))
        return DRIVER(nvmlGpmSampleGet)(device, sample);
    return sample_slice(target, device, sample);
}
