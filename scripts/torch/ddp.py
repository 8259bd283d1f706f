import gc
import os
import sys

from common import *
import torch.distributed as dist
import torch.multiprocessing as mp


def work(rank, ranks, port):
    os.environ.setdefault("USE_LIBUV", "0")  # some builds lack it
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    on_gpu = torch.cuda.is_available()
    dist.init_process_group("nccl" if on_gpu else "gloo", rank=rank, world_size=ranks)
    place = torch.device("cuda", rank % torch.cuda.device_count()) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(place)
        assert dist.get_backend() == "nccl", dist.get_backend()
    torch.manual_seed(5)
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4)).to(place)
    model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[place.index] if on_gpu else None)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(rank)
    for step in range(5):
        x, y = torch.randn(8, 32).to(place), torch.randint(4, (8,)).to(place)
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        if rank == 0:
            show("step %d" % step, mean / ranks)
    if rank == 0:
        digest(model)
    dist.barrier()
    # If the model has the last reference to the group, PyTorch waits with Python's lock for gloo's threads, which may need it.
    del model
    gc.collect()
    dist.destroy_process_group()


if __name__ == "__main__":
    ranks = int(sys.argv[1])
    mp.spawn(work, args=(ranks, 29500 + os.getpid() % 1000), nprocs=ranks)
