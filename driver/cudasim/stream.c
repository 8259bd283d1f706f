/* Streams and events: as much as small programs need. All is done at once, so nothing is ever waited for. */
#include "cudasim.h"

/* 0, 1 and 2 are default streams. */
CUstream real_stream(CUstream stream) { return (uintptr_t)stream > 2 ? stream : NULL; }

CUresult cuStreamCreate(CUstream *stream, unsigned flags)
{
    (void)flags;
    CONTEXT_CALL(stream);
    *stream = sys_memory(sizeof **stream);
    if (!*stream)
        return CUDA_ERROR_OUT_OF_MEMORY;
    (*stream)->context = visit.context;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext *context)
{
    CONTEXT_CALL(context);
    stream = real_stream(stream);
    *context = stream ? stream->context : visit.context;
    return CUDA_SUCCESS;
}

CUresult cuStreamDestroy_v2(CUstream stream)
{
    CONTEXT_CALL(real_stream(stream));
    sys_unmap(stream, sizeof *stream);
    return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream stream)
{
    CONTEXT_CALL(1);
    stream = real_stream(stream);
    if (stream && stream->capture)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    release_unused(visit.device);
    return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream stream, int *status)
{
    CONTEXT_CALL(status);
    stream = real_stream(stream);
    *status = stream && stream->capture ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture_v2(CUstream stream, int mode)
{
    (void)mode;
    if (!real_stream(stream) || stream->capture)
        return CUDA_ERROR_INVALID_VALUE;
    return cuGraphCreate(&stream->capture, 0);
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    CONTEXT_CALL(graph && real_stream(stream) && stream->capture);
    *graph = stream->capture;
    stream->capture = NULL;
    return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize_ptsz(CUstream stream) { return cuStreamSynchronize(stream); }
CUresult cuStreamIsCapturing_ptsz(CUstream stream, int *status) { return cuStreamIsCapturing(stream, status); }
CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, int mode) { return cuStreamBeginCapture_v2(stream, mode); }
CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph *graph) { return cuStreamEndCapture(stream, graph); }

static char an_event; /* the handle of every event */

CUresult cuEventCreate(CUevent *event, unsigned flags)
{
    (void)flags;
    CONTEXT_CALL(event);
    *event = (CUevent)(void *)&an_event;
    return CUDA_SUCCESS;
}

static CUresult on_event(CUevent event)
{
    CONTEXT_CALL(event == (CUevent)(void *)&an_event);
    return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent event) { return on_event(event); }
CUresult cuEventQuery(CUevent event) { return on_event(event); }

CUresult cuEventRecord(CUevent event, CUstream stream)
{
    (void)stream;
    return on_event(event);
}

CUresult cuEventRecord_ptsz(CUevent event, CUstream stream) { return cuEventRecord(event, stream); }

CUresult cuEventSynchronize(CUevent event)
{
    CONTEXT_CALL(event);
    release_unused(visit.device);
    return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime(float *ms, CUevent from, CUevent to)
{
    if (!ms || on_event(from) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_VALUE;
    *ms = 0;
    return on_event(to);
}
