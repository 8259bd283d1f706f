/* Physical memory is in use until its last handle is released and its last mapping removed. */
#include "facade.h"

/* Without memory to remember in, it stays counted until the process ends. */
static void remember(const struct figures *target, CUmemGenericAllocationHandle handle, uint64_t bytes)
{
    struct process *me = this_process();
    lock_threads(&me->lock);
    struct entry *entry = table_add(&me->handles, handle);
    if (entry) {
        entry->size = bytes;
        entry->uses = 1;
        entry->device = number_of(target);
    }
    unlock_threads(&me->lock);
}

/* Counts one more use of this process's memory. */
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

/* Bytes of each device that this process no longer uses: they are free, or other processes may use them. */
struct released {
    uint64_t free[MOST_DEVICES], held[MOST_DEVICES];
};

/* Counts one use less; the last one removes the entry. */
static void drop(struct process *me, CUmemGenericAllocationHandle handle, struct released *released)
{
    struct entry *entry = table_find(&me->handles, handle);
    if (!entry || --entry->uses > 0)
        return;
    struct entry last = table_take(&me->handles, handle);
    (last.owner & EXPORTED ? released->held : released->free)[last.device] += last.size;
}

static void give_released(const struct released *released)
{
    FOR_DEVICES(target) {
        give(target, released->free[number_of(target)]);
        give_to_holders(target, released->held[number_of(target)]);
    }
}

/* It may outlive its last use here from now on. */
static void export_handle(struct process *me, CUmemGenericAllocationHandle handle)
{
    struct entry *entry = table_find(&me->handles, handle);
    if (entry)
        entry->owner |= EXPORTED;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *properties,
                     uint64_t flags)
{
    DISGUISE(cuMemCreate, handle, size, properties, flags);
    if (!properties || properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return DRIVER(cuMemCreate)(handle, size, properties, flags);
    target = figures_of(properties->location.id);
    if (!take(target, size))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult answer = noted(target, DRIVER(cuMemCreate)(handle, size, properties, flags));
    if (answer == CUDA_SUCCESS)
        remember(target, *handle, size);
    else
        give(target, size);
    return answer;
}

/* Restores a use after the driver refused to release it: the handle had been released before, and others remain. */
static void pick_up(struct process *me, struct entry was)
{
    lock_threads(&me->lock);
    struct entry *entry = table_add(&me->handles, was.key);
    if (entry) {
        entry->size = was.size;
        entry->owner = was.owner;
        entry->device = was.device;
        entry->uses++;
    }
    unlock_threads(&me->lock);
}

/* Counts the use off before the driver does, because the driver may reuse the handle at once. */
CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    const struct figures *target = figures_shown();
    struct process *me = target ? this_process() : NULL;
    if (!me)
        return DRIVER(cuMemRelease)(handle);
    struct released released = {0};
    lock_threads(&me->lock);
    const struct entry *entry = table_find(&me->handles, handle);
    struct entry was = entry ? *entry : (struct entry){0};
    drop(me, handle, &released);
    unlock_threads(&me->lock);
    CUresult answer = DRIVER(cuMemRelease)(handle);
    if (answer == CUDA_SUCCESS)
        give_released(&released);
    else
        pick_up(me, was);
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

/*
 * An import counts for the exporting process or in the overhead. If the driver's figure does not cover it, it counts
 * again for the process that maps it: only a mapping shows its size, and unmapped memory cannot be used.
 */
static int take_import(const struct figures *target, struct process *me, CUmemGenericAllocationHandle handle,
                       size_t size)
{
    if (target->own_slice)
        return 1;
    lock_threads(&me->lock);
    struct entry *entry = table_find(&me->handles, handle);
    int first = entry && entry->owner & IMPORTED && !entry->size;
    if (first) {
        entry->size = size;
        entry->device = number_of(target);
    }
    unlock_threads(&me->lock);
    if (!first || take(target, size))
        return 1;
    lock_threads(&me->lock);
    entry = table_find(&me->handles, handle);
    if (entry)
        entry->size = 0;
    unlock_threads(&me->lock);
    return 0;
}

CUresult cuMemMap(CUdeviceptr address, size_t size, size_t offset, CUmemGenericAllocationHandle handle, uint64_t flags)
{
    DISGUISE(cuMemMap, address, size, offset, handle, flags);
    struct process *me = this_process();
    if (me && !take_import(target, me, handle, size))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult answer = DRIVER(cuMemMap)(address, size, offset, handle, flags);
    if (answer == CUDA_SUCCESS && me)
        note_mapping(me, address, handle, size);
    return answer;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *file, int type)
{
    DISGUISE(cuMemImportFromShareableHandle, handle, file, type);
    CUresult answer = DRIVER(cuMemImportFromShareableHandle)(handle, file, type);
    struct process *me = this_process();
    if (answer != CUDA_SUCCESS || !me)
        return answer;
    lock_threads(&me->lock);
    struct entry *entry = table_add(&me->handles, *handle);
    if (entry) {
        entry->owner |= entry->uses ? 0 : IMPORTED;
        entry->uses++;
    }
    unlock_threads(&me->lock);
    return answer;
}

void export_mapped(CUdeviceptr address, size_t size)
{
    struct process *me = this_process();
    if (!me)
        return;
    lock_threads(&me->lock);
    FOR_ENTRIES(mapping, &me->mappings)
        if (mapping->key < address + size && address < mapping->key + mapping->size)
            export_handle(me, mapping->owner);
    unlock_threads(&me->lock);
}

/* The whole of a function that gives others a hold on a handle's memory. */
#define EXPORTING(name, ...)                         \
    {                                                \
        DISGUISE(name, __VA_ARGS__);                 \
        CUresult answer = DRIVER(name)(__VA_ARGS__); \
        struct process *me = this_process();         \
        if (answer != CUDA_SUCCESS || !me)           \
            return answer;                           \
        lock_threads(&me->lock);                     \
        export_handle(me, handle);                   \
        unlock_threads(&me->lock);                   \
        return answer;                               \
    }

CUresult cuMemExportToShareableHandle(void *file, CUmemGenericAllocationHandle handle, int type, uint64_t flags)
    EXPORTING(cuMemExportToShareableHandle, file, handle, type, flags);
CUresult cuMulticastBindMem(CUmemGenericAllocationHandle object, size_t offset, CUmemGenericAllocationHandle handle,
                            size_t from, size_t size, uint64_t flags)
    EXPORTING(cuMulticastBindMem, object, offset, handle, from, size, flags);

CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle object, size_t offset, CUdeviceptr address, size_t size,
                             uint64_t flags)
{
    DISGUISE(cuMulticastBindAddr, object, offset, address, size, flags);
    CUresult answer = DRIVER(cuMulticastBindAddr)(object, offset, address, size, flags);
    if (answer == CUDA_SUCCESS)
        export_mapped(address, size);
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

/* Mappings usually follow one another; the remaining ones are searched for. */
static struct released forget_mappings(struct process *me, CUdeviceptr address, size_t size)
{
    struct released released = {0};
    uint64_t end = address + size;
    for (uint64_t at = address; at < end;) {
        struct entry mapping = table_take(&me->mappings, first_in(me, at, end - at));
        if (!mapping.key)
            break;
        drop(me, mapping.owner, &released);
        at = mapping.key == at ? at + (mapping.size ? mapping.size : 1) : at;
    }
    return released;
}

CUresult cuMemUnmap(CUdeviceptr address, size_t size)
{
    DISGUISE(cuMemUnmap, address, size);
    struct process *me = this_process();
    CUresult answer = DRIVER(cuMemUnmap)(address, size);
    if (answer != CUDA_SUCCESS || !me || !me->mappings.count)
        return answer;
    lock_threads(&me->lock);
    struct released released = forget_mappings(me, address, size);
    unlock_threads(&me->lock);
    give_released(&released);
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

static struct released note_tile(struct process *me, const CUarrayMapInfo *tile)
{
    uint64_t key = tile_key(tile);
    struct released released = {0};
    lock_threads(&me->lock);
    drop(me, table_take(&me->mappings, key).owner, &released); /* mapped over, or unmapped */
    unlock_threads(&me->lock);
    if (tile->operation == CU_MEM_OPERATION_TYPE_MAP)
        note_mapping(me, key, tile->handle, 0);
    return released;
}

#define MAPPING_TILES(name)                                                    \
    CUresult name(CUarrayMapInfo *list, unsigned count, CUstream stream)       \
    {                                                                          \
        DISGUISE(name, list, count, stream);                                   \
        CUresult answer = DRIVER(name)(list, count, stream);                   \
        struct process *me = this_process();                                   \
        for (unsigned i = 0; answer == CUDA_SUCCESS && me && i < count; i++) { \
            struct released released = note_tile(me, &list[i]);                \
            give_released(&released);                                          \
        }                                                                      \
        return answer;                                                         \
    }

MAPPING_TILES(cuMemMapArrayAsync)
MAPPING_TILES(cuMemMapArrayAsync_ptsz)
