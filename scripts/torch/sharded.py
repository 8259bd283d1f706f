"""fully_shard: each rank holds a part of every parameter."""
import os
import sys

from common import *
import torch.distributed as dist
import torch.multiprocessing as mp


def work(rank, ranks, port):
    from torch.distributed.fsdp import fully_shard

    os.environ.setdefault("USE_LIBUV", "0")  # some builds lack it
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    on_gpu = torch.cuda.is_available()
    place = torch.device("cuda", rank % torch.cuda.device_count()) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(place)
    dist.init_process_group("nccl" if on_gpu else "gloo", rank=rank, world_size=ranks)
    torch.manual_seed(5)
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4)).to(place)
    for layer in (model[0], model[2], model):
        fully_shard(layer)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    torch.manual_seed(rank)
    for step in range(4):
        x, y = torch.randn(8, 32).to(place), torch.randint(4, (8,)).to(place)
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if rank == 0:
            show("step %d" % step, loss.item())
    part = next(model.parameters()).to_local()
    assert part.device == place and part.shape == (64 // ranks, 32), (part.device, part.shape)
    if rank == 0:
        show("part", part.double().sum())
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    ranks = int(sys.argv[1])
    mp.spawn(work, args=(ranks, 31500 + os.getpid() % 1000), nprocs=ranks)
