#include "system.h"

#include <sys/syscall.h>

#if defined(__x86_64__)
long system_call(long number, long a, long b, long c, long d)
{
    long answer;
    register long r10 __asm__("r10") = d;
    __asm__ volatile("syscall"
                     : "=a"(answer)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(0L)
                     : "rcx", "r11", "memory");
    return answer;
}
#else
long system_call(long number, long a, long b, long c, long d)
{
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
    return x0;
}
#endif

void leave(int code)
{
    for (;;)
        system_call(SYS_exit_group, code, 0, 0, 0);
}

static char output[16384];
static size_t used;

/* A reader that has closed the pipe is no error. */
void report_all(void)
{
    for (size_t at = 0; at < used;) {
        long n = system_call(SYS_write, 1, (long)(output + at), (long)(used - at), 0);
        if (n <= 0)
            break;
        at += (size_t)n;
    }
    used = 0;
}

static void put(const char *text, size_t size)
{
    for (; size > 0; size--, text++) {
        if (used == sizeof output)
            report_all();
        output[used++] = *text;
    }
}

/* The leading zero separates it from the output of a shell. */
void report(const char *key, const char *value)
{
    put("", 1);
    put(key, length(key));
    put(" ", 1);
    put(value, length(value) + 1);
}

void report_numbers(const char *key, const uint64_t *numbers, size_t count)
{
    struct text line = {0};
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            add(&line, " ");
        add_number(&line, numbers[i], 10, 1);
    }
    report(key, line.s);
}

void report_number(const char *key, uint64_t number) { report_numbers(key, &number, 1); }
