/* The driver's libraries, as a program of the session loads them. */
#ifndef COSPLAY_PROBE_LIBRARY_H
#define COSPLAY_PROBE_LIBRARY_H

#include "system.h"

#define MIB (1024ULL * 1024ULL)

/* Of libc and libdl; see the Makefile for why they have no version. */
void *dlopen(const char *path, int flags);
void *dlsym(void *library, const char *name);
char *dlerror(void);

/* Opens a library and prints "KEY ok", or the reason why not. */
void *load(const char *key, const char *name);

/* A function of a library, or what a library answers that does not have it. */
#define ASK(library, missing, name, ...)                               \
    ({                                                                 \
        typeof(&name) function = (typeof(&name))dlsym(library, #name); \
        function ? function(__VA_ARGS__) : missing;                    \
    })

/* A record of an answer that is no success: "KEY error CODE". */
void report_error(const char *key, uint64_t code);

/* NVML's part: the GPU's values, then the use of each process. */
void probe_nvml(void);
int nvml_is_there(void);

/* Bytes in NVML's list of processes; -1 for one that is not in it. */
int64_t listed(uint32_t pid);

/* How many others are in it. */
unsigned others(uint32_t pid);

/* Used and free, of the first layout. */
int nvml_memory(uint64_t memory[2]);

/* CUDA's part; and that of the second process, which takes only a little where others use the GPU. */
void probe_cuda(char **environment);
void probe_cuda_beside(int busy);

/* The command "device": CUDA's figures of a later device, and its cap. */
void probe_device(int ordinal);

/* Fills of a small block of memory of a device; the first two answer 0 when CUDA refuses. */
int cuda_fill_begin(int ordinal);
int cuda_fill(void);
void cuda_fill_end(void);

/* The command "load": it fills memory until standard input ends. */
void probe_load(int ordinal);

#endif
