/*
 * One of many that fill the slice and empty it: racer LIBRARY SEED. Allocations
 * of all sizes, in every order, until it is killed or told "enough" by its input.
 */
#include "cuda.h"

#include <poll.h>
#include <unistd.h>

enum { HELD = 64 };
static CUdeviceptr held[HELD];
static unsigned long seed;

static unsigned long next(void)
{
    seed = seed * 6364136223846793005UL + 1442695040888963407UL;
    return seed >> 33;
}

static int is_enough(void)
{
    struct pollfd input = {.fd = 0, .events = POLLIN};
    return poll(&input, 1, 0) != 0;
}

static void drop(CUdeviceptr *at)
{
    if (*at)
        MUST(CU(cuMemFree_v2)(*at));
    *at = 0;
}

static void swap(CUdeviceptr *at)
{
    drop(at);
    size_t size = (next() % 512 + 1) * MIB - next() % 2;
    CUresult answer = CU(cuMemAlloc_v2)(at, size);
    if (answer == CUDA_ERROR_OUT_OF_MEMORY)
        *at = 0;
    else
        must(answer, "cuMemAlloc_v2");
}

int main(int count, char **arguments)
{
    (void)count;
    start(arguments[1]);
    seed = strtoul(arguments[2], NULL, 10);
    for (unsigned long i = 0; i % 256 || !is_enough(); i++)
        swap(&held[next() % HELD]);
    for (int i = 0; i < HELD; i++)
        drop(&held[i]);
    return 0;
}
