/*
 * Linear memory from other processes. If the driver's figure covers only this session, it includes memory that only
 * other processes have. Otherwise an import counts again, for the importing process.
 */
#include "facade.h"

static CUdeviceptr base_of(CUdeviceptr address, size_t *size)
{
    CUdeviceptr base = 0;
    return DRIVER(cuMemGetAddressRange_v2)(&base, size, address) == CUDA_SUCCESS ? base : 0;
}

CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr address)
{
    DISGUISE(cuIpcGetMemHandle, handle, address);
    size_t size;
    CUresult answer = DRIVER(cuIpcGetMemHandle)(handle, address);
    if (answer == CUDA_SUCCESS)
        export_block(base_of(address, &size));
    return answer;
}

CUresult cuMemGetHandleForAddressRange(void *file, CUdeviceptr address, size_t size, int type, uint64_t flags)
{
    DISGUISE(cuMemGetHandleForAddressRange, file, address, size, type, flags);
    CUresult answer = DRIVER(cuMemGetHandleForAddressRange)(file, address, size, type, flags);
    size_t whole;
    if (answer != CUDA_SUCCESS)
        return answer;
    export_block(base_of(address, &whole));
    export_mapped(address, size);
    return answer;
}

/* Opened again, it is where it was, and counts only once. */
static int take_import(const struct figures *target, CUdeviceptr address)
{
    struct process *me = target->own_slice ? NULL : this_process();
    size_t size = 0;
    if (!me)
        return 1;
    base_of(address, &size);
    lock_threads(&me->lock);
    struct entry *entry = table_find(&me->imports, address);
    if (entry)
        entry->uses++;
    unlock_threads(&me->lock);
    if (entry)
        return 1;
    if (!take(target, size))
        return 0;
    lock_threads(&me->lock);
    entry = table_add(&me->imports, address);
    if (entry) {
        entry->size += size;
        entry->device = number_of(target);
        entry->uses++;
    }
    unlock_threads(&me->lock);
    return 1;
}

int forget_import(CUdeviceptr address)
{
    struct process *me = this_process();
    if (!me || !me->imports.count)
        return 0;
    struct entry last = {0};
    lock_threads(&me->lock);
    struct entry *entry = table_find(&me->imports, address);
    int known = entry != NULL;
    if (known && --entry->uses == 0)
        last = table_take(&me->imports, address);
    unlock_threads(&me->lock);
    give(numbered(last.device), last.size);
    return known;
}

static CUresult opened(const struct figures *target, CUresult answer, CUdeviceptr *address)
{
    if (answer != CUDA_SUCCESS || take_import(target, *address))
        return answer;
    DRIVER(cuIpcCloseMemHandle)(*address);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

#define OPENING(name)                                                          \
    CUresult name(CUdeviceptr *address, CUipcMemHandle handle, unsigned flags) \
    {                                                                          \
        DISGUISE(name, address, handle, flags);                                \
        return opened(target, DRIVER(name)(address, handle, flags), address);  \
    }

OPENING(cuIpcOpenMemHandle)
OPENING(cuIpcOpenMemHandle_v2)

CUresult cuIpcCloseMemHandle(CUdeviceptr address)
{
    DISGUISE(cuIpcCloseMemHandle, address);
    CUresult answer = DRIVER(cuIpcCloseMemHandle)(address);
    if (answer == CUDA_SUCCESS)
        forget_import(address);
    return answer;
}

CUresult cuMemPoolImportPointer(CUdeviceptr *address, CUmemoryPool pool, CUmemPoolPtrExportData *data)
{
    DISGUISE(cuMemPoolImportPointer, address, pool, data);
    CUresult answer = DRIVER(cuMemPoolImportPointer)(address, pool, data);
    if (answer != CUDA_SUCCESS || take_import(target, *address))
        return answer;
    DRIVER(cuMemFree_v2)(*address);
    return CUDA_ERROR_OUT_OF_MEMORY;
}
