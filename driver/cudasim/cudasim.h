/* Declarations that the source files of the simulated CUDA driver share. */
#ifndef COSPLAY_CUDASIM_H
#define COSPLAY_CUDASIM_H

#include "cuda/cuda.h"
#include "cuda/table.h"
#include "sim/sim.h"

#define MIB (1024ULL * 1024ULL)
enum {
    MAX_DEVICES = 16,
    CONTEXT_MIB = 300, /* about what a context takes on a datacenter GPU */
    MODULE_MIB = 2,
    PAGE_MIB = 2, /* what the driver takes from the GPU at a time */
};

/* A GPU or a slice of one, as the program counts them. */
struct device {
    unsigned gpu;
    int gpu_instance; /* SIM_WHOLE_GPU */
    int compute_instance;
    unsigned process; /* its place among the GPU's processes */
    int entered;
    uint64_t bytes; /* that this process has there */
    uint64_t graph_reserved, graph_used;
    CUmemoryPool pool; /* where cuMemAllocAsync takes from */
};

__attribute__((weak)) char *getenv(const char *name); /* of libc, without a version */

struct CUctx_st {
    unsigned users; /* 0 is free; more than 1 only of a primary context */
    int primary;
    CUdevice device;
};

/*
 * Every function begins with one of these macros: it takes the process's lock, and returns an error if the driver is
 * not initialised, the device does not exist, or the thread has no context. The return releases the lock.
 */
struct visit {
    int locked;
    CUresult answer;
    struct device *device;
    CUcontext context;
};
int visit_driver(struct visit *visit);
int visit_device(struct visit *visit, CUdevice device);
int visit_context(struct visit *visit);
void end_visit(struct visit *visit);

#define VISIT(valid, enter)                                       \
    if (!(valid))                                                 \
        return CUDA_ERROR_INVALID_VALUE;                          \
    struct visit visit __attribute__((cleanup(end_visit))) = {0}; \
    if (!(enter)) {                                               \
        return visit.answer;                                      \
    }
#define DRIVER_CALL(valid) VISIT(valid, visit_driver(&visit))
#define DEVICE_CALL_OF(device, valid) VISIT(valid, visit_device(&visit, device))
#define CONTEXT_CALL(valid) VISIT(valid, visit_context(&visit))

extern struct device devices[MAX_DEVICES];
extern int device_count;
CUresult find_devices(void);
int visible_devices(void); /* their number; before cuInit, too */
const struct sim_gpu *gpu_of(const struct device *device);
uint64_t memory_of(const struct device *device);
const struct sim_profile *profile_at(const struct device *device); /* NULL for a whole GPU */

/* Takes memory of the slice, or gives it back; 0 when there is not so much. */
int charge(struct device *device, uint64_t bytes);
void discharge(struct device *device, uint64_t bytes);
uint64_t used_of(const struct device *device);

/*
 * Exported memory belongs to its holders: it has a separate entry in the list, which exists as long as any process
 * has a copy of the open file that locks it. The content of memory is not shared.
 */
long share_memory(struct device *device, uint64_t bytes);      /* the process's so far; the open file, or negative */
struct sim_process *shared_by(struct device *device, long fd); /* what the open file holds; NULL when nothing */
long join_holders(struct device *device, unsigned place, uint32_t pid); /* of its exports; negative when it has ended */
int resize_shared(struct device *device, struct sim_process *entry, uint64_t bytes);

/* For the user of the program. */
static inline void say(const char *text) { sys_write(2, text, length(text)); }

/* context.c */
void end_context(CUcontext context);

/* memory.c: what was allocated, by address or handle; its owner is a context or a pool. */
extern struct table blocks;
CUresult allocate(struct visit *visit, void *at, uint64_t size);
CUresult release(struct visit *visit, uint64_t key);
void release_all_of(struct device *device, const void *owner);
uint64_t up(uint64_t size, uint64_t unit);

/* pool.c: pieces of pools, by address; owner: the pool */
extern struct table pieces;
CUmemoryPool default_pool(CUdevice device);
void release_unused(struct device *device);
int free_from_pool(struct visit *visit, uint64_t address);

/* graph.c */
struct CUgraph_st {
    uint64_t bytes, freed;
};
struct CUstream_st {
    CUcontext context;
    CUgraph capture; /* NULL when it is not capturing */
};
CUstream real_stream(CUstream stream); /* NULL for the default ones */

#endif
