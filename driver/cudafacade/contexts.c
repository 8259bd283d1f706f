/* Contexts and code take memory that nobody asks for by its size; and what was allocated ends with its context. */
#include "facade.h"

static CUresult grown(const struct figures *target, CUresult answer)
{
    if (answer == CUDA_SUCCESS)
        look_at_overhead(target);
    return answer;
}

/* The whole of a function after which more may be in use. */
#define GROWING(name, ...)                                          \
    {                                                               \
        DISGUISE(name, __VA_ARGS__);                                \
        return grown(target, DRIVER(name)(__VA_ARGS__));            \
    }

CUresult cuCtxCreate(CUcontext *c, unsigned flags, CUdevice device) GROWING(cuCtxCreate, c, flags, device)
CUresult cuCtxCreate_v2(CUcontext *c, unsigned flags, CUdevice device) GROWING(cuCtxCreate_v2, c, flags, device)
CUresult cuCtxCreate_v3(CUcontext *c, void *params, int count, unsigned flags, CUdevice device)
    GROWING(cuCtxCreate_v3, c, params, count, flags, device)
CUresult cuCtxCreate_v4(CUcontext *c, void *params, unsigned flags, CUdevice device)
    GROWING(cuCtxCreate_v4, c, params, flags, device)
CUresult cuGreenCtxCreate(void **c, void *description, CUdevice device, unsigned flags)
    GROWING(cuGreenCtxCreate, c, description, device, flags)
CUresult cuCtxSetLimit(int limit, size_t value) GROWING(cuCtxSetLimit, limit, value)
CUresult cuModuleLoad(CUmodule *m, const char *path) GROWING(cuModuleLoad, m, path)
CUresult cuModuleLoadData(CUmodule *m, const void *image) GROWING(cuModuleLoadData, m, image)
CUresult cuModuleLoadDataEx(CUmodule *m, const void *image, unsigned count, int *options, void **values)
    GROWING(cuModuleLoadDataEx, m, image, count, options, values)
CUresult cuModuleLoadFatBinary(CUmodule *m, const void *image) GROWING(cuModuleLoadFatBinary, m, image)
CUresult cuLibraryLoadData(void **l, const void *code, int *jit, void **jit_values, unsigned jit_count, int *options,
                           void **values, unsigned count)
    GROWING(cuLibraryLoadData, l, code, jit, jit_values, jit_count, options, values, count)
CUresult cuLibraryLoadFromFile(void **l, const char *path, int *jit, void **jit_values, unsigned jit_count,
                               int *options, void **values, unsigned count)
    GROWING(cuLibraryLoadFromFile, l, path, jit, jit_values, jit_count, options, values, count)

/* It has a name only where it is retained. */
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    DISGUISE(cuDevicePrimaryCtxRetain, context, device);
    CUresult answer = DRIVER(cuDevicePrimaryCtxRetain)(context, device);
    struct process *me = this_process();
    if (answer == CUDA_SUCCESS && me)
        __atomic_store_n(&me->primary, (uintptr_t)*context, __ATOMIC_RELAXED);
    return grown(target, answer);
}

/* What the driver freed with a context. */
static void forget_all_of(const struct figures *target, uint64_t context)
{
    struct process *me = context ? this_process() : NULL;
    uint64_t held = 0;
    if (!me)
        return;
    lock_threads(&me->lock);
    FOR_ENTRIES(block, &me->blocks)
        if (block->owner == context && block->uses == EXPORTED && target->own_slice)
            held += block->size;
    uint64_t bytes = table_take_all_of(&me->blocks, context);
    unlock_threads(&me->lock);
    give(bytes - held);
    give_to_holders(target, held);
}

#define DESTROYING(name)                                \
    CUresult name(CUcontext context)                    \
    {                                                   \
        DISGUISE(name, context);                        \
        CUresult answer = DRIVER(name)(context);        \
        if (answer == CUDA_SUCCESS)                     \
            forget_all_of(target, (uintptr_t)context);  \
        return answer;                                  \
    }

DESTROYING(cuCtxDestroy)
DESTROYING(cuCtxDestroy_v2)

static CUresult left(const struct figures *target, CUresult answer, CUdevice device)
{
    unsigned flags;
    int active = 1;
    struct process *me = this_process();
    if (answer != CUDA_SUCCESS || !me || DRIVER(cuDevicePrimaryCtxGetState)(device, &flags, &active) != CUDA_SUCCESS)
        return answer;
    if (!active)
        forget_all_of(target, __atomic_load_n(&me->primary, __ATOMIC_RELAXED));
    return answer;
}

/* Released by its last user, or reset: then it is not active any more. */
#define LEAVING(name)                                   \
    CUresult name(CUdevice device)                      \
    {                                                   \
        DISGUISE(name, device);                         \
        return left(target, DRIVER(name)(device), device); \
    }

LEAVING(cuDevicePrimaryCtxRelease)
LEAVING(cuDevicePrimaryCtxRelease_v2)
LEAVING(cuDevicePrimaryCtxReset)
LEAVING(cuDevicePrimaryCtxReset_v2)
