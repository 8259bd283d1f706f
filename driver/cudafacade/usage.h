/* The session's usage file, and the lock on it. */
#ifndef COSPLAY_CUDAFACADE_USAGE_H
#define COSPLAY_CUDAFACADE_USAGE_H

#include "facade.h"
#include "facade/slots.h"

/* Gives the process a slot of the device if it has none yet; NULL if no slot or no memory is available. */
struct account *attached(const struct figures *target);

/* lock_usage returns the argument of unlock_usage. */
uint64_t lock_usage(struct account *me);
void unlock_usage(struct account *me, uint64_t held);

/* Frees the slots of processes that ended, and adds up the rest. The lock is held. */
void sweep(struct account *me);

/* Bytes of all programs that only try what they would get. The lock is held, lest one takes or gives meanwhile. */
uint64_t used_on_trial(const struct account *me);

/* Whether another program, among those that this one can observe, is a trial. The caller holds the lock. */
int beside_a_trial(struct account *me);

#endif
