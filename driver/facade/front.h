/*
 * What every facade begins with: the driver's library behind it, and the figures
 * that it shows. Its two paths are room that Go writes over.
 */
#ifndef COSPLAY_FACADE_FRONT_H
#define COSPLAY_FACADE_FRONT_H

#include "figures.h"
#include "sim/base.h"

/* Stands for figures that are there and make no sense: no reason to show the truth. */
extern const struct figures unreadable;

/* NULL when there are none. Read once: a program sees the same GPU from its start to its end. */
const struct figures *the_figures(void);

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

/* What the facade answers itself, by codes that each library has of its own. */
extern const struct refusals {
    int library_not_found, function_not_found, version_mismatch;
} refusals;

#endif
