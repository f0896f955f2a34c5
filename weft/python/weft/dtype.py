"""dtypes: the types of elements, by tinygrad's names."""
import math
from typing import Any

from weft import _core
from weft._core import DType

__all__ = ["ConstType", "DType", "DTYPES_DICT", "DTypeLike", "INVERSE_DTYPES_DICT", "PyConst", "WeakDType",
           "can_lossless_cast", "dtypes", "float_to_bf16", "float_to_fp16", "float_to_fp8", "fp8_to_float",
           "from_storage_scalar", "least_upper_dtype", "least_upper_float", "strong_dtype", "sum_acc_dtype",
           "to_dtype", "to_storage_scalar", "truncate", "weak_dtype"]

DType.__module__ = "weft"

PyConst = float | int | bool
ConstType = PyConst
DTypeLike = str | DType


class WeakDType:
    """The dtype of Python's numbers: with a tensor they take its dtype where their kind allows, alone they are of
    the default dtype, which is what a WeakDType as an argument means. No tensor has one."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> Any:
        return f"dtypes.{self.name}"

    def __reduce__(self) -> Any:
        return getattr, (dtypes, self.name)


def to_dtype(x: Any) -> DType:
    """The DType that a name, a type of Python's or NumPy's, or a DType stands for."""
    try:
        return _core.dtype_of(x.lower() if isinstance(x, str) else x)
    except TypeError:
        kind = AttributeError if isinstance(x, str) else TypeError
        raise kind(f"there is no dtype {x!r}; there are {', '.join(DTYPES_DICT)}") from None


class _DTypes(type):
    """What can be set: Tensor([1.0]) and x.float() give default_float."""

    @property
    def default_float(cls) -> DType:
        return _core.default_float()

    @default_float.setter
    def default_float(cls, dtype: Any) -> None:
        if not _core.is_float_dtype(dtype):
            raise TypeError(f"{to_dtype(dtype)} is no floating-point dtype")
        _core.set_default_float(dtype)

    @property
    def default_int(cls) -> DType:
        return _core.default_int()

    @default_int.setter
    def default_int(cls, dtype: Any) -> None:
        if not _core.is_int_dtype(dtype):
            raise TypeError(f"{to_dtype(dtype)} is no integer dtype")
        _core.set_default_int(dtype)


class dtypes(metaclass=_DTypes):
    """dtypes.float32 and the like; dtypes.float is an alias of it, as in C."""
    bool = to_dtype("bool")
    int8 = char = to_dtype("int8")
    int16 = short = to_dtype("int16")
    int32 = int = to_dtype("int32")
    int64 = long = to_dtype("int64")
    uint8 = uchar = to_dtype("uint8")
    uint16 = ushort = to_dtype("uint16")
    uint32 = uint = to_dtype("uint32")
    uint64 = ulong = to_dtype("uint64")
    float16 = half = to_dtype("float16")
    bfloat16 = to_dtype("bfloat16")
    float32 = float = to_dtype("float32")
    float64 = double = to_dtype("float64")

    fp8e4m3 = to_dtype("float8_e4m3fn")
    fp8e5m2 = to_dtype("float8_e5m2")
    fp8e4m3fnuz = to_dtype("float8_e4m3fnuz")
    fp8e5m2fnuz = to_dtype("float8_e5m2fnuz")

    weakint = WeakDType("weakint")
    weakfloat = WeakDType("weakfloat")
    weaks = (weakint, weakfloat)

    fp8_ocp = (fp8e4m3, fp8e5m2)
    fp8_fnuz = (fp8e4m3fnuz, fp8e5m2fnuz)
    fp8s = fp8_ocp + fp8_fnuz
    floats = (*fp8s, float16, bfloat16, float32, float64)
    int8s = (uint8, int8)
    int16s = (uint16, int16)
    int32s = (uint32, int32)
    int64s = (uint64, int64)
    uints = (uint8, uint16, uint32, uint64)
    sints = (int8, int16, int32, int64)
    ints = uints + sints
    all = (bool, *ints, *floats)

    @staticmethod
    def is_float(x: Any) -> Any:
        return x is dtypes.weakfloat or isinstance(x, DType) and _core.is_float_dtype(x)

    @staticmethod
    def is_int(x: Any) -> Any:
        return x is dtypes.weakint or isinstance(x, DType) and _core.is_int_dtype(x)

    @staticmethod
    def is_unsigned(x: Any) -> Any:
        return isinstance(x, DType) and _core.is_unsigned_dtype(x)

    @staticmethod
    def is_bool(x: Any) -> Any:
        return x == dtypes.bool

    @staticmethod
    def from_py(x: Any) -> Any:
        """weakint, weakfloat or bool for Python's numbers; the dtype of Tensor(x) for lists of them."""
        if isinstance(x, (list, tuple)):
            return _core.Tensor(x).dtype
        for kind, found in ((type(True), dtypes.bool), (type(1), dtypes.weakint), (type(1.0), dtypes.weakfloat)):
            if isinstance(x, kind):
                return found
        raise RuntimeError(f"a {type(x).__name__} is no number: {x!r} has no dtype")

    @staticmethod
    def finfo(x: DType) -> Any:
        """(bits of the exponent, bits of the mantissa)."""
        if not dtypes.is_float(x):
            raise ValueError(f"{x} is no floating-point dtype")
        mantissa = _core.float_digits(x) - 1
        return x.bitsize - 1 - mantissa, mantissa

    @staticmethod
    def min(x: DType) -> Any:
        return x.min

    @staticmethod
    def max(x: DType) -> Any:
        return x.max


DTYPES_DICT = {name: member for name, member in vars(dtypes).items() if isinstance(member, DType)}
INVERSE_DTYPES_DICT = {member.name: name for name, member in DTYPES_DICT.items()}


def strong_dtype(dtype: Any) -> DType:
    """The default dtype for a WeakDType, else the dtype itself."""
    return {dtypes.weakint: dtypes.default_int, dtypes.weakfloat: dtypes.default_float}.get(dtype, dtype)


def weak_dtype(dtype: Any) -> Any:
    """That of Python's numbers of this kind."""
    return dtypes.weakfloat if dtypes.is_float(dtype) else dtypes.weakint if dtypes.is_int(dtype) else dtype


def least_upper_dtype(*given: Any) -> Any:
    """The dtype that tensors of these meet in; a WeakDType counts as one of Python's numbers does."""
    strong = [dtype for dtype in given if isinstance(dtype, DType)]
    weak = dtypes.weakfloat if dtypes.weakfloat in given else dtypes.weakint if dtypes.weakint in given else None
    found: Any = strong[0] if strong else weak
    for dtype in strong[1:]:
        found = _core.promote(found, dtype)
    if weak is None or not strong or dtypes.is_float(found) or (weak is dtypes.weakint and found != dtypes.bool):
        return found
    return weak


def least_upper_float(x: Any) -> Any:
    """x where it is a float, else the default float."""
    return x if dtypes.is_float(x) else dtypes.weakfloat if x is dtypes.weakint else dtypes.default_float


def sum_acc_dtype(x: DType) -> DType:
    """The dtype sums of x run in."""
    if _core.is_float_dtype(x):
        return least_upper_dtype(x, dtypes.float32)
    return least_upper_dtype(x, dtypes.uint32 if _core.is_unsigned_dtype(x) else dtypes.int32)


def _truncated(dtype: DType) -> Any:
    """A number to what an element of dtype holds of it: integers wrap."""
    if dtypes.is_float(dtype):
        return lambda x: _rounded(x, dtype)
    if dtype == dtypes.bool:
        return bool

    def wrapped(x: Any) -> Any:
        low = int(x) & (2 ** dtype.bitsize - 1)
        return low - 2 ** dtype.bitsize if low > dtype.max else low
    return wrapped


# truncate[dtypes.int8](300)
truncate = {dtype: _truncated(dtype) for dtype in dtypes.all}


def can_lossless_cast(x: DType, to: DType) -> bool:
    """Whether every value of x is one of `to`."""
    if x == to or x == dtypes.bool:
        return True
    if _core.is_float_dtype(x):
        return _core.is_float_dtype(to) and _core.promote(x, to) == to
    if to == dtypes.bool:
        return False
    if _core.is_float_dtype(to):
        digits = x.bitsize - (0 if _core.is_unsigned_dtype(x) else 1)
        return digits <= _core.float_digits(to) and x.max <= _core.float_most(to)
    return to.min <= x.min and x.max <= to.max


def _rounded(x: float, dtype: DType) -> float:
    return _core.Tensor(x, dtype=dtypes.float64).cast(dtype).item()


def float_to_fp16(x: float) -> float:
    """x as float16 holds it; infinite where it is too large."""
    return _rounded(x, dtypes.float16)


def float_to_bf16(x: float) -> float:
    """x as bfloat16 holds it."""
    return _rounded(x, dtypes.bfloat16)


def float_to_fp8(x: float, dtype: DType) -> int:
    """The byte of x in an 8-bit float dtype. What is too large is infinite, NaN in the fnuz dtypes, and the largest
    in fp8e4m3, where infinity itself is NaN, as in tinygrad (cast() saturates it, as PyTorch does)."""
    if dtype not in dtypes.fp8s:
        raise TypeError(f"{dtype} is no 8-bit float dtype: use one of dtypes.fp8s")
    if dtype == dtypes.fp8e4m3 and abs(x) == float("inf"):
        x = x - x  # NaN
    return _core.Tensor(x, dtype=dtypes.float64).cast(dtype).bitcast(dtypes.uint8).item()


def fp8_to_float(x: int, dtype: DType) -> float:
    """The value of a byte in an 8-bit float dtype."""
    if dtype not in dtypes.fp8s:
        raise TypeError(f"{dtype} is no 8-bit float dtype: use one of dtypes.fp8s")
    return _core.Tensor(x, dtype=dtypes.uint8).bitcast(dtype).item()


def to_storage_scalar(x: Any, dtype: DType) -> Any:
    """The bits of bfloat16 and 8-bit floats as an integer; other numbers as they are."""
    if dtype == dtypes.bfloat16:
        return _core.Tensor(x, dtype=dtypes.float64).cast(dtype).bitcast(dtypes.uint16).item()
    return float_to_fp8(x, dtype) if dtype in dtypes.fp8s else x


def from_storage_scalar(x: Any, dtype: DType) -> Any:
    """What to_storage_scalar() was given, rounded."""
    if dtype == dtypes.bfloat16:
        return _core.Tensor(x, dtype=dtypes.uint16).bitcast(dtype).item()
    return fp8_to_float(x, dtype) if dtype in dtypes.fp8s else x


# ---- NumPy's and PyTorch's names of dtypes, for programs that ask tinygrad for them

def _to_np_dtype(dtype: Any) -> type:
    """float32 for what NumPy has not."""
    import numpy
    strong = strong_dtype(dtype)
    return numpy.dtype(strong.name if strong.fmt else "float32").type


def _from_np_dtype(npdtype: Any) -> DType:
    import numpy
    return to_dtype(numpy.dtype(npdtype).name)


def _to_torch_dtype(dtype: Any) -> Any:
    """Bytes for 8-bit floats."""
    import torch
    strong = strong_dtype(dtype)
    return torch.uint8 if strong in dtypes.fp8s else getattr(torch, strong.name)


def _from_torch_dtype(torchdtype: Any) -> DType:
    return to_dtype(str(torchdtype).removeprefix("torch."))
