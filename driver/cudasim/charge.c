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

/* An entry in the list, with a lock that ends when the process does. */
static int enter_list(struct device *device)
{
    struct sim_gpu *gpu = gpu_at(device);
    for (unsigned i = 0; i < SIM_MAX_PROCESSES; i++) {
        struct sim_process *p = &gpu->processes[i];
        if (p->pid || !sys_lock_byte(state_file(), process_byte(gpu, p)))
            continue;
        *p = (struct sim_process){.pid = sys_pid(), .gpu_instance = device->gpu_instance,
                                  .compute_instance = device->compute_instance, .by_driver = 1};
        device->process = i;
        device->entered = 1;
        return 1;
    }
    return 0;
}

static uint32_t in_mib(uint64_t bytes) { return (uint32_t)(up(bytes, PAGE_MIB * MIB) / MIB); }

int charge(struct device *device, uint64_t bytes)
{
    if (bytes > memory_of(device) || state_lock() != NVML_SUCCESS)
        return 0;
    struct sim_gpu *gpu = gpu_at(device);
    sweep_processes(gpu);
    int fits = state_writable() && (device->entered || enter_list(device));
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
