/*
 * One of many that fill the slice and empty it: racer LIBRARY SEED. Two threads
 * allocate in all sizes and every order, one of them from a pool, until the
 * program is killed or its input ends.
 */
#include "cuda.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

enum { HELD = 64 };

struct racer {
    unsigned long seed;
    int from_pool;
    CUdeviceptr held[HELD];
};

static CUcontext context;
static atomic_int enough;

static unsigned long next(struct racer *r)
{
    r->seed = r->seed * 6364136223846793005UL + 1442695040888963407UL;
    return r->seed >> 33;
}

static void drop(const struct racer *r, CUdeviceptr *at)
{
    if (*at)
        must(r->from_pool ? CU(cuMemFreeAsync)(*at, NULL) : CU(cuMemFree_v2)(*at), "the free");
    *at = 0;
}

static void swap(struct racer *r, CUdeviceptr *at)
{
    drop(r, at);
    size_t size = (next(r) % 512 + 1) * MIB - next(r) % 2;
    CUresult answer = r->from_pool ? CU(cuMemAllocAsync)(at, size, NULL) : CU(cuMemAlloc_v2)(at, size);
    if (answer == CUDA_ERROR_OUT_OF_MEMORY)
        *at = 0;
    else
        must(answer, "the allocation");
}

static void *run(void *of)
{
    struct racer *r = of;
    MUST(CU(cuCtxSetCurrent)(context));
    while (!enough)
        swap(r, &r->held[next(r) % HELD]);
    for (int i = 0; i < HELD; i++)
        drop(r, &r->held[i]);
    return NULL;
}

int main(int count, char **arguments)
{
    (void)count;
    start(arguments[1]);
    MUST(CU(cuCtxGetCurrent)(&context));
    unsigned long seed = strtoul(arguments[2], NULL, 10);
    struct racer linear = {.seed = seed}, pooled = {.seed = ~seed, .from_pool = 1};
    pthread_t one, other;
    if (pthread_create(&one, NULL, run, &linear) || pthread_create(&other, NULL, run, &pooled))
        return 1;
    struct pollfd input = {.fd = 0, .events = POLLIN};
    poll(&input, 1, -1);
    enough = 1;
    pthread_join(one, NULL);
    pthread_join(other, NULL);
    MUST(CU(cuCtxSynchronize)());
    return 0;
}
