#include "slots.h"

#include "front.h"

#include <fcntl.h>

/* Go writes a path over this mark. */
__attribute__((used)) static volatile const char usage_path[FACADE_PATH_SIZE] = FACADE_USAGE_MARK;

static int sound(const struct usage *usage, unsigned accounts)
{
    for (unsigned i = 0; i < accounts; i++)
        if (memcmp(usage[i].magic, USAGE_MAGIC, sizeof usage->magic) != 0 || usage[i].size != sizeof *usage ||
            usage[i].version != (accounts > 1 ? USAGE_VERSION_OF_SEVERAL : USAGE_VERSION))
            return 0;
    return 1;
}

struct usage *map_usage(int writable, unsigned *accounts)
{
    long fd = open_beside((const char *)usage_path, writable ? O_RDWR : O_RDONLY);
    if (fd < 0)
        return NULL;
    size_t size = (size_t)sys_size(fd), count = size / sizeof(struct usage);
    int whole = size % sizeof(struct usage) == 0 && count >= 1 && count <= MOST_DEVICES;
    struct usage *usage = whole ? sys_map(fd, size, writable) : NULL;
    sys_close(fd);
    *accounts = (unsigned)count;
    if (!usage || sound(usage, *accounts))
        return usage;
    sys_unmap(usage, size);
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
