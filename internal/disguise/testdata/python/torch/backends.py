import sys
import types
import warnings


class Switch(types.ModuleType):
    """One that older programs turn, with a remark that there are newer ones."""

    def __init__(self, name):
        super().__init__(name)
        self.__dict__["allow_tf32"] = True

    def __setattr__(self, name, value):
        if name == "allow_tf32":
            warnings.warn("please use the new API settings to control TF32 behavior")
        super().__setattr__(name, value)


class cuda:
    matmul = Switch("matmul")


cudnn = Switch("torch.backends.cudnn")
sys.modules["torch.backends.cudnn"] = cudnn
