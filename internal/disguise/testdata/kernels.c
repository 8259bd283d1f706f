/* Loads code and launches its kernels: prints what each call answers. */
#include "cuda.h"

static const char ptx[] = "// a kernel\n.version 7.0\n.target sm_50\n.address_size 64\n"
                          ".visible .entry add(.param .u64 a)\n{\n ret;\n}\n.visible .entry added()\n{\n ret;\n}\n";

/* The shape of a cubin: a header, names of sections, no sections. */
static void make_elf(char *elf, int machine)
{
    static const char names[] = "\0.text.add\0.nv.info";
    memset(elf, 0, 128);
    memcpy(elf, "\177ELF\2\1\1", 7);
    elf[0x12] = (char)machine;
    elf[0x28] = 64 + sizeof names; /* where the table of sections would be */
    memcpy(elf + 64, names, sizeof names);
}

static void find(CUmodule module, const char *name)
{
    CUfunction function;
    int answer = CU(cuModuleGetFunction)(&function, module, name);
    printf(" %s %d", name, answer);
    if (answer != CUDA_SUCCESS)
        return;
    MUST(CU(cuFuncSetBlockShape)(function, 1, 1, 1));
    printf(" launch %d", CU(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    printf(" %d", CU(cuLaunchKernel_ptsz)(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    printf(" %d", CU(cuLaunchCooperativeKernel)(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL));
    printf(" %d", CU(cuLaunchKernelEx)(NULL, function, NULL, NULL));
}

static void load(const char *what, const void *code)
{
    CUmodule module;
    int answer = CU(cuModuleLoadData)(&module, code);
    printf("%s %d", what, answer);
    if (answer == CUDA_SUCCESS) {
        find(module, "add");
        find(module, "ad");
        find(module, "no_such");
        MUST(CU(cuModuleUnload)(module));
        CUfunction function;
        printf(" unloaded %d %d", CU(cuModuleGetFunction)(&function, module, "add"), CU(cuModuleUnload)(module));
    }
    printf("\n");
}

int main(int argc, char **argv)
{
    char elf[128], fat[16 + sizeof ptx] = "\x50\xED\x55\xBA\1\0\x10";
    CUmodule module;
    int version, count;
    if (argc != 2 || !(library = dlopen(argv[1], RTLD_NOW)))
        return 1;
    MUST(CU(cuDriverGetVersion)(&version)); /* works before cuInit, and changes nothing */
    start(argv[1]);
    MUST(CU(cuDeviceGetCount)(&count));
    printf("devices %d\n", count);
    load("ptx", ptx);
    load("text", "not ptx");
    load("no-target", ".version 7.0\n");
    load("empty", "");
    make_elf(elf, 190);
    load("cubin", elf);
    make_elf(elf, 62);
    load("program", elf);
    fat[8] = (char)sizeof ptx;
    memcpy(fat + 16, ptx, sizeof ptx);
    load("fat", fat);
    memset(fat + 16, 7, sizeof ptx);
    load("compressed", fat);
    FILE *file = fopen("kernels.ptx", "w");
    if (!file || fputs(ptx, file) < 0 || fclose(file) != 0)
        return 1;
    printf("file %d %d\n", CU(cuModuleLoad)(&module, "kernels.ptx"), CU(cuModuleLoad)(&module, "no-such-file"));
    MUST(CU(cuFuncSetBlockShape)((CUfunction)(void *)&count, 1, 1, 1) != CUDA_ERROR_INVALID_HANDLE);
    printf("handle %d\n", CU(cuLaunchKernel)((CUfunction)(void *)&count, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    for (int attribute = 1; attribute < 130; attribute++) {
        int value = 0, answer = CU(cuDeviceGetAttribute)(&value, attribute, 0);
        printf("attribute-%d %d\n", attribute, answer == CUDA_SUCCESS ? value : -answer);
    }
    return 0;
}
