/*
 * Clocks. A lock has no getter: it shows only as the SM clock. Unlocked, a busy
 * GPU runs at its highest clock and an idle one at its lowest; locked, both run
 * at the top of the lock.
 */
#include "sim.h"

static unsigned lowest(const struct sim_gpu *gpu) { return gpu->clocks_mhz[0]; }
static unsigned highest(const struct sim_gpu *gpu) { return gpu->clocks_mhz[gpu->clock_count - 1]; }

unsigned sm_clock_mhz(const struct sim_gpu *gpu)
{
    if (gpu->lock_max_mhz)
        return gpu->lock_max_mhz;
    if (gpu->unlocked_mhz)
        return gpu->unlocked_mhz;
    return gpu_busy(gpu) ? highest(gpu) : lowest(gpu);
}

/* The clock of a domain while the SMs run at so many MHz. */
static nvmlReturn_t give_clock(const struct sim_gpu *gpu, nvmlClockType_t type, unsigned sm, unsigned *mhz)
{
    switch (type) {
    case NVML_CLOCK_GRAPHICS:
    case NVML_CLOCK_SM:
        *mhz = sm;
        return NVML_SUCCESS;
    case NVML_CLOCK_MEM:
        *mhz = gpu->memory_clock_mhz;
        return NVML_SUCCESS;
    case NVML_CLOCK_VIDEO:
        *mhz = sm * 4 / 5;
        return NVML_SUCCESS;
    default:
        return NVML_ERROR_INVALID_ARGUMENT;
    }
}

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int *mhz)
{
    GPU_CALL(device, mhz);
    return give_clock(gpu, type, sm_clock_mhz(gpu), mhz);
}

static nvmlReturn_t give_highest(nvmlDevice_t device, const char *function, nvmlClockType_t type, unsigned *mhz)
{
    CALL_AS(1, mhz, enter_gpu(&call, function, device));
    return give_clock(gpu, type, highest(gpu), mhz);
}

nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int *mhz)
{
    return give_highest(device, __func__, type, mhz);
}

nvmlReturn_t nvmlDeviceGetApplicationsClock(nvmlDevice_t device, nvmlClockType_t type, unsigned int *mhz)
{
    return give_highest(device, __func__, type, mhz);
}

nvmlReturn_t nvmlDeviceGetDefaultApplicationsClock(nvmlDevice_t device, nvmlClockType_t type, unsigned int *mhz)
{
    return give_highest(device, __func__, type, mhz);
}

nvmlReturn_t nvmlDeviceGetMaxCustomerBoostClock(nvmlDevice_t device, nvmlClockType_t type, unsigned int *mhz)
{
    return give_highest(device, __func__, type, mhz);
}

nvmlReturn_t nvmlDeviceGetClock(nvmlDevice_t device, nvmlClockType_t type, nvmlClockId_t id, unsigned int *mhz)
{
    GPU_CALL(device, mhz && id < NVML_CLOCK_ID_COUNT);
    return give_clock(gpu, type, id == NVML_CLOCK_ID_CURRENT ? sm_clock_mhz(gpu) : highest(gpu), mhz);
}

nvmlReturn_t nvmlDeviceGetMinMaxClockOfPState(nvmlDevice_t device, nvmlClockType_t type, nvmlPstates_t state,
                                              unsigned int *min, unsigned int *max)
{
    GPU_CALL(device, min && max && state == NVML_PSTATE_0);
    nvmlReturn_t answer = give_clock(gpu, type, lowest(gpu), min);
    return answer == NVML_SUCCESS ? give_clock(gpu, type, highest(gpu), max) : answer;
}

nvmlReturn_t nvmlDeviceGetPerformanceState(nvmlDevice_t device, nvmlPstates_t *state)
{
    GPU_CALL(device, state);
    *state = NVML_PSTATE_0;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPowerState(nvmlDevice_t device, nvmlPstates_t *state)
{
    return nvmlDeviceGetPerformanceState(device, state);
}

nvmlReturn_t nvmlDeviceGetSupportedMemoryClocks(nvmlDevice_t device, unsigned int *count, unsigned int *mhz)
{
    GPU_CALL(device, count);
    nvmlReturn_t answer = give_count(count, 1, mhz);
    if (answer == NVML_SUCCESS)
        mhz[0] = gpu->memory_clock_mhz;
    return answer;
}

/* Highest first, as the driver gives them. */
nvmlReturn_t nvmlDeviceGetSupportedGraphicsClocks(nvmlDevice_t device, unsigned int memory_mhz, unsigned int *count,
                                                  unsigned int *mhz)
{
    GPU_CALL(device, count);
    if (memory_mhz != gpu->memory_clock_mhz)
        return NVML_ERROR_NOT_FOUND;
    nvmlReturn_t answer = give_count(count, gpu->clock_count, mhz);
    for (unsigned i = 0; answer == NVML_SUCCESS && i < gpu->clock_count; i++)
        mhz[i] = gpu->clocks_mhz[gpu->clock_count - 1 - i];
    return answer;
}

/* The highest clock of the grid that is not above so many MHz. */
static unsigned snap(const struct sim_gpu *gpu, unsigned mhz)
{
    unsigned best = lowest(gpu);
    for (unsigned i = 0; i < gpu->clock_count && gpu->clocks_mhz[i] <= mhz; i++)
        best = gpu->clocks_mhz[i];
    return best;
}

enum { VOLTA = 7 }; /* before it, no GPU has clock locks */

nvmlReturn_t nvmlDeviceSetGpuLockedClocks(nvmlDevice_t device, unsigned int min, unsigned int max)
{
    GPU_CALL(device, max > 0 && min <= max);
    if (gpu->capability_major < VOLTA)
        return NVML_ERROR_NOT_SUPPORTED;
    WRITES;
    gpu->lock_min_mhz = snap(gpu, min);
    gpu->lock_max_mhz = snap(gpu, max);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceResetGpuLockedClocks(nvmlDevice_t device)
{
    GPU_CALL(device, 1);
    if (gpu->capability_major < VOLTA)
        return NVML_ERROR_NOT_SUPPORTED;
    WRITES;
    gpu->lock_min_mhz = gpu->lock_max_mhz = 0;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device, unsigned long long *reasons)
{
    GPU_CALL(device, reasons);
    *reasons = nvmlClocksEventReasonNone;
    if (gpu->low_clock == SIM_LOW_CLOCK_ALWAYS || (gpu->low_clock == SIM_LOW_CLOCK_IDLE && !gpu_busy(gpu)))
        *reasons = nvmlClocksEventReasonGpuIdle;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device, unsigned long long *reasons)
{
    return nvmlDeviceGetCurrentClocksEventReasons(device, reasons);
}

nvmlReturn_t nvmlDeviceGetSupportedClocksEventReasons(nvmlDevice_t device, unsigned long long *reasons)
{
    GPU_CALL(device, reasons);
    *reasons = nvmlClocksEventReasonAll;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetSupportedClocksThrottleReasons(nvmlDevice_t device, unsigned long long *reasons)
{
    return nvmlDeviceGetSupportedClocksEventReasons(device, reasons);
}
