"""What the programs share: the device that any script would choose, the seed, and the output that is compared."""
import torch

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(20)
torch.set_num_threads(1)


def show(name, value):
    """Prints a number with all its bits."""
    print(name, float(value).hex(), flush=True)


def train(model, optimizer, batches, loss_of):
    for number, (x, y) in enumerate(batches):
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        loss = loss_of(model(x), y)
        loss.backward()
        optimizer.step()
        show("step %d" % number, loss.item())


def digest(model):
    """A number that depends on all parameters."""
    show("parameters", sum(p.detach().double().sum().item() for p in model.parameters()))
