/* Prints what a call takes, in ns: cost LIBRARY load|pair|query. */
#include "cuda.h"

#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double pair(void)
{
    __typeof__(&cuMemAlloc_v2) allocate = CU(cuMemAlloc_v2);
    __typeof__(&cuMemFree_v2) free = CU(cuMemFree_v2);
    enum { ROUNDS = 100000 };
    CUdeviceptr address;
    double from = now();
    for (int i = 0; i < ROUNDS; i++) {
        must(allocate(&address, MIB), "cuMemAlloc_v2");
        must(free(address), "cuMemFree_v2");
    }
    return (now() - from) / ROUNDS;
}

static double query(void)
{
    enum { ROUNDS = 20000 };
    double from = now();
    for (int i = 0; i < ROUNDS; i++)
        free_bytes();
    return (now() - from) / ROUNDS;
}

int main(int count, char **arguments)
{
    (void)count;
    double from = now();
    void *loaded = dlopen(arguments[1], RTLD_NOW);
    double load = now() - from;
    if (!loaded)
        return 1;
    if (strcmp(arguments[2], "load") == 0) {
        printf("%.0f\n", load);
        return 0;
    }
    start(arguments[1]);
    printf("%.0f\n", strcmp(arguments[2], "pair") == 0 ? pair() : query());
    return 0;
}
