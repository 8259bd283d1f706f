# As little of PyTorch as the self-test asks for, over the CUDA driver of the
# session. LIE names an answer that is to be wrong; who got much memory writes its
# pid to the file PAUSE and keeps it.
import ctypes
import os
import time
from types import SimpleNamespace

LIE = os.environ.get("LIE")
version = SimpleNamespace(cuda="12.4")


class Switch:
    on = True
    allow_tf32 = property(lambda self: self.on or LIE == "torch.tf32", lambda self, on: setattr(self, "on", on))


backends = SimpleNamespace(cuda=SimpleNamespace(matmul=Switch()), cudnn=Switch())
uint8 = "uint8"
started = None


class OutOfMemoryError(RuntimeError):
    pass


def driver():
    # CUDA does not outlive a fork.
    global started
    if LIE == "torch.gpu":
        raise RuntimeError("Found no NVIDIA driver on your system")
    if started is None:
        library = ctypes.CDLL("libcuda.so.1")
        context = ctypes.c_void_p()
        for answer in (library.cuInit(0), library.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), library.cuCtxSetCurrent(context)):
            if answer:
                raise RuntimeError("CUDA error %d" % answer)
        started = library, os.getpid()
    if started[1] != os.getpid():
        raise RuntimeError("Cannot re-initialize CUDA in forked subprocess")
    return started[0]


def name_of(index):
    name = ctypes.create_string_buffer(256)
    driver().cuDeviceGetName(name, 256, index)
    return name.value.decode()


def is_available():
    return LIE != "torch.gpu"


def get_device_name(index):
    return "NVIDIA H200" if LIE == "torch.name" else name_of(index)


def mem_get_info():
    if LIE == "torch.fork" and os.getpid() != first:
        raise RuntimeError("Cannot re-initialize CUDA in forked subprocess")
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    driver().cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
    return free.value, 7 if LIE == "torch.memory" else total.value


def get_device_properties(index):
    total = ctypes.c_size_t()
    driver().cuDeviceTotalMem_v2(ctypes.byref(total), index)
    return SimpleNamespace(name=name_of(index), total_memory=7 if LIE == "torch.properties" else total.value)


class empty:
    def __init__(self, size, dtype, device):
        self.address = ctypes.c_uint64()
        if LIE == "torch.above":
            size = 1 << 20
        if LIE == "torch.below":
            size = 1 << 60
        answer = driver().cuMemAlloc_v2(ctypes.byref(self.address), ctypes.c_size_t(size))
        if answer == 2:
            raise OutOfMemoryError("CUDA out of memory")
        if answer:
            raise RuntimeError("CUDA error %d" % answer)
        if os.environ.get("PAUSE") and size > 1 << 30:
            with open(os.environ["PAUSE"] + ".new", "w") as file:
                file.write(str(os.getpid()))
            os.rename(file.name, os.environ["PAUSE"])
            time.sleep(60)

    def __del__(self):
        if self.address.value:
            driver().cuMemFree_v2(self.address)


first = os.getpid()
cuda = SimpleNamespace(OutOfMemoryError=OutOfMemoryError, is_available=is_available, get_device_name=get_device_name, mem_get_info=mem_get_info,
                       get_device_properties=get_device_properties, empty_cache=lambda: None)
