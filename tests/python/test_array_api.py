"""weft.array_api against array-api-strict, function by function: signatures, dtypes, shapes, values."""
import inspect
import itertools
import math

import array_api_strict as strict
import numpy as np
import pytest

from array_api_oracle import (axes_for, ALL, FLOATS, INTS, REAL, SHAPES, check, data, defaults_of_the_oracle)
import weft.array_api as xp
from weft import Tensor, dtypes


# ---- names

def functions():
    """(name, the oracle's function) of all that the standard has and that needs no complex dtype."""
    theirs = {"set_array_api_strict_flags", "get_array_api_strict_flags", "reset_array_api_strict_flags", "Device", "ArrayAPIStrictFlags"}
    for prefix, module in (("", strict), ("linalg.", strict.linalg), ("fft.", strict.fft)):
        for name in module.__all__:
            if name not in theirs | {"complex64", "complex128", "eig", "eigvals"} and inspect.isfunction(getattr(module, name)):
                yield prefix + name, getattr(module, name)


@pytest.mark.parametrize("name, wanted", list(functions()), ids=lambda x: x if isinstance(x, str) else "")
def test_signatures(name, wanted):
    got = xp
    for part in name.split("."):
        got = getattr(got, part)
    assert got.__doc__ and got.__name__ == name.split(".")[-1]

    def parameters(function):
        return [(p.name, p.kind) for p in inspect.signature(function).parameters.values()]
    assert parameters(got) == parameters(wanted)
    defaults = {p.name: p.default for p in inspect.signature(got).parameters.values()}
    for p in inspect.signature(wanted).parameters.values():
        assert defaults[p.name] == p.default or "UNDEF" in repr(p.default) and defaults[p.name] is None, p


def test_names():
    for name in xp.__all__:
        assert hasattr(xp, name)
    wanted = set(strict.__all__) - {"complex64", "complex128", "Device", "ArrayAPIStrictFlags", "__version__"}
    assert {n for n in wanted if "_strict_" not in n} <= set(xp.__all__)
    x = xp.ones((2, 2))
    for name in dir(strict.ones((2, 2))):
        if not name.startswith("_array") and name not in ("__slots__", "__module__", "__annotations__", "__buffer__", "__weakref__", "_new", "_check_allowed_dtypes"):
            assert hasattr(x, name) or name.startswith("_") and not name.endswith("_"), name


# ---- elementwise

DOMAINS = {"acosh": (1, 5), "acos": (-1, 1), "asin": (-1, 1), "atanh": (-1, 1), "log": (0, 5), "log2": (0, 5), "log10": (0, 5), "log1p": (0, 5), "sqrt": (0, 5)}
ONLY = {
    "bool": ["bitwise_invert", "logical_not"], "ints": ["bitwise_invert"],
    "floats": "acos acosh asin asinh atan atanh cos cosh exp expm1 log log10 log1p log2 reciprocal sin sinh sqrt tan tanh signbit".split(),
}
UNARY = sorted("""abs acos acosh asin asinh atan atanh bitwise_invert ceil cos cosh exp expm1 floor isfinite isinf isnan log
    log10 log1p log2 logical_not negative positive reciprocal round sign signbit sin sinh sqrt square tan tanh trunc""".split())
BINARY = sorted("""add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign divide equal
    floor_divide greater greater_equal hypot less less_equal logaddexp logical_and logical_or logical_xor maximum minimum
    multiply nextafter not_equal pow remainder subtract""".split())


def unary_dtypes(name):
    if name in ("bitwise_invert",):
        return ["bool"] + INTS
    if name == "logical_not":
        return ["bool"]
    return FLOATS if name in ONLY["floats"] else REAL


def binary_dtypes(name):
    if name.startswith("logical"):
        return ["bool"]
    if "shift" in name:
        return INTS
    if name.startswith("bitwise"):
        return ["bool"] + INTS
    if name in ("atan2", "copysign", "divide", "hypot", "logaddexp", "nextafter"):
        return FLOATS
    return ALL if name in ("equal", "not_equal") else REAL


@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    low, high = DOMAINS.get(name, (-4, 5))
    for dtype, shape in itertools.product(unary_dtypes(name), SHAPES):
        check(name, data(shape, dtype, low=low, high=high))


PAIRS = [((), ()), ((5,), (5,)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((0,), (1,)), ((3,), ()), ((2, 3), (2, 4)), ((), (0,)), ((0, 2, 1), (1,)),
         ((2, 0, 1, 3), (3,)), ((2, 1, 3, 2), (3, 1)), ((1, 2, 1, 3, 2), (2, 1, 1)), ((2, 1), (1, 2, 0, 3, 1))]


def promotable(a, b):
    """Of one kind, and in the standard's table."""
    kinds = ["bool" if d == "bool" else "float" if d in FLOATS else "int" for d in (a, b)]
    return kinds[0] == kinds[1] and not ("uint64" in (a, b) and (a[0] == "i" or b[0] == "i"))


@pytest.mark.parametrize("name", BINARY)
def test_binary(name):
    for a, b in itertools.product(binary_dtypes(name), repeat=2):
        if not promotable(a, b):
            continue
        low = 0 if "shift" in name else 1 if name in ("pow", "remainder", "floor_divide", "divide") else -4
        for left, right in (PAIRS if a == b else PAIRS[1:3]):
            check(name, data(left, a, 1, 0 if "left" in name else -4), data(right, b, 2, low))
    for dtype in binary_dtypes(name):
        x = data((4,), dtype, 3, 1)
        for scalar in ([True] if dtype == "bool" else [2, 3.0] if dtype in FLOATS else [2]):
            check(name, x, scalar)
            check(name, scalar, x)


SPECIAL = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 1.5, -1.5, 2.5, -2.5, 3.0, -3.0, 1e-30, -1e-30,
           1e30, -1e30, math.pi / 2, -math.pi / 2, 1e-40, -1e-40, 100.5, -7.25]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", [n for n in UNARY if "float32" in unary_dtypes(n)])
def test_special_values_of_one(name, dtype):
    values = SPECIAL if name not in ("tan", "reciprocal") else [v for v in SPECIAL if abs(v) != math.pi / 2 and not 0 < abs(v) < 1e-39]
    check(name, np.array(values, dtype), rtol=1e-4 if dtype == "float32" else 1e-12, signs=True)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", [n for n in BINARY if "float32" in binary_dtypes(n) and n != "floor_divide"])
def test_special_values_of_two(name, dtype):
    values = np.array([v for v in SPECIAL if v != v or v == 0 or abs(v) > 1e-35], dtype)
    check(name, values[:, None], values[None, :], rtol=1e-4 if dtype == "float32" else 1e-12, signs=name not in ("maximum", "minimum"))


@pytest.mark.parametrize("dtype", FLOATS)
def test_floor_divide_by_infinities(dtype):
    """As floor(a / b), where NumPy and Python keep to (a // b) * b + a % b == a."""
    values = np.array(SPECIAL, dtype)
    a, b = values[:, None], values[None, :]
    with np.errstate(all="ignore"):
        wanted = np.where(np.isfinite(a) & np.isfinite(b), a // b, np.where(np.isinf(b) & np.isfinite(a), a / b, np.floor(a / b)))
    got = xp.floor_divide(xp.asarray(a), xp.asarray(b)).numpy()
    np.testing.assert_array_equal(got, wanted)
    np.testing.assert_array_equal(np.signbit(got[got == 0]), np.signbit(wanted[got == 0]))


@pytest.mark.parametrize("dtype", FLOATS)
def test_remainders_are_exact(dtype):
    """Also where the quotient has more digits than the dtype; of random bits, and of what programs have."""
    random, bits = np.random.default_rng(0), {"float32": "uint32", "float64": "uint64"}[dtype]
    a, b = (random.integers(0, np.iinfo(bits).max, 20000, dtype=bits).view(dtype) for _ in range(2))
    a[:2000], b[:2000] = random.uniform(-1e9, 1e9, 2000), random.choice([0.1, 1, 3, 360, -7.5], 2000)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal((Tensor(a) % Tensor(b)).numpy(), a % b)
        np.testing.assert_array_equal(Tensor(a).fmod(Tensor(b)).numpy(), np.fmod(a, b))
    for mod in (Tensor.mod, Tensor.fmod):
        x, y = Tensor([6.0, 7.0, -9.0], requires_grad=True), Tensor([3.0, 2.0, 4.0], requires_grad=True)
        mod(x, y).sum().backward()
        assert x.grad.tolist() == [1, 1, 1] and y.grad.tolist() == [-2, -3, 3 if mod is Tensor.mod else 2]


@pytest.mark.parametrize("dtype", INTS)
def test_extremes_of_integers(dtype):
    info = np.iinfo(dtype)
    x = np.array([info.min, info.min + 1, 0, 1, 2, 3, 5, info.max // 2, info.max - 1, info.max], dtype)
    for name in (n for n in UNARY if dtype in unary_dtypes(n)):
        check(name, x)
    for name in (n for n in BINARY if dtype in binary_dtypes(n) and "shift" not in n and n not in ("pow", "floor_divide", "remainder")):
        check(name, x[:, None], x[None, :])
    for name in ("floor_divide", "remainder"):
        check(name, x[:, None], x[x > 0][None, :])
        if dtype[0] == "i":
            check(name, x[1:, None], -x[x > 0][None, :])
    for places in (0, 1, info.bits - 1):
        check("bitwise_left_shift", x, np.array(places, dtype))
        check("bitwise_right_shift", x, np.array(places, dtype))
    for base in (0, 1, 2, 3, 7, info.max):
        check("pow", np.array(base, dtype), np.arange(0, 66, dtype=dtype))
    if dtype[0] == "i":
        check("pow", np.array([-1, -2, -3, info.min], dtype)[:, None], np.arange(0, 64, dtype=dtype))


@pytest.mark.parametrize("dtype", REAL)
def test_clip(dtype):
    for shape in SHAPES:
        x = data(shape, dtype)
        for low, high in ((None, None), (1, None), (None, 3), (1, 3), (data(shape[-1:], dtype, 5, -4, 1), None), (data((1,), dtype, 6), np.array(4, dtype)),
                          (None, data((3, 1, 1), dtype, 7))):
            if isinstance(high, np.ndarray) and high.ndim == 3 and shape == (2, 3):
                continue
            check("clip", x, low, high)


# ---- reductions

@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean", "var", "std", "all", "any", "count_nonzero"])
def test_reductions(name):
    kinds = FLOATS if name in ("mean", "var", "std") else ALL if name in ("all", "any", "count_nonzero") else REAL
    for dtype, shape in itertools.product(kinds, SHAPES):
        x = data(shape, dtype)
        for axis, keepdims in itertools.product(axes_for(shape), (False, True)):
            if dtype not in ("int8", "float32", "bool") and keepdims:
                continue
            check(name, x, axis=axis, keepdims=keepdims)
    for correction in (0, 1, 0.5, 1.0, 2):
        if name in ("var", "std"):
            check(name, data((4, 3), "float64"), axis=0, correction=correction)
            check(name, data((4, 3), "float32"), correction=correction)
    if name in ("sum", "prod"):
        for dtype, to in itertools.product(("int8", "uint8", "float32"), ("int16", "uint64", "float64", "float32")):
            check(name, np.abs(data((3, 2), dtype)), axis=1, dtype=to)


@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod"])
def test_running(name):
    for dtype, shape, initial in itertools.product(REAL, SHAPES[1:], (False, True)):
        for axis in [None, *range(-len(shape), len(shape))]:
            check(name, data(shape, dtype), axis=axis, include_initial=initial)
    check(name, data((3,), "int8"), dtype="float32")
    check(name, data((3,), "uint8"), dtype="uint8", include_initial=True)


def test_diff():
    for dtype, shape, n in itertools.product(REAL, SHAPES[1:], (0, 1, 2)):
        for axis in range(-len(shape), len(shape)):
            check("diff", data(shape, dtype), axis=axis, n=n)
    check("diff", data((2, 3), "int32"), prepend=data((2, 1), "int32"), append=data((2, 2), "int32", 3))


# ---- sorting and searching

@pytest.mark.parametrize("name", ["sort", "argsort", "argmax", "argmin"])
def test_orders(name):
    for dtype, shape in itertools.product(REAL, SHAPES):
        for axis in range(-len(shape), len(shape)):
            if "sort" in name:
                check(name, data(shape, dtype), axis=axis)
                check(name, data(shape, dtype), axis=axis, descending=True)
            else:
                check(name, data(shape, dtype), axis=axis, keepdims=axis % 2 == 0)
        if "arg" in name and "sort" not in name:
            check(name, data(shape, dtype), keepdims=True)
        if shape or name != "argsort":
            check(name, data(shape, dtype))
    for dtype in INTS:
        info = np.iinfo(dtype)
        check(name, np.array([3, info.max, info.min, 0, info.max, info.min + 1, info.max - 1], dtype))


def test_searching():
    for dtype, shape in itertools.product(ALL, SHAPES):
        check("nonzero", data(shape, dtype))
    for dtype in REAL:
        x = np.sort(data((7,), dtype))
        for side in ("left", "right"):
            check("searchsorted", x, data((2, 3), dtype, 1), side=side)
            check("searchsorted", x[[3, 1, 0, 6, 2, 5, 4]], data((4,), dtype, 1), side=side, sorter=np.array([2, 1, 4, 0, 6, 5, 3]))
    for a, b in itertools.product(ALL, repeat=2):
        if promotable(a, b):
            check("where", data((2, 3), "bool"), data((2, 1), a), data((3,), b))
    for x1, x2, dtype in ((1.5, 2, "float64"), (2, 1.5, "float64"), (True, 2, "int64"), (True, False, "bool")):
        found = xp.where(xp.asarray([True, False]), x1, x2)
        assert found.tolist() == [x1, x2] and found.dtype.name == dtype
    check("where", data((3,), "bool"), 1.5, data((3,), "float32"))
    check("where", data((3,), "bool"), data((3,), "uint8"), 3)


@pytest.mark.parametrize("name", ["unique_all", "unique_counts", "unique_inverse", "unique_values", "isin"])
def test_sets(name):
    for dtype, shape in itertools.product(ALL, SHAPES):
        x = data(shape, dtype, low=0, high=3)
        if dtype in FLOATS:
            x = np.asarray(np.round(x))
        if name == "isin":
            if dtype in INTS:
                check(name, x, data((2,), dtype, 9, 0, 3))
                among = xp.asarray(data((2,), dtype, 9, 0, 3))
                inside, outside = (xp.isin(xp.asarray(x), among, invert=invert).numpy() for invert in (False, True))
                np.testing.assert_array_equal(inside, ~outside)
        else:
            check(name, x)
    if name != "isin":
        check(name, np.array([math.nan, 1, 0.0, -0.0, math.nan, -math.inf, math.inf]))


def test_taking():
    for dtype, shape in itertools.product(ALL, SHAPES[2:5]):
        for axis in range(-len(shape), len(shape)):
            check("take", data(shape, dtype), np.array([0, 0], "int32"), axis=axis)
            indices = np.zeros(shape, "int64")
            check("take_along_axis", data(shape, dtype), indices, axis=axis)
    check("take", data((5,), "int8"), np.array([4, 0, 2], "uint8"))
    check("take", data((2, 3), "int8"), np.array([1]))
    check("take_along_axis", data((3, 1), "float64"), np.array([[2, 0]]), axis=0)
    check("take_along_axis", data((2, 5), "float64"), np.array([[4, 0, 1]]))


# ---- arrangement

def test_arrangement():
    for dtype, shape in itertools.product(("bool", "uint8", "int64", "float32"), SHAPES):
        x, rank = data(shape, dtype), len(shape)
        for axis in range(-rank - 1, rank + 1):
            check("expand_dims", x, axis)
            check("stack", [x, x, x], axis=axis)
        for axis in range(-rank, rank):
            check("flip", x, axis=axis)
            check("roll", x, 2, axis=axis)
            check("roll", x, -7, axis=axis)
            check("repeat", x, 3, axis=axis)
            check("repeat", x, 0, axis=axis)
            check("repeat", x, np.arange(shape[axis]) % 3, axis=axis)
            check("unstack", x, axis=axis)
            check("squeeze", x, axis)
            check("concat", [x, x], axis=axis)
            check("concat", [x, np.zeros([2 if a == axis % rank else size for a, size in enumerate(shape)], dtype)], axis=axis)
        for permutation in itertools.permutations(range(rank)):
            check("permute_dims", x, permutation)
            check("moveaxis", x, tuple(range(rank)), permutation)
        for name in ("flip", "matrix_transpose"):
            check(name, x)
        check("roll", x, 3)
        check("repeat", x, 2)
        check("concat", [x, x], axis=None)
        for repetitions in ((), (2,), (1, 3), (2, 1, 1, 2), (0,)):
            check("tile", x, repetitions)
        for wanted in ((x.size,), (-1,), (1, *shape), (x.size, 1), (1, -1), (*shape, 1)):
            check("reshape", x, wanted)
            check("reshape", x, wanted, copy=True)
        check("broadcast_to", x, (2, *shape))
        check("tril", x)
        for k in (-9, -1, 1, 9, 2 ** 40):
            check("tril", x, k=k)
            check("triu", x, k=k)
    check("squeeze", data((1, 2, 1), "int8"), (0, 2))
    check("squeeze", data((1, 2, 1), "int8"), (0, -3))
    check("flip", data((2, 3, 2), "int8"), axis=(0, 2))
    check("roll", data((4, 5), "int8"), (1, 2), axis=(0, 1))
    check("roll", data((4, 5), "int8"), (1, 2), axis=(0, 0))
    check("reshape", data((0, 3), "int8"), (3, 0))
    check("reshape", data((2, 3), "int8"), (4, 2))
    check("broadcast_to", data((2, 3), "int8"), (3, 2))
    for pair in (("int8", "uint8"), ("float32", "float64"), ("uint16", "int64")):
        check("concat", [data((2,), d) for d in pair])
        check("stack", [data((2,), d) for d in pair])
    for shapes in (((2, 1), (3,)), ((), (0,)), ((1, 0), (4, 1)), ((2,), (3,))):
        assert np.all([xp.broadcast_shapes(*shapes) == strict.broadcast_shapes(*shapes)]) if (2,) not in shapes else True
        check("broadcast_arrays", *[data(s, "int8") for s in shapes])
    with pytest.raises(ValueError, match="sizes 2 and 3"):
        xp.broadcast_shapes((2,), (3,))
    for indexing in ("xy", "ij"):
        check("meshgrid", data((2,), "int8"), data((3,), "int8"), data((4,), "int8"), indexing=indexing)
        check("meshgrid", data((2,), "int8"), indexing=indexing)
        check("meshgrid", data((0,), "int8"), data((3,), "int8"), indexing=indexing)


# ---- creation

def test_creation():
    for dtype in [None, *ALL]:
        for shape in (0, 3, (), (2, 0), (2, 3)):
            for name in ("zeros", "ones"):
                check(name, shape, dtype=dtype)
            assert xp.empty(shape, dtype=dtype and getattr(xp, dtype)).shape == (shape if isinstance(shape, tuple) else (shape,))
        for rows, columns, k in ((3, None, 0), (2, 4, 1), (4, 2, -1), (0, 3, 0), (3, 3, 10 ** 12), (3, 3, -10 ** 12)):
            check("eye", rows, columns, k=k, dtype=dtype)
    for dtype in ALL:
        x = data((2, 3), dtype)
        for name in ("zeros_like", "ones_like"):
            check(name, x)
            check(name, x, dtype="int16")
        value = True if dtype == "bool" else np.iinfo(dtype).max if dtype in INTS else 1.5
        value = int(value) if dtype in INTS else value
        check("full_like", x, value)
        check("full", (2, 0, 3), value, dtype=dtype)
        check("full", (2,), value, dtype=dtype)
        assert xp.empty_like(xp.asarray(x)).shape == (2, 3)
    for value in (True, 3, 2.5, math.nan, 2 ** 40):
        check("full", (2,), value)
    for args in ((5,), (2, 7), (7, 2), (7, 2, -2), (0, 10, 3), (-3, 3), (0.5, 3), (0, 1, 0.1), (5, 0, -0.75), (3, 3), (1.5,), (-2,)):
        for dtype in [None, "int16", "float32", "float64"]:
            if dtype != "int16" or not any(isinstance(a, float) for a in args):
                check("arange", *args, dtype=dtype)
    for dtype in INTS:
        info = np.iinfo(dtype)
        low, high = int(info.min), int(info.max)
        check("arange", low, low + 5, dtype=dtype)
        check("arange", high - 5, high, 2, dtype=dtype)
        if info.bits == 8:
            check("arange", low, high + 1, dtype=dtype)
    for args in ((0, 1, 5), (0, 1, 0), (2, 2, 3), (5, -5, 1), (-1.5, 7, 12), (0, 10, 11)):
        for dtype, endpoint in itertools.product((None, "float64"), (True, False)):
            check("linspace", *args, dtype=dtype, endpoint=endpoint)
    check("linspace", 0, 3, 7, dtype="float32")
    assert xp.linspace(-1e308, 1e308, 5, dtype=xp.float64).tolist() == [-1e308, -5e307, 0, 5e307, 1e308]


# ---- dtypes

def test_promotion():
    for a, b in itertools.product(ALL, repeat=2):
        if promotable(a, b):
            got = xp.result_type(getattr(xp, a), xp.zeros(1, dtype=getattr(xp, b)))
            assert got.name == str(strict.result_type(getattr(strict, a), getattr(strict, b))).split(".")[-1]
        got = xp.can_cast(getattr(xp, a), getattr(xp, b))
        assert got is strict.can_cast(getattr(strict, a), getattr(strict, b)) or (a, b) in (("uint64", "float32"),), (a, b)
    assert xp.result_type(xp.int8, 3) == xp.int8 and xp.result_type(xp.float32, 2, 1.5, True) == xp.float32
    assert xp.result_type(xp.bool, 1) == dtypes.default_int and xp.result_type(xp.int8, 1.5) == dtypes.default_float
    for wrong in ((), (1, 2.0), ("float32",)):
        with pytest.raises((ValueError, TypeError)):
            xp.result_type(*wrong)


KINDS = ["bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric", ("bool", "integral")]


def test_kinds_and_limits():
    for dtype, kind in itertools.product(ALL, KINDS):
        assert xp.isdtype(getattr(xp, dtype), kind) is strict.isdtype(getattr(strict, dtype), kind)
    assert xp.isdtype(xp.int8, xp.int8) and not xp.isdtype(xp.int8, xp.uint8) and xp.isdtype(xp.int8, (xp.uint8, "signed integer"))
    with pytest.raises(ValueError, match="real floating"):
        xp.isdtype(xp.int8, "float")
    with pytest.raises(TypeError, match="kind"):
        xp.isdtype(xp.int8, 3)
    for dtype in FLOATS:
        got, wanted = xp.finfo(getattr(xp, dtype)), strict.finfo(getattr(strict, dtype))
        for limit in ("bits", "eps", "max", "min", "smallest_normal"):
            assert getattr(got, limit) == getattr(wanted, limit) and type(getattr(got, limit)) is (int if limit == "bits" else float)
        assert got.dtype == getattr(xp, dtype) and xp.finfo(xp.ones(1, dtype=got.dtype)) == got
    for dtype in INTS:
        got, wanted = xp.iinfo(getattr(xp, dtype)), strict.iinfo(getattr(strict, dtype))
        assert (got.bits, got.max, got.min) == (wanted.bits, wanted.max, wanted.min) and xp.iinfo(xp.ones(1, dtype=got.dtype)) == got
    for function, dtype in ((xp.finfo, xp.int8), (xp.iinfo, xp.float32)):
        with pytest.raises(ValueError, match="dtype"):
            function(dtype)


def test_casts():
    for a, b in itertools.product(ALL, repeat=2):
        check("astype", np.abs(data((2, 3), a)), b)
    x = xp.ones(3)
    assert xp.astype(x, x.dtype, copy=False) is x and xp.astype(x, x.dtype) is not x


def test_dtypes_are_values():
    all_dtypes = [getattr(xp, name) for name in ALL]
    assert len(set(all_dtypes)) == 11 and all(d == d for d in all_dtypes)
    assert all((a == b) is (i == j) for i, a in enumerate(all_dtypes) for j, b in enumerate(all_dtypes))
    assert {xp.float32: 1}[xp.zeros(1, dtype=xp.float32).dtype] == 1 and repr(xp.float32) and xp.float32 != "x" and xp.float32 is not None
