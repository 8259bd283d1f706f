/* Prints "PID MiB" of each process that NVML lists with all details: details LIBRARY. */
#include <dlfcn.h>
#include <nvml.h>
#include <stdio.h>
#include <stdlib.h>

#define NVML(name) ((__typeof__(&name))dlsym(library, #name))

static void must(nvmlReturn_t answer, nvmlReturn_t want, const char *what)
{
    if (answer == want)
        return;
    printf("%s answers %d, not %d\n", what, answer, want);
    exit(1);
}

int main(int count, char **arguments)
{
    void *library = count > 1 ? dlopen(arguments[1], RTLD_NOW) : NULL;
    if (!library)
        return 1;
    nvmlDevice_t device;
    must(NVML(nvmlInit_v2)(), NVML_SUCCESS, "the beginning");
    must(NVML(nvmlDeviceGetHandleByIndex_v2)(0, &device), NVML_SUCCESS, "the device");

    nvmlProcessDetail_v1_t two[2], one[1];
    nvmlProcessDetailList_t list = {.version = nvmlProcessDetailList_v1};
    must(NVML(nvmlDeviceGetRunningProcessDetailList)(device, &list), NVML_ERROR_INSUFFICIENT_SIZE, "no room");
    printf("%u processes\n", list.numProcArrayEntries);
    list.numProcArrayEntries = 1;
    list.procArray = one;
    must(NVML(nvmlDeviceGetRunningProcessDetailList)(device, &list), NVML_ERROR_INSUFFICIENT_SIZE, "room for one");
    list.numProcArrayEntries = 2;
    list.procArray = two;
    must(NVML(nvmlDeviceGetRunningProcessDetailList)(device, &list), NVML_SUCCESS, "room for two");
    for (unsigned i = 0; i < list.numProcArrayEntries; i++)
        printf("%u %llu\n", two[i].pid, two[i].usedGpuMemory >> 20);
    list.version = 1;
    must(NVML(nvmlDeviceGetRunningProcessDetailList)(device, &list), NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
         "another version");
    return 0;
}
