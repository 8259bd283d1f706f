"""The versions of CUDA, cuDNN and NCCL. A CUDA build states the ones that it was built with. Of a CPU build programs get those of the
package that pip installs of this PyTorch, or of the last one that the session's driver can run: libraries take the version apart when
they are imported."""
from . import errors
from .driver import DriverError

# By the first version of PyTorch whose package has them: the versions of CUDA, cuDNN and NCCL, as they state them.
PUBLISHED = {
    (1, 13): (11070, 8500, (2, 14, 3)), (2, 1): (12010, 8902, (2, 18, 1)), (2, 5): (12040, 90100, (2, 21, 5)), (2, 7): (12060, 90501, (2, 26, 2)),
    (2, 8): (12080, 91002, (2, 27, 3)), (2, 11): (13000, 91900, (2, 28, 9)),
}


def install(torch, driver):
    if torch.version.cuda is not None:
        return
    try:
        newest = driver.version()
    except (DriverError, OSError):
        return  # without a driver there is no device either, and no version
    known = [versions for first, versions in PUBLISHED.items() if first <= errors.version(torch) and versions[0] <= newest]
    version, cudnn, nccl = known[-1] if known else PUBLISHED[1, 13]
    torch.version.cuda = "%d.%d" % (version // 1000, version % 1000 // 10)
    C = torch._C
    C._cuda_getCompiledVersion = lambda: version
    C._nccl_version, C._nccl_version_suffix = lambda: nccl[0] << 32 | nccl[1] << 16 | nccl[2], lambda: b""
    for module in (torch, C):
        for name in ("has_cuda", "has_cudnn", "_has_cuda", "_has_cudnn"):  # each version of PyTorch has some
            if name in vars(module):
                setattr(module, name, True)
    torch.backends.cudnn.version = lambda: cudnn
