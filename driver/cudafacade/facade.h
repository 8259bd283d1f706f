/* Declarations that the source files of the CUDA facade share. */
#ifndef COSPLAY_CUDAFACADE_H
#define COSPLAY_CUDAFACADE_H

#include "cuda/cuda.h"
#include "cuda/table.h"
#include "facade/front.h"

#define MIB (1024ULL * 1024ULL)

/* Of libc, weak like those of facade/front.c. */
__attribute__((weak)) char *getenv(const char *name);
__attribute__((weak)) int setenv(const char *name, const char *value, int overwrite);
__attribute__((weak)) int unsetenv(const char *name);

/*
 * devices.c: the figures to show of a device, and of the device that the calling thread uses; NULL if the session has
 * none, so that all calls pass through. A device that is none of the session's has the figures of the first.
 */
const struct figures *figures_of(CUdevice device);
const struct figures *figures_shown(void);

/* The driver's number of a device of the session; 0 when it has none. */
int find_device(const struct figures *target, CUdevice *device);

/* Which device of the session it is, from 0. */
static inline uint64_t number_of(const struct figures *target) { return (uint64_t)(target - the_figures()); }
static inline const struct figures *numbered(uint64_t device) { return the_figures() + device; }
#define FOR_DEVICES(each) \
    for (const struct figures *each = the_figures(); each < the_figures() + figures_count(); each++)

/* "GPU-" and 32 digits in groups; 0 when it is something else. */
int parse_uuid(CUuuid *uuid, const char *text);

/* Every function begins with this, or with the next. */
#define DISGUISE(name, ...)                         \
    const struct figures *target = figures_shown(); \
    if (!target) {                                  \
        return DRIVER(name)(__VA_ARGS__);           \
    }

/* The figures are those of a device that the caller names. */
#define DISGUISE_DEVICE(device, name, ...) \
    DISGUISE(name, __VA_ARGS__)            \
    target = figures_of(device)

/* What this process has of a device. */
struct account {
    const struct figures *target;
    struct usage *usage;     /* the session's, or a private one if that is not available */
    struct usage_slot *slot; /* outside of usage.c only valid once attached */
    char attached;
    char has_taken; /* has allocated memory, or tried to */
    char in_doubt;  /* it counts memory of dead processes as overhead, which may be free */
    char on_trial;  /* it only tries how much it would get */
    uint64_t pids;
    uint32_t refused;           /* how often, and has not overcome it */
    uint64_t most_refused;      /* bytes, of these */
    uint64_t overhead_on_trial; /* in place of the session's: what such a program's context takes ends with it */
    uint64_t graphs;            /* counted of the memory that graphs share */
    uint64_t primary;           /* the primary context */
};

/* The state of this process. A fork's child finds zeros here, because CUDA does not survive a fork. */
struct process {
    char lock;      /* of the tables */
    char pool_lock; /* may be held during calls of the driver, unlike lock */
    char attaching;
    char has_graphs; /* that allocate memory */
    uint32_t pid;
    struct account accounts[MOST_DEVICES]; /* in the order of the figures */
    struct table blocks;       /* linear memory and arrays; owner: the context; uses: whether it was exported */
    struct table handles;      /* of physical memory; uses: handles and mappings together; owner: EXPORTED, IMPORTED */
    struct table mappings;     /* of physical memory; owner: the handle */
    struct table pools;        /* size: what is counted of the pool; owner: EXPORTED, NOT_OF_THE_GPU */
    struct table imports;      /* blocks of other processes, by address; uses: how often they were opened */
    struct table graphs_known; /* uses: the turn in which it was launched */
    uint64_t graphs_turn;      /* grows when graphs may be without their memory */
};
enum { EXPORTED = 1, IMPORTED = 2, NOT_OF_THE_GPU = 4 };
struct process *this_process(void); /* NULL when there is no memory */

/* What this process has of a device; NULL when there is no memory. */
struct account *account_of(const struct figures *target);

/* account.c: bytes are reserved before the driver allocates them, and released after it has freed them. */
int take(const struct figures *target, uint64_t bytes);
int take_without_trimming(const struct figures *target, uint64_t bytes);
int take_if_there_is_room(const struct figures *target, uint64_t bytes);
uint64_t take_what_fits(const struct figures *target, uint64_t bytes);
void give(const struct figures *target, uint64_t bytes);

/* Accounts for exported memory that this process has released and that other processes may still use. */
void give_to_holders(const struct figures *target, uint64_t bytes);

/* The driver's answer to an allocation. Only what it gave makes a peak, and when its own memory is out, that counts. */
CUresult noted(const struct figures *target, CUresult answer);

/* Whether it would fit: a graph takes it later. */
int would_fit(const struct figures *target, uint64_t bytes);

/* In use by the session, those that ended not counted: at most what the target has. */
uint64_t in_use(const struct figures *target);

/* Measures the memory of contexts and code, if the driver's figure covers only this session. */
void look_at_overhead(const struct figures *target);

/* Whether with them the session is past its cap; then it counts as refused. */
int has_grown_too_far(const struct figures *target);

/* linear.c, physical.c: mark the memory at an address as exported, if this process owns it. */
void export_block(CUdeviceptr address);
void export_mapped(CUdeviceptr address, size_t size);

/* Memory in use of a device, and all of it, as the driver reports them; 0 if it does not. */
int ask_driver(const struct figures *target, size_t *free, size_t *all);

/* imports.c: releases the bytes counted for an import; returns 0 if there is none. */
int forget_import(CUdeviceptr address);

/* pools.c: brings the counts to what pools and graphs hold now. */
void settle_pools(void);
void settle_graphs(void);
void trim_pools(const struct figures *target);
int graphs_are_beyond(void); /* whether they use more than could be counted */
int captures(CUstream stream);
int captures_ptsz(CUstream stream);

#endif
