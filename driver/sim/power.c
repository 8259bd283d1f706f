/* Power, and the fields through which nvidia-smi reads it. All in mW. */
#include "sim.h"

/* Plausible, not measured: a tenth of the default when idle, 7/10 of the limit when busy. */
unsigned power_draw_mw(const struct sim_gpu *gpu)
{
    return gpu_busy(gpu) ? gpu->power_limit_mw / 10 * 7 : gpu->power_default_mw / 10;
}

nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int *mw)
{
    GPU_CALL(device, mw);
    *mw = power_draw_mw(gpu);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPowerManagementMode(nvmlDevice_t device, nvmlEnableState_t *mode)
{
    GPU_CALL(device, mode);
    *mode = NVML_FEATURE_ENABLED;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPowerManagementLimit(nvmlDevice_t device, unsigned int *mw)
{
    GPU_READ(device, mw);
    *mw = gpu->power_limit_mw;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned int *mw)
{
    GPU_READ(device, mw);
    *mw = gpu->power_limit_mw;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPowerManagementDefaultLimit(nvmlDevice_t device, unsigned int *mw)
{
    GPU_READ(device, mw);
    *mw = gpu->power_default_mw;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t device, unsigned int *min, unsigned int *max)
{
    GPU_READ(device, min && max);
    *min = gpu->power_min_mw;
    *max = gpu->power_max_mw;
    return NVML_SUCCESS;
}

static nvmlReturn_t set_limit(nvmlDevice_t device, const char *function, unsigned mw)
{
    CALL(1, enter_gpu(&call, function, device));
    if (mw < gpu->power_min_mw || mw > gpu->power_max_mw)
        return NVML_ERROR_INVALID_ARGUMENT;
    WRITES;
    unsigned step = gpu->power_step_w * 1000u, rounded = step ? mw - mw % step : mw;
    gpu->power_limit_mw = rounded < gpu->power_min_mw ? gpu->power_min_mw : rounded;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceSetPowerManagementLimit(nvmlDevice_t device, unsigned int mw)
{
    return set_limit(device, __func__, mw);
}

nvmlReturn_t nvmlDeviceSetPowerManagementLimit_v2(nvmlDevice_t device, nvmlPowerValue_v2_t *value)
{
    if (!value)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (value->version != nvmlPowerValue_v2)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (value->powerScope != NVML_POWER_SCOPE_GPU)
        return NVML_ERROR_NOT_SUPPORTED;
    return set_limit(device, __func__, value->powerValueMw);
}

static void give_unsigned(nvmlFieldValue_t *field, unsigned value)
{
    field->valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
    field->value.uiVal = value;
}

static void give_signed(nvmlFieldValue_t *field, int value)
{
    field->valueType = NVML_VALUE_TYPE_SIGNED_INT;
    field->value.siVal = value;
}

static void give_field(const struct sim_gpu *gpu, nvmlFieldValue_t *field)
{
    field->timestamp = field->latencyUsec = 0;
    field->nvmlReturn = NVML_SUCCESS;
    field->value.ullVal = 0;
    if (field->scopeId != 0) { /* of a module around the GPU, of a link */
        field->nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
        return;
    }
    switch (field->fieldId) {
    case NVML_FI_DEV_POWER_AVERAGE:
    case NVML_FI_DEV_POWER_INSTANT:
        return give_unsigned(field, power_draw_mw(gpu));
    case NVML_FI_DEV_POWER_MIN_LIMIT:
        return give_unsigned(field, gpu->power_min_mw);
    case NVML_FI_DEV_POWER_MAX_LIMIT:
        return give_unsigned(field, gpu->power_max_mw);
    case NVML_FI_DEV_POWER_DEFAULT_LIMIT:
        return give_unsigned(field, gpu->power_default_mw);
    case NVML_FI_DEV_POWER_CURRENT_LIMIT:
    case NVML_FI_DEV_POWER_REQUESTED_LIMIT:
        return give_unsigned(field, gpu->power_limit_mw);
    case NVML_FI_DEV_MEMORY_TEMP:
        return give_unsigned(field, gpu->temperature_c);
    case NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT:
        return give_signed(field, -8);
    case NVML_FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT:
        return give_signed(field, -2);
    case NVML_FI_DEV_TEMPERATURE_MEM_MAX_TLIMIT:
    case NVML_FI_DEV_TEMPERATURE_GPU_MAX_TLIMIT:
        return give_signed(field, 0);
    case NVML_FI_DEV_PCIE_REPLAY_COUNTER:
    case NVML_FI_DEV_PCIE_REPLAY_ROLLOVER_COUNTER:
    case NVML_FI_DEV_NVLINK_LINK_COUNT:
    case NVML_FI_DEV_RESET_STATUS:
    case NVML_FI_DEV_DRAIN_AND_RESET_STATUS:
        return give_unsigned(field, 0);
    default:
        field->nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
    }
}

nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values)
{
    DEVICE_CALL(device, values && count > 0);
    for (int i = 0; i < count; i++) {
        if (call.compute)
            values[i].nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
        else
            give_field(gpu, &values[i]);
    }
    return NVML_SUCCESS;
}
