/* Loads libraries by name, as programs do, and prints which files came. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

static const char *file(void *library, const char *symbol)
{
    Dl_info info;
    void *at = library ? dlsym(library, symbol) : NULL;
    return at && dladdr(at, &info) ? info.dli_fname : "nothing";
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        void *library = dlopen(argv[i], RTLD_NOW);
        printf("%s: front %s, behind %s\n", argv[i], file(library, "front"), file(library, "behind"));
    }
    return 0;
}
