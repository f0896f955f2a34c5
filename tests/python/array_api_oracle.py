"""The oracle of the Python array API standard, array-api-strict, beside weft.array_api: what their tests share."""

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
SHAPES = [(), (0,), (1,), (5,), (2, 3), (3, 0, 2), (2, 1, 4), (2, 0, 1, 3), (2, 1, 3, 2), (0, 2, 1, 0, 1), (1, 2, 1, 3, 2)]
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


def axes_for(shape):
    """None, each axis from both ends, and tuples."""
    rank = len(shape)
    return [None, *range(-rank, rank), *([tuple(range(rank))] if rank else []), *([(0, -1)] if rank > 1 else []), ()]
