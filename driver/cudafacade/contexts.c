/* Contexts and code take memory without stating its size; and destroying a context frees the memory allocated in it. */
#include "facade.h"

/*
 * Wraps a function that may take memory of unknown size. Only the driver knows the size, and only afterwards: if the
 * function exceeded the cap, its effect is undone.
 */
#define GROWING_ON(where, name, undo, ...)                        \
    {                                                             \
        DISGUISE(name, __VA_ARGS__);                              \
        target = where;                                           \
        CUresult answer = DRIVER(name)(__VA_ARGS__);              \
        if (answer != CUDA_SUCCESS || !has_grown_too_far(target)) \
            return answer;                                        \
        undo;                                                     \
        look_at_overhead(target);                                 \
        return CUDA_ERROR_OUT_OF_MEMORY;                          \
    }
#define GROWING(name, undo, ...) GROWING_ON(target, name, undo, __VA_ARGS__)
#define MAKING(name, undo, ...) GROWING_ON(figures_of(device), name, undo, __VA_ARGS__)

CUresult cuCtxCreate(CUcontext *c, unsigned flags, CUdevice device)
    MAKING(cuCtxCreate, DRIVER(cuCtxDestroy_v2)(*c), c, flags, device);
CUresult cuCtxCreate_v2(CUcontext *c, unsigned flags, CUdevice device)
    MAKING(cuCtxCreate_v2, DRIVER(cuCtxDestroy_v2)(*c), c, flags, device);
CUresult cuCtxCreate_v3(CUcontext *c, void *params, int count, unsigned flags, CUdevice device)
    MAKING(cuCtxCreate_v3, DRIVER(cuCtxDestroy_v2)(*c), c, params, count, flags, device);
CUresult cuCtxCreate_v4(CUcontext *c, void *params, unsigned flags, CUdevice device)
    MAKING(cuCtxCreate_v4, DRIVER(cuCtxDestroy_v2)(*c), c, params, flags, device);
CUresult cuGreenCtxCreate(void **c, void *description, CUdevice device, unsigned flags)
    MAKING(cuGreenCtxCreate, DRIVER(cuGreenCtxDestroy)(*c), c, description, device, flags);
CUresult cuModuleLoad(CUmodule *m, const char *path) GROWING(cuModuleLoad, DRIVER(cuModuleUnload)(*m), m, path);
CUresult cuModuleLoadData(CUmodule *m, const void *image)
    GROWING(cuModuleLoadData, DRIVER(cuModuleUnload)(*m), m, image);
CUresult cuModuleLoadDataEx(CUmodule *m, const void *image, unsigned count, int *options, void **values)
    GROWING(cuModuleLoadDataEx, DRIVER(cuModuleUnload)(*m), m, image, count, options, values);
CUresult cuModuleLoadFatBinary(CUmodule *m, const void *image)
    GROWING(cuModuleLoadFatBinary, DRIVER(cuModuleUnload)(*m), m, image);
CUresult cuLibraryLoadData(void **l, const void *code, int *jit, void **jit_values, unsigned jit_count, int *options,
                           void **values, unsigned count)
    GROWING(cuLibraryLoadData, DRIVER(cuLibraryUnload)(*l), l, code, jit, jit_values, jit_count, options, values,
            count);
CUresult cuLibraryLoadFromFile(void **l, const char *path, int *jit, void **jit_values, unsigned jit_count,
                               int *options, void **values, unsigned count)
    GROWING(cuLibraryLoadFromFile, DRIVER(cuLibraryUnload)(*l), l, path, jit, jit_values, jit_count, options, values,
            count);

CUresult cuCtxSetLimit(int limit, size_t value)
{
    size_t before = 0;
    int known = figures_shown() && DRIVER(cuCtxGetLimit)(&before, limit) == CUDA_SUCCESS;
    GROWING(cuCtxSetLimit, if (known) DRIVER(cuCtxSetLimit)(limit, before), limit, value)
}

/* It has a name only where it is retained, and is made only where it is not there yet. */
static CUresult retain(const struct figures *target, CUcontext *context, CUdevice device)
{
    unsigned flags;
    int active = 0;
    DRIVER(cuDevicePrimaryCtxGetState)(device, &flags, &active);
    CUresult answer = DRIVER(cuDevicePrimaryCtxRetain)(context, device);
    struct account *me = account_of(target);
    if (answer == CUDA_SUCCESS && me)
        __atomic_store_n(&me->primary, (uintptr_t)*context, __ATOMIC_RELAXED);
    if (answer != CUDA_SUCCESS || active)
        return answer;
    CUcontext popped;
    int current = DRIVER(cuCtxPushCurrent_v2)(*context) == CUDA_SUCCESS; /* the driver reports only in a context */
    int too_far = has_grown_too_far(target);
    if (current)
        DRIVER(cuCtxPopCurrent_v2)(&popped);
    if (!too_far)
        return answer;
    DRIVER(cuDevicePrimaryCtxRelease_v2)(device);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    DISGUISE_DEVICE(device, cuDevicePrimaryCtxRetain, context, device);
    return retain(target, context, device);
}

/* The driver freed this memory with a context. All of it is of the context's device. */
static void forget_all_of(uint64_t context)
{
    struct process *me = context ? this_process() : NULL;
    const struct figures *target = the_figures();
    uint64_t held = 0;
    if (!me)
        return;
    lock_threads(&me->lock);
    FOR_ENTRIES(block, &me->blocks) {
        if (block->owner != context)
            continue;
        target = numbered(block->device);
        if (block->uses == EXPORTED && target->own_slice)
            held += block->size;
    }
    uint64_t bytes = table_take_all_of(&me->blocks, context);
    unlock_threads(&me->lock);
    give(target, bytes - held);
    give_to_holders(target, held);
}

#define DESTROYING(name)                         \
    CUresult name(CUcontext context)             \
    {                                            \
        DISGUISE(name, context);                 \
        CUresult answer = DRIVER(name)(context); \
        if (answer == CUDA_SUCCESS)              \
            forget_all_of((uintptr_t)context);   \
        return answer;                           \
    }

DESTROYING(cuCtxDestroy)
DESTROYING(cuCtxDestroy_v2)

static CUresult left(const struct figures *target, CUresult answer, CUdevice device)
{
    unsigned flags;
    int active = 1;
    const struct account *me = account_of(target);
    if (answer != CUDA_SUCCESS || !me || DRIVER(cuDevicePrimaryCtxGetState)(device, &flags, &active) != CUDA_SUCCESS)
        return answer;
    if (!active)
        forget_all_of(__atomic_load_n(&me->primary, __ATOMIC_RELAXED));
    return answer;
}

/* Released by its last user, or reset: then it is not active any more. */
#define LEAVING(name)                                      \
    CUresult name(CUdevice device)                         \
    {                                                      \
        DISGUISE_DEVICE(device, name, device);             \
        return left(target, DRIVER(name)(device), device); \
    }

LEAVING(cuDevicePrimaryCtxRelease)
LEAVING(cuDevicePrimaryCtxRelease_v2)
LEAVING(cuDevicePrimaryCtxReset)
LEAVING(cuDevicePrimaryCtxReset_v2)
