/*
 * A program of several devices: devices LIBRARY. It carries out the commands of its input and answers each line with
 * one. Memory is allocated on the current device, and freed or released while any device is current:
 *
 *     list             the devices: their number, and UUID and MiB of each
 *     use N            makes a device the current one
 *     info             MiB free and total of the current device
 *     take MIB, free N             linear memory; of device N
 *     async MIB, free-async N      of the device's pool
 *     create N MIB, release N      physical memory of a device, which need not be current
 *     stream N MIB                 of the pool of a device, by a stream of it that another device's thread uses
 *     pool N MIB                   of a new pool of a device, until the program ends
 *     map MIB, unmap               both devices' physical memory in one range, which is unmapped at once
 *     graph N MIB                  a graph with memory of a device, launched; "trim" gives it back
 *     reset N                      the primary context
 *     exec             starts as another program of the same pid
 */
#include "cuda.h"

#include <unistd.h>

enum { MOST = 4 };

static CUcontext contexts[MOST];
static CUdeviceptr blocks[MOST], pieces[MOST], range;
static CUmemGenericAllocationHandle handles[MOST];
static size_t range_size;
static int current;

static void list(void)
{
    int count;
    MUST(CU(cuDeviceGetCount)(&count));
    printf("%d", count);
    for (int i = 0; i < count; i++) {
        CUdevice device;
        CUuuid uuid;
        size_t bytes;
        MUST(CU(cuDeviceGet)(&device, i));
        MUST(CU(cuDeviceGetUuid_v2)(&uuid, device));
        MUST(CU(cuDeviceTotalMem_v2)(&bytes, device));
        printf(" GPU-");
        for (int b = 0; b < 16; b++)
            printf("%s%02x", b == 4 || b == 6 || b == 8 || b == 10 ? "-" : "", (unsigned char)uuid.bytes[b]);
        printf(" %zu", bytes / MIB);
    }
    printf("\n");
}

static int use(int device)
{
    current = device;
    if (!contexts[device])
        MUST(CU(cuDevicePrimaryCtxRetain)(&contexts[device], device));
    return CU(cuCtxSetCurrent)(contexts[device]);
}

static int create(int device, size_t mib)
{
    CUmemAllocationProp p = {.type = 1, .location = {1, device}};
    return CU(cuMemCreate)(&handles[device], mib * MIB, &p, 0);
}

static int stream(int device, size_t mib)
{
    CUstream made;
    int before = current;
    CUdeviceptr piece;
    MUST(use(device));
    MUST(CU(cuStreamCreate)(&made, 0));
    MUST(use(before));
    return CU(cuMemAllocAsync)(&piece, mib * MIB, made);
}

static int pool(int device, size_t mib)
{
    CUmemPoolProps p = {.type = 1, .location = {1, device}};
    CUmemoryPool made;
    CUdeviceptr piece;
    MUST(CU(cuMemPoolCreate)(&made, &p));
    return CU(cuMemAllocFromPoolAsync)(&piece, mib * MIB, made, NULL);
}

static int map(size_t mib)
{
    range_size = 2 * mib * MIB;
    MUST(CU(cuMemAddressReserve)(&range, range_size, 0, 0, 0));
    for (int i = 0; i < 2; i++) {
        MUST(create(i, mib));
        MUST(CU(cuMemMap)(range + (size_t)i * mib * MIB, mib * MIB, 0, handles[i], 0));
        MUST(CU(cuMemRelease)(handles[i]));
    }
    return 0;
}

static int graph(int device, size_t mib)
{
    CUgraph made;
    CUgraphNode node, end;
    CUgraphExec exec;
    CUDA_MEM_ALLOC_NODE_PARAMS p = {.pool = {.type = 1, .location = {1, device}}, .size = mib * MIB};
    MUST(CU(cuGraphCreate)(&made, 0));
    int answer = CU(cuGraphAddMemAllocNode)(&node, made, NULL, 0, &p);
    if (answer)
        return answer;
    MUST(CU(cuGraphAddMemFreeNode)(&end, made, &node, 1, p.address));
    MUST(CU(cuGraphInstantiateWithFlags)(&exec, made, 0));
    return CU(cuGraphLaunch)(exec, NULL);
}

static int reset(int device)
{
    contexts[device] = NULL;
    return CU(cuDevicePrimaryCtxReset_v2)(device);
}

static int obey(const char *order, int n, size_t mib)
{
    size_t first = (size_t)n;
    return strcmp(order, "use") == 0          ? use(n)
           : strcmp(order, "take") == 0       ? CU(cuMemAlloc_v2)(&blocks[current], first * MIB)
           : strcmp(order, "free") == 0       ? CU(cuMemFree_v2)(blocks[n])
           : strcmp(order, "async") == 0      ? CU(cuMemAllocAsync)(&pieces[current], first * MIB, NULL)
           : strcmp(order, "free-async") == 0 ? CU(cuMemFreeAsync)(pieces[n], NULL) || CU(cuCtxSynchronize)()
           : strcmp(order, "create") == 0     ? create(n, mib)
           : strcmp(order, "release") == 0    ? CU(cuMemRelease)(handles[n])
           : strcmp(order, "stream") == 0     ? stream(n, mib)
           : strcmp(order, "pool") == 0       ? pool(n, mib)
           : strcmp(order, "map") == 0        ? map(first)
           : strcmp(order, "unmap") == 0      ? CU(cuMemUnmap)(range, range_size)
           : strcmp(order, "graph") == 0      ? graph(n, mib)
           : strcmp(order, "trim") == 0       ? CU(cuDeviceGraphMemTrim)(current)
           : strcmp(order, "reset") == 0      ? reset(n)
                                              : -1;
}

int main(int count, char **arguments)
{
    char line[64], order[64];
    (void)count;
    setvbuf(stdin, NULL, _IONBF, 0); /* what follows "exec" is for the next program */
    setvbuf(stdout, NULL, _IOLBF, 0);
    library = dlopen(arguments[1], RTLD_NOW);
    if (!library || CU(cuInit)(0))
        return 1;
    printf("ready\n");
    while (fgets(line, sizeof line, stdin)) {
        int n = 0;
        size_t mib = 0, free, total;
        if (sscanf(line, "%63s %d %zu", order, &n, &mib) < 1)
            continue;
        if (strcmp(order, "list") == 0)
            list();
        else if (strcmp(order, "exec") == 0)
            execv(arguments[0], arguments);
        else if (strcmp(order, "info") != 0)
            printf("%d\n", obey(order, n, mib));
        else if (CU(cuMemGetInfo_v2)(&free, &total) == CUDA_SUCCESS)
            printf("%zu of %zu\n", free / MIB, total / MIB);
    }
    return 0;
}
