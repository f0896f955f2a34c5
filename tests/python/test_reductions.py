"""Reductions, running folds, sorting against NumPy."""
import math

import numpy as np
import pytest

from weft import Tensor, dtypes

from conftest import assert_close, assert_equal, check_gradient

RNG = np.random.default_rng(7)
A = RNG.normal(size=(3, 4, 5))

REDUCTIONS = {
    "sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min, "mean": np.mean,
    "var": lambda a, axis=None, keepdims=False: np.var(a, axis=axis, keepdims=keepdims, ddof=1),
    "std": lambda a, axis=None, keepdims=False: np.std(a, axis=axis, keepdims=keepdims, ddof=1),
    "logsumexp": lambda a, axis=None, keepdims=False: np.log(np.exp(a).sum(axis=axis, keepdims=keepdims)),
}


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), (1,)])
@pytest.mark.parametrize("keepdim", [False, True])
def test_reduction(name, axis, keepdim):
    got = getattr(Tensor(A), name)(axis=axis, keepdim=keepdim)
    assert_close(got, REDUCTIONS[name](A, axis=axis, keepdims=keepdim), 1e-9)


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("axis", [None, 1, (0, 2)])
def test_gradient_of_reduction(name, axis):
    check_gradient(lambda t: getattr(t, name)(axis=axis), A[:2, :3, :2])


def test_any_all():
    a = np.array([[0, 1], [0, 0]])
    for axis in (None, 0, 1):
        assert_equal(Tensor(a).any(axis), np.any(a, axis))
        assert_equal(Tensor(a).all(axis), np.all(a, axis))


def test_dtypes_of_sums():
    for given, wanted in [("bool", "int32"), ("int8", "int32"), ("uint8", "uint32"), ("half", "half"), ("int64", "int64"),
                          ("bfloat16", "bfloat16")]:
        assert Tensor.ones(3, dtype=given).sum().dtype == dtypes.__dict__[wanted], given
    assert Tensor([1, 2]).mean().dtype == dtypes.float32
    assert Tensor([1, 2], dtype="int8").sum(dtype=dtypes.float64).dtype == dtypes.float64
    assert Tensor.ones(3000, dtype="half").sum().item() == 3000
    assert Tensor([200, 100], dtype="uint8").sum().item() == 300


def test_empty_axes():
    e = Tensor.zeros(0, 3)
    assert_equal(e.sum(0), np.zeros(3, "float32"))
    assert_equal(e.prod(0), np.ones(3, "float32"))
    assert e.sum().item() == 0
    with pytest.raises(ValueError):
        e.max(0)


def test_nan_wins():
    x = Tensor([1.0, math.nan, 3.0])
    assert math.isnan(x.max().item()) and math.isnan(x.min().item())
    assert x.argmax().item() == 1


def test_moments_with_mean():
    for name in ("var_mean", "std_mean"):
        spread, mean = getattr(Tensor(A), name)(axis=1)
        assert_close(mean, A.mean(1))
        assert_close(spread, getattr(np, name[:3])(A, axis=1, ddof=1))
    assert_close(Tensor(A).var(correction=0), A.var())


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_along_an_axis(axis):
    t, e = Tensor(A), np.exp(A)
    assert_close(t.softmax(axis), e / e.sum(axis, keepdims=True), 1e-9)
    assert_close(t.log_softmax(axis), A - np.log(e.sum(axis, keepdims=True)), 1e-9)
    assert_close(t.softmin(axis), (1 / e) / (1 / e).sum(axis, keepdims=True), 1e-9)
    assert_close(t.cumsum(axis), A.cumsum(axis), 1e-9)
    assert_close(t.cumprod(axis), A.cumprod(axis), 1e-9)
    assert_close(t.logcumsumexp(axis), np.log(e.cumsum(axis)), 1e-9)
    assert_close(t.normalize(dim=axis), A / np.sqrt((A * A).sum(axis, keepdims=True)), 1e-9)
    values, positions = t.cummax(axis)
    assert_close(values, np.maximum.accumulate(A, axis))
    assert_close(np.take_along_axis(A, positions.numpy(), axis), values.numpy())
    assert_equal(t.argmax(axis), A.argmax(axis).astype("int32"))
    assert_equal(t.argmin(axis, keepdim=True), A.argmin(axis, keepdims=True).astype("int32"))


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "cumsum", "cumprod", "logcumsumexp", "softmin", "normalize"])
def test_gradient_along_an_axis(name):
    check_gradient(lambda t: getattr(t, name)(), A[0, :3, :3])


def test_positions_of_all():
    assert Tensor(A).argmax().item() == A.argmax() and Tensor(A).argmin().item() == A.argmin()
    assert Tensor(A).argmax(keepdim=True).shape == (1, 1, 1)


@pytest.mark.parametrize("descending", [False, True])
def test_sort(descending):
    a = RNG.integers(0, 5, (3, 40)).astype("float32")
    values, positions = Tensor(a).sort(1, descending=descending)
    order = np.argsort(-a if descending else a, 1, kind="stable").astype("int32")
    assert_equal(positions, order)
    assert_equal(values, np.take_along_axis(a, order, 1))
    assert_equal(Tensor(a).argsort(1, descending), order)


def test_topk():
    a = RNG.normal(size=(2, 9))
    values, positions = Tensor(a).topk(3)
    order = np.argsort(-a, 1)[:, :3]
    assert_equal(positions, order.astype("int32"))
    assert_equal(values, np.take_along_axis(a, order, 1))
    values, positions = Tensor(a).topk(3, sorted_=False)
    assert_equal(values.sort(-1)[0], np.sort(a, 1)[:, -3:])
    check_gradient(lambda t: t.sort(1)[0], a)


def test_closeness():
    assert Tensor([1.0]).allclose(Tensor([1.0 + 1e-7])) is True
    assert Tensor([1.0]).allclose(Tensor([1.1])) is False
    assert Tensor([1.0, 2]).isclose(Tensor([1.0, 3])).tolist() == [True, False]
