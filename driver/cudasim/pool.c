/* Pools: they take memory in chunks and keep freed memory until a synchronisation. */
#include "cudasim.h"

enum { MAX_POOLS = 64, CHUNK_MIB = 32, ALIGNMENT = 512 };

struct CUmemPoolHandle_st {
    int used;
    CUdevice device;
    uint64_t reserved, in_use, threshold;
    long file; /* that holds its memory, once it was exported, or is imported */
    int is_imported;
    int on_host; /* its memory is the host's */
};
static struct CUmemPoolHandle_st pools[MAX_POOLS]; /* the first ones are the devices' own */
struct table pieces;

CUmemoryPool default_pool(CUdevice device)
{
    CUmemoryPool pool = &pools[device];
    if (!pool->used)
        *pool = (struct CUmemPoolHandle_st){.used = 1, .device = device};
    return pool;
}

static int is_pool(CUmemoryPool pool) { return pool >= pools && pool < pools + MAX_POOLS && pool->used; }

/* The memory of a pool that was exported is its holders'. */
static int resize(CUmemoryPool pool, uint64_t size)
{
    struct device *device = &devices[pool->device];
    if (pool->file && !resize_shared(device, shared_by(device, pool->file), size))
        return 0;
    int charged = !pool->file && !pool->on_host;
    if (charged && size > pool->reserved && !charge(device, size - pool->reserved))
        return 0;
    if (charged && size < pool->reserved)
        discharge(device, pool->reserved - size);
    pool->reserved = size;
    return 1;
}

static int reserve(CUmemoryPool pool, uint64_t size)
{
    if (size <= pool->reserved)
        return 1;
    return resize(pool, up(size, CHUNK_MIB * MIB)) || resize(pool, up(size, PAGE_MIB * MIB));
}

static void keep(CUmemoryPool pool, uint64_t size)
{
    uint64_t least = up(pool->in_use, PAGE_MIB * MIB);
    size = up(size, PAGE_MIB * MIB);
    size = size > least ? size : least;
    if (size < pool->reserved)
        resize(pool, size);
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
    if (pool->is_imported)
        return CUDA_ERROR_INVALID_VALUE;
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
    CUmemoryPool pool = (CUmemoryPool)(uintptr_t)piece.owner;
    pool->in_use -= piece.size;
    if (!pool->used && !pool->in_use)
        sys_close(pool->file); /* it was destroyed before */
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
    if (!pool)
        pool = current_pool(stream ? &devices[stream->context->device] : visit.device);
    return take_from(pool, address, size);
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
    return release(&visit, address); /* also what cuMemAlloc gave */
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

static CUmemoryPool new_pool(CUdevice device)
{
    for (CUmemoryPool p = pools + MAX_DEVICES; p < pools + MAX_POOLS; p++) {
        if (p->used || p->in_use)
            continue;
        *p = (struct CUmemPoolHandle_st){.used = 1, .device = device};
        return p;
    }
    return NULL;
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties)
{
    int on_host = properties && properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE;
    DRIVER_CALL(pool && properties && (on_host || (unsigned)properties->location.id < (unsigned)device_count));
    *pool = new_pool(on_host ? 0 : properties->location.id);
    if (!*pool)
        return CUDA_ERROR_OUT_OF_MEMORY;
    (*pool)->on_host = on_host;
    return CUDA_SUCCESS;
}

CUresult cuMemPoolExportToShareableHandle(void *file, CUmemoryPool pool, int type, uint64_t flags)
{
    DRIVER_CALL(file && type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR && !flags && is_pool(pool) &&
                pool >= pools + MAX_DEVICES && !pool->is_imported && !pool->on_host);
    if (!pool->file) {
        long fd = share_memory(&devices[pool->device], pool->reserved);
        if (fd < 0)
            return CUDA_ERROR_OUT_OF_MEMORY;
        pool->file = fd;
    }
    *(int *)file = (int)sys_duplicate(pool->file);
    return *(int *)file >= 0 ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *pool, void *file, int type, uint64_t flags)
{
    DRIVER_CALL(pool && type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR && !flags);
    for (int i = 0; i < device_count; i++) {
        if (!shared_by(&devices[i], (long)file))
            continue;
        *pool = new_pool(i);
        if (!*pool)
            return CUDA_ERROR_OUT_OF_MEMORY;
        (*pool)->is_imported = 1;
        (*pool)->file = sys_duplicate((long)file);
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *data, CUdeviceptr address)
{
    DRIVER_CALL(data);
    const struct entry *piece = table_find(&pieces, address);
    if (!piece || !((CUmemoryPool)(uintptr_t)piece->owner)->file)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(data, &piece->size, sizeof piece->size);
    return CUDA_SUCCESS;
}

CUresult cuMemPoolImportPointer(CUdeviceptr *address, CUmemoryPool pool, CUmemPoolPtrExportData *data)
{
    DRIVER_CALL(address && data && is_pool(pool) && pool->is_imported);
    uint64_t size;
    memcpy(&size, data, sizeof size);
    struct entry *piece = table_add(&pieces, (uintptr_t)sys_memory(size));
    if (!piece)
        return CUDA_ERROR_OUT_OF_MEMORY;
    piece->size = size;
    piece->owner = (uintptr_t)pool;
    pool->in_use += size;
    *address = piece->key;
    return CUDA_SUCCESS;
}

CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
    DRIVER_CALL(is_pool(pool) && pool >= pools + MAX_DEVICES);
    if (!pool->file)
        keep(pool, 0);
    else if (!pool->in_use)
        sys_close(pool->file);                    /* another process that has the file keeps its memory */
    pool->used = !pool->file && pool->in_use > 0; /* otherwise freed with its last piece; the place is not used again */
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
