/*
 * Graphs hold memory from their first launch. A node that could never fit is
 * refused when it is added; what the graphs hold together is counted after each
 * call that may change it.
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
CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) SETTLING(cuGraphLaunch, exec, stream)
CUresult cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream) SETTLING(cuGraphLaunch_ptsz, exec, stream)
CUresult cuGraphUpload(CUgraphExec exec, CUstream stream) SETTLING(cuGraphUpload, exec, stream)
CUresult cuGraphUpload_ptsz(CUgraphExec exec, CUstream stream) SETTLING(cuGraphUpload_ptsz, exec, stream)
CUresult cuGraphExecDestroy(CUgraphExec exec) SETTLING(cuGraphExecDestroy, exec)
CUresult cuDeviceGraphMemTrim(CUdevice device) SETTLING(cuDeviceGraphMemTrim, device)
