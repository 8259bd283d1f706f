"""What processes exchange, against closed forms. Started by torchrun it is one rank, otherwise it starts its ranks."""
import os
import sys

from common import *
import torch.distributed as dist
import torch.multiprocessing as mp

on_gpu = torch.cuda.is_available()


def exchanges(rank, ranks, place, dtype):
    """The names of the exchanges, with what rank 0 has after them and what it should have."""

    def tensor(*values):
        return torch.tensor(values, dtype=dtype, device=place)

    def parts():
        return [tensor(0) for _ in range(ranks)]

    def all_reduce(**op):
        x = tensor(rank + 1, 2)
        dist.all_reduce(x, **op)
        return x

    def asynchronous():
        x = tensor(rank + 1)
        dist.all_reduce(x, async_op=True).wait()
        return x

    def broadcast():
        x = tensor(rank + 5)
        dist.broadcast(x, ranks - 1)
        return x

    def all_gather():
        out = parts()
        dist.all_gather(out, tensor(rank))
        return torch.cat(out)

    def into_tensor():
        out = torch.empty(ranks, dtype=dtype, device=place)
        dist.all_gather_into_tensor(out, tensor(rank))
        return out

    def gather_stacked():
        out = torch.empty(ranks, 1, dtype=dtype, device=place)
        dist.all_gather_into_tensor(out, tensor(rank))
        return out.flatten()

    def scatter_stacked():
        out = tensor(0)
        dist.reduce_scatter_tensor(out, torch.tensor([[rank + at] for at in range(ranks)], dtype=dtype, device=place))
        return out

    def reduce_scatter():
        out = tensor(0)
        dist.reduce_scatter(out, [tensor(rank + at) for at in range(ranks)])
        return out

    def reduce():
        x = tensor(rank + 1)
        dist.reduce(x, 0)
        return x

    def gather():
        out = parts() if rank == 0 else None
        dist.gather(tensor(rank), out, dst=0)
        return torch.cat(out) if rank == 0 else tensor(0)

    def scatter():
        out = tensor(0)
        dist.scatter(out, [tensor(at + 3) for at in range(ranks)] if rank == 0 else None, src=0)
        return out

    def all_to_all():
        out = parts()
        dist.all_to_all(out, [tensor(10 * rank + at) for at in range(ranks)])
        return torch.cat(out)

    def ring():
        x = tensor(0)
        for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, tensor(rank), (rank + 1) % ranks),
                                            dist.P2POp(dist.irecv, x, (rank - 1) % ranks)]):
            work.wait()
        return x

    total, order = sum(range(ranks + 1)), list(range(ranks))
    yield "all_reduce", all_reduce, [total, 2 * ranks]
    yield "maximum", lambda: all_reduce(op=dist.ReduceOp.MAX), [ranks, 2]
    if on_gpu:  # gloo lacks these
        yield "all_gather_into_tensor", gather_stacked, order
        yield "reduce_scatter_tensor", scatter_stacked, [sum(order)]
        yield "average", lambda: all_reduce(op=dist.ReduceOp.AVG), [total / ranks if dtype.is_floating_point else total // ranks, 2]
    yield "asynchronous", asynchronous, [total]
    yield "broadcast", broadcast, [ranks + 4]
    yield "all_gather", all_gather, order
    yield "all_gather_into_tensor", into_tensor, order
    yield "reduce_scatter", reduce_scatter, [sum(order)]
    yield "reduce", reduce, [total]
    yield "gather", gather, order
    yield "scatter", scatter, [3]
    yield "all_to_all", all_to_all, [10 * at for at in order]
    yield "ring", ring, [ranks - 1]


def work(rank, ranks):
    place = torch.device("cuda", rank % torch.cuda.device_count()) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(place)
    dist.init_process_group("nccl" if on_gpu else "gloo")
    assert (dist.get_rank(), dist.get_world_size()) == (rank, ranks)
    for dtype in (torch.float32, torch.int64) + ((torch.float16, torch.bfloat16) if on_gpu else ()):
        for name, exchange, expected in exchanges(rank, ranks, place, dtype):
            try:
                got = exchange()
            except RuntimeError as error:
                assert not on_gpu or "torch.distributed.%s of %s is not available in this session" % (name, dtype) in str(error), error
                got = torch.tensor(expected)
            else:
                assert got.device == place and got.dtype == dtype, (name, got)
            if rank == 0:
                assert got.tolist() == torch.tensor(expected, dtype=dtype).tolist(), (name, dtype, got, expected)
                if dtype in (torch.float32, torch.int64) and name not in ("average", "reduce_scatter_tensor") and exchange.__name__ != "gather_stacked":
                    show("%s %s" % (name, dtype), got.double().sum())
    if on_gpu:
        try:
            dist.all_reduce(torch.ones(1))
            raise AssertionError("a tensor of the CPU is accepted")
        except RuntimeError as error:
            assert "device type cpu" in str(error) or "must be CUDA" in str(error), error
    everything = [None] * ranks
    dist.all_gather_object(everything, {"rank": rank})
    assert everything == [{"rank": at} for at in range(ranks)]
    dist.barrier()
    os._exit(0)  # destroy_process_group of PyTorch 2.6 can wait forever after an exchange that gloo lacks


def start(rank, ranks, port):
    os.environ.setdefault("USE_LIBUV", "0")  # some builds lack it
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(ranks))
    work(rank, ranks)


if __name__ == "__main__":
    if "RANK" in os.environ:
        work(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))
    else:
        mp.spawn(start, args=(int(sys.argv[1]), 30500 + os.getpid() % 1000), nprocs=int(sys.argv[1]))
