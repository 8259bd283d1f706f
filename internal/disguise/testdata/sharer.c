/*
 * One of two that share memory: sharer LIBRARY, with a socket to the other as file
 * 3. It runs its input, line by line, and answers each with CUDA's answer or 0:
 *
 *     take MIB, free                 linear memory; "ipc" tells the other of it, "open"
 *                                    and "close" are for the process that has it
 *     create MIB, release            a handle of physical memory
 *     map, unmap                     what the handle stands for, "bind" binds it to a
 *                                    multicast object
 *     export, import, shut           a file that stands for the handle, and its end
 *     pool MIB, empty, destroy       a pool with one piece in it
 *     pool-export, pool-import       as above, for the pool
 *     pointer, pointer-import        the piece of a pool that the other has
 *     send, receive                  the file, to the other and from it
 *     leave                          the context, for good
 *     info                           MIB free
 */
#include "cuda.h"

#include <sys/socket.h>
#include <unistd.h>

enum { PEER = 3 };

static CUdeviceptr block, address, piece, peers;
static CUmemGenericAllocationHandle handle;
static CUmemoryPool pool;
static size_t mapped, number;
static int file;

static int send_file(void)
{
    char byte = 0, room[CMSG_SPACE(sizeof file)] = {0};
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    struct cmsghdr *c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof file);
    memcpy(CMSG_DATA(c), &file, sizeof file);
    return sendmsg(PEER, &message, 0) != 1;
}

static int receive_file(void)
{
    char byte, room[CMSG_SPACE(sizeof file)];
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    if (recvmsg(PEER, &message, 0) != 1 || !CMSG_FIRSTHDR(&message))
        return 1;
    memcpy(&file, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof file);
    return 0;
}

static int create(size_t mib)
{
    CUmemAllocationProp p = {.type = 1, .handle_types = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, .location = {1, 0}};
    mapped = mib * MIB;
    return CU(cuMemCreate)(&handle, mapped, &p, 0);
}

static int map(void)
{
    MUST(CU(cuMemAddressReserve)(&address, mapped, 0, 0, 0));
    return CU(cuMemMap)(address, mapped, 0, handle, 0);
}

static int bind_memory(void)
{
    CUmemGenericAllocationHandle object;
    CUmulticastObjectProp p = {1, mapped, 0, 0};
    MUST(CU(cuMulticastCreate)(&object, &p));
    MUST(CU(cuMulticastAddDevice)(object, 0));
    return CU(cuMulticastBindMem)(object, 0, handle, 0, mapped, 0);
}

static int make_pool(size_t mib)
{
    CUmemPoolProps p = {.type = 1, .handle_types = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, .location = {1, 0}};
    MUST(CU(cuMemPoolCreate)(&pool, &p));
    return CU(cuMemAllocFromPoolAsync)(&piece, mib * MIB, pool, NULL);
}

static int empty_pool(void)
{
    MUST(CU(cuMemFreeAsync)(piece, NULL));
    return CU(cuCtxSynchronize)();
}

static int tell_of_block(void)
{
    CUipcMemHandle shared;
    int answer = CU(cuIpcGetMemHandle)(&shared, block);
    return answer || send(PEER, &shared, sizeof shared, 0) != sizeof shared;
}

static int open_block(void)
{
    CUipcMemHandle shared;
    if (recv(PEER, &shared, sizeof shared, 0) != sizeof shared)
        return -1;
    return CU(cuIpcOpenMemHandle_v2)(&peers, shared, 1);
}

static int tell_of_piece(void)
{
    CUmemPoolPtrExportData shared;
    int answer = CU(cuMemPoolExportPointer)(&shared, piece);
    return answer || send(PEER, &shared, sizeof shared, 0) != sizeof shared;
}

static int import_piece(void)
{
    CUmemPoolPtrExportData shared;
    if (recv(PEER, &shared, sizeof shared, 0) != sizeof shared)
        return -1;
    return CU(cuMemPoolImportPointer)(&piece, pool, &shared);
}

static int import(void) { return CU(cuMemImportFromShareableHandle)(&handle, (void *)(intptr_t)file, 1); }
static int import_pool(void) { return CU(cuMemPoolImportFromShareableHandle)(&pool, (void *)(intptr_t)file, 1, 0); }

static int obey(const char *order)
{
    return strcmp(order, "take") == 0             ? CU(cuMemAlloc_v2)(&block, number * MIB)
           : strcmp(order, "free") == 0           ? CU(cuMemFree_v2)(block)
           : strcmp(order, "ipc") == 0            ? tell_of_block()
           : strcmp(order, "open") == 0           ? open_block()
           : strcmp(order, "close") == 0          ? CU(cuIpcCloseMemHandle)(peers)
           : strcmp(order, "create") == 0         ? create(number)
           : strcmp(order, "map") == 0            ? map()
           : strcmp(order, "unmap") == 0          ? CU(cuMemUnmap)(address, mapped)
           : strcmp(order, "bind") == 0           ? bind_memory()
           : strcmp(order, "release") == 0        ? CU(cuMemRelease)(handle)
           : strcmp(order, "export") == 0         ? CU(cuMemExportToShareableHandle)(&file, handle, 1, 0)
           : strcmp(order, "import") == 0         ? (mapped = number * MIB, import())
           : strcmp(order, "shut") == 0           ? close(file)
           : strcmp(order, "send") == 0           ? send_file()
           : strcmp(order, "receive") == 0        ? receive_file()
           : strcmp(order, "pool") == 0           ? make_pool(number)
           : strcmp(order, "empty") == 0          ? empty_pool()
           : strcmp(order, "destroy") == 0        ? CU(cuMemPoolDestroy)(pool)
           : strcmp(order, "pool-export") == 0    ? CU(cuMemPoolExportToShareableHandle)(&file, pool, 1, 0)
           : strcmp(order, "pool-import") == 0    ? import_pool()
           : strcmp(order, "pointer") == 0        ? tell_of_piece()
           : strcmp(order, "pointer-import") == 0 ? import_piece()
           : strcmp(order, "leave") == 0          ? CU(cuDevicePrimaryCtxRelease_v2)(0)
           : strcmp(order, "info") == 0           ? (int)(free_bytes() / MIB)
                                                  : -1;
}

int main(int count, char **arguments)
{
    char line[64], order[64];
    (void)count;
    setvbuf(stdout, NULL, _IOLBF, 0);
    start(arguments[1]);
    printf("ready\n");
    while (fgets(line, sizeof line, stdin) && sscanf(line, "%63s %zu", order, &number) >= 1)
        printf("%d\n", obey(order));
    return 0;
}
