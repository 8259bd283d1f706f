#include "slots.h"

#include "figures.h"

#include <fcntl.h>

/* Go writes a path over this mark. */
__attribute__((used)) static volatile const char usage_path[FACADE_PATH_SIZE] = FACADE_USAGE_MARK;

struct usage *map_usage(int writable)
{
    long fd = sys_open((const char *)usage_path, writable ? O_RDWR : O_RDONLY);
    if (fd < 0)
        return NULL;
    struct usage *usage = sys_size(fd) == (long)sizeof *usage ? sys_map(fd, sizeof *usage, writable) : NULL;
    sys_close(fd);
    if (usage && memcmp(usage->magic, USAGE_MAGIC, sizeof usage->magic) == 0 && usage->version == USAGE_VERSION &&
        usage->size == sizeof *usage)
        return usage;
    if (usage)
        sys_unmap(usage, sizeof *usage);
    return NULL;
}

int slot_ended(const struct usage_slot *slot, uint64_t pids)
{
    uint64_t process = __atomic_load_n(&slot->process, __ATOMIC_ACQUIRE);
    if (!process || !pids || slot_pids(slot) != pids)
        return 0;
    uint64_t start = process_start(slot_pid(process));
    return start != UNTOLD && start != process >> USAGE_PID_BITS;
}
