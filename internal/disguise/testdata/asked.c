/*
 * Writes down what a program asks of the CUDA driver, and whether it is given
 * something: loaded before all else, into the file that ASKED names. A program
 * asks by dlsym for cuGetProcAddress, and that for the rest.
 */
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *(*real_dlsym)(void *, const char *);
static FILE *list;

static void find_dlsym(void)
{
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"};
    for (unsigned i = 0; !real_dlsym && i < 3; i++)
        real_dlsym = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
    list = fopen(getenv("ASKED"), "a");
    if (!real_dlsym || !list)
        abort();
    setlinebuf(list);
}

static int (*version_1)(const char *, void **, int, uint64_t);
static int (*version_2)(const char *, void **, int, uint64_t, int *);

static int ask_1(const char *, void **, int, uint64_t);
static int ask_2(const char *, void **, int, uint64_t, int *);

/* What was given, with the two that give instead of the driver's. */
static int given(int answer, const char *name, void **function, int version, uint64_t flags)
{
    int there = answer == 0 && function && *function;
    fprintf(list, "%s,%d,%d answers %d, %s\n", name, version, (int)flags, answer, there ? "given" : "nothing");
    if (!there || strcmp(name, "cuGetProcAddress") != 0)
        return answer;
    if (version >= 12000) {
        version_2 = *function;
        *function = (void *)ask_2;
    } else {
        version_1 = *function;
        *function = (void *)ask_1;
    }
    return answer;
}

static int ask_1(const char *name, void **function, int version, uint64_t flags)
{
    return given(version_1(name, function, version, flags), name, function, version, flags);
}

static int ask_2(const char *name, void **function, int version, uint64_t flags, int *status)
{
    return given(version_2(name, function, version, flags, status), name, function, version, flags);
}

/* Only the program's questions: not those of the driver, nor of the facade. */
void *dlsym(void *library, const char *name)
{
    Dl_info caller;
    if (!real_dlsym)
        find_dlsym();
    void *function = real_dlsym(library, name);
    if (strncmp(name, "cu", 2) != 0 || strncmp(name, "cuda", 4) == 0)
        return function;
    if (dladdr(__builtin_return_address(0), &caller) && strstr(caller.dli_fname, "libcuda.so"))
        return function;
    fprintf(list, "dlsym %s, %s\n", name, function ? "given" : "nothing");
    if (function && strcmp(name, "cuGetProcAddress") == 0) {
        version_1 = function;
        return (void *)ask_1;
    }
    if (function && strcmp(name, "cuGetProcAddress_v2") == 0) {
        version_2 = function;
        return (void *)ask_2;
    }
    return function;
}
