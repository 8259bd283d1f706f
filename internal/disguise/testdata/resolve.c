/*
 * Asks for functions by name, version and kind of stream, as NVIDIA's runtime
 * does: resolve FACADE DRIVER NAME... What the driver itself would give tells
 * which function of the facade it must be. Prints how many were asked for, and
 * how many of them were the facade's.
 */
#include "cuda.h"

static void *driver;
static int asked, swapped, wrong;

/* The function of the facade that stands for one of the driver's; its own where the facade has none. */
static void *counterpart(void *drivers)
{
    Dl_info info = {0};
    return drivers && dladdr(drivers, &info) && info.dli_sname ? dlsym(library, info.dli_sname) : drivers;
}

static void compare(const char *question, int version, uint64_t flags, int same, void *given, void *drivers)
{
    asked++;
    swapped += given != drivers;
    if (same && given == counterpart(drivers))
        return;
    wrong++;
    printf("%s of %d with %d: %p for the driver's %p\n", question, version, (int)flags, given, drivers);
}

/* Flag 2 asks for the functions of a stream per thread. The older function has no place for a status. */
static void ask(const char *name, int version, uint64_t flags)
{
    __typeof__(&cuGetProcAddress_v2) theirs = dlsym(driver, "cuGetProcAddress_v2");
    __typeof__(&cuGetProcAddress) older = dlsym(driver, "cuGetProcAddress");
    void *given = NULL, *drivers = NULL;
    int status = -1, drivers_status = -1;
    CUresult answer = CU(cuGetProcAddress_v2)(name, &given, version, flags, &status);
    CUresult want = theirs(name, &drivers, version, flags, &drivers_status);
    compare(name, version, flags, answer == want && status == drivers_status, given, drivers);
    given = drivers = NULL;
    answer = CU(cuGetProcAddress)(name, &given, version, flags);
    want = older(name, &drivers, version, flags);
    compare(name, version, flags, answer == want, given, drivers);
}

int main(int count, char **arguments)
{
    static const int versions[] = {2000, 3020, 9000, 11000, 11030, 11040, 12000, 12030};
    driver = dlopen(arguments[2], RTLD_NOW);
    library = dlopen(arguments[1], RTLD_NOW);
    if (!library || !driver) {
        printf("%s\n", dlerror());
        return 1;
    }
    CU(cuInit)(0); /* there may be no GPU */
    for (int i = 3; i < count; i++)
        for (size_t v = 0; v < sizeof versions / sizeof *versions; v++)
            for (uint64_t flags = 0; flags <= 2; flags++)
                ask(arguments[i], versions[v], flags);
    printf("asked %d, swapped %d\n", asked, swapped);
    return wrong > 0;
}
