/*
 * cuGetProcAddress: the driver chooses a function by name, version and kind of stream. Its address identifies the
 * choice, and the facade returns its own function for it. A choice by name could give another version, with other
 * arguments.
 */
#include "facade.h"

static struct {
    const char *name;
    void *ours;
    void *drivers;
} covered[] = {
#define COVERED(name) {#name, (void *)name, NULL},
#include "covered.h"
#undef COVERED
};
enum { COVERED_COUNT = sizeof covered / sizeof *covered };

static void find_drivers(void)
{
    static int found;
    if (__atomic_load_n(&found, __ATOMIC_ACQUIRE))
        return;
    for (unsigned i = 0; i < COVERED_COUNT; i++)
        __atomic_store_n(&covered[i].drivers, driver_symbol(covered[i].name), __ATOMIC_RELAXED);
    __atomic_store_n(&found, 1, __ATOMIC_RELEASE);
}

static void swap(void **function)
{
    find_drivers();
    for (unsigned i = 0; i < COVERED_COUNT; i++)
        if (covered[i].drivers == *function) {
            *function = covered[i].ours;
            return;
        }
}

CUresult cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags)
{
    CUresult answer = DRIVER(cuGetProcAddress)(symbol, function, version, flags);
    if (answer == CUDA_SUCCESS && *function)
        swap(function);
    return answer;
}

CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags, int *status)
{
    CUresult answer = DRIVER(cuGetProcAddress_v2)(symbol, function, version, flags, status);
    if (answer == CUDA_SUCCESS && function && *function)
        swap(function);
    return answer;
}
