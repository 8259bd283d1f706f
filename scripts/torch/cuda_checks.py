"""A check of each documented function of torch.cuda, by its name. A check returns None if the function works, which it asserts on
what the function returns or changes, or "error" or "n/a"."""
import gc
import os
import tempfile

import torch

cuda = torch.cuda
CHECKS, REMARKS = {}, {}
MIB = 1 << 20
NO_GPU = "is not available in this session: its host has no GPU"


def check(*names, remark=None):
    def add(function):
        for name in names or (function.__name__,):
            CHECKS[name] = function
            if remark:
                REMARKS[name] = remark
        return function

    return add


def refuses(name, call, shown=None, remark=None):
    """A function that raises an error with its name."""

    def run():
        try:
            call()
        except RuntimeError as error:
            assert (shown or "torch.cuda." + name) in str(error) and NO_GPU in str(error), error
            return "error"
        raise AssertionError("it raises no error")

    CHECKS[name] = run
    if remark:
        REMARKS[name] = remark


def raises(kind, text, call):
    try:
        call()
    except kind as error:
        assert text in str(error), error
    else:
        raise AssertionError("it raises no %s" % kind.__name__)


def some(number=0, size=MIB):
    return torch.ones(size // 4, device="cuda:%d" % number)


def two():
    return some(0, 64), some(1, 64)


# Devices


@check("is_available", "is_initialized", "init")
def available():
    cuda.init()
    assert cuda.is_available() is True and cuda.is_initialized() is True


@check("device_count", "current_device", "set_device")
def current():
    assert cuda.device_count() == 2 and cuda.current_device() == 0
    cuda.set_device(1)
    try:
        assert cuda.current_device() == 1 and torch.ones(1, device="cuda").device == torch.device("cuda:1") == torch.ones(1).cuda().device
    finally:
        cuda.set_device(0)
    raises(RuntimeError, "invalid device ordinal", lambda: cuda.set_device(7))


@check("device", "device_of", "Device")
def contexts():
    with cuda.device(1):
        assert cuda.current_device() == 1
    with cuda.device_of(some(1, 4)):
        assert cuda.current_device() == 1
    assert cuda.current_device() == 0


@check("get_device_name", "get_device_properties", "get_device_capability")
def properties():
    p = cuda.get_device_properties(1)
    assert cuda.get_device_name(1) == p.name == "NVIDIA GeForce RTX 3060" and p.total_memory == 12288 * MIB and p.multi_processor_count == 28
    assert cuda.get_device_capability(1) == (p.major, p.minor) == (8, 6)
    raises(AssertionError, "Invalid device id", lambda: cuda.get_device_properties(7))


@check("get_arch_list", "get_gencode_flags")
def architectures():
    assert "sm_86" in cuda.get_arch_list() and "code=sm_86" in cuda.get_gencode_flags()


@check("can_device_access_peer")
def peers():
    assert cuda.can_device_access_peer(0, 1) is True and cuda.can_device_access_peer(0, 0) is False
    raises(AssertionError, "Invalid", lambda: cuda.can_device_access_peer(0, 7))


@check("has_half", "is_bf16_supported", "is_tf32_supported")
def formats():
    assert cuda.has_half and cuda.is_bf16_supported() is True
    assert not hasattr(cuda, "is_tf32_supported") or cuda.is_tf32_supported() is True


@check("has_magma", remark="MAGMA is not used.")
def magma():
    assert cuda.has_magma is False
    return "n/a"


@check("memory_usage", "utilization", "temperature", "power_draw", "clock_rate", "device_memory_used", remark="Needs pynvml.")
def nvml():
    functions = [getattr(cuda, name) for name in ("memory_usage", "utilization", "temperature", "power_draw", "clock_rate") if hasattr(cuda, name)]
    try:
        import pynvml  # noqa: F401
    except ImportError:
        for function in functions:
            raises(ModuleNotFoundError, "installed" if "installed" in why(function) else "not found", function)
        return "n/a"
    for function in functions:
        assert function() >= 0
    return "n/a"


def why(function):
    try:
        function()
    except ModuleNotFoundError as error:
        return str(error)
    return ""


@check("list_gpu_processes", remark="Needs pynvml.")
def processes():
    text = cuda.list_gpu_processes()
    assert "pynvml module not found" in text or "GPU:0" in text, text
    return "n/a"


@check("cudart", "check_error", "cudaStatus", "CudaError")
def runtime():
    assert cuda.cudart().cudaMemGetInfo(0) == cuda.mem_get_info(0)
    cuda.check_error(cuda.cudaStatus.SUCCESS)
    raises(cuda.CudaError, "out of memory (2)", lambda: cuda.check_error(2))
    raises(AttributeError, "cudart().cudaOutputMode " + NO_GPU, lambda: cuda.cudart().cudaOutputMode)


@check("DeferredCudaCallError")
def deferred():
    assert issubclass(cuda.DeferredCudaCallError, Exception)


@check("synchronize")
def synchronize():
    x = some() * 2
    cuda.synchronize()
    cuda.synchronize(1)
    assert x.sum().item() == 2 * MIB / 4
    raises(RuntimeError, "invalid device ordinal", lambda: cuda.synchronize(7))


@check("get_sync_debug_mode", "set_sync_debug_mode", remark="Values other than \"default\" raise an error.")
def debug():
    cuda.set_sync_debug_mode("default")
    cuda.set_sync_debug_mode(0)
    assert cuda.get_sync_debug_mode() == 0
    raises(RuntimeError, "torch.cuda.set_sync_debug_mode " + NO_GPU, lambda: cuda.set_sync_debug_mode("warn"))


@check("ipc_collect", remark="Sharing a tensor raises an error, so there is nothing to collect.")
def ipc():
    assert cuda.ipc_collect() is None
    raises(RuntimeError, "Sharing a CUDA tensor with another process " + NO_GPU, lambda: some().storage()._share_cuda_())


# Streams and events


@check("Stream", "stream", "StreamContext", "current_stream", "default_stream", "set_stream")
def streams():
    side = cuda.Stream(device=1, priority=-1)
    assert side.device == torch.device("cuda:1") and side.priority == -1 and side != cuda.default_stream(1) and side.query()
    with cuda.stream(side):
        assert cuda.current_stream(1) == side and cuda.current_device() == 1
    assert cuda.current_stream(1) == cuda.default_stream(1) and isinstance(cuda.stream(side), cuda.StreamContext)
    cuda.set_stream(side)
    assert cuda.current_stream() == side
    for number in (1, 0):
        cuda.set_stream(cuda.default_stream(number))
    assert cuda.current_device() == 0 and cuda.current_stream() == cuda.default_stream()


@check("Event", remark="It has the time at which the CPU reached it.")
def events():
    first, second = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    first.record()
    (some() @ some()).item()
    second.record()
    second.synchronize()
    assert first.query() and 0 < first.elapsed_time(second) < 60000
    raises(RuntimeError, "torch.cuda.Event.ipc_handle " + NO_GPU, lambda: cuda.Event(interprocess=True).ipc_handle())


@check("ExternalStream", "get_stream_from_external", "streams.ExternalStream")
def external_streams():
    stream = cuda.ExternalStream(4096, device=1)
    with cuda.stream(stream):
        assert cuda.current_stream() == stream and stream.cuda_stream == 4096 and stream.device == torch.device("cuda", 1)
    if hasattr(cuda, "get_stream_from_external"):
        assert cuda.get_stream_from_external(4096, 1) == stream


refuses("current_blas_handle", lambda: cuda.current_blas_handle())
refuses("current_solver_handle", lambda: cuda.current_solver_handle())

# Random numbers


@check("manual_seed", "manual_seed_all", "seed", "seed_all", "initial_seed", remark="One generator serves the CPU and all devices.")
def seeds():
    for function in (cuda.manual_seed, cuda.manual_seed_all):
        function(5)
        assert cuda.initial_seed() == 5
        a = torch.rand(3, device="cuda")
        torch.manual_seed(5)
        assert torch.equal(a, torch.rand(3, device="cuda"))
    for function in (cuda.seed, cuda.seed_all):
        function()
        assert cuda.initial_seed() != 5


@check("get_rng_state", "set_rng_state", "get_rng_state_all", "set_rng_state_all", "default_generators", remark="One generator serves the CPU and all devices.")
def states():
    for get, put in ((cuda.get_rng_state, cuda.set_rng_state), (cuda.get_rng_state_all, cuda.set_rng_state_all)):
        state = get()
        a = torch.rand(3, device="cuda")
        put(state)
        assert torch.equal(a, torch.rand(3, device="cuda"))
    assert len(cuda.get_rng_state_all()) == len(cuda.default_generators) == 2


# Memory


@check("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved", "memory_cached", "max_memory_cached", "empty_cache",
       "reset_peak_memory_stats", "reset_max_memory_allocated", "reset_max_memory_cached")
def amounts():
    gc.collect()
    cuda.empty_cache()
    cuda.reset_peak_memory_stats()
    before, held = cuda.memory_allocated(), cuda.memory_reserved()
    x = some(size=30 * MIB)
    assert cuda.memory_allocated() == before + 30 * MIB and cuda.memory_reserved() == cuda.memory_cached() == held + 30 * MIB
    del x
    assert cuda.memory_allocated() == before and cuda.memory_reserved() == held + 30 * MIB
    assert cuda.max_memory_allocated() == before + 30 * MIB and cuda.max_memory_reserved() == cuda.max_memory_cached() == held + 30 * MIB
    cuda.empty_cache()
    assert cuda.memory_reserved() == held
    for reset in (cuda.reset_max_memory_allocated, cuda.reset_max_memory_cached, cuda.reset_peak_memory_stats):
        reset()
        assert cuda.max_memory_allocated() == before and cuda.max_memory_reserved() == held


@check("mem_get_info")
def information():
    cuda.empty_cache()
    free, total = cuda.mem_get_info()
    x = some(size=100 * MIB)
    assert total == 12288 * MIB and cuda.mem_get_info()[0] == free - 100 * MIB
    del x
    cuda.empty_cache()


@check("memory_stats", "memory_stats_as_nested_dict", "memory_summary", "memory_snapshot", "memory._snapshot", "reset_accumulated_memory_stats",
       "get_allocator_backend")
def statistics():
    x = some(size=4 * MIB)
    stats, nested = cuda.memory_stats(), cuda.memory_stats_as_nested_dict()
    assert stats["allocated_bytes.all.current"] == nested["allocated_bytes"]["all"]["current"] == cuda.memory_allocated() >= 4 * MIB
    assert "Allocated memory" in cuda.memory_summary() and " %d K" % (cuda.memory_allocated() // 1024) in cuda.memory_summary()
    segments = cuda.memory_snapshot()
    assert sum(segment["allocated_size"] for segment in segments if segment["device"] == 0) == cuda.memory_allocated()
    assert not hasattr(cuda.memory, "_snapshot") or cuda.memory._snapshot()
    cuda.reset_accumulated_memory_stats()
    assert cuda.memory_stats()["allocated_bytes.all.allocated"] == 0 and not hasattr(cuda, "get_allocator_backend") or cuda.get_allocator_backend() == "native"
    del x


@check("memory._dump_snapshot")
def dump():
    import pickle
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "snapshot")
        cuda.memory._dump_snapshot(path)
        with open(path, "rb") as file:
            assert pickle.load(file)["segments"] == cuda.memory._snapshot()["segments"]


@check("set_per_process_memory_fraction", "get_per_process_memory_fraction", "OutOfMemoryError")
def fraction():
    cuda.set_per_process_memory_fraction(0.1)
    try:
        raises(cuda.OutOfMemoryError, "CUDA out of memory. Tried to allocate 2.00 GiB", lambda: torch.empty(2048 * MIB, dtype=torch.uint8, device="cuda"))
        assert not hasattr(cuda, "get_per_process_memory_fraction") or abs(cuda.get_per_process_memory_fraction() - 0.1) < 1e-6
    finally:
        cuda.set_per_process_memory_fraction(1.0)
    assert torch.empty(128 * MIB, dtype=torch.uint8, device="cuda").is_cuda


@check("caching_allocator_alloc", "caching_allocator_delete")
def raw():
    before = cuda.memory_allocated()
    address = cuda.caching_allocator_alloc(1000)
    assert address > 0 and cuda.memory_allocated() == before + 1024
    cuda.caching_allocator_delete(address)
    assert cuda.memory_allocated() == before
    raises(RuntimeError, "invalid device pointer: 0x5", lambda: cuda.caching_allocator_delete(5))


@check("caching_allocator_enable", remark="False raises an error.")
def caching():
    cuda.caching_allocator_enable(True)
    raises(RuntimeError, "torch.cuda.caching_allocator_enable " + NO_GPU, lambda: cuda.caching_allocator_enable(False))


@check("memory._record_memory_history")
def history():
    memory, old = cuda.memory, not hasattr(cuda.memory, "_dump_snapshot")
    memory._record_memory_history(True) if old else memory._record_memory_history(max_entries=100)
    x = some(size=3000)
    found = memory._snapshot()
    blocks = [block for segment in (found if old else found["segments"]) for block in segment["blocks"]]
    places = [block["history"][0]["frames"] if old else block["frames"] for block in blocks if block.get("history" if old else "frames")]
    assert [[frame["name"] for frame in frames][:2] for frames in places] == [["some", "history"]], places
    del x
    some(size=600)
    if not old:
        trace = [(entry["action"], entry["size"]) for entry in memory._snapshot()["device_traces"][0] if not entry["action"].startswith("segment")]
        assert trace == [("alloc", 3000), ("free_requested", 3000), ("free_completed", 3000), ("alloc", 600), ("free_requested", 600),
                         ("free_completed", 600)], trace
    memory._record_memory_history(False) if old else memory._record_memory_history(None)
    some()
    found = memory._snapshot()
    assert old or not any(found["device_traces"])


for name in ("host_memory_stats", "host_memory_stats_as_nested_dict", "reset_accumulated_host_memory_stats", "reset_peak_host_memory_stats",
             "caching_allocator_disabled"):
    refuses(name, lambda name=name: getattr(cuda, name)())
refuses("change_current_allocator", lambda: cuda.change_current_allocator(None))


@check("use_mem_pool", "MemPool", "MemPoolContext", "memory.MemPool", "memory.MemPoolContext", "memory.use_mem_pool")
def private_pool():
    pool = cuda.MemPool()
    with cuda.use_mem_pool(pool):
        x = some(0, 64)
    y = some(0, 64)
    owners = {block["address"]: segment["segment_pool_id"] for segment in cuda.memory_snapshot() for block in segment["blocks"]}
    assert list(owners.values()).count(pool.id) == 2 and pool.use_count() == 1 and x.is_cuda and y.is_cuda


refuses("CUDAPluggableAllocator", lambda: cuda.memory.CUDAPluggableAllocator("allocator.so", "allocate", "free"))
CHECKS["memory.CUDAPluggableAllocator"] = lambda: CHECKS["CUDAPluggableAllocator"]()

# Types


@check("FloatTensor and the other tensor types", remark="Those of torch.cuda.sparse raise an error.")
def tensors():
    names = [name for name in dir(cuda) if name.endswith("Tensor")]
    for name in names:
        kind = getattr(cuda, name)
        x = kind(2, 3)
        assert x.shape == (2, 3) and x.is_cuda and x.type() == "torch.cuda." + name and isinstance(x, kind) and not isinstance(x.cpu(), kind)
        assert kind([1, 0]).tolist() == [1, 0] and kind(x).data_ptr() == x.data_ptr() and x.cpu().type(kind).is_cuda
    assert len(names) >= 9, names
    raises(TypeError, "expected torch.cuda.FloatTensor (got torch.FloatTensor)", lambda: cuda.FloatTensor(torch.ones(2)))
    raises(RuntimeError, "torch.cuda.sparse.FloatTensor " + NO_GPU, lambda: cuda.sparse.FloatTensor(2, 3))


@check("FloatStorage and the other storage types")
def storages():
    names = [name for name in dir(cuda) if name.endswith("Storage") and not name.startswith(("_", "Untyped", "Typed"))]
    for name in names:
        storage = getattr(cuda, name)(3)
        assert len(storage) == 3 and storage.device == torch.device("cuda:0") and storage.dtype is getattr(cuda, name).dtype
    assert len(names) >= 9, names
