/*
 * Every name of libcuda is exported, or a program that binds lazily dies at the
 * first one that is missing. The stubs are weak: where a source file of this
 * folder defines the function, the linker takes that. 801 is NOT_SUPPORTED.
 */
#define STUB(name) \
    __attribute__((weak, visibility("default"))) int name(void) { return 801; }

/* For cuGetProcAddress. */
struct named {
    const char *name;
    void *function;
};
#define NAMED(name) {#name, (void *)name},
