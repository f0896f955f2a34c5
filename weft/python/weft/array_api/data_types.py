"""Data types of the standard and the functions of them."""
import builtins
import dataclasses
import math
import numbers

from weft import _core
from weft.dtype import DType, dtypes
from weft.tensor import Tensor

__all__ = ["astype", "bool", "can_cast", "finfo", "float32", "float64", "iinfo", "int16", "int32", "int64", "int8",
           "isdtype", "result_type", "uint16", "uint32", "uint64", "uint8"]

bool = dtypes.bool
int8, int16, int32, int64 = dtypes.sints
uint8, uint16, uint32, uint64 = dtypes.uints
float32, float64 = dtypes.float32, dtypes.float64

KINDS = {
    "bool": (dtypes.bool,), "signed integer": dtypes.sints, "unsigned integer": dtypes.uints, "integral": dtypes.ints,
    "real floating": dtypes.floats, "complex floating": (), "numeric": dtypes.ints + dtypes.floats,
}
_RANKS = {builtins.bool: 0, int: 1, float: 2}


def python_number(x):
    """A number of Python's or NumPy's as Python's; None where it is no real number."""
    if isinstance(x, builtins.bool):
        return x
    return int(x) if isinstance(x, numbers.Integral) else float(x) if isinstance(x, numbers.Real) else None


def rank(dtype: DType) -> int:
    """0 of bool, 1 of integers, 2 of floats: within one the standard promotes."""
    return 2 if dtypes.is_float(dtype) else 1 if dtypes.is_int(dtype) else 0


def result_type(*arrays_and_dtypes) -> DType:
    """The dtype in which these meet: the standard's table, and beyond it (other kinds, or uint64 and a signed
    integer) Tensor's. Python's numbers take the dtype of what they meet where it is of their kind or a wider one, and
    the default one of their kind otherwise."""
    found, weakest = None, 0
    for x in arrays_and_dtypes:
        if isinstance(x, (Tensor, DType)):
            dtype = x.dtype if isinstance(x, Tensor) else x
            found = dtype if found is None else _core.promote(found, dtype)
        elif (number := python_number(x)) is not None:
            weakest = max(weakest, _RANKS[type(number)])
        else:
            raise TypeError(f"result_type: {type(x).__name__} is no array, dtype or real number")
    if found is None:
        raise ValueError("result_type: at least one array or dtype is needed beside numbers")
    if weakest <= rank(found):
        return found
    return dtypes.default_float if weakest == 2 else dtypes.default_int


def can_cast(from_, to: DType, /) -> builtins.bool:
    """Whether type promotion, within a kind, goes from the one to the other."""
    dtype = from_.dtype if isinstance(from_, Tensor) else from_
    return rank(dtype) == rank(to) and _core.promote(dtype, to) == to


def isdtype(dtype: DType, kind) -> builtins.bool:
    """Whether a dtype is a given one, of a kind ("integral", "real floating", ...), or any of a tuple of these."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, member) for member in kind)
    if isinstance(kind, str) and kind not in KINDS:
        raise ValueError(f"isdtype: there is no kind \"{kind}\"; there are {', '.join(KINDS)}")
    if not isinstance(kind, (str, DType)):
        raise TypeError(f"isdtype: a kind is a dtype, a name or a tuple of these, not {kind!r}")
    return dtype in KINDS[kind] if isinstance(kind, str) else dtype == kind


def astype(x: Tensor, dtype: DType, /, *, copy: builtins.bool = True, device=None) -> Tensor:
    """x as another dtype: floats to integers truncate, integers wrap. Without `copy` x itself where nothing is to do."""
    if x.dtype != dtype:
        return x.cast(dtype).to(device)
    return (x.clone() if copy else x).to(device)


@dataclasses.dataclass(frozen=True)
class FloatLimits:
    """finfo(): sizes as Python's floats."""
    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


@dataclasses.dataclass(frozen=True)
class IntegerLimits:
    """iinfo()."""
    bits: int
    max: int
    min: int
    dtype: DType


def finfo(type, /) -> FloatLimits:
    """The limits of a float dtype, or of an array's."""
    dtype = type.dtype if isinstance(type, Tensor) else type
    if not dtypes.is_float(dtype):
        raise ValueError(f"finfo: {dtype} is no floating-point dtype")
    exponent, mantissa = dtypes.finfo(dtype)
    most = _core.float_most(dtype)
    return FloatLimits(dtype.bitsize, math.ldexp(1.0, -mantissa), most, -most, math.ldexp(1.0, 2 - 2 ** (exponent - 1)), dtype)


def iinfo(type, /) -> IntegerLimits:
    """The limits of an integer dtype, or of an array's."""
    dtype = type.dtype if isinstance(type, Tensor) else type
    if not dtypes.is_int(dtype):
        raise ValueError(f"iinfo: {dtype} is no integer dtype")
    return IntegerLimits(dtype.bitsize, dtype.max, dtype.min, dtype)
