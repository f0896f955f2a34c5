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


# ---- orthogonal factors

def kinds(m, n):
    """Matrices of size 1, by what is difficult about them."""
    rng = np.random.default_rng(m + 1000 * n)
    k, a = min(m, n), rng.standard_normal((m, n))
    u, v = np.linalg.qr(rng.standard_normal((m, k)))[0], np.linalg.qr(rng.standard_normal((n, k)))[0].T
    half = np.where(np.arange(k) < k // 2, 1., 2)
    yield "random", a
    yield "repeated values", (u * half) @ v
    yield "graded", (u * 10. ** -np.linspace(0, 14, k)) @ v
    yield "of low rank", u[:, :k // 3] @ v[:k // 3]
    yield "of rank 1", np.ones((m, n))
    yield "identity", np.eye(m, n)
    yield "nothing", np.zeros((m, n))
    yield "triangular", np.triu(np.ones((m, n)))
    yield "bidiagonal, a zero", np.eye(m, n, k=1) + np.diag(np.arange(max(m, n)) - m // 2)[:m, :n]
    yield "nilpotent", np.eye(m, n, k=1)


SHAPES = ((0, 0), (0, 3), (3, 0), (1, 1), (1, 4), (4, 1), (2, 2), (5, 3), (3, 5), (8, 8), (63, 64), (65, 65), (66, 9),
          (9, 66), (100, 97))


def orthonormal(q, near):
    close(q.T @ q, np.eye(q.shape[1]), near)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("m, n", SHAPES)
def test_orthogonal_factors(m, n, dtype):
    near = 10 * TOLERANCE[dtype]
    for scale in (1, 1e30, 1e-30):
        for _, kind in kinds(m, n):
            a = (kind * scale).astype(dtype)
            wanted, size = a / dtype(scale), max(1, np.abs(kind).max(initial=0))
            for full in (False, True):
                k = m if full else min(m, n)
                q, r = (t.numpy() for t in L.qr(Tensor(a), full))
                assert q.shape == (m, k) and r.shape == (k, n)
                orthonormal(q, near)
                close(r, np.triu(r), 0)
                close(q @ (r / dtype(scale)), wanted, near * size)
                u, s, vt = (t.numpy() for t in L.svd(Tensor(a), full_matrices=full))
                orthonormal(u, near)
                orthonormal(vt.T, near)
                assert (np.diff(s) <= 0).all() and (s >= 0).all()
                close(u[:, :len(s)] * (s / dtype(scale)) @ vt[:len(s)], wanted, near * size)
            if k and n:
                close(s / dtype(scale), np.linalg.svd(wanted.astype(np.float64), compute_uv=False), near * size)


def test_columns_of_different_sizes():
    a = matrices(12, np.float64, columns=5)
    for dtype, exponents in ((np.float32, (0, -18, 12, -30, 3)), (np.float64, (0, -150, 100, -250, 3))):
        size = np.array([10. ** e for e in exponents])
        q, r = (t.numpy() for t in L.qr(Tensor((a * size).astype(dtype))))
        close(q.astype(np.float64) @ (r / size), a, TOLERANCE[dtype] * 10)


@at_every_size
def test_eigenvalues_of_symmetric_matrices(n, dtype):
    near = 10 * TOLERANCE[dtype]
    for scale in (1, 1e30, 1e-30):
        for _, kind in kinds(n, n):
            wanted = ((kind + kind.T) / 2).astype(dtype)
            size = max(1, np.abs(np.linalg.eigvalsh(wanted)).max(initial=0))
            lower = np.tril(wanted) + np.triu(np.full((n, n), 7), 1)  # is not read
            w, v = (t.numpy() for t in L.eigh(Tensor((lower * scale).astype(dtype))))
            w = w / dtype(scale)
            assert (np.diff(w) >= 0).all()
            orthonormal(v, near)
            close(wanted @ v, v * w, near * size)
            close(w, np.linalg.eigvalsh(wanted.astype(np.float64)), near * size)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("n", (1, 2, 3, 5, 16, 34))
def test_eigenvalues_of_general_matrices(n, dtype):
    cycle = np.roll(np.eye(n), 1, 0)
    a = matrices(n, np.float64)
    others = [("cycle", cycle), ("skew", a - a.T), ("companion", np.eye(n, k=-1) + np.outer(np.eye(n)[0], a[0])),
              ("pairs", np.kron(np.eye(n), [[1, 2], [-2, 1]])[:n, :n]), ("lower", np.eye(n, k=-1))]
    for name, kind in [*kinds(n, n), *others]:
        for scale in (1, 1e30, 1e-30):
            wanted = kind.astype(dtype)
            w, v = (t.numpy().astype(np.float64) for t in L.eig(Tensor((kind * scale).astype(dtype))))
            w, v = (w[..., 0] + 1j * w[..., 1]) / dtype(scale), v[..., 0] + 1j * v[..., 1]
            size = max(1, np.linalg.norm(wanted, 2))
            # Steps with two shifts square the matrix: eigenvalues of 10^-14 of it are lost in that.
            near = max(30 * TOLERANCE[dtype], 1e-9 if name == "graded" else 0)
            close(np.linalg.norm(v, axis=0), np.ones(n), 30 * TOLERANCE[dtype])
            assert np.abs(wanted @ v - v * w).max() <= near * size
            assert abs(w.sum() - np.trace(wanted)) <= near * size * n
            assert (np.sort_complex(w) == np.sort_complex(w.conj())).all()
            assert (v[:, w.imag == 0].imag == 0).all()


@pytest.mark.parametrize("batch", ((0,), (5,), (2, 3)))
def test_batches_of_orthogonal_factors(batch):
    a = matrices(9, np.float64, batch, columns=7)
    near = 1e-12
    u, s, vt = (t.numpy() for t in L.svd(Tensor(a), full_matrices=False))
    close(u * s[..., None, :] @ vt, a, near)
    q, r = (t.numpy() for t in L.qr(Tensor(a)))
    close(q @ r, a, near)
    p = positive(6, np.float64, batch)
    w, v = (t.numpy() for t in L.eigh(Tensor(p)))
    close(v * w[..., None, :] @ v.swapaxes(-1, -2), p, near)


# ---- derivatives

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
    "qr": (lambda n: [matrices(n, np.float64, columns=max(1, n - 2))], lambda a: by_columns(*L.qr(a)),
           lambda a: by_columns(*T.linalg.qr(a))),
    "qr, wide": (lambda n: [well(n, np.float64)[:(n + 1) // 2]], lambda a: by_columns(*L.qr(a)),
                 lambda a: by_columns(*T.linalg.qr(a))),
    "eigh": (lambda n: [np.diag(np.arange(n)) + positive(n, np.float64) / n], lambda a: by_columns(*L.eigh((a + a.T) / 2)),
             lambda a: by_columns(*T.linalg.eigh((a + a.mT) / 2))),
    "svd": (lambda n: [spread(n, max(1, n - 2))], lambda a: by_columns(*L.svd(a, full_matrices=False)),
            lambda a: by_columns(*T.linalg.svd(a, full_matrices=False))),
    "svd, wide": (lambda n: [spread(n, max(1, n - 2)).T.copy()], lambda a: by_columns(*L.svd(a, full_matrices=False)),
                  lambda a: by_columns(*T.linalg.svd(a, full_matrices=False))),
    "svd, square": (lambda n: [spread(n, n)], lambda a: by_columns(*L.svd(a)), lambda a: by_columns(*T.linalg.svd(a))),
    "pinv": (lambda n: [spread(n, max(1, n - 2))], L.pinv, lambda a: T.linalg.pinv(a)),
    "pinv, wide": (lambda n: [spread(n, max(1, n - 2)).T.copy()], L.pinv, lambda a: T.linalg.pinv(a)),
    "lstsq": (lambda n: [spread(n, max(1, n - 2)), matrices(n, np.float64, seed=9, columns=2)], L.lstsq,
              lambda a, b: T.linalg.pinv(a) @ b),
}


def by_columns(*factors):
    """What does not depend on the vectors' signs."""
    return sum((x * x * like(x)).sum() for x in factors)


def like(x):
    w = weights(tuple(x.shape))
    return Tensor(w, dtype=dtypes.float64) if isinstance(x, Tensor) else T.tensor(w)


def spread(m, n):
    """Singular values well apart from each other."""
    u, v = (np.linalg.qr(matrices(k, np.float64, seed=4))[0] for k in (m, n))
    return (u[:, :n] * (1 + np.arange(n))) @ v / n


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


def test_nothing_is_asked_of_vectors_of_equal_values():
    """Functions of all eigenvalues, and of all singular values, have derivatives where these are equal."""
    a = np.eye(6) * 2
    x = Tensor(a, requires_grad=True)
    close((L.eigh(x)[0] ** 3).sum().gradient(x)[0], 12 * np.eye(6), 1e-12)
    close((L.svd(x)[1] ** 3).sum().gradient(x)[0], 12 * np.eye(6), 1e-12)
    close(L.pinv(x).sum().gradient(x)[0], np.full((6, 6), -.25), 1e-12)
