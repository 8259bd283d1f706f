/* Graphs: only their memory is simulated. It is allocated by the first launch or upload. */
#include "cudasim.h"

struct CUgraphExec_st {
    uint64_t bytes; /* that it needs */
    uint64_t kept;  /* of these, not freed within the graph */
    struct device *backed_on;
    int in_use; /* launched, and some is kept */
};
static struct table execs;
static struct table nodes; /* of memory, by its address; size: its bytes */

CUresult cuGraphCreate(CUgraph *graph, unsigned flags)
{
    DRIVER_CALL(graph && !flags);
    *graph = sys_memory(sizeof **graph);
    return *graph ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuGraphDestroy(CUgraph graph)
{
    DRIVER_CALL(graph);
    sys_unmap(graph, sizeof *graph);
    return CUDA_SUCCESS;
}

CUresult cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                                CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
    (void)after, (void)count;
    DRIVER_CALL(node && graph && params && params->size);
    if (params->size > memory_of(&devices[0]))
        return CUDA_ERROR_OUT_OF_MEMORY;
    params->address = (uintptr_t)sys_memory(params->size);
    struct entry *added = table_add(&nodes, params->address);
    if (!added)
        return CUDA_ERROR_OUT_OF_MEMORY;
    added->size = params->size;
    graph->bytes += params->size;
    *node = (CUgraphNode)(uintptr_t)params->address;
    return CUDA_SUCCESS;
}

CUresult cuGraphAddMemFreeNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                               CUdeviceptr address)
{
    (void)after, (void)count;
    DRIVER_CALL(node && graph && table_find(&nodes, address));
    graph->freed += table_take(&nodes, address).size;
    *node = (CUgraphNode)(uintptr_t)address;
    return CUDA_SUCCESS;
}

CUresult cuGraphAddNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                        CUgraphNodeParams *params)
{
    if (!params || params->type != CU_GRAPH_NODE_TYPE_MEM_ALLOC)
        return CUDA_ERROR_NOT_SUPPORTED;
    return cuGraphAddMemAllocNode(node, graph, after, count, &params->of.alloc);
}

CUresult cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, const void *edges, size_t count,
                           CUgraphNodeParams *params)
{
    (void)edges;
    return cuGraphAddNode(node, graph, after, count, params);
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, uint64_t flags)
{
    (void)flags;
    DRIVER_CALL(exec && graph);
    *exec = sys_memory(sizeof **exec);
    if (!*exec)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!table_add(&execs, (uintptr_t)*exec))
        return CUDA_ERROR_OUT_OF_MEMORY;
    (*exec)->bytes = up(graph->bytes, PAGE_MIB * MIB);
    (*exec)->kept = graph->bytes - graph->freed;
    return CUDA_SUCCESS;
}

CUresult cuGraphInstantiate(CUgraphExec *exec, CUgraph graph, CUgraphNode *node, char *log, size_t size)
{
    (void)node, (void)log, (void)size;
    return cuGraphInstantiateWithFlags(exec, graph, 0);
}

CUresult cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *node, char *log, size_t size)
{
    return cuGraphInstantiate(exec, graph, node, log, size);
}

CUresult cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph, void *params)
{
    return params ? cuGraphInstantiateWithFlags(exec, graph, 0) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec *exec, CUgraph graph, void *params)
{
    return cuGraphInstantiateWithParams(exec, graph, params);
}

static CUresult back(CUgraphExec exec, struct device *device)
{
    if (exec->backed_on)
        return CUDA_SUCCESS;
    uint64_t need = device->graph_used + exec->bytes;
    if (need > device->graph_reserved) {
        if (!charge(device, need - device->graph_reserved))
            return CUDA_ERROR_OUT_OF_MEMORY;
        device->graph_reserved = need;
    }
    device->graph_used = need;
    exec->backed_on = device;
    return CUDA_SUCCESS;
}

static void unback(CUgraphExec exec)
{
    if (exec->backed_on)
        exec->backed_on->graph_used -= exec->bytes;
    exec->backed_on = NULL;
}

CUresult cuGraphUpload(CUgraphExec exec, CUstream stream)
{
    (void)stream;
    CONTEXT_CALL(exec);
    return back(exec, visit.device);
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    (void)stream;
    CONTEXT_CALL(exec);
    CUresult answer = back(exec, visit.device);
    exec->in_use = answer == CUDA_SUCCESS && exec->kept > 0;
    return answer;
}

CUresult cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream) { return cuGraphLaunch(exec, stream); }
CUresult cuGraphUpload_ptsz(CUgraphExec exec, CUstream stream) { return cuGraphUpload(exec, stream); }

CUresult cuGraphExecDestroy(CUgraphExec exec)
{
    DRIVER_CALL(table_find(&execs, (uintptr_t)exec));
    table_take(&execs, (uintptr_t)exec);
    unback(exec);
    sys_unmap(exec, sizeof *exec);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice device, int attribute, void *value)
{
    DEVICE_CALL_OF(device, value);
    *(uint64_t *)value =
        attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT ? visit.device->graph_reserved : visit.device->graph_used;
    return CUDA_SUCCESS;
}

/* Frees memory that no launch uses, including that of graphs that would use it at their next launch. */
CUresult cuDeviceGraphMemTrim(CUdevice device)
{
    DEVICE_CALL_OF(device, 1);
    FOR_ENTRIES(entry, &execs) {
        CUgraphExec exec = (CUgraphExec)(uintptr_t)entry->key;
        if (exec->backed_on == visit.device && !exec->in_use)
            unback(exec);
    }
    discharge(visit.device, visit.device->graph_reserved - visit.device->graph_used);
    visit.device->graph_reserved = visit.device->graph_used;
    return CUDA_SUCCESS;
}
