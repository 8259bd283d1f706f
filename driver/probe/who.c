/*
 * Prints the user and the environment of a program in the session: records "uid", "gid", "name", "home", "folder",
 * and "env" for each variable. It is static, so that it runs in any image.
 */
#include "system.h"

#include <fcntl.h>
#include <sys/syscall.h>

/* The stack as the kernel leaves it: the count of arguments, they, a zero, the environment. */
#if defined(__x86_64__)
__asm__(".globl _start\n_start:\n xor %ebp, %ebp\n mov %rsp, %rdi\n and $-16, %rsp\n call begin\n hlt\n");
#else
__asm__(".globl _start\n_start:\n mov x29, #0\n mov x30, #0\n mov x0, sp\n bl begin\n");
#endif

static const char *end_of(const char *at, char mark)
{
    while (*at && *at != mark && *at != '\n')
        at++;
    return at;
}

static const char *next_field(const char *at)
{
    at = end_of(at, ':');
    return *at == ':' ? at + 1 : at;
}

static void report_field(const char *key, const char *at)
{
    char value[256];
    size_t n = (size_t)(end_of(at, ':') - at);
    if (n >= sizeof value)
        n = sizeof value - 1;
    memcpy(value, at, n);
    value[n] = 0;
    report(key, value);
}

/* The line of an account: name, password, uid, gid, comment, home, shell. */
static void report_account(uint64_t uid)
{
    static char accounts[1 << 18];
    long fd = sys_open("/etc/passwd", O_RDONLY);
    long n = fd < 0 ? 0 : sys_read(fd, accounts, sizeof accounts - 1);
    accounts[n > 0 ? n : 0] = 0;
    for (const char *line = accounts; *line;) {
        const char *id = next_field(next_field(line));
        if (*id >= '0' && *id <= '9' && number(id) == uid) {
            report_field("name", line);
            report_field("home", next_field(next_field(next_field(id))));
            return;
        }
        line = end_of(line, '\n');
        line += *line == '\n';
    }
}

__attribute__((used)) _Noreturn void begin(long *stack)
{
    char **environment = (char **)(stack + 1 + stack[0] + 1);
    static char folder[4096];
    uint64_t uid = (uint64_t)system_call(SYS_getuid, 0, 0, 0, 0);
    report_number("uid", uid);
    report_number("gid", (uint64_t)system_call(SYS_getgid, 0, 0, 0, 0));
    report_account(uid);
    if (system_call(SYS_getcwd, (long)folder, sizeof folder, 0, 0) > 0)
        report("folder", folder);
    for (; *environment; environment++)
        report("env", *environment);
    report_all();
    leave(0);
}
