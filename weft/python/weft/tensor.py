"""Tensor: the class of weft._core, and what of it is easier said in Python."""
import contextlib

from weft import _core
from weft._core import Tensor

__all__ = ["Tensor"]

Tensor.__module__ = "weft"


class train(contextlib.ContextDecorator):
    """with Tensor.train(): dropout and batch norm train, and optimizers may step."""

    def __init__(self, mode: bool = True):
        self.mode = mode

    def __enter__(self):
        self.outer = _core.is_training()
        _core.set_training(self.mode)
        return self

    def __exit__(self, *exception):
        _core.set_training(self.outer)


class no_grad(contextlib.ContextDecorator):
    """with Tensor.no_grad(): nothing changes, as nothing is computed for gradients unasked."""

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass


def sequential(self: Tensor, layers) -> Tensor:
    """layers[-1](...layers[1](layers[0](self)))."""
    for layer in layers:
        self = layer(self)
    return self


def from_url(url: str, gunzip: bool = False, **placement) -> Tensor:
    """The bytes of a file, downloaded once."""
    from weft.helpers import fetch
    return Tensor(fetch(url, gunzip=gunzip), **placement)


def unpickled(data: bytes, dtype, shape, requires_grad) -> Tensor:
    """What Tensor.__reduce__ names."""
    return _core.tensor_of_bytes(data, dtype, shape, requires_grad)


Tensor.train = train
Tensor.no_grad = no_grad
Tensor.sequential = sequential
Tensor.from_url = staticmethod(from_url)
Tensor.from_dlpack = staticmethod(_core.from_dlpack)
