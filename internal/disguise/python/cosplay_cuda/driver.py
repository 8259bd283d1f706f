"""The session's CUDA driver, by ctypes: devices, contexts and memory. The memory that is taken here is what nvidia-smi
and the session's account show."""
import ctypes
import os
import threading

SUCCESS, OUT_OF_MEMORY = 0, 2
SM_COUNT = 16  # CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
CAPABILITY_MAJOR, CAPABILITY_MINOR = 75, 76
LIBRARY = "libcuda.so.1"


class DriverError(RuntimeError):
    pass


class Driver:
    """Connects on first use, so that a program that does not use CUDA can still fork."""

    def __init__(self):
        self.library = None
        self.contexts = {}  # by device
        self.lock = threading.Lock()
        self.process = os.getpid()
        self.current = threading.local()  # the device of the thread's context

    def call(self, name, *args):
        result = getattr(self.library, name)(*args)
        if result != SUCCESS:
            raise DriverError("CUDA error %d of %s in the session's %s" % (result, name, LIBRARY))

    def open(self):
        if self.library is None:
            with self.lock:
                if self.library is None:
                    library = ctypes.CDLL(LIBRARY)
                    library.cuMemAlloc_v2.argtypes = [ctypes.POINTER(ctypes.c_uint64), ctypes.c_size_t]
                    library.cuMemFree_v2.argtypes = [ctypes.c_uint64]
                    library.cuCtxSetCurrent.argtypes = [ctypes.c_void_p]
                    result = library.cuInit(0)
                    if result != SUCCESS:
                        raise DriverError("CUDA error %d of cuInit in the session's %s" % (result, LIBRARY))
                    self.library = library
        return self.library

    def count(self):
        try:
            self.open()
        except DriverError:
            return 0
        count = ctypes.c_int()
        self.call("cuDeviceGetCount", ctypes.byref(count))
        return count.value

    def name(self, device):
        self.open()
        text = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", text, len(text), self.handle(device))
        return text.value.decode()

    def handle(self, device):
        handle = ctypes.c_int()
        self.call("cuDeviceGet", ctypes.byref(handle), device)
        return handle

    def total(self, device):
        self.open()
        total = ctypes.c_size_t()
        self.call("cuDeviceTotalMem_v2", ctypes.byref(total), self.handle(device))
        return total.value

    def attribute(self, which, device):
        self.open()
        value = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(value), which, self.handle(device))
        return value.value

    def version(self):
        """The version of CUDA: 12040 is 12.4. The driver is not started for it, so that a program can still fork."""
        value = ctypes.c_int()
        result = ctypes.CDLL(LIBRARY).cuDriverGetVersion(ctypes.byref(value))
        if result != SUCCESS:
            raise DriverError("CUDA error %d of cuDriverGetVersion in the session's %s" % (result, LIBRARY))
        return value.value

    def error(self, code):
        """What CUDA calls an error."""
        self.open()
        text = ctypes.c_char_p()
        result = self.library.cuGetErrorString(code, ctypes.byref(text))
        return text.value.decode() if result == SUCCESS and text.value else "unrecognized error code"

    def capability(self, device):
        return self.attribute(CAPABILITY_MAJOR, device), self.attribute(CAPABILITY_MINOR, device)

    def uuid(self, device):
        self.open()
        value = (ctypes.c_ubyte * 16)()
        self.call("cuDeviceGetUuid", value, self.handle(device))
        return bytes(bytearray(value))

    def enter(self, device):
        """Makes the device's context current in this thread. The context takes memory, as on hardware."""
        if getattr(self.current, "device", None) == device:
            return
        self.open()
        if device not in self.contexts:
            with self.lock:
                if device not in self.contexts:
                    context = ctypes.c_void_p()
                    self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self.handle(device))
                    self.contexts[device] = context
        self.call("cuCtxSetCurrent", self.contexts[device])
        self.current.device = device

    def memory(self, device):
        """Free and total bytes."""
        self.enter(device)
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value, total.value

    def take(self, device, size):
        """Allocates memory; returns None if too little is left."""
        self.enter(device)
        address = ctypes.c_uint64()
        result = self.library.cuMemAlloc_v2(ctypes.byref(address), size)
        if result == OUT_OF_MEMORY:
            return None
        if result != SUCCESS:
            raise DriverError("CUDA error %d of cuMemAlloc in the session's %s" % (result, LIBRARY))
        return address.value

    def give(self, device, address):
        # A forked child has no part in its parent's context, whose memory its own copies of objects seem to release.
        if os.getpid() == self.process:
            self.enter(device)
            self.call("cuMemFree_v2", address)
