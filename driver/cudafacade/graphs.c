/*
 * Graphs hold memory from their first launch, and what they free they keep until
 * it is trimmed. A node that could never fit is refused when it is added, and a
 * launch when the graphs together do not; what they hold is counted after each
 * call that may change it.
 */
#include "facade.h"

static int fits(const CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
    return would_fit(figures_of(params->pool.location.id), params->size);
}

CUresult cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                                CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
    DISGUISE(cuGraphAddMemAllocNode, node, graph, after, count, params);
    if (params && !fits(params))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return DRIVER(cuGraphAddMemAllocNode)(node, graph, after, count, params);
}

static int node_fits(const CUgraphNodeParams *params)
{
    return !params || params->type != CU_GRAPH_NODE_TYPE_MEM_ALLOC || fits(&params->of.alloc);
}

CUresult cuGraphAddNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                        CUgraphNodeParams *params)
{
    DISGUISE(cuGraphAddNode, node, graph, after, count, params);
    return node_fits(params) ? DRIVER(cuGraphAddNode)(node, graph, after, count, params) : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, const void *edges, size_t count,
                           CUgraphNodeParams *params)
{
    DISGUISE(cuGraphAddNode_v2, node, graph, after, edges, count, params);
    return node_fits(params) ? DRIVER(cuGraphAddNode_v2)(node, graph, after, edges, count, params)
                             : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Releases memory of graphs that no launch uses. After that any graph may lack its memory, so each is checked again. */
static void trim_graphs(struct process *me)
{
    CUdevice device;
    FOR_DEVICES(target)
        if (find_device(target, &device))
            DRIVER(cuDeviceGraphMemTrim)(device);
    __atomic_fetch_add(&me->graphs_turn, 1, __ATOMIC_RELAXED);
    settle_graphs();
}

/* One that is made with its memory, and too much of it, gets it at its launch, if at all. */
static CUresult instantiated(CUresult answer)
{
    struct process *me = this_process();
    settle_graphs();
    if (answer == CUDA_SUCCESS && me && graphs_are_beyond())
        trim_graphs(me);
    return answer;
}

#define INSTANTIATING(name, ...)                        \
    {                                                   \
        DISGUISE(name, __VA_ARGS__);                    \
        return instantiated(DRIVER(name)(__VA_ARGS__)); \
    }

CUresult cuGraphInstantiate(CUgraphExec *exec, CUgraph graph, CUgraphNode *node, char *log, size_t size)
    INSTANTIATING(cuGraphInstantiate, exec, graph, node, log, size);
CUresult cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *node, char *log, size_t size)
    INSTANTIATING(cuGraphInstantiate_v2, exec, graph, node, log, size);
CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, uint64_t flags)
    INSTANTIATING(cuGraphInstantiateWithFlags, exec, graph, flags);
CUresult cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph, void *params)
    INSTANTIATING(cuGraphInstantiateWithParams, exec, graph, params);
CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec *exec, CUgraph graph, void *params)
    INSTANTIATING(cuGraphInstantiateWithParams_ptsz, exec, graph, params);

/* Launched since the last trimming: it has its memory. */
static int is_known(struct process *me, CUgraphExec exec)
{
    lock_threads(&me->lock);
    const struct entry *entry = table_find(&me->graphs_known, (uintptr_t)exec);
    int known = entry && entry->uses == __atomic_load_n(&me->graphs_turn, __ATOMIC_RELAXED);
    unlock_threads(&me->lock);
    return known;
}

static void know(struct process *me, CUgraphExec exec)
{
    lock_threads(&me->lock);
    struct entry *entry = table_add(&me->graphs_known, (uintptr_t)exec);
    if (entry)
        entry->uses = __atomic_load_n(&me->graphs_turn, __ATOMIC_RELAXED);
    unlock_threads(&me->lock);
}

typedef CUresult (*on_stream)(CUstream stream);
typedef CUresult (*on_graph)(CUgraphExec exec, CUstream stream);

/*
 * Allocates a graph's memory before its launch. If that exceeds the cap, the function frees it and the unused memory
 * of other graphs, and tries once more.
 */
static int fits_with_others(struct process *me, CUgraphExec exec, CUstream stream, on_graph upload,
                            on_stream synchronize)
{
    for (int chances = 2; chances > 0; chances--) {
        if (upload(exec, stream) != CUDA_SUCCESS)
            return 1; /* the driver reports the error at the launch */
        settle_graphs();
        if (!graphs_are_beyond()) {
            know(me, exec);
            return 1;
        }
        synchronize(stream); /* pending work uses memory */
        trim_graphs(me);
    }
    return 0;
}

/* Graphs that share memory need more when they run at the same time: then all are checked again. */
static CUresult launched(struct process *me, CUresult answer)
{
    settle_graphs();
    if (me && graphs_are_beyond())
        __atomic_fetch_add(&me->graphs_turn, 1, __ATOMIC_RELAXED);
    return answer;
}

#define LAUNCHING(name, upload, capturing, synchronize)                                                     \
    CUresult name(CUgraphExec exec, CUstream stream)                                                        \
    {                                                                                                       \
        DISGUISE(name, exec, stream);                                                                       \
        struct process *me = this_process();                                                                \
        int new = me &&__atomic_load_n(&me->has_graphs, __ATOMIC_RELAXED) && exec && !is_known(me, exec) && \
                  !capturing(stream);                                                                       \
        if (new && !fits_with_others(me, exec, stream, DRIVER(upload), DRIVER(synchronize)))                \
            return noted(target, CUDA_ERROR_OUT_OF_MEMORY);                                                 \
        return launched(me, DRIVER(name)(exec, stream));                                                    \
    }

LAUNCHING(cuGraphLaunch, cuGraphUpload, captures, cuStreamSynchronize)
LAUNCHING(cuGraphLaunch_ptsz, cuGraphUpload_ptsz, captures_ptsz, cuStreamSynchronize_ptsz)
LAUNCHING(cuGraphUpload, cuGraphUpload, captures, cuStreamSynchronize)
LAUNCHING(cuGraphUpload_ptsz, cuGraphUpload_ptsz, captures_ptsz, cuStreamSynchronize_ptsz)

CUresult cuGraphExecDestroy(CUgraphExec exec)
{
    DISGUISE(cuGraphExecDestroy, exec);
    struct process *me = this_process();
    if (me) {
        lock_threads(&me->lock);
        table_take(&me->graphs_known, (uintptr_t)exec);
        unlock_threads(&me->lock);
    }
    CUresult answer = DRIVER(cuGraphExecDestroy)(exec);
    settle_graphs();
    return answer;
}

CUresult cuDeviceGraphMemTrim(CUdevice device)
{
    DISGUISE(cuDeviceGraphMemTrim, device);
    struct process *me = this_process();
    CUresult answer = DRIVER(cuDeviceGraphMemTrim)(device);
    if (me)
        __atomic_fetch_add(&me->graphs_turn, 1, __ATOMIC_RELAXED);
    settle_graphs();
    return answer;
}
