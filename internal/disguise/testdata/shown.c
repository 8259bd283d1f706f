/* Prints what a program reads of its GPU, a line for each question: shown LIBRARY. */
#include "cuda.h"

static void attribute(const char *name, int which)
{
    int value;
    MUST(CU(cuDeviceGetAttribute)(&value, which, 0));
    printf("%s %d\n", name, value);
}

static void uuid(const char *name, CUresult answer, CUuuid id)
{
    printf("%s %d ", name, answer);
    for (int i = 0; i < 16; i++)
        printf("%02x", (unsigned char)id.bytes[i]);
    printf("\n");
}

static void device(void)
{
    char name[96], short_name[8];
    int major, minor, count;
    size_t bytes;
    uint32_t few;
    CUdevprop properties;
    CUuuid id;
    MUST(CU(cuDeviceGetCount)(&count));
    MUST(CU(cuDeviceGetName)(name, sizeof name, 0));
    MUST(CU(cuDeviceGetName)(short_name, sizeof short_name, 0));
    MUST(CU(cuDeviceTotalMem_v2)(&bytes, 0));
    MUST(CU(cuDeviceTotalMem)(&few, 0));
    MUST(CU(cuDeviceComputeCapability)(&major, &minor, 0));
    MUST(CU(cuDeviceGetProperties)(&properties, 0));
    printf("count %d\nname %s\nshort %s\ntotal %zu\ntotal32 %u\ncapability %d.%d\n", count, name, short_name,
           bytes / MIB, few, major, minor);
    printf("properties %d\nno-device %d\nno-name %d\n", properties.clock_khz, CU(cuDeviceTotalMem_v2)(&bytes, 7),
           CU(cuDeviceGetName)(name, 0, 0));
    uuid("uuid", CU(cuDeviceGetUuid)(&id, 0), id);
    uuid("uuid2", CU(cuDeviceGetUuid_v2)(&id, 0), id);
}

static void memory(void)
{
    size_t free, total;
    uint32_t free32, total32;
    CUdeviceptr block;
    MUST(CU(cuMemAlloc_v2)(&block, 100 * MIB));
    MUST(CU(cuMemGetInfo_v2)(&free, NULL));
    MUST(CU(cuMemGetInfo_v2)(NULL, &total));
    MUST(CU(cuMemGetInfo)(&free32, &total32));
    MUST(CU(cuMemFree_v2)(block));
    printf("free %zu\nof %zu\nfree32 %u\nof32 %u\n", free / MIB, total / MIB, free32, total32);
    printf("unknown %d\nnull %d\nnone %d\n", CU(cuMemFree_v2)(4096), CU(cuMemFree_v2)(0), CU(cuMemAlloc_v2)(&block, 0));
    printf("no-handle %d\nno-array %d\n", CU(cuMemRelease)(4711), CU(cuArrayDestroy)((CUarray)4096));
    printf("lost %d\nno-context %d\n", CU(cuMemAlloc_v2)(NULL, 1),
           (CU(cuCtxSetCurrent)(NULL), CU(cuMemGetInfo_v2)(&free, &total)));
}

int main(int count, char **arguments)
{
    (void)count;
    start(arguments[1]);
    printf("visible %s\n", getenv("CUDA_VISIBLE_DEVICES") ? getenv("CUDA_VISIBLE_DEVICES") : "not set");
    device();
    attribute("sms", CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    attribute("clock", CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
    attribute("memory-clock", CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
    attribute("bus", CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
    attribute("ecc", CU_DEVICE_ATTRIBUTE_ECC_ENABLED);
    attribute("threads", CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    memory();
    return 0;
}
