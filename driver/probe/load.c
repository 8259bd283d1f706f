/* A short load of memory fills, so that the SM clock shows what limits it. */
#include "library.h"

#include <poll.h>
#include <sys/syscall.h>
#include <time.h>

enum { LONGEST_MS = 10000, FILLS_AT_A_TIME = 4 };

static uint64_t milliseconds(void)
{
    struct timespec now = {0};
    system_call(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&now, 0, 0);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* The other end of standard input closes it when the load has done its work. */
static int enough(void)
{
    struct pollfd input = {.fd = 0, .events = POLLIN};
    struct timespec now = {0};
    return system_call(SYS_ppoll, (long)&input, 1, (long)&now, 0) != 0;
}

void probe_load(int ordinal)
{
    uint64_t fills = 0, begun = milliseconds();
    int going = cuda_fill_begin(ordinal);
    report_all(); /* from here on the GPU is busy */
    while (going && !enough() && milliseconds() - begun < LONGEST_MS) {
        for (int i = 0; going && i < FILLS_AT_A_TIME; i++, fills++)
            going = cuda_fill();
    }
    cuda_fill_end();
    report_number("load.fills", fills);
}
