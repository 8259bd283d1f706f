/* The devices of the session: which figures belong to which number of the driver. */
#include "facade.h"

enum { MOST_NUMBERS = 64 };

static const struct figures *first_figures(void)
{
    const struct figures *figures = the_figures();
    return figures == &unreadable ? NULL : figures;
}

/* A session of several devices has whole GPUs: the driver's UUID is that of the slice. */
static const struct figures *search(const struct figures *first, CUdevice device)
{
    CUuuid uuid, own;
    if (DRIVER(cuDeviceGetUuid)(&uuid, device) != CUDA_SUCCESS)
        return NULL;
    for (unsigned i = 0; i < figures_count(); i++)
        if (parse_uuid(&own, first[i].slice) && memcmp(&own, &uuid, sizeof uuid) == 0)
            return &first[i];
    return first;
}

/* The driver never numbers its devices again. */
const struct figures *figures_of(CUdevice device)
{
    static const struct figures *known[MOST_NUMBERS];
    const struct figures *first = first_figures();
    if (!first || figures_count() == 1 || device < 0 || device >= MOST_NUMBERS)
        return first;
    const struct figures *found = __atomic_load_n(&known[device], __ATOMIC_RELAXED);
    if (found)
        return found;
    found = search(first, device);
    __atomic_store_n(&known[device], found, __ATOMIC_RELAXED);
    return found ? found : first;
}

const struct figures *figures_shown(void)
{
    const struct figures *first = first_figures();
    CUdevice device;
    if (!first || figures_count() == 1 || DRIVER(cuCtxGetDevice)(&device) != CUDA_SUCCESS)
        return first;
    return figures_of(device);
}

int find_device(const struct figures *target, CUdevice *device)
{
    int count = 0;
    if (figures_count() == 1)
        return DRIVER(cuCtxGetDevice)(device) == CUDA_SUCCESS;
    if (DRIVER(cuDeviceGetCount)(&count) != CUDA_SUCCESS)
        return 0;
    for (int i = 0; i < count; i++)
        if (DRIVER(cuDeviceGet)(device, i) == CUDA_SUCCESS && figures_of(*device) == target)
            return 1;
    return 0;
}

/* The driver reports the memory of the current context's device; of another one only where its primary context is. */
int ask_driver(const struct figures *target, size_t *free, size_t *all)
{
    CUdevice device;
    CUcontext context, popped;
    unsigned flags;
    int active = 0;
    if (figures_shown() == target)
        return DRIVER(cuMemGetInfo_v2)(free, all) == CUDA_SUCCESS;
    if (!find_device(target, &device) || DRIVER(cuDevicePrimaryCtxGetState)(device, &flags, &active) != CUDA_SUCCESS ||
        !active || DRIVER(cuDevicePrimaryCtxRetain)(&context, device) != CUDA_SUCCESS)
        return 0;
    int known = 0;
    if (DRIVER(cuCtxPushCurrent_v2)(context) == CUDA_SUCCESS) {
        known = DRIVER(cuMemGetInfo_v2)(free, all) == CUDA_SUCCESS;
        DRIVER(cuCtxPopCurrent_v2)(&popped);
    }
    DRIVER(cuDevicePrimaryCtxRelease_v2)(device);
    return known;
}

static int hex(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    digit |= 32;
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

int parse_uuid(CUuuid *uuid, const char *text)
{
    unsigned n = 0;
    if (!starts_with(text, "GPU-"))
        return 0;
    for (const char *at = text + 4; *at; at++) {
        if (*at == '-')
            continue;
        int digit = hex(*at);
        if (digit < 0 || n == 32)
            return 0;
        uuid->bytes[n / 2] = (char)(n % 2 ? uuid->bytes[n / 2] | digit : digit << 4);
        n++;
    }
    return n == 32;
}
