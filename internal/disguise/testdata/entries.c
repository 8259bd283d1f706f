/*
 * Tries every function that allocates: below the cap, at it, one byte (or the
 * least that it can do) above, freed, and again. Prints the name of each that
 * did as it should, and what went wrong with the others.
 */
#include "cuda.h"

static CUdeviceptr address;
static CUdeviceptr_v1 low_address;
static CUarray array;
static CUmipmappedArray mipmap;
static CUmemGenericAllocationHandle handle;
static CUmemoryPool pool;
static CUstream stream;
static CUgraph graph;
static CUgraphExec exec;

static CUresult linear(size_t size) { return CU(cuMemAlloc_v2)(&address, size); }
static CUresult linear_free(void) { return CU(cuMemFree_v2)(address); }
static CUresult low(size_t size) { return CU(cuMemAlloc)(&low_address, (uint32_t)size); }
static CUresult low_free(void) { return CU(cuMemFree)(low_address); }
static CUresult managed(size_t size) { return CU(cuMemAllocManaged)(&address, size, 1); }

/* Rows of a byte over the pitch's unit: the driver makes them longer. */
static CUresult pitched(size_t size)
{
    size_t pitch;
    return CU(cuMemAllocPitch_v2)(&address, &pitch, 513, size / 1024, 4);
}

static CUresult pitched_low(size_t size)
{
    uint32_t pitch;
    return CU(cuMemAllocPitch)(&low_address, &pitch, 513, (uint32_t)size / 1024, 4);
}

enum { BYTES = 0x01, FLOATS = 0x20 };

static CUresult flat(size_t size)
{
    CUDA_ARRAY_DESCRIPTOR d = {1 << 12, size >> 14, FLOATS, 1};
    return CU(cuArrayCreate_v2)(&array, &d);
}

static CUresult flat_low(size_t size)
{
    CUDA_ARRAY_DESCRIPTOR_v1 d = {1 << 12, (uint32_t)(size >> 14), FLOATS, 1};
    return CU(cuArrayCreate)(&array, &d);
}

static CUresult deep(size_t size)
{
    CUDA_ARRAY3D_DESCRIPTOR d = {size >> 8, 16, 16, BYTES, 1, 0};
    return CU(cuArray3DCreate_v2)(&array, &d);
}

static CUresult deep_low(size_t size)
{
    CUDA_ARRAY3D_DESCRIPTOR_v1 d = {(uint32_t)(size >> 8), 16, 16, BYTES, 1, 0};
    return CU(cuArray3DCreate)(&array, &d);
}
static CUresult array_free(void) { return CU(cuArrayDestroy)(array); }

/* Lines of two levels: the second has half of the first. */
static CUresult levels(size_t size)
{
    CUDA_ARRAY3D_DESCRIPTOR d = {size / 3 * 2, 0, 0, BYTES, 1, 0};
    return CU(cuMipmappedArrayCreate)(&mipmap, &d, 2);
}
static CUresult levels_free(void) { return CU(cuMipmappedArrayDestroy)(mipmap); }

static const CUmemAllocationProp on_gpu = {.type = 1, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};

/* Mapped twice, and the handles released first: it is used until the last mapping is removed. */
static CUresult physical(size_t size)
{
    CUmemGenericAllocationHandle again;
    CUresult answer = CU(cuMemCreate)(&handle, size, &on_gpu, 0);
    if (answer != CUDA_SUCCESS)
        return answer;
    MUST(CU(cuMemAddressReserve)(&address, 2 * size, 0, 0, 0));
    MUST(CU(cuMemMap)(address, size, 0, handle, 0));
    MUST(CU(cuMemMap)(address + size, size, 0, handle, 0));
    MUST(CU(cuMemRetainAllocationHandle)(&again, (void *)address));
    MUST(CU(cuMemRelease)(handle));
    MUST(CU(cuMemRelease)(again));
    MUST(CU(cuMemUnmap)(address, size));
    address += size;
    return answer;
}

static CUresult physical_free(void) { return CU(cuMemUnmap)(address, 1); }

/* Mapped into an array, which itself holds nothing. */
static CUarrayMapInfo tile;

static CUresult tiled(size_t size)
{
    CUDA_ARRAY3D_DESCRIPTOR d = {size, 0, 0, BYTES, 1, CUDA_ARRAY3D_SPARSE};
    CUresult answer = CU(cuMemCreate)(&handle, size, &on_gpu, 0);
    if (answer != CUDA_SUCCESS)
        return answer;
    MUST(CU(cuArray3DCreate_v2)(&array, &d));
    tile = (CUarrayMapInfo){.resource = array, .operation = CU_MEM_OPERATION_TYPE_MAP, .handle = handle};
    MUST(CU(cuMemMapArrayAsync)(&tile, 1, NULL));
    return CU(cuMemRelease)(handle);
}

static CUresult tiled_free(void)
{
    tile.operation = CU_MEM_OPERATION_TYPE_UNMAP;
    tile.handle = 0;
    MUST(CU(cuMemMapArrayAsync_ptsz)(&tile, 1, NULL));
    return CU(cuArrayDestroy)(array);
}

static void properties(CUmemPoolProps *p)
{
    *p = (CUmemPoolProps){.type = 1, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
}

static CUresult ordered(size_t size) { return CU(cuMemAllocAsync)(&address, size, NULL); }
static CUresult ordered_ptsz(size_t size) { return CU(cuMemAllocAsync_ptsz)(&address, size, NULL); }

static CUresult ordered_free(void)
{
    MUST(CU(cuMemFreeAsync)(address, NULL));
    return CU(cuStreamSynchronize)(NULL);
}

static CUresult ordered_free_ptsz(void)
{
    MUST(CU(cuMemFreeAsync_ptsz)(address, NULL));
    return CU(cuStreamSynchronize_ptsz)(NULL);
}

static CUresult from_pool(size_t size)
{
    CUmemPoolProps p;
    properties(&p);
    MUST(CU(cuMemPoolCreate)(&pool, &p));
    return CU(cuMemAllocFromPoolAsync)(&address, size, pool, NULL);
}

static CUresult from_pool_ptsz(size_t size)
{
    CUmemPoolProps p;
    properties(&p);
    MUST(CU(cuMemPoolCreate)(&pool, &p));
    return CU(cuMemAllocFromPoolAsync_ptsz)(&address, size, pool, stream);
}

/* Freed, but kept by the pool's threshold: it goes with the pool. */
static CUresult pool_free(void)
{
    uint64_t all = ~0ULL;
    MUST(CU(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all));
    MUST(CU(cuMemFreeAsync)(address, stream));
    MUST(CU(cuCtxSynchronize)());
    return CU(cuMemPoolDestroy)(pool);
}

static CUresult launched(CUresult added)
{
    if (added != CUDA_SUCCESS) {
        MUST(CU(cuGraphDestroy)(graph));
        return added;
    }
    MUST(CU(cuGraphInstantiateWithFlags)(&exec, graph, 0));
    MUST(CU(cuGraphLaunch)(exec, stream));
    return CU(cuGraphDestroy)(graph);
}

static CUresult node(size_t size)
{
    CUgraphNode added;
    CUDA_MEM_ALLOC_NODE_PARAMS p = {.size = size};
    MUST(CU(cuGraphCreate)(&graph, 0));
    properties(&p.pool);
    return launched(CU(cuGraphAddMemAllocNode)(&added, graph, NULL, 0, &p));
}

static CUgraphNodeParams params(size_t size)
{
    CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC};
    p.of.alloc.size = size;
    properties(&p.of.alloc.pool);
    return p;
}

static CUresult any_node(size_t size)
{
    CUgraphNode added;
    CUgraphNodeParams p = params(size);
    MUST(CU(cuGraphCreate)(&graph, 0));
    return launched(CU(cuGraphAddNode)(&added, graph, NULL, 0, &p));
}

static CUresult any_node_v2(size_t size)
{
    CUgraphNode added;
    CUgraphNodeParams p = params(size);
    MUST(CU(cuGraphCreate)(&graph, 0));
    return launched(CU(cuGraphAddNode_v2)(&added, graph, NULL, NULL, 0, &p));
}

static CUresult captured(size_t size)
{
    MUST(CU(cuStreamBeginCapture_v2)(stream, 0));
    CUresult answer = CU(cuMemAllocAsync)(&address, size, stream);
    MUST(CU(cuStreamEndCapture)(stream, &graph));
    return launched(answer);
}

static CUresult graph_free(void)
{
    MUST(CU(cuGraphExecDestroy)(exec));
    return CU(cuDeviceGraphMemTrim)(0);
}

static CUresult none_free(void) { return pool ? CU(cuMemPoolDestroy)(pool) : CUDA_SUCCESS; }

static const struct entry_point {
    const char *name;
    CUresult (*allocate)(size_t size);
    CUresult (*free)(void);
    size_t unit; /* of sizes */
    CUresult (*after_refusal)(void);
} entry_points[] = {
    {"cuMemAlloc", low, low_free, 1, NULL},
    {"cuMemAlloc_v2", linear, linear_free, 1, NULL},
    {"cuMemAllocPitch", pitched_low, low_free, 1024, NULL},
    {"cuMemAllocPitch_v2", pitched, linear_free, 1024, NULL},
    {"cuMemAllocManaged", managed, linear_free, 1, NULL},
    {"cuArrayCreate", flat_low, array_free, 1 << 14, NULL},
    {"cuArrayCreate_v2", flat, array_free, 1 << 14, NULL},
    {"cuArray3DCreate", deep_low, array_free, 1 << 8, NULL},
    {"cuArray3DCreate_v2", deep, array_free, 1 << 8, NULL},
    {"cuMipmappedArrayCreate", levels, levels_free, 3, NULL},
    {"cuMemCreate", physical, physical_free, 2 * MIB, NULL},
    {"tiles", tiled, tiled_free, 2 * MIB, NULL},
    {"cuMemAllocAsync", ordered, ordered_free, 1, NULL},
    {"cuMemAllocAsync_ptsz", ordered_ptsz, ordered_free_ptsz, 1, NULL},
    {"cuMemAllocFromPoolAsync", from_pool, pool_free, 1, none_free},
    {"cuMemAllocFromPoolAsync_ptsz", from_pool_ptsz, pool_free, 1, none_free},
    {"cuGraphAddMemAllocNode", node, graph_free, 1, NULL},
    {"cuGraphAddNode", any_node, graph_free, 1, NULL},
    {"cuGraphAddNode_v2", any_node_v2, graph_free, 1, NULL},
    {"capture", captured, graph_free, 1, NULL},
};

static const char *complaint;
static int complaints;

static void expect(const struct entry_point *e, CUresult got, CUresult want, const char *when)
{
    if (got == want)
        return;
    complaint = e->name;
    complaints++;
    printf("%s: %s it answers %d, not %d\n", e->name, when, got, want);
}

/* Six of them divide by three, and all units. */
enum { ROOM_MIB = 768 };

/*
 * All but some room is taken. At the cap not one byte more is available by
 * another way, and all is there again in the end.
 */
static void try(const struct entry_point *e)
{
    size_t room = ROOM_MIB * MIB;
    size_t free = free_bytes();
    CUdeviceptr filler, more;
    complaint = NULL;
    MUST(CU(cuMemAlloc_v2)(&filler, free - room));
    expect(e, e->allocate(room - e->unit), CUDA_SUCCESS, "below the cap");
    expect(e, e->free(), CUDA_SUCCESS, "when it frees");
    expect(e, e->allocate(room), CUDA_SUCCESS, "at the cap");
    expect(e, CU(cuMemAlloc_v2)(&more, 1), CUDA_ERROR_OUT_OF_MEMORY, "when all is taken");
    expect(e, e->free(), CUDA_SUCCESS, "when it frees");
    expect(e, e->allocate(room + e->unit), CUDA_ERROR_OUT_OF_MEMORY, "above the cap");
    if (e->after_refusal)
        e->after_refusal();
    expect(e, e->allocate(room), CUDA_SUCCESS, "again at the cap");
    expect(e, e->free(), CUDA_SUCCESS, "when it frees");
    MUST(CU(cuMemFree_v2)(filler));
    if (free_bytes() != free)
        expect(e, (int)((free - free_bytes()) / 1024), 0, "in the end, in KiB that are lost,");
    if (!complaint)
        printf("%s\n", e->name);
}

int main(int count, char **arguments)
{
    (void)count;
    start(arguments[1]);
    MUST(CU(cuStreamCreate)(&stream, 0));
    for (size_t i = 0; i < sizeof entry_points / sizeof *entry_points; i++)
        try(&entry_points[i]);
    return complaints > 0;
}
