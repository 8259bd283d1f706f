"""torch.cuda.comm, with which nn.DataParallel copies between devices: its checks, and the memory that its copies take."""
import functools

from .storages import CPU


def install(torch, devices):
    comm = Comm(torch, devices)
    unflatten = torch._C._nn.unflatten_dense_tensors

    def unflatten_dense_tensors(flat, tensors):
        with devices.on(devices.of(flat)):  # it makes empty parts from their sizes alone
            return unflatten(flat, tensors)

    torch._C._nn.unflatten_dense_tensors = unflatten_dense_tensors
    nccl = torch.cuda.nccl
    nccl.is_available = functools.wraps(nccl.is_available)(lambda tensors: False)  # without its warning
    for name in ("broadcast", "broadcast_coalesced", "broadcast_out", "scatter", "scatter_out", "gather", "gather_out"):
        setattr(torch._C, "_" + name, getattr(comm, name))


def shape(sizes):
    return "[%s]" % ", ".join(map(str, sizes))


def require(condition, text, *values):
    if not condition:
        raise RuntimeError(text % values)


class Comm:
    def __init__(self, torch, devices):
        self.torch, self.devices = torch, devices

    def place(self, tensor, index):
        return tensor if self.devices.of(tensor) == index else self.devices.move(tensor, index)

    def on_devices(self, outs):
        for at, out in enumerate(outs):
            require(self.devices.of(out) >= 0, "Expected all output tensors to be CUDA tensors, but output tensor at index %d has device '%s'",
                    at, out.device)

    def dim(self, tensor, dim):
        count = max(tensor.dim(), 1)
        if not -count <= dim < count:
            raise IndexError("Dimension out of range (expected to be in range of [%d, %d], but got %d)" % (-count, count - 1, dim))
        return dim % count

    def broadcast(self, tensor, targets):
        for index in targets:
            require(index >= 0, "Expected non-negative device index, but got %d", index)
        return [self.place(tensor, index) for index in targets]

    def broadcast_out(self, tensor, outs):
        self.on_devices(outs)
        for at, out in enumerate(outs):
            require(out.shape == tensor.shape, "Expected all output tensors to have same shape as the source tensor %s, but output tensor at index "
                    "%d has shape %s", shape(tensor.shape), at, shape(out.shape))
        for out in outs:
            out.copy_(tensor)
        return outs

    def broadcast_coalesced(self, tensors, targets, size):
        """Tensors of one type are copied in one piece, of which the results are views, each with its own version."""
        utils = self.torch._utils
        require(all(self.devices.of(tensor) == targets[0] for tensor in tensors), "All tensors must be on devices[0]: %d", targets[0])
        results = [[] for _ in targets[1:]]
        for chunk in utils._take_tensors(tensors, size):
            if chunk[0].is_sparse:
                flat, unflatten = utils._flatten_sparse_tensors(chunk), utils._unflatten_sparse_tensors
                copies = zip(*[self.broadcast(part, targets) for part in flat])
            else:
                flat, unflatten = utils._flatten_dense_tensors(chunk), utils._unflatten_dense_tensors
                copies = self.broadcast(flat, targets)
            for result, copy in zip(results, list(copies)[1:]):
                result.extend(part.data for part in unflatten(copy, chunk))
        return [list(tensors)] + [list(utils._reorder_tensors_as(result, tensors)) for result in results]

    def scatter(self, tensor, targets, sizes, dim, streams):
        require(targets, "Expected at least one device to scatter to")
        require(sizes is None or len(sizes) == len(targets), "Expected devices and chunk_sizes to be of same length, but got len(devices) = %d and "
                "len(chunk_sizes) = %d", len(targets), len(sizes or ()))
        dim = self.dim(tensor, dim)
        parts = tensor.chunk(len(targets), dim) if sizes is None else tensor.split_with_sizes(list(sizes), dim)
        return [self.place(part, index) for part, index in zip(parts, targets)]

    def scatter_out(self, tensor, outs, dim, streams):
        require(outs, "Expected at least one output tensor to scatter to")
        dim = self.dim(tensor, dim)
        self.on_devices(outs)
        for at, out in enumerate(outs):
            wanted = list(tensor.shape)
            if out.dim() == tensor.dim():
                wanted[dim] = out.shape[dim]
            require(list(out.shape) == wanted, "Output tensor at index %d has incorrect shape: %s. Expected same shape except for scatter dim %d as the "
                    "source tensor: %s", at, shape(out.shape), dim, shape(tensor.shape))
        total = sum(out.shape[dim] for out in outs)
        require(total == tensor.shape[dim], "Total size for output tensors along scatter dim %d does not match the source tensor size at dim %d. "
                "Expected %d, but got total size %d", dim, dim, tensor.shape[dim], total)
        for out, part in zip(outs, tensor.split_with_sizes([out.shape[dim] for out in outs], dim)):
            out.copy_(part)
        return outs

    def gathered(self, tensors, dim):
        """The dimension and the sizes of the result, after PyTorch's checks."""
        require(tensors, "Expected at least one tensor to gather from")
        dim, first = self.dim(tensors[0], dim), tensors[0]
        for at, tensor in enumerate(tensors):
            require(self.devices.of(tensor) >= 0, "Expected all input tensors to be CUDA tensors, but tensor at index %d has device '%s'", at, tensor.device)
            require(tensor.dim() == first.dim(), "Expected all input tensors to have the same number of dimensions, but tensor at index %dhas %d "
                    "dimensions, (expected %d)", at, tensor.dim(), first.dim())
            wanted = list(first.shape)
            wanted[dim] = tensor.shape[dim]
            require(list(tensor.shape) == wanted, "Input tensor at index %d has invalid shape %s, but expected %s", at, shape(tensor.shape), shape(wanted))
        wanted = list(first.shape)
        wanted[dim] = sum(tensor.shape[dim] for tensor in tensors)
        return dim, wanted

    def gather(self, tensors, dim, target):
        dim, sizes = self.gathered(tensors, dim)
        device = self.devices.cpu if target == CPU else self.torch.device("cuda", self.devices.index("cuda") if target is None else target)
        result = self.torch.empty(sizes, dtype=tensors[0].dtype, device=device, memory_format=self.memory_format(tensors))
        return self.gather_into(tensors, result, dim)

    def memory_format(self, tensors):
        formats = self.torch
        for last, dimensions in ((formats.channels_last, 4), (formats.channels_last_3d, 5)):
            if all(tensor.dim() == dimensions and tensor.is_contiguous(memory_format=last) and not tensor.is_contiguous() for tensor in tensors):
                return last
        return formats.contiguous_format

    def gather_out(self, tensors, out, dim):
        dim, sizes = self.gathered(tensors, dim)
        require(list(out.shape) == sizes, "Expected out tensor to have shape %s, but got %s", shape(sizes), shape(out.shape))
        return self.gather_into(tensors, out, dim)

    def gather_into(self, tensors, out, dim):
        for part, tensor in zip(out.split_with_sizes([tensor.shape[dim] for tensor in tensors], dim), tensors):
            part.copy_(tensor)
        return out
