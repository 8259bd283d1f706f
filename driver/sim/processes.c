/* Programs on the GPU, and the memory that they hold. */
#include "sim.h"

#include <fcntl.h>

#define FOR_PROCESSES(process, gpu)                                                                            \
    for (const struct sim_process *process = (gpu)->processes; process < (gpu)->processes + SIM_MAX_PROCESSES; \
         process++)                                                                                            \
        if (process->pid)

int gpu_busy(const struct sim_gpu *gpu)
{
    FOR_PROCESSES(process, gpu)
        return 1;
    return 0;
}

int instance_busy(const struct sim_gpu *gpu, unsigned gpu_instance)
{
    FOR_PROCESSES(process, gpu)
        if (process->gpu_instance == (int)gpu_instance)
            return 1;
    return 0;
}

/* On the MIG device of the call: all processes of its GPU instance share the memory. */
static int shares_memory(const struct call *call, const struct sim_process *process)
{
    return !call->compute || process->gpu_instance == (int)instance_id(call->gpu, call->instance);
}

static int runs_there(const struct call *call, const struct sim_process *process)
{
    return shares_memory(call, process) &&
           (!call->compute || process->compute_instance == (int)compute_id(call->instance, call->compute));
}

int compute_busy(const struct call *call)
{
    FOR_PROCESSES(process, call->gpu)
        if (runs_there(call, process))
            return 1;
    return 0;
}

#define MIB (1024ULL * 1024ULL)

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    DEVICE_CALL(device, memory);
    if (memory->version != nvmlMemory_v2)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    uint64_t total = call.compute ? profile_of(gpu, call.instance)->memory_mib : gpu->memory_mib;
    uint64_t reserved = call.compute ? 0 : gpu->memory_mib / 256; /* about what the driver keeps */
    uint64_t used = 0;
    FOR_PROCESSES(process, gpu)
        if (shares_memory(&call, process))
            used += process->memory_mib;
    if (used > total - reserved)
        used = total - reserved;
    memory->total = total * MIB;
    memory->reserved = reserved * MIB;
    memory->used = used * MIB;
    memory->free = (total - reserved - used) * MIB;
    return NVML_SUCCESS;
}

/* Knows no reserved memory: it counts as used. */
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    nvmlMemory_v2_t now = {.version = nvmlMemory_v2};
    nvmlReturn_t answer = memory ? nvmlDeviceGetMemoryInfo_v2(device, &now) : NVML_ERROR_INVALID_ARGUMENT;
    if (answer != NVML_SUCCESS)
        return answer;
    memory->total = now.total;
    memory->used = now.used + now.reserved;
    memory->free = now.free;
    return NVML_SUCCESS;
}

/* The window spans the memory: the next power of two. */
nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t *memory)
{
    DEVICE_CALL(device, memory);
    uint64_t mib = 1, need = call.compute ? profile_of(gpu, call.instance)->memory_mib : gpu->memory_mib;
    while (mib < need)
        mib *= 2;
    memory->bar1Total = memory->bar1Free = mib * MIB;
    memory->bar1Used = 0;
    return NVML_SUCCESS;
}

/* Exported memory belongs to no process. */
static int listed(const struct call *call, const struct sim_process *process)
{
    return runs_there(call, process) && process->by_driver != SIM_BY_HOLDERS;
}

static unsigned count_processes(const struct call *call)
{
    unsigned n = 0;
    FOR_PROCESSES(process, call->gpu)
        n += (unsigned)listed(call, process);
    return n;
}

/* Outside of MIG the ids of instances are all ones. */
static nvmlProcessInfo_t describe(const struct sim_process *process)
{
    int whole = process->gpu_instance == SIM_WHOLE_GPU;
    return (nvmlProcessInfo_t){
        .pid = process->pid,
        .usedGpuMemory = process->memory_mib * MIB,
        .gpuInstanceId = whole ? ~0U : (unsigned)process->gpu_instance,
        .computeInstanceId = whole ? ~0U : (unsigned)process->compute_instance,
    };
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos)
{
    DEVICE_CALL(device, count);
    unsigned have = count_processes(&call);
    nvmlReturn_t answer = give_count(count, have, infos);
    if (answer != NVML_SUCCESS)
        return have == 0 ? NVML_SUCCESS : answer;
    FOR_PROCESSES(process, gpu)
        if (listed(&call, process))
            *infos++ = describe(process);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned int *count,
                                                     nvmlProcessInfo_v2_t *infos)
{
    return nvmlDeviceGetComputeRunningProcesses_v3(device, count, infos);
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v1_t *infos)
{
    DEVICE_CALL(device, count);
    unsigned have = count_processes(&call);
    nvmlReturn_t answer = give_count(count, have, infos);
    if (answer != NVML_SUCCESS)
        return have == 0 ? NVML_SUCCESS : answer;
    FOR_PROCESSES(process, gpu)
        if (listed(&call, process))
            *infos++ = (nvmlProcessInfo_v1_t){process->pid, process->memory_mib * MIB};
    return NVML_SUCCESS;
}

/* No graphics and no MPS clients ever run here. */
static nvmlReturn_t give_none(nvmlDevice_t device, const char *function, unsigned *count)
{
    CALL(count, enter_device(&call, function, device));
    *count = 0;
    return NVML_SUCCESS;
}

#define NO_PROCESSES(name, info)                                                 \
    nvmlReturn_t name(nvmlDevice_t device, unsigned int *count, info *processes) \
    {                                                                            \
        (void)processes;                                                         \
        return give_none(device, __func__, count);                               \
    }

NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses, nvmlProcessInfo_v1_t)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2, nvmlProcessInfo_v2_t)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlProcessInfo_t)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses, nvmlProcessInfo_v1_t)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v2, nvmlProcessInfo_v2_t)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvmlProcessInfo_t)

nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char *name, unsigned int length)
{
    HOST_CALL(name && length > 0);
    struct text path = {0};
    add(&path, "/proc/");
    add_number(&path, pid, 10, 1);
    add(&path, "/cmdline");
    long fd = sys_open(path.s, O_RDONLY);
    if (fd < 0)
        return NVML_ERROR_NOT_FOUND;
    long n = sys_read(fd, name, length - 1);
    sys_close(fd);
    name[n > 0 ? n : 0] = 0;
    return NVML_SUCCESS;
}
