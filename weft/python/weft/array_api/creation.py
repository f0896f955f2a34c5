"""Functions that make arrays."""
import builtins
import math

from weft import _core
from weft.array_api.data_types import python_number, result_type
from weft.array_api.manipulation import broadcast_arrays
from weft.dtype import dtypes
from weft.tensor import Tensor

__all__ = ["arange", "asarray", "empty", "empty_like", "eye", "from_dlpack", "full", "full_like", "linspace", "meshgrid",
           "ones", "ones_like", "tril", "triu", "zeros", "zeros_like"]


def _numbers(obj):
    """Python's numbers in nested lists; of a row of real ones the smallest and the largest."""
    todo = [obj]
    while todo:
        x = todo.pop()
        if isinstance(x, (list, tuple, range)):
            todo += (min(x), max(x)) if x and set(map(type, x)) <= {builtins.bool, int, float} else x
        elif isinstance(x, (builtins.bool, int, float, complex)):
            yield x


def _real(x):
    """x, lists in it included, without the imaginary part of complex numbers, which has to be 0."""
    if isinstance(x, (list, tuple)):
        return [_real(member) for member in x]
    if isinstance(x, complex):
        if x.imag != 0:
            raise TypeError(f"asarray: {x} is complex, and no dtype here is: give its parts as an axis of 2")
        return x.real
    return x


def _of_python(obj, dtype) -> Tensor:
    """Of numbers, or of lists of them."""
    numbers = list(_numbers(obj))
    if any(isinstance(x, complex) for x in numbers):
        obj = _real(obj)
        numbers = list(_numbers(obj))
    for x in numbers:
        if dtypes.is_int(dtype) and math.isfinite(x) and not dtype.min <= int(x) <= dtype.max:
            raise OverflowError(f"asarray: {x} is not within {dtype}, from {dtype.min} to {dtype.max}")
        if dtype is None and isinstance(x, int) and not -2 ** 63 <= x < 2 ** 64:
            raise OverflowError(f"asarray: no integer dtype holds {x}: give floats, or a floating-point dtype")
    return Tensor(obj, dtype=dtype)


def asarray(obj, /, *, dtype=None, device=None, copy: builtins.bool | None = None) -> Tensor:
    """A Tensor of numbers, nested lists of them, a Tensor, or anything with DLPack or the buffer protocol.

    copy=True: with memory of its own. copy=None: a Tensor that fits is returned as it is; all else is copied, so that
    what its owner writes does not show in what is computed later. copy=False: a Tensor, or memory that is shared
    (where weft never writes); a ValueError where that takes a copy. OverflowError for an integer that does not fit.
    """
    if isinstance(obj, Tensor):
        changes = (dtype is not None and obj.dtype != dtype) or (device is not None and obj.to(device) is not obj)
        if copy is False and changes:
            raise ValueError(f"asarray: {obj.dtype} on {obj.device} is not {dtype or obj.dtype} on {device or obj.device} "
                             "without a copy")
        cast = obj if dtype is None or obj.dtype == dtype else obj.cast(dtype)
        return (cast.clone() if copy and cast is obj else cast).to(device)
    if copy is False:
        return _shared(obj, dtype, device)
    if isinstance(obj, (builtins.bool, int, float, complex, list, tuple, range)):
        return _of_python(obj, dtype).to(device)
    if obj is None:
        raise TypeError("asarray: None is no array and no number")
    return Tensor(obj, dtype=dtype, device=device)


def _shared(obj, dtype, device) -> Tensor:
    """Another library's memory; the caller wants no copy."""
    if not hasattr(obj, "__dlpack__"):
        raise ValueError(f"asarray: of a {type(obj).__name__} there is no array without a copy")
    try:
        shared = _core.from_dlpack(obj, copy=False)
    except BufferError as error:
        raise ValueError(f"asarray: {error}") from error
    return asarray(shared, dtype=dtype, device=device, copy=False)


def from_dlpack(x, /, *, device=None, copy: builtins.bool | None = None) -> Tensor:
    """Another library's array, whose memory is shared where copy is not True; weft never writes there."""
    return _core.from_dlpack(x, copy=copy).to(device)


def _number(x):
    """A number of Python's, of one or of an array that holds one."""
    found = x.item() if isinstance(x, Tensor) else python_number(x)
    if found is None:
        raise TypeError(f"arange: a {type(x).__name__} is no real number")
    return found


def arange(start, /, stop=None, step=1, *, dtype=None, device=None) -> Tensor:
    """start, start + step, ... before stop; arange(3) is [0, 1, 2]."""
    first, last = (0, _number(start)) if stop is None else (_number(start), _number(stop))
    step = _number(step)
    whole = not any(isinstance(x, float) for x in (first, last, step))
    count = max(0, -((first - last) // step) if whole else math.ceil((last - first) / step))
    if dtype is None:
        widest = max(first, last, key=abs) if whole else 0.0
        dtype = _of_python(widest, None).dtype
    if whole and dtypes.is_int(dtype):
        return _whole_numbers(first, step, count).cast(dtype).to(device)
    return (Tensor.arange(count, dtype="float64") * float(step) + float(first)).cast(dtype).to(device)


def _whole_numbers(first: int, step: int, count: int) -> Tensor:
    """As int64, in which integers of all dtypes wrap to the same bits."""
    def wrapped(x: int) -> int:
        return (x + 2 ** 63) % 2 ** 64 - 2 ** 63
    return Tensor.arange(count, dtype="int64") * wrapped(step) + wrapped(first)


def linspace(start, stop, /, num: int, *, dtype=None, device=None, endpoint: builtins.bool = True) -> Tensor:
    """num numbers evenly spaced from start to stop, which comes last (or, without endpoint, would come next)."""
    if num < 0:
        raise ValueError(f"linspace: there are no {num} numbers: num is 0 or more")
    places = Tensor.arange(num, dtype="float64")
    steps = num - 1 if endpoint else num
    share = places / max(steps, 1)
    # Not start + (stop - start) * share: the difference may overflow.
    values = float(start) * (1 - share) + float(stop) * share
    if endpoint and num > 1:
        values = (places == num - 1).where(float(stop), values)
    return values.cast(dtype or dtypes.default_float).to(device)


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype=None, device=None) -> Tensor:
    """(n_rows, n_cols): 1 where column - row is k, else 0."""
    n_cols = n_rows if n_cols is None else n_cols
    if min(n_rows, n_cols) < 0:
        raise ValueError(f"eye: {n_rows} rows and {n_cols} columns: sizes are 0 or more")
    k = min(max(k, -n_rows), n_cols)  # beyond, all are 0 anyway
    rows, columns = Tensor.arange(n_rows).reshape(n_rows, 1), Tensor.arange(n_cols)
    return (rows + k == columns).cast(dtype or dtypes.default_float).to(device)


def _shape(shape) -> tuple:
    return tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)


def empty(shape, *, dtype=None, device=None) -> Tensor:
    """Contents are unspecified (zeros today)."""
    return Tensor.empty(_shape(shape), dtype=dtype, device=device)


def zeros(shape, *, dtype=None, device=None) -> Tensor:
    """All 0."""
    return Tensor.zeros(_shape(shape), dtype=dtype, device=device)


def ones(shape, *, dtype=None, device=None) -> Tensor:
    """All 1."""
    return Tensor.ones(_shape(shape), dtype=dtype, device=device)


def full(shape, fill_value, *, dtype=None, device=None) -> Tensor:
    """All fill_value, which decides the dtype where none is given."""
    if not isinstance(fill_value, (builtins.bool, int, float, complex)):
        return asarray(fill_value, dtype=dtype, device=device).expand(_shape(shape)).clone()
    value = _real(fill_value)
    if dtypes.is_int(dtype) or dtype is None:
        dtype = _of_python(value, dtype).dtype
    return Tensor.full(_shape(shape), value, dtype=dtype, device=device)


def empty_like(x: Tensor, /, *, dtype=None, device=None) -> Tensor:
    """empty() of x's shape, dtype and device."""
    return x.empty_like(dtype=dtype, device=device)


def zeros_like(x: Tensor, /, *, dtype=None, device=None) -> Tensor:
    """zeros() of x's shape, dtype and device."""
    return x.zeros_like(dtype=dtype, device=device)


def ones_like(x: Tensor, /, *, dtype=None, device=None) -> Tensor:
    """ones() of x's shape, dtype and device."""
    return x.ones_like(dtype=dtype, device=device)


def full_like(x: Tensor, /, fill_value, *, dtype=None, device=None) -> Tensor:
    """full() of x's shape, dtype and device."""
    return full(x.shape, fill_value, dtype=dtype or x.dtype, device=device or x.device)


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> tuple[Tensor, ...]:
    """Each array's values along an axis of its own: "ij" in this order, "xy" with the first two exchanged."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing is \"xy\" or \"ij\", not {indexing!r}")
    if not arrays:
        return ()
    result_type(*arrays)  # all of them are arrays
    order = list(range(len(arrays)))
    if indexing == "xy" and len(arrays) > 1:
        order[:2] = [1, 0]
    vectors = [x.reshape([x.numel() if i == axis else 1 for i in range(len(arrays))]) for x, axis in zip(arrays, order)]
    return tuple(broadcast_arrays(*vectors))


def _diagonal(x: Tensor, k: int) -> int:
    """k, or one as far outside."""
    return min(max(k, -int(x.shape[-2]) - 1), int(x.shape[-1]) + 1)


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """Matrices with 0 above diagonal k."""
    return x.tril(_diagonal(x, k))


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """Matrices with 0 below diagonal k."""
    return x.triu(_diagonal(x, k))
