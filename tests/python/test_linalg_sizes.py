"""weft.linalg at sizes around one block and two, batches, ranks, repeated values, first and second derivatives."""
import numpy as np
import pytest

import weft
from conftest import needs_torch, torch
from weft import Tensor, dtypes

T = torch
L = weft.linalg
SIZES = (0, 1, 2, 3, 5, 8, 31, 33, 63, 64, 65, 96, 97, 130)
TOLERANCE = {np.float32: 3e-5, np.float64: 1e-13}


def matrices(n, dtype, batch=(), seed=0, columns=None):
    a = np.random.default_rng(seed + n).standard_normal((*batch, n, columns or n))
    return a.astype(dtype)


def well(n, dtype, batch=()):
    """Of condition numbers below 100, whose rows have to be exchanged."""
    a = matrices(n, np.float64, batch) / max(n, 1) ** .5 + 3 * np.eye(n)
    return np.roll(a, 1, axis=-2).astype(dtype)


def positive(n, dtype, batch=()):
    a = matrices(n, np.float64, batch)
    return (a @ a.swapaxes(-1, -2) / max(n, 1) + np.eye(n)).astype(dtype)


def close(x, wanted, tolerance):
    x = x.numpy() if isinstance(x, Tensor) else x
    assert x.shape == wanted.shape
    if x.size:
        assert np.isfinite(x).all()
        error = np.abs(x - wanted).max() / max(1, np.abs(wanted).max())
        assert error <= tolerance, error


def at_every_size(f):
    return pytest.mark.parametrize("dtype", TOLERANCE)(pytest.mark.parametrize("n", SIZES)(f))


@at_every_size
def test_factors(n, dtype):
    near = TOLERANCE[dtype]
    a, p = well(n, dtype), positive(n, dtype)
    l = L.cholesky(Tensor(p)).numpy()
    close(l, np.tril(l), 0)
    close(l @ l.T, p, near)
    packed, rows, sign = (t.numpy() for t in L.lu(Tensor(a)))
    lower = np.tril(packed, -1) + np.eye(n, dtype=dtype)
    close(lower @ np.triu(packed), a[rows], near)
    assert np.abs(lower).max(initial=0) <= 1
    assert sorted(rows) == list(range(n))
    assert sign == round(np.linalg.det(np.eye(n)[rows]))


@at_every_size
def test_solutions(n, dtype):
    near = 10 * TOLERANCE[dtype]
    a = well(n, dtype)
    for columns in (1, 3, n):
        b = matrices(n, dtype, seed=5, columns=columns or 1)
        close(a @ L.solve(Tensor(a), Tensor(b)).numpy(), b, near)
        for upper, unit in ((False, False), (True, False), (False, True), (True, True)):
            t = np.triu(a / n ** .5, 1) if upper else np.tril(a / max(n, 1) ** .5, -1)
            t = (t + np.eye(n) * (1 if unit else 2)).astype(dtype)
            x = L.solve_triangular(Tensor(t), Tensor(b), upper=upper, unitriangular=unit)
            close(t @ x.numpy(), b, near * max(1, np.abs(x.numpy()).max(initial=0)))
    close(a @ L.inv(Tensor(a)).numpy(), np.eye(n, dtype=dtype), near)
    sign, log = np.linalg.slogdet(a.astype(np.float64))
    got = L.slogdet(Tensor(a))
    assert got[0].item() == sign
    assert abs(got[1].item() - log) <= near * max(1, n)
    if abs(log) < 80:
        assert abs(L.det(Tensor(a)).item() / (sign * np.exp(log)) - 1) <= near * max(1, n)


@pytest.mark.parametrize("n", (3, 40, 70))
@pytest.mark.parametrize("batch", ((0,), (1,), (5,), (2, 3)))
def test_batches(n, batch):
    a, b = well(n, np.float64, batch), matrices(n, np.float64, batch, 5, 2)
    near = 1e-12
    close(a @ L.solve(Tensor(a), Tensor(b)).numpy(), b, near)
    close(L.det(Tensor(a)), np.linalg.det(a), near * 10)
    close(L.inv(Tensor(a)), np.linalg.inv(a) if a.size else a, near)
    p = positive(n, np.float64, batch)
    close(L.cholesky(Tensor(p)), np.linalg.cholesky(p) if p.size else p, near)


def test_rows_that_need_each_other():
    """Where pivots are zero, ties, or all the same; singular matrices have determinant 0."""
    for a in (np.eye(70)[::-1], np.ones((70, 70)), np.zeros((5, 5)), np.triu(np.ones((66, 66)))[::-1],
              np.diag(np.arange(40.)), np.hilbert(6) if hasattr(np, "hilbert") else np.vander([1., 2, 3])):
        packed, rows, _ = (t.numpy() for t in L.lu(Tensor(np.ascontiguousarray(a))))
        close((np.tril(packed, -1) + np.eye(len(a))) @ np.triu(packed), a[rows], 1e-12)
        close(L.det(Tensor(np.ascontiguousarray(a))), np.asarray(np.linalg.det(a)), 1e-9)
    bad = np.eye(100)
    bad[70, 70] = -1
    assert np.isnan(L.cholesky(Tensor(bad)).numpy()).any()


def weights(shape):
    return np.cos(np.arange(int(np.prod(shape))) * 1.7 + 1).reshape(shape)


# name: (operands of n, ours, PyTorch's); all f64
GRADIENTS = {
    "cholesky": (lambda n: [positive(n, np.float64)], lambda a: L.cholesky((a + a.T) / 2),
                 lambda a: T.linalg.cholesky((a + a.mT) / 2)),
    "inv": (lambda n: [well(n, np.float64)], L.inv, lambda a: T.linalg.inv(a)),
    "log det": (lambda n: [well(n, np.float64)], lambda a: L.slogdet(a)[1], lambda a: T.linalg.slogdet(a)[1]),
    "det": (lambda n: [well(n, np.float64) * 2 / (3 + 1 / n)], L.det, lambda a: T.linalg.det(a)),
    "lu": (lambda n: [well(n, np.float64)], lambda a: L.lu(a)[0], lambda a: T.linalg.lu_factor(a)[0]),
    "solve": (lambda n: [well(n, np.float64), matrices(n, np.float64, seed=3, columns=2)], L.solve,
              lambda a, b: T.linalg.solve(a, b)),
    "solve_triangular": (lambda n: [np.tril(well(n, np.float64), -1) + 2 * np.eye(n), matrices(n, np.float64, columns=2)],
                         lambda a, b: L.solve_triangular(a, b, upper=False),
                         lambda a, b: T.linalg.solve_triangular(a.tril(), b, upper=False)),
}


def derivatives_of(f, arrays, tensor, grad):
    """First derivatives of a weighted sum, and those of a weighted sum of them."""
    leaves = [tensor(a) for a in arrays]
    y = f(*leaves)
    first = grad((y * tensor(weights(tuple(y.shape)), False)).sum(), leaves)
    total = sum((g * tensor(weights(tuple(g.shape)) + 2, False)).sum() + x.sum() * 0 for g, x in zip(first, leaves))
    return first, grad(total, leaves)


@needs_torch
@pytest.mark.parametrize("n", (1, 2, 5, 40, 70))
@pytest.mark.parametrize("name", GRADIENTS)
def test_derivatives_like_pytorch(name, n):
    operands, ours, theirs = GRADIENTS[name]
    arrays = operands(n)
    got = derivatives_of(ours, arrays, lambda a, on=True: Tensor(a, dtype=dtypes.float64, requires_grad=on),
                         lambda y, xs: y.gradient(*xs))
    wanted = derivatives_of(theirs, arrays, lambda a, on=True: T.tensor(a, dtype=T.float64, requires_grad=on),
                            lambda y, xs: T.autograd.grad(y, xs, create_graph=True, materialize_grads=True))
    for order, (g, w) in enumerate(zip(got, wanted)):
        for x, z in zip(g, w):
            close(x, z.detach().numpy(), 1e-9 * 100 ** order)


def test_determinants_have_gradients_where_they_are_zero():
    for a in (np.diag([2., 0, 3]), np.array([[1., 2], [2, 4]]), np.zeros((2, 2))):
        x = Tensor(a, requires_grad=True)
        n = len(a)
        minors = [[(-1) ** (i + j) * np.linalg.det(np.delete(np.delete(a, i, 0), j, 1)) for j in range(n)] for i in range(n)]
        close(L.det(x).gradient(x)[0], np.array(minors), 1e-12)
