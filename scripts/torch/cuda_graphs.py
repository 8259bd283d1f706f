"""CUDA graphs in a session: a run of a graph gives what the same operations give without it, to the last bit, and takes the
memory that a GPU takes. With compute = "shapes" runs do nothing."""
import gc
import os
import sys
import warnings

import torch
from torch import nn

cuda = torch.cuda
F = nn.functional
computes = os.environ.get("SHAPES") is None
CASES = []


def case(function):
    CASES.append(function)
    return function


def capture(function, **options):
    graph = cuda.CUDAGraph()
    with cuda.graph(graph, **options):
        result = function()
    return graph, result


def equal(a, b):
    assert not computes or torch.equal(a, b), (a, b)


def model():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(16, 32), nn.BatchNorm1d(32), nn.GELU(), nn.Dropout(0.2), nn.Linear(32, 4)).cuda()


def trained(graphed, kind, **options):
    """Parameters and loss after three steps and five more, which a graph computes or not."""
    net = model()
    optimizer = getattr(torch.optim, kind)(net.parameters(), lr=0.1, **options)
    x, y = torch.randn(8, 16).cuda(), torch.randn(8, 4).cuda()

    def step():
        loss = F.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(3):
        optimizer.zero_grad(set_to_none=True)
        loss = step()
    optimizer.zero_grad(set_to_none=True)
    if graphed:
        graph, loss = capture(step)
    for number in range(5):
        x.copy_(torch.full((8, 16), number / 4.0))
        if graphed:
            graph.replay()
        else:
            optimizer.zero_grad(set_to_none=True)
            loss = step()
    return [loss, *net.parameters(), *net.buffers()]


@case
def training():
    for kind, options in ("SGD", {"momentum": 0.9}), ("Adam", {"capturable": True}), ("AdamW", {"capturable": True, "foreach": True}):
        for a, b in zip(trained(False, kind, **options), trained(True, kind, **options)):
            equal(a, b)


@case
def scaler():
    """The second run finds an overflow, and halves the scale."""
    weight, x = torch.ones(4, device="cuda", requires_grad=True), torch.ones(4, device="cuda")
    gradients = cuda.amp.GradScaler(init_scale=8.0)
    gradients.scale(torch.zeros(1, device="cuda"))  # makes the scale
    inverse, found = torch.full((1,), 0.125, device="cuda"), torch.zeros(1, device="cuda")

    def step():
        found.zero_()
        weight.grad = None
        gradients.scale((weight * x).sum()).backward()
        torch._amp_foreach_non_finite_check_and_unscale_([weight.grad], found, inverse)
        torch._amp_update_scale_(gradients._scale, gradients._growth_tracker, found, 2.0, 0.5, 1000)
        return weight.grad

    graph, gradient = capture(step)
    assert gradients.get_scale() == 8
    graph.replay()
    assert gradient.tolist() == [1] * 4 and found.item() == 0 and gradients.get_scale() == 8
    x.fill_(float("inf"))
    graph.replay()
    assert found.item() == 1 and gradients.get_scale() == 4


@case
def a_capture_computes_nothing():
    x, weight = torch.ones(4, device="cuda"), torch.ones(4, device="cuda")
    torch.manual_seed(1)
    graph, (y, noise) = capture(lambda: (weight.add_(x), torch.rand(4, device="cuda")))
    equal(weight, torch.ones(4, device="cuda"))
    expected = torch.rand(8)
    torch.manual_seed(1)
    for number in range(2):
        graph.replay()
        equal(noise.cpu(), expected[4 * number:4 * number + 4]) if computes else None
    equal(weight, torch.full((4,), 3.0, device="cuda"))
    assert y.data_ptr() == weight.data_ptr()


@case
def callables():
    results = []
    for graphed in False, True:
        net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)).cuda()
        with torch.no_grad():
            for number, parameter in enumerate(net.parameters()):
                parameter.copy_(torch.arange(parameter.numel()).reshape(parameter.shape).sin() * (number + 1))
        if graphed:
            net = cuda.make_graphed_callables(net, (torch.ones(3, 4, device="cuda", requires_grad=True),))
        for number in range(3):
            net.zero_grad(set_to_none=True)
            x = torch.full((3, 4), number + 0.5, device="cuda", requires_grad=True)
            y = net(x)
            y.square().sum().backward()
        results.append([y, x.grad] + [parameter.grad for parameter in net.parameters()])
    for a, b in zip(*results):
        equal(a, b)


@case
def graphs_that_share_a_pool():
    pool, x = cuda.graph_pool_handle(), torch.ones(1 << 18, device="cuda")
    stream = cuda.Stream()
    gc.collect()
    cuda.empty_cache()
    before = cuda.memory_reserved()
    first, y = capture(lambda: (x + 1) * 2, pool=pool, stream=stream)
    second, z = capture(lambda: (y + 1) * 3, pool=first.pool(), stream=stream)
    taken = cuda.memory_reserved() - before  # four blocks of 1 MiB, and the seeds' segment on the stream of the capture
    assert first.pool() == second.pool() == pool and taken == 6 << 20, taken
    for value in 1.0, 2.0:
        x.fill_(value)
        first.replay()
        second.replay()
        equal(z, torch.full_like(z, ((value + 1) * 2 + 1) * 3))
    del y
    first.replay()  # its result is still the operand of the second
    second.replay()
    equal(z, torch.full_like(z, 21.0))


@case
def memory_of_a_pool():
    gc.collect()
    cuda.empty_cache()
    x = torch.ones(1 << 18, device="cuda")
    before = cuda.memory_reserved(), cuda.memory_allocated()
    graph, y = capture(lambda: ((x + 1) * 2 + 3) * 4)
    # Two blocks of the private pool are used in turn; the graph's seeds are elsewhere.
    assert cuda.memory_allocated() - before[1] == (1 << 20) + 1024, cuda.memory_allocated() - before[1]
    taken = cuda.memory_reserved()
    cuda.empty_cache()
    assert cuda.memory_reserved() == taken
    other = [torch.ones(1 << 18, device="cuda") for _ in range(4)]  # none in the free block of the pool
    segments = [s for s in cuda.memory_snapshot() if s["segment_pool_id"] == graph.pool()]
    assert [[block["state"] for block in s["blocks"]] for s in segments] in ([["active_allocated", "inactive"]], [["inactive", "active_allocated"]])
    del y, other
    graph.reset()
    del graph
    gc.collect()
    cuda.empty_cache()
    assert (cuda.memory_reserved(), cuda.memory_allocated()) == before


@case
def out_of_memory_in_a_capture():
    try:
        capture(lambda: torch.zeros(1 << 40, device="cuda"))
    except cuda.OutOfMemoryError as error:
        assert "out of memory" in str(error)
    else:
        raise AssertionError("no error")
    assert not cuda.is_current_stream_capturing()


@case
def not_permitted():
    x = torch.ones(4, device="cuda")
    calls = [lambda: x.sum().item(), lambda: x.cpu(), lambda: x.nonzero(), lambda: x[x > 0], lambda: torch.tensor([1.0], device="cuda"),
             lambda: torch.ones(3).cuda(), lambda: x.copy_(torch.ones(4)), cuda.synchronize, lambda: cuda.current_stream().synchronize(),
             lambda: cuda.Event().query(), x.tolist]
    for number, call in enumerate(calls if computes else calls[:-1]):
        graph = cuda.CUDAGraph()
        try:
            with cuda.graph(graph):
                call()
        except RuntimeError as error:
            assert "operation failed due to a previous error during capture" in str(error), error
            assert "operation not permitted when stream is capturing" in str(error.__context__), error.__context__
        else:
            raise AssertionError("no error in call %d" % number)
        try:
            graph.replay()
        except RuntimeError as error:
            assert "without a preceding successful capture" in str(error) or "capture_end() must have been called" in str(error), error
        else:
            raise AssertionError("no error")
        cuda.set_stream(cuda.default_stream())  # the context has not left its stream
    assert not computes or x.sum().item() == 4
    try:
        cuda.CUDAGraph().capture_begin()
    except RuntimeError as error:
        assert "CUDA graphs must be captured on a non-default stream." in str(error)
    else:
        raise AssertionError("no error")


@case
def copies_with_the_host():
    source, result = torch.ones(4).pin_memory(), torch.zeros(4).pin_memory()
    number = torch.tensor(5.0)
    graph, y = capture(lambda: result.copy_(source.cuda(non_blocking=True) * number, non_blocking=True))
    assert result.tolist() == [0, 0, 0, 0]
    number.fill_(7)  # a GPU has got the number with the operation
    for value in 1.0, 2.0:
        source.fill_(value)
        graph.replay()
        assert result.tolist() == [5 * value] * 4


@case
def autocast_and_inference():
    net, x = nn.Linear(8, 8).cuda(), torch.randn(4, 8, device="cuda")
    for context in torch.no_grad(), torch.inference_mode(), cuda.amp.autocast(cache_enabled=False):
        with context:
            expected = net(x * 2)
            graph, y = capture(lambda: net(x))
        x.mul_(2)
        graph.replay()
        assert y.dtype == expected.dtype
        equal(y, expected)


@case
def empty_graph():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        capture(lambda: None)
    assert any("The CUDA Graph is empty" in str(one.message) for one in seen)


@case
def pools_of_the_program():
    if not hasattr(cuda, "MemPool"):
        return
    pool = cuda.MemPool()
    with cuda.use_mem_pool(pool):
        x = torch.ones(1 << 18, device="cuda")
    assert [s["address"] for s in pool.snapshot()] == [x.data_ptr()] or pool.snapshot()
    assert {s["segment_pool_id"] for s in cuda.memory_snapshot()} >= {pool.id} and pool.use_count() == 1
    taken = cuda.memory_reserved()
    del x, pool
    gc.collect()
    cuda.empty_cache()
    assert cuda.memory_reserved() <= taken - (2 << 20)


def main():
    # Values that programs copy to the host have none in such a session.
    skipped = () if computes else ("copies_with_the_host", "a_capture_computes_nothing", "scaler")
    cases = [case for case in CASES if case.__name__ not in skipped]
    for run in cases:
        run()
    print("%d programs with CUDA graphs" % len(cases))


if __name__ == "__main__":
    sys.exit(main())
