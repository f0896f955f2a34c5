"""Reductions: statistics, all and any; running sums and differences."""
import builtins

from weft.array_api.data_types import rank
from weft.array_api.manipulation import axes_of
from weft.dtype import dtypes
from weft.tensor import Tensor

__all__ = ["all", "any", "cumulative_prod", "cumulative_sum", "diff", "max", "mean", "min", "prod", "std", "sum", "var"]

_no_axes = ()


def accumulator(x: Tensor, dtype):
    """The dtype of sums of x where none is asked for: integers at least as wide as the default one."""
    if dtype is not None or rank(x.dtype) == 2:
        return dtype or x.dtype
    usual = dtypes.default_int
    if dtypes.is_unsigned(x.dtype):
        usual = dtypes.uint64 if usual == dtypes.int64 else dtypes.uint32
    return x.dtype if x.dtype.bitsize > usual.bitsize else usual


def sum(x: Tensor, /, *, axis=None, dtype=None, keepdims: builtins.bool = False) -> Tensor:
    """The sum; of no elements 0. Integers in the default one, or their own if wider."""
    y = x.cast(accumulator(x, dtype))
    return y if axis == _no_axes else y.sum(axis, keepdims, y.dtype)


def prod(x: Tensor, /, *, axis=None, dtype=None, keepdims: builtins.bool = False) -> Tensor:
    """The product; of no elements 1. Dtypes as sum()'s."""
    y = x.cast(accumulator(x, dtype))
    return y if axis == _no_axes else y.prod(axis, keepdims, y.dtype)


def max(x: Tensor, /, *, axis=None, keepdims: builtins.bool = False) -> Tensor:
    """The largest; NaN wins; a ValueError of no elements."""
    return x if axis == _no_axes else x.max(axis, keepdims)


def min(x: Tensor, /, *, axis=None, keepdims: builtins.bool = False) -> Tensor:
    """The smallest; NaN wins; a ValueError of no elements."""
    return x if axis == _no_axes else x.min(axis, keepdims)


def mean(x: Tensor, /, *, axis=None, keepdims: builtins.bool = False) -> Tensor:
    """The mean; of no elements NaN. Of integers in the default float."""
    y = x if rank(x.dtype) == 2 else x.cast(dtypes.default_float)
    return y if axis == _no_axes else y.mean(axis, keepdims)


def var(x: Tensor, /, *, axis=None, correction: float = 0.0, keepdims: builtins.bool = False) -> Tensor:
    """The mean square distance from the mean, divided by count - correction instead of count."""
    y = x if rank(x.dtype) == 2 else x.cast(dtypes.default_float)
    axes = tuple(range(x.ndim)) if axis is None else axes_of(x, axis)
    count = 1
    for a in axes:
        count *= int(x.shape[a])
    far = y - (y.mean(axes, True) if axes else y)
    squares = (far * far).sum(axes, keepdims) if axes else far * far
    return squares / builtins.max(float(count - correction), 0.0)


def std(x: Tensor, /, *, axis=None, correction: float = 0.0, keepdims: builtins.bool = False) -> Tensor:
    """The square root of var()."""
    return var(x, axis=axis, correction=correction, keepdims=keepdims).sqrt()


def all(x: Tensor, /, *, axis=None, keepdims: builtins.bool = False) -> Tensor:
    """Whether no element is 0."""
    return x != 0 if axis == _no_axes else x.all(axis, keepdims)


def any(x: Tensor, /, *, axis=None, keepdims: builtins.bool = False) -> Tensor:
    """Whether an element is not 0."""
    return x != 0 if axis == _no_axes else x.any(axis, keepdims)


def _running(name: str, x: Tensor, axis: int | None, dtype, run, start: int | None) -> Tensor:
    if x.ndim == 0 or (axis is None and x.ndim > 1):
        raise ValueError(f"{name}: which axis of shape {x.shape}? Give one")
    a, = axes_of(x, 0 if axis is None else axis)
    y = x.cast(accumulator(x, dtype))
    found = run(y, a).cast(y.dtype)
    if start is None:
        return found
    shape = list(x.shape)
    shape[a] = 1
    return Tensor.full(shape, start, dtype=y.dtype, buffer=False).cat(found, dim=a)


def cumulative_sum(x: Tensor, /, *, axis: int | None = None, dtype=None, include_initial: builtins.bool = False) -> Tensor:
    """Running sums along an axis, with a 0 in front where it is asked for. Dtypes as sum()'s."""
    return _running("cumulative_sum", x, axis, dtype, Tensor.cumsum, 0 if include_initial else None)


def cumulative_prod(x: Tensor, /, *, axis: int | None = None, dtype=None, include_initial: builtins.bool = False) -> Tensor:
    """Running products along an axis, with a 1 in front where it is asked for. Dtypes as sum()'s."""
    return _running("cumulative_prod", x, axis, dtype, Tensor.cumprod, 1 if include_initial else None)


def diff(x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Tensor | None = None, append: Tensor | None = None) -> Tensor:
    """Differences of neighbours along an axis, n times, of x between these."""
    return x.diff(n, axes_of(x, axis)[0], prepend, append)
