/* Field values: figures by number, many at a time. */
#include "facade.h"

/* The target's figure for a field; 0 where it has none. */
static unsigned power(const struct figures *target, unsigned id)
{
    switch (id) {
    case NVML_FI_DEV_POWER_MIN_LIMIT:
        return target->power_min_mw;
    case NVML_FI_DEV_POWER_MAX_LIMIT:
        return target->power_max_mw;
    case NVML_FI_DEV_POWER_DEFAULT_LIMIT:
        return target->power_default_mw;
    case NVML_FI_DEV_POWER_CURRENT_LIMIT:
    case NVML_FI_DEV_POWER_REQUESTED_LIMIT:
        return target->power_limit_mw;
    default:
        return 0;
    }
}

struct span {
    unsigned from, to;
};

static int in(const struct span *spans, unsigned count, unsigned id)
{
    for (unsigned i = 0; i < count; i++)
        if (id >= spans[i].from && id <= spans[i].to)
            return 1;
    return 0;
}
#define IN(spans, id) in(spans, sizeof spans / sizeof *spans, id)

/* Links to other GPUs, MIG, modules that hold several GPUs: a session has one GPU, alone. */
static const struct span alone[] = {
    {NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L0, NVML_FI_DEV_NVLINK_BANDWIDTH_C1_TOTAL},
    {NVML_FI_DEV_NVLINK_SPEED_MBPS_L0, NVML_FI_DEV_NVLINK_LINK_COUNT},
    {NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L6, NVML_FI_DEV_NVLINK_BANDWIDTH_C1_L11},
    {NVML_FI_DEV_NVLINK_SPEED_MBPS_L6, NVML_FI_DEV_NVLINK_SPEED_MBPS_L11},
    {NVML_FI_DEV_NVLINK_REMOTE_NVLINK_ID, NVML_FI_DEV_NVLINK_GET_POWER_THRESHOLD},
    {NVML_FI_DEV_C2C_LINK_COUNT, NVML_FI_DEV_C2C_LINK_GET_MAX_BW},
    {NVML_FI_DEV_IS_RESETLESS_MIG_SUPPORTED, NVML_FI_DEV_IS_RESETLESS_MIG_SUPPORTED},
    {NVML_FI_DEV_IS_MIG_MODE_INDEPENDENT_MIG_QUERY_CAPABLE, NVML_FI_DEV_NVLINK_GET_POWER_THRESHOLD_MAX},
    {NVML_FI_DEV_NVLINK_COUNT_XMIT_PACKETS, NVML_FI_DEV_NVLINK_GET_POWER_THRESHOLD_SUPPORTED},
    {NVML_FI_DEV_C2C_LINK_ERROR_INTR, NVML_FI_DEV_NVLINK_COUNT_FEC_HISTORY_15},
    {NVML_FI_PWR_SMOOTHING_ENABLED, NVML_FI_PWR_SMOOTHING_ADMIN_OVERRIDE_RAMP_DOWN_HYST_VAL},
};

/* ECC and the pages and rows that it found bad. */
static const struct span ecc[] = {
    {NVML_FI_DEV_ECC_CURRENT, NVML_FI_DEV_RETIRED_PENDING},
    {NVML_FI_DEV_RETIRED_PENDING_SBE, NVML_FI_DEV_RETIRED_PENDING_DBE},
    {NVML_FI_DEV_REMAPPED_COR, NVML_FI_DEV_REMAPPED_FAILURE},
};

/* Sensors that cards for games do not report. */
static const struct span sensors[] = {
    {NVML_FI_DEV_MEMORY_TEMP, NVML_FI_DEV_MEMORY_TEMP},
    {NVML_FI_DEV_TEMPERATURE_MEM_MAX_TLIMIT, NVML_FI_DEV_TEMPERATURE_MEM_MAX_TLIMIT},
};

/* Measurements of the whole GPU. */
static void scale(const struct figures *target, nvmlFieldValue_t *field)
{
    if (field->nvmlReturn != NVML_SUCCESS)
        return;
    switch (field->fieldId) {
    case NVML_FI_DEV_POWER_AVERAGE:
    case NVML_FI_DEV_POWER_INSTANT:
        field->value.uiVal = shown_power(target, field->value.uiVal);
        return;
    case NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION:
    case NVML_FI_DEV_ENERGY:
        field->value.ullVal = shown_energy(target, field->value.ullVal);
        return;
    default:
        return;
    }
}

static void treat(const struct figures *target, nvmlFieldValue_t *field)
{
    unsigned id = field->fieldId, mw = power(target, id);
    scale(target, field);
    if (IN(alone, id) || (target->consumer && (IN(ecc, id) || IN(sensors, id))) ||
        (mw && field->scopeId != NVML_POWER_SCOPE_GPU)) {
        field->nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
        field->value.ullVal = 0;
    } else if (mw && can_tell(field->nvmlReturn)) {
        field->nvmlReturn = NVML_SUCCESS;
        field->valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
        field->value.ullVal = mw;
    }
}

nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values)
{
    DISGUISE_DEVICE(nvmlDeviceGetFieldValues, device, count, values);
    nvmlReturn_t answer = DRIVER(nvmlDeviceGetFieldValues)(device, count, values);
    for (int i = 0; answer == NVML_SUCCESS && i < count; i++)
        treat(target, &values[i]);
    return answer;
}
