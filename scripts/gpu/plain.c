/*
 * A plain program of CUDA's driver interface, for scripts/gpu/measure. It says, a
 * word and a value a line: what the GPU is called and has, how much of it can be
 * allocated, what a kernel computes, and what an allocation and a launch take.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MIB (1024UL * 1024UL)
#define CU(name, ...) ((int (*)())look_up(#name))(__VA_ARGS__)
#define MUST(name, ...) must(CU(name, __VA_ARGS__), #name)

static void *library;

static void *look_up(const char *name)
{
    void *function = dlsym(library, name);
    if (!function) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    return function;
}

static void must(int answer, const char *what)
{
    if (answer == 0)
        return;
    fprintf(stderr, "%s answers %d\n", what, answer);
    exit(1);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Steps get smaller as the room does, down to what the driver gives out at least. */
static size_t fill(void)
{
    enum { MOST = 65536 };
    static uint64_t blocks[MOST];
    size_t bytes = 0;
    int n = 0, answer = 0;
    for (size_t step = 1024 * MIB; step >= 2 * MIB; step /= 2)
        while (n < MOST && (answer = CU(cuMemAlloc_v2, &blocks[n], step)) == 0) {
            bytes += step;
            n++;
        }
    printf("refusal %d\n", answer);
    while (n > 0)
        MUST(cuMemFree_v2, blocks[--n]);
    return bytes;
}

/* out[i] = i * i + 1, over one block of 256 threads. */
static const char square[] = ".version 6.0\n.target sm_52\n.address_size 64\n"
                             ".visible .entry square(.param .u64 out)\n{\n"
                             ".reg .u32 %i, %s; .reg .u64 %at, %step;\n"
                             "mov.u32 %i, %tid.x; mad.lo.u32 %s, %i, %i, 1;\n"
                             "ld.param.u64 %at, [out]; mul.wide.u32 %step, %i, 4; add.u64 %at, %at, %step;\n"
                             "st.global.u32 [%at], %s;\nret;\n}\n";

static void compute(void)
{
    enum { THREADS = 256, LAUNCHES = 10000 };
    void *module, *function;
    uint64_t block;
    uint32_t result[THREADS];
    void *arguments[] = {&block};
    int answer = CU(cuModuleLoadData, &module, square);
    if (answer == 0)
        answer = CU(cuModuleGetFunction, &function, module, "square");
    MUST(cuMemAlloc_v2, &block, sizeof result);
    if (answer == 0)
        answer = CU(cuLaunchKernel, function, 1, 1, 1, THREADS, 1, 1, 0, NULL, arguments, NULL);
    must(answer, "the kernel");
    MUST(cuMemcpyDtoH_v2, result, block, sizeof result);
    int right = 0;
    for (int i = 0; i < THREADS; i++)
        right += result[i] == (uint32_t)(i * i + 1);
    printf("kernel %d of %d\n", right, THREADS);
    double from = now();
    for (int i = 0; i < LAUNCHES; i++)
        MUST(cuLaunchKernel, function, 1, 1, 1, THREADS, 1, 1, 0, NULL, arguments, NULL);
    MUST(cuCtxSynchronize);
    printf("launch_ns %.0f\n", (now() - from) / LAUNCHES);
}

static void pairs(const char *word, size_t size)
{
    enum { ROUNDS = 2000 };
    uint64_t block;
    double from = now();
    for (int i = 0; i < ROUNDS; i++) {
        MUST(cuMemAlloc_v2, &block, size);
        MUST(cuMemFree_v2, block);
    }
    printf("%s %.0f\n", word, (now() - from) / ROUNDS);
}

int main(void)
{
    char name[128];
    void *context;
    size_t total, free_now, all;
    library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    MUST(cuInit, 0);
    MUST(cuDevicePrimaryCtxRetain, &context, 0);
    MUST(cuCtxSetCurrent, context);
    MUST(cuDeviceGetName, name, (int)sizeof name, 0);
    MUST(cuDeviceTotalMem_v2, &total, 0);
    MUST(cuMemGetInfo_v2, &free_now, &all);
    printf("name %s\ntotal_mib %zu\ncontext_mib %zu\n", name, total / MIB, (all - free_now) / MIB);
    printf("room_mib %zu\n", free_now / MIB);
    printf("filled_mib %zu\n", fill() / MIB);
    compute();
    pairs("small_pair_ns", 1024);
    pairs("large_pair_ns", 64 * MIB);
    return 0;
}
