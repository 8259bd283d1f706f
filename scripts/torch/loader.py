import sys

from common import *


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, number):
        return torch.arange(16, dtype=torch.float32) * number, number % 4


def main():
    context = sys.argv[1] if len(sys.argv) > 1 else "fork"
    model = torch.nn.Linear(16, 4).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
    for _ in range(2):
        loader = torch.utils.data.DataLoader(Data(), batch_size=8, shuffle=True, num_workers=4, pin_memory=True, multiprocessing_context=context)
        train(model, optimizer, loader, torch.nn.functional.cross_entropy)
    digest(model)


if __name__ == "__main__":
    main()
