/*
 * A program of NVIDIA's runtime, which looks up some four hundred functions of
 * the driver: runtime LIBCUDART. Prints what it answers.
 */
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

static void *library;

static void *look_up(const char *name)
{
    void *function = dlsym(library, name);
    if (!function) {
        printf("%s\n", dlerror());
        exit(1);
    }
    return function;
}

int main(int count, char **arguments)
{
    int driver = -1, devices = -1;
    void *block = NULL, *entry = NULL;
    library = dlopen(arguments[count - 1], RTLD_NOW);
    if (!library) {
        printf("%s\n", dlerror());
        return 1;
    }
    const char *(*name)(int) = look_up("cudaGetErrorName");
    int (*version)(int *) = look_up("cudaDriverGetVersion");
    int (*how_many)(int *) = look_up("cudaGetDeviceCount");
    int (*allocate)(void **, size_t) = look_up("cudaMalloc");
    int (*entry_point)(const char *, void **, unsigned long) = look_up("cudaGetDriverEntryPoint");
    printf("driver %s", name(version(&driver)));
    printf(" %d\n", driver);
    printf("devices %s", name(how_many(&devices)));
    printf(" %d\n", devices);
    printf("malloc %s\n", name(allocate(&block, 1024)));
    printf("entry %s\n", name(entry_point("cuMemAlloc", &entry, 0)));
    return 0;
}
