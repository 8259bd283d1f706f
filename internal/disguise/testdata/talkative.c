/*
 * An NVML that calls its own exports, as the driver's does: some through the
 * procedure linkage table, some as the last thing that a function does. What it
 * finds there is what it tells as its driver version.
 */
#include <stdio.h>

typedef void *device;

int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int error) { return error ? "error" : "success"; }

static char gpus[2];

int nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = 2;
    return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, device *found)
{
    if (index > 1)
        return 2;
    *found = &gpus[index];
    return 0;
}

int nvmlDeviceGetIndex(device asked, unsigned *index)
{
    *index = asked == &gpus[1];
    return 0;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, device *found)
{
    (void)uuid;
    return nvmlDeviceGetHandleByIndex_v2(1, found); /* a jump */
}

int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(device mig, device *found)
{
    *found = mig;
    return 0;
}

int nvmlDeviceGetMaxMigDeviceCount(device asked, unsigned *count)
{
    (void)asked;
    *count = 7;
    return 0;
}

int nvmlDeviceGetName(device asked, char *name, unsigned size)
{
    snprintf(name, size, "GPU %d", asked == &gpus[1]);
    return 0;
}

int nvmlSystemGetDriverVersion(char *version, unsigned size)
{
    unsigned count = 0, devices = 0, index = 0;
    char name[96];
    device second = 0;
    nvmlDeviceGetCount_v2(&count);
    int answer = nvmlDeviceGetHandleByIndex_v2(1, &second);
    nvmlDeviceGetMaxMigDeviceCount(second, &devices);
    nvmlDeviceGetIndex(second, &index);
    nvmlDeviceGetName(second, name, sizeof name);
    snprintf(version, size, "%d %u %u %u %s", answer, count, devices, index, name);
    return 0;
}
