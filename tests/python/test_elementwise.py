"""Every elementwise method against NumPy: values, special values, dtypes, gradients."""
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft import Tensor, dtypes

from conftest import assert_close, assert_equal, check_gradient


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


erf = np.vectorize(math.erf, otypes=[float])

# name: (NumPy's function, low, high) over a range that lies in its domain and crosses its kinks.
UNARY = {
    "neg": (np.negative, -3, 3), "abs": (np.abs, -3, 3), "sign": (np.sign, -3, 3),
    "square": (np.square, -3, 3), "sqrt": (np.sqrt, .1, 9), "rsqrt": (lambda x: 1 / np.sqrt(x), .1, 9),
    "reciprocal": (np.reciprocal, .2, 4), "trunc": (np.trunc, -3, 3), "ceil": (np.ceil, -3, 3),
    "floor": (np.floor, -3, 3), "round": (np.round, -3, 3), "exp": (np.exp, -4, 4), "exp2": (np.exp2, -4, 4),
    "log": (np.log, .1, 9), "log2": (np.log2, .1, 9), "log10": (np.log10, .1, 9), "sin": (np.sin, -9, 9),
    "cos": (np.cos, -9, 9), "tan": (np.tan, -1.4, 1.4), "asin": (np.arcsin, -.95, .95),
    "acos": (np.arccos, -.95, .95), "atan": (np.arctan, -4, 4), "sinh": (np.sinh, -3, 3), "cosh": (np.cosh, -3, 3),
    "tanh": (np.tanh, -3, 3), "asinh": (np.arcsinh, -4, 4), "acosh": (np.arccosh, 1.1, 5),
    "atanh": (np.arctanh, -.9, .9), "erf": (erf, -3, 3), "sigmoid": (sigmoid, -5, 5),
    "relu": (lambda x: np.maximum(x, 0), -3, 3), "relu6": (lambda x: np.clip(x, 0, 6), -3, 9),
    "leaky_relu": (lambda x: np.where(x < 0, .01 * x, x), -3, 3),
    "hardtanh": (lambda x: np.clip(x, -1, 1), -3, 3),
    "hardsigmoid": (lambda x: np.clip(x / 6 + .5, 0, 1), -5, 5),
    "hardswish": (lambda x: x * np.clip(x + 3, 0, 6) / 6, -5, 5),
    "elu": (lambda x: np.where(x > 0, x, np.expm1(x)), -3, 3),
    "celu": (lambda x: np.where(x > 0, x, np.expm1(x)), -3, 3),
    "selu": (lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)), -3, 3),
    "silu": (lambda x: x * sigmoid(x), -5, 5), "swish": (lambda x: x * sigmoid(x), -5, 5),
    "gelu": (lambda x: .5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + .044715 * x**3))), -3, 3),
    "quick_gelu": (lambda x: x * sigmoid(1.702 * x), -3, 3),
    "mish": (lambda x: x * np.tanh(np.log1p(np.exp(x))), -3, 3),
    "softplus": (lambda x: np.log1p(np.exp(x)), -3, 3), "softsign": (lambda x: x / (1 + np.abs(x)), -3, 3),
    "logsigmoid": (lambda x: -np.log1p(np.exp(-x)), -3, 3),
}
# Their slope is 0 where finite differences would see the step.
STEPS = {"sign", "trunc", "ceil", "floor", "round"}

BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "mod": np.mod, "fmod": np.fmod,
    "maximum": np.maximum, "minimum": np.minimum, "copysign": np.copysign, "logaddexp": np.logaddexp,
    "pow": lambda a, b: np.abs(a) ** b,
}
SHAPES = [(), (0,), (1,), (7,), (3, 4), (2, 0, 3), (2, 3, 5)]


def spread(shape, low, high, seed=0):
    return np.random.default_rng(seed).uniform(low, high, shape)


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_unary(name, dtype):
    f, low, high = UNARY[name]
    loose = {"asin", "acos", "atan", "erf"}  # polynomials of 1e-7
    for shape in SHAPES:
        x = spread(shape, low, high).astype(dtype)
        y = getattr(Tensor(x), name)()
        assert y.dtype == dtypes.float32 if dtype == "float32" else dtypes.float64
        assert_close(y, f(x).astype(dtype), 2e-5, 1e-6 if name in loose or dtype == "float32" else 1e-9)


@pytest.mark.parametrize("name", UNARY)
def test_gradient_of_unary(name):
    f, low, high = UNARY[name]
    x = spread((3, 4), low, high, seed=3)
    if name in STEPS:
        leaf = Tensor(x, requires_grad=True)
        (getattr(leaf, name)() + leaf).sum().backward()
        assert_equal(leaf.grad, np.ones_like(x))
    else:
        # A polynomial's slope is the slope of the polynomial: finite differences see the same.
        check_gradient(lambda t: getattr(t, name)(), x, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", BINARY)
def test_binary(name):
    f = BINARY[name]
    for a_shape, b_shape in [((), ()), ((3,), (3,)), ((3, 1), (4,)), ((2, 3, 4), (3, 1)), ((0, 3), (1, 3)), ((), (2, 2))]:
        a, b = spread(a_shape, -3, 3), spread(b_shape, .5, 2, seed=1)
        left = Tensor(a).abs() if name == "pow" else Tensor(a)
        assert_close(getattr(left, name)(Tensor(b)), f(a, b), 1e-9, 1e-12)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "maximum", "minimum", "logaddexp", "pow", "mod"])
def test_gradient_of_binary(name):
    a, b = spread((2, 3), .5, 3, seed=5), spread((3,), .6, 2, seed=6)
    check_gradient(lambda x, y: getattr(x, name)(y), a, b)


OPERATORS = ["+", "-", "*", "/", "//", "%", "**"]


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("kind", ["int32", "float32", "uint8"])
def test_operators_with_tensors_and_numbers(op, kind):
    a = np.array([7, 2, 9, 1], dtype=kind)
    b = np.array([2, 3, 4, 1], dtype=kind)
    calculate = eval(f"lambda x, y: x {op} y")  # noqa: S307: one of OPERATORS
    wanted = calculate(a, b)
    got = calculate(Tensor(a), Tensor(b))
    if op == "/" and kind != "float32":
        wanted = wanted.astype("float32")
    assert_close(got, wanted)
    assert str(got.numpy().dtype) == str(wanted.dtype)
    three, eleven = np.array(3, dtype=kind), np.array(11, dtype=kind)  # integers wrap
    assert_close(calculate(Tensor(a), 3), calculate(a, three))
    assert_close(calculate(11, Tensor(b)), calculate(eleven, b))


@pytest.mark.parametrize("op", ["&", "|", "^", "<<", ">>"])
def test_bit_operators(op):
    a, b = np.array([12, 7, 255], dtype="int32"), np.array([10, 3, 4], dtype="int32")
    calculate = eval(f"lambda x, y: x {op} y")  # noqa: S307
    assert_equal(calculate(Tensor(a), Tensor(b)), calculate(a, b))
    assert_equal(calculate(Tensor(a), 2), calculate(a, 2).astype("int32"))
    assert_equal(calculate(9, Tensor(b)), calculate(9, b).astype("int32"))


@pytest.mark.parametrize("op", ["<", "<=", ">", ">=", "==", "!="])
def test_comparisons(op):
    a, b = np.array([1, 2, np.nan, 4]), np.array([1, 3, 3, np.nan])
    calculate = eval(f"lambda x, y: x {op} y")  # noqa: S307
    assert_equal(calculate(Tensor(a), Tensor(b)), calculate(a, b))
    assert_equal(calculate(Tensor(a), 2), calculate(a, 2))
    assert_equal(calculate(2, Tensor(a)), calculate(2, a))


@pytest.mark.parametrize("op", ["+", "-", "*", "/", "**"])
def test_in_place(op):
    a = np.array([1.0, 4.0, 9.0])
    t = Tensor(a)
    row = t[1:]
    alias = t
    exec(f"t {op}= 2")  # noqa: S102
    wanted = eval(f"a {op} 2")  # noqa: S307
    assert alias is t
    assert_close(t, wanted)
    assert_close(row, wanted[1:])  # views see it, as NumPy's


def test_matmul_in_place_and_reflected():
    a, b = spread((3, 3), -1, 1), spread((3, 3), -1, 1, seed=1)
    t = Tensor(a)
    t @= Tensor(b)
    assert_close(t, a @ b)
    assert_close(a @ Tensor(b), a @ b)
    with pytest.raises(TypeError):
        Tensor(a) @ 3


def test_numbers_are_weak():
    assert (Tensor([1], dtype="int8") + 3).dtype == dtypes.int8
    assert (Tensor([1], dtype="int8") + 3.0).dtype == dtypes.float32
    assert (Tensor([1.0], dtype="half") + 1.0).dtype == dtypes.half
    assert (2.0 ** Tensor([1.0], dtype="half")).dtype == dtypes.half
    assert (3 // Tensor([2], dtype="int8")).dtype == dtypes.int8
    assert (Tensor([1], dtype="int8") + Tensor([1], dtype="uint8")).dtype == dtypes.int16
    assert (Tensor([1.0], dtype="half") + Tensor([1.0], dtype="bfloat16")).dtype == dtypes.float32
    assert (Tensor([1]) / 2).dtype == dtypes.float32
    assert (Tensor([1.0]) + np.float32(2)).dtype == dtypes.float32
    assert (Tensor([1.0]) + np.ones(1)).dtype == dtypes.float64  # an array is not weak


def test_numpy_gives_way_on_the_left():
    a = np.array([1.0, 2.0])
    for t in [a + Tensor([1.0, 1.0]), np.float32(1) * Tensor([1.0, 1.0])]:
        assert isinstance(t, Tensor)
    assert isinstance(a == Tensor([1.0, 1.0]), Tensor)


def test_special_values():
    x = Tensor([math.nan, math.inf, -math.inf, 0.0, 1.0])
    assert x.isnan().tolist() == [True, False, False, False, False]
    assert x.isinf().tolist() == [False, True, True, False, False]
    assert x.isfinite().tolist() == [False, False, False, True, True]
    assert x.cast("int32").tolist() == [0, 2**31 - 1, -2**31, 0, 1]  # saturates, NaN is 0
    assert math.isnan(x.maximum(0).tolist()[0])
    assert (x == x).tolist() == [False, True, True, True, True]
    assert (Tensor([1, 0]) // Tensor([0, 0])).tolist() == [0, 0]


def test_ternary():
    c, a, b = np.array([True, False, True]), np.array([1.0, 2, 3]), np.array([4.0, 5, 6])
    assert_equal(Tensor(c).where(Tensor(a), Tensor(b)), np.where(c, a, b))
    assert_equal(Tensor(c).where(Tensor(a), 0), np.where(c, a, 0))
    assert Tensor(c).where(1, 0).tolist() == [1, 0, 1]
    assert_close(Tensor(a).lerp(Tensor(b), .25), a + (b - a) * .25)
    assert_equal(Tensor(a).masked_fill(Tensor(c), -1.0), np.where(c, -1.0, a))
    assert_equal(Tensor(a).clip(1.5, 2.5), np.clip(a, 1.5, 2.5))
    assert_equal(Tensor(a).clamp(min_=2), np.maximum(a, 2))
    assert_equal(Tensor(a).clamp(max_=np.array([2.0])), np.minimum(a, 2))
    with pytest.raises(ValueError, match="min_ nor max_"):
        Tensor(a).clamp()


def test_div_rounding_mode():
    a, b = np.array([7, -7, 8, -8]), np.array([2, 2, -3, -3])
    assert_equal(Tensor(a).div(Tensor(b), rounding_mode="floor"), np.floor_divide(a, b))
    assert_equal(Tensor(a).div(Tensor(b), rounding_mode="trunc"), np.trunc(a / b).astype("int64"))
    assert_close(Tensor(a * 1.0).div(2, rounding_mode="trunc"), np.trunc(a / 2))
    with pytest.raises(ValueError, match="rounding_mode"):
        Tensor(a).div(2, rounding_mode="up")


def test_casts():
    x = Tensor([1.7, -2.3, 300.0])
    assert x.int().tolist() == [1, -2, 300]
    assert x.cast(dtypes.uint8).tolist() == [1, 0, 255]
    assert x.bool().dtype == dtypes.bool
    assert x.half().dtype == dtypes.float16 and x.double().dtype == dtypes.float64
    assert x.cast(float).dtype == dtypes.float32 and x.cast(np.int64).dtype == dtypes.int64
    assert x.cast(np.dtype("uint16")).dtype == dtypes.uint16
    assert Tensor([1.0]).bitcast("int32").item() == 0x3F800000
    with pytest.raises(TypeError):
        x.cast("no such dtype")


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(width=32, allow_nan=True, allow_infinity=True), min_size=1, max_size=20),
       st.sampled_from(["abs", "neg", "floor", "ceil", "trunc", "sqrt", "sign", "round"]))
def test_exact_functions_agree_with_numpy_on_any_float(values, name):
    x = np.array(values, dtype="float32")
    with np.errstate(all="ignore"):
        wanted = UNARY[name][0](x).astype("float32")
    assert_equal(getattr(Tensor(x), name)(), wanted)
