/* Which GPUs there are, and how each is called. */
#include "sim.h"

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
    HOST_CALL(count);
    *count = host->gpu_count;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCount(unsigned int *count) { return nvmlDeviceGetCount_v2(count); }

static nvmlReturn_t give_gpu(struct call *call, const char *function, struct sim_gpu *gpu, nvmlDevice_t *device)
{
    if (!enter_found(call, function, gpu))
        return call->answer;
    *device = gpu_handle(gpu);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
    CALL_AS(1, device, enter_host(&call, __func__));
    return index < host->gpu_count ? give_gpu(&call, __func__, &host->gpus[index], device)
                                   : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *device)
{
    return nvmlDeviceGetHandleByIndex_v2(index, device);
}

static nvmlReturn_t give_mig_device(struct call *call, const char *function, struct sim_gpu *gpu, const char *uuid,
                                    nvmlDevice_t *device)
{
    FOR_INSTANCES(instance, gpu)
        FOR_COMPUTE(compute, instance)
            if (is_mig_name(gpu, instance, compute, uuid)) {
                if (!enter_found(call, function, gpu))
                    return call->answer;
                *device = mig_handle(gpu, instance, compute);
                return NVML_SUCCESS;
            }
    return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
    HOST_CALL(uuid && device);
    for (unsigned i = 0; i < host->gpu_count; i++)
        if (equal(host->gpus[i].uuid, uuid))
            return give_gpu(&call, __func__, &host->gpus[i], device);
    nvmlReturn_t answer = NVML_ERROR_NOT_FOUND;
    for (unsigned i = 0; i < host->gpu_count && answer == NVML_ERROR_NOT_FOUND; i++)
        answer = give_mig_device(&call, __func__, &host->gpus[i], uuid, device);
    return answer;
}

nvmlReturn_t nvmlDeviceGetHandleByUUIDV(const nvmlUUID_t *uuid, nvmlDevice_t *device)
{
    if (!uuid)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (uuid->version != nvmlUUID_v1)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (uuid->type != NVML_UUID_TYPE_ASCII)
        return NVML_ERROR_NOT_SUPPORTED;
    return nvmlDeviceGetHandleByUUID(uuid->value.str, device);
}

nvmlReturn_t nvmlDeviceGetHandleBySerial(const char *serial, nvmlDevice_t *device)
{
    HOST_CALL(serial && device);
    for (unsigned i = 0; i < host->gpu_count; i++)
        if (equal(host->gpus[i].serial, serial))
            return give_gpu(&call, __func__, &host->gpus[i], device);
    return NVML_ERROR_NOT_FOUND;
}

static void add_bus_id(struct text *text, const struct sim_gpu *gpu, unsigned domain_digits)
{
    add_number(text, gpu->pci_domain, 16, domain_digits);
    add(text, ":");
    add_number(text, gpu->pci_bus, 16, 2);
    add(text, ":");
    add_number(text, gpu->pci_device, 16, 2);
    add(text, ".0");
}

/* Case and leading zeros do not matter, and the domain may be left out. */
static int bus_id_is(const struct sim_gpu *gpu, const char *typed)
{
    struct text full = {0};
    add_bus_id(&full, gpu, 8);
    size_t n = length(typed);
    if (n > full.n || n < 7)
        return 0;
    const char *tail = full.s + full.n - n;
    for (const char *skipped = full.s; skipped < tail; skipped++)
        if (*skipped != '0' && !(n == 7 && gpu->pci_domain == 0))
            return 0;
    for (size_t i = 0; i < n; i++) {
        char c = typed[i] >= 'a' && typed[i] <= 'f' ? (char)(typed[i] - 'a' + 'A') : typed[i];
        if (c != tail[i])
            return 0;
    }
    return 1;
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvmlDevice_t *device)
{
    HOST_CALL(bus_id && device);
    for (unsigned i = 0; i < host->gpu_count; i++)
        if (bus_id_is(&host->gpus[i], bus_id))
            return give_gpu(&call, __func__, &host->gpus[i], device);
    return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *bus_id, nvmlDevice_t *device)
{
    return nvmlDeviceGetHandleByPciBusId_v2(bus_id, device);
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    DEVICE_READ(device, pci);
    struct text legacy = {0}, full = {0};
    add_bus_id(&legacy, gpu, 4);
    add_bus_id(&full, gpu, 8);
    memset(pci, 0, sizeof *pci);
    memcpy(pci->busIdLegacy, legacy.s, legacy.n);
    memcpy(pci->busId, full.s, full.n);
    pci->domain = gpu->pci_domain;
    pci->bus = gpu->pci_bus;
    pci->device = gpu->pci_device;
    pci->pciDeviceId = pci->pciSubSystemId = gpu->pci_device_id;
    return NVML_SUCCESS;
}

/* All GPUs here are 3D controllers. */
nvmlReturn_t nvmlDeviceGetPciInfoExt(nvmlDevice_t device, nvmlPciInfoExt_t *pci)
{
    if (pci && pci->version != nvmlPciInfoExt_v1)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    DEVICE_CALL(device, pci);
    struct text full = {0};
    add_bus_id(&full, gpu, 8);
    memset(pci, 0, sizeof *pci);
    memcpy(pci->busId, full.s, full.n);
    pci->version = nvmlPciInfoExt_v1;
    pci->domain = gpu->pci_domain;
    pci->bus = gpu->pci_bus;
    pci->device = gpu->pci_device;
    pci->pciDeviceId = pci->pciSubSystemId = gpu->pci_device_id;
    pci->baseClass = 3;
    pci->subClass = 2;
    return NVML_SUCCESS;
}

/* The older structs end where busId begins now. */
nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    nvmlPciInfo_t whole;
    nvmlReturn_t answer = pci ? nvmlDeviceGetPciInfo_v3(device, &whole) : NVML_ERROR_INVALID_ARGUMENT;
    if (answer == NVML_SUCCESS)
        memcpy(pci, &whole, offsetof(nvmlPciInfo_t, busId));
    return answer;
}

nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    return nvmlDeviceGetPciInfo_v2(device, pci);
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length)
{
    CALL_AS(is_gpu(device), name, enter_device(&call, __func__, device));
    struct text text = {0};
    add(&text, gpu->name);
    if (call.compute) {
        add(&text, " MIG ");
        add_compute_name(&text, profile_of(gpu, call.instance), call.compute->size);
    }
    return give_text(name, length, text.s);
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length)
{
    CALL_AS(is_gpu(device), uuid, enter_device(&call, __func__, device));
    return give_text(uuid, length, call.compute ? mig_name(gpu, call.instance, call.compute).s : gpu->uuid);
}

nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t device, char *serial, unsigned int length)
{
    GPU_CALL(device, serial);
    return give_text(serial, length, gpu->serial);
}

/* Of a MIG device: its place among those of its GPU. */
nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index)
{
    DEVICE_CALL(device, index);
    *index = gpu_index(gpu);
    if (!call.compute)
        return NVML_SUCCESS;
    *index = 0;
    FOR_INSTANCES(instance, gpu)
        FOR_COMPUTE(compute, instance) {
            if (compute == call.compute)
                return NVML_SUCCESS;
            ++*index;
        }
    return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned int *minor)
{
    DEVICE_CALL(device, minor);
    *minor = gpu_index(gpu);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetBrand(nvmlDevice_t device, nvmlBrandType_t *brand)
{
    DEVICE_CALL(device, brand);
    *brand = (nvmlBrandType_t)gpu->brand;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t device, nvmlDeviceArchitecture_t *architecture)
{
    DEVICE_CALL(device, architecture);
    *architecture = gpu->architecture;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor)
{
    DEVICE_READ(device, major && minor);
    *major = (int)gpu->capability_major;
    *minor = (int)gpu->capability_minor;
    return NVML_SUCCESS;
}
