/* Memory of the slice, over all processes that use it: the host's list of processes counts it. */
#include "cudasim.h"

static struct sim_gpu *gpu_at(const struct device *device) { return &host->gpus[device->gpu]; }

static uint64_t used_mib(const struct device *device)
{
    const struct sim_gpu *gpu = gpu_at(device);
    uint64_t mib = 0;
    for (const struct sim_process *p = gpu->processes; p < gpu->processes + SIM_MAX_PROCESSES; p++)
        if (p->pid && p->gpu_instance == device->gpu_instance)
            mib += p->memory_mib;
    return mib;
}

/* An entry in the list, with a lock that ends when the last copy of the open file does; NULL when there is no place. */
static struct sim_process *enter_list(struct device *device, long fd, uint32_t by)
{
    struct sim_gpu *gpu = gpu_at(device);
    for (struct sim_process *p = gpu->processes; p < gpu->processes + SIM_MAX_PROCESSES; p++) {
        int64_t byte = process_byte(gpu, p);
        if (p->pid || !(by == SIM_BY_PROCESS ? sys_lock_byte(fd, byte) : sys_share_byte(fd, byte)))
            continue;
        *p = (struct sim_process){.pid = sys_pid(),
                                  .gpu_instance = device->gpu_instance,
                                  .compute_instance = device->compute_instance,
                                  .by_driver = by};
        return p;
    }
    return NULL;
}

static int enter(struct device *device)
{
    struct sim_process *entry = enter_list(device, state_file(), SIM_BY_PROCESS);
    if (!entry)
        return 0;
    device->process = (unsigned)(entry - gpu_at(device)->processes);
    device->entered = 1;
    return 1;
}

static uint32_t in_mib(uint64_t bytes) { return (uint32_t)(up(bytes, PAGE_MIB * MIB) / MIB); }

int charge(struct device *device, uint64_t bytes)
{
    if (bytes > memory_of(device) || state_lock() != NVML_SUCCESS)
        return 0;
    struct sim_gpu *gpu = gpu_at(device);
    sweep_processes(gpu);
    int fits = state_writable() && (device->entered || enter(device));
    if (fits) {
        struct sim_process *mine = &gpu->processes[device->process];
        uint64_t others = used_mib(device) - mine->memory_mib;
        uint32_t mib = in_mib(device->bytes + bytes);
        fits = (others + mib) * MIB <= memory_of(device);
        if (fits) {
            mine->memory_mib = mib;
            device->bytes += bytes;
        }
    }
    state_unlock();
    return fits;
}

void discharge(struct device *device, uint64_t bytes)
{
    if (state_lock() != NVML_SUCCESS)
        return;
    device->bytes -= bytes;
    gpu_at(device)->processes[device->process].memory_mib = in_mib(device->bytes);
    state_unlock();
}

uint64_t used_of(const struct device *device)
{
    if (state_lock() != NVML_SUCCESS)
        return 0;
    sweep_processes(gpu_at(device));
    uint64_t bytes = used_mib(device) * MIB;
    state_unlock();
    return bytes;
}

long share_memory(struct device *device, uint64_t bytes)
{
    long fd = state_open_again();
    if (fd < 0 || state_lock() != NVML_SUCCESS)
        return fd;
    sweep_processes(gpu_at(device));
    struct sim_process *entry = enter_list(device, fd, SIM_BY_HOLDERS);
    if (entry) {
        entry->memory_mib = in_mib(bytes);
        device->bytes -= bytes;
        if (device->entered)
            gpu_at(device)->processes[device->process].memory_mib = in_mib(device->bytes);
    }
    state_unlock();
    if (entry)
        return fd;
    sys_close(fd);
    return -1;
}

/* Checks a lock of another open file; the holder of a lock does not see its own. */
static int holds(long fd, const struct sim_gpu *gpu, const struct sim_process *entry)
{
    int64_t byte = process_byte(gpu, entry);
    return entry->by_driver == SIM_BY_HOLDERS && sys_byte_locked(state_file(), byte) && !sys_byte_locked(fd, byte);
}

struct sim_process *shared_by(struct device *device, long fd)
{
    struct sim_gpu *gpu = gpu_at(device);
    if (sys_size(fd) != (long)host->size)
        return NULL;
    for (struct sim_process *p = gpu->processes; p < gpu->processes + SIM_MAX_PROCESSES; p++)
        if (p->gpu_instance == device->gpu_instance && holds(fd, gpu, p))
            return p;
    return NULL;
}

long join_holders(struct device *device, unsigned place, uint32_t pid)
{
    long fd = place < SIM_MAX_PROCESSES ? state_open_again() : -1;
    if (fd < 0 || state_lock() != NVML_SUCCESS)
        return -1;
    struct sim_gpu *gpu = gpu_at(device);
    const struct sim_process *entry = &gpu->processes[place];
    sweep_processes(gpu);
    int there = entry->by_driver == SIM_BY_HOLDERS && entry->pid == pid && sys_share_byte(fd, process_byte(gpu, entry));
    state_unlock();
    if (there)
        return fd;
    sys_close(fd);
    return -1;
}

/* A pool that was exported grows and shrinks. */
int resize_shared(struct device *device, struct sim_process *entry, uint64_t bytes)
{
    if (state_lock() != NVML_SUCCESS)
        return 0;
    sweep_processes(gpu_at(device));
    uint64_t others = used_mib(device) - entry->memory_mib;
    int fits = (others + in_mib(bytes)) * MIB <= memory_of(device);
    if (fits)
        entry->memory_mib = in_mib(bytes);
    state_unlock();
    return fits;
}
