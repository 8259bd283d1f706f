/* Memory of a context. It is memory of the host, backed page by page when touched. */
#include "cudasim.h"

struct table blocks;

uint64_t up(uint64_t size, uint64_t unit) { return (size + unit - 1) / unit * unit; }

enum { ALIGNMENT = 512 };

/* Records the memory at an address and charges for it; if there is no room, it releases the address. */
CUresult allocate(struct visit *visit, void *at, uint64_t size)
{
    if (!at)
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct entry *entry = NULL;
    if (charge(visit->device, up(size, ALIGNMENT)))
        entry = table_add(&blocks, (uintptr_t)at);
    if (!entry) {
        sys_unmap(at, size ? size : 1);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    entry->size = size;
    entry->owner = (uintptr_t)visit->context;
    return CUDA_SUCCESS;
}

/* A block that was exported has the open file that holds it, and 1, in uses. */
static void let_go(struct device *device, struct entry block)
{
    if (block.uses)
        sys_close((long)block.uses - 1);
    else
        discharge(device, up(block.size, ALIGNMENT));
    sys_unmap((void *)(uintptr_t)block.key, block.size ? block.size : 1);
}

static struct device *device_of(uint64_t owner) { return &devices[((CUcontext)(uintptr_t)owner)->device]; }

CUresult release(struct visit *visit, uint64_t key)
{
    if (free_from_pool(visit, key))
        return CUDA_SUCCESS;
    struct entry block = table_take(&blocks, key);
    if (!block.key)
        return CUDA_ERROR_INVALID_VALUE;
    let_go(device_of(block.owner), block);
    return CUDA_SUCCESS;
}

static uint64_t any_of(const void *owner)
{
    FOR_ENTRIES(block, &blocks)
        if (block->owner == (uintptr_t)owner)
            return block->key;
    return 0;
}

void release_all_of(struct device *device, const void *owner)
{
    for (uint64_t key = any_of(owner); key; key = any_of(owner)) {
        let_go(device, table_take(&blocks, key));
    }
}

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t size)
{
    CONTEXT_CALL(address && size);
    if (size > memory_of(visit.device))
        return CUDA_ERROR_OUT_OF_MEMORY;
    void *at = sys_memory(size);
    *address = (uintptr_t)at;
    return allocate(&visit, at, size);
}

CUresult cuMemAllocManaged(CUdeviceptr *address, size_t size, unsigned flags)
{
    return flags ? cuMemAlloc_v2(address, size) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemAlloc(CUdeviceptr_v1 *address, uint32_t size)
{
    CONTEXT_CALL(address && size);
    void *at = sys_memory_below_4g(size);
    *address = (CUdeviceptr_v1)(uintptr_t)at;
    return allocate(&visit, at, size);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *address, size_t *pitch, size_t width, size_t height, unsigned element)
{
    if (!pitch || !width || !height || (element != 4 && element != 8 && element != 16))
        return CUDA_ERROR_INVALID_VALUE;
    size_t size, row = up(width, ALIGNMENT);
    if (row < width || __builtin_mul_overflow(row, height, &size))
        return CUDA_ERROR_OUT_OF_MEMORY;
    *pitch = row;
    return cuMemAlloc_v2(address, size);
}

CUresult cuMemAllocPitch(CUdeviceptr_v1 *address, uint32_t *pitch, uint32_t width, uint32_t height, unsigned element)
{
    uint64_t row = up(width, ALIGNMENT);
    if (!pitch || !width || !height || (element != 4 && element != 8 && element != 16))
        return CUDA_ERROR_INVALID_VALUE;
    if (row * height > UINT32_MAX)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *pitch = (uint32_t)row;
    return cuMemAlloc(address, (uint32_t)(row * height));
}

CUresult cuMemFree_v2(CUdeviceptr address)
{
    CONTEXT_CALL(1);
    return address ? release(&visit, address) : CUDA_SUCCESS;
}

CUresult cuMemFree(CUdeviceptr_v1 address) { return cuMemFree_v2(address); }

CUresult cuMemGetInfo_v2(size_t *free, size_t *total)
{
    CONTEXT_CALL(1);
    uint64_t all = memory_of(visit.device), used = used_of(visit.device);
    if (free)
        *free = used < all ? all - used : 0;
    if (total)
        *total = all;
    return CUDA_SUCCESS;
}

static uint32_t in_32_bits(uint64_t n) { return n > UINT32_MAX ? UINT32_MAX : (uint32_t)n; }

CUresult cuMemGetInfo(uint32_t *free, uint32_t *total)
{
    size_t a, b;
    CUresult answer = cuMemGetInfo_v2(&a, &b);
    if (answer == CUDA_SUCCESS && free)
        *free = in_32_bits(a);
    if (answer == CUDA_SUCCESS && total)
        *total = in_32_bits(b);
    return answer;
}

static const struct entry *lies_in(const struct table *table, CUdeviceptr address)
{
    FOR_ENTRIES(block, table)
        if (address >= block->key && address < block->key + block->size)
            return block;
    return NULL;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr address)
{
    CONTEXT_CALL(1);
    const struct entry *block = lies_in(&blocks, address);
    if (!block)
        block = lies_in(&pieces, address);
    if (!block)
        return CUDA_ERROR_INVALID_VALUE;
    if (base)
        *base = block->key;
    if (size)
        *size = block->size;
    return CUDA_SUCCESS;
}

/* A handle of interprocess communication: it holds no memory, but a process that opens it does. */
struct ipc_handle {
    uint32_t place, pid;
    uint64_t size;
};
_Static_assert(sizeof(struct ipc_handle) <= sizeof(CUipcMemHandle), "it has room there");

CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr address)
{
    CONTEXT_CALL(handle);
    struct entry *block = table_find(&blocks, address);
    if (!block)
        return CUDA_ERROR_INVALID_VALUE;
    struct device *device = device_of(block->owner);
    if (!block->uses) {
        long fd = share_memory(device, up(block->size, ALIGNMENT));
        if (fd < 0)
            return CUDA_ERROR_OUT_OF_MEMORY;
        block->uses = (uint64_t)fd + 1;
    }
    const struct sim_process *shared = shared_by(device, (long)block->uses - 1);
    if (!shared)
        return CUDA_ERROR_OPERATING_SYSTEM;
    struct ipc_handle sent = {(uint32_t)(shared - gpu_of(device)->processes), shared->pid, block->size};
    memcpy(handle, &sent, sizeof sent);
    return CUDA_SUCCESS;
}

static struct table opened; /* by process and place; owner: the address here; uses: how often it was opened */

/* Opened again, a block is where it was. */
static int open_again(CUdeviceptr *address, uint64_t whose)
{
    struct entry *entry = table_find(&opened, whose);
    if (!entry || !table_find(&blocks, entry->owner)) /* or it went with its context */
        return 0;
    entry->uses++;
    *address = entry->owner;
    return 1;
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *address, CUipcMemHandle handle, unsigned flags)
{
    (void)flags;
    CONTEXT_CALL(address);
    struct ipc_handle sent;
    memcpy(&sent, &handle, sizeof sent);
    uint64_t whose = (uint64_t)sent.pid << 32 | sent.place;
    if (open_again(address, whose))
        return CUDA_SUCCESS;
    long fd = sent.pid == sys_pid() ? -1 : join_holders(visit.device, sent.place, sent.pid);
    if (fd < 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    struct entry *block = table_add(&blocks, (uintptr_t)sys_memory(sent.size)), *known = table_add(&opened, whose);
    if (!block || !known)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *block = (struct entry){block->key, sent.size, (uintptr_t)visit.context, (uint64_t)fd + 1, 0};
    *known = (struct entry){whose, 0, block->key, 1, 0};
    *address = block->key;
    return CUDA_SUCCESS;
}

CUresult cuIpcOpenMemHandle(CUdeviceptr *address, CUipcMemHandle handle, unsigned flags)
{
    return cuIpcOpenMemHandle_v2(address, handle, flags);
}

CUresult cuIpcCloseMemHandle(CUdeviceptr address)
{
    CONTEXT_CALL(1);
    FOR_ENTRIES(entry, &opened)
        if (entry->owner == address) {
            if (--entry->uses > 0)
                return CUDA_SUCCESS;
            table_take(&opened, entry->key);
            break;
        }
    return release(&visit, address);
}

/* Arrays: the handle of an array is its address. Arrays that are mapped later hold no memory themselves. */
static CUresult make_array(void **array, const CUDA_ARRAY3D_DESCRIPTOR *description, unsigned levels)
{
    CONTEXT_CALL(array && description && description->width && levels);
    uint64_t size = array_bytes(description, levels);
    if (description->flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING))
        size = 0;
    if (size > memory_of(visit.device))
        return CUDA_ERROR_OUT_OF_MEMORY;
    *array = sys_memory(size ? size : 1);
    return allocate(&visit, *array, size);
}

static CUresult destroy_array(const void *array)
{
    CONTEXT_CALL(1);
    return release(&visit, (uintptr_t)array) == CUDA_SUCCESS ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *description)
{
    return make_array((void **)array, description, 1);
}

CUresult cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *d)
{
    if (!d)
        return CUDA_ERROR_INVALID_VALUE;
    return cuArray3DCreate_v2(array, &(CUDA_ARRAY3D_DESCRIPTOR){d->width, d->height, 0, d->format, d->channels, 0});
}

CUresult cuArrayCreate(CUarray *array, const CUDA_ARRAY_DESCRIPTOR_v1 *d)
{
    if (!d)
        return CUDA_ERROR_INVALID_VALUE;
    return cuArray3DCreate_v2(array, &(CUDA_ARRAY3D_DESCRIPTOR){d->width, d->height, 0, d->format, d->channels, 0});
}

CUresult cuArray3DCreate(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR_v1 *d)
{
    if (!d)
        return CUDA_ERROR_INVALID_VALUE;
    return cuArray3DCreate_v2(
        array, &(CUDA_ARRAY3D_DESCRIPTOR){d->width, d->height, d->depth, d->format, d->channels, d->flags});
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray *array, const CUDA_ARRAY3D_DESCRIPTOR *description, unsigned levels)
{
    return make_array((void **)array, description, levels);
}

CUresult cuArrayDestroy(CUarray array) { return destroy_array(array); }
CUresult cuMipmappedArrayDestroy(CUmipmappedArray array) { return destroy_array(array); }

/* The processor computes what a program launches here. */
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t size)
{
    memcpy((void *)(uintptr_t)to, from, size);
    return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t size)
{
    memcpy(to, (const void *)(uintptr_t)from, size);
    return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t size)
{
    return cuMemcpyHtoD_v2(to, (const void *)(uintptr_t)from, size);
}

CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char byte, size_t count)
{
    memset((void *)(uintptr_t)to, byte, count);
    return CUDA_SUCCESS;
}
