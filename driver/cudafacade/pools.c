/*
 * Stream-ordered allocations use pools, which take memory in chunks and keep it for a while. So the facade counts the
 * size of pools, as the driver reports it, and not the allocations. A chunk may exceed the cap by the part that no
 * allocation uses; of that part, only as much counts as there is room.
 */
#include "facade.h"

static uint64_t attribute(CUmemoryPool pool, int which)
{
    uint64_t bytes = 0;
    return DRIVER(cuMemPoolGetAttribute)(pool, which, &bytes) == CUDA_SUCCESS ? bytes : 0;
}

static uint64_t settled(const struct figures *target, uint64_t counted, uint64_t now)
{
    if (now >= counted)
        return counted + (now > counted ? take_what_fits(target, now - counted) : 0);
    give(target, counted - now);
    return now;
}

static CUmemoryPool pool_of(const struct entry *entry) { return (CUmemoryPool)(uintptr_t)entry->key; }

/* Other processes may still use the memory of an exported pool. */
static void settle(struct entry *pool)
{
    const struct figures *target = numbered(pool->device);
    if (pool->owner == NOT_OF_THE_GPU)
        return;
    uint64_t now = attribute(pool_of(pool), CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
    if (pool->owner != EXPORTED || now >= pool->size) {
        pool->size = settled(target, pool->size, now);
        return;
    }
    give_to_holders(target, pool->size - now);
    if (target->own_slice)
        pool->size = now;
}

static struct process *with_pools(void)
{
    struct process *me = this_process();
    return me && __atomic_load_n(&me->pools.count, __ATOMIC_RELAXED) ? me : NULL;
}

void settle_pools(void)
{
    struct process *me = with_pools();
    if (!me)
        return;
    lock_threads(&me->pool_lock);
    FOR_ENTRIES(pool, &me->pools)
        settle(pool);
    unlock_threads(&me->pool_lock);
}

/* Unused pool memory of a device is released before an allocation is refused, as the driver does on a full GPU. */
static void trim(const struct figures *target, struct process *me)
{
    FOR_ENTRIES(pool, &me->pools) {
        if (pool->owner == NOT_OF_THE_GPU || numbered(pool->device) != target)
            continue;
        DRIVER(cuMemPoolTrimTo)(pool_of(pool), 0);
        settle(pool);
    }
}

void trim_pools(const struct figures *target)
{
    struct process *me = with_pools();
    if (!me)
        return;
    lock_threads(&me->pool_lock);
    trim(target, me);
    unlock_threads(&me->pool_lock);
}

/* The least that the pool must take to serve an allocation of this size. */
static uint64_t growth(CUmemoryPool pool, uint64_t size)
{
    uint64_t reserved = attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
    uint64_t used = attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
    uint64_t kept = reserved > used ? reserved - used : 0;
    return size > kept ? size - kept : 0;
}

/* The device's default or current one; any other pool was noted when it was made. */
static int is_pool_of(CUmemoryPool pool, const struct figures *target)
{
    CUdevice device;
    CUmemoryPool its;
    return find_device(target, &device) &&
           ((DRIVER(cuDeviceGetDefaultMemPool)(&its, device) == CUDA_SUCCESS && its == pool) ||
            (DRIVER(cuDeviceGetMemPool)(&its, device) == CUDA_SUCCESS && its == pool));
}

static struct entry *entry_of(struct process *me, CUmemoryPool pool)
{
    struct entry *entry = table_find(&me->pools, (uintptr_t)pool);
    if (entry || !(entry = table_add(&me->pools, (uintptr_t)pool)) || figures_count() == 1)
        return entry;
    entry->device = number_of(figures_shown());
    FOR_DEVICES(target)
        if (is_pool_of(pool, target))
            entry->device = number_of(target);
    return entry;
}

/* Room for so much, counted to the pool. */
static int make_room(struct process *me, CUmemoryPool pool, uint64_t size)
{
    struct entry *entry = entry_of(me, pool);
    if (!entry)
        return 0;
    const struct figures *target = numbered(entry->device);
    settle(entry);
    uint64_t need = entry->owner == NOT_OF_THE_GPU ? 0 : growth(pool, size);
    if (!take_if_there_is_room(target, need)) {
        trim(target, me);
        need = growth(pool, size);
        if (!take_without_trimming(target, need))
            return 0;
    }
    entry->size += need;
    return 1;
}

/* A stream that captures takes nothing yet: that is the graph's to do. */
#define FROM_POOL(name, capturing, the_pool, ...)                               \
    {                                                                           \
        DISGUISE(name, __VA_ARGS__);                                            \
        target = figures_of_stream(target, stream);                             \
        struct process *me = this_process();                                    \
        int graphs = capturing(stream);                                         \
        if (graphs && !would_fit(target, size))                                 \
            return CUDA_ERROR_OUT_OF_MEMORY;                                    \
        CUmemoryPool from = graphs ? NULL : the_pool;                           \
        if (!me || !from)                                                       \
            return DRIVER(name)(__VA_ARGS__);                                   \
        lock_threads(&me->pool_lock);                                           \
        CUresult answer = CUDA_ERROR_OUT_OF_MEMORY;                             \
        if (make_room(me, from, size)) {                                        \
            struct entry *entry = table_find(&me->pools, (uintptr_t)from);      \
            answer = noted(numbered(entry->device), DRIVER(name)(__VA_ARGS__)); \
            settle(entry);                                                      \
        }                                                                       \
        unlock_threads(&me->pool_lock);                                         \
        return answer;                                                          \
    }

/* A stream allocates on its device, which need not be the thread's. 0, 1 and 2 are default streams of the thread's. */
static const struct figures *figures_of_stream(const struct figures *target, CUstream stream)
{
    CUcontext context, popped;
    if (figures_count() == 1 || (uintptr_t)stream <= 2 || DRIVER(cuStreamGetCtx)(stream, &context) != CUDA_SUCCESS ||
        DRIVER(cuCtxPushCurrent_v2)(context) != CUDA_SUCCESS)
        return target;
    target = figures_shown();
    DRIVER(cuCtxPopCurrent_v2)(&popped);
    return target;
}

/* The legacy default stream, 0 or 1, never captures. */
int captures(CUstream stream)
{
    int status = CU_STREAM_CAPTURE_STATUS_NONE;
    return (uintptr_t)stream > 1 && DRIVER(cuStreamIsCapturing)(stream, &status) == CUDA_SUCCESS &&
           status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

/* Here 0 is the thread's own stream. */
int captures_ptsz(CUstream stream)
{
    int status = CU_STREAM_CAPTURE_STATUS_NONE;
    return (uintptr_t)stream != 1 && DRIVER(cuStreamIsCapturing_ptsz)(stream, &status) == CUDA_SUCCESS &&
           status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

static CUmemoryPool current_pool(const struct figures *target)
{
    CUdevice device;
    CUmemoryPool pool = NULL;
    if (find_device(target, &device))
        DRIVER(cuDeviceGetMemPool)(&pool, device);
    return pool;
}

CUresult cuMemAllocAsync(CUdeviceptr *address, size_t size, CUstream stream)
    FROM_POOL(cuMemAllocAsync, captures, current_pool(target), address, size, stream);
CUresult cuMemAllocAsync_ptsz(CUdeviceptr *address, size_t size, CUstream stream)
    FROM_POOL(cuMemAllocAsync_ptsz, captures_ptsz, current_pool(target), address, size, stream);
CUresult cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t size, CUmemoryPool pool, CUstream stream)
    FROM_POOL(cuMemAllocFromPoolAsync, captures, pool, address, size, pool, stream);
CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *address, size_t size, CUmemoryPool pool, CUstream stream)
    FROM_POOL(cuMemAllocFromPoolAsync_ptsz, captures_ptsz, pool, address, size, pool, stream);

/* After these a pool may hold less. */
#define SETTLING(name, ...)                          \
    {                                                \
        DISGUISE(name, __VA_ARGS__);                 \
        CUresult answer = DRIVER(name)(__VA_ARGS__); \
        settle_pools();                              \
        return answer;                               \
    }

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep) SETTLING(cuMemPoolTrimTo, pool, keep);
CUresult cuCtxSynchronize(void) SETTLING(cuCtxSynchronize);
CUresult cuEventSynchronize(CUevent event) SETTLING(cuEventSynchronize, event);
CUresult cuStreamSynchronize(CUstream stream) SETTLING(cuStreamSynchronize, stream);
CUresult cuStreamSynchronize_ptsz(CUstream stream) SETTLING(cuStreamSynchronize_ptsz, stream);

/* Of a pool of the host's memory nothing is counted. */
CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties)
{
    DISGUISE(cuMemPoolCreate, pool, properties);
    CUresult answer = DRIVER(cuMemPoolCreate)(pool, properties);
    struct process *me = this_process();
    if (answer != CUDA_SUCCESS || !me)
        return answer;
    lock_threads(&me->pool_lock);
    struct entry *entry = table_add(&me->pools, (uintptr_t)*pool);
    if (entry && properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        entry->owner = NOT_OF_THE_GPU;
    else if (entry)
        entry->device = number_of(figures_of(properties->location.id));
    unlock_threads(&me->pool_lock);
    return answer;
}

CUresult cuMemPoolExportToShareableHandle(void *file, CUmemoryPool pool, int type, uint64_t flags)
{
    DISGUISE(cuMemPoolExportToShareableHandle, file, pool, type, flags);
    CUresult answer = DRIVER(cuMemPoolExportToShareableHandle)(file, pool, type, flags);
    struct process *me = this_process();
    if (answer != CUDA_SUCCESS || !me)
        return answer;
    lock_threads(&me->pool_lock);
    struct entry *entry = entry_of(me, pool);
    if (entry && entry->owner != NOT_OF_THE_GPU)
        entry->owner = EXPORTED;
    unlock_threads(&me->pool_lock);
    return answer;
}

/* The memory still in use cannot be queried any more, and stays counted until it is freed. */
CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
    const struct figures *target = figures_shown();
    struct process *me = target ? this_process() : NULL;
    if (!me)
        return DRIVER(cuMemPoolDestroy)(pool);
    lock_threads(&me->pool_lock);
    uint64_t in_use = attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
    CUresult answer = DRIVER(cuMemPoolDestroy)(pool);
    if (answer == CUDA_SUCCESS) {
        struct entry entry = table_take(&me->pools, (uintptr_t)pool);
        if (in_use || entry.owner == EXPORTED)
            give_to_holders(numbered(entry.device), entry.size);
        else
            give(numbered(entry.device), entry.size);
    }
    unlock_threads(&me->pool_lock);
    return answer;
}

/* Graphs of a device share one pool, which has no handle. */
static uint64_t graphs_of(const struct figures *target, int which, uint64_t otherwise)
{
    CUdevice device;
    uint64_t bytes = 0;
    int known =
        find_device(target, &device) && DRIVER(cuDeviceGetGraphMemAttribute)(device, which, &bytes) == CUDA_SUCCESS;
    return known ? bytes : otherwise;
}

static struct process *with_graphs(void)
{
    struct process *me = this_process();
    return me && __atomic_load_n(&me->has_graphs, __ATOMIC_RELAXED) ? me : NULL;
}

void settle_graphs(void)
{
    struct process *me = with_graphs();
    if (!me)
        return;
    FOR_DEVICES(target) {
        uint64_t *counted = &account_of(target)->graphs;
        uint64_t now = graphs_of(target, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, *counted);
        if (now == *counted)
            continue;
        lock_threads(&me->pool_lock);
        *counted = settled(target, *counted, now);
        unlock_threads(&me->pool_lock);
    }
}

/* On any device, by what they use, not by the chunks in which they take it. */
int graphs_are_beyond(void)
{
    if (!with_graphs())
        return 0;
    FOR_DEVICES(target)
        if (graphs_of(target, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, 0) >
            __atomic_load_n(&account_of(target)->graphs, __ATOMIC_RELAXED))
            return 1;
    return 0;
}
