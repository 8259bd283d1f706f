/*
 * The usage file: the GPU memory that the programs of a session use. The Go package internal/disguise includes this
 * header and creates the file; every process that loads the CUDA facade maps it. This header is the only description
 * of the layout. A process that changes the file holds the lock and writes its own slot first, so that the total can
 * always be recomputed from the slots.
 */
#ifndef COSPLAY_FACADE_USAGE_H
#define COSPLAY_FACADE_USAGE_H

#include <stdint.h>

#define USAGE_MAGIC "COSPUSE"

/*
 * Version 1 is one account. Version 2 is several: one struct usage for each device of the session, one after another,
 * in the order of the figures file. Each account has a lock and slots that belong to it alone.
 */
#define USAGE_VERSION 1
#define USAGE_VERSION_OF_SEVERAL 2
enum { USAGE_SLOTS = 512 };

/* A process: its pid in the lowest bits, above them its start time in clock ticks. 0 is free. */
enum { USAGE_PID_BITS = 22 };

/*
 * A program states in its environment that it only tries to allocate, as the programs of cosplay verify do. The cap
 * holds for it and its memory counts, but it does not change the peak or the number of refusals. Trial programs take
 * the last slots, so that searching for them is fast.
 */
#define USAGE_TRIAL_VARIABLE "COSPLAY_TRIAL"
#define USAGE_TRIAL (1ULL << 63) /* in pids */

struct usage_slot {
    uint64_t process;
    uint64_t pids; /* the number of the pid namespace in which that is so */
    uint64_t bytes;
};

struct usage {
    char magic[8];
    uint32_t version;
    uint32_t size; /* of this struct, bytes */

    uint64_t lock;     /* a count that grows, and in the lowest 16 bits the holder's slot, from 1 */
    uint64_t total;    /* bytes, of all slots */
    uint64_t overhead; /* bytes in use besides: contexts, code; as last seen. 0 where others use the GPU too */
    uint64_t peak;     /* of the two together */
    uint32_t refused;  /* allocations that did not fit */
    uint32_t overcome; /* of these, those whose process later got as much */

    struct usage_slot slots[USAGE_SLOTS];
};

#endif
