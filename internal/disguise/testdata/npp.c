/* A program of a library with NVIDIA's runtime linked into it: npp LIBNPPC. Prints what it answers. */
#define _GNU_SOURCE 1
#include <dlfcn.h>
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
    library = dlopen(arguments[count - 1], RTLD_NOW);
    if (!library) {
        printf("%s\n", dlerror());
        return 1;
    }
    int (*sms)(void) = look_up("nppGetGpuNumSMs");
    int (*threads)(void) = look_up("nppGetMaxThreadsPerBlock");
    /* Not the name: where there is no GPU it answers with what lay on its stack. */
    printf("sms %d, threads %d\n", sms(), threads());
    return 0;
}
