/* Which devices there are: the GPUs and slices of the simulated host that CUDA_VISIBLE_DEVICES names. */
#include "cudasim.h"

struct device devices[MAX_DEVICES];
int device_count;
static uint32_t owner; /* pid that called cuInit: CUDA does not survive a fork */
static char thread_lock;

const struct sim_gpu *gpu_of(const struct device *device) { return &host->gpus[device->gpu]; }

static const struct sim_profile *slice_profile(const struct sim_gpu *gpu, int gpu_instance)
{
    return &gpu->profiles[gpu->instances[gpu_instance].profile];
}

uint64_t memory_of(const struct device *device)
{
    const struct sim_gpu *gpu = gpu_of(device);
    if (device->gpu_instance == SIM_WHOLE_GPU)
        return (gpu->memory_mib - gpu->memory_mib / 256) * MIB; /* without what the driver keeps */
    return slice_profile(gpu, device->gpu_instance)->memory_mib * MIB;
}

static void add_device(unsigned gpu, int gpu_instance, int compute_instance)
{
    if (device_count == MAX_DEVICES)
        return;
    devices[device_count] =
        (struct device){.gpu = gpu, .gpu_instance = gpu_instance, .compute_instance = compute_instance};
    device_count++;
}

/* With MIG on, a GPU is its first slice, or nothing. */
static void add_gpu(unsigned index)
{
    const struct sim_gpu *gpu = &host->gpus[index];
    if (!gpu->mig) {
        add_device(index, SIM_WHOLE_GPU, SIM_WHOLE_GPU);
        return;
    }
    for (int i = 0; i < SIM_MAX_GPU_INSTANCES; i++)
        for (int c = 0; gpu->instances[i].used && c < SIM_MAX_COMPUTE_INSTANCES; c++)
            if (gpu->instances[i].compute[c].used) {
                add_device(index, i, c);
                return;
            }
}

static int add_slice(const char *uuid)
{
    for (unsigned g = 0; g < host->gpu_count; g++)
        for (int i = 0; i < SIM_MAX_GPU_INSTANCES; i++)
            for (int c = 0; c < SIM_MAX_COMPUTE_INSTANCES; c++) {
                const struct sim_gpu_instance *instance = &host->gpus[g].instances[i];
                const struct sim_compute_instance *compute = &instance->compute[c];
                if (!instance->used || !compute->used ||
                    (!starts_with(mig_name(&host->gpus[g], instance, compute).s, uuid) &&
                     !is_mig_name(&host->gpus[g], instance, compute, uuid)))
                    continue;
                add_device(g, i, c);
                return 1;
            }
    return 0;
}

/* An index, or the beginning of a UUID. */
static int add_named(const char *name)
{
    if (starts_with(name, "MIG-"))
        return add_slice(name);
    unsigned index = 0;
    const char *digit = name;
    for (; *digit >= '0' && *digit <= '9'; digit++)
        index = index * 10 + (unsigned)(*digit - '0');
    int is_number = digit > name && !*digit;
    for (unsigned i = 0; i < host->gpu_count; i++)
        if (is_number ? i == index : starts_with(name, "GPU-") && starts_with(host->gpus[i].uuid, name)) {
            add_gpu(i);
            return 1;
        }
    return 0;
}

/* Up to the first name that is none, as CUDA does it. */
static void add_list(const char *list)
{
    while (*list && device_count < MAX_DEVICES) {
        struct text name = {0};
        for (; *list && *list != ','; list++)
            add(&name, (char[]){*list, 0});
        list += *list == ',';
        if (!add_named(name.s))
            return;
    }
}

CUresult find_devices(void)
{
    if (state_lock() != NVML_SUCCESS)
        return CUDA_ERROR_OPERATING_SYSTEM;
    nvmlReturn_t answer = state_open();
    device_count = 0;
    const char *visible = getenv ? getenv("CUDA_VISIBLE_DEVICES") : NULL;
    if (answer == NVML_SUCCESS && visible)
        add_list(visible);
    for (unsigned i = 0; answer == NVML_SUCCESS && !visible && i < host->gpu_count; i++)
        add_gpu(i);
    state_unlock();
    if (answer != NVML_SUCCESS)
        return CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
    return device_count ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

int visible_devices(void)
{
    struct visit visit __attribute__((cleanup(end_visit))) = {.locked = 1};
    lock_threads(&thread_lock);
    if (!host)
        find_devices();
    return device_count;
}

CUresult cuInit(unsigned flags)
{
    struct visit visit __attribute__((cleanup(end_visit))) = {.locked = 1};
    lock_threads(&thread_lock);
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (owner)
        return owner == sys_pid() ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
    CUresult answer = find_devices();
    if (answer == CUDA_SUCCESS)
        owner = sys_pid();
    return answer;
}

int visit_driver(struct visit *visit)
{
    visit->answer = CUDA_ERROR_NOT_INITIALIZED;
    if (!owner || owner != sys_pid())
        return 0;
    visit->locked = 1;
    lock_threads(&thread_lock);
    visit->answer = CUDA_SUCCESS;
    return 1;
}

int visit_device(struct visit *visit, CUdevice device)
{
    if (!visit_driver(visit))
        return 0;
    if (device < 0 || device >= device_count) {
        visit->answer = CUDA_ERROR_INVALID_DEVICE;
        return 0;
    }
    visit->device = &devices[device];
    return 1;
}

void end_visit(struct visit *visit)
{
    if (visit->locked)
        unlock_threads(&thread_lock);
}

CUresult cuDriverGetVersion(int *version)
{
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    struct visit visit __attribute__((cleanup(end_visit))) = {.locked = 1};
    lock_threads(&thread_lock);
    if (!host && find_devices() == CUDA_ERROR_SYSTEM_DRIVER_MISMATCH)
        return CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
    *version = (int)host->cuda_version;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count)
{
    DRIVER_CALL(count);
    *count = device_count;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    DEVICE_CALL_OF(ordinal, device);
    *device = ordinal;
    return CUDA_SUCCESS;
}

static void put_text(char *to, int size, const char *text)
{
    int i = 0;
    for (; text[i] && i + 1 < size; i++)
        to[i] = text[i];
    to[i] = 0;
}

const struct sim_profile *profile_at(const struct device *device)
{
    return device->gpu_instance == SIM_WHOLE_GPU ? NULL : slice_profile(gpu_of(device), device->gpu_instance);
}

CUresult cuDeviceGetName(char *name, int size, CUdevice device)
{
    DEVICE_CALL_OF(device, name && size > 0);
    struct text text = {0};
    add(&text, gpu_of(visit.device)->name);
    const struct sim_profile *profile = profile_at(visit.device);
    if (profile) {
        add(&text, " MIG ");
        add(&text, profile->name);
    }
    put_text(name, size, text.s);
    return CUDA_SUCCESS;
}

static unsigned nibble(char digit) { return (unsigned)(digit <= '9' ? digit - '0' : (digit | 32) - 'a' + 10); }

static void put_uuid(CUuuid *uuid, const char *text)
{
    unsigned n = 0;
    for (const char *at = text + 4; *at && n < 32; at++) {
        if (*at == '-')
            continue;
        unsigned value = nibble(*at);
        uuid->bytes[n / 2] = (char)(n % 2 ? (unsigned char)uuid->bytes[n / 2] | value : value << 4);
        n++;
    }
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    DEVICE_CALL_OF(device, uuid);
    put_uuid(uuid, gpu_of(visit.device)->uuid);
    return CUDA_SUCCESS;
}

/* Of the slice, where it is one. */
CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
    DEVICE_CALL_OF(device, uuid);
    const struct device *d = visit.device;
    put_uuid(uuid, d->gpu_instance == SIM_WHOLE_GPU
                       ? gpu_of(d)->uuid
                       : gpu_of(d)->instances[d->gpu_instance].compute[d->compute_instance].uuid);
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    DEVICE_CALL_OF(device, bytes);
    *bytes = memory_of(visit.device);
    return CUDA_SUCCESS;
}

static uint32_t in_32_bits(uint64_t n) { return n > UINT32_MAX ? UINT32_MAX : (uint32_t)n; }

CUresult cuDeviceTotalMem(uint32_t *bytes, CUdevice device)
{
    size_t all;
    CUresult answer = bytes ? cuDeviceTotalMem_v2(&all, device) : CUDA_ERROR_INVALID_VALUE;
    if (answer == CUDA_SUCCESS)
        *bytes = in_32_bits(all);
    return answer;
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device)
{
    DEVICE_CALL_OF(device, major && minor);
    *major = (int)gpu_of(visit.device)->capability_major;
    *minor = (int)gpu_of(visit.device)->capability_minor;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char *id, int size, CUdevice device)
{
    DEVICE_CALL_OF(device, id && size > 0);
    struct text text = {0};
    add_number(&text, gpu_of(visit.device)->pci_domain, 16, 4);
    add(&text, ":");
    add_number(&text, gpu_of(visit.device)->pci_bus, 16, 2);
    add(&text, ":");
    add_number(&text, gpu_of(visit.device)->pci_device, 16, 2);
    add(&text, ".0");
    put_text(id, size, text.s);
    return CUDA_SUCCESS;
}
