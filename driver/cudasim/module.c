/* Modules and kernel launches. A module keeps its code, so that only functions that it has are found; nothing runs. */
#include "cudasim.h"

#include <fcntl.h>

static const char ELF[] = "\177ELF";
static const char FAT_BINARY[] = "\x50\xED\x55\xBA";
static const char FAT_BINARY_WRAPPER[] = "\xB1\x43\x62\x46"; /* holds the address of a fat binary */
enum { EM_CUDA = 190, MAX_CODE = 1 << 30 };

enum kind { INVALID, PTX, CUBIN, FAT };

struct CUmod_st {
    size_t size; /* of the code */
    enum kind kind;
    char code[];
};
static struct table modules; /* by address */

/* A function is the place of its name in the code of its module. */
struct CUfunc_st {
    char name;
};

static uint64_t read_at(const char *at, size_t size)
{
    uint64_t value = 0;
    memcpy(&value, at, size);
    return value;
}

static int is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static int in_name(char c)
{
    return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '_' || c == '$' || c == '%';
}

/* Where PTX begins, after spaces and comments. */
static const char *begin_of_ptx(const char *code)
{
    for (;; code++) {
        if (starts_with(code, "//")) {
            while (code[1] && *code != '\n')
                code++;
        } else if (starts_with(code, "/*")) {
            for (code += 2; *code && !starts_with(code, "*/"); code++)
                ;
            code += *code ? 1 : -1;
        } else if (!is_space(*code)) {
            return code;
        }
    }
}

static enum kind kind_of(const char *code, size_t *size)
{
    if (starts_with(code, ELF)) {
        *size = read_at(code + 0x28, 8) +
                read_at(code + 0x3A, 2) * read_at(code + 0x3C, 2); /* to the end of its sections */
        return read_at(code + 0x12, 2) == EM_CUDA ? CUBIN : INVALID;
    }
    if (starts_with(code, FAT_BINARY)) {
        *size = read_at(code + 6, 2) + read_at(code + 8, 8);
        return FAT;
    }
    *size = length(code);
    return starts_with(begin_of_ptx(code), ".version") ? PTX : INVALID;
}

/* The place of a name that follows the word before it; with an empty name, that of any name. NULL when there is none. */
static char *find_name(CUmodule module, const char *before, const char *name)
{
    size_t word = length(before);
    char *end = module->code + module->size;
    for (char *at = module->code; at + word < end; at++) {
        if (*at != '.' || !starts_with(at, before))
            continue;
        char *found = at + word;
        while (is_space(*found))
            found++;
        if (found < end && starts_with(found, name) && (!*name || !in_name(found[length(name)])))
            return found;
    }
    return NULL;
}

static char *find_function(CUmodule module, const char *name)
{
    char *found = module->kind == CUBIN ? NULL : find_name(module, ".entry", name);
    return found || module->kind == PTX ? found : find_name(module, ".text.", name);
}

static CUresult load(CUmodule *module, const char *code)
{
    CONTEXT_CALL(module && code);
    if (starts_with(code, FAT_BINARY_WRAPPER))
        code = (const char *)(uintptr_t)read_at(code + 8, 8); // NOLINT(performance-no-int-to-ptr)
    size_t size = 0;
    enum kind kind = kind_of(code, &size);
    if (kind == INVALID || size > MAX_CODE)
        return CUDA_ERROR_INVALID_IMAGE;
    size_t all = sizeof **module + size + 1; /* ends in a zero */
    CUmodule loaded = sys_memory(all);
    if (!loaded || !charge(visit.device, MODULE_MIB * MIB))
        return CUDA_ERROR_OUT_OF_MEMORY;
    *loaded = (struct CUmod_st){.size = size, .kind = kind};
    memcpy(loaded->code, code, size);
    struct entry *entry = table_add(&modules, (uintptr_t)loaded);
    if (kind == PTX && !find_name(loaded, ".target", "")) {
        discharge(visit.device, MODULE_MIB * MIB);
        table_take(&modules, (uintptr_t)loaded);
        sys_unmap(loaded, all);
        return CUDA_ERROR_INVALID_PTX;
    }
    if (!entry)
        return CUDA_ERROR_OUT_OF_MEMORY;
    entry->size = all;
    *module = loaded;
    return CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image) { return load(module, image); }
CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image) { return load(module, image); }

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count, int *options, void **values)
{
    (void)count, (void)options, (void)values;
    return load(module, image);
}

CUresult cuModuleLoad(CUmodule *module, const char *path)
{
    if (!module || !path)
        return CUDA_ERROR_INVALID_VALUE;
    long file = sys_open(path, O_RDONLY);
    if (file < 0)
        return CUDA_ERROR_FILE_NOT_FOUND;
    long size = sys_size(file);
    const char *mapped = size > 0 && size < MAX_CODE ? sys_map(file, (size_t)size, 0) : NULL;
    sys_close(file);
    size_t all = (size_t)size + 64; /* headers are read whole, and text ends in a zero */
    char *code = mapped ? sys_memory(all) : NULL;
    if (!code)
        return mapped ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_IMAGE;
    memcpy(code, mapped, (size_t)size);
    sys_unmap((void *)(uintptr_t)mapped, (size_t)size);
    CUresult answer = load(module, code);
    sys_unmap(code, all);
    return answer;
}

CUresult cuModuleUnload(CUmodule module)
{
    CONTEXT_CALL(module && table_find(&modules, (uintptr_t)module));
    sys_unmap(module, table_take(&modules, (uintptr_t)module).size);
    discharge(visit.device, MODULE_MIB * MIB);
    return CUDA_SUCCESS;
}

/* A fat binary may be compressed. No name can be read then, and each is found. */
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    DRIVER_CALL(function && module && name && *name && table_find(&modules, (uintptr_t)module));
    char *found = find_function(module, name);
    if (!found && module->kind == FAT && !find_function(module, ""))
        found = module->code;
    *function = (CUfunction)(void *)found;
    return found ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

/* Once for each program. */
static void warn(const char *call)
{
    static int warned;
    if (warned++)
        return;
    if (host->compute == SIM_COMPUTE_NONE) {
        say("cosplay: this host is simulated with compute = \"none\": kernels do not run, and their results are "
            "invalid.\n");
        return;
    }
    say("cosplay: a simulated host cannot run kernels: ");
    say(call);
    say(" fails. Run the program on a real GPU, or set compute = \"none\" in the host block: launches then succeed "
        "without computing.\n");
}

static int is_known(CUfunction function)
{
    const char *at = &function->name;
    int known = 0;
    FOR_ENTRIES(module, &modules) {
        const char *code = ((CUmodule)(uintptr_t)module->key)->code; // NOLINT(performance-no-int-to-ptr)
        known |= at >= code && at < code + module->size;
    }
    return known;
}

/* PyCUDA calls this before each launch. */
CUresult cuFuncSetBlockShape(CUfunction function, int x, int y, int z)
{
    CONTEXT_CALL(x > 0 && y > 0 && z > 0);
    return is_known(function) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult launch(const char *call, CUfunction function)
{
    CONTEXT_CALL(1);
    if (!is_known(function))
        return CUDA_ERROR_INVALID_HANDLE;
    warn(call);
    return host->compute == SIM_COMPUTE_NONE ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

/* A launch, and its variant for programs whose default stream is one of each thread. */
#define LAUNCH(name, function, parameters)                       \
    CUresult name parameters { return launch(#name, function); } \
    CUresult name##_ptsz parameters { return launch(#name, function); }

#pragma GCC diagnostic ignored "-Wunused-parameter"
LAUNCH(cuLaunchKernel, function,
       (CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
        unsigned shared, CUstream stream, void **params, void **extra))
LAUNCH(cuLaunchCooperativeKernel, function,
       (CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
        unsigned shared, CUstream stream, void **params))
LAUNCH(cuLaunchKernelEx, function, (const void *config, CUfunction function, void **params, void **extra))
