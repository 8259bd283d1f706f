"""Recurrent networks and cells, with all of their options, and with weights and inputs that get gradients from elsewhere, too."""
import hashlib
import itertools

from common import *

import torch.utils.checkpoint

nn = torch.nn
STEPS, BATCH, WIDTH, HIDDEN = 9, 4, 6, 8


def value(tensors):
    """A number for all bits of tensors."""
    text = hashlib.sha256()
    for tensor in tensors:
        text.update(b"-" if tensor is None else tensor.detach().cpu().double().numpy().tobytes())
    return int(text.hexdigest()[:12], 16)


def leaf(*size):
    return torch.randn(*size).to(device).requires_grad_()


def flat(result):
    """The tensors of a network's result."""
    if isinstance(result, torch.Tensor):
        return [result]
    if isinstance(result, nn.utils.rnn.PackedSequence):
        return [result.data]
    return [tensor for part in result for tensor in flat(part)]


def measure(name, results, operands):
    """Prints what the results and the gradients of operands are."""
    loss = sum(((number + 1) * result).square().mean() for number, result in enumerate(results))
    loss.backward()
    show(name, value([*results, *[operand.grad for operand in operands]]))


def networks():
    lengths = torch.tensor([9, 7, 7, 2])
    for kind, layers, both, first, packed in itertools.product((nn.LSTM, nn.GRU, nn.RNN), (1, 2), (False, True), (False, True), (False, True)):
        network = kind(WIDTH, HIDDEN, layers, bidirectional=both, batch_first=first, dropout=0.3 if layers == 2 else 0.0, bias=not (both and first)).to(device)
        x = leaf(*((BATCH, STEPS) if first else (STEPS, BATCH)), WIDTH)

        def given():
            return nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=first) if packed else x

        states = None
        if first:
            states = leaf(layers * (1 + both), BATCH, HIDDEN)
            if kind is nn.LSTM:
                states = states, leaf(layers * (1 + both), BATCH, HIDDEN)
        name = "%s %d %s %s %s" % (kind.__name__, layers, both, first, packed)
        operands = [x, *network.parameters(), *([] if states is None else flat(states))]
        measure(name, flat(network(given(), states)), operands)
        with torch.no_grad():
            show(name + " without gradients", value(flat(network(given(), states))))
        network.zero_grad()
        network.weight_hh_l0.requires_grad_(False)
        flat(network(given(), states))[-1].sum().backward()  # the last state alone
        show(name + " of the state", value([operand.grad for operand in operands]))


def special():
    network = nn.LSTM(WIDTH, HIDDEN, 2, proj_size=3, bidirectional=True).to(device)
    x = leaf(STEPS, BATCH, WIDTH)
    measure("projections", flat(network(x)), [x, *network.parameters()])
    network = nn.GRU(WIDTH, HIDDEN).to(device)
    x = leaf(STEPS, WIDTH)
    measure("without a batch", flat(network(x)), [x, *network.parameters()])
    network = nn.RNN(WIDTH, HIDDEN, nonlinearity="relu").to(device)
    measure("relu", flat(network(leaf(STEPS, BATCH, WIDTH))), list(network.parameters()))
    network = nn.GRU(WIDTH, HIDDEN).to(device).double()
    measure("float64", flat(network(leaf(STEPS, BATCH, WIDTH).double())), list(network.parameters()))
    network = nn.GRU(WIDTH, HIDDEN).to(device).bfloat16()
    measure("bfloat16", [t.float() for t in flat(network(leaf(STEPS, BATCH, WIDTH).bfloat16()))], list(network.parameters()))
    for mode in torch.no_grad, torch.inference_mode:
        network = nn.LSTM(WIDTH, HIDDEN).to(device).eval()
        with mode():
            show(mode.__name__, value(flat(network(torch.randn(STEPS, BATCH, WIDTH).to(device)))))


def added_up():
    """Each sum of gradients has the order of the CPU's."""
    for kind, both in itertools.product((nn.LSTM, nn.GRU), (False, True)):
        network = kind(WIDTH, HIDDEN, bidirectional=both).to(device)
        name = "%s %s " % (kind.__name__, both)
        inputs = [leaf(STEPS, BATCH, WIDTH) for _ in range(3)]
        measure(name + "used three times", [part for x in inputs for part in flat(network(x))], [*network.parameters(), *inputs])
        network.zero_grad()
        x = leaf(STEPS, BATCH, WIDTH)
        middle = torch.tanh(x * 3)
        decay = sum(p.square().sum() for p in network.parameters())
        results = flat(network(middle))
        decay = decay + sum(p.pow(3).sum() for p in network.parameters())
        measure(name + "with other uses", [*results, middle.exp(), decay], [x, *network.parameters()])
        network.zero_grad()
        results = flat(network(x))
        for _ in range(2):
            results[0].sum().backward(retain_graph=True)
        show(name + "twice", value([p.grad for p in network.parameters()]))
        for reentrant in False, True:
            network.zero_grad()
            results = flat(torch.utils.checkpoint.checkpoint(network, x.exp(), use_reentrant=reentrant)) + flat(network(x))
            measure(name + "checkpoint", results, [*network.parameters(), x])
        gradients = torch.autograd.grad([network(x)[0].square().sum()], [network.weight_hh_l0, x])
        show(name + "torch.autograd.grad", value(gradients))


def cells():
    for kind in nn.LSTMCell, nn.GRUCell, nn.RNNCell:
        for bias in True, False:
            cell = kind(WIDTH, HIDDEN, bias=bias).to(device)
            x, state, outputs = leaf(STEPS, BATCH, WIDTH), None, []
            for step in x:
                state = cell(step, state)
                outputs.extend(flat(state))
            measure("%s %s" % (kind.__name__, bias), outputs, [x, *cell.parameters()])


def training():
    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.read = nn.LSTM(WIDTH, HIDDEN, 2, dropout=0.2, bidirectional=True)
            self.write, self.out = nn.GRU(2 * HIDDEN, HIDDEN), nn.Linear(HIDDEN, 3)

        def forward(self, x):
            x = self.read(x)[0]
            return self.out(self.write(x + torch.relu(x))[0][-1])

    model = Reader().to(device)
    batches = [(torch.randn(STEPS, BATCH, WIDTH), torch.randint(3, (BATCH,))) for _ in range(5)]
    train(model, torch.optim.AdamW(model.parameters(), lr=1e-2), batches, nn.functional.cross_entropy)
    digest(model)


networks()
special()
added_up()
cells()
training()
