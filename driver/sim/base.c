#define _GNU_SOURCE 1 /* byte locks of open files */
#include "base.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/time_types.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
static long call6(long n, long a, long b, long c, long d, long e, long f)
{
    long answer;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(answer)
                     : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return answer;
}
#elif defined(__aarch64__)
static long call6(long n, long a, long b, long c, long d, long e, long f)
{
    register long x8 __asm__("x8") = n;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
}
#else
#error "the simulated driver knows x86-64 and arm64"
#endif

#define CALL3(n, a, b, c) call6(n, (long)(a), (long)(b), (long)(c), 0, 0, 0)

/* The compiler calls these three by itself. */
void *memset(void *to, int byte, size_t size)
{
    for (char *at = to; size > 0; size--)
        *at++ = (char)byte;
    return to;
}

void *memcpy(void *to, const void *from, size_t size)
{
    const char *source = from;
    for (char *at = to; size > 0; size--)
        *at++ = *source++;
    return to;
}

int memcmp(const void *a, const void *b, size_t size)
{
    const unsigned char *x = a, *y = b;
    for (; size > 0; size--, x++, y++)
        if (*x != *y)
            return *x - *y;
    return 0;
}

size_t length(const char *text)
{
    size_t n = 0;
    while (text[n])
        n++;
    return n;
}

int equal(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    return *a == *b;
}

int starts_with(const char *text, const char *prefix)
{
    for (; *prefix; text++, prefix++)
        if (*text != *prefix)
            return 0;
    return 1;
}

void add(struct text *text, const char *piece)
{
    while (*piece && text->n + 1 < sizeof text->s)
        text->s[text->n++] = *piece++;
    text->s[text->n] = 0;
}

void add_number(struct text *text, uint64_t number, unsigned base, unsigned width)
{
    char digits[24] = {0};
    unsigned at = sizeof digits - 1;
    do {
        digits[--at] = "0123456789ABCDEF"[number % base];
        number /= base;
    } while (number > 0 || sizeof digits - 1 - at < width);
    add(text, digits + at);
}

long sys_open(const char *path, int flags) { return CALL3(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC); }

void sys_close(long fd) { CALL3(SYS_close, fd, 0, 0); }
long sys_duplicate(long fd) { return CALL3(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 0); }
long sys_read(long fd, void *to, size_t size) { return CALL3(SYS_read, fd, to, size); }
long sys_write(long fd, const void *from, size_t size) { return CALL3(SYS_write, fd, from, size); }
long sys_size(long fd) { return CALL3(SYS_lseek, fd, 0, SEEK_END); }

void *sys_map(long fd, size_t size, int writable)
{
    int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
    long at = call6(SYS_mmap, 0, (long)size, protection, MAP_SHARED, fd, 0);
    return at < 0 && at > -4096 ? NULL : (void *)at;
}

static void *memory_at(uintptr_t at, size_t size, int flags)
{
    flags |= MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    long got = call6(SYS_mmap, (long)at, (long)size, PROT_READ | PROT_WRITE, flags, -1, 0);
    return got < 0 && got > -4096 ? NULL : (void *)got;
}

void *sys_memory(size_t size) { return memory_at(0, size, 0); }

/* An old kernel takes the address for a wish. */
void *sys_memory_below_4g(size_t size)
{
    const uintptr_t step = 32 << 20, end = 1ULL << 32;
    for (uintptr_t at = step; size < end && at + size <= end; at += step) {
        void *got = memory_at(at, size, MAP_FIXED_NOREPLACE);
        if (got == (void *)at)
            return got;
        if (got)
            sys_unmap(got, size);
    }
    return NULL;
}

int sys_wiped_on_fork(void *at, size_t size) { return CALL3(SYS_madvise, at, size, MADV_WIPEONFORK) == 0; }

void sys_unmap(void *at, size_t size) { CALL3(SYS_munmap, at, size, 0); }

long sys_lock(long fd)
{
    long answer;
    do
        answer = CALL3(SYS_flock, fd, LOCK_EX, 0);
    while (answer == -EINTR);
    return answer;
}

void sys_unlock(long fd) { CALL3(SYS_flock, fd, LOCK_UN, 0); }

/* Of the open file, not of the process: NVML's own use of the same file leaves them alone. */
static long byte_lock(long fd, int command, int64_t byte, short *type)
{
    struct flock lock = {.l_type = *type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    long answer = CALL3(SYS_fcntl, fd, command, &lock);
    *type = lock.l_type;
    return answer;
}

int sys_lock_byte(long fd, int64_t byte)
{
    short type = F_WRLCK;
    return byte_lock(fd, F_OFD_SETLK, byte, &type) == 0;
}

int sys_share_byte(long fd, int64_t byte)
{
    short type = F_RDLCK;
    return byte_lock(fd, F_OFD_SETLK, byte, &type) == 0;
}

int sys_byte_locked(long fd, int64_t byte)
{
    short type = F_WRLCK;
    return byte_lock(fd, F_OFD_GETLK, byte, &type) != 0 || type != F_UNLCK;
}

uint32_t sys_pid(void) { return (uint32_t)CALL3(SYS_getpid, 0, 0, 0); }
uint32_t sys_thread(void) { return (uint32_t)CALL3(SYS_gettid, 0, 0, 0); }
void sys_yield(void) { CALL3(SYS_sched_yield, 0, 0, 0); }

void sys_sleep_ms(uint64_t ms)
{
    struct __kernel_timespec time = {(long long)(ms / 1000), (long long)(ms % 1000) * 1000000};
    CALL3(SYS_nanosleep, &time, &time, 0);
}

int sys_random(void *to, size_t size) { return CALL3(SYS_getrandom, to, size, 0) == (long)size; }

uint64_t number(const char *digits)
{
    uint64_t n = 0;
    for (; *digits >= '0' && *digits <= '9'; digits++)
        n = n * 10 + (uint64_t)(*digits - '0');
    return n;
}

/* Fields of /proc/PID/stat, as proc(5) counts them. */
enum { THREADS = 20, START = 22 };

static const char *field(const char *at, int from, int to)
{
    for (; *at && from < to; at++)
        from += *at == ' ';
    return at;
}

static int is_there(uint32_t pid) { return CALL3(SYS_kill, pid, 0, 0) != -ESRCH; }

uint64_t process_start(uint32_t pid)
{
    struct text path = {0};
    add(&path, "/proc/");
    add_number(&path, pid, 10, 1);
    add(&path, "/stat");
    long fd = sys_open(path.s, O_RDONLY);
    if (fd < 0)
        return is_there(pid) ? UNTOLD : 0;
    char stat[1024];
    long n = sys_read(fd, stat, sizeof stat - 1);
    sys_close(fd);
    if (n <= 0)
        return is_there(pid) ? UNTOLD : 0;
    stat[n] = 0;

    /* Field 22; field 2 is the name in brackets, which may hold anything. */
    const char *at = stat + n;
    while (at > stat && *at != ')')
        at--;
    if (at == stat || at + 2 >= stat + n)
        return UNTOLD;
    int ended = at[2] == 'Z' || at[2] == 'X';
    at = field(at, 2, THREADS);
    if (ended && number(at) <= 1)
        return 0; /* a zombie: only not yet waited for. With more threads, just the first has ended */
    return number(field(at, THREADS, START));
}

/* The number in a link, which begins so far into it; 0 when it cannot be read. */
static uint64_t number_in_link(const char *path, long from)
{
    char link[64] = {0};
    long n = call6(SYS_readlinkat, AT_FDCWD, (long)path, (long)link, sizeof link - 1, 0, 0);
    return n > from ? number(link + from) : 0;
}

uint64_t pid_namespace(void)
{
    const long brackets = 5; /* "pid:[4026531836]" */
    return number_in_link("/proc/self", 0) == sys_pid() ? number_in_link("/proc/self/ns/pid", brackets) : 0;
}

void lock_threads(char *lock)
{
    while (__atomic_test_and_set(lock, __ATOMIC_ACQUIRE))
        sys_yield();
}

void unlock_threads(char *lock) { __atomic_clear(lock, __ATOMIC_RELEASE); }
