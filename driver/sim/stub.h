/*
 * The library exports every name of NVML; otherwise a program that binds lazily dies at the first missing one. The
 * stubs are weak, so the linker prefers a definition in a source file of this folder. 3 is NOT_SUPPORTED.
 */
#define STUB(name) \
    __attribute__((weak, visibility("default"))) int name(void) { return 3; }
