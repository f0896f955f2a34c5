"""What Python expects of an object that holds numbers: formats, texts, operators, builtins, NumPy's functions, copies."""
import copy
import math
import operator
import pickle
import warnings
import weakref

import numpy as np
import pytest

from conftest import needs_torch, torch
from weft import Tensor, Variable, dtypes


def test_formats():
    loss = Tensor([2.0, 4.0]).mean()
    assert f"{loss:.3f}" == "3.000" and f"{Tensor(7):05d}" == "00007" and f"{Tensor([[1.5]]):>8.2f}" == "    1.50"
    assert f"{loss}" == str(loss) and format(Tensor(True), "") == str(Tensor(True)) and "%.2f" % loss == "3.00"
    assert "{:.1e}".format(Tensor(12345.0)) == "1.2e+04"
    with pytest.raises(TypeError, match="item"):
        f"{Tensor([1.0, 2.0]):.3f}"


def test_texts():
    x = Tensor([[1.5, 2.0], [3.0, -4.0]]).realize()
    assert repr(x) == "Tensor([[1.5, 2], [3, -4]], dtype=dtypes.float32)"
    assert repr(x.T) == "Tensor([[1.5, 3], [2, -4]], dtype=dtypes.float32)"
    assert repr((x > 0).realize()) == "Tensor([[True, True], [True, False]], dtype=dtypes.bool)"
    assert repr(Tensor(True).realize()) == "Tensor(True, dtype=dtypes.bool)"
    assert "..." in repr(Tensor.arange(1000).contiguous().realize())
    lazy = repr(x + 1)
    assert "(2, 2)" in lazy and "dtypes.float32" in lazy and "CPU" in lazy and "not realized" in lazy
    assert "i" in repr(Tensor.ones(5)[:Variable("i", 1, 5).bind(2)])
    assert repr(Tensor([math.nan, math.inf]).realize()) == "Tensor([nan, inf], dtype=dtypes.float32)"


def test_builtins():
    x = Tensor([3.0, -1.5])
    assert abs(x).tolist() == [3, 1.5] and round(Tensor([2.5, 3.5])).tolist() == [2, 4] and round(Tensor([1.256]), 2).item() == pytest.approx(1.26)
    assert round(Tensor([126, 124]), -1).tolist() == [130, 120] and round(Tensor([126, 124])).dtype == dtypes.int32
    assert [t.tolist() for t in divmod(Tensor([7, -7]), 3)] == [[2, -3], [1, 2]]
    assert [t.tolist() for t in divmod(7, Tensor([2, 3]))] == [[3, 2], [1, 1]]
    assert sum([x, x, x]).tolist() == [9, -4.5] and sum(x).item() == 1.5 and max(x).item() == 3
    assert len(x) == 2 and [y.item() for y in x] == [3, -1.5] and 3 in x and 4 not in x
    assert bool(Tensor([0.5])) and not Tensor(0) and int(Tensor([3.7])) == 3 and float(Tensor(2)) == 2.0
    assert complex(Tensor(2.0)) == 2 and math.floor(Tensor(2.5)) == 2 and math.sqrt(Tensor(4.0)) == 2
    with pytest.raises(ValueError):
        bool(x)
    for empty in (len, iter):
        with pytest.raises(TypeError):
            empty(Tensor(1.0))


def test_integers_are_indices():
    three = Tensor(3)
    assert list(range(three)) == [0, 1, 2] and [10, 20, 30, 40][three] == 40 and operator.index(three) == 3 and hex(Tensor(255)) == "0xff"
    for bad in (Tensor(3.0), Tensor([3]), Tensor(True)):
        with pytest.raises(TypeError):
            operator.index(bad)
    x = Tensor([5, 6, 7, 8])
    assert x[three].tolist() == 8 and x[Tensor(1)].shape == ()


def test_comparisons_and_hashes():
    x = Tensor([1.0, 2.0])
    assert (x == 1).tolist() == [True, False] and (x != None) is True and (x == None) is False and (x == "a") is False  # noqa: E711
    assert hash(x) == hash(x) and len({x, x, Tensor([1.0])}) == 2 and {x: 1}[x] == 1


NUMPYS = [np.float32(2), np.float64(2), np.int64(2), np.uint8(2), np.array([2.0, 3.0], np.float32), np.array([[2], [3]]), np.bool_(True)]
OPERATORS = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow, operator.lt, operator.ge,
             operator.eq, operator.ne, divmod]


@pytest.mark.parametrize("other", NUMPYS, ids=lambda x: f"{type(x).__name__}{np.shape(x)}")
@pytest.mark.parametrize("op", OPERATORS, ids=lambda f: f.__name__)
def test_operators_with_numpy_on_either_side(op, other):
    x = np.array([4.0, 5.0], np.float32)
    for got, want in ((op(Tensor(x), other), op(x, other)), (op(other, Tensor(x)), op(other, x))):
        for y, z in zip(got if isinstance(got, tuple) else (got,), want if isinstance(want, tuple) else (want,)):
            assert isinstance(y, Tensor)
            np.testing.assert_allclose(y.numpy(), z, rtol=1e-6)


def test_numpy_functions():
    a = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
    t = Tensor(a)
    for f in (np.sum, np.mean, np.max, np.std, np.median, np.argmax, np.cumsum, np.transpose, np.linalg.norm, np.linalg.det, np.ravel, np.shape,
              np.ndim, np.size, np.sort, np.unique, np.trace, np.diag, np.asarray, np.array, np.any, np.prod):
        np.testing.assert_allclose(np.asarray(f(t)), f(a), rtol=1e-6)
    assert np.sum(t, axis=0, keepdims=True).shape == (1, 2) and np.concatenate([t, a]).shape == (4, 2) and np.stack([t, t]).shape == (2, 2, 2)
    assert np.allclose(t, a) and np.array_equal(t, a) and np.where(t > 2, t, 0).tolist() == [[0, 0], [3, 4]]
    np.testing.assert_array_equal(t, a)
    for f in (np.exp, np.sqrt, np.negative, np.absolute, np.log1p, np.floor, np.rint, np.square, np.isnan, np.sign, np.arctan, np.tanh):
        y = f(t)
        assert isinstance(y, Tensor)
        np.testing.assert_allclose(y.numpy(), f(a), rtol=1e-6)
    for f in (np.add, np.maximum, np.power, np.arctan2, np.hypot, np.logaddexp, np.less, np.matmul, np.copysign, np.fmod):
        for args in ((t, a), (a, t), (t, t)):
            y = f(*args)
            assert isinstance(y, Tensor), f
            np.testing.assert_allclose(y.numpy(), f(a, a), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(np.cbrt(t), np.cbrt(a), rtol=1e-6)  # what Tensor has not is an array
    assert np.add.reduce(t).tolist() == [4, 6]
    x = Tensor([1.0, 2.0], requires_grad=True)
    (np.exp(x) * np.float32(2)).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * np.exp([1.0, 2.0]), rtol=1e-6)
    b = a.copy()
    b += t
    np.testing.assert_array_equal(b, 2 * a)
    with pytest.raises(TypeError):
        np.add(a, a, out=t)


@needs_torch
def test_tensors_of_pytorchs():
    source = torch.ones(2)
    t = Tensor(source)
    source[0] = 5
    assert t.tolist() == [1, 1] and t.dtype == dtypes.float32
    assert Tensor(torch.tensor([1.5, 2.5], dtype=torch.bfloat16)).tolist() == [1.5, 2.5]
    assert Tensor(torch.arange(3), dtype=dtypes.float32).tolist() == [0, 1, 2] and Tensor(torch.tensor(2)).shape == ()
    assert Tensor([torch.ones(2), torch.zeros(2)]).tolist() == [[1, 1], [0, 0]] and Tensor(torch.ones(2, 3).T).shape == (3, 2)
    with pytest.raises((ValueError, RuntimeError, BufferError), match="detach|grad"):
        Tensor(torch.ones(2, requires_grad=True))


def test_what_becomes_a_tensor():
    assert Tensor(range(3)).tolist() == [0, 1, 2] and Tensor(range(0)).shape == (0,)
    assert Tensor([Tensor([1, 2]), Tensor([3, 4])]).tolist() == [[1, 2], [3, 4]] and Tensor([[Tensor(1.0), 2.0], [3.0, Tensor(4.0)]]).shape == (2, 2)
    assert Tensor([np.float32(1.5), np.float32(2)]).tolist() == [1.5, 2] and Tensor(np.float16(2.5)).dtype == dtypes.float16
    assert Tensor([np.int64(3)]).tolist() == [3] and Tensor([np.ones(2), np.zeros(2)]).shape == (2, 2) and Tensor((1, 2)).shape == (2,)
    assert Tensor([2**40]).item() == 2**40 and Tensor([2**63]).item() == 2**63 and Tensor(2.0**70).item() == 2.0**70
    assert Tensor([2**70], dtype=dtypes.float64).item() == 2.0**70 and Tensor([True, False]).dtype == dtypes.bool
    leaf = Tensor([1.0, 2.0], requires_grad=True)
    Tensor([leaf * 2, leaf * 3]).sum().backward()
    assert leaf.grad.tolist() == [5, 5]
    for wrong in ((x for x in [1]), {1, 2}, {"a": 1}, object(), "text", [1, "a"], [None], [[1], [2, 3]], [2**70], [-1, 2**63], 1j):
        with pytest.raises((TypeError, ValueError)):
            Tensor(wrong)
    with pytest.raises((TypeError, ValueError)):
        Tensor([2**70], dtype=dtypes.int64)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x)), Tensor.clone], ids=["copy", "deepcopy", "pickle", "clone"])
def test_copies_have_memory_of_their_own(copied):
    for x in (Tensor([1.0, 2.0], requires_grad=True), Tensor([1, 2]), Tensor([[True]]), Tensor([1.5], dtype=dtypes.bfloat16), Tensor.ones(2, 3).T):
        before = x.tolist()
        y = copied(x)
        assert y.tolist() == before and y.dtype == x.dtype and y.shape == x.shape
        y.assign(y.zeros_like()).realize()
        assert x.tolist() == before
    assert copied(Tensor([1.0], requires_grad=False)).requires_grad is False or copied is Tensor.clone


def test_numbers_in_float64_keep_their_digits():
    x = np.array([2.0, 5.0])
    t = Tensor(x)
    for f in (lambda a: a ** (1 / 3), lambda a: a % .3, lambda a: a // .3, lambda a: .7 ** a, lambda a: a * .1 + 1 / 3):
        np.testing.assert_allclose(f(t).numpy(), f(x), rtol=1e-14)
    t[0] = .1
    t[Tensor([1])] = .3
    assert t.tolist() == [.1, .3]
    np.testing.assert_allclose(t.fmod(.07).numpy(), np.fmod([.1, .3], .07), rtol=1e-13)
    np.testing.assert_allclose(t.logaddexp(.1).numpy(), np.logaddexp([.1, .3], .1), rtol=1e-14)


def test_flags_without_effect_say_so_once():
    from weft.helpers import Context
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(3):
            with Context(PCONTIG=1, DEBUG=0):
                pass
    assert [("PCONTIG" in str(w.message), w.category) for w in seen] == [(True, UserWarning)]


def test_weak_references():
    x = Tensor([1.0])
    seen = weakref.ref(x)
    assert seen() is x
    del x
    assert seen() is None
