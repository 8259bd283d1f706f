#include "facade.h"

#include "usage.h"

const struct refusals refusals = {
    .library_not_found = CUDA_ERROR_SHARED_OBJECT_INIT_FAILED,
    .function_not_found = CUDA_ERROR_NOT_FOUND,
    .version_mismatch = CUDA_ERROR_SYSTEM_DRIVER_MISMATCH,
};

/* The names of the driver of GPUs of the session, as a list. */
struct slices {
    char list[MOST_DEVICES * sizeof(the_figures()->slice)];
    size_t n;
    char listed[MOST_DEVICES];
};

static void add_slice(struct slices *slices, const struct figures *target)
{
    if (slices->n)
        slices->list[slices->n++] = ',';
    memcpy(slices->list + slices->n, target->slice, length(target->slice));
    slices->n += length(target->slice);
    slices->listed[number_of(target)] = 1;
}

/* A program in the session calls its GPUs by number or by UUID. CUDA takes the beginning of a UUID for it. */
static int is_named(const struct figures *target, const char *name)
{
    struct text index = {0};
    add_number(&index, number_of(target), 10, 1);
    if (equal(name, index.s))
        return 1;
    return length(name) > length("GPU-") && (starts_with(target->slice, name) || starts_with(target->uuid, name));
}

static int add_named(struct slices *slices, const char *name)
{
    FOR_DEVICES(target)
        if (is_named(target, name) && !slices->listed[number_of(target)]) {
            add_slice(slices, target);
            return 1;
        }
    return 0;
}

/* Up to the first name that is none of a GPU of the session, as CUDA does it. */
static void add_list(struct slices *slices, const char *list)
{
    for (int known = 1; known && *list; list += *list == ',') {
        struct text name = {0};
        for (; *list && *list != ','; list++)
            add(&name, (char[]){*list, 0});
        known = add_named(slices, name.s);
    }
}

/*
 * The driver may see more GPUs than the session has, and knows the slices by its
 * own names. A program that has lost the variable, or numbers its GPUs, gets the
 * slices; one that names none, or others, gets none. The driver reads the variable
 * once. Then it has its value again, for children of the program that expect a number.
 */
static CUresult start_on_slices(unsigned flags)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES"); /* stays valid: glibc never frees a value */
    struct slices slices = {0};
    if (visible)
        add_list(&slices, visible);
    else
        FOR_DEVICES(target)
            add_slice(&slices, target);
    if (visible && equal(visible, slices.list))
        return DRIVER(cuInit)(flags);
    setenv("CUDA_VISIBLE_DEVICES", slices.list, 1);
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
        FOR_DEVICES(device)
            (void)attached(device); /* before its context takes memory, which others would take for theirs */
    if (target && getenv && setenv && unsetenv)
        return start_on_slices(flags);
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
