/* Power, clocks, PCIe: limits are the target's; present values are the GPU's. */
#include "facade.h"

FIGURE(nvmlDeviceGetPowerManagementLimit, unsigned int, target->power_limit_mw)
FIGURE(nvmlDeviceGetEnforcedPowerLimit, unsigned int, target->power_limit_mw)
FIGURE(nvmlDeviceGetPowerManagementDefaultLimit, unsigned int, target->power_default_mw)

nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t device, unsigned int *min, unsigned int *max)
{
    DISGUISE_DEVICE(nvmlDeviceGetPowerManagementLimitConstraints, device, min, max);
    nvmlReturn_t answer = DRIVER(nvmlDeviceGetPowerManagementLimitConstraints)(device, min, max);
    if (!min || !max || !can_tell(answer))
        return answer;
    *min = target->power_min_mw;
    *max = target->power_max_mw;
    return NVML_SUCCESS;
}

/* 0 for a domain that there is not. The video clock follows at about nine tenths. */
static unsigned highest(const struct figures *target, nvmlClockType_t type)
{
    switch (type) {
    case NVML_CLOCK_GRAPHICS:
    case NVML_CLOCK_SM:
        return target->clock_max_mhz;
    case NVML_CLOCK_MEM:
        return target->memory_clock_mhz;
    case NVML_CLOCK_VIDEO:
        return target->clock_max_mhz * 9 / 10;
    default:
        return 0;
    }
}

static nvmlReturn_t give_highest(const struct figures *target, nvmlReturn_t answer, nvmlClockType_t type, unsigned *mhz)
{
    if (!mhz || !can_tell(answer) || !highest(target, type))
        return answer;
    *mhz = highest(target, type);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int *mhz)
{
    DISGUISE_DEVICE(nvmlDeviceGetMaxClockInfo, device, type, mhz);
    return give_highest(target, DRIVER(nvmlDeviceGetMaxClockInfo)(device, type, mhz), type, mhz);
}

/* A present clock is the GPU's, but for a target with slower memory or a lower boost clock. */
static nvmlReturn_t give_present(const struct figures *target, nvmlReturn_t answer, nvmlClockType_t type, unsigned *mhz)
{
    unsigned most = highest(target, type);
    if (answer == NVML_SUCCESS && most && *mhz > most)
        *mhz = most;
    return answer;
}

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int *mhz)
{
    DISGUISE_DEVICE(nvmlDeviceGetClockInfo, device, type, mhz);
    return give_present(target, DRIVER(nvmlDeviceGetClockInfo)(device, type, mhz), type, mhz);
}

/* Clocks that an application may choose: not on a card for games. */
#define APPLICATION_CLOCK(name)                                                     \
    nvmlReturn_t name(nvmlDevice_t device, nvmlClockType_t type, unsigned int *mhz) \
    {                                                                               \
        DISGUISE_DEVICE(name, device, type, mhz);                                   \
        nvmlReturn_t answer = DRIVER(name)(device, type, mhz);                      \
        if (target->consumer && can_tell(answer))                                   \
            return NVML_ERROR_NOT_SUPPORTED;                                        \
        return give_highest(target, answer, type, mhz);                             \
    }

APPLICATION_CLOCK(nvmlDeviceGetApplicationsClock)
APPLICATION_CLOCK(nvmlDeviceGetDefaultApplicationsClock)
APPLICATION_CLOCK(nvmlDeviceGetMaxCustomerBoostClock)

nvmlReturn_t nvmlDeviceGetClock(nvmlDevice_t device, nvmlClockType_t type, nvmlClockId_t id, unsigned int *mhz)
{
    DISGUISE_DEVICE(nvmlDeviceGetClock, device, type, id, mhz);
    nvmlReturn_t answer = DRIVER(nvmlDeviceGetClock)(device, type, id, mhz);
    if (id == NVML_CLOCK_ID_CURRENT)
        return give_present(target, answer, type, mhz);
    if (target->consumer && can_tell(answer))
        return NVML_ERROR_NOT_SUPPORTED;
    return give_highest(target, answer, type, mhz);
}

nvmlReturn_t nvmlDeviceGetMinMaxClockOfPState(nvmlDevice_t device, nvmlClockType_t type, nvmlPstates_t state,
                                              unsigned int *min, unsigned int *max)
{
    DISGUISE_DEVICE(nvmlDeviceGetMinMaxClockOfPState, device, type, state, min, max);
    nvmlReturn_t answer = DRIVER(nvmlDeviceGetMinMaxClockOfPState)(device, type, state, min, max);
    if (answer != NVML_SUCCESS || !highest(target, type))
        return answer;
    *max = highest(target, type);
    *min = type == NVML_CLOCK_MEM ? *max : target->clock_min_mhz;
    return NVML_SUCCESS;
}

/* Cards for games have no sensor for their memory. */
nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device, nvmlTemperatureThresholds_t threshold,
                                               unsigned int *degrees)
{
    DISGUISE_DEVICE(nvmlDeviceGetTemperatureThreshold, device, threshold, degrees);
    nvmlReturn_t answer = DRIVER(nvmlDeviceGetTemperatureThreshold)(device, threshold, degrees);
    int memory = threshold == NVML_TEMPERATURE_THRESHOLD_MEM_MAX;
    return answer == NVML_SUCCESS && memory && target->consumer ? NVML_ERROR_NOT_SUPPORTED : answer;
}

/* The contents of a caller's array, and the number of its entries. */
static nvmlReturn_t give_count(unsigned *count, unsigned have, const void *array)
{
    unsigned room = array ? *count : 0;
    *count = have;
    return room >= have ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}

/* Asked for the count alone, the driver judges the handle. */
static int refuses(nvmlReturn_t answer) { return !can_tell(answer) && answer != NVML_ERROR_INSUFFICIENT_SIZE; }

nvmlReturn_t nvmlDeviceGetSupportedMemoryClocks(nvmlDevice_t device, unsigned int *count, unsigned int *mhz)
{
    DISGUISE_DEVICE(nvmlDeviceGetSupportedMemoryClocks, device, count, mhz);
    unsigned none = 0;
    nvmlReturn_t answer = DRIVER(nvmlDeviceGetSupportedMemoryClocks)(device, count ? &none : NULL, NULL);
    if (refuses(answer))
        return answer;
    answer = give_count(count, 1, mhz);
    if (answer == NVML_SUCCESS)
        mhz[0] = target->memory_clock_mhz;
    return answer;
}

enum { CLOCK_STEP_MHZ = 15 };

/* Highest first, as the driver gives them. */
nvmlReturn_t nvmlDeviceGetSupportedGraphicsClocks(nvmlDevice_t device, unsigned int memory_mhz, unsigned int *count,
                                                  unsigned int *mhz)
{
    DISGUISE_DEVICE(nvmlDeviceGetSupportedGraphicsClocks, device, memory_mhz, count, mhz);
    unsigned none = 0;
    nvmlReturn_t answer = DRIVER(nvmlDeviceGetSupportedMemoryClocks)(device, count ? &none : NULL, NULL);
    if (refuses(answer))
        return answer;
    if (memory_mhz != target->memory_clock_mhz)
        return NVML_ERROR_NOT_FOUND;
    unsigned have = (target->clock_max_mhz - target->clock_min_mhz) / CLOCK_STEP_MHZ + 1;
    answer = give_count(count, have, mhz);
    for (unsigned i = 0; answer == NVML_SUCCESS && i < have; i++)
        mhz[i] = target->clock_max_mhz - i * CLOCK_STEP_MHZ;
    return answer;
}

static unsigned at_most(unsigned value, unsigned limit) { return value < limit ? value : limit; }

/* A link at its highest speed stays so; NVML numbers link speeds like generations. */
FIGURE(nvmlDeviceGetMaxPcieLinkGeneration, unsigned int, target->pcie_generation)
FIGURE(nvmlDeviceGetGpuMaxPcieLinkGeneration, unsigned int, target->pcie_generation)
FIGURE(nvmlDeviceGetPcieLinkMaxSpeed, unsigned int, target->pcie_generation)

nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t device, unsigned int *generation)
{
    DISGUISE_DEVICE(nvmlDeviceGetCurrPcieLinkGeneration, device, generation);
    nvmlReturn_t answer = DRIVER(nvmlDeviceGetCurrPcieLinkGeneration)(device, generation);
    if (answer == NVML_SUCCESS)
        *generation = at_most(*generation, target->pcie_generation);
    return answer;
}

nvmlReturn_t nvmlDeviceGetPcieSpeed(nvmlDevice_t device, unsigned int *mbps)
{
    static const unsigned speeds[] = {0, 2500, 5000, 8000, 16000, 32000, 64000};
    DISGUISE_DEVICE(nvmlDeviceGetPcieSpeed, device, mbps);
    nvmlReturn_t answer = DRIVER(nvmlDeviceGetPcieSpeed)(device, mbps);
    if (answer == NVML_SUCCESS && target->pcie_generation < sizeof speeds / sizeof *speeds)
        *mbps = at_most(*mbps, speeds[target->pcie_generation]);
    return answer;
}
