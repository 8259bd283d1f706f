#include "library.h"

#include "cuda/cuda.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>

enum { MISSING = CUDA_ERROR_NOT_FOUND };

/*
 * The probe leaves this much below the cap, because a driver allocates in steps. If the session's own programs use
 * the GPU, the probe takes only a little, so that they do not run out of memory.
 */
static const uint64_t margin = 32 * MIB, step = 2 * MIB;
enum { GENTLY = 16 };

static void *library;
static CUdevice device;
static uint64_t total; /* as CUDA reports it */

#define CUDA(name, ...) ASK(library, MISSING, name, __VA_ARGS__)

/* Opens the driver and a context on the GPU; returns 0 on failure. */
static int open_cuda(int ordinal, const char *loaded, const char *begun)
{
    library = load(loaded, "libcuda.so.1");
    if (!library)
        return 0;
    int code = CUDA(cuInit, 0);
    CUcontext context;
    if (!code)
        code = CUDA(cuDeviceGet, &device, ordinal);
    if (!code)
        code = CUDA(cuDevicePrimaryCtxRetain, &context, device);
    if (!code)
        code = CUDA(cuCtxSetCurrent, context);
    if (code)
        report_error(begun, (uint64_t)code);
    else
        report(begun, "ok");
    return !code;
}

static void report_uuid(void)
{
    CUuuid uuid;
    int code = CUDA(cuDeviceGetUuid, &uuid, device);
    if (code) {
        report_error("cuda.uuid", (uint64_t)code);
        return;
    }
    struct text text = {0};
    add(&text, "GPU");
    for (unsigned i = 0; i < 16; i++) {
        if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10)
            add(&text, "-");
        add_number(&text, (uint8_t)uuid.bytes[i], 16, 2);
    }
    for (char *at = text.s + 3; *at; at++)
        *at |= 32; /* digits and dashes stay */
    report("cuda.uuid", text.s);
}

static void report_identity(void)
{
    int count = 0;
    char name[256] = "";
    size_t bytes = 0;
    int code = CUDA(cuDeviceGetCount, &count);
    code ? report_error("cuda.count", (uint64_t)code) : report_number("cuda.count", (uint64_t)count);
    code = CUDA(cuDeviceGetName, name, sizeof name, device);
    code ? report_error("cuda.name", (uint64_t)code) : report("cuda.name", name);
    code = CUDA(cuDeviceTotalMem_v2, &bytes, device);
    code ? report_error("cuda.total", (uint64_t)code) : report_number("cuda.total", bytes);
    report_uuid();
}

static uint64_t free_now(void)
{
    size_t free = 0, all = 0;
    if (CUDA(cuMemGetInfo_v2, &free, &all))
        return 0;
    total = all;
    return free;
}

/* Tries to allocate and prints "KEY BYTES CODE"; returns 0 if refused. */
static CUdeviceptr try(const char *key, uint64_t bytes)
{
    CUdeviceptr block = 0;
    int code = CUDA(cuMemAlloc_v2, &block, bytes);
    report_numbers(key, (uint64_t[]){bytes, (uint64_t)code}, 2);
    return code ? 0 : block;
}

static void drop(CUdeviceptr block)
{
    if (block)
        CUDA(cuMemFree_v2, block);
}

/* Above the cap, then below it; what was allocated is given. */
static CUdeviceptr both_sides(const char *above, const char *below, uint64_t over, uint64_t take)
{
    drop(try(above, over));
    return try(below, take);
}

static uint64_t just_below(uint64_t free, int busy)
{
    uint64_t bytes = busy ? free / GENTLY : free > margin ? free - margin : 0;
    return bytes / step * step;
}

/* Used and free by NVML, free by CUDA, and the bytes listed for both processes, plus one: 0 is not listed. */
static void report_books(const char *key, uint32_t me, uint32_t other)
{
    uint64_t memory[2] = {0}, free = free_now(); /* first: the query measures the memory of contexts again */
    if (!nvml_memory(memory))
        return;
    uint64_t mine = (uint64_t)(listed(me) + 1), theirs = other ? (uint64_t)(listed(other) + 1) : 0;
    report_numbers(key, (uint64_t[]){memory[0], memory[1], free, mine, theirs}, 5);
}

/* Starts a new program and not a fork, because CUDA does not survive a fork. It reads commands from standard input. */
static long begin_second(char **environment, int busy, int *line)
{
    int ends[2];
    char *arguments[] = {"cosplay-probe", "beside", busy ? "gently" : NULL, NULL};
    long failed = system_call(SYS_socketpair, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, (long)ends);
    if (failed < 0)
        return failed;
    report_all();
    *line = ends[0];
    long pid = system_call(SYS_clone, SIGCHLD, 0, 0, 0);
    if (pid != 0) {
        sys_close(ends[1]);
        return pid;
    }
    system_call(SYS_dup3, ends[1], 0, 0, 0);
    system_call(SYS_execve, (long)"/proc/self/exe", (long)arguments, (long)environment, 0);
    leave(127);
}

static void with_a_second(char **environment, int busy)
{
    int line = -1, status;
    char ready;
    uint64_t free = free_now();
    CUdeviceptr half = try("two.first", busy ? just_below(free, 1) : free / 2 / step * step);
    long pid = begin_second(environment, busy, &line);
    if (pid > 0) {
        sys_read(line, &ready, 1); /* it holds what it could get, or has ended */
        report_books("two.books", sys_pid(), (uint32_t)pid);
        sys_close(line);
        system_call(SYS_wait4, pid, (long)&status, 0, 0);
    }
    drop(half);
    report_books("after.books", sys_pid(), pid > 0 ? (uint32_t)pid : 0);
}

void probe_cuda(char **environment)
{
    if (!open_cuda(0, "cuda.load", "cuda.init"))
        return;
    report_identity();
    uint64_t before = free_now();
    report_numbers("cuda.info", (uint64_t[]){total, before}, 2);
    int busy = others(sys_pid()) > 0;
    report_number("busy", (uint64_t)busy);
    report_books("before.books", sys_pid(), 0);
    CUdeviceptr block =
        both_sides("one.above", "one.below", busy ? total + step : before + step, just_below(before, busy));
    report_books("one.books", sys_pid(), 0);
    drop(block);
    with_a_second(environment, busy);
}

void probe_device(int ordinal)
{
    if (!open_cuda(ordinal, "cuda.load", "cuda.init"))
        return;
    report_identity();
    uint64_t free = free_now();
    int busy = total > free + margin;
    report_numbers("cuda.info", (uint64_t[]){total, free}, 2);
    drop(both_sides("one.above", "one.below", busy ? total + step : free + step, just_below(free, busy)));
}

void probe_cuda_beside(int busy)
{
    if (!open_cuda(0, "two.load", "two.init"))
        return;
    char wait = '.';
    uint64_t free = free_now();
    CUdeviceptr block = both_sides("two.above", "two.below", busy ? total + step : free + step, just_below(free, busy));
    report_all();
    system_call(SYS_write, 0, (long)&wait, 1, 0);
    sys_read(0, &wait, 1);
    drop(block);
}

static CUdeviceptr filled;
static uint64_t fill_bytes;
static const uint64_t most_filled = 64 * MIB;

int cuda_fill_begin(int ordinal)
{
    if (!open_cuda(ordinal, "load.load", "load.init"))
        return 0;
    fill_bytes = just_below(free_now(), 1); /* little, whichever process else uses the slice */
    if (fill_bytes > most_filled)
        fill_bytes = most_filled;
    filled = try("load.take", fill_bytes);
    if (filled && cuda_fill())
        report("load.fill", "ok");
    return filled != 0;
}

int cuda_fill(void)
{
    int code = CUDA(cuMemsetD8_v2, filled, 1, fill_bytes);
    if (!code)
        code = CUDA(cuCtxSynchronize);
    if (code)
        report_error("load.fill", (uint64_t)code);
    return !code;
}

void cuda_fill_end(void) { drop(filled); }
