/* Properties of the card around the GPU: PCIe, ECC, display, and modes that no call changes. */
#include "sim.h"

/* A getter of a physical GPU that gives one number. */
#define NUMBER(name, type, expression)                  \
    nvmlReturn_t name(nvmlDevice_t device, type *value) \
    {                                                   \
        GPU_READ(device, value);                        \
        *value = (type)(expression);                    \
        return NVML_SUCCESS;                            \
    }

static unsigned pcie_generation(const struct sim_gpu *gpu) { return gpu->capability_major >= 9 ? 5 : 4; }

NUMBER(nvmlDeviceGetNumGpuCores, unsigned int, gpu->cores)
NUMBER(nvmlDeviceGetMemoryBusWidth, unsigned int, gpu->bus_bits)
NUMBER(nvmlDeviceGetMultiGpuBoard, unsigned int, 0)
NUMBER(nvmlDeviceGetBoardId, unsigned int, gpu->pci_domain << 16 | gpu->pci_bus << 8)
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, unsigned int, pcie_generation(gpu))
NUMBER(nvmlDeviceGetGpuMaxPcieLinkGeneration, unsigned int, pcie_generation(gpu))
NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, unsigned int, pcie_generation(gpu))
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, unsigned int, 16)
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, unsigned int, 16)
NUMBER(nvmlDeviceGetPcieReplayCounter, unsigned int, 0)
NUMBER(nvmlDeviceGetDisplayMode, nvmlEnableState_t, NVML_FEATURE_DISABLED)
NUMBER(nvmlDeviceGetDisplayActive, nvmlEnableState_t, NVML_FEATURE_DISABLED)
NUMBER(nvmlDeviceGetPersistenceMode, nvmlEnableState_t, gpu->persistence)
NUMBER(nvmlDeviceGetComputeMode, nvmlComputeMode_t, gpu->compute_mode)
NUMBER(nvmlDeviceGetAccountingMode, nvmlEnableState_t, NVML_FEATURE_DISABLED)
NUMBER(nvmlDeviceGetVirtualizationMode, nvmlGpuVirtualizationMode_t, NVML_GPU_VIRTUALIZATION_MODE_NONE)

nvmlReturn_t nvmlDeviceSetPersistenceMode(nvmlDevice_t device, nvmlEnableState_t mode)
{
    GPU_CALL(device, mode == NVML_FEATURE_DISABLED || mode == NVML_FEATURE_ENABLED);
    WRITES;
    gpu->persistence = mode;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceSetComputeMode(nvmlDevice_t device, nvmlComputeMode_t mode)
{
    GPU_CALL(device, mode < NVML_COMPUTEMODE_COUNT && mode != NVML_COMPUTEMODE_EXCLUSIVE_THREAD);
    WRITES;
    gpu->compute_mode = mode;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetVbiosVersion(nvmlDevice_t device, char *version, unsigned int length)
{
    GPU_CALL(device, version);
    return give_text(version, length, "96.00.74.00.01");
}

nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, nvmlEnableState_t *current, nvmlEnableState_t *pending)
{
    GPU_CALL(device, current && pending);
    *current = *pending = gpu->ecc;
    return gpu->ecc ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlDeviceGetDefaultEccMode(nvmlDevice_t device, nvmlEnableState_t *mode)
{
    GPU_CALL(device, mode);
    *mode = gpu->ecc;
    return gpu->ecc ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t error, nvmlEccCounterType_t counter,
                                         unsigned long long *count)
{
    (void)error, (void)counter;
    GPU_CALL(device, count);
    *count = 0;
    return gpu->ecc ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

/* nvidia-smi -q leaves a MIG device out if this is not answered for it. */
nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t device, nvmlMemoryErrorType_t error,
                                             nvmlEccCounterType_t counter, nvmlMemoryLocation_t location,
                                             unsigned long long *count)
{
    (void)error, (void)counter, (void)location;
    DEVICE_CALL(device, count);
    *count = 0;
    return gpu->ecc ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *utilization)
{
    GPU_CALL(device, utilization);
    if (gpu->mig)
        return NVML_ERROR_NOT_SUPPORTED;
    utilization->gpu = gpu_busy(gpu) ? 100 : 0;
    utilization->memory = gpu_busy(gpu) ? 50 : 0;
    return NVML_SUCCESS;
}

/* Constant: the simulated GPU heats up only if a test sets the temperature. */
nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t sensor, unsigned int *degrees)
{
    GPU_READ(device, degrees && sensor == NVML_TEMPERATURE_GPU);
    *degrees = gpu->temperature_c;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t device, nvmlTemperature_t *temperature)
{
    if (!temperature)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (temperature->version != nvmlTemperature_v1)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    unsigned degrees = 0;
    nvmlReturn_t answer = nvmlDeviceGetTemperature(device, temperature->sensorType, &degrees);
    temperature->temperature = (int)degrees;
    return answer;
}

nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device, nvmlTemperatureThresholds_t threshold,
                                               unsigned int *degrees)
{
    GPU_CALL(device, degrees);
    switch (threshold) {
    case NVML_TEMPERATURE_THRESHOLD_SHUTDOWN:
        *degrees = 95;
        return NVML_SUCCESS;
    case NVML_TEMPERATURE_THRESHOLD_SLOWDOWN:
        *degrees = 90;
        return NVML_SUCCESS;
    case NVML_TEMPERATURE_THRESHOLD_MEM_MAX:
    case NVML_TEMPERATURE_THRESHOLD_GPU_MAX:
        *degrees = 85;
        return NVML_SUCCESS;
    default:
        return NVML_ERROR_NOT_SUPPORTED;
    }
}
