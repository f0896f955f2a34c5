"""The array object of the Python array API standard, asarray, errors and inspection."""
import itertools
import math

import array_api_strict as strict
import numpy as np
import pytest

from array_api_oracle import (ALL, FLOATS, INTS, REAL, SHAPES, data, defaults_of_the_oracle, on, same)
import weft.array_api as xp


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


def test_operators_of_every_shape():
    """Between arrays, reflected and in place: an array stays itself, also without elements."""
    import operator as o
    of_two = {o.add: o.iadd, o.sub: o.isub, o.mul: o.imul, o.floordiv: o.ifloordiv, o.mod: o.imod, o.pow: o.ipow, o.truediv: o.itruediv,
              o.and_: o.iand, o.or_: o.ior, o.xor: o.ixor, o.lshift: o.ilshift, o.rshift: o.irshift}
    logical, whole = (o.and_, o.or_, o.xor), (o.lshift, o.rshift)
    for dtype, shape in itertools.product(("bool", "int8", "uint32", "float32", "float64"), SHAPES):
        x, y, number = data(shape, dtype, 1, 1), data(shape, dtype, 2, 1), True if dtype == "bool" else 2
        for op, in_place in of_two.items():
            if dtype == "bool" and op not in logical or dtype in FLOATS and op in (*logical, *whole) or dtype in INTS and op is o.truediv:
                continue
            for a, b in ((x, y), (x, number), (number, y)):
                same(op.__name__, op(on(xp, a), on(xp, b)), op(on(strict, a), on(strict, b)))
            for other in (y, y.sum(axis=0, keepdims=True, dtype=dtype) if y.ndim and op not in whole else number, number):
                z, wanted = xp.asarray(x, copy=True), strict.asarray(x.copy())
                changed = in_place(z, on(xp, other))
                assert changed is z
                same(in_place.__name__, z, in_place(wanted, on(strict, other)))


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
