#include "usage.h"

#define LOAD(field) __atomic_load_n(&(field), __ATOMIC_ACQUIRE)
#define STORE(field, value) __atomic_store_n(&(field), value, __ATOMIC_RELEASE)
#define SWAP(field, from, to) __atomic_compare_exchange_n(&(field), &(from), to, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)

/*
 * The usage file is mapped once; a fork's child keeps using the mapping. Without the file, and for a device that has no
 * account in it, the cap holds for each process separately.
 */
static struct usage *the_usage(const struct account *me)
{
    static struct usage *shared;
    static unsigned accounts;
    if (!shared)
        shared = map_usage(1, &accounts);
    if (shared && number_of(me->target) < accounts)
        return &shared[number_of(me->target)];
    return me->usage ? me->usage : sys_memory(sizeof *shared);
}

static int ended(const struct account *me, const struct usage_slot *slot)
{
    return slot != me->slot && slot_ended(slot, me->pids);
}

enum { HOLDER = 0xFFFF, ONE_MORE = 0x10000, SPINS = 64, NAPS_TO_DOUBT = 10, NAPS_TO_FORCE = 3000 };

/* How the lock names a process: by its slot, from 1. */
static uint64_t slot_number(const struct account *me) { return (uint64_t)(me->slot - me->usage->slots) + 1; }

/* The slot that this process had before it called exec. */
static struct usage_slot *former_slot(const struct account *me, uint64_t process)
{
    struct usage_slot *slots = me->usage->slots;
    for (int i = 0; i < USAGE_SLOTS; i++)
        if (LOAD(slots[i].process) == process && slot_pids(&slots[i]) == me->pids)
            return &slots[i];
    return NULL;
}

/* Finds a slot: the one that this process had, a free one, or that of a dead process. */
static struct usage_slot *find_slot(struct account *me, uint64_t process)
{
    struct usage_slot *slots = me->usage->slots, *former = former_slot(me, process);
    if (former)
        return former;
    for (int i = 0; i < USAGE_SLOTS; i++) {
        uint64_t none = 0;
        struct usage_slot *slot = &slots[me->on_trial ? USAGE_SLOTS - 1 - i : i];
        if (SWAP(slot->process, none, process))
            return slot;
    }
    for (int i = 0; i < USAGE_SLOTS; i++) {
        uint64_t dead = LOAD(slots[i].process);
        if (ended(me, &slots[i]) && SWAP(slots[i].process, dead, process))
            return &slots[i];
    }
    return NULL;
}

/* Other processes may have memory of a process that ended: it counts as overhead until the next query. */
static void inherit(struct account *me, const struct usage_slot *slot)
{
    if (!me->target->own_slice || LOAD(slot->pids) & USAGE_TRIAL || !slot->bytes)
        return;
    me->usage->overhead += slot->bytes;
    me->overhead_on_trial += slot->bytes;
    me->in_doubt = 1;
}

/*
 * Identifies the process by pid and start time. If /proc does not show the namespace of its pid, another process
 * may have the same pid elsewhere: then a random number distinguishes them.
 */
static uint64_t identify(struct account *me)
{
    uint64_t start = process_start(sys_pid());
    me->pids = start != UNTOLD ? pid_namespace() : 0;
    if (!me->pids)
        sys_random(&start, sizeof start);
    return start << USAGE_PID_BITS | sys_pid();
}

static void attach(struct account *me, const struct figures *target)
{
    uint64_t process = identify(me);
    me->target = target;
    me->usage = the_usage(me);
    if (!me->usage)
        return;
    me->on_trial = getenv && getenv(USAGE_TRIAL_VARIABLE);
    struct usage_slot *slot = find_slot(me, process);
    if (!slot)
        return; /* all belong to live processes: a process that cannot be counted gets no memory, and may try again */
    STORE(slot->pids, me->pids | (me->on_trial ? USAGE_TRIAL : 0));
    me->slot = slot;
    uint64_t held = lock_usage(me);
    inherit(me, slot); /* from its former program, or from a dead process */
    slot->bytes = 0;
    sweep(me);
    unlock_usage(me, held);
    STORE(me->attached, 1); /* last: other threads must not count in a slot that is about to be cleared */
}

/* What a process had before it called exec, it has no more: also of devices that its new program does not use. */
static void attach_to_former(const struct account *me)
{
    FOR_DEVICES(target) {
        struct account *other = account_of(target);
        if (LOAD(other->attached))
            continue;
        struct account former = {.target = target, .pids = me->pids, .usage = other->usage};
        other->usage = former.usage = the_usage(&former);
        if (former.usage && former_slot(&former, LOAD(me->slot->process)))
            attach(other, target);
    }
}

struct account *account_of(const struct figures *target)
{
    struct process *process = this_process();
    return process ? &process->accounts[number_of(target)] : NULL;
}

struct account *attached(const struct figures *target)
{
    struct account *me = account_of(target);
    if (!me || LOAD(me->attached))
        return me;
    char *attaching = &this_process()->attaching;
    lock_threads(attaching);
    if (!me->attached)
        attach(me, target);
    if (me->attached)
        attach_to_former(me);
    unlock_threads(attaching);
    return me->attached ? me : NULL;
}

/*
 * Whether the holder died with the lock. For a holder in another pid namespace, only time can show that, and likewise
 * for one whose thread ended or was stopped: no process needs the lock for so long, and a holder that continues
 * notices that it lost the lock.
 */
static int abandoned(const struct account *me, uint64_t lock, unsigned naps)
{
    const struct usage_slot *slot = &me->usage->slots[(lock & HOLDER) - 1];
    if ((lock & HOLDER) > USAGE_SLOTS || !LOAD(slot->process) || ended(me, slot))
        return 1;
    return naps > NAPS_TO_FORCE;
}

/*
 * Waits until the lock changes hands or its holder is dead; then another process may take it. The same holds for the
 * previous user of this slot, which may be the same process before exec.
 */
static int may_be_taken(const struct account *me, uint64_t lock)
{
    if (!(lock & HOLDER) || (!LOAD(me->attached) && (lock & HOLDER) == slot_number(me)))
        return 1;
    for (unsigned i = 0; i < SPINS; i++) {
        if (LOAD(me->usage->lock) != lock)
            return 0;
        sys_yield();
    }
    for (unsigned naps = 1; LOAD(me->usage->lock) == lock; naps++) {
        if (naps % NAPS_TO_DOUBT == 0 && abandoned(me, lock, naps))
            return 1;
        sys_sleep_ms(1);
    }
    return 0;
}

uint64_t lock_usage(struct account *me)
{
    uint64_t number = slot_number(me);
    for (;;) {
        uint64_t lock = LOAD(me->usage->lock);
        if (!may_be_taken(me, lock))
            continue;
        uint64_t held = ((lock & ~(uint64_t)HOLDER) + ONE_MORE) | number;
        int inherited = (lock & HOLDER) != 0;
        if (!SWAP(me->usage->lock, lock, held))
            continue;
        if (inherited)
            sweep(me); /* a dead process may have been in the middle of a change */
        return held;
    }
}

/* The lock is lost if another process considered this one dead. */
void unlock_usage(struct account *me, uint64_t held) { (void)SWAP(me->usage->lock, held, held & ~(uint64_t)HOLDER); }

void sweep(struct account *me)
{
    uint64_t total = 0;
    for (struct usage_slot *slot = me->usage->slots; slot < me->usage->slots + USAGE_SLOTS; slot++) {
        uint64_t process = LOAD(slot->process);
        if (process && ended(me, slot)) {
            inherit(me, slot);
            STORE(slot->bytes, 0); /* first: a free slot is empty, even if this process dies here */
            (void)SWAP(slot->process, process, (uint64_t)0);
        }
        if (LOAD(slot->process))
            total += slot->bytes;
    }
    me->usage->total = total;
}

/* The next trial program, from the last slot down to one that was never used; NULL after the last one. */
static const struct usage_slot *next_on_trial(const struct account *me, const struct usage_slot *slot)
{
    while (slot > me->usage->slots && LOAD(slot[-1].pids)) {
        slot--;
        if (LOAD(slot->pids) & USAGE_TRIAL && LOAD(slot->process))
            return slot;
    }
    return NULL;
}

uint64_t used_on_trial(const struct account *me)
{
    uint64_t total = 0;
    for (const struct usage_slot *slot = me->usage->slots + USAGE_SLOTS; (slot = next_on_trial(me, slot));)
        total += slot->bytes;
    return total;
}

static int is_beside_a_trial(const struct account *me)
{
    for (const struct usage_slot *slot = me->usage->slots + USAGE_SLOTS; (slot = next_on_trial(me, slot));)
        if (slot_pids(slot) == me->pids)
            return 1;
    return 0;
}

int beside_a_trial(struct account *me)
{
    if (!is_beside_a_trial(me))
        return 0;
    sweep(me);
    return is_beside_a_trial(me);
}
