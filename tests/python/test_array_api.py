"""weft.array_api against array-api-strict, function by function: signatures, dtypes, shapes, values."""
import inspect
import itertools
import math

import array_api_strict as strict
import numpy as np
import pytest

import weft.array_api as xp
from weft import Tensor, dtypes

strict.set_array_api_strict_flags(api_version="2025.12")

INTS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float32", "float64"]
REAL = INTS + FLOATS
ALL = ["bool"] + REAL
SHAPES = [(), (0,), (1,), (5,), (2, 3), (3, 0, 2), (2, 1, 4)]
# Numbers of these take a width of the library's own choice.
INDICES = {"argmax", "argmin", "argsort", "nonzero", "searchsorted", "unique_all", "unique_counts", "unique_inverse"}


@pytest.fixture(autouse=True, scope="module")
def defaults_of_the_oracle():
    before = dtypes.default_float, dtypes.default_int
    dtypes.default_float, dtypes.default_int = dtypes.float64, dtypes.int64
    yield
    dtypes.default_float, dtypes.default_int = before


def data(shape, dtype, seed=0, low=-4, high=5):
    """Small numbers, of all signs the dtype has, with ties."""
    random = np.random.default_rng([seed, *map(ord, dtype), *shape])
    if dtype == "bool":
        return random.integers(0, 2, shape).astype(bool)
    if dtype in FLOATS:
        return random.uniform(low, high, shape).astype(dtype)
    return random.integers(max(low, 0) if dtype[0] == "u" else low, high, shape).astype(dtype)


def on(module, x):
    """Arrays in arguments, also within lists and tuples, as the module's; names of dtypes as its dtypes."""
    if isinstance(x, np.ndarray):
        return module.asarray(x)
    if isinstance(x, (list, tuple)):
        return type(x)(on(module, member) for member in x)
    return getattr(module, x) if isinstance(x, str) and x in ALL else x


def outcome(module, name, args, options):
    """The function's result, or what it raised."""
    function = module
    for part in name.split("."):
        function = getattr(function, part)
    try:
        return function(*[on(module, a) for a in args], **{key: on(module, o) for key, o in options.items()})
    except (ValueError, TypeError, IndexError, OverflowError) as error:
        return error


def members(x):
    return list(x) if isinstance(x, (tuple, list)) else [x]


def same(name, got, wanted, rtol=None, signs=False, any_integer=False):
    """Equal numbers of one dtype in one shape; floats to a few units in the last place."""
    assert isinstance(got, Tensor), f"{name}: {got!r}, wanted {wanted!r}"
    kind = str(wanted.dtype).rsplit(".", 1)[-1]
    if not (any_integer and dtypes.is_int(got.dtype) and kind in INTS):
        assert got.dtype.name == kind, f"{name}: {got.dtype}, wanted {kind}"
    a, b = got.numpy(), np.asarray(wanted)
    assert a.shape == b.shape, f"{name}: shape {a.shape}, wanted {b.shape}"
    if kind not in FLOATS:
        np.testing.assert_array_equal(a, b, err_msg=name)
        return
    tolerance = rtol if rtol is not None else 64 * float(np.finfo(kind).eps)
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, err_msg=name)
    if signs:
        np.testing.assert_array_equal(np.signbit(a[a == 0]), np.signbit(b[a == 0]), err_msg=f"{name}: sign of 0")


def check(name, *args, rtol=None, signs=False, **options):
    """One call of the function on both."""
    with np.errstate(all="ignore"):
        wanted = outcome(strict, name, args, options)
    got = outcome(xp, name, args, options)
    text = f"{name}({', '.join(map(str, args))}, {options})"
    if isinstance(wanted, Exception):
        assert isinstance(got, Exception), f"{text}: {got!r}, wanted {wanted!r}"
        return
    assert not isinstance(got, Exception), f"{text}: {got!r}"
    assert len(members(got)) == len(members(wanted))
    for a, b in zip(members(got), members(wanted)):
        same(text, a, b, rtol, signs, name in INDICES)


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


PAIRS = [((), ()), ((5,), (5,)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((0,), (1,)), ((3,), ()), ((2, 3), (2, 4))]


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

def axes_for(shape):
    """None, each axis from both ends, and tuples."""
    rank = len(shape)
    return [None, *range(-rank, rank), *([tuple(range(rank))] if rank else []), *([(0, -1)] if rank > 1 else []), ()]


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


# ---- linear algebra

def matrices(shape, dtype, kind="any"):
    """Well-conditioned ones, symmetric or positive definite ones."""
    x = data(shape, dtype, 4, -1, 1) if dtype in FLOATS else data(shape, dtype, 4)
    if kind == "any" or 0 in shape:
        return x
    if kind == "invertible":
        return x + 3 * np.eye(shape[-1], dtype=dtype)
    symmetric = x + np.swapaxes(x, -1, -2)
    return symmetric if kind == "symmetric" else symmetric @ symmetric + np.eye(shape[-1], dtype=dtype)


SQUARES = [(1, 1), (3, 3), (2, 4, 4), (0, 0), (2, 0, 0), (0, 3, 3)]
RECTANGLES = [(2, 3), (4, 2), (2, 3, 2), (3, 3)]


def test_products():
    pairs = [((3,), (3,)), ((2, 3), (3, 4)), ((2, 3), (3,)), ((3,), (3, 2)), ((5, 2, 3), (3, 4)), ((2, 1, 2, 3), (4, 3, 1)), ((2, 0), (0, 3)),
             ((0, 2), (2, 3)), ((2, 3), (2, 3)), ((), (3,)), ((3,), ())]
    for dtype, (a, b) in itertools.product(REAL, pairs):
        check("matmul", data(a, dtype), data(b, dtype, 1))
        check("linalg.matmul", data(a, dtype), data(b, dtype, 1))
    for dtype, (a, b, axis) in itertools.product(REAL, [((3,), (3,), -1), ((2, 3), (3,), -1), ((2, 3), (4, 1, 3), -1), ((3, 2), (3, 2), -2), ((2, 3), (2, 4), -1), ((0,), (0,), -1)]):
        check("vecdot", data(a, dtype), data(b, dtype, 1), axis=axis)
        check("linalg.vecdot", data(a, dtype), data(b, dtype, 1), axis=axis)
    for a, b, axes in [((2, 3), (3, 4), 1), ((2, 3, 4), (3, 4, 5), 2), ((2,), (3,), 0), ((2, 3), (3, 2), ((0, 1), (1, 0))), ((2, 3, 4), (4, 2), ((-1,), (0,))), ((3,), (3,), 3)]:
        for dtype in ("int8", "uint16", "float32", "float64"):
            check("tensordot", data(a, dtype), data(b, dtype, 1), axes=axes)
            check("linalg.tensordot", data(a, dtype), data(b, dtype, 1), axes=axes)
    for dtype in REAL:
        check("linalg.outer", data((3,), dtype), data((2,), dtype))
        check("linalg.outer", data((0,), dtype), data((2,), dtype))
        check("linalg.cross", data((3,), dtype), data((3,), dtype, 1))
        check("linalg.cross", data((3, 2), dtype), data((3, 1), dtype, 1), axis=-2)
        check("linalg.cross", data((2, 2), dtype), data((2, 2), dtype, 1))
    for name, a, b in (("matmul", "int8", "uint8"), ("vecdot", "int16", "int64"), ("tensordot", "float32", "float64"), ("linalg.outer", "uint8", "uint32")):
        check(name, data((2,), a), data((2,), b), **({"axes": 1} if name == "tensordot" else {}))


def test_parts_of_matrices():
    for dtype, shape in itertools.product(REAL, RECTANGLES + SQUARES):
        for offset in (0, 1, -1, 7, -7):
            check("linalg.diagonal", data(shape, dtype), offset=offset)
            check("linalg.trace", data(shape, dtype), offset=offset)
        check("linalg.matrix_transpose", data(shape, dtype))
    check("linalg.trace", data((3, 3), "int8"), dtype="float64")


@pytest.mark.parametrize("dtype", FLOATS)
def test_linear_algebra(dtype):
    rtol = 2e-4 if dtype == "float32" else 1e-10
    for shape in SQUARES:
        x = matrices(shape, dtype, "invertible")
        for name in ("det", "inv", "slogdet"):
            check(f"linalg.{name}", x, rtol=rtol)
        for n in (0, 1, 3, -2):
            check("linalg.matrix_power", x, n, rtol=rtol * 10)
        check("linalg.cholesky", matrices(shape, dtype, "definite"), rtol=rtol)
        check("linalg.cholesky", matrices(shape, dtype, "definite"), upper=True, rtol=rtol)
        check("linalg.eigvalsh", matrices(shape, dtype, "symmetric"), rtol=rtol)
        for columns in ((shape[-1],), (shape[-1], 2), (*shape[:-2], shape[-1], 1), (3, 1, shape[-1], 2)):
            if len(shape) < 3 or columns[:1] != (3,) or shape[0] == 2:
                check("linalg.solve", x, data(columns, dtype, 8), rtol=rtol)
    for shape in RECTANGLES + [(0, 3), (3, 0)]:
        x = matrices(shape, dtype)
        check("linalg.svdvals", x, rtol=rtol)
        if 0 not in shape:
            check("linalg.matrix_rank", x)
        check("linalg.pinv", x, rtol=rtol * 10)
        for keepdims, ord in itertools.product((False, True), ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf)):
            if 0 not in shape:
                check("linalg.matrix_norm", x, keepdims=keepdims, ord=ord, rtol=rtol)
    low = np.outer(data((4,), dtype), data((3,), dtype))
    check("linalg.matrix_rank", low)
    for shape in SHAPES:
        for axis, keepdims, ord in itertools.product(axes_for(shape)[:-1], (False, True), (2, 1, 0, 3.5, -1, math.inf, -math.inf)):
            if 0 not in shape:
                check("linalg.vector_norm", data(shape, dtype), axis=axis, keepdims=keepdims, ord=ord, rtol=rtol)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (2, 4, 4), (5, 3), (2, 3, 5), (0, 0), (3, 0), (0, 2, 2)])
def test_decompositions(dtype, shape):
    tolerance = {"rtol": 1e-3, "atol": 1e-4} if dtype == "float32" else {"rtol": 1e-10, "atol": 1e-10}

    def close(a, b):
        assert a.dtype.name == dtype
        np.testing.assert_allclose(a.numpy(), b, **tolerance)
    x, (m, n) = xp.asarray(matrices(shape, dtype)), shape[-2:]
    for mode, k in (("reduced", min(m, n)), ("complete", m)):
        found = xp.linalg.qr(x, mode=mode)
        assert found.Q.shape == (*shape[:-2], m, k) and found.R.shape == (*shape[:-2], k, n)
        close(found.Q @ found.R, x.numpy())
        close(found.Q.mT @ found.Q, np.broadcast_to(np.eye(k), (*shape[:-2], k, k)))
        close(xp.tril(found.R, k=-1), np.zeros(found.R.shape))
    for full in (False, True):
        u, s, vh = found = xp.linalg.svd(x, full_matrices=full)
        k = min(m, n)
        assert found.U.shape == (*shape[:-2], m, m if full else k) and found.Vh.shape == (*shape[:-2], n if full else k, n) and s.shape == (*shape[:-2], k)
        close((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], x.numpy())
        close(u.mT @ u, np.broadcast_to(np.eye(u.shape[-1]), u.mT.shape[:-1] + u.shape[-1:]))
    if m == n:
        y = xp.asarray(matrices(shape, dtype, "symmetric"))
        found = xp.linalg.eigh(y)
        close((found.eigenvectors * found.eigenvalues[..., None, :]) @ found.eigenvectors.mT, y.numpy())
        close(found.eigenvectors.mT @ found.eigenvectors, np.broadcast_to(np.eye(n), shape))


def test_frequencies():
    for n, d in itertools.product((1, 2, 5, 8), (1.0, 0.5)):
        for dtype in (None, "float32", "float64"):
            check("fft.fftfreq", n, d=d, dtype=dtype)
            check("fft.rfftfreq", n, d=d, dtype=dtype)
    for name, shape in itertools.product(("fft.fftshift", "fft.ifftshift"), ((5,), (2, 3), (4, 1, 3))):
        for axes in (None, 0, -1, tuple(range(len(shape)))):
            check(name, data(shape, "float32"), axes=axes)
    with pytest.raises(NotImplementedError, match="weft.fft"):
        xp.fft.rfft(xp.ones(4))


# ---- the array

def test_attributes():
    x = xp.asarray([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], dtype=xp.float32)
    assert x.size == 6 and isinstance(x.size, int) and x.size() == (2, 3) and x.size(-1) == 3 and xp.zeros(()).size == 1 and xp.zeros((0, 3)).size == 0
    with pytest.raises(IndexError, match="from -2 to 1"):
        x.size(2)
    assert x.ndim == 2 and x.shape == (2, 3) and type(x.shape) is tuple and all(type(n) is int for n in x.shape)
    assert x.T.shape == (3, 2) and x.mT.tolist() == [[1, 4], [2, 5], [3, 6]] and x.device == xp.__array_namespace_info__().default_device()
    assert x.to_device(x.device).tolist() == x.tolist() and x.to_device(x.device, stream=None).dtype == xp.float32
    with pytest.raises(ValueError, match="streams"):
        x.to_device(x.device, stream=1)
    assert x.__array_namespace__() is xp and x.__array_namespace__(api_version="2023.12") is xp and xp.__array_api_version__ == "2024.12"
    with pytest.raises(ValueError, match="2024.12"):
        x.__array_namespace__(api_version="1999.01")
    assert complex(xp.asarray(2.5)) == 2.5 and float(xp.asarray(3)) == 3.0 and int(xp.asarray(2.7)) == 2 and bool(xp.asarray(0.5))
    assert x.__dlpack_device__() == (1, 0)
    for function, error in ((int, ValueError), (lambda y: int(-y + math.inf), (ValueError, OverflowError))):
        with pytest.raises(error):
            function(xp.asarray(math.nan))
    import copy
    import pickle
    assert type(pickle.loads(pickle.dumps(x.size))) is int and copy.copy(x.size) == 6


def test_operators_with_numbers():
    import operator
    for dtype in REAL:
        x, y = data((4,), dtype, 1, 1), data((4,), dtype, 2, 1)
        for op in (operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, operator.lt, operator.eq, *([operator.truediv] if dtype in FLOATS else [])):
            for a, b in ((x, 2), (2, x), (x, y)):
                same(op.__name__, op(on(xp, a), on(xp, b)), op(on(strict, a), on(strict, b)))
        for op in (operator.iadd, operator.isub, operator.imul, operator.ifloordiv, operator.imod):
            for other in (2, y):
                z = xp.asarray(x.copy())
                before = z
                same(op.__name__, op(z, on(xp, other)), op(strict.asarray(x.copy()), on(strict, other)))
                z = op(before, on(xp, other))
                assert z is before
        if dtype in INTS:
            for op in (operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift):
                for a, b in ((x, 1), (1, x), (x, y)):
                    same(op.__name__, op(on(xp, a), on(xp, b)), op(on(strict, a), on(strict, b)))
        for op in (operator.neg, operator.pos, operator.abs, *([operator.invert] if dtype in INTS else [])):
            same(op.__name__, op(on(xp, x)), op(on(strict, x)))


def test_indexing():
    for dtype, shape in itertools.product(("bool", "int8", "uint64", "float64"), SHAPES):
        x = data(shape, dtype)
        keys = [(), ..., None, (..., None), slice(None)]
        for size in shape[:1]:
            keys += [slice(1, None), slice(None, None, -1), slice(-1, None, -2), slice(0, 0), *([0, -1, size - 1, (0, ...)] if size else [size, -1])]
        if len(shape) > 1:
            keys += [(slice(None), slice(1)), (..., slice(None, None, 2)), (None, slice(None), None), (slice(1, 2), ..., slice(1)), (slice(None),) * len(shape)]
        for key in keys:
            with np.errstate(all="ignore"):
                try:
                    wanted = x[key]
                except IndexError:
                    with pytest.raises(IndexError):
                        xp.asarray(x)[key]
                    continue
            np.testing.assert_array_equal(xp.asarray(x)[key].numpy(), wanted, strict=True)
            y, z = x.copy(), xp.asarray(x, copy=True)
            y[key] = z[key] = True if dtype == "bool" else 3
            np.testing.assert_array_equal(z.numpy(), y, strict=True)
        mask = data(shape, "bool", 5)
        np.testing.assert_array_equal(xp.asarray(x)[xp.asarray(mask)].numpy(), x[mask], strict=True)
        y, z = x.copy(), xp.asarray(x, copy=True)
        y[mask] = z[xp.asarray(mask)] = 1
        np.testing.assert_array_equal(z.numpy(), y, strict=True)
    x = data((4, 3), "float32")
    for key in ((np.array([0, 2, 2]),), (np.array([-1, 0], "int8"), 1), (slice(None), np.array([2, 0], "uint8")), (np.array([[0, 1], [3, 2]]), np.array([0, 2]))):
        np.testing.assert_array_equal(xp.asarray(x)[on(xp, key)].numpy(), x[key], strict=True)


# ---- asarray

def test_asarray_of_python():
    for obj, dtype in ((True, "bool"), (3, "int64"), (2.5, "float64"), ([1, 2], "int64"), ([[1, 2.5]], "float64"), ([True, False], "bool"), ([], "float64"), ((1, 2), "int64"),
                       ([[], []], "float64"), (2 ** 40, "int64"), (2 ** 63, "uint64"), (-2 ** 63, "int64"), (range(3), "int64")):
        x = xp.asarray(obj)
        assert x.dtype.name == dtype and x.tolist() == (list(obj) if isinstance(obj, (range, tuple)) else obj)
    assert xp.asarray([xp.asarray(1), xp.asarray(2)]).tolist() == [1, 2] and xp.asarray([[xp.ones(2)]]).shape == (1, 1, 2)
    for dtype in INTS:
        info = np.iinfo(dtype)
        assert xp.asarray([info.min, info.max], dtype=getattr(xp, dtype)).tolist() == [info.min, info.max]
        for beyond in (info.min - 1, info.max + 1):
            with pytest.raises(OverflowError, match=dtype):
                xp.asarray([[0, beyond]], dtype=getattr(xp, dtype))
            with pytest.raises(OverflowError):
                xp.full((2,), beyond, dtype=getattr(xp, dtype))
    with pytest.raises(OverflowError):
        xp.asarray(2 ** 70)
    assert xp.asarray(2 ** 70, dtype=xp.float64).item() == 2.0 ** 70
    assert xp.asarray(0j).dtype.name == "float64" and xp.asarray([1 + 0j, 2]).tolist() == [1, 2]
    for wrong in (1j, [1, 2 + 1j], "a", object()):
        with pytest.raises(TypeError):
            xp.asarray(wrong)


def test_asarray_copies_or_not():
    x = xp.asarray([1.0, 2.0, 3.0])
    assert xp.asarray(x) is x and xp.asarray(x, copy=False) is x and xp.asarray(x, dtype=x.dtype, device=x.device, copy=False) is x
    y = xp.asarray(x, copy=True)
    y[0] = 9
    assert x.tolist() == [1, 2, 3] and y.tolist() == [9, 2, 3]
    with pytest.raises(ValueError, match="without a copy"):
        xp.asarray(x, dtype=xp.int32, copy=False)
    for obj in (1.0, [1.0, 2.0], range(3)):
        with pytest.raises(ValueError, match="without a copy"):
            xp.asarray(obj, copy=False)
    a = np.arange(4.0)
    for copied in (xp.asarray(a), xp.asarray(a, copy=True), xp.from_dlpack(a, copy=True)):
        a[0] = 7
        assert copied[0].item() == 0
        a[0] = 0
    for shared in (xp.asarray(a, copy=False), xp.from_dlpack(a), xp.from_dlpack(a, copy=False)):
        a[1] += 10
        assert shared.tolist() == a.tolist() and shared.dtype == xp.float64
        shared[2] = 100.0  # in memory of its own from here on
        assert a[2] == 2
    with pytest.raises(ValueError):
        xp.asarray(np.arange(6.0).reshape(2, 3).T, copy=False)
    assert xp.asarray(memoryview(b"abc")).tolist() == [97, 98, 99] and xp.asarray(np.float32(2.5)).dtype == xp.float32


def test_copies_are_no_views():
    """What the standard says is new may be written to."""
    for make in (xp.positive, xp.real, xp.conj, lambda x: xp.astype(x, x.dtype), lambda x: xp.reshape(x, (4,), copy=True), lambda x: xp.asarray(x, copy=True), xp.clip):
        x = xp.asarray([1.0, 2.0, 3.0, 4.0])
        y = make(x)
        y[0] = 9.0
        assert x.tolist() == [1, 2, 3, 4] and y.tolist() == [9, 2, 3, 4]


def test_dlpack():
    for dtype, shape in itertools.product(REAL + ["bool"], SHAPES):
        a = data(shape, dtype)
        x = xp.from_dlpack(a)
        np.testing.assert_array_equal(np.from_dlpack(x), a, strict=True)
        np.testing.assert_array_equal(xp.from_dlpack(x).numpy(), a, strict=True)
        np.testing.assert_array_equal(np.from_dlpack(x, copy=True), a, strict=True)
    x = xp.ones(3)
    assert x.__dlpack__(max_version=(1, 0), dl_device=(1, 0), copy=True) is not None
    with pytest.raises(BufferError):
        x.__dlpack__(dl_device=(2, 0))


# ---- errors

ERRORS = [
    (lambda: xp.add(1, 2), ValueError, "at least one array"), (lambda: xp.add(xp.ones(2), "a"), TypeError, "str is no array"),
    (lambda: xp.asarray(None), TypeError, "None is no array"), (lambda: xp.asarray(1j), TypeError, "1j is complex"),
    (lambda: xp.arange("3"), TypeError, "str is no real number"), (lambda: xp.linspace(0, 1, -1), ValueError, "num is 0 or more"), (lambda: xp.eye(2, -1), ValueError, "2 rows and -1 columns"),
    (lambda: xp.meshgrid(xp.ones(2), indexing="yx"), ValueError, "'yx'"), (lambda: xp.broadcast_to(xp.ones((2, 3)), (3,)), ValueError, r"\(2, 3\) does not broadcast to"),
    (lambda: xp.concat([]), ValueError, "no arrays"), (lambda: xp.stack(()), ValueError, "no arrays"),
    (lambda: xp.expand_dims(xp.ones(2), 2), IndexError, "axis 2 is out of range for 2 axes"), (lambda: xp.flip(xp.ones((2, 2)), axis=(0, -2)), ValueError, "name one twice"),
    (lambda: xp.squeeze(xp.ones((1, 2)), 1), ValueError, "axis 1 of shape"), (lambda: xp.permute_dims(xp.ones((2, 2)), (0,)), ValueError, "not as many axes"),
    (lambda: xp.roll(xp.ones((2, 2)), (1, 2), axis=(0,)), ValueError, "2 shifts for 1 axes"), (lambda: xp.take(xp.ones((2, 2)), xp.asarray([0])), ValueError, "give the axis"),
    (lambda: xp.nonzero(xp.asarray(1)), ValueError, "without axes"), (lambda: xp.searchsorted(xp.ones(2), xp.ones(2), side="up"), ValueError, "'up'"),
    (lambda: xp.cumulative_sum(xp.ones((2, 2))), ValueError, "which axis of shape"), (lambda: xp.matmul(xp.asarray(1), xp.ones(2)), ValueError, "multiply"),
    (lambda: xp.tensordot(xp.ones(2), xp.ones(2), axes=2), ValueError, "have not as many"), (lambda: xp.vecdot(xp.ones(2), xp.ones(3)), ValueError, "different sizes"),
    (lambda: xp.linalg.outer(xp.ones(2), xp.ones((2, 2))), ValueError, "two vectors"), (lambda: xp.linalg.cross(xp.ones(2), xp.ones(2)), ValueError, "three elements"),
    (lambda: xp.linalg.qr(xp.ones((2, 2)), mode="full"), ValueError, "'full'"), (lambda: xp.linalg.matrix_norm(xp.ones((2, 2)), ord=3), ValueError, "not 3"),
    (lambda: xp.max(xp.ones((0,))), ValueError, "no max of nothing"),
]


@pytest.mark.parametrize("call, kind, text", ERRORS, ids=[text for _, _, text in ERRORS])
def test_errors(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


def test_numbers_of_numpys():
    x = xp.asarray([1, 2], dtype=xp.int8)
    for number, dtype in ((np.int64(3), "int8"), (np.float32(1.5), "float64"), (np.float64(1.5), "float64")):
        found = xp.add(x, number)
        assert found.dtype.name == dtype and found.tolist() == [1 + float(number), 2 + float(number)]
        assert xp.arange(number).tolist() == np.arange(number).tolist() and xp.arange(xp.asarray(number)).shape == np.arange(number).shape
        assert xp.full((2,), number).tolist() == [number] * 2 and xp.where(x > 1, number, x).tolist() == [1, number]


# ---- inspection

def test_info():
    info = xp.__array_namespace_info__()
    assert info.capabilities() == {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": None}
    assert info.default_device() in info.devices() and all(isinstance(d, str) for d in info.devices())
    defaults = info.default_dtypes(device=info.default_device())
    assert defaults["real floating"] == xp.asarray(1.0).dtype == xp.zeros(1).dtype and defaults["integral"] == xp.asarray(1).dtype == xp.arange(3).dtype
    for found in (xp.argmax(xp.ones(3)), xp.argsort(xp.ones(3)), *xp.nonzero(xp.ones(3)), xp.searchsorted(xp.ones(3), xp.ones(2)), xp.unique_all(xp.ones(3)).indices,
                  xp.unique_counts(xp.ones(3)).counts, xp.unique_inverse(xp.ones(3)).inverse_indices):
        assert found.dtype == defaults["indexing"]
    assert list(info.dtypes()) == ALL and all(dtype == getattr(xp, name) for name, dtype in info.dtypes().items())
    assert list(info.dtypes(kind="unsigned integer")) == INTS[4:] and info.dtypes(kind="complex floating") == {} and list(info.dtypes(kind=("bool", "real floating"))) == ["bool"] + FLOATS
    assert (xp.e, xp.pi, xp.inf, xp.newaxis) == (math.e, math.pi, math.inf, None) and math.isnan(xp.nan)
