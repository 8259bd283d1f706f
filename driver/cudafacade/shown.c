/* The properties of the GPU that a program sees: the target's, except where those would break computation. */
#include "facade.h"

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }
static uint64_t total(const struct figures *target) { return target->memory_mib * MIB; }

/*
 * The driver validates the call, with buffers of the facade, because a program may request only one of the two
 * values.
 */
CUresult cuMemGetInfo_v2(size_t *free, size_t *all)
{
    DISGUISE(cuMemGetInfo_v2, free, all);
    size_t true_free, true_all;
    CUresult answer = DRIVER(cuMemGetInfo_v2)(&true_free, &true_all);
    if (answer != CUDA_SUCCESS)
        return answer;
    if (free)
        *free = least(total(target) - in_use(target), true_free);
    if (all)
        *all = total(target);
    return CUDA_SUCCESS;
}

/* 32 bits hold no more. */
CUresult cuMemGetInfo(uint32_t *free, uint32_t *all)
{
    DISGUISE(cuMemGetInfo, free, all);
    uint32_t true_free, true_all;
    CUresult answer = DRIVER(cuMemGetInfo)(&true_free, &true_all);
    if (answer != CUDA_SUCCESS)
        return answer;
    if (free)
        *free = (uint32_t)least(total(target) - in_use(target), true_free);
    if (all)
        *all = (uint32_t)least(total(target), UINT32_MAX);
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    DISGUISE_DEVICE(device, cuDeviceTotalMem_v2, bytes, device);
    CUresult answer = DRIVER(cuDeviceTotalMem_v2)(bytes, device);
    if (answer == CUDA_SUCCESS)
        *bytes = total(target);
    return answer;
}

CUresult cuDeviceTotalMem(uint32_t *bytes, CUdevice device)
{
    DISGUISE_DEVICE(device, cuDeviceTotalMem, bytes, device);
    CUresult answer = DRIVER(cuDeviceTotalMem)(bytes, device);
    if (answer == CUDA_SUCCESS)
        *bytes = (uint32_t)least(total(target), UINT32_MAX);
    return answer;
}

CUresult cuDeviceGetName(char *name, int size, CUdevice device)
{
    DISGUISE_DEVICE(device, cuDeviceGetName, name, size, device);
    CUresult answer = DRIVER(cuDeviceGetName)(name, size, device);
    if (answer != CUDA_SUCCESS || !name || size <= 0)
        return answer;
    size_t n = least(length(target->name), (size_t)size - 1);
    memcpy(name, target->name, n);
    name[n] = 0;
    return CUDA_SUCCESS;
}

/* The same that NVML shows. */
#define SHOWN_UUID(name)                                                \
    CUresult name(CUuuid *uuid, CUdevice device)                        \
    {                                                                   \
        DISGUISE_DEVICE(device, name, uuid, device);                    \
        CUuuid shown;                                                   \
        CUresult answer = DRIVER(name)(uuid, device);                   \
        if (answer == CUDA_SUCCESS && parse_uuid(&shown, target->uuid)) \
            *uuid = shown;                                              \
        return answer;                                                  \
    }

SHOWN_UUID(cuDeviceGetUuid)
SHOWN_UUID(cuDeviceGetUuid_v2)

/*
 * Compute capability, shared memory and threads keep the GPU's values, because kernels depend on them. Of the two
 * numbers of SMs the smaller one is shown: a program that expects more SMs than exist may wait forever.
 */
static int attribute(const struct figures *target, int which, int real)
{
    switch (which) {
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        return target->sms && (int)target->sms < real ? (int)target->sms : real;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
        return target->clock_max_mhz ? (int)target->clock_max_mhz * 1000 : real;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
        return target->memory_clock_mhz ? (int)target->memory_clock_mhz * 1000 : real;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
        return target->bus_bits ? (int)target->bus_bits : real;
    case CU_DEVICE_ATTRIBUTE_ECC_ENABLED:
        return target->consumer ? 0 : real;
    default:
        return real;
    }
}

CUresult cuDeviceGetAttribute(int *value, int which, CUdevice device)
{
    DISGUISE_DEVICE(device, cuDeviceGetAttribute, value, which, device);
    CUresult answer = DRIVER(cuDeviceGetAttribute)(value, which, device);
    if (answer == CUDA_SUCCESS)
        *value = attribute(target, which, *value);
    return answer;
}

CUresult cuDeviceGetProperties(CUdevprop *properties, CUdevice device)
{
    DISGUISE_DEVICE(device, cuDeviceGetProperties, properties, device);
    CUresult answer = DRIVER(cuDeviceGetProperties)(properties, device);
    if (answer == CUDA_SUCCESS)
        properties->clock_khz = attribute(target, CU_DEVICE_ATTRIBUTE_CLOCK_RATE, properties->clock_khz);
    return answer;
}
