/*
 * Functions that the programs of cosplay verify share: records on standard output, and system calls. As in the
 * libraries, no symbol of libc has a version, so that one file runs with every glibc.
 */
#ifndef COSPLAY_PROBE_SYSTEM_H
#define COSPLAY_PROBE_SYSTEM_H

#include "sim/base.h"

/* A record is a key, a blank, a value and a zero: values may hold anything else. */
void report(const char *key, const char *value);
void report_number(const char *key, uint64_t number);
void report_numbers(const char *key, const uint64_t *numbers, size_t count);

/* Output is written at the end, and before another process writes. */
void report_all(void);

long system_call(long number, long a, long b, long c, long d);
_Noreturn void leave(int code);

#endif
