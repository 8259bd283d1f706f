/* cuGetProcAddress: from a plain name and a version of CUDA to the function that it meant then. */
#include "cudasim.h"
#include "stub.h"

extern const struct named every_name[]; /* all exports, in order, from names.txt */
extern const size_t every_name_count;

/* Most second versions came with CUDA 3.2, when sizes became 64 bits. These came otherwise. */
static const struct {
    const char *name;
    int since;
} later[] = {
    {"cuGetProcAddress_v2", 12000},
    {"cuDeviceGetUuid_v2", 11040},
    {"cuDevicePrimaryCtxRelease_v2", 11000},
    {"cuDevicePrimaryCtxReset_v2", 11000},
    {"cuCtxCreate_v3", 11040},
    {"cuGraphInstantiate_v2", 11000},
    {"cuGraphAddNode_v2", 12030},
    {"cuStreamBeginCapture_v2", 10010},
    {"cuMemPrefetchAsync_v2", 12020},
    {"cuMemAdvise_v2", 12020},
    {"cuGraphKernelNodeGetParams_v2", 12000},
    {"cuGraphKernelNodeSetParams_v2", 12000},
    {"cuStreamGetCaptureInfo_v2", 11030},
    {"cuStreamGetCaptureInfo_v3", 12030},
    {"cuIpcOpenMemHandle_v2", 11000},
};

static int since(const char *name)
{
    for (unsigned i = 0; i < sizeof later / sizeof *later; i++)
        if (equal(later[i].name, name))
            return later[i].since;
    return 3020;
}

static int order(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    return (unsigned char)*a - (unsigned char)*b;
}

static void *find(const char *name)
{
    size_t from = 0, to = every_name_count;
    while (from < to) {
        size_t middle = (from + to) / 2;
        int side = order(name, every_name[middle].name);
        if (side == 0)
            return every_name[middle].function;
        if (side < 0)
            to = middle;
        else
            from = middle + 1;
    }
    return NULL;
}

static void *find_joined(const char *base, const char *version, const char *stream)
{
    struct text name = {0};
    add(&name, base);
    add(&name, version);
    add(&name, stream);
    return find(name.s);
}

static void *find_for(const char *symbol, int version, uint64_t flags)
{
    enum { PER_THREAD_STREAM = 2 };
    static const char *const versions[] = {"_v4", "_v3", "_v2", ""};
    for (unsigned i = 0; i < sizeof versions / sizeof *versions; i++) {
        struct text name = {0};
        add(&name, symbol);
        add(&name, versions[i]);
        if (*versions[i] && (!find(name.s) || version < since(name.s)))
            continue;
        void *function = flags & PER_THREAD_STREAM ? find_joined(symbol, versions[i], "_ptsz") : NULL;
        if (!function && flags & PER_THREAD_STREAM)
            function = find_joined(symbol, versions[i], "_ptds");
        if (!function)
            function = find(name.s);
        if (function)
            return function;
    }
    return NULL;
}

CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags, int *status)
{
    if (!symbol || !function)
        return CUDA_ERROR_INVALID_VALUE;
    *function = find_for(symbol, version, flags);
    if (status)
        *status = !*function; /* 1 is: not found */
    return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags)
{
    return cuGetProcAddress_v2(symbol, function, version, flags, NULL);
}

/*
 * NVIDIA's runtime needs undocumented tables; programs of the driver interface do not. A
 * program that has hidden all devices expects to find none, so nothing is printed for it.
 */
CUresult cuGetExportTable(const void **table, const CUuuid *id)
{
    if (!table || !id)
        return CUDA_ERROR_INVALID_VALUE;
    *table = NULL;
    static int said;
    if (visible_devices() && !__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED))
        say("cosplay: a simulated host cannot run programs of the CUDA runtime (PyTorch, JAX, CuPy, llama.cpp): the "
            "runtime accepts only NVIDIA's driver, and finds no GPU here. Run the program on a real GPU.\n");
    return CUDA_ERROR_NOT_FOUND;
}

static const struct {
    CUresult error;
    const char *name, *text;
} errors[] = {
    {CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
    {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {CUDA_ERROR_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {CUDA_ERROR_INVALID_PTX, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {CUDA_ERROR_FILE_NOT_FOUND, "CUDA_ERROR_FILE_NOT_FOUND", "file not found"},
    {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {CUDA_ERROR_OPERATING_SYSTEM, "CUDA_ERROR_OPERATING_SYSTEM",
     "OS call failed or operation not supported on this OS"},
    {CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
     "system has unsupported display driver / cuda driver combination"},
};

static CUresult describe(CUresult error, const char **text, int name)
{
    if (!text)
        return CUDA_ERROR_INVALID_VALUE;
    *text = NULL;
    for (unsigned i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].error == error)
            *text = name ? errors[i].name : errors[i].text;
    return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorName(CUresult error, const char **text) { return describe(error, text, 1); }
CUresult cuGetErrorString(CUresult error, const char **text) { return describe(error, text, 0); }
