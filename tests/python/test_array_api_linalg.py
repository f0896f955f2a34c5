"""linalg and the products of the Python array API standard against array-api-strict and NumPy."""
import itertools
import math

import numpy as np
import pytest

from array_api_oracle import (axes_for, FLOATS, REAL, SHAPES, check, data, defaults_of_the_oracle)
import weft.array_api as xp


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
