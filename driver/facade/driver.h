/* The library behind the facade, and whether there is anything to disguise. */
#ifndef COSPLAY_FACADE_DRIVER_H
#define COSPLAY_FACADE_DRIVER_H

#include "front.h"

/*
 * The figures to show to the calling code; NULL if the driver's answer passes through unchanged: if the session has
 * no figures, or if the driver itself calls. NVML calls its own exported functions, and must get its own values.
 */
const struct figures *figures_for(const void *caller);

/* Every function begins with this. */
#define DISGUISE(name, ...)                                                  \
    const struct figures *target = figures_for(__builtin_return_address(0)); \
    if (!target) {                                                           \
        return DRIVER(name)(__VA_ARGS__);                                    \
    }

#endif
