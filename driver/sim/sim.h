/* Declarations that the source files of the simulated driver share. */
#ifndef COSPLAY_SIM_H
#define COSPLAY_SIM_H

#include "base.h"
#include "state.h"

/* Functions of NVML are exported, all else is hidden. */
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#pragma GCC visibility push(default)
#include <nvml.h>
#pragma GCC visibility pop

/* state.c: the mapped file, and the processes that use it. */
extern struct sim_host *host;
nvmlReturn_t state_open(void); /* locks the file as well */
void state_close(void);
nvmlReturn_t state_lock(void);
void state_lock_threads(void);      /* against threads of this process alone */
nvmlReturn_t state_lock_file(void); /* against other processes, after that */
void state_unlock(void);
int state_writable(void);
long state_file(void);
long state_open_again(void); /* for a separate lock */
int64_t process_byte(const struct sim_gpu *gpu, const struct sim_process *process);
void sweep_processes(struct sim_gpu *gpu); /* removes those that ended without a word */

/* The driver's name of a MIG device, and whether a text names it: the name by instance ids is always valid. */
struct text mig_name(const struct sim_gpu *gpu, const struct sim_gpu_instance *instance,
                     const struct sim_compute_instance *compute);
int is_mig_name(const struct sim_gpu *gpu, const struct sim_gpu_instance *instance,
                const struct sim_compute_instance *compute, const char *name);

/*
 * A call of a client. Every function of NVML begins with one of the macros below: it checks arguments, takes the
 * lock, applies a fault, and looks up the handle. The return releases the lock.
 */
struct call {
    int locked;
    int simple; /* it reads what never changes, or a single number: then other processes need not wait */
    nvmlReturn_t answer;
    struct sim_gpu *gpu;
    struct sim_gpu_instance *instance;    /* NULL for a physical GPU */
    struct sim_compute_instance *compute; /* NULL but for a MIG device */
};

int enter_init(struct call *call, const char *function);
int enter_host(struct call *call, const char *function);
int enter_found(struct call *call, const char *function, struct sim_gpu *gpu); /* after enter_host */
int enter_gpu(struct call *call, const char *function, nvmlDevice_t device);
int enter_device(struct call *call, const char *function, nvmlDevice_t device);
int enter_gpu_instance(struct call *call, const char *function, nvmlGpuInstance_t instance);
int enter_compute_instance(struct call *call, const char *function, nvmlComputeInstance_t compute);
void leave(struct call *call);

#define CALL_AS(is_simple, valid, enter)                                      \
    if (!(valid))                                                             \
        return NVML_ERROR_INVALID_ARGUMENT;                                   \
    struct call call __attribute__((cleanup(leave))) = {.simple = is_simple}; \
    if (!(enter))                                                             \
        return call.answer;                                                   \
    struct sim_gpu *gpu __attribute__((unused)) = call.gpu

#define CALL(valid, enter) CALL_AS(0, valid, enter)

/* About the host; about a physical GPU; about that or a MIG device; about an instance. */
#define HOST_CALL(valid) CALL(valid, enter_host(&call, __func__))
#define GPU_CALL(device, valid) CALL(valid, enter_gpu(&call, __func__, device))
#define DEVICE_CALL(device, valid) CALL(valid, enter_device(&call, __func__, device))
#define GPU_READ(device, valid) CALL_AS(1, valid, enter_gpu(&call, __func__, device))
#define DEVICE_READ(device, valid) CALL_AS(1, valid, enter_device(&call, __func__, device))
#define GPU_INSTANCE_CALL(handle, valid) CALL(valid, enter_gpu_instance(&call, __func__, handle))
#define COMPUTE_INSTANCE_CALL(handle, valid) CALL(valid, enter_compute_instance(&call, __func__, handle))

/* After one of the above: this call changes the host. */
#define WRITES                           \
    if (!state_writable()) {             \
        return NVML_ERROR_NO_PERMISSION; \
    }

/* call.c: handles. */
int is_gpu(nvmlDevice_t device); /* not a MIG device */
nvmlDevice_t gpu_handle(const struct sim_gpu *gpu);
nvmlGpuInstance_t gpu_instance_handle(const struct sim_gpu *gpu, const struct sim_gpu_instance *instance);
nvmlComputeInstance_t compute_instance_handle(const struct sim_gpu *gpu, const struct sim_gpu_instance *instance,
                                              const struct sim_compute_instance *compute);
nvmlDevice_t mig_handle(const struct sim_gpu *gpu, const struct sim_gpu_instance *instance,
                        const struct sim_compute_instance *compute);
unsigned gpu_index(const struct sim_gpu *gpu);
unsigned instance_id(const struct sim_gpu *gpu, const struct sim_gpu_instance *instance);
unsigned compute_id(const struct sim_gpu_instance *instance, const struct sim_compute_instance *compute);

/* Copies a text into a caller's buffer. */
nvmlReturn_t give_text(char *to, unsigned size, const char *text);

/* The contents of a caller's array, and the number of its entries. */
nvmlReturn_t give_count(unsigned *count, unsigned have, const void *array);

/* processes.c */
int gpu_busy(const struct sim_gpu *gpu);
int instance_busy(const struct sim_gpu *gpu, unsigned gpu_instance);
int compute_busy(const struct call *call);

/* clocks.c, power.c */
unsigned sm_clock_mhz(const struct sim_gpu *gpu);
unsigned power_draw_mw(const struct sim_gpu *gpu);

/* instances.c */
const struct sim_profile *profile_by_id(const struct sim_gpu *gpu, unsigned id);
const struct sim_profile *profile_of(const struct sim_gpu *gpu, const struct sim_gpu_instance *instance);

/* compute.c: "1g.18gb", or "1c.3g.71gb" for a part of a GPU instance. */
void add_compute_name(struct text *text, const struct sim_profile *profile, unsigned slices);
/* SMs of a part of a GPU instance. */
unsigned compute_sms(const struct sim_gpu *gpu, const struct sim_profile *profile, unsigned slices);

/* mig.c: the parts of a profile besides SMs and memory. */
struct engines {
    unsigned copy, decoder, jpeg, ofa;
};
struct engines engines_of(const struct sim_gpu *gpu, const struct sim_profile *profile);

#define FOR_INSTANCES(instance, gpu)                                                                                \
    for (struct sim_gpu_instance *instance = (gpu)->instances; instance < (gpu)->instances + SIM_MAX_GPU_INSTANCES; \
         instance++)                                                                                                \
        if (instance->used)

#define FOR_COMPUTE(compute, instance)                                         \
    for (struct sim_compute_instance *compute = (instance)->compute;           \
         compute < (instance)->compute + SIM_MAX_COMPUTE_INSTANCES; compute++) \
        if (compute->used)

#endif
