/* Memory and processes: those of the slice, in the frame of the target. */
#include "facade.h"

#define MIB (1024ULL * 1024ULL)

static unsigned long long least(unsigned long long a, unsigned long long b) { return a < b ? a : b; }

/* The caller's handle must be good, then it is the slice that is asked. */
static nvmlReturn_t check_and_find(const struct figures *target, nvmlDevice_t device, nvmlDevice_t *slice)
{
    unsigned index;
    nvmlReturn_t answer = DRIVER(nvmlDeviceGetIndex)(device, &index);
    return answer == NVML_SUCCESS ? find_slice(target, slice) : answer;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    DISGUISE(nvmlDeviceGetMemoryInfo, device, memory);
    nvmlDevice_t slice;
    nvmlReturn_t answer = check_and_find(target, device, &slice);
    if (answer == NVML_SUCCESS)
        answer = DRIVER(nvmlDeviceGetMemoryInfo)(slice, memory);
    if (answer != NVML_SUCCESS)
        return answer;
    memory->total = target->memory_mib * MIB;
    memory->used = least(memory->used, memory->total);
    memory->free = memory->total - memory->used;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    DISGUISE(nvmlDeviceGetMemoryInfo_v2, device, memory);
    nvmlDevice_t slice;
    nvmlReturn_t answer = check_and_find(target, device, &slice);
    if (answer == NVML_SUCCESS)
        answer = DRIVER(nvmlDeviceGetMemoryInfo_v2)(slice, memory);
    if (answer != NVML_SUCCESS)
        return answer;
    memory->total = target->memory_mib * MIB;
    memory->reserved = least(memory->reserved, memory->total);
    memory->used = least(memory->used, memory->total - memory->reserved);
    memory->free = memory->total - memory->reserved - memory->used;
    return NVML_SUCCESS;
}

/* The window onto a datacenter GPU spans its memory; a card for games has the classic 256 MiB. */
nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t *memory)
{
    DISGUISE(nvmlDeviceGetBAR1MemoryInfo, device, memory);
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

enum { NO_INSTANCE = -1 }; /* what the driver says outside of MIG */

static void forget_instances(nvmlProcessInfo_t *processes, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        processes[i].gpuInstanceId = processes[i].computeInstanceId = (unsigned)NO_INSTANCE;
}

/* The first layout has no instances to forget. */
static void keep(nvmlProcessInfo_v1_t *processes, unsigned count) { (void)processes, (void)count; }

#define PROCESSES(name, info, treat)                                                          \
    nvmlReturn_t name(nvmlDevice_t device, unsigned int *count, info *processes)              \
    {                                                                                         \
        DISGUISE(name, device, count, processes);                                             \
        nvmlDevice_t slice;                                                                   \
        nvmlReturn_t answer = check_and_find(target, device, &slice);                         \
        if (answer == NVML_SUCCESS)                                                           \
            answer = DRIVER(name)(slice, count, processes);                                   \
        if (answer == NVML_SUCCESS && processes)                                              \
            treat(processes, *count);                                                         \
        return answer;                                                                        \
    }

PROCESSES(nvmlDeviceGetComputeRunningProcesses, nvmlProcessInfo_v1_t, keep)
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses, nvmlProcessInfo_v1_t, keep)
PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses, nvmlProcessInfo_v1_t, keep)
PROCESSES(nvmlDeviceGetComputeRunningProcesses_v2, nvmlProcessInfo_v2_t, forget_instances)
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2, nvmlProcessInfo_v2_t, forget_instances)
PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v2, nvmlProcessInfo_v2_t, forget_instances)
PROCESSES(nvmlDeviceGetComputeRunningProcesses_v3, nvmlProcessInfo_t, forget_instances)
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlProcessInfo_t, forget_instances)
PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvmlProcessInfo_t, forget_instances)

nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device, nvmlProcessDetailList_t *list)
{
    DISGUISE(nvmlDeviceGetRunningProcessDetailList, device, list);
    nvmlDevice_t slice;
    nvmlReturn_t answer = check_and_find(target, device, &slice);
    if (answer == NVML_SUCCESS)
        answer = DRIVER(nvmlDeviceGetRunningProcessDetailList)(slice, list);
    if (answer != NVML_SUCCESS || !list->procArray)
        return answer;
    for (unsigned i = 0; i < list->numProcArrayEntries; i++)
        list->procArray[i].gpuInstanceId = list->procArray[i].computeInstanceId = (unsigned)NO_INSTANCE;
    return NVML_SUCCESS;
}
