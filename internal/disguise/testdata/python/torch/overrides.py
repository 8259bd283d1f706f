import torch


class TorchFunctionMode:
    def __torch_function__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError

    def __enter__(self):
        torch._modes.append(self)
        return self

    def __exit__(self, *error):
        torch._modes.pop()
