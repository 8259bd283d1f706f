#include "library.h"

#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <nvml.h>

enum { SUCCESS = NVML_SUCCESS, MISSING = NVML_ERROR_FUNCTION_NOT_FOUND, PROCESSES = 1024 };

static void *library;
static nvmlDevice_t device;

#define NVML(name, ...) ASK(library, MISSING, name, __VA_ARGS__)

int nvml_is_there(void) { return device.handle != NULL; }

/* One figure, or the error in its place. */
#define TELL(key, answer, ...)                                                                     \
    do {                                                                                           \
        nvmlReturn_t result = answer;                                                              \
        if (result == NVML_SUCCESS)                                                                \
            report_numbers(key, (uint64_t[]){__VA_ARGS__}, sizeof((uint64_t[]){__VA_ARGS__}) / 8); \
        else                                                                                       \
            report_error(key, result);                                                             \
    } while (0)

static void report_identity(void)
{
    char name[96] = "", uuid[96] = "";
    nvmlReturn_t code = NVML(nvmlDeviceGetName, device, name, sizeof name);
    code ? report_error("nvml.name", code) : report("nvml.name", name);
    code = NVML(nvmlDeviceGetUUID, device, uuid, sizeof uuid);
    code ? report_error("nvml.uuid", code) : report("nvml.uuid", uuid);
}

static void report_memory(void)
{
    nvmlMemory_t first = {0};
    TELL("nvml.memory", NVML(nvmlDeviceGetMemoryInfo, device, &first), first.total, first.free, first.used);
    nvmlMemory_v2_t second = {.version = nvmlMemory_v2};
    TELL("nvml.memory2", NVML(nvmlDeviceGetMemoryInfo_v2, device, &second), second.total, second.free, second.used,
         second.reserved);
}

static void report_limits(void)
{
    unsigned limit = 0, normal = 0, enforced = 0, least = 0, most = 0;
    TELL("nvml.limit", NVML(nvmlDeviceGetPowerManagementLimit, device, &limit), limit);
    TELL("nvml.enforced", NVML(nvmlDeviceGetEnforcedPowerLimit, device, &enforced), enforced);
    TELL("nvml.default", NVML(nvmlDeviceGetPowerManagementDefaultLimit, device, &normal), normal);
    TELL("nvml.range", NVML(nvmlDeviceGetPowerManagementLimitConstraints, device, &least, &most), least, most);
}

/* How MIG would show: each of these must refuse. */
static void report_mig(void)
{
    unsigned now = 0, next = 0, most = 0;
    nvmlDevice_t slice;
    TELL("nvml.mig", NVML(nvmlDeviceGetMigMode, device, &now, &next), now, next);
    TELL("nvml.migdevice", NVML(nvmlDeviceGetMigDeviceHandleByIndex, device, 0, &slice), 1);
    TELL("nvml.migdevices", NVML(nvmlDeviceGetMaxMigDeviceCount, device, &most), most);
}

void probe_nvml(void)
{
    library = load("nvml.load", "libnvidia-ml.so.1");
    if (!library)
        return;
    nvmlReturn_t code = NVML(nvmlInit_v2);
    if (code != NVML_SUCCESS) {
        report_error("nvml.init", code);
        return;
    }
    unsigned count = 0;
    nvmlDevice_t second;
    TELL("nvml.count", NVML(nvmlDeviceGetCount_v2, &count), count);
    TELL("nvml.second", NVML(nvmlDeviceGetHandleByIndex_v2, 1, &second), 1);
    code = NVML(nvmlDeviceGetHandleByIndex_v2, 0, &device);
    if (code != NVML_SUCCESS) {
        device = (nvmlDevice_t){0};
        report_error("nvml.init", code);
        return;
    }
    report("nvml.init", "ok");
    report_identity();
    report_memory();
    report_limits();
    report_mig();
}

int nvml_memory(uint64_t memory[2])
{
    nvmlMemory_t info = {0};
    if (!nvml_is_there() || NVML(nvmlDeviceGetMemoryInfo, device, &info) != NVML_SUCCESS)
        return 0;
    memory[0] = info.used;
    memory[1] = info.free;
    return 1;
}

static unsigned list(nvmlProcessInfo_t *processes)
{
    unsigned count = PROCESSES;
    nvmlReturn_t code =
        nvml_is_there() ? NVML(nvmlDeviceGetComputeRunningProcesses_v3, device, &count, processes) : MISSING;
    return code == NVML_SUCCESS ? count : 0;
}

int64_t listed(uint32_t pid)
{
    static nvmlProcessInfo_t processes[PROCESSES];
    unsigned count = list(processes);
    for (unsigned i = 0; i < count; i++)
        if (processes[i].pid == pid)
            return (int64_t)processes[i].usedGpuMemory;
    return -1;
}

unsigned others(uint32_t pid)
{
    static nvmlProcessInfo_t processes[PROCESSES];
    unsigned count = list(processes), n = 0;
    for (unsigned i = 0; i < count; i++)
        n += processes[i].pid != pid;
    return n;
}
