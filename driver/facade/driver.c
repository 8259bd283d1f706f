#include "driver.h"

#include <elf.h>

/* Of libc, like those of front.c. */
struct dl_info {
    const char *file;
    const void *base;
    const char *symbol;
    const void *address;
};
__attribute__((weak)) int dladdr(const void *address, struct dl_info *info);

/* NVML_ERROR_LIBRARY_NOT_FOUND, _FUNCTION_NOT_FOUND, _LIB_RM_VERSION_MISMATCH */
const struct refusals refusals = {.library_not_found = 12, .function_not_found = 13, .version_mismatch = 18};

struct range {
    uintptr_t from, to;
};

/* The address of a loaded library, found by the ELF header at its base. */
static struct range range_of(const void *base)
{
    const Elf64_Ehdr *elf = base;
    const Elf64_Phdr *segments = (const void *)((const char *)base + elf->e_phoff);
    uintptr_t end = 0;
    for (unsigned i = 0; i < elf->e_phnum; i++)
        if (segments[i].p_type == PT_LOAD && segments[i].p_vaddr + segments[i].p_memsz > end)
            end = segments[i].p_vaddr + segments[i].p_memsz;
    return (struct range){(uintptr_t)base, (uintptr_t)base + end};
}

static struct range driver_range(void)
{
    struct dl_info info = {0};
    void *function = driver_symbol("nvmlInit_v2");
    if (!function || !dladdr || !dladdr(function, &info) || !info.base)
        return (struct range){0};
    return range_of(info.base);
}

/* Set by the linker: the address of this library. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

/*
 * A return address in the driver is a call of the driver. One in the facade is
 * too: we called the driver, and it left by a jump into our export.
 */
static int is_driver(const void *caller)
{
    static struct range driver;
    uintptr_t at = (uintptr_t)caller;
    if (at >= (uintptr_t)__ehdr_start && at < (uintptr_t)_end)
        return 1;
    uintptr_t to = __atomic_load_n(&driver.to, __ATOMIC_ACQUIRE);
    if (!to) {
        struct range found = driver_range();
        __atomic_store_n(&driver.from, found.from, __ATOMIC_RELAXED);
        __atomic_store_n(&driver.to, to = found.to, __ATOMIC_RELEASE);
    }
    return at >= __atomic_load_n(&driver.from, __ATOMIC_RELAXED) && at < to;
}

const struct figures *figures_for(const void *caller)
{
    const struct figures *figures = the_figures();
    return !figures || figures == &unreadable || is_driver(caller) ? NULL : figures;
}
