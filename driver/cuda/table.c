#include "table.h"

enum { FIRST_ROOM = 512 };

/* Addresses differ in their middle bits: multiplied, those reach the top. */
static size_t home(const struct table *table, uint64_t key)
{
    return (size_t)((key * 0x9E3779B97F4A7C15ULL) >> 32) & (table->room - 1);
}

/* Where a key is, or would go. */
static struct entry *probe(const struct table *table, uint64_t key)
{
    size_t at = home(table, key);
    while (table->entries[at].key && table->entries[at].key != key)
        at = (at + 1) & (table->room - 1);
    return &table->entries[at];
}

struct entry *table_find(const struct table *table, uint64_t key)
{
    if (!table->room || !key)
        return NULL;
    struct entry *entry = probe(table, key);
    return entry->key ? entry : NULL;
}

static int grow(struct table *table)
{
    struct table larger = {.room = table->room ? 2 * table->room : FIRST_ROOM, .count = table->count};
    larger.entries = sys_memory(larger.room * sizeof *larger.entries);
    if (!larger.entries)
        return 0;
    FOR_ENTRIES(entry, table)
        *probe(&larger, entry->key) = *entry;
    if (table->entries)
        sys_unmap(table->entries, table->room * sizeof *table->entries);
    *table = larger;
    return 1;
}

struct entry *table_add(struct table *table, uint64_t key)
{
    if (!key || (2 * table->count >= table->room && !grow(table)))
        return NULL;
    struct entry *entry = probe(table, key);
    if (!entry->key) {
        *entry = (struct entry){.key = key};
        table->count++;
    }
    return entry;
}

/* Entries that a collision pushed behind the gap move up into it. */
static void close_gap(struct table *table, size_t gap)
{
    size_t last = table->room - 1;
    for (size_t at = (gap + 1) & last; table->entries[at].key; at = (at + 1) & last) {
        size_t from_home = (at - home(table, table->entries[at].key)) & last;
        if (from_home < ((at - gap) & last))
            continue;
        table->entries[gap] = table->entries[at];
        gap = at;
    }
    table->entries[gap] = (struct entry){0};
}

struct entry table_take(struct table *table, uint64_t key)
{
    struct entry *entry = table_find(table, key);
    if (!entry)
        return (struct entry){0};
    struct entry taken = *entry;
    table->count--;
    close_gap(table, (size_t)(entry - table->entries));
    return taken;
}

uint64_t table_take_all_of(struct table *table, uint64_t owner)
{
    uint64_t size = 0;
    for (size_t at = 0; at < table->room; at++)
        while (table->entries[at].key && table->entries[at].owner == owner) { /* another moves up to here */
            size += table->entries[at].size;
            table->count--;
            close_gap(table, at);
        }
    return size;
}
