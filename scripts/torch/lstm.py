from common import *


class Tagger(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.lstm = torch.nn.Embedding(50, 32), torch.nn.LSTM(32, 64, 2, batch_first=True, bidirectional=True, dropout=0.1)
        self.out = torch.nn.Linear(128, 5)

    def forward(self, x):
        lengths = torch.arange(x.size(1), x.size(1) - x.size(0), -1)
        packed = torch.nn.utils.rnn.pack_padded_sequence(self.embed(x), lengths, batch_first=True)
        out, _ = torch.nn.utils.rnn.pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        return self.out(out)


model = Tagger().to(device)
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
batches = [(torch.randint(50, (6, 20)), torch.randint(5, (6, 20))) for _ in range(6)]
train(model, optimizer, batches, lambda out, y: torch.nn.functional.cross_entropy(out.flatten(0, 1), y.flatten()))
digest(model)
