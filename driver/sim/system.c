/* Initialisation, the host as a whole, events. */
#include "sim.h"

static unsigned uses; /* nvmlInit without nvmlShutdown in this process */

/* Without persistence the driver forgets limit and lock once no process has the GPU open. */
static void forget_unheld(void)
{
    for (unsigned i = 0; i < SIM_MAX_CLIENTS; i++)
        if (host->clients[i].pid)
            return;
    for (unsigned i = 0; i < host->gpu_count; i++) {
        struct sim_gpu *gpu = &host->gpus[i];
        sweep_processes(gpu);
        if (gpu->persistence || gpu->held_open || gpu_busy(gpu))
            continue;
        gpu->power_limit_mw = gpu->power_default_mw;
        gpu->compute_mode = NVML_COMPUTEMODE_DEFAULT;
        gpu->lock_min_mhz = gpu->lock_max_mhz = 0;
    }
}

static int alive(const struct sim_client *client)
{
    uint64_t start = client->pid ? process_start(client->pid) : 0;
    return start && (start == UNTOLD || start == client->start_time);
}

static void sweep_clients(void)
{
    for (struct sim_client *c = host->clients; c < host->clients + SIM_MAX_CLIENTS; c++)
        if (c->pid && !alive(c))
            memset(c, 0, sizeof *c);
}

static struct sim_client *find_client(uint32_t pid)
{
    for (struct sim_client *c = host->clients; c < host->clients + SIM_MAX_CLIENTS; c++)
        if (c->pid == pid)
            return c;
    return NULL;
}

static nvmlReturn_t attach(void)
{
    if (!state_writable())
        return NVML_SUCCESS;
    sweep_clients();
    forget_unheld();
    struct sim_client *client = find_client(sys_pid());
    if (!client)
        client = find_client(0);
    if (!client)
        return NVML_ERROR_INSUFFICIENT_RESOURCES;
    client->pid = sys_pid();
    client->start_time = process_start(client->pid);
    client->uses++;
    return NVML_SUCCESS;
}

static void detach(void)
{
    struct sim_client *client = find_client(sys_pid());
    if (!state_writable() || !client)
        return;
    if (--client->uses == 0)
        memset(client, 0, sizeof *client);
    forget_unheld();
}

nvmlReturn_t nvmlInitWithFlags(unsigned int flags)
{
    (void)flags;
    struct call call __attribute__((cleanup(leave))) = {0};
    nvmlReturn_t answer = enter_init(&call, "nvmlInit_v2") ? NVML_SUCCESS : call.answer;
    if (answer == NVML_SUCCESS && uses == 0)
        answer = attach();
    if (answer == NVML_SUCCESS)
        uses++;
    else if (uses == 0)
        state_close();
    return answer;
}

nvmlReturn_t nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
nvmlReturn_t nvmlInit(void) { return nvmlInitWithFlags(0); }

nvmlReturn_t nvmlShutdown(void)
{
    HOST_CALL(1);
    if (--uses > 0)
        return NVML_SUCCESS;
    detach();
    state_close();
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
    HOST_CALL(version);
    return give_text(version, length, host->driver_version);
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length)
{
    HOST_CALL(version);
    struct text text = {0};
    add_number(&text, host->cuda_version / 1000, 10, 1);
    add(&text, ".");
    add(&text, host->driver_version);
    return give_text(version, length, text.s);
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    HOST_CALL(version);
    *version = (int)host->cuda_version;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version) { return nvmlSystemGetCudaDriverVersion_v2(version); }

/* Without this table, nvidia-smi reports that versions differ. Its first word
 * is its size; 8 bytes mean that it holds no function, and none is called. */
nvmlReturn_t nvmlInternalGetExportTable(const void **table, const void *id);

__attribute__((visibility("default"))) nvmlReturn_t nvmlInternalGetExportTable(const void **table, const void *id)
{
    static const uint64_t empty = sizeof empty;
    (void)id;
    if (!table)
        return NVML_ERROR_INVALID_ARGUMENT;
    *table = &empty;
    return NVML_SUCCESS;
}
