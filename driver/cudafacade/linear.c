/* Linear memory and arrays: what was taken for each address is remembered, and its context. */
#include "facade.h"

static uint64_t current_context(void)
{
    CUcontext context = NULL;
    return DRIVER(cuCtxGetCurrent)(&context) == CUDA_SUCCESS ? (uintptr_t)context : 0;
}

/* Without memory to remember in, it stays counted until the process ends. */
static void remember(uint64_t key, uint64_t bytes, uint64_t context, uint64_t device)
{
    struct process *me = this_process();
    lock_threads(&me->lock);
    struct entry *entry = table_add(&me->blocks, key);
    if (entry) {
        entry->size = bytes;
        entry->owner = context;
        entry->device = device;
    }
    unlock_threads(&me->lock);
}

static void remember_again(struct entry block)
{
    remember(block.key, block.size, block.owner, block.device);
    if (block.uses == EXPORTED)
        export_block(block.key);
}

/*
 * The entry is removed before the driver frees the memory, because another thread may get the same address as soon as
 * it is free. Unknown memory has no bytes, so nothing is released.
 */
static struct entry forget(uint64_t key)
{
    struct process *me = this_process();
    if (!me || !me->blocks.count)
        return (struct entry){0};
    lock_threads(&me->lock);
    struct entry entry = table_take(&me->blocks, key);
    unlock_threads(&me->lock);
    return entry;
}

/* The last part of every allocation: on success the memory is recorded, otherwise the reserved bytes are released. */
static CUresult allocated(const struct figures *target, CUresult answer, uint64_t key, uint64_t bytes)
{
    if (answer == CUDA_SUCCESS)
        remember(key, bytes, current_context(), number_of(target));
    else
        give(target, bytes);
    return answer;
}

void export_block(CUdeviceptr address)
{
    struct process *me = this_process();
    if (!me)
        return;
    lock_threads(&me->lock);
    struct entry *entry = table_find(&me->blocks, address);
    if (entry)
        entry->uses = EXPORTED;
    unlock_threads(&me->lock);
}

/* The handle has no memory, but a process that opened it may: then that one counts, and this one does not. */
static void give_block(struct entry entry)
{
    const struct figures *target = numbered(entry.device);
    if (entry.uses == EXPORTED && target->own_slice)
        give_to_holders(target, entry.size);
    else
        give(target, entry.size);
}

static CUresult freed(CUresult answer, CUdeviceptr address, struct entry entry)
{
    if (answer == CUDA_SUCCESS && entry.key)
        give_block(entry);
    else if (answer == CUDA_SUCCESS && !forget_import(address))
        settle_pools(); /* it may have been a pool's */
    else if (answer != CUDA_SUCCESS && entry.key)
        remember_again(entry);
    return answer;
}

/* The body of a function that allocates the requested bytes. */
#define ALLOCATION(name, bytes, key, ...)                                     \
    {                                                                         \
        DISGUISE(name, __VA_ARGS__);                                          \
        uint64_t need = (bytes);                                              \
        if (!take(target, need))                                              \
            return CUDA_ERROR_OUT_OF_MEMORY;                                  \
        CUresult answer = noted(target, DRIVER(name)(__VA_ARGS__));           \
        return allocated(target, answer, answer ? 0 : (uint64_t)(key), need); \
    }

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t size) ALLOCATION(cuMemAlloc_v2, size, *address, address, size);
CUresult cuMemAlloc(CUdeviceptr_v1 *address, uint32_t size) ALLOCATION(cuMemAlloc, size, *address, address, size);
CUresult cuMemAllocManaged(CUdeviceptr *address, size_t size, unsigned flags)
    ALLOCATION(cuMemAllocManaged, size, *address, address, size, flags);

/*
 * The driver chooses the pitch: the bytes that it adds are reserved afterwards; if they do not fit, the allocation is
 * undone.
 */
#define PITCHED(name, free, address_type, size_type)                                                            \
    CUresult name(address_type *address, size_type *pitch, size_type width, size_type height, unsigned element) \
    {                                                                                                           \
        DISGUISE(name, address, pitch, width, height, element);                                                 \
        uint64_t need = times(width, height);                                                                   \
        if (!take(target, need))                                                                                \
            return CUDA_ERROR_OUT_OF_MEMORY;                                                                    \
        CUresult answer = noted(target, DRIVER(name)(address, pitch, width, height, element));                  \
        uint64_t all = answer ? need : times(*pitch, height);                                                   \
        if (all > need && !take(target, all - need)) {                                                          \
            DRIVER(free)(*address);                                                                             \
            answer = CUDA_ERROR_OUT_OF_MEMORY;                                                                  \
            all = need;                                                                                         \
        }                                                                                                       \
        return allocated(target, answer, answer ? 0 : *address, all);                                           \
    }

PITCHED(cuMemAllocPitch_v2, cuMemFree_v2, CUdeviceptr, size_t)
PITCHED(cuMemAllocPitch, cuMemFree, CUdeviceptr_v1, uint32_t)

/* Arrays whose memory is mapped later have none. */
static uint64_t bytes_of(const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned levels)
{
    return d->flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING) ? 0 : array_bytes(d, levels);
}

static uint64_t flat(size_t width, size_t height, uint32_t format, uint32_t channels)
{
    return array_bytes(&(CUDA_ARRAY3D_DESCRIPTOR){width, height, 0, format, channels, 0}, 1);
}

static uint64_t deep(const CUDA_ARRAY3D_DESCRIPTOR_v1 *d)
{
    return bytes_of(&(CUDA_ARRAY3D_DESCRIPTOR){d->width, d->height, d->depth, d->format, d->channels, d->flags}, 1);
}

/* The driver judges a description that is not there. */
CUresult cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *d)
    ALLOCATION(cuArrayCreate_v2, d ? flat(d->width, d->height, d->format, d->channels) : 0, (uintptr_t)*array, array,
               d);
CUresult cuArrayCreate(CUarray *array, const CUDA_ARRAY_DESCRIPTOR_v1 *d)
    ALLOCATION(cuArrayCreate, d ? flat(d->width, d->height, d->format, d->channels) : 0, (uintptr_t)*array, array, d);
CUresult cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *d)
    ALLOCATION(cuArray3DCreate_v2, d ? bytes_of(d, 1) : 0, (uintptr_t)*array, array, d);
CUresult cuArray3DCreate(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR_v1 *d)
    ALLOCATION(cuArray3DCreate, d ? deep(d) : 0, (uintptr_t)*array, array, d);
CUresult cuMipmappedArrayCreate(CUmipmappedArray *array, const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned levels)
    ALLOCATION(cuMipmappedArrayCreate, d ? bytes_of(d, levels) : 0, (uintptr_t)*array, array, d, levels);

#define FREEING(name, type)                           \
    CUresult name(type what)                          \
    {                                                 \
        DISGUISE(name, what);                         \
        uint64_t key = (uint64_t)(uintptr_t)what;     \
        struct entry entry = forget(key);             \
        return freed(DRIVER(name)(what), key, entry); \
    }

FREEING(cuMemFree_v2, CUdeviceptr)
FREEING(cuMemFree, CUdeviceptr_v1)
FREEING(cuArrayDestroy, CUarray)
FREEING(cuMipmappedArrayDestroy, CUmipmappedArray)

/* It frees memory of both kinds. */
#define FREEING_ASYNC(name)                                          \
    CUresult name(CUdeviceptr address, CUstream stream)              \
    {                                                                \
        DISGUISE(name, address, stream);                             \
        struct entry entry = forget(address);                        \
        return freed(DRIVER(name)(address, stream), address, entry); \
    }

FREEING_ASYNC(cuMemFreeAsync)
FREEING_ASYNC(cuMemFreeAsync_ptsz)
