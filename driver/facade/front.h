/*
 * The part that the NVML facade and the CUDA facade share: it opens the driver's library and maps the figures file. The
 * Go program writes the paths of both into the library, over the placeholders of figures.h.
 */
#ifndef COSPLAY_FACADE_FRONT_H
#define COSPLAY_FACADE_FRONT_H

#include "figures.h"
#include "sim/base.h"

/* Replaces figures that are invalid, so that the facade does not show the physical GPU. */
extern const struct figures unreadable;

/* NULL when there are none. Read once: a program sees the same GPU from its start to its end. */
const struct figures *the_figures(void);

/* How many devices the figures are of: they follow one another. 1 where there are none. */
unsigned figures_count(void);

/* The driver's own function; NULL when it has none of that name, or is not there. */
void *driver_symbol(const char *name);
int driver_is_there(void);

/*
 * The driver's own function. Where it has none, one that answers so. Calls to
 * the driver from here always go this way, never through our own exports.
 */
void *driver_function(void **found, const char *name);

#define DRIVER(name)                                       \
    ({                                                     \
        static void *found;                                \
        (__typeof__(&name))driver_function(&found, #name); \
    })

/* Opens a file by its path, or by FACADE_ORIGIN and its path from the folder of the facade. */
long open_beside(const char *path, int flags);

/* Errors that the facade returns itself, with the codes of each library. */
extern const struct refusals {
    int library_not_found, function_not_found, version_mismatch;
} refusals;

#endif
