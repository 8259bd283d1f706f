/* The library behind the facade, and whether there is anything to disguise. */
#ifndef COSPLAY_FACADE_DRIVER_H
#define COSPLAY_FACADE_DRIVER_H

#include "front.h"

/*
 * What to show to the code that a function returns to; NULL where the driver's
 * answer goes through unchanged: when the session has no figures, and when it is
 * the driver that asks. NVML calls its own exports, and must find what it made.
 */
const struct figures *figures_for(const void *caller);

/* Every function begins with this. */
#define DISGUISE(name, ...)                                                  \
    const struct figures *target = figures_for(__builtin_return_address(0)); \
    if (!target) {                                                           \
        return DRIVER(name)(__VA_ARGS__);                                    \
    }

#endif
