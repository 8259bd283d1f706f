/*
 * A program of no libc in particular: it starts by itself, and what it takes from
 * libc has no version: loads MIB. It prints the GPU's name and memory, and how it is
 * answered to one MiB more than that, and to just that.
 */
#include "cuda/cuda.h"

int printf(const char *format, ...);
int fflush(void *stream);
int atoi(const char *number);
void _exit(int code) __attribute__((noreturn));

#define MIB (1024UL * 1024UL)

__attribute__((noreturn, used)) static void begin(long *stack)
{
    char name[64];
    size_t total = 0;
    CUcontext context;
    CUdeviceptr block = 0;
    char **arguments = (char **)(stack + 1);
    size_t most = (size_t)atoi(arguments[1]);
    int answer = cuInit(0);
    answer |= cuCtxCreate_v2(&context, 0, 0);
    answer |= cuDeviceGetName(name, sizeof name, 0) | cuDeviceTotalMem_v2(&total, 0);
    printf("%d %s %zu", answer, name, total / MIB);
    printf(" %d", cuMemAlloc_v2(&block, (most + 1) * MIB));
    printf(" %d", cuMemAlloc_v2(&block, most * MIB));
    printf(" %d\n", cuMemFree_v2(block));
    fflush(NULL);
    _exit(0);
}

#if defined(__x86_64__)
__asm__(".globl _start\n_start: mov %rsp, %rdi\n and $-16, %rsp\n call begin\n");
#else
__asm__(".globl _start\n_start: mov x0, sp\n bl begin\n");
#endif
