"""Layers: plain classes with tensors as attributes, by tinygrad's names and PyTorch's parameter names.

Layers are written on Tensor alone; a class of your own needs no base class, only attributes:

    class Net:
        def __init__(self):
            self.l1, self.l2 = nn.Linear(784, 128), nn.Linear(128, 10)
        def __call__(self, x):
            return self.l2(self.l1(x).relu())
"""
from weft.nn import attention, containers, layers, recurrent
from weft.nn.attention import *  # noqa: F403
from weft.nn.containers import *  # noqa: F403
from weft.nn.layers import *  # noqa: F403
from weft.nn.recurrent import *  # noqa: F403
from weft.nn import datasets, ema, gradients, onnx, optim, schedules, state  # noqa: F401
from weft.nn.ema import Ema

__all__ = [*attention.__all__, *containers.__all__, *layers.__all__, *recurrent.__all__, "Ema", "datasets", "ema",
           "gradients", "onnx", "optim", "schedules", "state"]
