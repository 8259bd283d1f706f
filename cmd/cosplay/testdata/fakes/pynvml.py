# As little of pynvml, over the NVML library of the session.
import ctypes
import os
from types import SimpleNamespace

LIE = os.environ.get("LIE")
library = ctypes.CDLL("libnvidia-ml.so.1")


def nvmlInit():
    if library.nvmlInit_v2():
        raise RuntimeError("NVML")


def nvmlDeviceGetHandleByIndex(index):
    device = ctypes.c_void_p()
    library.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(device))
    return device


def nvmlDeviceGetName(device):
    name = ctypes.create_string_buffer(96)
    library.nvmlDeviceGetName(device, name, 96)
    return "NVIDIA H200" if LIE == "pynvml.name" else name.value


def nvmlDeviceGetMemoryInfo(device):
    memory = (ctypes.c_uint64 * 3)()
    library.nvmlDeviceGetMemoryInfo(device, memory)
    return SimpleNamespace(total=7 if LIE == "pynvml.memory" else memory[0])
