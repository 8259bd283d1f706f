/* Declarations that the source files of the NVML facade share. */
#ifndef COSPLAY_FACADE_H
#define COSPLAY_FACADE_H

#include "driver.h"

/* Functions of NVML are exported, all else is hidden. */
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#pragma GCC visibility push(default)
#include <nvml.h>
#pragma GCC visibility pop

/*
 * The driver's handle of the session's slice: a MIG device or a whole GPU. It is looked up at every call, because the
 * driver may give a later slice the handle of a removed one.
 */
nvmlReturn_t find_slice(const struct figures *target, nvmlDevice_t *slice);

/* The physical GPU that it is on: the one handle that is given out. */
nvmlReturn_t find_gpu(const struct figures *target, nvmlDevice_t *gpu);

/* The figures of a device, by its handle. The driver judges a handle that is none of the session's. */
const struct figures *figures_of(const struct figures *first, nvmlDevice_t device);

/* Every function of a device begins with this. */
#define DISGUISE_DEVICE(name, device, ...)             \
    DISGUISE(name, device __VA_OPT__(, ) __VA_ARGS__); \
    target = figures_of(target, device)

/* Values that the driver does not know of its GPU can still be the target's. */
static inline int can_tell(nvmlReturn_t answer)
{
    switch (answer) {
    case NVML_SUCCESS:
    case NVML_ERROR_NOT_SUPPORTED:
    case NVML_ERROR_NO_PERMISSION:
    case NVML_ERROR_FUNCTION_NOT_FOUND:
    case NVML_ERROR_UNKNOWN:
        return 1;
    default:
        return 0;
    }
}

/*
 * A getter of one number: the driver judges the call, the target gives the
 * figure. expression may use target, and *value where the driver filled it in.
 */
#define FIGURE(name, type, expression)                     \
    nvmlReturn_t name(nvmlDevice_t device, type *value)    \
    {                                                      \
        DISGUISE_DEVICE(name, device, value);              \
        nvmlReturn_t answer = DRIVER(name)(device, value); \
        if (!value || !can_tell(answer))                   \
            return answer;                                 \
        *value = (type)(expression);                       \
        return NVML_SUCCESS;                               \
    }

/* activity.c: what a session is shown of the GPU's power, mW, and of its energy, mJ. */
unsigned shown_power(const struct figures *target, unsigned mw);
unsigned long long shown_energy(const struct figures *target, unsigned long long mj);

/* memory.c: the processes that count, at most USAGE_SLOTS. Not supported where none counts. */
nvmlReturn_t processes_of_session(const struct figures *target, nvmlProcessInfo_t *list, unsigned *count);

#endif
