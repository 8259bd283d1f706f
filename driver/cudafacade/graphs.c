/*
 * Graphs hold memory from their first launch. A node that could never fit is
 * refused when it is added, and a launch when the graphs together do not; what
 * they hold is counted after each call that may change it.
 */
#include "facade.h"

CUresult cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                                CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
    DISGUISE(cuGraphAddMemAllocNode, node, graph, after, count, params);
    if (params && !would_fit(target, params->size))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return DRIVER(cuGraphAddMemAllocNode)(node, graph, after, count, params);
}

static int fits(const struct figures *target, const CUgraphNodeParams *params)
{
    return !params || params->type != CU_GRAPH_NODE_TYPE_MEM_ALLOC || would_fit(target, params->of.alloc.size);
}

CUresult cuGraphAddNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                        CUgraphNodeParams *params)
{
    DISGUISE(cuGraphAddNode, node, graph, after, count, params);
    return fits(target, params) ? DRIVER(cuGraphAddNode)(node, graph, after, count, params) : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, const void *edges, size_t count,
                           CUgraphNodeParams *params)
{
    DISGUISE(cuGraphAddNode_v2, node, graph, after, edges, count, params);
    return fits(target, params) ? DRIVER(cuGraphAddNode_v2)(node, graph, after, edges, count, params)
                                : CUDA_ERROR_OUT_OF_MEMORY;
}

#define SETTLING(name, ...)                           \
    {                                                 \
        DISGUISE(name, __VA_ARGS__);                  \
        CUresult answer = DRIVER(name)(__VA_ARGS__);  \
        settle_graphs(target);                        \
        return answer;                                \
    }

CUresult cuGraphInstantiate(CUgraphExec *exec, CUgraph graph, CUgraphNode *node, char *log, size_t size)
    SETTLING(cuGraphInstantiate, exec, graph, node, log, size)
CUresult cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *node, char *log, size_t size)
    SETTLING(cuGraphInstantiate_v2, exec, graph, node, log, size)
CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, uint64_t flags)
    SETTLING(cuGraphInstantiateWithFlags, exec, graph, flags)
CUresult cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph, void *params)
    SETTLING(cuGraphInstantiateWithParams, exec, graph, params)
CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec *exec, CUgraph graph, void *params)
    SETTLING(cuGraphInstantiateWithParams_ptsz, exec, graph, params)

static int is_known(struct process *me, CUgraphExec exec)
{
    lock_threads(&me->lock);
    int known = table_find(&me->graphs_known, (uintptr_t)exec) != NULL;
    unlock_threads(&me->lock);
    return known;
}

static void know(struct process *me, CUgraphExec exec)
{
    lock_threads(&me->lock);
    table_add(&me->graphs_known, (uintptr_t)exec);
    unlock_threads(&me->lock);
}

/*
 * The first time, a graph is given its memory before it is launched: one that went
 * past the cap is not, and what it was given nobody can reach.
 */
#define LAUNCHING(name, upload, capturing)                                           \
    CUresult name(CUgraphExec exec, CUstream stream)                                 \
    {                                                                                \
        DISGUISE(name, exec, stream);                                                \
        struct process *me = this_process();                                         \
        int new = me && __atomic_load_n(&me->has_graphs, __ATOMIC_RELAXED) && exec && \
                  !is_known(me, exec) && !capturing(stream);                         \
        if (new && DRIVER(upload)(exec, stream) == CUDA_SUCCESS) {                   \
            settle_graphs(target);                                                   \
            if (graphs_are_beyond())                                                 \
                return noted(CUDA_ERROR_OUT_OF_MEMORY);                              \
            know(me, exec);                                                          \
        }                                                                            \
        CUresult answer = DRIVER(name)(exec, stream);                                \
        settle_graphs(target);                                                       \
        return answer;                                                               \
    }

LAUNCHING(cuGraphLaunch, cuGraphUpload, captures)
LAUNCHING(cuGraphLaunch_ptsz, cuGraphUpload_ptsz, captures_ptsz)
LAUNCHING(cuGraphUpload, cuGraphUpload, captures)
LAUNCHING(cuGraphUpload_ptsz, cuGraphUpload_ptsz, captures_ptsz)

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
    settle_graphs(target);
    return answer;
}

CUresult cuDeviceGraphMemTrim(CUdevice device) SETTLING(cuDeviceGraphMemTrim, device)
