"""dtypes: the types of elements, by tinygrad's names."""
import math

from weft import _core
from weft._core import DType

__all__ = ["DType", "can_lossless_cast", "dtypes", "float_to_bf16", "float_to_fp16", "float_to_fp8",
           "fp8_to_float", "least_upper_dtype", "least_upper_float", "sum_acc_dtype", "to_dtype", "truncate"]

DType.__module__ = "weft"


def to_dtype(x) -> DType:
    """The DType that a name, a type of Python's or NumPy's, or a DType stands for."""
    return _core.dtype_of(x)


class _DTypes(type):
    """What can be set: Tensor([1.0]) and x.float() give default_float."""

    @property
    def default_float(cls) -> DType:
        return _core.default_float()

    @default_float.setter
    def default_float(cls, dtype):
        if not _core.is_float_dtype(dtype):
            raise TypeError(f"{to_dtype(dtype)} is no floating-point dtype")
        _core.set_default_float(dtype)

    @property
    def default_int(cls) -> DType:
        return _core.default_int()

    @default_int.setter
    def default_int(cls, dtype):
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

    fp8_ocp = (fp8e4m3, fp8e5m2)
    fp8_fnuz = (fp8e4m3fnuz, fp8e5m2fnuz)
    fp8s = fp8_ocp + fp8_fnuz
    floats = (*fp8s, float16, bfloat16, float32, float64)
    uints = (uint8, uint16, uint32, uint64)
    sints = (int8, int16, int32, int64)
    ints = uints + sints
    all = (bool, *ints, *floats)

    @staticmethod
    def is_float(x: DType):
        return _core.is_float_dtype(x)

    @staticmethod
    def is_int(x: DType):
        return _core.is_int_dtype(x)

    @staticmethod
    def is_unsigned(x: DType):
        return _core.is_unsigned_dtype(x)

    @staticmethod
    def is_bool(x: DType):
        return x == dtypes.bool

    @staticmethod
    def from_py(x) -> DType:
        """The dtype of Tensor(x) for Python's numbers and lists of them."""
        return _core.Tensor(x).dtype

    @staticmethod
    def finfo(x: DType):
        """(bits of the exponent, bits of the mantissa)."""
        mantissa = _core.float_digits(x) - 1
        return x.bitsize - 1 - mantissa, mantissa

    @staticmethod
    def min(x: DType):
        return x.min

    @staticmethod
    def max(x: DType):
        return x.max


def least_upper_dtype(*given: DType) -> DType:
    """The dtype that tensors of these meet in."""
    found = given[0]
    for dtype in given[1:]:
        found = _core.promote(found, dtype)
    return found


def least_upper_float(x: DType) -> DType:
    """x where it is a float, else the default float."""
    return x if _core.is_float_dtype(x) else dtypes.default_float


def sum_acc_dtype(x: DType) -> DType:
    """The dtype sums of x run in."""
    if _core.is_float_dtype(x):
        return least_upper_dtype(x, dtypes.float32)
    return least_upper_dtype(x, dtypes.uint32 if _core.is_unsigned_dtype(x) else dtypes.int32)


def truncate(x, dtype: DType):
    """x as an element of dtype holds it."""
    return _core.Tensor(x, dtype=dtype).item() if math.isfinite(x) else x


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
    """The byte of x in an 8-bit float dtype. What is too large is infinite, or NaN in dtypes without
    infinities, as in PyTorch."""
    if dtype not in dtypes.fp8s:
        raise TypeError(f"{dtype} is no 8-bit float dtype: use one of dtypes.fp8s")
    return _core.Tensor(x, dtype=dtypes.float64).cast(dtype).bitcast(dtypes.uint8).item()


def fp8_to_float(x: int, dtype: DType) -> float:
    """The value of a byte in an 8-bit float dtype."""
    if dtype not in dtypes.fp8s:
        raise TypeError(f"{dtype} is no 8-bit float dtype: use one of dtypes.fp8s")
    return _core.Tensor(x, dtype=dtypes.uint8).bitcast(dtype).item()
