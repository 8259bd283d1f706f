/* Memory and processes: those of the slice, in the frame of the target. */
#include "facade.h"
#include "slots.h"

#define MIB (1024ULL * 1024ULL)

static unsigned long long least(unsigned long long a, unsigned long long b) { return a < b ? a : b; }

/* The caller's handle must be valid; then the slice answers. */
static nvmlReturn_t check_and_find(const struct figures *target, nvmlDevice_t device, nvmlDevice_t *slice)
{
    unsigned index;
    nvmlReturn_t answer = DRIVER(nvmlDeviceGetIndex)(device, &index);
    return answer == NVML_SUCCESS ? find_slice(target, slice) : answer;
}

/* The device's account in the usage file of the session; NULL if there is none, so that the driver's values count. */
static const struct usage *counted(const struct figures *target)
{
    static const struct usage *known;
    static unsigned accounts;
    if (!known) {
        unsigned count = 0;
        const struct usage *mapped = map_usage(0, &count);
        accounts = count;
        __atomic_store_n(&known, mapped, __ATOMIC_RELEASE);
    }
    size_t index = (size_t)(target - the_figures());
    return known && index < accounts ? &known[index] : NULL;
}

static int lives(const struct usage_slot *slot, uint64_t pids) { return slot->process && !slot_ended(slot, pids); }

/* Uses the layout that separates reserved memory, if the driver has it. */
static unsigned long long drivers_word(nvmlDevice_t slice, unsigned long long otherwise)
{
    nvmlMemory_v2_t memory = {.version = nvmlMemory_v2};
    return DRIVER(nvmlDeviceGetMemoryInfo_v2)(slice, &memory) == NVML_SUCCESS ? memory.used : otherwise;
}

/* As the CUDA facade computes it: the counted bytes, or all bytes in use if only the session uses the slice. */
static unsigned long long used_by_session(const struct figures *target, unsigned long long drivers)
{
    const struct usage *usage = counted(target);
    if (!usage)
        return drivers;
    unsigned long long sum = 0;
    uint64_t pids = pid_namespace();
    for (const struct usage_slot *slot = usage->slots; slot < usage->slots + USAGE_SLOTS; slot++)
        if (lives(slot, pids))
            sum += slot->bytes;
    return target->own_slice && drivers > sum ? drivers : sum;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    DISGUISE_DEVICE(nvmlDeviceGetMemoryInfo, device, memory);
    nvmlDevice_t slice;
    nvmlReturn_t answer = check_and_find(target, device, &slice);
    if (answer == NVML_SUCCESS)
        answer = DRIVER(nvmlDeviceGetMemoryInfo)(slice, memory);
    if (answer != NVML_SUCCESS)
        return answer;
    memory->total = target->memory_mib * MIB;
    memory->used = least(used_by_session(target, drivers_word(slice, memory->used)), memory->total);
    memory->free = memory->total - memory->used;
    return NVML_SUCCESS;
}

/* No memory is reserved: programs can use all of the target's memory, as CUDA reports. */
nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    DISGUISE_DEVICE(nvmlDeviceGetMemoryInfo_v2, device, memory);
    nvmlDevice_t slice;
    nvmlReturn_t answer = check_and_find(target, device, &slice);
    if (answer == NVML_SUCCESS)
        answer = DRIVER(nvmlDeviceGetMemoryInfo_v2)(slice, memory);
    if (answer != NVML_SUCCESS)
        return answer;
    memory->total = target->memory_mib * MIB;
    memory->reserved = 0;
    memory->used = least(used_by_session(target, memory->used), memory->total);
    memory->free = memory->total - memory->used;
    return NVML_SUCCESS;
}

/* The window onto a datacenter GPU spans its memory; a card for games has the classic 256 MiB. */
nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t *memory)
{
    DISGUISE_DEVICE(nvmlDeviceGetBAR1MemoryInfo, device, memory);
    nvmlDevice_t slice;
    nvmlReturn_t answer = check_and_find(target, device, &slice);
    if (answer == NVML_SUCCESS)
        answer = DRIVER(nvmlDeviceGetBAR1MemoryInfo)(slice, memory);
    if (answer != NVML_SUCCESS)
        return answer;
    unsigned long long mib = 256;
    while (!target->consumer && mib < target->memory_mib)
        mib *= 2;
    memory->bar1Total = mib * MIB;
    memory->bar1Used = least(memory->bar1Used, memory->bar1Total);
    memory->bar1Free = memory->bar1Total - memory->bar1Used;
    return NVML_SUCCESS;
}

FIGURE(nvmlDeviceGetMemoryBusWidth, unsigned int, target->bus_bits)

enum { NO_INSTANCE = -1 }; /* the driver's value without MIG */

static void forget_instances(nvmlProcessInfo_t *processes, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        processes[i].gpuInstanceId = processes[i].computeInstanceId = (unsigned)NO_INSTANCE;
}

/* The first layout has no instances to forget. */
static void keep(nvmlProcessInfo_v1_t *processes, unsigned count) { (void)processes, (void)count; }

#define PROCESSES(name, info, treat)                                             \
    nvmlReturn_t name(nvmlDevice_t device, unsigned int *count, info *processes) \
    {                                                                            \
        DISGUISE_DEVICE(name, device, count, processes);                         \
        nvmlDevice_t slice;                                                      \
        nvmlReturn_t answer = check_and_find(target, device, &slice);            \
        if (answer == NVML_SUCCESS)                                              \
            answer = DRIVER(name)(slice, count, processes);                      \
        if (answer == NVML_SUCCESS && processes)                                 \
            treat(processes, *count);                                            \
        return answer;                                                           \
    }

PROCESSES(nvmlDeviceGetGraphicsRunningProcesses, nvmlProcessInfo_v1_t, keep)
PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses, nvmlProcessInfo_v1_t, keep)
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2, nvmlProcessInfo_v2_t, forget_instances)
PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v2, nvmlProcessInfo_v2_t, forget_instances)
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlProcessInfo_t, forget_instances)
PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvmlProcessInfo_t, forget_instances)

/* The overhead, if no other session uses the slice. */
static unsigned long long uncounted(const struct figures *target, nvmlDevice_t slice, unsigned long long counted)
{
    unsigned long long used = target->own_slice ? drivers_word(slice, 0) : 0;
    return used > counted ? used - counted : 0;
}

/* The processes that count, by the pids that they know each other by; contexts are shared out evenly. */
static unsigned list_counted(const struct figures *target, nvmlDevice_t slice, const struct usage *usage,
                             nvmlProcessInfo_t *processes)
{
    unsigned n = 0;
    unsigned long long sum = 0;
    uint64_t pids = pid_namespace();
    for (const struct usage_slot *slot = usage->slots; slot < usage->slots + USAGE_SLOTS; slot++)
        if (lives(slot, pids)) {
            sum += slot->bytes;
            processes[n++] =
                (nvmlProcessInfo_t){slot_pid(slot->process), slot->bytes, (unsigned)NO_INSTANCE, (unsigned)NO_INSTANCE};
        }
    unsigned long long besides = n ? uncounted(target, slice, sum) : 0;
    for (unsigned i = 0; i < n; i++)
        processes[i].usedGpuMemory += besides / n;
    return n;
}

nvmlReturn_t processes_of_session(const struct figures *target, nvmlProcessInfo_t *list, unsigned *count)
{
    nvmlDevice_t slice;
    const struct usage *usage = counted(target);
    nvmlReturn_t answer = usage ? find_slice(target, &slice) : NVML_ERROR_NOT_SUPPORTED;
    if (answer == NVML_SUCCESS)
        *count = list_counted(target, slice, usage, list);
    return answer;
}

static void put_v1(nvmlProcessInfo_v1_t *to, nvmlProcessInfo_t from)
{
    *to = (nvmlProcessInfo_v1_t){from.pid, from.usedGpuMemory};
}

static void put_v2(nvmlProcessInfo_v2_t *to, nvmlProcessInfo_t from) { *to = from; }

/* Where nothing is counted, the driver's own list; else that of the slots. */
#define COMPUTE_PROCESSES(name, info, treat, put)                                                  \
    nvmlReturn_t name(nvmlDevice_t device, unsigned int *count, info *processes)                   \
    {                                                                                              \
        DISGUISE_DEVICE(name, device, count, processes);                                           \
        nvmlDevice_t slice;                                                                        \
        nvmlReturn_t answer = check_and_find(target, device, &slice);                              \
        const struct usage *usage = counted(target);                                               \
        if (answer == NVML_SUCCESS && (!usage || !count))                                          \
            answer = DRIVER(name)(slice, count, processes);                                        \
        if (answer != NVML_SUCCESS)                                                                \
            return answer;                                                                         \
        if (!usage) {                                                                              \
            treat(processes, processes ? *count : 0);                                              \
            return answer;                                                                         \
        }                                                                                          \
        nvmlProcessInfo_t listed[USAGE_SLOTS];                                                     \
        unsigned have = list_counted(target, slice, usage, listed), room = processes ? *count : 0; \
        *count = have;                                                                             \
        for (unsigned i = 0; i < have && i < room; i++)                                            \
            put(&processes[i], listed[i]);                                                         \
        return have > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;                          \
    }

COMPUTE_PROCESSES(nvmlDeviceGetComputeRunningProcesses, nvmlProcessInfo_v1_t, keep, put_v1)
COMPUTE_PROCESSES(nvmlDeviceGetComputeRunningProcesses_v2, nvmlProcessInfo_v2_t, forget_instances, put_v2)
COMPUTE_PROCESSES(nvmlDeviceGetComputeRunningProcesses_v3, nvmlProcessInfo_t, forget_instances, put_v2)

static nvmlReturn_t list_details(const struct figures *target, nvmlDevice_t slice, const struct usage *usage,
                                 nvmlProcessDetailList_t *list)
{
    if (list->version != nvmlProcessDetailList_v1)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    nvmlProcessInfo_t listed[USAGE_SLOTS];
    unsigned have = list_counted(target, slice, usage, listed), room = list->procArray ? list->numProcArrayEntries : 0;
    list->numProcArrayEntries = have;
    for (unsigned i = 0; i < have && i < room; i++)
        list->procArray[i] = (nvmlProcessDetail_v1_t){.pid = listed[i].pid,
                                                      .usedGpuMemory = listed[i].usedGpuMemory,
                                                      .gpuInstanceId = listed[i].gpuInstanceId,
                                                      .computeInstanceId = listed[i].computeInstanceId};
    return have > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device, nvmlProcessDetailList_t *list)
{
    DISGUISE_DEVICE(nvmlDeviceGetRunningProcessDetailList, device, list);
    enum { COMPUTE };
    nvmlDevice_t slice;
    nvmlReturn_t answer = check_and_find(target, device, &slice);
    const struct usage *usage = counted(target);
    if (answer == NVML_SUCCESS && usage && list && list->mode == COMPUTE)
        return list_details(target, slice, usage, list);
    if (answer == NVML_SUCCESS)
        answer = DRIVER(nvmlDeviceGetRunningProcessDetailList)(slice, list);
    if (answer != NVML_SUCCESS || !list->procArray)
        return answer;
    for (unsigned i = 0; i < list->numProcArrayEntries; i++)
        list->procArray[i].gpuInstanceId = list->procArray[i].computeInstanceId = (unsigned)NO_INSTANCE;
    return NVML_SUCCESS;
}
