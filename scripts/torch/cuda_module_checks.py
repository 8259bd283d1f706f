"""Checks of the modules of torch.cuda, in addition to cuda_checks."""
import torch

from cuda_checks import CHECKS, NO_GPU, check, cuda, raises, refuses, some, two


# Communication


@check("comm.broadcast", "comm.broadcast_coalesced")
def broadcast():
    a, b = cuda.comm.broadcast(some(0, 64), [0, 1])
    assert a.device.index == 0 and b.device.index == 1 and torch.equal(a.cpu(), b.cpu())
    copies = cuda.comm.broadcast_coalesced([some(0, 64), some(0, 32)], [0, 1])
    assert [[t.device.index for t in part] for part in copies] == [[0, 0], [1, 1]] and torch.equal(copies[1][1].cpu(), torch.ones(8))


@check("comm.reduce_add", "comm.reduce_add_coalesced")
def reduce():
    total = cuda.comm.reduce_add(two(), 1)
    assert total.device.index == 1 and total.tolist() == [2] * 16
    assert cuda.comm.reduce_add_coalesced([[some(0, 64)], [some(1, 64)]])[0].tolist() == [2] * 16


@check("comm.scatter", "comm.gather")
def scatter():
    parts = cuda.comm.scatter(torch.arange(4), [0, 1])
    assert [(part.device.index, part.tolist()) for part in parts] == [(0, [0, 1]), (1, [2, 3])]
    whole = cuda.comm.gather(parts, destination=1)
    assert whole.device.index == 1 and whole.tolist() == [0, 1, 2, 3]


@check("nccl.is_available", remark="Returns False. torch.distributed has the backend \"nccl\".")
def nccl():
    assert cuda.nccl.is_available(two()) is False
    return "n/a"


@check("nccl.version", remark="gloo carries the backend \"nccl\".")
def nccl_version():
    assert cuda.nccl.version() > (2, 10)


for name in ("all_gather", "all_reduce", "broadcast", "init_rank", "reduce", "reduce_scatter", "unique_id"):
    refuses("nccl." + name, lambda name=name: getattr(cuda.nccl, name)())

# Profiling


@check("nvtx.mark", "nvtx.range", "nvtx.range_push", "nvtx.range_pop", "nvtx.range_start", "nvtx.range_end", remark="No profiler reads the marks.")
def nvtx():
    assert cuda.nvtx.range_push("a") == 0 and cuda.nvtx.range_push("b") == 1 and cuda.nvtx.range_pop() == 1 and cuda.nvtx.range_pop() == 0
    with cuda.nvtx.range("c"):
        assert cuda.nvtx.range_push("d") == 1 and cuda.nvtx.range_pop() == 1
    cuda.nvtx.mark("e")
    cuda.nvtx.range_end(cuda.nvtx.range_start("f"))


@check("profiler.start", "profiler.stop", "profiler.profile", remark="No profiler is attached.")
def profiler():
    with cuda.profiler.profile():
        assert some().is_cuda
    cuda.profiler.start()
    cuda.profiler.stop()
    return "n/a"


refuses("profiler.init", lambda: cuda.profiler.init("out"))

# Graphs and code that is compiled for the GPU

RECORDS = "Records operations, and runs them again."
for name in ("export_dot", "export_graph_data"):
    refuses(name, lambda name=name: getattr(cuda.graphs, name)(None), shown=name + " is not")
    CHECKS["graphs." + name] = lambda name=name: CHECKS[name]()


def captured(**options):
    graph, x = cuda.CUDAGraph(), some(0, 64)
    with cuda.graph(graph, **options):
        assert cuda.is_current_stream_capturing()
        y = x * 2
    x.fill_(3)
    graph.replay()
    assert y.tolist() == [6] * 16
    return graph


@check("CUDAGraph", "graph", "graph_pool_handle", "graphs.CUDAGraph", "graphs.graph", "graphs.graph_pool_handle", remark=RECORDS)
def graph():
    pool = cuda.graph_pool_handle()
    assert captured(pool=pool).pool() == pool and captured().pool() != pool


@check("make_graphed_callables", "graphs.make_graphed_callables", remark=RECORDS)
def callables():
    x = torch.ones(4, device="cuda", requires_grad=True)
    function = cuda.make_graphed_callables(lambda x: x * x, (x,))
    y = torch.full((4,), 3.0, device="cuda", requires_grad=True)
    result = function(y)
    result.sum().backward()
    assert result.tolist() == [9] * 4 and y.grad.tolist() == [6] * 4


@check("is_current_stream_capturing")
def capturing():
    assert cuda.is_current_stream_capturing() is False


@check(*("graphs.register_graph_%s_hook" % name for name in ("capture_end", "capture_start", "destroy", "instantiate", "replay_end", "replay_start")))
def hooks():
    seen, names = [], [name for name in dir(cuda.graphs) if name.startswith("register_graph_")]
    handles = [getattr(cuda.graphs, name)(lambda graph, name=name: seen.append(name)) for name in names]
    captured().reset()
    for handle in handles:
        handle.remove()
    assert set(seen) == set(names), seen


@check(*("graph_annotations." + name for name in ("clear_kernel_annotations", "get_kernel_annotations", "is_available", "mark_kernels")),
       remark="There are no kernels to annotate.")
def annotations():
    module = __import__("torch.cuda.graph_annotations", fromlist=["x"])
    assert module.is_available() is False and not module.get_kernel_annotations()
    with module.mark_kernels("a"):
        pass
    module.clear_kernel_annotations()
    return "n/a"


CODE = "template <typename T> T f(T x) { return x; }"
for name, outputs in ("_create_jit_fn", {}), ("_create_multi_output_jit_fn", {"num_outputs": 1}):
    refuses("jiterator." + name, lambda name=name, outputs=outputs: getattr(cuda.jiterator, name)(CODE, **outputs)(some()),
            shown="A kernel of torch.cuda.jiterator is not", remark="Makes a function; to call the function raises an error.")
refuses("green_contexts.GreenContext", lambda: cuda.green_contexts.GreenContext.create(num_sms=2, device_id=0))
refuses("GreenContext", lambda: cuda.GreenContext.create(num_sms=2, device_id=0), shown="GreenContext.create is not")
refuses("gds.GdsFile", lambda: cuda.gds.GdsFile("file", 0))
for name in ("gds_register_buffer", "gds_deregister_buffer"):
    refuses("gds." + name, lambda name=name: getattr(cuda.gds, name)(some().untyped_storage()))


@check("gds.is_available", remark="Returns False.")
def gds():
    assert cuda.gds.is_available() is False
    return "n/a"


@check("tunable.is_enabled", "tunable.tuning_is_enabled", "tunable.record_untuned_is_enabled", "tunable.enable", "tunable.tuning_enable",
       "tunable.record_untuned_enable", remark="Off; to switch it on raises an error.")
def tunable():
    for get, put in (("is_enabled", "enable"), ("tuning_is_enabled", "tuning_enable"), ("record_untuned_is_enabled", "record_untuned_enable")):
        getattr(cuda.tunable, put)(False)
        assert getattr(cuda.tunable, get)() is False
        raises(RuntimeError, "torch.cuda.tunable.%s " % put + NO_GPU, getattr(cuda.tunable, put))


for name in ("get_cublaslt_requested_algo_count", "get_filename", "get_max_tuning_duration", "get_max_tuning_iterations", "get_results",
             "get_rotating_buffer_size", "get_validators", "mgpu_tune_gemm_in_file", "read_file", "set_cublaslt_requested_algo_count", "set_filename",
             "set_max_tuning_duration", "set_max_tuning_iterations", "set_numerical_check_tolerances", "set_rotating_buffer_size",
             "tune_gemm_in_file", "write_file", "write_file_on_exit"):
    refuses("tunable." + name, lambda name=name: getattr(cuda.tunable, name)())

# Mixed precision


@check("amp.autocast", "amp.GradScaler", "amp.custom_fwd", "amp.custom_bwd", "amp.amp_definitely_not_available")
def amp():
    class Double(torch.autograd.Function):
        @staticmethod
        @cuda.amp.custom_fwd(cast_inputs=torch.float32)
        def forward(ctx, x):
            assert not torch.is_autocast_enabled()
            return x * 2

        @staticmethod
        @cuda.amp.custom_bwd
        def backward(ctx, gradient):
            return gradient * 2

    scaler, w = cuda.amp.GradScaler(init_scale=8.0), torch.ones(4, 4, device="cuda", requires_grad=True)
    with cuda.amp.autocast():
        y = w @ w
        assert y.dtype is torch.float16 and Double.apply(y).dtype is torch.float32 and torch.is_autocast_enabled()
        loss = Double.apply(y).sum()
    scaler.scale(loss).backward()
    assert w.grad[0, 0].item() == 8 * 2 * 8 and not torch.is_autocast_enabled()
    assert getattr(cuda.amp, "amp_definitely_not_available", lambda: False)() is False
