"""The versions of CUDA, cuDNN and NCCL. A CUDA build states the ones that it was built with. Of a CPU build programs get the CUDA of the
session's driver, and what PyTorch's packages for it bring along: libraries take the version apart when they are imported."""
from .driver import DriverError

# By the version of CUDA, as the driver has it: the versions of cuDNN and NCCL, as they state them.
PUBLISHED = {
    11070: (8500, (2, 14, 3)), 11080: (8700, (2, 18, 1)), 12010: (8902, (2, 18, 1)), 12040: (90100, (2, 21, 5)), 12060: (90501, (2, 26, 2)),
    12080: (91002, (2, 27, 3)), 13000: (91300, (2, 27, 7)),
}


def install(torch, driver):
    if torch.version.cuda is not None:
        return
    try:
        version = driver.version()
    except (DriverError, OSError):
        return  # without a driver there is no device either, and no version
    torch.version.cuda = "%d.%d" % (version // 1000, version % 1000 // 10)
    cudnn, nccl = PUBLISHED[max([known for known in PUBLISHED if known <= version] or [min(PUBLISHED)])]
    C = torch._C
    C._cuda_getCompiledVersion = lambda: version
    C._nccl_version, C._nccl_version_suffix = lambda: nccl[0] << 32 | nccl[1] << 16 | nccl[2], lambda: b""
    for module in (torch, C):
        for name in ("has_cuda", "has_cudnn", "_has_cuda", "_has_cudnn"):  # each version of PyTorch has some
            if name in vars(module):
                setattr(module, name, True)
    torch.backends.cudnn.version = lambda: cudnn
