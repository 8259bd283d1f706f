/*
 * What the programs that cosplay verify runs in a session share: records on
 * standard output, and system calls. As with the libraries no symbol of libc has
 * a version, so that one file runs under every glibc.
 */
#ifndef COSPLAY_PROBE_SYSTEM_H
#define COSPLAY_PROBE_SYSTEM_H

#include "sim/base.h"

/* A record is a key, a blank, a value and a zero: values may hold anything else. */
void tell(const char *key, const char *value);
void tell_number(const char *key, uint64_t number);
void tell_numbers(const char *key, const uint64_t *numbers, size_t count);

/* What was told is written at the end, and before another process writes. */
void tell_all(void);

long system_call(long number, long a, long b, long c, long d);
_Noreturn void leave(int code);

#endif
