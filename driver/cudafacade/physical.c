/* Physical memory: it is used until the last handle and the last mapping of it are gone. */
#include "facade.h"

/* Without memory to remember in, it stays counted until the process ends. */
static void remember(CUmemGenericAllocationHandle handle, uint64_t bytes)
{
    struct process *me = this_process();
    lock_threads(&me->lock);
    struct entry *entry = table_add(&me->handles, handle);
    if (entry) {
        entry->size = bytes;
        entry->uses = 1;
    }
    unlock_threads(&me->lock);
}

/* One use more of what is ours. */
static void use(CUmemGenericAllocationHandle handle)
{
    struct process *me = this_process();
    if (!me)
        return;
    lock_threads(&me->lock);
    struct entry *entry = table_find(&me->handles, handle);
    if (entry)
        entry->uses++;
    unlock_threads(&me->lock);
}

/* One less: with the last one goes the entry, and its size is told. */
static uint64_t drop(struct process *me, CUmemGenericAllocationHandle handle)
{
    struct entry *entry = table_find(&me->handles, handle);
    return entry && --entry->uses == 0 ? table_take(&me->handles, handle).size : 0;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *properties,
                     uint64_t flags)
{
    DISGUISE(cuMemCreate, handle, size, properties, flags);
    if (!properties || properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return DRIVER(cuMemCreate)(handle, size, properties, flags);
    if (!take(target, size))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult answer = noted(DRIVER(cuMemCreate)(handle, size, properties, flags));
    if (answer == CUDA_SUCCESS)
        remember(*handle, size);
    else
        give(size);
    return answer;
}

/* Dropped before the driver does: it may give the handle out anew at once. */
CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    const struct figures *target = figures_shown();
    struct process *me = target ? this_process() : NULL;
    if (!me)
        return DRIVER(cuMemRelease)(handle);
    lock_threads(&me->lock);
    uint64_t bytes = drop(me, handle);
    unlock_threads(&me->lock);
    CUresult answer = DRIVER(cuMemRelease)(handle);
    if (answer == CUDA_SUCCESS)
        give(bytes);
    else if (bytes)
        remember(handle, bytes);
    return answer;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address)
{
    DISGUISE(cuMemRetainAllocationHandle, handle, address);
    CUresult answer = DRIVER(cuMemRetainAllocationHandle)(handle, address);
    if (answer == CUDA_SUCCESS)
        use(*handle);
    return answer;
}

static void note_mapping(struct process *me, uint64_t key, CUmemGenericAllocationHandle handle, size_t size)
{
    lock_threads(&me->lock);
    struct entry *ours = table_find(&me->handles, handle);
    struct entry *mapping = ours ? table_add(&me->mappings, key) : NULL;
    if (mapping) {
        mapping->size = size;
        mapping->owner = handle;
        ours->uses++;
    }
    unlock_threads(&me->lock);
}

CUresult cuMemMap(CUdeviceptr address, size_t size, size_t offset, CUmemGenericAllocationHandle handle, uint64_t flags)
{
    DISGUISE(cuMemMap, address, size, offset, handle, flags);
    CUresult answer = DRIVER(cuMemMap)(address, size, offset, handle, flags);
    struct process *me = this_process();
    if (answer == CUDA_SUCCESS && me)
        note_mapping(me, address, handle, size);
    return answer;
}

static uint64_t first_in(const struct process *me, CUdeviceptr address, size_t size)
{
    if (table_find(&me->mappings, address))
        return address;
    FOR_ENTRIES(mapping, &me->mappings)
        if (mapping->key - address < size)
            return mapping->key;
    return 0;
}

/* Mappings follow one another as a rule; what is left then is looked for. */
static uint64_t forget_mappings(struct process *me, CUdeviceptr address, size_t size)
{
    uint64_t bytes = 0, end = address + size;
    for (uint64_t at = address; at < end;) {
        struct entry mapping = table_take(&me->mappings, first_in(me, at, end - at));
        if (!mapping.key)
            break;
        bytes += drop(me, mapping.owner);
        at = mapping.key == at ? at + (mapping.size ? mapping.size : 1) : at;
    }
    return bytes;
}

CUresult cuMemUnmap(CUdeviceptr address, size_t size)
{
    DISGUISE(cuMemUnmap, address, size);
    struct process *me = this_process();
    CUresult answer = DRIVER(cuMemUnmap)(address, size);
    if (answer != CUDA_SUCCESS || !me || !me->mappings.count)
        return answer;
    lock_threads(&me->lock);
    uint64_t bytes = forget_mappings(me, address, size);
    unlock_threads(&me->lock);
    give(bytes);
    return answer;
}

/*
 * A tile of an array is known by array and place. Hashed into one number: it is
 * odd, and no address of a mapping is.
 */
static uint64_t tile_key(const CUarrayMapInfo *tile)
{
    uint64_t key = (uintptr_t)tile->resource ^ (uint64_t)tile->subresource_type << 60;
    const uint32_t *place = tile->subresource.level;
    int words = tile->subresource_type == 0 ? 5 : 4; /* level, layer, offsets; or of a mip tail layer and offset */
    for (int i = 0; i < words; i++)
        key = (key ^ place[i]) * 0x9E3779B97F4A7C15ULL;
    return key | 1;
}

static uint64_t note_tile(struct process *me, const CUarrayMapInfo *tile)
{
    uint64_t key = tile_key(tile);
    lock_threads(&me->lock);
    uint64_t bytes = drop(me, table_take(&me->mappings, key).owner); /* mapped over, or unmapped */
    unlock_threads(&me->lock);
    if (tile->operation == CU_MEM_OPERATION_TYPE_MAP)
        note_mapping(me, key, tile->handle, 0);
    return bytes;
}

#define MAPPING_TILES(name)                                               \
    CUresult name(CUarrayMapInfo *list, unsigned count, CUstream stream)  \
    {                                                                     \
        DISGUISE(name, list, count, stream);                              \
        CUresult answer = DRIVER(name)(list, count, stream);              \
        struct process *me = this_process();                              \
        for (unsigned i = 0; answer == CUDA_SUCCESS && me && i < count; i++) \
            give(note_tile(me, &list[i]));                                \
        return answer;                                                    \
    }

MAPPING_TILES(cuMemMapArrayAsync)
MAPPING_TILES(cuMemMapArrayAsync_ptsz)
