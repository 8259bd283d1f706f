/* The GPUs of the session, and how they are called. */
#include "facade.h"

nvmlReturn_t find_slice(const struct figures *target, nvmlDevice_t *slice)
{
    nvmlReturn_t answer = DRIVER(nvmlDeviceGetHandleByUUID)(target->slice, slice);
    return answer == NVML_ERROR_NOT_FOUND ? NVML_ERROR_GPU_IS_LOST : answer;
}

nvmlReturn_t find_gpu(const struct figures *target, nvmlDevice_t *gpu)
{
    nvmlDevice_t slice;
    nvmlReturn_t answer = find_slice(target, &slice);
    if (answer != NVML_SUCCESS)
        return answer;
    if (starts_with(target->slice, "MIG-"))
        return DRIVER(nvmlDeviceGetDeviceHandleFromMigDeviceHandle)(slice, gpu);
    *gpu = slice;
    return NVML_SUCCESS;
}

const struct figures *figures_of(const struct figures *first, nvmlDevice_t device)
{
    nvmlDevice_t gpu;
    for (unsigned i = 0; figures_count() > 1 && i < figures_count(); i++)
        if (find_gpu(&first[i], &gpu) == NVML_SUCCESS && gpu.handle == device.handle)
            return &first[i];
    return first;
}

#define COUNT(name)                                \
    nvmlReturn_t name(unsigned int *count)         \
    {                                              \
        DISGUISE(name, count);                     \
        nvmlReturn_t answer = DRIVER(name)(count); \
        if (answer == NVML_SUCCESS)                \
            *count = figures_count();              \
        return answer;                             \
    }

COUNT(nvmlDeviceGetCount)
COUNT(nvmlDeviceGetCount_v2)

#define BY_INDEX(name)                                          \
    nvmlReturn_t name(unsigned int index, nvmlDevice_t *device) \
    {                                                           \
        DISGUISE(name, index, device);                          \
        if (!device || index >= figures_count())                \
            return NVML_ERROR_INVALID_ARGUMENT;                 \
        return find_gpu(&target[index], device);                \
    }

BY_INDEX(nvmlDeviceGetHandleByIndex)
BY_INDEX(nvmlDeviceGetHandleByIndex_v2)

/* Finds the device by the UUID that is shown, or by that of the slice, which the environment has. */
static nvmlReturn_t by_uuid(const struct figures *target, const char *uuid, nvmlDevice_t *device)
{
    for (unsigned i = 0; i < figures_count(); i++)
        if (equal(uuid, target[i].uuid) || equal(uuid, target[i].slice))
            return find_gpu(&target[i], device);
    return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
    DISGUISE(nvmlDeviceGetHandleByUUID, uuid, device);
    if (!uuid || !device)
        return NVML_ERROR_INVALID_ARGUMENT;
    return by_uuid(target, uuid, device);
}

static unsigned hex(char digit) { return digit <= '9' ? (unsigned)(digit - '0') : (unsigned)((digit | 32) - 'a' + 10); }

/* "GPU-" and 32 digits in groups, against 16 bytes. */
static int is_binary(const char *uuid, const unsigned char *bytes)
{
    const char *at = uuid + 4;
    for (unsigned i = 0; i < 16; i++) {
        at += *at == '-';
        if (!at[0] || !at[1] || (hex(at[0]) << 4 | hex(at[1])) != bytes[i])
            return 0;
        at += 2;
    }
    return 1;
}

nvmlReturn_t nvmlDeviceGetHandleByUUIDV(const nvmlUUID_t *uuid, nvmlDevice_t *device)
{
    DISGUISE(nvmlDeviceGetHandleByUUIDV, uuid, device);
    if (!uuid || !device)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (uuid->version != nvmlUUID_v1)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (uuid->type == NVML_UUID_TYPE_ASCII)
        return by_uuid(target, uuid->value.str, device);
    if (uuid->type != NVML_UUID_TYPE_BINARY)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned i = 0; i < figures_count(); i++)
        if (is_binary(target[i].uuid, uuid->value.bytes))
            return find_gpu(&target[i], device);
    return NVML_ERROR_NOT_FOUND;
}

/* The driver reads the address; only those of the session's GPUs are there. */
static nvmlReturn_t ours(const struct figures *target, nvmlDevice_t asked, nvmlDevice_t *device)
{
    for (unsigned i = 0; i < figures_count(); i++) {
        nvmlDevice_t gpu;
        nvmlReturn_t answer = find_gpu(&target[i], &gpu);
        if (answer != NVML_SUCCESS)
            return answer;
        if (asked.handle != gpu.handle)
            continue;
        *device = gpu;
        return NVML_SUCCESS;
    }
    return NVML_ERROR_NOT_FOUND;
}

#define BY_BUS_ID(name)                                                       \
    nvmlReturn_t name(const char *bus_id, nvmlDevice_t *device)               \
    {                                                                         \
        DISGUISE(name, bus_id, device);                                       \
        nvmlDevice_t asked;                                                   \
        if (!device)                                                          \
            return NVML_ERROR_INVALID_ARGUMENT;                               \
        nvmlReturn_t answer = DRIVER(name)(bus_id, &asked);                   \
        return answer == NVML_SUCCESS ? ours(target, asked, device) : answer; \
    }

BY_BUS_ID(nvmlDeviceGetHandleByPciBusId)
BY_BUS_ID(nvmlDeviceGetHandleByPciBusId_v2)

static nvmlReturn_t give_text(char *to, unsigned size, const char *text)
{
    size_t n = length(text) + 1;
    if (n > size)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    memcpy(to, text, n);
    return NVML_SUCCESS;
}

/*
 * The driver gets a buffer of the facade, so that only the length of the target's text decides whether the caller's
 * is too small.
 */
#define TEXT(name, figure)                                                       \
    nvmlReturn_t name(nvmlDevice_t device, char *text, unsigned int size)        \
    {                                                                            \
        DISGUISE_DEVICE(name, device, text, size);                               \
        char true_text[256];                                                     \
        if (!text)                                                               \
            return NVML_ERROR_INVALID_ARGUMENT;                                  \
        nvmlReturn_t answer = DRIVER(name)(device, true_text, sizeof true_text); \
        return answer == NVML_SUCCESS ? give_text(text, size, figure) : answer;  \
    }

TEXT(nvmlDeviceGetName, target->name)
TEXT(nvmlDeviceGetUUID, target->uuid)

FIGURE(nvmlDeviceGetIndex, unsigned int, target - the_figures())
FIGURE(nvmlDeviceGetBrand, nvmlBrandType_t, target->brand)
FIGURE(nvmlDeviceGetArchitecture, nvmlDeviceArchitecture_t, target->architecture)
FIGURE(nvmlDeviceGetNumGpuCores, unsigned int, target->cores)
FIGURE(nvmlDeviceIsMigDeviceHandle, unsigned int, 0)
FIGURE(nvmlDeviceGetMaxMigDeviceCount, unsigned int, 0)

/* The address is the GPU's. Its model number would reveal the GPU, and that of the target is unknown. */
enum { VENDOR_ONLY = 0x10DE };

#define PCI(name, type, ids)                             \
    nvmlReturn_t name(nvmlDevice_t device, type *pci)    \
    {                                                    \
        DISGUISE_DEVICE(name, device, pci);              \
        nvmlReturn_t answer = DRIVER(name)(device, pci); \
        if (answer == NVML_SUCCESS) {                    \
            pci->pciDeviceId = VENDOR_ONLY;              \
            ids;                                         \
        }                                                \
        return answer;                                   \
    }

PCI(nvmlDeviceGetPciInfo, nvmlPciInfo_t, (void)0) /* the oldest struct ends before the board's id */
PCI(nvmlDeviceGetPciInfo_v2, nvmlPciInfo_t, pci->pciSubSystemId = 0)
PCI(nvmlDeviceGetPciInfo_v3, nvmlPciInfo_t, pci->pciSubSystemId = 0)
PCI(nvmlDeviceGetPciInfoExt, nvmlPciInfoExt_t, pci->pciSubSystemId = 0)
