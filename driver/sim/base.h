/*
 * What the library needs of an operating system, without libc: without libc symbols there are no symbol versions, so
 * one file loads with every glibc and musl.
 */
#ifndef COSPLAY_SIM_BASE_H
#define COSPLAY_SIM_BASE_H

#include <stddef.h>
#include <stdint.h>

void *memset(void *to, int byte, size_t size);
void *memcpy(void *to, const void *from, size_t size);
int memcmp(const void *a, const void *b, size_t size);

size_t length(const char *text);
int equal(const char *a, const char *b);
int starts_with(const char *text, const char *prefix);

/* The number at the beginning of a text; 0 when there is none. */
uint64_t number(const char *digits);

/* All ones when it is too large. */
static inline uint64_t times(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? ~0ULL : product;
}

/* A text that is put together piece by piece and always ends in a zero. */
struct text {
    char s[128];
    size_t n;
};
void add(struct text *text, const char *piece);
void add_number(struct text *text, uint64_t number, unsigned base, unsigned width);

/* System calls answer a negative errno when they fail. */
long sys_open(const char *path, int flags);
void sys_close(long fd);
long sys_duplicate(long fd);
long sys_read(long fd, void *to, size_t size);
long sys_write(long fd, const void *from, size_t size);
long sys_size(long fd);
void *sys_map(long fd, size_t size, int writable); /* NULL when it fails */
void *sys_memory(size_t size); /* private, zero, backed page by page when touched; NULL when it fails */
void *sys_memory_below_4g(size_t size);
int sys_wiped_on_fork(void *at, size_t size); /* whether a fork's child will find zeros there */
void sys_unmap(void *at, size_t size);
long sys_lock(long fd);
void sys_unlock(long fd);
uint32_t sys_pid(void);
uint32_t sys_thread(void);
void sys_yield(void);
void sys_sleep_ms(uint64_t ms);
int sys_random(void *to, size_t size);

/* Byte locks end with the process, whatever its end; they hold between files opened apart. */
int sys_lock_byte(long fd, int64_t byte);
int sys_share_byte(long fd, int64_t byte); /* a lock that others may share */
int sys_byte_locked(long fd, int64_t byte);

/*
 * The start time of a process in clock ticks; 0 if it has ended. UNTOLD if /proc does not show it: /proc may hide
 * processes of other users, be missing in a sandbox, or fail to open because no descriptor is free.
 */
#define UNTOLD (~0ULL)
uint64_t process_start(uint32_t pid);

/* The number of this process's pid namespace; 0 if /proc does not show it or belongs to another namespace. */
uint64_t pid_namespace(void);

/* A lock between the threads of a process. */
void lock_threads(char *lock);
void unlock_threads(char *lock);

#endif
