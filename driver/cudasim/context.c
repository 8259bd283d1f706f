/* Contexts, and which one each thread works in. */
#include "cudasim.h"

enum { MAX_CONTEXTS = 64, MAX_DEPTH = 16 };
static struct CUctx_st contexts[MAX_CONTEXTS];

/* The contexts that a thread pushed, by thread: without libc there is no thread-local storage. */
struct stack {
    unsigned depth;
    CUcontext contexts[MAX_DEPTH];
};
static struct table stacks;

static struct stack *stack_here(void)
{
    struct entry *entry = table_add(&stacks, sys_thread());
    if (entry && !entry->owner)
        entry->owner = (uintptr_t)sys_memory(sizeof(struct stack));
    return entry ? (struct stack *)entry->owner : NULL;
}

static CUcontext *top(struct stack *stack) { return stack && stack->depth ? &stack->contexts[stack->depth - 1] : NULL; }

static int alive(CUcontext context)
{
    return context >= contexts && context < contexts + MAX_CONTEXTS && context->users;
}

int visit_context(struct visit *visit)
{
    if (!visit_driver(visit))
        return 0;
    CUcontext *current = top(stack_here());
    if (!current || !alive(*current)) {
        visit->answer = CUDA_ERROR_INVALID_CONTEXT;
        return 0;
    }
    visit->context = *current;
    visit->device = &devices[visit->context->device];
    return 1;
}

static CUcontext new_context(CUdevice device, int primary)
{
    for (CUcontext c = contexts; c < contexts + MAX_CONTEXTS; c++) {
        if (c->users)
            continue;
        if (!charge(&devices[device], CONTEXT_MIB * MIB))
            return NULL;
        *c = (struct CUctx_st){.users = 1, .primary = primary, .device = device};
        return c;
    }
    return NULL;
}

void end_context(CUcontext context)
{
    struct device *device = &devices[context->device];
    release_all_of(device, context);
    discharge(device, CONTEXT_MIB * MIB);
    context->users = 0;
}

static CUcontext primary_of(CUdevice device)
{
    for (CUcontext c = contexts; c < contexts + MAX_CONTEXTS; c++)
        if (c->users && c->primary && c->device == device)
            return c;
    return NULL;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    DEVICE_CALL_OF(device, context);
    CUcontext primary = primary_of(device);
    if (primary)
        primary->users++;
    else
        primary = new_context(device, 1);
    *context = primary;
    return primary ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    DEVICE_CALL_OF(device, 1);
    CUcontext primary = primary_of(device);
    if (!primary)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (primary->users == 1)
        end_context(primary);
    else
        primary->users--;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    DEVICE_CALL_OF(device, 1);
    CUcontext primary = primary_of(device);
    if (primary)
        end_context(primary);
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) { return cuDevicePrimaryCtxRelease_v2(device); }
CUresult cuDevicePrimaryCtxReset(CUdevice device) { return cuDevicePrimaryCtxReset_v2(device); }

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active)
{
    DEVICE_CALL_OF(device, flags && active);
    *flags = 0;
    *active = primary_of(device) != NULL;
    return CUDA_SUCCESS;
}

static int push(CUcontext context)
{
    struct stack *stack = stack_here();
    if (!stack || stack->depth == MAX_DEPTH)
        return 0;
    stack->contexts[stack->depth++] = context;
    return 1;
}

CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device)
{
    (void)flags;
    DEVICE_CALL_OF(device, context);
    *context = new_context(device, 0);
    return *context && push(*context) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuCtxCreate(CUcontext *context, unsigned flags, CUdevice device)
{
    return cuCtxCreate_v2(context, flags, device);
}

CUresult cuCtxCreate_v3(CUcontext *context, void *params, int count, unsigned flags, CUdevice device)
{
    (void)params, (void)count;
    return cuCtxCreate_v2(context, flags, device);
}

CUresult cuCtxDestroy_v2(CUcontext context)
{
    DRIVER_CALL(1);
    if (!alive(context) || context->primary)
        return CUDA_ERROR_INVALID_CONTEXT;
    struct stack *stack = stack_here();
    if (top(stack) && *top(stack) == context)
        stack->depth--;
    end_context(context);
    return CUDA_SUCCESS;
}

CUresult cuCtxDestroy(CUcontext context) { return cuCtxDestroy_v2(context); }

/* It destroys a context that nothing else has attached. cuCtxAttach is not supported. */
CUresult cuCtxDetach(CUcontext context) { return cuCtxDestroy_v2(context); }

CUresult cuCtxPushCurrent_v2(CUcontext context)
{
    DRIVER_CALL(1);
    return alive(context) && push(context) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
    DRIVER_CALL(1);
    struct stack *stack = stack_here();
    if (!top(stack))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (context)
        *context = *top(stack);
    stack->depth--;
    return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext context) { return cuCtxPushCurrent_v2(context); }
CUresult cuCtxPopCurrent(CUcontext *context) { return cuCtxPopCurrent_v2(context); }

CUresult cuCtxSetCurrent(CUcontext context)
{
    DRIVER_CALL(1);
    if (context && !alive(context))
        return CUDA_ERROR_INVALID_CONTEXT;
    struct stack *stack = stack_here();
    if (top(stack))
        stack->depth--;
    return !context || push(context) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    DRIVER_CALL(context);
    CUcontext *current = top(stack_here());
    *context = current ? *current : NULL;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    CONTEXT_CALL(device);
    *device = visit.context->device;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetApiVersion(CUcontext context, unsigned *version)
{
    DRIVER_CALL(version);
    if (context && !alive(context))
        return CUDA_ERROR_INVALID_CONTEXT;
    *version = 3020;
    return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void)
{
    CONTEXT_CALL(1);
    release_unused(visit.device);
    return CUDA_SUCCESS;
}

CUresult cuCtxSetLimit(int limit, size_t value)
{
    (void)limit, (void)value;
    CONTEXT_CALL(1);
    return CUDA_SUCCESS;
}
