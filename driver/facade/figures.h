/*
 * The figures file: the values that a session shows of its GPUs. The Go package internal/disguise includes this header
 * and writes the file; the facade maps it read-only. This header is the only description of the layout.
 */
#ifndef COSPLAY_FACADE_FIGURES_H
#define COSPLAY_FACADE_FIGURES_H

#include <stdint.h>

#define FIGURES_MAGIC "COSPFIG"

/*
 * Version 1 is one GPU. Version 2 is several: one struct figures for each device of the session, one after another, in
 * the order of the devices' indices. In all of them name and figures are the target's.
 */
#define FIGURES_VERSION 1
#define FIGURES_VERSION_OF_SEVERAL 2
enum { MOST_DEVICES = 16 };

/*
 * The placeholders that Go overwrites in the library. The first mark is the library's only DT_NEEDED entry: the
 * dynamic loader then opens the driver's library by that path. The others are constants in the library.
 */
#define FACADE_NEEDED_MARK "cosplay-facade-needs"
#define FACADE_DRIVER_MARK "cosplay-facade-driver-path"
#define FACADE_FIGURES_MARK "cosplay-facade-figures-path"
#define FACADE_USAGE_MARK "cosplay-facade-usage-path"
#define FACADE_PATH_SIZE 4096
#define FACADE_ORIGIN "$ORIGIN" /* the folder of the facade, as the loader names it */

struct figures {
    char magic[8];
    uint32_t version;
    uint32_t size; /* of this struct, bytes */

    char name[96];  /* "NVIDIA GeForce RTX 2060" */
    char uuid[48];  /* as shown: "GPU-..." */
    char slice[80]; /* the driver's name: "MIG-...", or "GPU-..." for a whole GPU */

    uint32_t brand;        /* NVML_BRAND_... */
    uint32_t architecture; /* NVML_DEVICE_ARCH_... */
    uint32_t consumer;     /* a card for games: no ECC, no application clocks */
    uint32_t memory_mib;
    uint32_t bus_bits;
    uint32_t sms;
    uint32_t cores;
    uint32_t pcie_generation;

    uint32_t power_limit_mw;
    uint32_t power_default_mw;
    uint32_t power_min_mw;
    uint32_t power_max_mw;

    uint32_t clock_min_mhz; /* of the SMs */
    uint32_t clock_max_mhz;
    uint32_t memory_clock_mhz;

    uint32_t own_slice; /* no other process uses it: all use that the driver reports is the session's */
};

#endif
