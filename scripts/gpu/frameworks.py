"""Print what PyTorch, JAX, CuPy, Triton and pynvml see, for scripts/gpu/measure.

    python3 frameworks.py torch|jax|cupy|triton|pynvml

Each line is a word and a value, as plain.c prints them. Exit code 3: the module is
not installed.
"""

import ctypes
import os
import sys
import time

MIB = 1 << 20


def say(word, value):
    print(word, value, flush=True)


def fill(allocate, refused):
    """Allocate until nothing more fits, in ever smaller steps; return the MiB that fit."""
    held, mib, step = [], 0, 1024
    while step >= 1:  # PyTorch asks the driver for 20 MiB where 2 to 10 are needed, for 2 where 1 is
        try:
            held.append(allocate(step * MIB))
            mib += step
        except refused:
            step //= 2
    return mib


def room():
    """Return the MiB that the driver reports as free; a framework may report other values."""
    driver = ctypes.CDLL("libcuda.so.1")
    context, free, total = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t()
    driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    driver.cuCtxPushCurrent_v2(context)
    answer = driver.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
    driver.cuCtxPopCurrent_v2(ctypes.byref(context))
    driver.cuDevicePrimaryCtxRelease_v2(0)
    if answer:
        sys.exit(f"cuMemGetInfo answers {answer}")
    return free.value // MIB


def launches(launch, wait, rounds=10000):
    launch()
    wait()
    begin = time.perf_counter_ns()
    for _ in range(rounds):
        launch()
    wait()
    say("launch_ns", (time.perf_counter_ns() - begin) // rounds)


def speed(t):
    """Float32 of matrix products without tensor cores, and memory: bytes read and written by copies."""
    def seconds(work):
        start, end = t.cuda.Event(enable_timing=True), t.cuda.Event(enable_timing=True)
        work()
        start.record()
        for _ in range(10):
            work()
        end.record()
        t.cuda.synchronize()
        return start.elapsed_time(end) / 10 / 1000

    n = 4096
    a, b, c = (t.ones(n, n, device="cuda") for _ in range(3))
    say("fp32_tflops", "%.1f" % (2 * n ** 3 / seconds(lambda: t.mm(a, b, out=c)) / 1e12))
    x = t.empty(1 << 30, dtype=t.uint8, device="cuda")
    y = t.empty_like(x)
    say("gb_per_s", "%.0f" % (2 * x.numel() / seconds(lambda: y.copy_(x)) / 1e9))


def torch():
    import torch as t

    device = t.cuda.get_device_properties(0)
    say("name", device.name)
    say("total_mib", device.total_memory // MIB)
    t.manual_seed(1)
    a = t.rand(1024, 1024, dtype=t.float32)
    say("kernel", repr((a.cuda() @ a.cuda()).double().sum().item()))
    speed(t)
    x = t.zeros(1024, device="cuda")
    launches(lambda: x.add_(1), t.cuda.synchronize)
    t.cuda.empty_cache()
    say("room_mib", room())
    say("filled_mib", fill(lambda n: t.empty(n, dtype=t.uint8, device="cuda"), t.cuda.OutOfMemoryError))


def triton():
    import torch as t
    import triton as tr
    import triton.language as tl

    @tr.jit
    def square(out, n, block: tl.constexpr):
        i = tl.program_id(0) * block + tl.arange(0, block)
        tl.store(out + i, i * i + 1, mask=i < n)

    out = t.zeros(4096, dtype=t.int32, device="cuda")
    square[(4,)](out, 4096, block=1024)
    say("name", t.cuda.get_device_name(0))
    say("total_mib", t.cuda.get_device_properties(0).total_memory // MIB)
    say("kernel", out.long().sum().item())
    launches(lambda: square[(4,)](out, 4096, block=1024), t.cuda.synchronize)


def cupy():
    import cupy as c

    properties = c.cuda.runtime.getDeviceProperties(0)
    say("name", properties["name"].decode())
    say("total_mib", properties["totalGlobalMem"] // MIB)
    say("kernel", int((c.arange(4096, dtype=c.int64) ** 2).sum()))
    x = c.zeros(1024)

    def launch():
        c.add(x, 1, out=x)

    launches(launch, c.cuda.Device().synchronize)
    c.get_default_memory_pool().free_all_blocks()
    say("room_mib", room())
    held = []

    def allocate(n):
        held.append(c.cuda.runtime.malloc(n))

    say("filled_mib", fill(allocate, c.cuda.runtime.CUDARuntimeError))
    for block in held:
        c.cuda.runtime.free(block)


def jax():
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    os.environ["XLA_PYTHON_CLIENT_ALLOCATOR"] = "platform"
    import jax as j
    import jax.numpy as jnp

    device = j.devices("gpu")[0]
    say("name", device.device_kind)
    a = j.random.uniform(j.random.PRNGKey(1), (1024, 1024))
    say("kernel", repr(float(jnp.dot(a, a, precision="highest").sum())))
    say("room_mib", room())
    say("filled_mib", fill(lambda n: j.device_put(jnp.zeros(n, dtype=jnp.uint8), device).block_until_ready(), (RuntimeError, MemoryError)))


def pynvml():
    import pynvml as n

    n.nvmlInit()
    device = n.nvmlDeviceGetHandleByIndex(0)
    name = n.nvmlDeviceGetName(device)
    say("name", name.decode() if isinstance(name, bytes) else name)
    say("total_mib", n.nvmlDeviceGetMemoryInfo(device).total // MIB)


if __name__ == "__main__":
    try:
        globals()[sys.argv[1]]()
    except ImportError as missing:
        print(missing, file=sys.stderr)
        sys.exit(3)
