#include "usage.h"

static uint64_t cap(const struct figures *target) { return target->memory_mib * MIB; }

static uint64_t *overhead_of(struct account *me)
{
    return me->on_trial ? &me->overhead_on_trial : &me->usage->overhead;
}

static uint64_t used(struct account *me)
{
    return __atomic_load_n(&me->usage->total, __ATOMIC_RELAXED) + __atomic_load_n(overhead_of(me), __ATOMIC_RELAXED);
}

/* What is left below the cap. The value is exact while the lock is held. */
static uint64_t room(const struct figures *target, struct account *me)
{
    uint64_t in_use = used(me);
    return in_use < cap(target) ? cap(target) - in_use : 0;
}

/* Without what programs only try. The lock is held. */
static uint64_t used_in_earnest(struct account *me)
{
    uint64_t all = used(me), tried = used_on_trial(me);
    return all > tried ? all - tried : 0;
}

static uint64_t at_most_the_cap(const struct figures *target, uint64_t bytes)
{
    return bytes < cap(target) ? bytes : cap(target);
}

/* The lock is held. */
static void note_peak(const struct figures *target, struct account *me)
{
    uint64_t most = me->on_trial ? 0 : at_most_the_cap(target, used_in_earnest(me));
    if (most > me->usage->peak)
        __atomic_store_n(&me->usage->peak, most, __ATOMIC_RELAXED);
}

static void count(struct account *me, uint64_t bytes)
{
    me->slot->bytes += bytes;
    me->usage->total += bytes;
}

/*
 * Takes the lock once the use of contexts and code is known. The first time, this process already has its context,
 * but that has not been measured yet; and taking over the lock of a dead process may have freed slots, which makes
 * the measurement outdated.
 */
static uint64_t lock_informed(const struct figures *target, struct account *me)
{
    for (;;) {
        if (!__atomic_test_and_set(&me->has_taken, __ATOMIC_RELAXED))
            look_at_overhead(target);
        uint64_t held = lock_usage(me);
        if (!me->in_doubt)
            return held;
        unlock_usage(me, held);
        look_at_overhead(target);
    }
}

/*
 * A process that gets as much memory after a refusal has overcome it: PyTorch, for example, frees its cached memory
 * and allocates again, so it did not run out of memory. The caller holds the lock.
 */
static void overcome(struct account *me, uint64_t bytes)
{
    if (!me->refused || bytes < me->most_refused)
        return;
    me->usage->overcome += me->refused;
    me->refused = 0;
    me->most_refused = 0;
}

static int attempt(const struct figures *target, uint64_t bytes, int keep)
{
    struct account *me = attached(target);
    if (!me)
        return 0;
    uint64_t held = lock_informed(target, me);
    int fits = bytes <= room(target, me);
    if (fits && keep) {
        count(me, bytes);
        overcome(me, bytes);
    }
    unlock_usage(me, held);
    return fits;
}

int take_if_there_is_room(const struct figures *target, uint64_t bytes) { return attempt(target, bytes, 1); }

uint64_t take_what_fits(const struct figures *target, uint64_t bytes)
{
    struct account *me = attached(target);
    if (!me)
        return 0;
    uint64_t held = lock_usage(me);
    uint64_t most = room(target, me);
    if (bytes > most)
        bytes = most;
    count(me, bytes);
    note_peak(target, me);
    unlock_usage(me, held);
    return bytes;
}

/*
 * The total never falls below zero: if a count is in doubt, it is recomputed from the slots. The caller holds the
 * lock.
 */
static void uncount(struct account *me, uint64_t bytes)
{
    me->slot->bytes -= bytes;
    if (bytes <= me->usage->total)
        me->usage->total -= bytes;
    else
        sweep(me);
}

/* Never more than the slot has. */
void give(const struct figures *target, uint64_t bytes)
{
    struct account *me = bytes ? attached(target) : NULL;
    if (!me)
        return;
    uint64_t held = lock_usage(me);
    if (bytes > me->slot->bytes)
        bytes = me->slot->bytes;
    uncount(me, bytes);
    unlock_usage(me, held);
}

/*
 * If no other session uses the slice, exported memory moves to the overhead, and the driver's figure shows when it is
 * free. Otherwise no figure shows that, so it stays counted until the process ends.
 */
void give_to_holders(const struct figures *target, uint64_t bytes)
{
    struct account *me = bytes && target->own_slice ? attached(target) : NULL;
    if (!me)
        return;
    uint64_t held = lock_usage(me);
    if (bytes > me->slot->bytes)
        bytes = me->slot->bytes;
    *overhead_of(me) += bytes; /* first: if this process dies here, too much counts until the next query */
    uncount(me, bytes);
    unlock_usage(me, held);
    look_at_overhead(target);
}

/*
 * The driver does not report memory by context. While another program only tries, the overhead is unknown, and is
 * measured again later.
 */
static void set_overhead(struct account *me, uint64_t bytes, int known)
{
    uint64_t *overhead = overhead_of(me);
    if (known || bytes < *overhead)
        __atomic_store_n(overhead, bytes, __ATOMIC_RELAXED);
    if (!known)
        __atomic_clear(&me->has_taken, __ATOMIC_RELAXED);
}

/* The lock is held while the driver answers, so that no count changes and no trial begins meanwhile. */
void look_at_overhead(const struct figures *target)
{
    struct account *me = target->own_slice ? attached(target) : NULL;
    if (!me)
        return;
    size_t free, all;
    uint64_t held = lock_usage(me);
    int known = me->on_trial || !beside_a_trial(me);
    if (ask_driver(target, &free, &all) && free <= all) {
        uint64_t counted = me->usage->total;
        set_overhead(me, all - free > counted ? all - free - counted : 0, known);
        note_peak(target, me); /* the driver may take more than was requested */
    }
    me->in_doubt = 0;
    unlock_usage(me, held);
}

static void sweep_now(const struct figures *target)
{
    struct account *me = attached(target);
    if (!me)
        return;
    uint64_t held = lock_usage(me);
    sweep(me);
    unlock_usage(me, held);
}

/* A refusal of unknown size is never overcome. The caller holds the lock. */
static void note_refusal(struct account *me, uint64_t bytes)
{
    me->refused++;
    if (!bytes || bytes > me->most_refused)
        me->most_refused = bytes ? bytes : UINT64_MAX;
}

/*
 * A refusal does not count if the memory would have fitted without trials of other programs. A process without a slot
 * is always refused.
 */
static void count_refusal(const struct figures *target, uint64_t bytes)
{
    struct account *me = account_of(target);
    int counts = attached(target) != NULL;
    if (!me || !me->usage || me->on_trial)
        return;
    uint64_t held = counts ? lock_usage(me) : 0;
    if (!counts || bytes > cap(target) || used_in_earnest(me) > cap(target) - bytes || !used_on_trial(me)) {
        __atomic_fetch_add(&me->usage->refused, 1, __ATOMIC_RELAXED);
        if (counts)
            note_refusal(me, bytes);
    }
    if (counts)
        unlock_usage(me, held);
}

/* Most allocations make no peak, and cost no lock for it. */
CUresult noted(const struct figures *target, CUresult answer)
{
    struct account *me = attached(target);
    if (answer == CUDA_ERROR_OUT_OF_MEMORY)
        count_refusal(target, 0);
    if (me && answer == CUDA_SUCCESS &&
        at_most_the_cap(target, used(me)) > __atomic_load_n(&me->usage->peak, __ATOMIC_RELAXED)) {
        uint64_t held = lock_usage(me);
        note_peak(target, me);
        unlock_usage(me, held);
    }
    return answer;
}

/* Only an allocation that does not fit pays for measuring again. */
static int insist(const struct figures *target, uint64_t bytes, int keep)
{
    if (bytes <= cap(target)) {
        sweep_now(target);
        look_at_overhead(target);
        if (attempt(target, bytes, keep))
            return 1;
    }
    count_refusal(target, bytes);
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
    struct process *me = this_process();
    if (me)
        __atomic_store_n(&me->has_graphs, 1, __ATOMIC_RELAXED);
    if (attempt(target, bytes, 0))
        return 1;
    trim_pools(target);
    return insist(target, bytes, 0);
}

uint64_t in_use(const struct figures *target)
{
    struct account *me = attached(target);
    if (!me)
        return cap(target); /* a process that cannot be counted gets no memory */
    settle_pools();
    settle_graphs();
    sweep_now(target);
    look_at_overhead(target);
    uint64_t held = lock_usage(me);
    uint64_t used = cap(target) - room(target, me);
    unlock_usage(me, held);
    return used;
}

/* A trial is admitted, and finds that no memory is left. */
int has_grown_too_far(const struct figures *target)
{
    struct account *me = attached(target);
    look_at_overhead(target);
    if (!me || me->on_trial || !target->own_slice || used(me) <= cap(target))
        return 0;
    trim_pools(target);
    sweep_now(target);
    look_at_overhead(target);
    if (used(me) <= cap(target))
        return 0;
    count_refusal(target, 0);
    return 1;
}
