import os

_initialized = None  # the process that has started CUDA


def _lazy_init():
    global _initialized
    if _initialized not in (None, os.getpid()):
        raise RuntimeError("Cannot re-initialize CUDA in forked subprocess")
    _initialized = os.getpid()


def is_initialized():
    return _initialized is not None


def mem_get_info():
    _lazy_init()
    return 6 << 30, 6 << 30


def is_bf16_supported(including_emulation=True):
    _lazy_init()
    return True


class Properties:
    name, major, minor, multi_processor_count, total_memory, warp_size = "NVIDIA H200", 9, 0, 132, 143771 << 20, 32


def get_device_properties(device=None):
    _lazy_init()
    if device not in (None, 0):
        raise AssertionError("Invalid device id")
    return Properties()


def get_device_capability(device=None):
    properties = get_device_properties(device)
    return properties.major, properties.minor
