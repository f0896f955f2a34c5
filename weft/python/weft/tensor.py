"""Tensor: the class of weft._core, and what of it is easier said in Python."""
import contextlib
import functools
import math
import operator

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


def to_(self: Tensor, device: str | None) -> Tensor:
    """Moves this tensor itself."""
    return self.replace(self.to(device))


def const_like(self: Tensor, value) -> Tensor:
    """A constant of this one's shape and dtype that takes no memory."""
    return self.full_like(value, buffer=False)


def usum(self: Tensor, *others) -> Tensor:
    """self + others[0] + others[1] + ..."""
    return functools.reduce(operator.add, others, self)


def uprod(self: Tensor, *others) -> Tensor:
    """self * others[0] * others[1] * ..."""
    return functools.reduce(operator.mul, others, self)


def contiguous_backward(self: Tensor) -> Tensor:
    """This: where gradients take memory is the scheduler's to decide."""
    return self


def max_shape(self: Tensor) -> tuple[int, ...]:
    """shape with every size at the largest it can be."""
    return tuple(size.vmax if isinstance(size, _core.Dim) else size for size in self.shape)


def unpickled(data: bytes, dtype, shape, requires_grad) -> Tensor:
    """What Tensor.__reduce__ names."""
    return _core.tensor_of_bytes(data, dtype, shape, requires_grad)


Tensor.train = train
Tensor.no_grad = no_grad
Tensor.sequential = sequential
Tensor.to_ = to_
Tensor.const_like = const_like
Tensor.usum = usum
Tensor.uprod = uprod
Tensor.contiguous_backward = contiguous_backward
Tensor.max_shape = property(max_shape)
Tensor.max_numel = property(lambda self: math.prod(self.max_shape), doc="Elements of max_shape.")
Tensor.from_url = staticmethod(from_url)
Tensor.from_dlpack = staticmethod(_core.from_dlpack)
