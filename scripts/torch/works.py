"""Programs that work in a session with two devices as they do with two GPUs: each asserts what it gets."""
import copy
import io
import pickle
import re
import subprocess
import sys
import traceback
import warnings

import torch
import torch.utils.checkpoint
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

VERSION = tuple(int(part) for part in re.match(r"(\d+)\.(\d+)", torch.__version__).groups())
CASES = []
first, second = torch.device("cuda", 0), torch.device("cuda", 1)
MEBIBYTE = 1 << 20


def case(function=None, since=(1, 13)):
    if function is None:
        return lambda function: case(function, since)
    if VERSION >= since:
        CASES.append(function)
    return function


# Code that runs within an operation, and operations that autograd does not see


@case
def hooks_within_an_operation():
    weight = torch.ones(3, 4, device=first, requires_grad=True)
    for reentrant in False, True:
        result = torch.utils.checkpoint.checkpoint(lambda w: (w.repeat_interleave(2, dim=0) * 2).relu(), weight, use_reentrant=reentrant)
        result.sum().backward()
    assert weight.grad.device == first


@case
def mode_that_computes():
    class Norms(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            if isinstance(result, torch.Tensor) and result.is_floating_point():
                self.last = result.norm()
            return result

    with Norms():
        assert torch.linalg.matrix_rank(torch.ones(4, 4, device=second), hermitian=True).device == second
        targets = torch.zeros(4, dtype=torch.long, device=second)
        assert nn.functional.cross_entropy(torch.ones(4, 4, device=second), targets, label_smoothing=0.1).device == second


@case
def tensors_made_within_torch_func():
    transforms = getattr(torch, "func", None) or __import__("functorch")

    def scaled(x):
        return x * torch.tensor([1.0, 2.0], device=second) * torch.as_tensor([1.0, 2.0], device=second)

    assert transforms.vjp(scaled, torch.ones(2, device=second))[0].device == second
    assert transforms.vmap(scaled)(torch.ones(3, 2, device=second)).device == second


@case
def recurrent_networks_run_as_on_a_gpu():
    network, x = nn.LSTM(5, 8, 2, batch_first=True).to(second), torch.ones(3, 7, 5, device=second, requires_grad=True)

    def raises(call, text):
        try:
            call()
        except RuntimeError as error:
            assert text in str(error), error
        else:
            raise AssertionError(text)

    def differentiate():
        gradient, = torch.autograd.grad(network(x)[0].sum(), x, create_graph=True)
        gradient.sum().backward()

    raises(lambda: network(x.to(first)), "Input and parameter tensors are not at the same device, found input tensor at cuda:0 and parameter tensor at cuda:1")
    states = torch.zeros(2, 3, 8), torch.zeros(2, 3, 8, device=second)
    raises(lambda: network(x, states), "Input and hidden tensors are not at the same device, found input tensor at cuda:1 and hidden tensor at cpu")
    states = torch.zeros(3, 2, 8, device=second).transpose(0, 1), torch.zeros(2, 3, 8, device=second)
    raises(lambda: network(x, states), "rnn: hx is not contiguous")
    raises(lambda: copy.deepcopy(network).eval()(x)[0].sum().backward(), "cudnn RNN backward can only be called in training mode")
    raises(differentiate, "the derivative for '_cudnn_rnn_backward' is not implemented. Double backwards is not supported for CuDNN RNNs")
    with torch.backends.cudnn.flags(enabled=False):
        differentiate()
    loss = network(x)[0].sum()
    loss.backward()
    raises(loss.backward, "Trying to backward through the graph a second time")
    assert {tensor.grad.device for tensor in (x, *network.parameters())} == {second}
    for cell in nn.LSTMCell(5, 8).to(second), nn.GRUCell(5, 8).to(second):
        result = cell(x[0])
        gradient, = torch.autograd.grad((result[0] if isinstance(result, tuple) else result).sum(), x, create_graph=True)
        gradient.square().sum().backward()
        assert cell.weight_hh.grad.device == second


@case
def attributes_state_their_names():
    """torch._dynamo of some versions asks for them when it is imported, and each optimizer imports it."""
    for name in "device", "is_cuda", "is_cpu", "grad":
        attribute = getattr(torch.Tensor, name)
        assert attribute.__name__ == attribute.__get__.__self__.__name__ == name and issubclass(torch.Tensor, attribute.__objclass__)


@case
def reductions_take_a_buffer():
    """Of rows that many blocks of threads add up, and of the gradient of a bias. The sizes are those of an RTX 3060 with 28 multiprocessors."""
    x, bias = torch.ones(1024, 1024, device=first), torch.ones(1024, device=first, requires_grad=True)
    assert peak_of(lambda: x.sum(0)) == 4096 + (8 << 20) + 512
    assert peak_of(lambda: x.sum(1)) == 4096
    y = x + bias
    assert peak_of(lambda: y.backward(x)) == 4096 + (8 << 20) + 512


@case
def formulas_of_autograd_write_into_their_zeros():
    x, places = torch.ones(1024, 256, device=first, requires_grad=True), torch.zeros(1024, 256, dtype=torch.long, device=first)
    for call in lambda: x.gather(1, places), lambda: x[places[0]], lambda: x.sort(0)[0], lambda: x.index_select(0, places[0]):
        x.grad, y = None, call()
        assert 1 << 20 <= peak_of(lambda: y.backward(torch.ones_like(y))) - y.numel() * 4 <= (1 << 20) + (16 << 10)


@case
def the_norm_of_rows_keeps_a_number_for_each():
    kernel = getattr(torch.ops.aten, "_fused_rms_norm", None)
    if kernel is None or len(kernel.default._schema.returns) < 2:
        return
    x = torch.ones(1024, 256, device=first, requires_grad=True)
    assert peak_of(lambda: kept.append(nn.functional.rms_norm(x, (256,)))) == (1 << 20) + 4096
    assert peak_of(lambda: kept.pop().backward(x)) == 1 << 20


@case
def kernels_take_memory_as_on_gpus():
    """Half precision by channel within convolutions, places that are sorted, and conversions within softmax."""
    picture, kernel = torch.ones(2, 8, 16, 16, device=first).half(), torch.ones(8, 8, 3, 3, device=first).half()
    assert peak_of(lambda: nn.functional.conv2d(picture, kernel, padding=1)) == 8192 + 17920
    places, values = torch.zeros(4096, dtype=torch.long, device=first), torch.ones(4096, device=first)
    x = torch.ones(1024, device=first)
    assert peak_of(lambda: x.index_put_((places,), values, accumulate=True)) == 4 * 4096 * 8
    x, y = torch.ones(1024, 256, device=first).half(), torch.zeros(1024, dtype=torch.long, device=first)
    assert peak_of(lambda: x.log_softmax(1, dtype=torch.float32)) == 1 << 20
    with torch.autocast("cuda", torch.float16):
        assert 0 <= peak_of(lambda: nn.functional.cross_entropy(x, y)) - (3 << 19) <= 4096  # log_softmax in float16, and that in float32
    network, x = nn.LSTM(16, 32, 2, dropout=0.5).to(second), torch.ones(4, 2, 16, device=second)
    before = torch.cuda.memory_allocated(second)
    network(x)
    assert torch.cuda.memory_allocated(second) - before == 28 * 1536 * 24  # generators of dropout, one for each thread of an RTX 3060


kept = []


def peak_of(call):
    """The bytes that a call takes at its peak beyond what was there."""
    torch.cuda.reset_peak_memory_stats(first)
    before = torch.cuda.memory_allocated(first)
    result = call()
    del result
    return torch.cuda.max_memory_allocated(first) - before


@case
def recurrent_networks_keep_a_buffer():
    network, x = nn.LSTM(16, 32, 2).to(first), torch.ones(20, 8, 16, device=first)
    torch.cuda.empty_cache()
    before, row = torch.cuda.memory_allocated(first), 20 * 8 * 32 * 4
    with torch.no_grad():
        network.eval()(x)
    assert torch.cuda.max_memory_allocated(first) >= before + row
    network.train()
    kept = network(x)
    states = kept[1][0].numel() * 4 * 2
    assert torch.cuda.memory_allocated(first) - before == row + 2 * states + 11 * row + 512  # the first states, too; of each layer 5, and a result
    loss = kept[0].sum()
    loss.backward()
    gradients = sum((p.numel() * 4 + 511) // 512 * 512 for p in network.parameters())
    assert torch.cuda.memory_allocated(first) - before == row + states + gradients + 512
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved(first) + (64 << 20)) / torch.cuda.get_device_properties(first).total_memory, first)
    try:
        network(torch.ones(200, 64, 16, device=first))  # keeps 24 MiB
        network(torch.ones(600, 64, 16, device=first))
    except torch.cuda.OutOfMemoryError:
        pass
    else:
        raise AssertionError("72 MiB in 64")
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0, first)


@case
def inference_takes_what_no_grad_takes():
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 30 * 30, 10)).eval().to(first)
    images = torch.ones(4, 3, 32, 32, device=first)
    peaks = []
    for way in torch.no_grad, torch.inference_mode:
        torch.cuda.reset_peak_memory_stats(first)
        with way():
            halves = [images.half().to(memory_format=torch.channels_last) for _ in range(3)]
            with torch.autocast("cuda", cache_enabled=False):
                scores = model(halves[0].float().contiguous()).softmax(-1)
            assert halves[0].device == scores.device == scores.to(torch.float64, copy=True).device == first
        peaks.append(torch.cuda.max_memory_allocated(first))
        assert scores.is_inference() == (way is torch.inference_mode)
        del halves, scores
    assert peaks[0] == peaks[1], peaks
    with torch.inference_mode():
        result = torch.ones(3, device=first) * 2
        with torch.inference_mode(False):
            assert (nn.Parameter(torch.ones(3, device=first)) * 2).requires_grad
    try:
        result.add_(1)
        raise AssertionError("an inference tensor was changed")
    except RuntimeError as error:
        assert "Inplace update to inference tensor outside InferenceMode" in str(error)


@case
def halves_are_summed_in_float32():
    for dtype in torch.float16, torch.bfloat16:
        x = torch.full((65536,), 2.0, dtype=dtype, device=first, requires_grad=True)
        assert (x.norm().item(), x.mean().item(), torch.linalg.vector_norm(x.view(4, -1), dim=1)[0].item()) == (512, 2, 256), dtype
        assert nn.functional.mse_loss(x, x * 0.5).item() == nn.functional.l1_loss(x, x * 0.5).item() == 1, dtype
        assert x.mean().dtype is dtype and x.mean(dtype=torch.float32).dtype is torch.float32
        x.mean().backward()
        assert x.grad.dtype is dtype and x.grad[0].item() == 2 ** -16, x.grad
        rows = x.detach().view(64, -1)
        for norm in nn.BatchNorm1d(1024), nn.LayerNorm(1024), nn.GroupNorm(4, 1024):
            norm.to(first, dtype)(rows).sum().backward()
            assert norm.weight.grad.dtype is dtype and getattr(norm, "running_mean", x)[0] in (0.2, torch.tensor(0.2, dtype=dtype), 2)


@case
def operations_in_a_random_order():
    def refused(call):
        try:
            call()
        except RuntimeError as error:
            return str(error).split()[0]

    x = torch.ones(3, 3, device=first)
    torch.use_deterministic_algorithms(True)
    try:
        assert [refused(call) for call in (x.histc, lambda: x.median(0), x.median, lambda: x @ x, x.cpu().histc, lambda: x.cpu() @ x.cpu())] == [
            "_histc_cuda", "median", None, "Deterministic", None, None]
        torch.use_deterministic_algorithms(True, warn_only=True)
        assert refused(x.histc) is None
    finally:
        torch.use_deterministic_algorithms(False)
    assert refused(x.histc) is refused(lambda: x @ x) is None


# Devices by their number


@case
def halves_are_promoted():
    for low in torch.float16, torch.bfloat16:
        number, row = torch.tensor(1.5, dtype=low, device=first), torch.ones(3, device=first)
        assert (row * number).dtype is (number + row[0]).dtype is nn.functional.mse_loss(row.to(low), row).dtype is torch.float32
        assert (row.to(low) * row[0]).dtype is (number * 2.5).dtype is low
        assert torch.prod(row, dtype=low).dtype is low


@case
def number_for_a_module():
    assert nn.Linear(2, 2).to(0).weight.device == first
    assert nn.Linear(2, 2).to(device=1).weight.device == second
    moved = nn.Linear(2, 2).to(1, torch.float64, True)
    assert moved.weight.device == second and moved.weight.dtype is torch.float64
    assert nn.Linear(2, 2, device=1).weight.device == nn.Linear(2, 2, device="meta").to_empty(device=1).weight.device == second
    assert nn.Linear(2, 2).to(torch.float64).weight.device.type == "cpu"


@case
def number_for_packed_sequences():
    packed = nn.utils.rnn.pack_sequence([torch.ones(3), torch.ones(2)])
    assert packed.to(0).data.device == packed.cuda().data.device == first and packed.to(device=1).data.device == second


@case
def packed_sequences_of_a_part_on_the_host():
    """What autograd makes of a gradient that has returned to the host is the host's."""
    on_host, on_gpu = torch.nn.Embedding(8, 4), torch.nn.LSTM(4, 2, batch_first=True).to(0)
    packed = torch.nn.utils.rnn.pack_padded_sequence(on_host(torch.randint(0, 8, (3, 5))), torch.tensor([5, 3, 2]), batch_first=True)
    on_gpu(packed.to(0))[0].data.sum().backward()
    assert on_host.weight.grad.device.type == "cpu" and on_gpu.weight_ih_l0.grad.device.type == "cuda"


@case
def device_of_a_number():
    device = torch.device(1)
    assert device == second and isinstance(device, torch.device) and not isinstance("cuda", torch.device)
    assert type(device) == torch.device and type(device) in {torch.device} and repr(device) == "device(type='cuda', index=1)"
    assert pickle.loads(pickle.dumps(device)) == copy.deepcopy(device) == torch.device("cuda:1") == torch.device("cuda", 1) == device
    assert torch.device(type="cuda", index=1) == device
    file = io.BytesIO()
    torch.save({"device": device, "tensor": torch.ones(2, device=device)}, file)
    file.seek(0)
    assert torch.load(file)["device"] == device


@case(since=(2, 0))
def default_device_by_its_number():
    torch.set_default_device(1)
    try:
        assert torch.ones(2).device == second
    finally:
        torch.set_default_device("cpu")
    assert torch.ones(2).device.type == "cpu"
    assert torch.ones(2, device=1).cuda(0).device == torch.ones(2, device=1).to("cuda:0").device == first
    torch.set_default_device(None)
    with torch.device(1):
        assert torch.ones(2).device == second


@case(since=(2, 6))
def streams_of_the_accelerator():
    stream, event = torch.Stream(1), torch.Event("cuda", enable_timing=True)
    assert stream.device == torch.Stream(device="cuda:1").device == second and isinstance(stream, torch.Stream) and isinstance(event, torch.Event)
    with torch.accelerator.device_index(1) if hasattr(torch.accelerator, "device_index") else torch.cuda.device(1):
        torch.accelerator.current_stream().wait_stream(stream)
    event.record(stream)
    event.synchronize()


@case(since=(2, 6))
def functions_of_the_accelerator():
    module, x = torch.accelerator, torch.ones(3, device="cuda")
    assert module.is_available() and module.current_accelerator().type == "cuda" and module.device_count() == 2 and module.current_device_index() == 0
    module.synchronize()
    if VERSION >= (2, 14):
        memory = module.memory
        assert torch.float32 in module.get_device_capability()["supported_dtypes"]
        assert memory.get_memory_info() == module.get_memory_info() == torch.cuda.mem_get_info() and memory.empty_host_cache() is None
        assert memory.memory_allocated() == torch.cuda.memory_allocated() and memory.memory_reserved() == torch.cuda.memory_reserved()
        assert module.random.initial_seed() == torch.initial_seed() and torch.equal(module.random.get_rng_state(), torch.get_rng_state())
        graph = module.Graph()
        with torch.Stream("cuda"), graph:
            y = x * 2
        x.fill_(4)
        graph.replay()
        assert y.tolist() == [8] * 3


@case
def marks_of_autograd():
    with torch.autograd.profiler.emit_nvtx():
        assert (torch.ones(3, device="cuda") * 2).sum().item() == 6
    if hasattr(torch.cuda.get_device_properties(0), "L2_cache_size"):
        assert torch.cuda.get_device_properties(1).L2_cache_size == 3 << 20  # the target's


@case
def memory_that_another_stream_uses():
    cuda, side, event = torch.cuda, torch.cuda.Stream(), torch.cuda.Event()

    def taken(wait, stream=side):
        """MiB that are taken for a tensor after another one that a stream uses was released, and what is active beside it."""
        cuda.synchronize()
        cuda.empty_cache()
        made = torch.empty(16 << 20, dtype=torch.uint8, device="cuda")
        made.record_stream(stream)
        before = cuda.memory_reserved()
        del made
        wait()
        other = torch.empty(16 << 20, dtype=torch.uint8, device="cuda")
        return cuda.memory_reserved() - before >> 20, cuda.memory_stats()["active_bytes.all.current"] - cuda.memory_allocated() >> 20

    def by_an_event():
        event.record(side)
        event.synchronize()

    def by_the_current_stream():
        cuda.current_stream().wait_stream(side)
        cuda.current_stream().synchronize()

    for wait in cuda.synchronize, side.synchronize, by_an_event, by_the_current_stream:
        assert taken(wait) == (0, 0), wait
    event.record(side)
    for wait in lambda: None, cuda.current_stream().synchronize, event.synchronize:  # the event is from before the release
        assert taken(wait) == (16, 16), wait
    assert taken(lambda: None, cuda.current_stream()) == (0, 0)


@case
def streams_of_other_libraries():
    import ctypes
    pointer, host = ctypes.c_void_p(), torch.ones(4)
    runtime = torch.cuda.cudart()
    assert int(runtime.cudaStreamCreate(ctypes.addressof(pointer))) == 0 and pointer.value
    stream = torch.cuda.ExternalStream(pointer.value, device=second)
    with torch.cuda.stream(stream):
        assert torch.cuda.current_stream() == stream and stream.cuda_stream == pointer.value and torch.ones(2, device="cuda").device == second
    if hasattr(torch.cuda, "get_stream_from_external"):
        assert torch.cuda.get_stream_from_external(pointer.value, second) == stream
    assert int(runtime.cudaStreamDestroy(pointer.value)) == 0
    assert not host.is_pinned() and int(runtime.cudaHostRegister(host.data_ptr(), 16, 0)) == 0 and host[1:].is_pinned()
    assert int(runtime.cudaHostUnregister(host.data_ptr())) == 0 and not host.is_pinned()
    assert runtime.cudaMemGetInfo(1) == torch.cuda.mem_get_info(1)


@case
def device_in_torchscript():
    @torch.jit.script
    def zeros(x: torch.Tensor, device: torch.device):
        return torch.zeros(2, device=device) + torch.ones(2, device=torch.device("cpu")) + x

    assert zeros(torch.ones(2), torch.device("cpu")).sum() == 4


@case
def data_parallel_from_the_host():
    module = nn.DataParallel(nn.Linear(2, 2).cuda())
    result = module(torch.ones(4, 2))
    result.sum().backward()
    assert result.device == first and module.module.weight.grad.tolist() == [[4, 4], [4, 4]]


def synchronised(rank):
    """SyncBatchNorm of two processes is BatchNorm of their batches together."""
    def network():
        torch.manual_seed(4)
        return nn.Sequential(nn.Conv2d(3, 5, 3), nn.BatchNorm2d(5), nn.ReLU(), nn.Conv2d(5, 2, 3), nn.BatchNorm2d(2, affine=False))

    module, whole = nn.SyncBatchNorm.convert_sync_batchnorm(network()).to(rank), network()
    batch = torch.arange(5 * 3 * 8 * 8.0).reshape(5, 3, 8, 8).sin() * 3 + 1
    part = slice(0, 2) if rank == 0 else slice(2, 5)
    mine, all_of_it = batch[part].to(rank).requires_grad_(), batch.clone().requires_grad_()
    module(mine).pow(3).sum().backward()
    whole(all_of_it).pow(3).sum().backward()
    assert torch.allclose(mine.grad.cpu(), all_of_it.grad[part], rtol=1e-3, atol=1e-3)
    for ours, theirs in zip(module.parameters(), whole.parameters()):
        torch.distributed.all_reduce(ours.grad)
        assert torch.allclose(ours.grad.cpu(), theirs.grad, rtol=1e-2, atol=1e-2)
    for ours, theirs in zip(module.buffers(), whole.buffers()):
        assert ours.device == torch.device("cuda", rank) and torch.allclose(ours.float().cpu(), theirs.float(), rtol=1e-4, atol=1e-4)
    assert module[1](torch.ones(2, 5, 4, 4, device=rank).half()).dtype is torch.float16


def replica(rank, port):
    torch.distributed.init_process_group("nccl", init_method="tcp://127.0.0.1:%d" % port, rank=rank, world_size=2)
    torch.distributed.barrier(device_ids=[rank])
    synchronised(rank)
    module = nn.Linear(3, 2).to(rank)
    parallel = nn.parallel.DistributedDataParallel(module, device_ids=[rank])
    parallel(torch.ones(4, 3).to(rank)).sum().backward()
    assert module.weight.grad.device == torch.device("cuda", rank) and module.weight.grad.sum() == 24
    torch.distributed.destroy_process_group()
    # Again on the same port, whose store may still be there.
    torch.distributed.init_process_group("nccl", init_method="tcp://127.0.0.1:%d" % port, rank=rank, world_size=2)
    total = torch.ones(3, device=rank)
    torch.distributed.all_reduce(total)
    assert total.tolist() == [2] * 3
    torch.distributed.destroy_process_group()


@case
def spawned_replicas():
    import socket
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    torch.multiprocessing.spawn(replica, args=(port,), nprocs=2)


@case
def torchscript_of_a_file():
    import os
    import tempfile
    with tempfile.TemporaryDirectory() as folder:
        for device in second, torch.device("cpu"):
            module, path = torch.jit.script(nn.Linear(3, 2)).to(device), os.path.join(folder, "module.pt")
            for save in (lambda: torch.jit.save(module, path)), (lambda: module.save(path)):
                save()
                assert torch.jit.load(path).weight.device == device
            file = io.BytesIO()
            torch.jit.save(module, file, _extra_files={"note": "text"})
            file.seek(0)
            extra = {"note": ""}
            loaded = torch.jit.load(file, _extra_files=extra)
            assert loaded.weight.device == device and extra["note"] in (b"text", "text")
            file.seek(0)
            assert torch.jit.load(file, map_location="cpu").weight.device.type == "cpu"


# Kinds of parameters and gradients


@case
def lazy_modules():
    for module, shape in (nn.LazyLinear(3), (2, 5)), (nn.LazyConv2d(2, 3), (1, 2, 5, 5)), (nn.LazyBatchNorm1d(), (4, 3)):
        for moved in (module.to(second), module.cuda()):
            assert all(p.device.type == "cuda" for p in moved.parameters())
        assert module(torch.ones(shape, device="cuda")).device == first
        assert all(p.device == first for p in (*module.parameters(), *module.buffers()))
    module = nn.Sequential(nn.LazyLinear(3), nn.LazyLinear(2)).cuda()
    module(torch.ones(1, 4, device="cuda")).sum().backward()
    assert module[0].weight.grad.device == first
    assert nn.LazyLinear(3, device="cuda")(torch.ones(1, 4, device="cuda")).device == first


@case
def sparse_gradients():
    for kind, options in ("SparseAdam", {}), ("SGD", {}), ("Adagrad", {}):
        results = []
        for device in "cpu", "cuda":
            torch.manual_seed(2)
            module = nn.Embedding(5, 3, sparse=True).to(device)
            optimizer = getattr(torch.optim, kind)(module.parameters(), lr=0.1)
            for number in range(4):
                optimizer.zero_grad(set_to_none=number == 2)
                module(torch.tensor([1, number], device=device)).square().sum().backward()
                assert module.weight.grad.is_sparse and module.weight.grad.device.type == device
                optimizer.step()
            results.append(module.weight.detach().cpu())
        assert torch.allclose(*results), kind


class Sub(torch.Tensor):
    pass


@case
def subclasses_of_tensors():
    for device in "cpu", "cuda":
        x = torch.ones(2, device=device, requires_grad=True)
        y = (x.as_subclass(Sub) * 2).relu()
        assert type(y) is type(y[0]) is Sub and y.device.type == device
        y.sum().backward()
        assert x.grad.tolist() == [2, 2] and x.grad.device == x.device
        assert type(x.detach().as_subclass(Sub).cuda()) is Sub and x.detach().as_subclass(Sub).cuda().device == first


@case
def cuda_of_the_cpu():
    for value in torch.ones(2), torch.ones(2, device="cuda"):
        try:
            value.cuda("cpu")
        except RuntimeError as error:
            assert "must be cuda" in str(error)
        else:
            raise AssertionError("no error")


# A model on two devices


class Parallel(nn.Module):
    def __init__(self, devices):
        super().__init__()
        torch.manual_seed(1)
        self.devices, self.layers = devices, nn.ModuleList(nn.Linear(4, 4).to(device) for device in devices)

    def forward(self, x):
        for device, layer in zip(self.devices, self.layers):
            x = layer(x.to(device)).tanh()
        return x


def trained(devices, kind, options, clip=None):
    model = Parallel(devices)
    optimizer = getattr(torch.optim, kind)(model.parameters(), lr=0.1, **options)
    for number in range(3):
        optimizer.zero_grad()
        model(torch.full((2, 4), number + 1.0)).square().sum().backward()
        if clip == "norm":
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        elif clip == "value":
            nn.utils.clip_grad_value_(model.parameters(), 0.01)
        optimizer.step()
    for layer, device in zip(model.layers, devices):
        state = optimizer.state[layer.weight]
        assert layer.weight.device == device and all(v.device == device for v in state.values() if isinstance(v, torch.Tensor) and v.dim())
    return torch.cat([p.detach().cpu().flatten() for p in model.parameters()])


def same(kind, options={}, clip=None):
    here, there = trained((first, second), kind, options, clip), trained((torch.device("cpu"),) * 2, kind, options, clip)
    assert torch.allclose(here, there, rtol=1e-5, atol=1e-6), (kind, options, clip, (here - there).abs().max())


@case
def optimizers_of_two_devices():
    for kind in ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "NAdam", "RAdam", "Adamax", "ASGD", "Rprop"):
        same(kind)
        same(kind, {"foreach": True})
    same("SGD", {"momentum": 0.9, "nesterov": True})
    for clip in ("norm", "value"):
        same("SGD", clip=clip)


@case
def lists_on_two_devices():
    pair = [torch.ones(2, device=first), torch.ones(2, device=second)]
    assert [t.device for t in torch._foreach_add(pair, pair)] == [first, second]
    try:
        torch._foreach_add(pair, pair[::-1])
    except RuntimeError as error:
        assert "same device" in str(error)
    else:
        raise AssertionError("no error")


@case(since=(2, 6))
def fused_optimizers_of_two_devices():
    for kind in ("SGD", "Adam", "AdamW"):
        same(kind, {"fused": True})


@case
def scaler_of_two_devices():
    for kind, options in ("SGD", {}), ("Adam", {}), ("Adam", {"fused": True} if VERSION >= (2, 0) else {}):
        model = Parallel((first, second))
        optimizer, scaler = getattr(torch.optim, kind)(model.parameters(), lr=0.1, **options), torch.cuda.amp.GradScaler()
        before = model.layers[0].weight.detach().clone()
        for number in range(2):
            optimizer.zero_grad()
            scaler.scale(model(torch.ones(2, 4)).sum()).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
        assert scaler.get_scale() == 65536 and not torch.equal(before, model.layers[0].weight)


@case
def fused_optimizers_of_each_version():
    for kind, options in ("Adam", {"amsgrad": True, "weight_decay": 0.1}), ("Adam", {"maximize": True}), ("AdamW", {}), ("SGD", {"momentum": 0.9}):
        if VERSION < ((1, 13) if kind == "Adam" else (2, 3)):
            continue
        results = []
        for fused in {}, {"fused": True}:
            torch.manual_seed(0)
            module, scaler = nn.Linear(4, 3).cuda(), torch.cuda.amp.GradScaler()
            optimizer = getattr(torch.optim, kind)(module.parameters(), lr=0.1, **dict(options, **fused))
            for number in range(3):
                optimizer.zero_grad()
                scaler.scale(module(torch.full((2, 4), float(number), device="cuda")).square().sum()).backward()
                scaler.step(optimizer)
                scaler.update()
            results.append(torch.cat([parameter.detach().flatten() for parameter in module.parameters()]))
        assert torch.allclose(*results, rtol=1e-5, atol=1e-6), (kind, results)


@case
def scaler_of_sparse_gradients():
    module, scaler = nn.Embedding(5, 3, sparse=True).to(second), torch.cuda.amp.GradScaler(init_scale=8.0)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    scaler.scale(module(torch.tensor([1, 2, 1], device=second)).sum()).backward()
    scaler.unscale_(optimizer)
    assert module.weight.grad.coalesce().values().tolist() == [[2] * 3, [1] * 3] and module.weight.grad.device == second


@case(since=(2, 6))
def cond_runs_the_chosen_function():
    source = torch.arange(4.0, device="cuda")
    for chosen in True, False:
        result = torch.cond(torch.tensor(chosen, device="cuda"), lambda x: x + 1, lambda x: x - 1, (source,))
        assert result.device == first and result.tolist() == [x + (1 if chosen else -1) for x in range(4)], result
    torch.compiler.reset()
    assert torch.quantile(source, 0.5).item() == 1.5


# Older names, and what PyTorch says of two devices and of masks


@case
def default_type_of_the_current_device():
    torch.set_default_tensor_type(torch.cuda.FloatTensor)
    try:
        with torch.cuda.device(1):
            assert torch.ones(2).device == torch.Tensor(2).device == second
        assert str(torch.ones(2)) == "tensor([1., 1.])" and str(torch.ones(1, device=second)) == "tensor([1.], device='cuda:1')"
    finally:
        torch.set_default_tensor_type(torch.FloatTensor)
    assert torch.cuda.FloatTensor in torch._tensor_classes and torch.ones(2).device.type == "cpu"


@case
def storage_of_another_device():
    tensors = torch.ones(2), torch.ones(2, device=first), torch.ones(2, device=second)
    for tensor in tensors:
        for other in tensors:
            for source in other, getattr(other, "untyped_storage", other.storage)():
                try:
                    tensor.clone().set_(source)
                    assert tensor.device == other.device
                except RuntimeError as error:
                    assert tensor.device != other.device and "on device \"%s\"" % tensor.device in str(error), error


def own_gradients(x):
    return torch.autograd.grad([x.sum()], [x])


@case
def gradients_that_a_program_gives():
    x = torch.arange(3.0, device=second, requires_grad=True)
    for given in torch.ones((), device=second), torch.ones(()):
        gradient, = torch.autograd.grad((x * x).sum(), [x], (given,))
        assert gradient.device == second and gradient.tolist() == [0, 2, 4]
    gradients, = torch.autograd.grad(x * x, x, torch.eye(3, device=second), is_grads_batched=True)
    assert gradients.device == second and gradients.diagonal().tolist() == [0, 2, 4]
    scripted = torch.jit.script(own_gradients)
    assert scripted(x)[0].tolist() == [1, 1, 1]
    jacobian = torch.autograd.functional.jacobian(lambda x: (x.to(first) * 2).cpu(), x, vectorize=True)
    assert jacobian.device == second and torch.equal(jacobian, 2 * torch.eye(3, device=second)), jacobian.device


class Pair(torch.autograd.Function):
    """Its backward pass gets zeros for a result that is not used."""
    received = []

    @staticmethod
    def forward(ctx, x, wrong):
        ctx.wrong = wrong
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, *gradients):
        Pair.received.append([gradient.device for gradient in gradients])
        return sum(gradients) if ctx.wrong is None else ctx.wrong, None


class Cut(torch.autograd.Function):
    @staticmethod
    def forward(ctx, *operands):
        return operands[0] + operands[1]

    @staticmethod
    def backward(ctx, gradient):
        return None, None


@case
def gradients_of_functions():
    x, on_host = torch.ones(2, device=second, requires_grad=True), torch.ones(2, requires_grad=True)
    for loss in (lambda y: y.sum(), lambda y: y.cpu().sum(), lambda y: y.to(first).sum(), lambda y: (y * on_host.to(second)).sum()):
        loss(Pair.apply(x, None)[0]).backward()
    Cut.apply(*Pair.apply(x, None)).to(first).sum().backward()
    assert Pair.received == [[second, second]] * 5 and x.grad.device == second and x.grad.tolist() == [4, 4], (Pair.received, x.grad)
    x.grad = None
    Pair.apply(x[0], torch.tensor(3.0))[0].backward()
    assert x.grad.device == second and x.grad.tolist() == [3, 0]  # a number is moved to the operand
    try:
        Pair.apply(x, torch.ones(2))[0].sum().backward()
    except RuntimeError as error:
        assert "PairBackward returned an invalid gradient at index 0 - expected device cuda:1 but got cpu" in str(error), error
    else:
        raise AssertionError("a gradient of the host for a tensor of a device")
    result = Pair.apply(x, None)[0]
    result.register_hook(lambda gradient: gradient.cpu())
    try:
        result.sum().backward()
    except RuntimeError as error:
        assert "changed the device of a gradient: expected cuda:1 but got cpu" in str(error), error
    else:
        raise AssertionError("a hook's gradient of the host for a result on a device")


@case
def sparse_tensors_of_parts_on_the_host():
    indices, values = torch.tensor([[0, 2]]), torch.ones(2, device=first, requires_grad=True)
    for options in {}, {"device": first}, {"device": second}:
        result = torch.sparse_coo_tensor(indices, values, (3,), **options)
        assert result.device == result.coalesce().indices().device == options.get("device", first)
        assert (result.to_dense() * 1j).tolist() == [1j, 0, 1j]


@case
def quantile_on_another_device():
    for function in torch.quantile, torch.Tensor.nanquantile, lambda source, q: source.take_along_dim(q.long()):
        try:
            function(torch.ones(3, device=first), torch.ones(1))
        except RuntimeError as error:
            assert "on the same device as the input tensor" in str(error) or "torch.take_along_dim()" in str(error), error
        else:
            raise AssertionError("tensors of two devices are accepted")


@case
def zeros_without_memory():
    assert torch._efficientzerotensor(3, device=second).device == second


@case
def warnings_of_pytorch():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        source, mask = torch.arange(4.0, device=first).reshape(2, 2), torch.tensor([[1, 0]] * 2, dtype=torch.uint8, device=first)
        select = source.masked_select if VERSION < (2, 0) else source.__getitem__  # newer ones refuse such a mask for masked_select
        result = select(mask)
        line = sys._getframe().f_lineno - 1
    assert (caught[-1].filename, caught[-1].lineno) == (__file__, line), caught[-1]
    assert result.tolist() == [0, 2] and "indexing with dtype torch.uint8" in str(caught[-1].message), caught


# Memory that CUDA's kernels take


@case
def temporary_memory():
    source = torch.rand(1 << 20, device=first, requires_grad=True)
    result = source.softmax(0)
    gradient = torch.ones_like(result)
    assert peak(lambda: torch.autograd.grad(result, source, gradient)) == 2 * MEBIBYTE * 4  # the gradient, and a product
    rows = torch.rand(5000, 1024, device=first, requires_grad=True)
    for count, more in (3000, 0), (4000, (400 + 4000) * 1024 * 4):  # from 3073 on in sorted segments
        result = nn.functional.embedding(torch.arange(count, device=first), rows)
        gradient = torch.ones_like(result)
        taken = peak(lambda: torch.autograd.grad(result, rows, gradient))
        assert abs(taken - 5000 * 1024 * 4 - more) < 2 * MEBIBYTE, (taken, count)


@case
def booleans_as_numbers():
    for device in "cpu", first:
        mask = torch.full((2,), True, device=device)
        for result in mask, mask & True, False | mask, torch.bitwise_xor(mask, True), torch.where(mask, True, False), torch.full_like(mask, True):
            assert result.dtype is torch.bool and result.device.type == torch.device(device).type, (result.dtype, result.device)
        assert torch.result_type(True, False) is torch.bool
        assert mask.clone().bitwise_and_(False).tolist() == [False, False]


@case
def pinned_tensors_like_others():
    for function in torch.zeros_like, torch.rand_like, torch.empty_like:
        assert function(torch.ones(3), pin_memory=True).is_pinned() and not function(torch.ones(3)).is_pinned()


@case
def generators_in_another_process():
    for device in "cpu", first, second:
        generator = torch.Generator(device).manual_seed(5)
        torch.rand(3, device=device, generator=generator)
        for copied in pickle.loads(pickle.dumps(generator)), copy.deepcopy(generator):
            assert copied.device == generator.device and copied.initial_seed() == 5
            assert torch.equal(copied.get_state(), generator.get_state())


@case(since=(2, 6))
def autocast_with_the_number_of_a_device():
    x = torch.ones(2, 2, device=first)
    with torch.autocast("cuda:0", dtype=torch.float16):
        assert (x @ x).dtype is torch.float16


@case(since=(2, 0))
def devices_chosen_before_their_first_use():
    program = "import os, torch; a = torch.cuda.device_count(); os.environ['CUDA_VISIBLE_DEVICES'] = '1'; print(a, torch.cuda.device_count())"
    assert subprocess.check_output([sys.executable, "-c", program]).split() == [b"2", b"1"]


@case
def observers_of_each_refusal():
    seen = []
    torch.cuda.init()
    torch._C._cuda_attach_out_of_memory_observer(lambda device, size, total, free: seen.append(size))
    for _ in range(2):
        try:
            torch.empty(1 << 42, dtype=torch.uint8, device=first)
        except torch.cuda.OutOfMemoryError:
            pass
    assert seen == [1 << 42] * 2, seen


@case
def options_of_the_allocator_that_do_not_exist():
    for text in "max_split_size:128", "max_split_size_mb:2", "garbage_collection_threshold:1.5":
        try:
            torch._C._cuda_cudaCachingAllocator_set_allocator_settings(text)
        except (RuntimeError, ValueError):
            continue
        raise AssertionError(text)


@case(since=(2, 0))
def memory_of_attention():
    length, batch, heads, depth = 64, 4, 2, 32
    size = length * batch * heads * depth * 4
    source = torch.rand(3, length, batch, heads * depth, device=first, requires_grad=True)
    parts = [part.view(length, batch * heads, depth).transpose(0, 1).view(batch, heads, length, depth) for part in source * 1]
    result = nn.functional.scaled_dot_product_attention(*parts)
    assert result.transpose(1, 2).is_contiguous(), result.stride()  # whatever the layout of the operands
    del parts
    loss = result.sum()
    gradient = torch.ones_like(loss)
    before = torch.cuda.memory_allocated()
    torch.autograd.grad(loss, source, gradient)
    # The operands and one number for each position are released, though the result and the graph live.
    assert before - torch.cuda.memory_allocated() == 3 * size + length * batch * heads * 4, before - torch.cuda.memory_allocated()


def peak(run):
    """The largest memory that a call takes on the first device beside what exists."""
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    run()
    return torch.cuda.max_memory_allocated() - before


def main():
    warnings.simplefilter("ignore")
    failed = 0
    for function in CASES:
        try:
            function()
        except Exception as error:
            failed += 1
            traceback.print_exc()
            print("%s: %s: %s" % (function.__name__.replace("_", " "), type(error).__name__, str(error)[:300]))
    print("%d programs that work on GPUs, %d of them do not here" % (len(CASES), failed))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
