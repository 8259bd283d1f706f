/*
 * Threads whose first allocations begin at about one moment: together LIBRARY. Then it
 * waits. "together LIBRARY hammer" allocates and frees without end besides.
 */
#include "cuda.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { THREADS = 8 };

static CUcontext context;
static atomic_uint waiting;
static CUdeviceptr blocks[THREADS];

static void *take(void *block)
{
    MUST(CU(cuCtxSetCurrent)(context));
    CU(cuMemAlloc_v2);
    unsigned turn = waiting++;
    while (waiting < THREADS)
        ;
    for (volatile unsigned wait = turn * (unsigned)getpid() % 20000; wait; wait--)
        ;
    MUST(CU(cuMemAlloc_v2)(block, MIB));
    return NULL;
}

static void *hammer(void *unused)
{
    CUdeviceptr block;
    MUST(CU(cuCtxSetCurrent)(context));
    for (;;) {
        MUST(CU(cuMemAlloc_v2)(&block, MIB));
        MUST(CU(cuMemFree_v2)(block));
    }
    return unused;
}

int main(int count, char **arguments)
{
    pthread_t threads[THREADS], busy;
    start(arguments[1]);
    MUST(CU(cuCtxGetCurrent)(&context));
    if (count > 2)
        pthread_create(&busy, NULL, hammer, NULL);
    for (int i = 0; i < THREADS && count == 2; i++)
        pthread_create(&threads[i], NULL, take, &blocks[i]);
    for (int i = 0; i < THREADS && count == 2; i++)
        pthread_join(threads[i], NULL);
    printf("ready\n");
    fflush(stdout);
    getchar();
    return 0;
}
