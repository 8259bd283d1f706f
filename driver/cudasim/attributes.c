/*
 * What cuDeviceGetAttribute answers, by the numbers of CUdevice_attribute. Figures of an architecture are those of the
 * CUDA C++ Programming Guide, "Technical Specifications per Compute Capability". What neither the guide nor the
 * simulated GPU states is not supported: a program must not mistake 0 for a figure.
 */
#include "cudasim.h"

enum { ANY = 0, VOLTA = 70, AMPERE = 80, HOPPER = 90 };

/* The same on each architecture since the named one, and 0 before. */
static const struct {
    int attribute, since, value;
} constants[] = {
    {1, ANY, 1024},       /* threads of a block */
    {2, ANY, 1024},       /* block, x */
    {3, ANY, 1024},       /* y */
    {4, ANY, 64},         /* z */
    {5, ANY, INT32_MAX},  /* grid, x */
    {6, ANY, 65535},      /* y */
    {7, ANY, 65535},      /* z */
    {8, ANY, 48 << 10},   /* shared memory of a block without opting in, bytes */
    {9, ANY, 64 << 10},   /* constant memory, bytes */
    {10, ANY, 32},        /* threads of a warp */
    {11, ANY, INT32_MAX}, /* pitch, bytes */
    {12, ANY, 64 << 10},  /* registers of a block */
    {14, ANY, 512},       /* alignment of textures, bytes */
    {15, ANY, 1},         /* copies while kernels run */
    {17, ANY, 0},         /* time limit for kernels */
    {18, ANY, 0},         /* integrated */
    {19, ANY, 1},         /* maps host memory */
    {21, ANY, 131072},    /* texture, 1D */
    {22, ANY, 131072},    /* 2D, width */
    {23, ANY, 65536},     /* 2D, height */
    {24, ANY, 16384},     /* 3D, width */
    {25, ANY, 16384},     /* 3D, height */
    {26, ANY, 16384},     /* 3D, depth */
    {27, ANY, 32768},     /* 2D layered, width */
    {28, ANY, 32768},     /* 2D layered, height */
    {29, ANY, 2048},      /* 2D layered, layers */
    {30, ANY, 512},       /* alignment of surfaces, bytes */
    {31, ANY, 1},         /* several kernels at once */
    {34, ANY, 0},         /* PCI device */
    {35, ANY, 0},         /* driver model of Windows */
    {41, ANY, 1},         /* unified addressing */
    {42, ANY, 32768},     /* 1D layered, width */
    {43, ANY, 2048},      /* 1D layered, layers */
    {45, ANY, 32768},     /* 2D gather, width */
    {46, ANY, 32768},     /* 2D gather, height */
    {51, ANY, 32},        /* alignment of texture pitch, bytes */
    {52, ANY, 32768},     /* cubemap */
    {53, ANY, 32768},     /* cubemap layered, width */
    {54, ANY, 2046},      /* cubemap layered, layers */
    {55, ANY, 32768},     /* surface, 1D */
    {56, ANY, 131072},    /* 2D, width */
    {57, ANY, 65536},     /* 2D, height */
    {58, ANY, 16384},     /* 3D, width */
    {59, ANY, 16384},     /* 3D, height */
    {60, ANY, 16384},     /* 3D, depth */
    {61, ANY, 32768},     /* 1D layered, width */
    {62, ANY, 2048},      /* 1D layered, layers */
    {63, ANY, 32768},     /* 2D layered, width */
    {64, ANY, 32768},     /* 2D layered, height */
    {65, ANY, 2048},      /* 2D layered, layers */
    {66, ANY, 32768},     /* cubemap */
    {67, ANY, 32768},     /* cubemap layered, width */
    {68, ANY, 2046},      /* cubemap layered, layers */
    {69, ANY, 1 << 28},   /* texture on linear memory, 1D */
    {70, ANY, 131072},    /* 2D, width */
    {71, ANY, 65000},     /* 2D, height */
    {72, ANY, 2097120},   /* 2D, pitch, bytes */
    {73, ANY, 32768},     /* 2D mipmapped, width */
    {74, ANY, 32768},     /* 2D mipmapped, height */
    {77, ANY, 32768},     /* 1D mipmapped */
    {78, ANY, 1},         /* priorities of streams */
    {79, ANY, 1},         /* global memory in L1 */
    {80, ANY, 1},         /* local memory in L1 */
    {82, ANY, 64 << 10},  /* registers of an SM */
    {83, ANY, 1},         /* managed memory */
    {84, ANY, 0},         /* one of several GPUs on a board */
    {86, ANY, 0},         /* atomics on host memory */
    {90, ANY, 1},         /* preemption of kernels */
    {95, ANY, 1},         /* cooperative launch */
    {102, ANY, 1},        /* virtual memory management */
    {103, ANY, 1},        /* memory handles as file descriptors */
    {104, ANY, 0},        /* as handles of Windows */
    {105, ANY, 0},        /* as older handles of Windows */
    {115, ANY, 1},        /* pools of memory */
    {120, HOPPER, 1}      /* clusters of blocks */
};

/* By compute capability, 90 for 9.0. Shared memory in KiB; FP32 rate over FP64 rate. */
static const struct architecture {
    unsigned capability;
    int shared_of_sm, shared_of_block, threads_of_sm, blocks_of_sm, fp32_over_fp64;
} architectures[] = {
    {60, 64, 48, 2048, 32, 2},    {61, 96, 48, 2048, 32, 32},  {70, 96, 96, 2048, 32, 2},
    {75, 64, 64, 1024, 16, 32},   {80, 164, 163, 2048, 32, 2}, {86, 100, 99, 1536, 16, 64},
    {89, 100, 99, 1536, 24, 64},  {90, 228, 227, 2048, 32, 2}, {100, 228, 227, 2048, 32, 2},
    {120, 100, 99, 1536, 24, 64},
};

enum { UNKNOWN = -1 };

static int of_architecture(unsigned capability, int attribute)
{
    for (unsigned i = 0; i < sizeof architectures / sizeof *architectures; i++) {
        const struct architecture *a = &architectures[i];
        if (a->capability != capability)
            continue;
        switch (attribute) {
        case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
            return a->threads_of_sm;
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
            return a->shared_of_sm << 10;
        case CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO:
            return a->fp32_over_fp64;
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
            return a->shared_of_block << 10;
        case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
            return a->blocks_of_sm;
        case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK:
            return capability >= AMPERE ? 1 << 10 : 0;
        default:
            return UNKNOWN;
        }
    }
    return UNKNOWN;
}

/*
 * Of a client of MPS the driver shows the part of the SMs that its percentage gives, on Volta and later. MPS rounds it
 * down to steps of two: PartSMs in Go is the same.
 */
static unsigned shown_sms(const struct sim_gpu *gpu, unsigned sms)
{
    const char *percentage = getenv ? getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE") : NULL;
    uint64_t percent = percentage && *percentage ? number(percentage) : 0;
    if (gpu->capability_major * 10 < VOLTA || percent == 0 || percent >= 100)
        return sms;
    unsigned part = (unsigned)(percent * sms / 200 * 2);
    return part ? part : 2;
}

static int of_gpu(const struct device *device, int attribute)
{
    const struct sim_gpu *gpu = gpu_of(device);
    const struct sim_profile *profile = profile_at(device);
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
        return (int)gpu->clocks_mhz[gpu->clock_count - 1] * 1000;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        return (int)shown_sms(gpu, profile ? profile->sms : gpu->sms);
    case CU_DEVICE_ATTRIBUTE_COMPUTE_MODE:
        return (int)gpu->compute_mode;
    case CU_DEVICE_ATTRIBUTE_ECC_ENABLED:
        return (int)gpu->ecc;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
        return (int)gpu->pci_bus;
    case CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID:
        return (int)gpu->pci_domain;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
        return (int)gpu->memory_clock_mhz * 1000;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
        return (int)gpu->bus_bits;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: {
        uint64_t bytes = (uint64_t)gpu->l2_kib << 10;
        return !bytes ? UNKNOWN : (int)(profile ? bytes * profile->memory_slices / gpu->memory_slices : bytes);
    }
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        return (int)gpu->capability_major;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        return (int)gpu->capability_minor;
    default:
        return UNKNOWN;
    }
}

static int attribute_of(const struct device *device, int attribute)
{
    const struct sim_gpu *gpu = gpu_of(device);
    unsigned capability = gpu->capability_major * 10 + gpu->capability_minor;
    for (unsigned i = 0; i < sizeof constants / sizeof *constants; i++)
        if (constants[i].attribute == attribute)
            return (int)capability >= constants[i].since ? constants[i].value : 0;
    int value = of_gpu(device, attribute);
    return value != UNKNOWN ? value : of_architecture(capability, attribute);
}

CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device)
{
    DEVICE_CALL_OF(device, value && attribute > 0);
    int answer = attribute_of(visit.device, attribute);
    if (answer == UNKNOWN)
        return CUDA_ERROR_NOT_SUPPORTED;
    *value = answer;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetProperties(CUdevprop *properties, CUdevice device)
{
    DEVICE_CALL_OF(device, properties);
    const struct device *d = visit.device;
    *properties = (CUdevprop){
        .max_threads_per_block = attribute_of(d, 1),
        .max_threads = {attribute_of(d, 2), attribute_of(d, 3), attribute_of(d, 4)},
        .max_grid = {attribute_of(d, 5), attribute_of(d, 6), attribute_of(d, 7)},
        .shared_memory = attribute_of(d, 8),
        .constant_memory = attribute_of(d, 9),
        .warp = attribute_of(d, 10),
        .pitch = attribute_of(d, 11),
        .registers = attribute_of(d, 12),
        .clock_khz = attribute_of(d, CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
        .texture_align = attribute_of(d, 14),
    };
    return CUDA_SUCCESS;
}
