#include "sim.h"

#include <fcntl.h>

/* Go writes the path of the state file over this mark. */
__attribute__((used)) static volatile const char state_path[SIM_PATH_SIZE] = SIM_PATH_MARK;

struct sim_host *host;

static long file = -1;
static size_t mapped; /* for as many GPUs as a host can have, so that the file may grow */
static int writable;
static char thread_lock; /* flock does not hold between threads */
static int file_locked;

/* Pid that opened the file: a fork shares its lock, so it opens the file again. A fork wipes it, if the kernel can. */
static uint32_t *owner;
static uint32_t never_wiped;

static void own_file(void)
{
    if (!owner)
        owner = sys_memory(sizeof *owner);
    if (!owner || !sys_wiped_on_fork(owner, sizeof *owner))
        owner = &never_wiped;
    *owner = sys_pid();
}

static int is_fork(void) { return owner && (owner == &never_wiped ? *owner != sys_pid() : !*owner); }

static int open_file(void)
{
    const char *path = (const char *)state_path;
    writable = 1;
    file = sys_open(path, O_RDWR);
    if (file < 0) {
        writable = 0;
        file = sys_open(path, O_RDONLY);
    }
    own_file();
    return file >= 0;
}

static int gpu_sound(const struct sim_gpu *gpu)
{
    if (gpu->profile_count > SIM_MAX_PROFILES || gpu->clock_count == 0 || gpu->clock_count > SIM_MAX_CLOCKS)
        return 0;
    for (unsigned i = 0; i < gpu->profile_count; i++)
        if (gpu->profiles[i].start_count > SIM_MAX_STARTS)
            return 0;
    for (unsigned i = 0; i < SIM_MAX_GPU_INSTANCES; i++)
        if (gpu->instances[i].used && gpu->instances[i].profile >= gpu->profile_count)
            return 0;
    return 1;
}

static int host_sound(long size)
{
    if (size < (long)sizeof *host || memcmp(host->magic, SIM_MAGIC, sizeof host->magic) != 0)
        return 0;
    if (host->version != SIM_VERSION || host->gpu_count > SIM_MAX_GPUS || host->size != (uint64_t)size)
        return 0;
    if (host->size != sizeof *host + host->gpu_count * sizeof host->gpus[0])
        return 0;
    for (unsigned i = 0; i < host->gpu_count; i++)
        if (!gpu_sound(&host->gpus[i]))
            return 0;
    return 1;
}

nvmlReturn_t state_open(void)
{
    if (host)
        return NVML_SUCCESS;
    if (!open_file())
        return NVML_ERROR_DRIVER_NOT_LOADED;
    file_locked = sys_lock(file) == 0;
    long size = sys_size(file);
    mapped = sizeof *host + SIM_MAX_GPUS * sizeof host->gpus[0];
    host = size > 0 ? sys_map(file, mapped, writable) : NULL;
    if (host && host_sound(size))
        return NVML_SUCCESS;
    state_close();
    return NVML_ERROR_LIB_RM_VERSION_MISMATCH;
}

void state_close(void)
{
    if (host)
        sys_unmap(host, mapped);
    host = NULL;
    sys_close(file);
    file = -1;
}

void state_lock_threads(void)
{
    if (is_fork())
        thread_lock = 0; /* held, if at all, by a thread that the fork left behind */
    while (__atomic_test_and_set(&thread_lock, __ATOMIC_ACQUIRE))
        sys_yield();
    if (file >= 0 && is_fork()) {
        sys_close(file);
        open_file();
    }
}

nvmlReturn_t state_lock_file(void)
{
    file_locked = file >= 0 && sys_lock(file) == 0;
    return file < 0 || file_locked ? NVML_SUCCESS : NVML_ERROR_OPERATING_SYSTEM;
}

nvmlReturn_t state_lock(void)
{
    state_lock_threads();
    return state_lock_file();
}

void state_unlock(void)
{
    if (file_locked && file >= 0)
        sys_unlock(file);
    file_locked = 0;
    __atomic_clear(&thread_lock, __ATOMIC_RELEASE);
}

int state_writable(void) { return writable; }

long state_file(void) { return file; }

long state_open_again(void) { return sys_open((const char *)state_path, O_RDWR); }

int64_t process_byte(const struct sim_gpu *gpu, const struct sim_process *process)
{
    return SIM_PROCESS_LOCKS + (gpu - host->gpus) * SIM_MAX_PROCESSES + (process - gpu->processes);
}

/* Its own entry a process sees unlocked; of what it exported the lock is another open file's. */
void sweep_processes(struct sim_gpu *gpu)
{
    for (struct sim_process *p = gpu->processes; writable && p < gpu->processes + SIM_MAX_PROCESSES; p++)
        if (p->by_driver && (p->by_driver == SIM_BY_HOLDERS || p->pid != sys_pid()) &&
            !sys_byte_locked(file, process_byte(gpu, p)))
            memset(p, 0, sizeof *p);
}

static struct text name_by_ids(const struct sim_gpu *gpu, const struct sim_gpu_instance *instance,
                               const struct sim_compute_instance *compute)
{
    struct text name = {0};
    add(&name, "MIG-");
    add(&name, gpu->uuid);
    add(&name, "/");
    add_number(&name, (uint64_t)(instance - gpu->instances), 10, 1);
    add(&name, "/");
    add_number(&name, (uint64_t)(compute - instance->compute), 10, 1);
    return name;
}

struct text mig_name(const struct sim_gpu *gpu, const struct sim_gpu_instance *instance,
                     const struct sim_compute_instance *compute)
{
    struct text name = {0};
    if (gpu->named_by_ids)
        return name_by_ids(gpu, instance, compute);
    add(&name, compute->uuid);
    return name;
}

int is_mig_name(const struct sim_gpu *gpu, const struct sim_gpu_instance *instance,
                const struct sim_compute_instance *compute, const char *name)
{
    struct text by_ids = name_by_ids(gpu, instance, compute);
    return equal(by_ids.s, name) || (!gpu->named_by_ids && equal(compute->uuid, name));
}
