/* The session's usage file, as both facades read it. */
#ifndef COSPLAY_FACADE_SLOTS_H
#define COSPLAY_FACADE_SLOTS_H

#include "figures.h"
#include "sim/base.h"
#include "usage.h"

/* The accounts of the file, and their number; NULL when there is none that makes sense. */
struct usage *map_usage(int writable, unsigned *accounts);

static inline uint32_t slot_pid(uint64_t process) { return (uint32_t)(process & ((1 << USAGE_PID_BITS) - 1)); }

static inline uint64_t slot_pids(const struct usage_slot *slot)
{
    return __atomic_load_n(&slot->pids, __ATOMIC_ACQUIRE) & ~USAGE_TRIAL;
}

/*
 * Whether the process of a slot has ended. Only processes of the same pid namespace can determine that, and the slot
 * records the namespace; for all others the process counts as alive.
 */
int slot_ended(const struct usage_slot *slot, uint64_t pids);

#endif
