"""Tensor: the class of weft._core, and what of it is easier said in Python."""
import contextlib
import functools
import math
import operator
from typing import Any

from weft import _core, numpy_functions, torch_names
from weft._core import Tensor
from weft.device import Device, canonicalize_device
from weft.dtype import DType, dtypes

__all__ = ["DType", "Device", "Tensor", "dtypes"]  # programs of tinygrad import all four from here

Tensor.__module__ = "weft"


class train(contextlib.ContextDecorator):
    """with Tensor.train(): dropout and batch norm train, and optimizers may step."""

    def __init__(self, mode: bool = True) -> None:
        self.mode = mode

    def __enter__(self) -> Any:
        self.outer = _core.is_training()
        _core.set_training(self.mode)
        return self

    def __exit__(self, *exception: Any) -> None:
        _core.set_training(self.outer)


class no_grad(contextlib.ContextDecorator):
    """with Tensor.no_grad(): nothing changes, as nothing is computed for gradients unasked."""

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exception: Any) -> None:
        pass


def sequential(self: Tensor, ll: Any) -> Tensor:
    """ll[-1](...ll[1](ll[0](self)))."""
    for layer in ll:
        self = layer(self)
    return self


def fs_store(self: Tensor) -> Tensor:
    """nn.state.fs_store() of this."""
    from weft.nn import state
    return state.fs_store(self)


def fs_load(self: Tensor, size: int) -> Tensor:
    """nn.state.fs_load() of this hash."""
    from weft.nn import state
    return state.fs_load(self, size)


def from_url(url: str, gunzip: bool = False, **placement: Any) -> Tensor:
    """The bytes of a file, downloaded once."""
    from weft.helpers import fetch
    return Tensor(fetch(url, gunzip=gunzip), **placement)


def to_(self: Tensor, device: str | None) -> Tensor:
    """Moves this tensor itself; a leaf stays one."""
    return _moved(self, self.to(device))


def _moved(self: Tensor, there: Tensor) -> Tensor:
    if there.device == self.device or not self.is_realized:
        return self.replace(there)
    asked = self.requires_grad
    self.replace(there.realize())
    self.requires_grad = asked
    return self


def const(b: Any, dtype: Any = None) -> Tensor:
    """A number that takes no memory."""
    return Tensor.full((), b, dtype=dtype, buffer=False)


def const_like(self: Tensor, b: Any, dtype: Any = None) -> Tensor:
    """A constant of this one's shape and dtype that takes no memory."""
    return self.full_like(b, dtype=dtype, buffer=False)


def invalids(*shape: Any, **kwargs: Any) -> Tensor:
    """Elements that nobody may read: empty()."""
    return Tensor.empty(*shape, **kwargs)


def ufix(self: Tensor, x: Any) -> Tensor:
    """x as a Tensor that an operation with this one would make of it."""
    if isinstance(x, Tensor):
        return x
    met = _core.promote(self.dtype, Tensor(x).dtype) if isinstance(x, float) and not self.is_floating_point() else \
        self.dtype
    return Tensor.const(x, met if not isinstance(x, bool) or met == _core.dtype_of("bool") else self.dtype)


def threefry(self: Tensor, seed: Tensor) -> Tensor:
    """uint64: threefry2x32-20 of this counter under a key, both uint64 of two words, the low one first."""
    def words(x: Tensor) -> Any:
        return Tensor.cast(x, "uint32"), (x >> 32).cast("uint32")
    low, high = Tensor.threefry2x32(*words(seed), *words(self))
    return low.cast("uint64") | high.cast("uint64") << 32


# ---- tinygrad's forms for images, which here need none

def image_dot(self: Tensor, w: Tensor, dtype: Any = None) -> Tensor:
    """dot()."""
    return self.dot(w, dtype=dtype)


def image_conv2d(self: Tensor, weight: Tensor, bias: Tensor | None = None, groups: int = 1, stride: Any = 1,
                 dilation: Any = 1, padding: Any = 0, dtype: Any = None) -> Tensor:
    """conv2d()."""
    return self.conv2d(weight, bias, groups, stride, dilation, padding, dtype)


# ---- several devices

def shard(self: Tensor, devices: tuple[str, ...], axis: int | None = None) -> Tensor:
    """This on devices of one machine that share memory, where a tensor is kept whole: with the same values on all
    of them (axis None), or split into equal parts along an axis, all results are the same."""
    names = canonicalize_device(tuple(devices))
    if isinstance(names, str):
        names = (names,)
    kinds = {name.partition(":")[0] for name in names}
    if kinds != {"CPU"}:
        raise ValueError(f"shard: {', '.join(names)} share no memory, and a tensor is not distributed over them; put "
                         "it on one device with to()")
    if axis is not None and int(self.shape[axis]) % len(names):
        raise _core.ArgumentError(f"[shard] axis {axis} of shape {self.shape} cannot be split into {len(names)} equal "
                                  "parts")
    return self.to(names)


def shard_(self: Tensor, devices: tuple[str, ...], axis: int | None = None) -> Tensor:
    """shard() of this tensor itself."""
    return _moved(self, self.shard(devices, axis))


def shard_like(self: Tensor, y: Tensor) -> Tensor:
    """On y's devices."""
    return self.to(y.device)


def usum(self: Tensor, *others: Any) -> Tensor:
    """self + others[0] + others[1] + ..."""
    return functools.reduce(operator.add, others, self)


def uprod(self: Tensor, *others: Any) -> Tensor:
    """self * others[0] * others[1] * ..."""
    return functools.reduce(operator.mul, others, self)


def contiguous_backward(self: Tensor) -> Tensor:
    """This tensor, whose gradient has a buffer of its own."""
    return _core.contiguous_backward(self)


def max_shape(self: Tensor) -> tuple[int, ...]:
    """shape with every size at the largest it can be."""
    return tuple(size.vmax if isinstance(size, _core.Dim) else size for size in self.shape)


def _pool(self: Tensor, k_: tuple[int, ...], stride: Any = 1, dilation: Any = 1) -> Tensor:
    """Windows over the last axes, as many as k_ has: (..., places, k_)."""
    def each(x: Any) -> tuple[int, ...]:
        return tuple(x) if isinstance(x, (tuple, list)) else (x,) * len(k_)
    y, first = self, self.ndim - len(k_)
    for i, (k, s, d) in enumerate(zip(k_, each(stride), each(dilation))):
        y = y.window(first + i, k, s, d)
    return y


# ---- the array API standard

def _size_of(shape: tuple, dim: int | None = None):
    if dim is None:
        return shape
    if not -len(shape) <= dim < len(shape):
        raise IndexError(f"[size] axis {dim} is out of range for shape {shape}: it must be from {-len(shape)} to "
                         f"{len(shape) - 1}")
    return shape[dim]


class Size(int):
    """Tensor.size: the number of elements, as the standard has it; called, the shape or one size of it, as PyTorch
    has it. x.size == 6, x.size() == (2, 3), x.size(0) == 2."""

    shape: tuple

    def __call__(self, dim: int | None = None):
        return _size_of(self.shape, dim)

    def __reduce__(self):
        return int, (int(self),)


def size(self: Tensor):
    """Size; where sizes are chosen per run, only what can be called."""
    shape, count = self.shape, self.numel()
    if not isinstance(count, int):
        return functools.partial(_size_of, shape)
    found = Size(count)
    found.shape = shape
    return found


def array_namespace(self: Tensor, /, *, api_version: str | None = None):
    """weft.array_api, for functions of any library's arrays."""
    from weft import array_api
    if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
        raise ValueError(f"__array_namespace__: version {api_version!r} of the array API is not known; 2024.12 and those "
                         "before it are")
    return array_api


def as_complex(self: Tensor, /) -> complex:
    """The one element, which is real."""
    return complex(self.item())


def to_device(self: Tensor, device: str, /, *, stream=None) -> Tensor:
    """to(), as the standard names it."""
    if stream is not None:
        raise ValueError("to_device: there are no streams to wait for: pass None")
    return self.to(device)


def unpickled(data: bytes, dtype: Any, shape: Any, requires_grad: Any) -> Tensor:
    """What Tensor.__reduce__ names."""
    return _core.tensor_of_bytes(data, dtype, shape, requires_grad)


_MEMBERS = {
    "train": train,
    "no_grad": no_grad,
    "sequential": sequential,
    "to_": to_,
    "const": staticmethod(const),
    "const_like": const_like,
    "invalids": staticmethod(invalids),
    "ufix": ufix,
    "threefry": threefry,
    "image_dot": image_dot,
    "image_conv2d": image_conv2d,
    "shard": shard,
    "shard_": shard_,
    "shard_like": shard_like,
    "usum": usum,
    "uprod": uprod,
    "contiguous_backward": contiguous_backward,
    "max_shape": property(max_shape),
    "max_numel": property(lambda self: math.prod(self.max_shape), doc="Elements of max_shape."),
    "fs_store": fs_store,
    "fs_load": fs_load,
    "from_url": staticmethod(from_url),
    "from_dlpack": staticmethod(_core.from_dlpack),
    "mT": property(lambda self: self.transpose(-2, -1), doc="The last two axes exchanged."),
    "_pool": _pool,
    "size": property(size),
    "to_device": to_device,
    "__array_namespace__": array_namespace,
    "__complex__": as_complex,
    "__array_ufunc__": numpy_functions.array_ufunc,
    "__array_function__": numpy_functions.array_function,
}
for _name, _member in (torch_names.members() | _MEMBERS).items():
    setattr(Tensor, _name, _member)
