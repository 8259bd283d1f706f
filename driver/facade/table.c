/*
 * nvidia-smi gets unnamed functions from the driver, among them process lists, that would reveal the physical GPU's
 * values. The facade gives it a different table: the lists contain the session's processes, and all other functions
 * return "not available", so that nvidia-smi uses the named functions. Requests for other tables pass through. The
 * positions of the three lists and the layout of an entry were tested with nvidia-smi 535 and 550. Another version
 * may call another function there, so arguments that are invalid for a list are refused.
 */
#include "facade.h"
#include "slots.h"

enum { PLACES = 256, COMPUTE_LIST = 213, GRAPHICS_LIST = 214, MPS_LIST = 215, MOST = 1 << 16 };

struct listed_process {
    uint32_t pid;
    uint64_t used; /* bytes */
    uint32_t gpu_instance, compute_instance;
    uint64_t unknown;
    char name[4096];
};

static int not_supported(void) { return NVML_ERROR_NOT_SUPPORTED; }

static int makes_sense(nvmlDevice_t device, const unsigned *count, const void *list)
{
    unsigned index;
    return (uintptr_t)count > MOST && (uintptr_t)list > MOST && *count && *count <= MOST &&
           DRIVER(nvmlDeviceGetIndex)(device, &index) == NVML_SUCCESS;
}

static int list_compute(nvmlDevice_t device, unsigned *count, struct listed_process *list)
{
    nvmlProcessInfo_t processes[USAGE_SLOTS];
    const struct figures *target = the_figures();
    unsigned have = 0;
    if (!target || target == &unreadable || !makes_sense(device, count, list) ||
        processes_of_session(figures_of(target, device), processes, &have) != NVML_SUCCESS)
        return NVML_ERROR_NOT_SUPPORTED;
    if (*count > have)
        *count = have;
    for (unsigned i = 0; i < *count; i++) {
        list[i] = (struct listed_process){.pid = processes[i].pid,
                                          .used = processes[i].usedGpuMemory,
                                          .gpu_instance = processes[i].gpuInstanceId,
                                          .compute_instance = processes[i].computeInstanceId,
                                          .name = "-"};
        DRIVER(nvmlSystemGetProcessName)(processes[i].pid, list[i].name, sizeof list[i].name);
    }
    return NVML_SUCCESS;
}

/* Graphics and MPS: there is none of it in a session. */
static int list_none(nvmlDevice_t device, unsigned *count, struct listed_process *list)
{
    if (!makes_sense(device, count, list))
        return NVML_ERROR_NOT_SUPPORTED;
    *count = 0;
    return NVML_SUCCESS;
}

/* The first place is the table's size in bytes. */
static const void *our_table(void)
{
    static const void *table[PLACES];
    for (unsigned i = 1; i < PLACES; i++)
        table[i] = (const void *)not_supported;
    table[COMPUTE_LIST] = (const void *)list_compute;
    table[GRAPHICS_LIST] = table[MPS_LIST] = (const void *)list_none;
    table[0] = (const void *)sizeof table;
    return table;
}

__attribute__((visibility("default"))) int nvmlInternalGetExportTable(const void **table, const void *id);

int nvmlInternalGetExportTable(const void **table, const void *id)
{
    static const unsigned char of_nvidia_smi[16] = {0xC4, 0xFE, 0x3E, 0x6C, 0xC9, 0x8F, 0x6C, 0x4E,
                                                    0xA3, 0x27, 0xEE, 0x69, 0x6E, 0x12, 0xF7, 0xC4};
    DISGUISE(nvmlInternalGetExportTable, table, id);
    int answer = DRIVER(nvmlInternalGetExportTable)(table, id);
    if (answer == 0 && id && memcmp(id, of_nvidia_smi, sizeof of_nvidia_smi) == 0)
        *table = our_table();
    return answer;
}
