/* The session's file of what is used, and the lock on it. */
#ifndef COSPLAY_CUDAFACADE_USAGE_H
#define COSPLAY_CUDAFACADE_USAGE_H

#include "facade.h"
#include "facade/slots.h"

/* Gives the process a slot, if it has none yet; NULL when there is no memory. */
struct process *attached(void);

/* lock_usage gives what unlock_usage wants. */
uint64_t lock_usage(struct process *process);
void unlock_usage(struct process *process, uint64_t held);

/* Frees the slots of processes that ended, and adds up the rest. The lock is held. */
void sweep(struct process *process);

#endif
