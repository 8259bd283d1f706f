/*
 * Every name of NVML is exported, or a program that binds lazily dies at the
 * first one that is missing. The stubs are weak: where a source file of this
 * folder defines the function, the linker takes that. 3 is NOT_SUPPORTED.
 */
#define STUB(name) \
    __attribute__((weak, visibility("default"))) int name(void) { return 3; }
