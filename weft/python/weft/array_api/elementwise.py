"""Functions element by element. Two arrays meet in result_type(); one of the two may be a number of Python's."""
import builtins
import operator

from weft.array_api.data_types import python_number, result_type
from weft.dtype import dtypes
from weft.tensor import Tensor

__all__ = ["abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and", "bitwise_invert",
           "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "ceil", "clip", "conj",
           "copysign", "cos", "cosh", "divide", "equal", "exp", "expm1", "floor", "floor_divide", "greater",
           "greater_equal", "hypot", "imag", "isfinite", "isinf", "isnan", "less", "less_equal", "log", "log10",
           "log1p", "log2", "logaddexp", "logical_and", "logical_not", "logical_or", "logical_xor", "maximum",
           "minimum", "multiply", "negative", "nextafter", "not_equal", "positive", "pow", "real", "reciprocal",
           "remainder", "round", "sign", "signbit", "sin", "sinh", "sqrt", "square", "subtract", "tan", "tanh",
           "trunc"]


def met(x1, x2) -> tuple[Tensor, Tensor]:
    """Both in the dtype they meet in."""
    dtype = result_type(x1, x2)
    first, second = (x.cast(dtype) if isinstance(x, Tensor) else Tensor.const(python_number(x), dtype)
                     for x in (x1, x2))
    return first, second


def _of_one(name: str, method, doc: str):
    def function(x: Tensor, /) -> Tensor:
        return method(x)
    return _named(function, name, doc)


def _of_two(name: str, method, doc: str):
    def function(x1, x2, /) -> Tensor:
        return method(*met(x1, x2))
    return _named(function, name, doc)


def _named(function, name: str, doc: str):
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def _floor_divide(x1: Tensor, x2: Tensor) -> Tensor:
    """floor(x1 / x2) where x2 is infinite, too: -0, where Python's // has -1."""
    whole = x1 // x2
    if not whole.is_floating_point():
        return whole
    return (x2.isinf() & x1.isfinite()).where(x1 / x2, whole)


def _sign(x: Tensor) -> Tensor:
    """Of -0 it is 0."""
    return x.sign() + 0 if x.is_floating_point() else x.sign()


abs = _of_one("abs", Tensor.abs, "|x|; of the smallest signed integer itself.")
acos = _of_one("acos", Tensor.acos, "The angle whose cosine is x, from 0 to pi.")
acosh = _of_one("acosh", Tensor.acosh, "What has x as its hyperbolic cosine.")
asin = _of_one("asin", Tensor.asin, "The angle whose sine is x, from -pi/2 to pi/2.")
asinh = _of_one("asinh", Tensor.asinh, "What has x as its hyperbolic sine.")
atan = _of_one("atan", Tensor.atan, "The angle whose tangent is x, from -pi/2 to pi/2.")
atanh = _of_one("atanh", Tensor.atanh, "What has x as its hyperbolic tangent.")
bitwise_invert = _of_one("bitwise_invert", Tensor.bitwise_not, "~x; of bools not x.")
ceil = _of_one("ceil", Tensor.ceil, "Rounded up.")
conj = _of_one("conj", Tensor.clone, "x, which is real.")
cos = _of_one("cos", Tensor.cos, "The cosine of radians.")
cosh = _of_one("cosh", Tensor.cosh, "(e^x + e^-x) / 2.")
exp = _of_one("exp", Tensor.exp, "e^x.")
expm1 = _of_one("expm1", Tensor.expm1, "e^x - 1, precise near 0.")
floor = _of_one("floor", Tensor.floor, "Rounded down.")
imag = _of_one("imag", Tensor.zeros_like, "0: x is real.")
isfinite = _of_one("isfinite", Tensor.isfinite, "Neither infinite nor NaN.")
isinf = _of_one("isinf", Tensor.isinf, "Infinity or -infinity.")
isnan = _of_one("isnan", Tensor.isnan, "NaN.")
log = _of_one("log", Tensor.log, "The natural logarithm.")
log10 = _of_one("log10", Tensor.log10, "The logarithm to base 10.")
log1p = _of_one("log1p", Tensor.log1p, "log(1 + x), precise near 0.")
log2 = _of_one("log2", Tensor.log2, "The logarithm to base 2.")
logical_not = _of_one("logical_not", Tensor.logical_not, "Whether x is 0.")
negative = _of_one("negative", operator.neg, "-x; integers wrap.")
positive = _of_one("positive", Tensor.clone, "A copy of x.")
real = _of_one("real", Tensor.clone, "x, which is real.")
reciprocal = _of_one("reciprocal", Tensor.reciprocal, "1 / x.")
round = _of_one("round", Tensor.round, "The nearest whole number, the even one of two.")
sign = _of_one("sign", _sign, "-1, 0 or 1; NaN of NaN.")
signbit = _of_one("signbit", Tensor.signbit, "Whether the sign bit is set: of -0 it is.")
sin = _of_one("sin", Tensor.sin, "The sine of radians.")
sinh = _of_one("sinh", Tensor.sinh, "(e^x - e^-x) / 2.")
sqrt = _of_one("sqrt", Tensor.sqrt, "The square root; NaN of negative numbers.")
square = _of_one("square", Tensor.square, "x * x.")
tan = _of_one("tan", Tensor.tan, "The tangent of radians.")
tanh = _of_one("tanh", Tensor.tanh, "The hyperbolic tangent.")
trunc = _of_one("trunc", Tensor.trunc, "Rounded towards 0.")

add = _of_two("add", operator.add, "x1 + x2.")
atan2 = _of_two("atan2", Tensor.atan2, "The angle of the point (x2, x1), from -pi to pi.")
bitwise_and = _of_two("bitwise_and", operator.and_, "x1 & x2.")
bitwise_left_shift = _of_two("bitwise_left_shift", operator.lshift, "x1 << x2.")
bitwise_or = _of_two("bitwise_or", operator.or_, "x1 | x2.")
bitwise_right_shift = _of_two("bitwise_right_shift", operator.rshift, "x1 >> x2, which keeps the sign.")
bitwise_xor = _of_two("bitwise_xor", operator.xor, "x1 ^ x2.")
copysign = _of_two("copysign", Tensor.copysign, "|x1| with the sign of x2.")
divide = _of_two("divide", operator.truediv, "x1 / x2; of integers in the default float.")
equal = _of_two("equal", operator.eq, "x1 == x2.")
floor_divide = _of_two("floor_divide", _floor_divide, "x1 / x2 rounded down.")
greater = _of_two("greater", operator.gt, "x1 > x2.")
greater_equal = _of_two("greater_equal", operator.ge, "x1 >= x2.")
hypot = _of_two("hypot", Tensor.hypot, "sqrt(x1^2 + x2^2), without overflow on the way.")
less = _of_two("less", operator.lt, "x1 < x2.")
less_equal = _of_two("less_equal", operator.le, "x1 <= x2.")
logaddexp = _of_two("logaddexp", Tensor.logaddexp, "log(e^x1 + e^x2), without overflow on the way.")
logical_and = _of_two("logical_and", Tensor.logical_and, "Whether neither is 0.")
logical_or = _of_two("logical_or", Tensor.logical_or, "Whether one is not 0.")
logical_xor = _of_two("logical_xor", Tensor.logical_xor, "Whether exactly one is not 0.")
maximum = _of_two("maximum", Tensor.maximum, "The larger; NaN wins.")
minimum = _of_two("minimum", Tensor.minimum, "The smaller; NaN wins.")
multiply = _of_two("multiply", operator.mul, "x1 * x2.")
nextafter = _of_two("nextafter", Tensor.nextafter, "The next number after x1 towards x2.")
not_equal = _of_two("not_equal", operator.ne, "x1 != x2.")
pow = _of_two("pow", operator.pow, "x1 to the power x2.")
remainder = _of_two("remainder", operator.mod, "x1 - x2 * floor(x1 / x2), of the sign of x2.")
subtract = _of_two("subtract", operator.sub, "x1 - x2.")


def _bound(limit, x: Tensor):
    """A limit as x's dtype, integers cut to what it holds."""
    if isinstance(limit, Tensor):
        return limit.cast(x.dtype)
    if dtypes.is_int(x.dtype) and isinstance(limit, int):
        return builtins.min(builtins.max(limit, x.dtype.min), x.dtype.max)
    return limit


def clip(x: Tensor, /, min=None, max=None) -> Tensor:
    """No less than min and no more than max, which are numbers or arrays, in x's dtype. NaN stays, and comes of NaN."""
    y = x if min is None else x.maximum(_bound(min, x))
    y = y if max is None else y.minimum(_bound(max, x))
    return x.clone() if y is x else y.cast(x.dtype)
