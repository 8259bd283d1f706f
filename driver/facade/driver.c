#include "driver.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>

/* Go writes paths over these marks. */
__attribute__((used)) static volatile const char driver_path[FACADE_PATH_SIZE] = FACADE_DRIVER_MARK;
__attribute__((used)) static volatile const char figures_path[FACADE_PATH_SIZE] = FACADE_FIGURES_MARK;

/*
 * All that is taken from libc: what finds the driver's functions behind ours of
 * the same name. They are declared here, not by a header, and weak, so that they
 * stay without a version: they bind to libdl before glibc 2.34 and to libc since.
 * The driver needs libdl itself, so it is there; a program without it would get
 * an error from NVML and not fail to start. Under musl the facade loads as well,
 * but NVIDIA's library does not: the loader then names what it misses.
 */
struct dl_info {
    const char *file;
    const void *base;
    const char *symbol;
    const void *address;
};
__attribute__((weak)) void *dlopen(const char *path, int flags);
__attribute__((weak)) void *dlsym(void *library, const char *name);
__attribute__((weak)) int dladdr(const void *address, struct dl_info *info);
enum { LAZY = 1, ALREADY_LOADED = 4 };

/* NVML's errors that the facade itself answers. */
static int library_not_found(void) { return 12; }
static int function_not_found(void) { return 13; }
static int version_mismatch(void) { return 18; }

static const struct figures unreadable; /* stands for figures that make no sense */

static int sound(const struct figures *f, size_t size)
{
    if (size < sizeof *f || memcmp(f->magic, FIGURES_MAGIC, sizeof f->magic) != 0)
        return 0;
    if (f->version != FIGURES_VERSION || f->size != sizeof *f || f->clock_min_mhz > f->clock_max_mhz)
        return 0;
    return !f->name[sizeof f->name - 1] && !f->uuid[sizeof f->uuid - 1] && !f->slice[sizeof f->slice - 1];
}

/* NULL when there are none. What is there and cannot be read is no reason to show the truth. */
static const struct figures *read_figures(void)
{
    long fd = sys_open((const char *)figures_path, O_RDONLY);
    if (fd == -ENOENT || fd == -ENOTDIR)
        return NULL;
    long size = fd < 0 ? 0 : sys_size(fd);
    const struct figures *figures = size > 0 ? sys_map(fd, (size_t)size, 0) : NULL;
    if (fd >= 0)
        sys_close(fd);
    return figures && sound(figures, (size_t)size) ? figures : &unreadable;
}

/* Read once: a program sees the same GPU from its start to its end. */
static const struct figures *the_figures(void)
{
    static const struct figures *known;
    static int read;
    if (!__atomic_load_n(&read, __ATOMIC_ACQUIRE)) {
        __atomic_store_n(&known, read_figures(), __ATOMIC_RELAXED);
        __atomic_store_n(&read, 1, __ATOMIC_RELEASE);
    }
    return __atomic_load_n(&known, __ATOMIC_RELAXED);
}

/* Already loaded, since we need it; by path, since its soname is also ours. */
static void *driver(void)
{
    static void *library;
    if (!library && dlopen && dlsym)
        library = dlopen((const char *)driver_path, LAZY | ALREADY_LOADED);
    return library;
}

void *driver_function(void **found, const char *name)
{
    void *function = __atomic_load_n(found, __ATOMIC_RELAXED);
    if (function)
        return function;
    if (the_figures() == &unreadable)
        return version_mismatch;
    if (!driver())
        return library_not_found;
    function = dlsym(driver(), name);
    if (!function)
        function = function_not_found;
    __atomic_store_n(found, function, __ATOMIC_RELAXED);
    return function;
}

struct range {
    uintptr_t from, to;
};

/* Where a loaded library lies, by the ELF header at its base. */
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
    void *function = driver() ? dlsym(driver(), "nvmlInit_v2") : NULL;
    if (!function || !dladdr || !dladdr(function, &info) || !info.base)
        return (struct range){0};
    return range_of(info.base);
}

/* Set by the linker: where this library lies. */
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
