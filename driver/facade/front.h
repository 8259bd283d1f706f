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

#endif
