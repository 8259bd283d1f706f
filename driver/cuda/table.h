/* A hash table that maps addresses or handles of a process's memory to their sizes. */
#ifndef COSPLAY_CUDA_TABLE_H
#define COSPLAY_CUDA_TABLE_H

#include "sim/base.h"

struct entry {
    uint64_t key; /* 0 is free */
    uint64_t size;
    uint64_t owner;
    uint64_t uses;
    uint64_t device; /* whose memory it is; for the users of a table */
};

struct table {
    struct entry *entries;
    size_t room; /* a power of two, or 0 */
    size_t count;
};

struct entry *table_find(const struct table *table, uint64_t key);

/* The entry of a key, new if it was not there; NULL when there is no memory. Entries move. */
struct entry *table_add(struct table *table, uint64_t key);

/* Removes a key and returns its entry; all fields are zero if there was none. */
struct entry table_take(struct table *table, uint64_t key);

/* Removes all entries of an owner and returns the sum of their sizes. */
uint64_t table_take_all_of(struct table *table, uint64_t owner);

#define FOR_ENTRIES(each, table)                                                                 \
    for (struct entry *each = (table)->entries; each < (table)->entries + (table)->room; each++) \
        if (each->key)

#endif
