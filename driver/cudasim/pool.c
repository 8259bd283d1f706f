/* Pools: they take memory by the chunk and keep what is freed until a synchronisation. */
#include "cudasim.h"

enum { MAX_POOLS = 64, CHUNK_MIB = 32, ALIGNMENT = 512 };

struct CUmemPoolHandle_st {
    int used;
    CUdevice device;
    uint64_t reserved, in_use, threshold;
};
static struct CUmemPoolHandle_st pools[MAX_POOLS]; /* the first ones are the devices' own */
static struct table pieces;                       /* owner: the pool */

CUmemoryPool default_pool(CUdevice device)
{
    CUmemoryPool pool = &pools[device];
    if (!pool->used)
        *pool = (struct CUmemPoolHandle_st){.used = 1, .device = device};
    return pool;
}

static int is_pool(CUmemoryPool pool) { return pool >= pools && pool < pools + MAX_POOLS && pool->used; }

static int reserve(CUmemoryPool pool, uint64_t size)
{
    if (size <= pool->reserved)
        return 1;
    uint64_t more = up(size, CHUNK_MIB * MIB) - pool->reserved;
    if (!charge(&devices[pool->device], more)) {
        more = up(size, PAGE_MIB * MIB) - pool->reserved;
        if (!charge(&devices[pool->device], more))
            return 0;
    }
    pool->reserved += more;
    return 1;
}

static void keep(CUmemoryPool pool, uint64_t size)
{
    uint64_t least = up(pool->in_use, PAGE_MIB * MIB);
    size = up(size, PAGE_MIB * MIB);
    size = size > least ? size : least;
    if (size >= pool->reserved)
        return;
    discharge(&devices[pool->device], pool->reserved - size);
    pool->reserved = size;
}

void release_unused(struct device *device)
{
    for (CUmemoryPool pool = pools; pool < pools + MAX_POOLS; pool++)
        if (pool->used && &devices[pool->device] == device)
            keep(pool, pool->threshold < pool->reserved ? pool->threshold : pool->reserved);
}

static CUresult take_from(CUmemoryPool pool, CUdeviceptr *address, uint64_t size)
{
    uint64_t room = up(size, ALIGNMENT);
    if (room < size || room > memory_of(&devices[pool->device]) || !reserve(pool, pool->in_use + room))
        return CUDA_ERROR_OUT_OF_MEMORY;
    void *at = sys_memory(room);
    struct entry *piece = table_add(&pieces, (uintptr_t)at);
    if (!piece)
        return CUDA_ERROR_OUT_OF_MEMORY;
    pool->in_use += room;
    piece->size = room;
    piece->owner = (uintptr_t)pool;
    *address = piece->key;
    return CUDA_SUCCESS;
}

int free_from_pool(struct visit *visit, uint64_t address)
{
    (void)visit;
    struct entry piece = table_take(&pieces, address);
    if (!piece.key)
        return 0;
    ((CUmemoryPool)(uintptr_t)piece.owner)->in_use -= piece.size;
    sys_unmap((void *)(uintptr_t)piece.key, piece.size);
    return 1;
}

/* While it captures, a stream only notes what the graph will need. */
static CUresult note(CUstream stream, CUdeviceptr *address, uint64_t size)
{
    stream->capture->bytes += size;
    *address = (uintptr_t)sys_memory(size);
    return *address ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUmemoryPool current_pool(struct device *device)
{
    return device->pool ? device->pool : default_pool((CUdevice)(device - devices));
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t size, CUmemoryPool pool, CUstream stream)
{
    CONTEXT_CALL(address && size && (!pool || is_pool(pool)));
    stream = real_stream(stream);
    if (stream && stream->capture)
        return note(stream, address, size);
    return take_from(pool ? pool : current_pool(visit.device), address, size);
}

CUresult cuMemAllocAsync(CUdeviceptr *address, size_t size, CUstream stream)
{
    return cuMemAllocFromPoolAsync(address, size, NULL, stream);
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream)
{
    stream = real_stream(stream);
    CONTEXT_CALL(1);
    if (stream && stream->capture)
        return CUDA_SUCCESS;
    return free_from_pool(&visit, address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemAllocAsync_ptsz(CUdeviceptr *address, size_t size, CUstream stream)
{
    return cuMemAllocAsync(address, size, stream);
}

CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *address, size_t size, CUmemoryPool pool, CUstream stream)
{
    return cuMemAllocFromPoolAsync(address, size, pool, stream);
}

CUresult cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream) { return cuMemFreeAsync(address, stream); }

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties)
{
    DRIVER_CALL(pool && properties && (unsigned)properties->location.id < (unsigned)device_count);
    for (CUmemoryPool p = pools + MAX_DEVICES; p < pools + MAX_POOLS; p++) {
        if (p->used)
            continue;
        *p = (struct CUmemPoolHandle_st){.used = 1, .device = properties->location.id};
        *pool = p;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
    DRIVER_CALL(is_pool(pool) && pool >= pools + MAX_DEVICES);
    keep(pool, 0);
    pool->used = pool->in_use > 0; /* else it goes with its last piece; the place is not used again */
    return CUDA_SUCCESS;
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t size)
{
    DRIVER_CALL(is_pool(pool));
    keep(pool, size);
    return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void *value)
{
    DRIVER_CALL(is_pool(pool) && value);
    uint64_t *number = value;
    switch (attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        *number = pool->threshold;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
        *number = pool->reserved;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        *number = pool->in_use;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, int attribute, void *value)
{
    DRIVER_CALL(is_pool(pool) && value);
    if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
        pool->threshold = *(uint64_t *)value;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device)
{
    DEVICE_CALL_OF(device, pool);
    *pool = default_pool(device);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device)
{
    DEVICE_CALL_OF(device, pool);
    *pool = current_pool(visit.device);
    return CUDA_SUCCESS;
}

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool)
{
    DEVICE_CALL_OF(device, is_pool(pool));
    visit.device->pool = pool;
    return CUDA_SUCCESS;
}
