/*
 * Queries NVML and CUDA as a program of the session would, allocates just below and above the cap, alone and beside a
 * second process, and prints the answers as records.
 */
#include "library.h"

#include "facade/usage.h"

enum { LAZY = 1, GLANCE_SECONDS = 5 };

int __libc_start_main(int (*run)(int, char **, char **), int count, char **arguments, void (*init)(void),
                      void (*fini)(void), void (*loader)(void), void *stack);
int setenv(const char *name, const char *value, int overwrite);
unsigned alarm(unsigned seconds);

#if defined(__x86_64__)
__asm__(
    ".globl _start\n_start:\n xor %ebp, %ebp\n mov %rsp, %rdi\n mov %rdx, %rsi\n and $-16, %rsp\n call begin\n hlt\n");
#else
__asm__(".globl _start\n_start:\n mov x29, #0\n mov x30, #0\n mov x1, x0\n mov x0, sp\n bl begin\n");
#endif

void *load(const char *key, const char *name)
{
    void *library = dlopen(name, LAZY);
    if (library) {
        report(key, "ok");
        return library;
    }
    const char *why = dlerror();
    report(key, why ? why : "it cannot be loaded");
    return NULL;
}

void report_error(const char *key, uint64_t code)
{
    struct text line = {0};
    add(&line, "error ");
    add_number(&line, code, 10, 1);
    report(key, line.s);
}

static int run(int count, char **arguments, char **environment)
{
    setenv(USAGE_TRIAL_VARIABLE, "1", 1);
    if (count > 1 && equal(arguments[1], "beside")) {
        probe_cuda_beside(count > 2);
    } else if (count > 1 && equal(arguments[1], "load")) {
        probe_load(count > 2 ? (int)number(arguments[2]) : 0);
    } else if (count > 2 && equal(arguments[1], "device")) {
        probe_device((int)number(arguments[2]));
    } else if (count > 1 && equal(arguments[1], "glance")) {
        alarm(GLANCE_SECONDS); /* no client can end it in a container */
        probe_nvml();
    } else {
        probe_nvml();
        probe_cuda(environment);
    }
    report_all();
    return 0;
}

/* Like the C library's start files, so that the library works for the driver. */
__attribute__((used)) _Noreturn void begin(long *stack, void (*loader)(void))
{
    __libc_start_main(run, (int)stack[0], (char **)(stack + 1), NULL, NULL, loader, stack);
    leave(127);
}
