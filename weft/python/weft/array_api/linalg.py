"""The standard's linear algebra, on matrices in the last two axes. Where it would give complex numbers (eig, eigvals)
there is nothing here: weft.linalg.eig has them as a last axis of 2."""
import builtins
import math
import typing

from weft import linalg
from weft.array_api.data_types import rank, result_type
from weft.array_api.elementwise import met
from weft.array_api.manipulation import axes_of, broadcast_shapes, matrix_transpose
from weft.array_api.statistics import accumulator
from weft.dtype import dtypes
from weft.tensor import Tensor

__all__ = ["cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul", "matrix_norm", "matrix_power",
           "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot",
           "trace", "vecdot", "vector_norm"]


class EighResult(typing.NamedTuple):
    """eigh()."""
    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(typing.NamedTuple):
    """qr()."""
    Q: Tensor
    R: Tensor


class SlogdetResult(typing.NamedTuple):
    """slogdet()."""
    sign: Tensor
    logabsdet: Tensor


class SVDResult(typing.NamedTuple):
    """svd()."""
    U: Tensor
    S: Tensor
    Vh: Tensor


# ---- products

def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The products of matrices, or of vectors with them; axes in front broadcast."""
    dtype = result_type(x1, x2)
    if x1.ndim == 0 or x2.ndim == 0:
        raise ValueError(f"matmul: an array without axes is no matrix: {x1.shape} and {x2.shape}; use multiply()")
    return x1.cast(dtype).matmul(x2.cast(dtype)).cast(dtype)


def tensordot(x1: Tensor, x2: Tensor, /, *, axes=2) -> Tensor:
    """Sums of products over axes: so many last ones with as many first ones, or two sequences."""
    dtype = result_type(x1, x2)
    if not isinstance(axes, int):
        axes = [list(axes_of(x, tuple(a))) for x, a in zip((x1, x2), axes)]
    elif axes > min(x1.ndim, x2.ndim) or axes < 0:
        raise ValueError(f"tensordot: {axes} axes of shapes {x1.shape} and {x2.shape}: they have not as many")
    return x1.cast(dtype).tensordot(x2.cast(dtype), axes).cast(dtype)


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Sums of products along an axis, of negative number; the others broadcast."""
    dtype = result_type(x1, x2)
    a, b = (x.cast(dtype).movedim(axis, -1) for x in (x1, x2))
    if a.shape[-1] != b.shape[-1]:
        raise ValueError(f"vecdot: axis {axis} has different sizes in {x1.shape} and {x2.shape}")
    return (a * b).sum(-1, dtype=dtype)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """All products of two vectors."""
    if x1.ndim != 1 or x2.ndim != 1:
        raise ValueError(f"outer: two vectors are wanted, not shapes {x1.shape} and {x2.shape}")
    a, b = met(x1, x2)
    return a.unsqueeze(1) * b


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The vectors that are normal to both, along an axis of three; the others broadcast."""
    shape = broadcast_shapes(x1.shape, x2.shape)
    if x1.shape[axis] != 3 or x2.shape[axis] != 3:
        raise ValueError(f"cross: axis {axis} has three elements, not as in {x1.shape} and {x2.shape}")
    a, b = (x.expand(shape) for x in met(x1, x2))
    return a.cross(b, axes_of(a, axis)[0])


# ---- parts of matrices

def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """A diagonal, right of the main one or, below 0, left of it."""
    rows, columns = (int(size) for size in x.shape[-2:])
    first_row, first_column = max(-offset, 0), max(offset, 0)
    count = max(0, min(rows - first_row, columns - first_column))
    places = Tensor.arange(count) * (columns + 1) + first_row * columns + first_column
    return x.reshape(*x.shape[:-2], rows * columns)[..., places]


def trace(x: Tensor, /, *, offset: int = 0, dtype=None) -> Tensor:
    """The sum of a diagonal. Dtypes as sum()'s."""
    y = diagonal(x, offset=offset).cast(accumulator(x, dtype))
    return y.sum(-1, dtype=y.dtype)


# ---- decompositions

def cholesky(x: Tensor, /, *, upper: builtins.bool = False) -> Tensor:
    """Lower triangular l with l @ l.mT = x (with `upper` l.mT), x symmetric and positive definite."""
    lower = linalg.cholesky(x)
    return lower.mT if upper else lower


def eigh(x: Tensor, /) -> EighResult:
    """Eigenvalues, ascending, and eigenvectors, as columns, of symmetric matrices."""
    return EighResult(*linalg.eigh(x))


def eigvalsh(x: Tensor, /) -> Tensor:
    """Eigenvalues of symmetric matrices, ascending."""
    return linalg.eigh(x)[0]


def qr(x: Tensor, /, *, mode: str = "reduced") -> QRResult:
    """Q of orthonormal columns, "complete" with as many as rows, and an upper triangular R with Q @ R = x."""
    if mode not in ("reduced", "complete"):
        raise ValueError(f"qr: mode is \"reduced\" or \"complete\", not {mode!r}")
    return QRResult(*linalg.qr(x, mode == "complete"))


def svd(x: Tensor, /, *, full_matrices: builtins.bool = True) -> SVDResult:
    """U @ diag(S) @ Vh = x, S descending."""
    return SVDResult(*linalg.svd(x, full_matrices))


def svdvals(x: Tensor, /) -> Tensor:
    """The singular values, descending."""
    return linalg.svd(x, False)[1]


# ---- what is computed of them

def det(x: Tensor, /) -> Tensor:
    """The determinant."""
    return linalg.det(x)


def slogdet(x: Tensor, /) -> SlogdetResult:
    """The determinant's sign, and the logarithm of its size."""
    return SlogdetResult(*linalg.slogdet(x))


def inv(x: Tensor, /) -> Tensor:
    """The inverse."""
    return linalg.inv(x)


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """x of x1 @ x = x2, where x2 is one vector, or matrices."""
    a, b = met(x1, x2)
    batch = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    columns = b.unsqueeze(-1) if b.ndim == 1 else b
    found = linalg.solve(a.expand(*batch, *a.shape[-2:]), columns.expand(*batch, *columns.shape[-2:]))
    return found.squeeze(-1) if b.ndim == 1 else found


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """x @ x @ ..., n times; of the inverse where n is negative."""
    return linalg.matrix_power(x, n)


def _threshold(x: Tensor, values: Tensor, rtol) -> Tensor:
    """Below it a singular value counts as 0: rtol (max(m, n) eps) times the largest one."""
    if rtol is None:
        exponent, mantissa = dtypes.finfo(x.dtype)
        rtol = max(x.shape[-2:]) * 2.0 ** -mantissa
    share = rtol.unsqueeze(-1) if isinstance(rtol, Tensor) and rtol.ndim else rtol
    return values.max(-1, True) * share if values.shape[-1] else values


def matrix_rank(x: Tensor, /, *, rtol=None) -> Tensor:
    """How many singular values are above rtol times the largest."""
    values = svdvals(x)
    return (values > _threshold(x, values, rtol)).sum(-1, dtype=dtypes.default_int)


def pinv(x: Tensor, /, *, rtol=None) -> Tensor:
    """The Moore-Penrose inverse, of singular values above rtol times the largest."""
    u, s, vh = svd(x, full_matrices=False)
    kept = s > _threshold(x, s, rtol)
    inverse = kept.where(1 / kept.where(s, 1), 0)
    return vh.mT @ (inverse.unsqueeze(-1) * u.mT)


# ---- norms

def vector_norm(x: Tensor, /, *, axis=None, keepdims: builtins.bool = False, ord: float = 2) -> Tensor:
    """(sum |x|^ord)^(1 / ord) over axes: inf is the largest, -inf the smallest, 0 how many are not 0."""
    axes = tuple(range(x.ndim)) if axis is None else axes_of(x, axis)
    y = x if rank(x.dtype) == 2 else x.cast(dtypes.default_float)
    size = y.abs()
    if not axes:
        return (size != 0).cast(y.dtype) if ord == 0 else size
    if abs(ord) == math.inf:
        empty = ord > 0 and 0 in (x.shape[a] for a in axes)  # nothing is as large as 0
        return size.sum(axes, keepdims) if empty else (size.max if ord > 0 else size.min)(axes, keepdims)
    if ord == 0:
        return (size != 0).cast(y.dtype).sum(axes, keepdims)
    return size.sum(axes, keepdims) if ord == 1 else (size ** ord).sum(axes, keepdims) ** (1 / ord)


def matrix_norm(x: Tensor, /, *, keepdims: builtins.bool = False, ord="fro") -> Tensor:
    """"fro" is vector_norm(); "nuc" the sum, 2 (-2) the largest (smallest) of the singular values; 1 (-1) the largest
    (smallest) column sum of sizes, inf (-inf) row sum."""
    if ord == "fro" or ord is None:
        return vector_norm(x, axis=(-2, -1), keepdims=keepdims)
    if ord in ("nuc", 2, -2):
        values = svdvals(x)
        found = values.sum(-1) if ord == "nuc" else _extreme(values, ord)
    elif ord in (1, -1, math.inf, -math.inf):
        found = _extreme(x.abs().sum(-2 if abs(ord) == 1 else -1), ord)
    else:
        raise ValueError(f"matrix_norm: ord is \"fro\", \"nuc\", 1, 2, inf or one of these negated, not {ord!r}")
    return found.unsqueeze(-1).unsqueeze(-1) if keepdims else found


def _extreme(sizes: Tensor, ord: float) -> Tensor:
    """The largest along the last axis, of nothing 0; for a negative order the smallest."""
    if ord > 0 and sizes.shape[-1] == 0:
        return sizes.sum(-1)
    return sizes.max(-1) if ord > 0 else sizes.min(-1)
