/*
 * More programs at one time than there are places: crowd LIBRARY COUNT MIB. Each of
 * them tries to take so much and stays. Tells how many got it; then a hundred of
 * those end, as many start again, and it prints how many of these got it.
 */
#include "cuda.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NEWCOMERS = 100, MOST = 2048 };

static pid_t members[MOST]; /* that got it */
static int granted;

/* It stays until it is killed. */
static void be_one(const char *path, size_t bytes, int answer_to)
{
    CUdeviceptr block;
    start(path);
    int answer = CU(cuMemAlloc_v2)(&block, bytes);
    if (write(answer_to, &answer, sizeof answer) != sizeof answer)
        _exit(1);
    for (;;)
        pause();
}

static pid_t begin_one(const char *path, size_t bytes, int *answer)
{
    int ends[2];
    if (pipe(ends))
        exit(1);
    pid_t pid = fork();
    if (pid == 0)
        be_one(path, bytes, ends[1]);
    close(ends[1]);
    if (pid < 0 || read(ends[0], answer, sizeof *answer) != sizeof *answer)
        *answer = -1;
    close(ends[0]);
    return pid;
}

static int come(const char *path, int count, size_t bytes)
{
    int answer, got = 0;
    for (int i = 0; i < count; i++) {
        pid_t pid = begin_one(path, bytes, &answer);
        if (answer == CUDA_SUCCESS)
            members[granted + got++] = pid;
        else if (answer != CUDA_ERROR_OUT_OF_MEMORY)
            must(answer, "one of them");
    }
    granted += got;
    return got;
}

int main(int count, char **arguments)
{
    (void)count;
    int first = come(arguments[1], atoi(arguments[2]), strtoul(arguments[3], NULL, 10) * MIB);
    for (int i = 0; i < NEWCOMERS; i++) {
        kill(members[--granted], SIGKILL);
        waitpid(members[granted], NULL, 0);
    }
    printf("%d, then %d\n", first, come(arguments[1], NEWCOMERS, strtoul(arguments[3], NULL, 10) * MIB));
    fflush(stdout);
    getchar();
    signal(SIGTERM, SIG_IGN);
    kill(0, SIGTERM); /* all its own, which are in its group */
    return 0;
}
