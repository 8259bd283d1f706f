"""What a CPU build of PyTorch lacks below torch.cuda: the functions of torch._C that PyTorch's own Python code calls.
torch.cuda itself stays PyTorch's, so it behaves and reports as in the version at hand."""
import ctypes
import itertools
import os
import uuid

from . import builds, errors, refused, streams
from .driver import SM_COUNT

# Further attributes of a device, by the names of CUDA's numbers.
ATTRIBUTES = {
    "warp_size": 10, "shared_memory_per_block": 8, "regs_per_multiprocessor": 82, "max_threads_per_multi_processor": 39,
    "max_threads_per_block": 1, "shared_memory_per_multiprocessor": 81, "shared_memory_per_block_optin": 97, "L2_cache_size": 38,
    "clock_rate": 13, "memory_clock_rate": 36, "memory_bus_width": 37, "is_integrated": 18, "is_multi_gpu_board": 84,
    "pci_bus_id": 33, "pci_device_id": 34, "pci_domain_id": 50,
}


class Properties(object):
    """What torch.cuda.get_device_properties returns."""

    def __init__(self, driver, index, capability, figures):
        self.name, self.total_memory = driver.name(index), driver.total(index)
        self.major, self.minor = capability()
        self.multi_processor_count = figures.get("sms") or driver.attribute(SM_COUNT, index)
        for name, number in ATTRIBUTES.items():
            setattr(self, name, driver.attribute(number, index))
        if figures.get("l2_mib"):
            self.L2_cache_size = int(figures["l2_mib"] * 1024) << 10
        self.is_integrated, self.is_multi_gpu_board = bool(self.is_integrated), bool(self.is_multi_gpu_board)
        self.uuid = uuid.UUID(bytes=driver.uuid(index))
        self.gcnArchName = self.name

    def __repr__(self):
        return "_CudaDeviceProperties(name='%s', major=%d, minor=%d, total_memory=%dMB, multi_processor_count=%d, uuid=%s, L2_cache_size=%dMB)" % (
            self.name, self.major, self.minor, self.total_memory >> 20, self.multi_processor_count, self.uuid, self.L2_cache_size >> 20)


def nested(stats):
    """{"a.b": 1} as {"a": {"b": 1}}."""
    result = {}
    for label, value in stats.items():
        parts, at = label.split("."), result
        for part in parts[:-1]:
            at = at.setdefault(part, {})
        at[parts[-1]] = value
    return result


FIRST_STREAM = 0x55550000  # where the streams begin that programs make themselves


class Runtime(object):
    """torch.cuda.cudart(): the functions of CUDA's runtime that PyTorch exposes."""

    class cudaError(int):
        success = 0

    def __init__(self, driver):
        self.driver = driver
        self.registered = {}  # sizes of memory of the host that is pinned, by its address
        self.numbers = itertools.count(FIRST_STREAM, 16)

    def __getattr__(self, name):
        raise AttributeError("torch.cuda.cudart().%s is not available in this session: its host has no GPU, and the CPU computes" % name)

    def cudaGetErrorString(self, code):
        return self.driver.error(int(code))

    def cudaMemGetInfo(self, device):
        return self.driver.memory(device)

    def cudaHostRegister(self, address, size, flags):
        self.registered[address] = size
        return 0

    def cudaHostUnregister(self, address):
        self.registered.pop(address, None)
        return 0

    def is_registered(self, address):
        return any(start <= address < start + size for start, size in self.registered.items())

    def cudaStreamCreate(self, address):
        ctypes.c_uint64.from_address(address).value = next(self.numbers)
        return 0

    def nothing(self, *args):
        return 0

    cudaProfilerStart = cudaProfilerStop = cudaProfilerInitialize = cudaStreamDestroy = nothing


class Range(object):
    """NVIDIA's marks for profilers, which nothing reads here."""

    def __init__(self):
        self.depth = 0

    def rangePushA(self, text):
        self.depth += 1
        return self.depth - 1

    def rangePop(self):
        self.depth -= 1
        return self.depth

    def rangeStartA(self, text):
        return 0

    def rangeEnd(self, number):
        return None

    markA = deviceRangeStart = deviceRangeEnd = rangeEnd


def functions(torch, driver, memory, capability, figures):
    """The functions by their names in torch._C."""
    current = streams.current

    def set_device(index):
        if index >= 0:
            check(index)
            current.device = index

    def check(index):
        count = torch.cuda.device_count()
        if not 0 <= index < count:
            raise errors.invalid_device(torch)

    def exchange(index):
        before = current.device
        if index >= 0:
            set_device(index)
            return before
        return -1

    def start():
        if driver.count() == 0:
            raise RuntimeError("No CUDA GPUs are available")
        count = driver.count()
        # The CPU computes, so its generator is that of every device: the same seed gives the numbers of the CPU.
        torch.cuda.default_generators = (torch.default_generator,) * count
        known = [Properties(driver, index, capability, figures) for index in range(count)]
        torch.cuda._get_device_properties = known.__getitem__

    def of_device(index):
        check(index)
        return memory.of(index)

    def stream_parts(index):
        number = streams.stream_of(index)
        return (number, index, streams.CUDA_TYPE) if errors.version(torch) >= (2, 0) else streams.pack(index, number)

    def default_stream(index):
        return (0, index, streams.CUDA_TYPE) if errors.version(torch) >= (2, 0) else streams.pack(index, 0)

    def set_stream(packed=None, stream_id=None, device_index=None, device_type=None):
        if packed is not None:
            device_index, stream_id = packed >> 32, packed & 0xFFFFFFFF
        current.device = device_index
        current.streams[device_index] = stream_id

    def set_fraction(fraction, index):
        of_device(index).limit = int(fraction * driver.total(index))

    def get_fraction(index):
        limit = of_device(index).limit
        return 1.0 if limit is None else limit / float(driver.total(index))

    def snapshot(*args):
        found = []
        for device, state in memory.allocators.items():
            for segment, blocks in state.layout():
                used = sum(size for _, size, _, taken in blocks if taken)
                found.append({
                    "device": device, "address": segment.handle, "total_size": segment.size, "allocated_size": used, "active_size": used,
                    "requested_size": sum(wanted for _, _, wanted, taken in blocks if taken), "stream": segment.pool.stream,
                    "segment_type": "small" if segment.pool.small else "large", "segment_pool_id": segment.pool.owner or (0, 0), "is_expandable": False, "frames": [],
                    "blocks": [{"size": size, "requested_size": wanted, "address": segment.handle + at, "frames": [],
                                "state": "active_allocated" if taken else "inactive"} for at, size, wanted, taken in blocks]})
        return found if errors.version(torch) < (2, 1) else {"segments": found, "device_traces": [[] for _ in range(driver.count())],
                                                             "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": ""}, "external_annotations": []}

    raw = {}

    def raw_alloc(size, stream=0):
        tag = memory.tag(current.device, size)
        address = memory.allocators[current.device].segments[tag.block.segment.number].handle + tag.block.start
        raw[address] = tag
        return address

    def raw_delete(address):
        if raw.pop(address, None) is None:
            raise RuntimeError("invalid device pointer: 0x%x" % address)

    return {
        "_cuda_init": start,
        "_cuda_getDeviceCount": driver.count,
        "_cuda_getDevice": lambda: current.device,
        "_cuda_setDevice": set_device,
        "_cuda_exchangeDevice": exchange,
        "_cuda_maybeExchangeDevice": exchange,
        "_cuda_canDeviceAccessPeer": lambda a, b: a != b,
        "_cuda_getDriverVersion": driver.version,
        "_cuda_hasPrimaryContext": lambda index: index in driver.contexts,
        "_cuda_isInBadFork": lambda: memory.forked,
        "_cuda_synchronize": lambda: None,
        "_cuda_sleep": lambda cycles: None,
        "_cuda_ipc_collect": lambda: None,
        "_cuda_get_sync_debug_mode": lambda: 0,
        "_cuda_getCurrentStream": stream_parts,
        "_cuda_getDefaultStream": default_stream,
        "_cuda_getCurrentRawStream": streams.stream_of,
        "_cuda_setStream": set_stream,
        "_cuda_getStreamFromExternal": lambda pointer, index: (pointer, index, streams.CUDA_TYPE),
        "_cuda_emptyCache": memory.empty_cache,
        "_host_emptyCache": lambda: None,
        "_cuda_memGetInfo": driver.memory,
        "_cuda_memoryStats": lambda index: nested(of_device(index).stats()),
        "_cuda_resetAccumulatedMemoryStats": lambda index: of_device(index).reset_totals(),
        "_cuda_resetPeakMemoryStats": lambda index: of_device(index).reset_peaks(),
        "_cuda_setMemoryFraction": set_fraction,
        "_cuda_getMemoryFraction": get_fraction,
        "_cuda_memorySnapshot": snapshot,
        "_cuda_getAllocatorBackend": lambda: "native",
        "_cuda_cudaCachingAllocator_raw_alloc": raw_alloc,
        "_cuda_cudaCachingAllocator_raw_delete": raw_delete,
        "_cuda_lock_mutex": lambda: None,
        "_cuda_unlock_mutex": lambda: None,
        "_cuda_set_cudnn_benchmark_limit": lambda limit: None,
        "_cuda_get_cudnn_benchmark_limit": lambda: 10,
        "_cuda_cudaCachingAllocator_is_enabled": lambda: True,
        "_cuda_cudaCachingAllocator_set_allocator_settings": memory.set,
        "_accelerator_setAllocatorSettings": memory.set,
        "_cuda_tunableop_is_enabled": lambda: False,
        "_cuda_tunableop_tuning_is_enabled": lambda: False,
        "_cuda_record_untuned_is_enabled": lambda: False,
    }


# What PyTorch's Python code asks of torch._C besides: each is an error that states the function.
WITHOUT = (
    "_cuda_cudaHostAllocator", "_cuda_getAllocator", "_cuda_getCheckpointState", "_cuda_setCheckpointPoolState",
    "_cuda_checkPoolLiveAllocations",
)


def install(torch, driver, memory, capability, figures, workspaces):
    provided = functions(torch, driver, memory, capability, figures)
    provided.update(workspaces.functions())
    provided.update((name, named(name)) for name in WITHOUT)
    if not hasattr(torch._C, "_cuda_CUDAAllocator_AllocatorState"):
        torch._C._cuda_CUDAAllocator_AllocatorState = type("AllocatorState", (), {})  # the compiler imports its name
    provided["_cuda_getArchFlags"] = getattr(torch._C, "_cuda_getArchFlags", lambda: "sm_%d%d" % capability())
    builds.refuse_rest(torch, provided)
    builds.libraries(torch)
    for name, function in provided.items():
        setattr(torch._C, name, function)
        for module in (torch.cuda, torch.cuda.graphs, torch.cuda.memory):
            if hasattr(module, name):
                setattr(module, name, function)
    cuda = torch.cuda
    cuda._cudart = torch._C._cudart = Runtime(driver)
    cuda._is_in_bad_fork = provided["_cuda_isInBadFork"]
    cuda._exchange_device, cuda._maybe_exchange_device = provided["_cuda_exchangeDevice"], provided["_cuda_maybeExchangeDevice"]

    def device_count():
        if driver.library is None and errors.version(torch) >= (2, 0):  # a program can still set CUDA_VISIBLE_DEVICES
            count = cuda._device_count_nvml()
            if count > 0:
                return count
        return driver.count()

    refused.replace(torch, "", "device_count", device_count)
    cuda.nvtx._nvtx = Range()
    torch.backends.cuda.is_built = lambda: True
    base, event = streams.make(torch)
    for name, kind in (("_CudaStreamBase", base), ("_CudaEventBase", event)):
        builds.rebase(torch, name, kind)
    cuda.has_half = True
    torch._C._CudaDeviceProperties = cuda._CudaDeviceProperties = Properties
    seeds(torch)
    if hasattr(torch, "accelerator"):
        accelerate(torch, provided)

    def forget():
        if driver.contexts:
            memory.forked = True
            memory.allocators.clear()
            cuda._initialized = False

    os.register_at_fork(after_in_child=forget)


def seeds(torch):
    """The generator of the CPU is that of every device. PyTorch would seed it again when CUDA starts."""
    generator = torch.default_generator

    def manual_seed(seed):
        generator.manual_seed(int(seed))

    def seed():
        generator.seed()

    def set_rng_state(new_state, device="cuda"):
        generator.set_state(new_state)

    for module in (torch.cuda, torch.cuda.random):
        module.manual_seed = module.manual_seed_all = manual_seed
        module.seed = module.seed_all = seed
        module.set_rng_state = set_rng_state


def named(name):
    def missing(*args, **kwargs):
        raise errors.unsupported("torch._C." + name)

    return missing


def accelerate(torch, provided):
    """torch.accelerator, the newer name of what torch.cuda has."""
    module = torch.accelerator
    for name, of_cuda in (("device_count", "device_count"), ("current_device_index", "current_device"), ("current_device_idx", "current_device"),
                          ("current_stream", "current_stream"), ("set_stream", "set_stream"), ("set_device_index", "set_device"),
                          ("set_device_idx", "set_device"), ("synchronize", "synchronize"), ("empty_cache", "empty_cache"),
                          ("memory_stats", "memory_stats"), ("memory_allocated", "memory_allocated"), ("memory_reserved", "memory_reserved"),
                          ("max_memory_allocated", "max_memory_allocated"), ("max_memory_reserved", "max_memory_reserved"),
                          ("reset_peak_memory_stats", "reset_peak_memory_stats"), ("get_memory_info", "mem_get_info")):
        if hasattr(module, name) and hasattr(torch.cuda, of_cuda):
            setattr(module, name, getattr(torch.cuda, of_cuda))
    streams.generic(torch)
    module.is_available = lambda: torch.cuda.device_count() > 0
    module.current_accelerator = lambda check_available=False: torch.device("cuda")
    torch._C._accelerator_getAccelerator = torch._C._get_accelerator = lambda check=None: torch.device("cuda")
    torch._C._accelerator_deviceCount = provided["_cuda_getDeviceCount"]
    torch._C._accelerator_getDeviceIndex = provided["_cuda_getDevice"]
    torch._C._accelerator_setDeviceIndex = provided["_cuda_setDevice"]
    torch._C._accelerator_synchronizeDevice = lambda device: None
    torch._C._accelerator_getStream = lambda index: torch.cuda.current_stream(index)
    torch._C._accelerator_setStream = lambda stream: torch.cuda.set_stream(stream)
    dtypes = {value for value in vars(torch).values() if isinstance(value, torch.dtype)}
    torch._C._accelerator_getDeviceCapability = lambda index: {"supported_dtypes": dtypes}
    torch._C._accelerator_getMemoryInfo = provided["_cuda_memGetInfo"]
    torch._C._accelerator_getDefaultGenerator = lambda index: torch.default_generator
    torch._C._accelerator_emptyHostCache = provided["_host_emptyCache"]
    torch._C._accelerator_exchangeDevice = provided["_cuda_exchangeDevice"]
    torch._C._accelerator_maybeExchangeDevice = provided["_cuda_maybeExchangeDevice"]
    torch._C._accelerator_isAllocatorInitialized = torch.cuda.is_initialized
    torch._C._accelerator_emptyCache = provided["_cuda_emptyCache"]
    torch._C._accelerator_getDeviceStats = provided["_cuda_memoryStats"]
    torch._C._accelerator_resetAccumulatedStats = provided["_cuda_resetAccumulatedMemoryStats"]
    torch._C._accelerator_resetPeakStats = provided["_cuda_resetPeakMemoryStats"]
