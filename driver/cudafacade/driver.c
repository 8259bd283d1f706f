#include "facade.h"

#include "usage.h"

const struct refusals refusals = {
    .library_not_found = CUDA_ERROR_SHARED_OBJECT_INIT_FAILED,
    .function_not_found = CUDA_ERROR_NOT_FOUND,
    .version_mismatch = CUDA_ERROR_SYSTEM_DRIVER_MISMATCH,
};

/* The first name of a list, as a program in the session may call its one GPU. CUDA takes the beginning of a UUID for it. */
static int names_the_gpu(const struct figures *target, const char *list)
{
    struct text name = {0};
    for (; *list && *list != ','; list++)
        add(&name, (char[]){*list, 0});
    if (equal(name.s, "0"))
        return 1;
    return name.n > length("GPU-") && (starts_with(target->slice, name.s) || starts_with(target->uuid, name.s));
}

/*
 * The driver may see more GPUs than the session has, and knows the slice by its
 * own name. A program that has lost the variable, or numbers its GPU, gets the
 * slice; one that names none, or another, gets none. The driver reads the variable
 * once. Then it has its value again, for children of the program that expect a number.
 */
static CUresult start_on_slice(const struct figures *target, unsigned flags)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES"); /* stays valid: glibc never frees a value */
    if (visible && equal(visible, target->slice))
        return DRIVER(cuInit)(flags);
    setenv("CUDA_VISIBLE_DEVICES", !visible || names_the_gpu(target, visible) ? target->slice : "", 1);
    CUresult answer = DRIVER(cuInit)(flags);
    if (visible)
        setenv("CUDA_VISIBLE_DEVICES", visible, 1);
    else
        unsetenv("CUDA_VISIBLE_DEVICES");
    return answer;
}

/* No function works before cuInit, so invalid figures have to be reported only here. */
CUresult cuInit(unsigned flags)
{
    const struct figures *target = figures_shown();
    if (target && getenv && getenv(USAGE_TRIAL_VARIABLE))
        (void)attached(); /* before its context takes memory, which others would take for theirs */
    if (target && getenv && setenv && unsetenv)
        return start_on_slice(target, flags);
    return DRIVER(cuInit)(flags);
}

static struct process *new_process(void)
{
    struct process *fresh = sys_memory(sizeof *fresh);
    if (fresh && !sys_wiped_on_fork(fresh, sizeof *fresh))
        fresh->pid = sys_pid();
    return fresh;
}

/* An old kernel does not clear the page on a fork: then the pid shows that this is the child. */
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
