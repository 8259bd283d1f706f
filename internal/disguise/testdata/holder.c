/*
 * Carries out the commands of its input and answers each line with one:
 * holder LIBRARY. "take MIB" and "bytes N" allocate, "free" frees the last,
 * "take-async MIB" and "free-async" do so in the order of a stream,
 * "keep MIB" frees so much to a pool that keeps it, "gaps MIB" maps eight times so
 * much with gaps between, and unmaps it all at once,
 * "info" prints MIB free and total, "fork" allocates 1 MiB in a child, "exec"
 * starts as another program of the same pid, "reset" resets the context,
 * "visit" retains it once more and releases it,
 * "stray" frees where it cannot, "context MIB" allocates in one that it destroys,
 * "host MIB" makes physical memory of the host, and a pool of it. "graph MIB" makes a graph that keeps
 * its memory, "passing MIB" one that frees it again, "launch N" launches the Nth,
 * "trim" gives back what graphs do not use. "grow" tries all that makes a context
 * or loads code, and prints the answers. "no-files" takes all descriptors that it
 * may have.
 */
#include "cuda.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static CUdeviceptr last;

/* The child of a fork has no CUDA, but frees and asks: nothing of the parent's may be counted off. */
static int child(void)
{
    size_t free;
    pid_t pid = fork();
    if (pid == 0) {
        CU(cuMemFree_v2)(last);
        CU(cuMemAlloc_v2)(&last, MIB);
        _exit(CU(cuMemGetInfo_v2)(&free, NULL));
    }
    int status;
    waitpid(pid, &status, 0);
    return WEXITSTATUS(status);
}

static int reset(void)
{
    CUcontext context;
    MUST(CU(cuDevicePrimaryCtxReset_v2)(0));
    MUST(CU(cuDevicePrimaryCtxRetain)(&context, 0));
    return CU(cuCtxSetCurrent)(context);
}

/* As every library does that comes and goes. */
static int visit(void)
{
    CUcontext context;
    int answer = CU(cuDevicePrimaryCtxRetain)(&context, 0);
    return answer ? answer : CU(cuDevicePrimaryCtxRelease_v2)(0);
}

/* Without a context nothing can be freed. */
static int stray(void)
{
    CUcontext context;
    MUST(CU(cuCtxGetCurrent)(&context));
    MUST(CU(cuCtxSetCurrent)(NULL));
    int answer = CU(cuMemFree_v2)(last);
    MUST(CU(cuCtxSetCurrent)(context));
    return answer;
}

/* What is in a context ends with it. */
static int in_context(size_t mib)
{
    CUcontext context;
    CUdeviceptr block;
    MUST(CU(cuCtxCreate_v2)(&context, 0, 0));
    int answer = CU(cuMemAlloc_v2)(&block, mib * MIB);
    MUST(CU(cuCtxDestroy_v2)(context));
    return answer;
}

static int on_host(size_t mib)
{
    enum { HOST = 2 };
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp p = {.type = 1, .location = {HOST, 0}};
    CUmemPoolProps of_host = {.type = 1, .location = {HOST, 0}};
    CUmemoryPool pool;
    CUdeviceptr piece;
    MUST(CU(cuMemPoolCreate)(&pool, &of_host));
    MUST(CU(cuMemAllocFromPoolAsync)(&piece, mib * MIB, pool, NULL));
    MUST(CU(cuMemFreeAsync)(piece, NULL));
    MUST(CU(cuMemPoolDestroy)(pool));
    MUST(CU(cuMemCreate)(&handle, mib * MIB, &p, 0));
    return CU(cuMemRelease)(handle);
}

static int keep(size_t mib)
{
    CUmemPoolProps p = {.type = 1, .location = {1, 0}};
    CUmemoryPool pool;
    CUdeviceptr piece;
    uint64_t all = ~0ULL;
    MUST(CU(cuMemPoolCreate)(&pool, &p));
    MUST(CU(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all));
    MUST(CU(cuMemAllocFromPoolAsync)(&piece, mib * MIB, pool, NULL));
    MUST(CU(cuMemFreeAsync)(piece, NULL));
    return CU(cuCtxSynchronize)();
}

static int with_gaps(size_t mib)
{
    enum { COUNT = 8 };
    CUmemAllocationProp p = {.type = 1, .location = {1, 0}};
    CUmemGenericAllocationHandle handle;
    CUdeviceptr range;
    size_t size = mib * MIB;
    MUST(CU(cuMemAddressReserve)(&range, 2 * COUNT * size, 0, 0, 0));
    for (size_t i = 0; i < COUNT; i++) {
        MUST(CU(cuMemCreate)(&handle, size, &p, 0));
        MUST(CU(cuMemMap)(range + (2 * i + 1) * size, size, 0, handle, 0));
        MUST(CU(cuMemRelease)(handle));
    }
    return CU(cuMemUnmap)(range, 2 * COUNT * size);
}

/* Three graphs that keep their memory, launched when all are made; who may not is tried again, and destroyed. */
static void graphs(size_t mib)
{
    CUgraph graph;
    CUgraphNode node;
    CUgraphExec execs[3];
    for (int i = 0; i < 3; i++) {
        CUDA_MEM_ALLOC_NODE_PARAMS p = {.pool = {.type = 1, .location = {1, 0}}, .size = mib * MIB};
        MUST(CU(cuGraphCreate)(&graph, 0));
        MUST(CU(cuGraphAddMemAllocNode)(&node, graph, NULL, 0, &p));
        MUST(CU(cuGraphInstantiateWithFlags)(&execs[i], graph, 0));
    }
    for (int i = 0; i < 3; i++) {
        int answers[] = {CU(cuGraphLaunch)(execs[i], NULL), CU(cuGraphUpload)(execs[i], NULL),
                         CU(cuGraphLaunch)(execs[i], NULL)};
        printf("%d%d%d%s", answers[0], answers[1], answers[2], i < 2 ? " " : "");
        if (answers[2])
            MUST(CU(cuGraphExecDestroy)(execs[i]));
    }
    MUST(CU(cuDeviceGraphMemTrim)(0));
    printf("\n"); /* an answer is one when all is done */
}

static CUgraphExec made[8];
static int made_count;

static int make_graph(size_t mib, int passing)
{
    CUgraph graph;
    CUgraphNode node, end;
    CUDA_MEM_ALLOC_NODE_PARAMS p = {.pool = {.type = 1, .location = {1, 0}}, .size = mib * MIB};
    MUST(CU(cuGraphCreate)(&graph, 0));
    int answer = CU(cuGraphAddMemAllocNode)(&node, graph, NULL, 0, &p);
    if (answer == CUDA_SUCCESS && passing)
        MUST(CU(cuGraphAddMemFreeNode)(&end, graph, &node, 1, p.address));
    return answer ? answer : CU(cuGraphInstantiateWithFlags)(&made[made_count++], graph, 0);
}

static const char code[] = ".version 7.0\n.target sm_50\n.entry f() { ret; }\n";

/* None of it stays. */
static void grow(void)
{
    CUcontext context;
    CUmodule module;
    char code_file[32];
    int fd = memfd_create("code", 0);
    if (write(fd, code, sizeof code - 1) < 0)
        exit(1);
    snprintf(code_file, sizeof code_file, "/proc/self/fd/%d", fd);
    for (int i = 0; i < 7; i++) {
        int answer = i == 0   ? CU(cuCtxCreate)(&context, 0, 0)
                     : i == 1 ? CU(cuCtxCreate_v2)(&context, 0, 0)
                     : i == 2 ? CU(cuCtxCreate_v3)(&context, NULL, 0, 0, 0)
                     : i == 3 ? CU(cuModuleLoad)(&module, code_file)
                     : i == 4 ? CU(cuModuleLoadData)(&module, code)
                     : i == 5 ? CU(cuModuleLoadDataEx)(&module, code, 0, NULL, NULL)
                              : CU(cuModuleLoadFatBinary)(&module, code);
        printf("%d", answer);
        if (answer == CUDA_SUCCESS)
            MUST(i < 3 ? CU(cuCtxDestroy_v2)(context) : CU(cuModuleUnload)(module));
    }
    close(fd);
    printf("\n");
}

static int take_descriptors(void)
{
    struct rlimit few = {64, 64};
    int failed = setrlimit(RLIMIT_NOFILE, &few);
    while (dup(0) >= 0)
        ;
    return failed;
}

static void obey(const char *line, char **arguments)
{
    size_t number = 0, free, total;
    if (sscanf(line, "take %zu", &number) == 1)
        printf("%d\n", CU(cuMemAlloc_v2)(&last, number * MIB));
    else if (sscanf(line, "take-async %zu", &number) == 1)
        printf("%d\n", CU(cuMemAllocAsync)(&last, number * MIB, NULL));
    else if (sscanf(line, "keep %zu", &number) == 1)
        printf("%d\n", keep(number));
    else if (sscanf(line, "gaps %zu", &number) == 1)
        printf("%d\n", with_gaps(number));
    else if (sscanf(line, "bytes %zu", &number) == 1)
        printf("%d\n", CU(cuMemAlloc_v2)(&last, number));
    else if (sscanf(line, "context %zu", &number) == 1)
        printf("%d\n", in_context(number));
    else if (sscanf(line, "host %zu", &number) == 1)
        printf("%d\n", on_host(number));
    else if (sscanf(line, "graphs %zu", &number) == 1)
        graphs(number);
    else if (sscanf(line, "graph %zu", &number) == 1 || sscanf(line, "passing %zu", &number) == 1)
        printf("%d\n", make_graph(number, *line == 'p'));
    else if (sscanf(line, "launch %zu", &number) == 1)
        printf("%d\n", CU(cuGraphLaunch)(made[number], NULL));
    else if (strcmp(line, "trim\n") == 0)
        printf("%d\n", CU(cuDeviceGraphMemTrim)(0));
    else if (strcmp(line, "free-async\n") == 0)
        printf("%d\n", CU(cuMemFreeAsync)(last, NULL));
    else if (strcmp(line, "grow\n") == 0)
        grow();
    else if (strcmp(line, "no-files\n") == 0)
        printf("%d\n", take_descriptors());
    else if (strcmp(line, "free\n") == 0)
        printf("%d\n", CU(cuMemFree_v2)(last));
    else if (strcmp(line, "fork\n") == 0)
        printf("%d\n", child());
    else if (strcmp(line, "stray\n") == 0)
        printf("%d\n", stray());
    else if (strcmp(line, "visit\n") == 0)
        printf("%d\n", visit());
    else if (strcmp(line, "reset\n") == 0)
        printf("%d\n", reset());
    else if (strcmp(line, "exec\n") == 0)
        execv(arguments[0], arguments);
    else if (CU(cuMemGetInfo_v2)(&free, &total) == CUDA_SUCCESS)
        printf("%zu of %zu\n", free / MIB, total / MIB);
}

int main(int count, char **arguments)
{
    char line[64];
    (void)count;
    setvbuf(stdin, NULL, _IONBF, 0); /* what follows "exec" is for the one that comes */
    setvbuf(stdout, NULL, _IOLBF, 0);
    start(arguments[1]);
    printf("ready\n");
    while (fgets(line, sizeof line, stdin))
        obey(line, arguments);
    return 0;
}
