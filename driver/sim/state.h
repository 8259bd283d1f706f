/*
 * The state of a simulated host: one file, mapped by every process that loads
 * the simulated driver and by the Go package internal/sim, which includes this
 * header. It is the only description of the layout.
 *
 * A free entry is all zero and there are no counters, so the file is the same,
 * byte for byte, when a use of the host ends where it began.
 */
#ifndef COSPLAY_SIM_STATE_H
#define COSPLAY_SIM_STATE_H

#include <stdint.h>

#define SIM_MAGIC "COSPSIM"
#define SIM_VERSION 2

/* Where the library keeps the path of its state file; Go writes it there. */
#define SIM_PATH_MARK "cosplay-simulated-host-state-path"
#define SIM_PATH_SIZE 4096

enum {
    SIM_MAX_GPUS = 2048,
    SIM_MAX_CLIENTS = 1024,
    SIM_MAX_FAULTS = 16,
    SIM_MAX_CLOCKS = 512,
    SIM_MAX_PROFILES = 16,
    SIM_MAX_STARTS = 8,
    SIM_MAX_GPU_INSTANCES = 16,
    SIM_MAX_COMPUTE_INSTANCES = 8, /* of one GPU instance */
    SIM_MAX_PROCESSES = 64,
    SIM_WHOLE_GPU = -1, /* of a process that is in no GPU instance */
};

/*
 * A process on a GPU holds a lock on a byte of this file, far behind its end: the constant plus SIM_MAX_PROCESSES for
 * each GPU plus the process's index in the GPU's array. Unlike a pid, the lock shows in every container whether the
 * process is alive.
 */
#define SIM_PROCESS_LOCKS (1LL << 40)

enum {
    SIM_BY_PROCESS = 1,
    SIM_BY_HOLDERS = 2, /* memory that was exported: no process's own, and there as long as anybody holds its lock */
};

/* The effect of a fault on a call. */
enum {
    SIM_FAULT_ANSWER = 1, /* the call does nothing and answers code */
    SIM_FAULT_HANG = 2,   /* the call never returns */
    SIM_FAULT_IGNORE = 3, /* the call does nothing and answers success */
    SIM_FAULT_ABSENT = 4, /* the library that Go writes does not export the function */
};

enum {
    SIM_LOW_CLOCK_IDLE = 0, /* while no program uses the GPU */
    SIM_LOW_CLOCK_ALWAYS = 1,
    SIM_LOW_CLOCK_NEVER = 2,
};

/* The effect of a kernel launch. */
enum {
    SIM_COMPUTE_REFUSED = 0, /* the launch fails */
    SIM_COMPUTE_NONE = 1,    /* the launch succeeds, and nothing is computed */
};

struct sim_fault {
    char function[60]; /* "nvmlDeviceCreateGpuInstance"; empty is free */
    uint32_t gpu;      /* index of the GPU plus 1; 0 is every GPU */
    uint32_t nth;      /* strikes at the nth call from now and is spent; 0 strikes at every call */
    uint32_t action;
    uint32_t code; /* an nvmlReturn_t */
};

/* A process that has the driver open. */
struct sim_client {
    uint32_t pid;  /* 0 is free */
    uint32_t uses; /* copies of the library that it has initialised */
    uint64_t start_time;
};

/* A program on the GPU. */
struct sim_process {
    uint32_t pid; /* 0 is free */
    uint32_t memory_mib;
    int32_t gpu_instance; /* id, or SIM_WHOLE_GPU */
    int32_t compute_instance;
    uint32_t by_driver; /* SIM_BY_...: the simulated CUDA driver made it; free when its byte is not locked */
};

/* The id of an instance is its place in the array. */
struct sim_compute_instance {
    uint32_t used;
    uint32_t start; /* compute slices within the GPU instance */
    uint32_t size;
    char uuid[48]; /* "MIG-..." */
};

struct sim_gpu_instance {
    uint32_t used;
    uint32_t profile; /* index into the GPU's profiles */
    uint32_t start;   /* first memory slice */
    struct sim_compute_instance compute[SIM_MAX_COMPUTE_INSTANCES];
};

struct sim_profile {
    char name[32]; /* "1g.18gb" */
    uint32_t id;   /* as nvidia-smi counts them */
    uint32_t kind; /* NVML_GPU_INSTANCE_PROFILE_... */
    uint32_t sms;
    uint32_t memory_mib;
    uint32_t memory_slices;
    uint32_t compute_slices;
    uint32_t max_instances;
    uint32_t start_count;
    uint32_t starts[SIM_MAX_STARTS];
};

struct sim_gpu {
    /* The hardware of the GPU. */
    char name[92];
    uint32_t l2_kib; /* 0 in a file of an earlier version: unknown */
    char uuid[48];   /* "GPU-..." */
    char serial[24];

    /* Of a GPU that stands for one of another machine; all 0 in a file of an earlier version, as the bytes here were. */
    uint16_t pci_device;
    uint16_t unlocked_mhz; /* the SM clock without a lock; 0 is the lowest one while idle, otherwise the highest */
    uint16_t low_clock;    /* SIM_LOW_CLOCK_...: whether the driver reports a reason for a low clock */
    uint16_t held_open;    /* a program that NVML does not list has the GPU open: the driver forgets nothing */

    uint32_t pci_domain;
    uint32_t pci_bus;
    uint32_t pci_device_id;
    uint32_t brand;
    uint32_t architecture;
    uint32_t capability_major;
    uint32_t capability_minor;
    uint16_t ecc;
    uint16_t named_by_ids; /* MIG devices are called MIG-GPU-UUID/GI/CI, as by drivers before 470 */
    uint32_t sms;
    uint32_t cores;
    uint32_t memory_mib;
    uint32_t memory_clock_mhz;
    uint32_t bus_bits;
    uint32_t power_min_mw;
    uint32_t power_default_mw;
    uint32_t power_max_mw;
    uint32_t memory_slices; /* 0 without MIG */
    uint32_t compute_slices;
    uint32_t profile_count;
    uint32_t clock_count;
    struct sim_profile profiles[SIM_MAX_PROFILES];
    uint32_t clocks_mhz[SIM_MAX_CLOCKS]; /* ascending */

    /* How it is set. */
    uint32_t mig;
    uint32_t mig_pending;
    uint32_t persistence;
    uint32_t compute_mode;
    uint32_t power_limit_mw;
    uint32_t lock_min_mhz; /* the SM clock lock; both 0 is unlocked */
    uint32_t lock_max_mhz;

    /* The present state of the GPU. */
    uint32_t lost; /* 1: the driver lost the GPU; any other nvmlReturn_t: every call about it answers that */
    uint16_t temperature_c;
    uint16_t power_step_w; /* the driver rounds a power limit down to a multiple of it; 0 does not round */
    struct sim_gpu_instance instances[SIM_MAX_GPU_INSTANCES];
    struct sim_process processes[SIM_MAX_PROCESSES];
};

struct sim_host {
    char magic[8];
    uint32_t version;
    uint32_t gpu_count;
    uint64_t size;       /* of the file, bytes */
    char simulates[252]; /* "8 x h200" */
    uint32_t compute;    /* SIM_COMPUTE_...; 0 in a file of an earlier version, as the bytes here were */
    char driver_version[80];
    uint32_t cuda_version; /* 12040 is 12.4 */
    char boot_id[44];
    struct sim_client clients[SIM_MAX_CLIENTS];
    struct sim_fault faults[SIM_MAX_FAULTS];
    struct sim_gpu gpus[]; /* gpu_count */
};

#endif
