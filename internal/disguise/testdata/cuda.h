/* A program of the driver interface: it loads the library that its argument names, and looks up what it calls. */
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/cuda.h"

#define MIB (1024UL * 1024UL)

static void *library;

/* Every function of CUDA, by the type that the header gives it. */
#define CU(name) ((__typeof__(&name))look_up(#name))

static void *look_up(const char *name)
{
    void *function = dlsym(library, name);
    if (!function) {
        printf("%s: %s\n", name, dlerror());
        exit(1);
    }
    return function;
}

static void must(CUresult answer, const char *what)
{
    if (answer == CUDA_SUCCESS)
        return;
    printf("%s answers %d\n", what, answer);
    exit(1);
}
#define MUST(call) must(call, #call)

__attribute__((unused)) static void start(const char *path)
{
    CUcontext context;
    library = dlopen(path, RTLD_NOW);
    if (!library) {
        printf("%s\n", dlerror());
        exit(1);
    }
    MUST(CU(cuInit)(0));
    MUST(CU(cuDevicePrimaryCtxRetain)(&context, 0));
    MUST(CU(cuCtxSetCurrent)(context));
}

__attribute__((unused)) static size_t free_bytes(void)
{
    size_t free, total;
    MUST(CU(cuMemGetInfo_v2)(&free, &total));
    return free;
}
