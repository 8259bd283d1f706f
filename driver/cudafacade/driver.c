#include "facade.h"

const struct refusals refusals = {
    .library_not_found = CUDA_ERROR_SHARED_OBJECT_INIT_FAILED,
    .function_not_found = CUDA_ERROR_NOT_FOUND,
    .version_mismatch = CUDA_ERROR_SYSTEM_DRIVER_MISMATCH,
};

/* Nothing works before it, so figures that make no sense need be told only here. */
CUresult cuInit(unsigned flags) { return DRIVER(cuInit)(flags); }

static struct process *new_process(void)
{
    struct process *fresh = sys_memory(sizeof *fresh);
    if (fresh && !sys_wiped_on_fork(fresh, sizeof *fresh))
        fresh->pid = sys_pid();
    return fresh;
}

/* An old kernel wipes nothing: there the pid tells a fork's child. */
static struct process *unless_forked(struct process *process)
{
    if (process->pid && process->pid != sys_pid()) {
        memset(process, 0, sizeof *process);
        process->pid = sys_pid();
    }
    return process;
}

struct process *this_process(void)
{
    static struct process *known;
    struct process *process = __atomic_load_n(&known, __ATOMIC_ACQUIRE);
    if (process)
        return unless_forked(process);
    struct process *fresh = new_process();
    if (!fresh)
        return NULL;
    if (__atomic_compare_exchange_n(&known, &process, fresh, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return fresh;
    sys_unmap(fresh, sizeof *fresh); /* another thread was first */
    return process;
}
