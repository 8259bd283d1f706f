#include "front.h"

#include <errno.h>
#include <fcntl.h>

/* Go writes paths over these marks. */
__attribute__((used)) static volatile const char driver_path[FACADE_PATH_SIZE] = FACADE_DRIVER_MARK;
__attribute__((used)) static volatile const char figures_path[FACADE_PATH_SIZE] = FACADE_FIGURES_MARK;

/*
 * The functions of libc that find the driver's functions behind the facade's functions of the same name. They are
 * declared here, weak and not by a header, so that they have no version: they bind to libdl before glibc 2.34 and to
 * libc since. The driver needs libdl itself, so it is loaded; in a program without it the call would return an error
 * and the program would still start. A facade also loads under musl, but NVIDIA's library does not: the loader then
 * names the missing symbols.
 */
__attribute__((weak)) void *dlopen(const char *path, int flags);
__attribute__((weak)) void *dlsym(void *library, const char *name);
__attribute__((weak)) int dladdr(const void *address, void *about);
enum { LAZY = 1, ALREADY_LOADED = 4 };

struct about { /* Dl_info */
    const char *path;
    void *base;
    const char *symbol;
    void *address;
};

const struct figures unreadable;

static unsigned devices = 1;

static int sound(const struct figures *f, uint32_t version)
{
    if (memcmp(f->magic, FIGURES_MAGIC, sizeof f->magic) != 0)
        return 0;
    if (f->version != version || f->size != sizeof *f || f->clock_min_mhz > f->clock_max_mhz)
        return 0;
    return !f->name[sizeof f->name - 1] && !f->uuid[sizeof f->uuid - 1] && !f->slice[sizeof f->slice - 1];
}

/* A file of one device may be longer than its figures; one of several has nothing else. */
static unsigned sound_devices(const struct figures *figures, size_t size)
{
    if (size < sizeof *figures)
        return 0;
    if (sound(figures, FIGURES_VERSION))
        return 1;
    size_t count = size / sizeof *figures;
    if (size % sizeof *figures || count < 2 || count > MOST_DEVICES)
        return 0;
    for (size_t i = 0; i < count; i++)
        if (!sound(&figures[i], FIGURES_VERSION_OF_SEVERAL))
            return 0;
    return (unsigned)count;
}

/*
 * Sessions that are folders share the content of this library, so its paths are relative to where it was loaded. Returns
 * NULL where that is not known.
 */
static const char *beside(const char *path, char whole[FACADE_PATH_SIZE])
{
    if (!starts_with(path, FACADE_ORIGIN))
        return path;
    struct about about = {0};
    if (!dladdr || !dladdr((const void *)figures_path, &about) || !about.path || about.path[0] != '/')
        return NULL;
    size_t folder = length(about.path), rest = length(path) - length(FACADE_ORIGIN);
    while (about.path[folder - 1] != '/')
        folder--;
    if (folder + rest > FACADE_PATH_SIZE)
        return NULL;
    memcpy(whole, about.path, folder - 1);
    memcpy(whole + folder - 1, path + length(FACADE_ORIGIN), rest + 1);
    return whole;
}

long open_beside(const char *path, int flags)
{
    char whole[FACADE_PATH_SIZE];
    path = beside(path, whole);
    return path ? sys_open(path, flags) : -EACCES; /* not as if it did not exist, which would show the physical GPU */
}

static const struct figures *read_figures(void)
{
    long fd = open_beside((const char *)figures_path, O_RDONLY);
    if (fd == -ENOENT || fd == -ENOTDIR)
        return NULL;
    long size = fd < 0 ? 0 : sys_size(fd);
    const struct figures *figures = size > 0 ? sys_map(fd, (size_t)size, 0) : NULL;
    if (fd >= 0)
        sys_close(fd);
    unsigned count = figures ? sound_devices(figures, (size_t)size) : 0;
    if (!count)
        return &unreadable;
    __atomic_store_n(&devices, count, __ATOMIC_RELAXED);
    return figures;
}

const struct figures *the_figures(void)
{
    static const struct figures *known;
    static int read;
    if (!__atomic_load_n(&read, __ATOMIC_ACQUIRE)) {
        __atomic_store_n(&known, read_figures(), __ATOMIC_RELAXED);
        __atomic_store_n(&read, 1, __ATOMIC_RELEASE);
    }
    return __atomic_load_n(&known, __ATOMIC_RELAXED);
}

unsigned figures_count(void)
{
    (void)the_figures();
    return __atomic_load_n(&devices, __ATOMIC_RELAXED);
}

/*
 * The driver is already loaded, because the facade needs it. It is opened by path, because the facade has the same
 * soname.
 */
static void *driver(void)
{
    static void *library;
    char whole[FACADE_PATH_SIZE];
    if (!library && dlopen && dlsym) {
        /* Not by $ORIGIN: where a tool replaces dlopen, that is the folder of the tool. */
        const char *path = beside((const char *)driver_path, whole);
        library = path ? dlopen(path, LAZY | ALREADY_LOADED) : NULL;
    }
    return library;
}

int driver_is_there(void) { return driver() != NULL; }

void *driver_symbol(const char *name) { return driver() ? dlsym(driver(), name) : NULL; }

static int library_not_found(void) { return refusals.library_not_found; }
static int function_not_found(void) { return refusals.function_not_found; }
static int version_mismatch(void) { return refusals.version_mismatch; }

void *driver_function(void **found, const char *name)
{
    void *function = __atomic_load_n(found, __ATOMIC_RELAXED);
    if (function)
        return function;
    if (the_figures() == &unreadable)
        return version_mismatch;
    if (!driver_is_there())
        return library_not_found;
    function = driver_symbol(name);
    if (!function)
        function = function_not_found;
    __atomic_store_n(found, function, __ATOMIC_RELAXED);
    return function;
}
