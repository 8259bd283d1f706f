#include "usage.h"

static uint64_t cap(const struct figures *target) { return target->memory_mib * MIB; }

/* What is left below the cap: for certain, where the lock is held. */
static uint64_t room(const struct figures *target, const struct usage *usage)
{
    uint64_t used = __atomic_load_n(&usage->total, __ATOMIC_RELAXED) + __atomic_load_n(&usage->overhead, __ATOMIC_RELAXED);
    return used < cap(target) ? cap(target) - used : 0;
}

/* At most what the target has. It takes no lock. */
static void note_peak(const struct figures *target, struct usage *usage)
{
    uint64_t used = cap(target) - room(target, usage);
    uint64_t peak = __atomic_load_n(&usage->peak, __ATOMIC_RELAXED);
    while (used > peak && !__atomic_compare_exchange_n(&usage->peak, &peak, used, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

static void count(struct process *me, uint64_t bytes)
{
    me->slot->bytes += bytes;
    me->usage->total += bytes;
}

/* The first time, the process has its context already, and nobody has looked yet at what that takes. */
static int attempt(const struct figures *target, uint64_t bytes, int keep)
{
    struct process *me = attached();
    if (!me)
        return 0;
    if (!__atomic_test_and_set(&me->has_taken, __ATOMIC_RELAXED))
        look_at_overhead(target);
    uint64_t held = lock_usage(me);
    int fits = bytes <= room(target, me->usage);
    if (fits && keep)
        count(me, bytes);
    unlock_usage(me, held);
    return fits;
}

int take_if_there_is_room(const struct figures *target, uint64_t bytes) { return attempt(target, bytes, 1); }

uint64_t take_what_fits(const struct figures *target, uint64_t bytes)
{
    struct process *me = attached();
    if (!me)
        return 0;
    uint64_t held = lock_usage(me);
    uint64_t most = room(target, me->usage);
    if (bytes > most)
        bytes = most;
    count(me, bytes);
    note_peak(target, me->usage);
    unlock_usage(me, held);
    return bytes;
}

/* Never below zero, and never more than the slot has: a count that is in doubt is had again from the slots. */
void give(uint64_t bytes)
{
    struct process *me = bytes ? attached() : NULL;
    if (!me)
        return;
    uint64_t held = lock_usage(me);
    if (bytes > me->slot->bytes)
        bytes = me->slot->bytes;
    me->slot->bytes -= bytes;
    if (bytes <= me->usage->total)
        me->usage->total -= bytes;
    else
        sweep(me);
    unlock_usage(me, held);
}

/* Counts of others are read before and after, since they allocate at the same time: theirs is no overhead. */
void look_at_overhead(const struct figures *target)
{
    struct process *me = target->own_slice ? attached() : NULL;
    if (!me)
        return;
    size_t free, all;
    uint64_t before = __atomic_load_n(&me->usage->total, __ATOMIC_RELAXED);
    if (DRIVER(cuMemGetInfo_v2)(&free, &all) != CUDA_SUCCESS || free > all)
        return;
    uint64_t held = lock_usage(me);
    uint64_t counted = me->usage->total > before ? me->usage->total : before;
    me->usage->overhead = all - free > counted ? all - free - counted : 0;
    note_peak(target, me->usage); /* the driver may take more than was asked for */
    unlock_usage(me, held);
}

static void sweep_now(void)
{
    struct process *me = attached();
    if (!me)
        return;
    uint64_t held = lock_usage(me);
    sweep(me);
    unlock_usage(me, held);
}

static void count_refusal(void)
{
    struct process *me = attached();
    if (me)
        __atomic_fetch_add(&me->usage->refused, 1, __ATOMIC_RELAXED);
}

CUresult noted(CUresult answer)
{
    const struct figures *target = figures_shown();
    struct process *me = answer == CUDA_SUCCESS && target ? attached() : NULL;
    if (me)
        note_peak(target, me->usage);
    if (answer == CUDA_ERROR_OUT_OF_MEMORY)
        count_refusal();
    return answer;
}

/* Only who is refused pays for a look at the world. */
static int insist(const struct figures *target, uint64_t bytes, int keep)
{
    if (bytes <= cap(target)) {
        sweep_now();
        look_at_overhead(target);
        if (attempt(target, bytes, keep))
            return 1;
    }
    count_refusal();
    return 0;
}

int take_without_trimming(const struct figures *target, uint64_t bytes) { return insist(target, bytes, 1); }

int take(const struct figures *target, uint64_t bytes)
{
    if (attempt(target, bytes, 1))
        return 1;
    trim_pools(target);
    return insist(target, bytes, 1);
}

int would_fit(const struct figures *target, uint64_t bytes)
{
    struct process *me = attached();
    if (me)
        __atomic_store_n(&me->has_graphs, 1, __ATOMIC_RELAXED);
    if (attempt(target, bytes, 0))
        return 1;
    trim_pools(target);
    return insist(target, bytes, 0);
}

uint64_t in_use(const struct figures *target)
{
    struct process *me = attached();
    if (!me)
        return 0;
    settle_pools(target);
    settle_graphs(target);
    sweep_now();
    look_at_overhead(target);
    uint64_t held = lock_usage(me);
    uint64_t used = cap(target) - room(target, me->usage);
    unlock_usage(me, held);
    return used;
}
