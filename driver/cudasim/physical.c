/* Physical memory and its mapping to addresses. It is freed with its last handle or mapping. */
#include "cudasim.h"

static struct table handles;  /* owner: the device; uses: handles and mappings together */
static struct table held;     /* by handle; uses: how often it is to be released */
static struct table mappings; /* owner: the handle */
static struct table files;    /* by handle; owner: the open file, of what was exported or imported */
static uint64_t last_handle = 0x1000;

/* A new handle; NULL when there is no memory. */
static struct entry *new_handle(uint64_t size, uint64_t device)
{
    struct entry *entry = table_add(&handles, ++last_handle), *one = table_add(&held, last_handle);
    if (!entry || !one)
        return NULL;
    one->uses = 1;
    *entry = (struct entry){.key = last_handle, .size = size, .owner = device, .uses = 1};
    return entry;
}

/* The memory of a handle; NULL if the handle was released and only mappings remain. */
static struct entry *by_handle(uint64_t handle)
{
    return table_find(&held, handle) ? table_find(&handles, handle) : NULL;
}

CUresult cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *properties, int option)
{
    (void)option;
    DRIVER_CALL(bytes && properties);
    *bytes = PAGE_MIB * MIB;
    return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *properties,
                     uint64_t flags)
{
    DRIVER_CALL(handle && properties && !flags && size && size % (PAGE_MIB * MIB) == 0);
    int on_device = properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
    unsigned id = (unsigned)properties->location.id;
    if (on_device && id >= (unsigned)device_count)
        return CUDA_ERROR_INVALID_DEVICE;
    if (on_device && !charge(&devices[id], size))
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct entry *entry = new_handle(size, on_device ? id : MAX_DEVICES);
    if (!entry)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *handle = entry->key;
    return CUDA_SUCCESS;
}

static void drop(uint64_t handle)
{
    struct entry *entry = table_find(&handles, handle);
    if (!entry || --entry->uses > 0)
        return;
    struct entry file = table_take(&files, handle);
    if (file.key)
        sys_close((long)file.owner);
    else if (entry->owner < MAX_DEVICES)
        discharge(&devices[entry->owner], entry->size);
    table_take(&handles, handle);
}

CUresult cuMemExportToShareableHandle(void *file, CUmemGenericAllocationHandle handle, int type, uint64_t flags)
{
    DRIVER_CALL(file && type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR && !flags);
    struct entry *physical = by_handle(handle);
    if (!physical || physical->owner == MAX_DEVICES)
        return CUDA_ERROR_INVALID_VALUE;
    if (!table_find(&files, handle)) {
        long fd = share_memory(&devices[physical->owner], physical->size);
        if (fd < 0)
            return CUDA_ERROR_OUT_OF_MEMORY;
        table_add(&files, handle)->owner = (uint64_t)fd;
    }
    *(int *)file = (int)sys_duplicate((long)table_find(&files, handle)->owner);
    return *(int *)file >= 0 ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *file, int type)
{
    DRIVER_CALL(handle && type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    for (int i = 0; i < device_count; i++) {
        const struct sim_process *shared = shared_by(&devices[i], (long)file);
        if (!shared)
            continue;
        struct entry *physical = new_handle(shared->memory_mib * MIB, (uint64_t)i);
        struct entry *copy = physical ? table_add(&files, physical->key) : NULL;
        if (!copy)
            return CUDA_ERROR_OUT_OF_MEMORY;
        copy->owner = (uint64_t)sys_duplicate((long)file);
        *handle = physical->key;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    DRIVER_CALL(table_find(&held, handle));
    if (--table_find(&held, handle)->uses == 0)
        table_take(&held, handle);
    drop(handle);
    return CUDA_SUCCESS;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address)
{
    DRIVER_CALL(handle);
    struct entry *mapping = table_find(&mappings, (uintptr_t)address);
    if (!mapping)
        return CUDA_ERROR_INVALID_VALUE;
    *handle = mapping->owner;
    table_find(&handles, *handle)->uses++;
    table_add(&held, *handle)->uses++;
    return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr *address, size_t size, size_t alignment, CUdeviceptr wish, uint64_t flags)
{
    (void)alignment, (void)wish, (void)flags;
    DRIVER_CALL(address && size);
    *address = (uintptr_t)sys_memory(size);
    return *address ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t size)
{
    DRIVER_CALL(address);
    sys_unmap((void *)(uintptr_t)address, size);
    return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr address, size_t size, size_t offset, CUmemGenericAllocationHandle handle, uint64_t flags)
{
    DRIVER_CALL(address && size && !offset && !flags);
    struct entry *physical = by_handle(handle);
    if (!physical || size > physical->size || table_find(&mappings, address))
        return CUDA_ERROR_INVALID_VALUE;
    physical->uses++;
    struct entry *mapping = table_add(&mappings, address);
    mapping->size = size;
    mapping->owner = handle;
    return CUDA_SUCCESS;
}

static uint64_t mapped_in(CUdeviceptr address, size_t size)
{
    FOR_ENTRIES(mapping, &mappings)
        if (mapping->key >= address && mapping->key < address + size)
            return mapping->key;
    return 0;
}

CUresult cuMemUnmap(CUdeviceptr address, size_t size)
{
    DRIVER_CALL(mapped_in(address, size));
    for (uint64_t at = mapped_in(address, size); at; at = mapped_in(address, size))
        drop(table_take(&mappings, at).owner);
    return CUDA_SUCCESS;
}

CUresult cuMemSetAccess(CUdeviceptr address, size_t size, const CUmemAccessDesc *access, size_t count)
{
    DRIVER_CALL(address && size && access && count);
    return CUDA_SUCCESS;
}

/* Tiles of an array: by array and offset, one each. */
static CUresult map_tile(const CUarrayMapInfo *tile)
{
    uint64_t key = (uintptr_t)tile->resource + tile->subresource.level[2] + 1;
    if (tile->operation == CU_MEM_OPERATION_TYPE_UNMAP) {
        drop(table_take(&mappings, key).owner);
        return CUDA_SUCCESS;
    }
    struct entry *physical = by_handle(tile->handle);
    if (!physical)
        return CUDA_ERROR_INVALID_VALUE;
    physical->uses++;
    table_add(&mappings, key)->owner = tile->handle;
    return CUDA_SUCCESS;
}

CUresult cuMemMapArrayAsync(CUarrayMapInfo *list, unsigned count, CUstream stream)
{
    (void)stream;
    DRIVER_CALL(list && count);
    CUresult answer = CUDA_SUCCESS;
    for (unsigned i = 0; i < count && answer == CUDA_SUCCESS; i++)
        answer = map_tile(&list[i]);
    return answer;
}

CUresult cuMemMapArrayAsync_ptsz(CUarrayMapInfo *list, unsigned count, CUstream stream)
{
    return cuMemMapArrayAsync(list, count, stream);
}

/* A multicast object is a handle without its own memory; it holds the memory that is bound to it. */
CUresult cuMulticastCreate(CUmemGenericAllocationHandle *object, const CUmulticastObjectProp *properties)
{
    DRIVER_CALL(object && properties && properties->devices);
    struct entry *entry = new_handle(0, MAX_DEVICES);
    if (!entry)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *object = entry->key;
    return CUDA_SUCCESS;
}

CUresult cuMulticastAddDevice(CUmemGenericAllocationHandle object, CUdevice device)
{
    DEVICE_CALL_OF(device, table_find(&handles, object));
    return CUDA_SUCCESS;
}

CUresult cuMulticastBindMem(CUmemGenericAllocationHandle object, size_t offset, CUmemGenericAllocationHandle handle,
                            size_t from, size_t size, uint64_t flags)
{
    DRIVER_CALL(table_find(&handles, object) && !offset && !from && size && !flags);
    struct entry *physical = table_find(&handles, handle);
    if (!physical)
        return CUDA_ERROR_INVALID_VALUE;
    physical->uses++;
    return CUDA_SUCCESS;
}

CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle object, size_t offset, CUdeviceptr address, size_t size,
                             uint64_t flags)
{
    const struct entry *mapping = table_find(&mappings, address);
    return mapping ? cuMulticastBindMem(object, offset, mapping->owner, 0, size, flags) : CUDA_ERROR_INVALID_VALUE;
}
