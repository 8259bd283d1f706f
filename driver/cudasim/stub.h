/*
 * The library exports every name of libcuda; otherwise a program that binds lazily dies at the first missing one. The
 * stubs are weak, so the linker prefers a definition in a source file of this folder. 801 is NOT_SUPPORTED.
 */
#define STUB(name) \
    __attribute__((weak, visibility("default"))) int name(void) { return 801; }

/* For cuGetProcAddress. */
struct named {
    const char *name;
    void *function;
};
#define NAMED(name) {#name, (void *)name},
