"""torch.func: transformed functions see the devices of their tensors, and compute what they compute on the CPU."""
from common import *

try:
    from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, vjp, vmap
except ImportError:
    from functorch import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap
    functional_call = None


def total(name, *tensors):
    """Each tensor is where the program works, and its sum is printed."""
    for number, tensor in enumerate(tensors):
        assert tensor.device.type == device, (name, tensor.device)
        show("%s %d" % (name, number), tensor.detach().double().sum().item())


def placed(x):
    assert x.device.type == device and x.is_cuda == (device == "cuda"), x.device
    y = x + torch.zeros(3, device=x.device) + x.new_ones(3) + torch.zeros_like(x)
    return (torch.arange(3.0).to(y) * y).sin()


def there_and_back(x):
    y = x.cpu() * 2
    assert y.device.type == "cpu", y.device
    return (y.to(device) ** 3).sum()


x = torch.randn(4, 3).to(device)
total("vmap", vmap(placed)(x))
total("nested vmap", vmap(vmap(lambda a: a * torch.ones((), device=a.device)))(x))
total("hessian", hessian(lambda a: (placed(a) ** 3).sum())(x[0]))
total("jacobians", jacrev(placed)(x[0]), jacfwd(placed)(x[0]))
total("vjp", *vjp(placed, x[0])[1](x[1]))
total("jvp", *jvp(placed, (x[0],), (x[1],)))
if functional_call is not None:  # PyTorch 1.13 runs no autograd.Function in these
    total("grad", grad(there_and_back)(x[0]))
    total("vmap of grad", vmap(grad(there_and_back))(x))
    total("jacfwd of a copy", jacfwd(there_and_back)(x[0]))
    total("hessian of a copy", hessian(there_and_back)(x[0]))
    host = grad(lambda a: (a.to(device) ** 2).sum())(torch.arange(3.0))
    assert host.device.type == "cpu"
    show("grad of a tensor of the host", host.sum())
    model = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 3)).to(device)
    parameters = {name: p.detach() for name, p in model.named_parameters()}

    def loss(parameters, image, label):
        return torch.nn.functional.cross_entropy(functional_call(model, parameters, (image[None],)), label[None])

    images, labels = torch.rand(4, 1, 8, 8).to(device), torch.tensor([0, 1, 2, 0]).to(device)
    total("gradients of each sample", *vmap(grad(loss), (None, 0, 0))(parameters, images, labels).values())

    def mask(row):
        result = row.new_zeros(4)
        result[row.long().clamp(0, 3)] = 1
        return result

    total("an index in vmap", vmap(mask)(x))
