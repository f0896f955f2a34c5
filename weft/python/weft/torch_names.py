"""PyTorch's names for what Tensor has under other names or says in a line: put on Tensor by weft/tensor.py, and
into the stubs by make_stub.py, which reads this file. ALIASES are the same methods; the functions are methods;
IN_PLACE are names of methods whose result is written to the tensor itself: x.add_(1) is x.assign(x.add(1))."""
from __future__ import annotations

import functools
import inspect
import math
import typing
from typing import Any

from weft._core import ArgumentError, DTypeError, Tensor, is_float_dtype, linalg

if typing.TYPE_CHECKING:
    import builtins
    from collections.abc import Sequence

    from weft._core import DType

ALIASES = {
    "absolute": "abs", "negative": "neg", "fix": "trunc", "sgn": "sign", "arccos": "acos", "arccosh": "acosh",
    "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan", "arctan2": "atan2", "arctanh": "atanh",
    "multiply": "mul", "subtract": "sub", "divide": "div", "true_divide": "div", "remainder": "mod", "greater": "gt",
    "greater_equal": "ge", "less": "lt", "less_equal": "le", "not_equal": "ne", "bitwise_left_shift": "lshift",
    "bitwise_right_shift": "rshift", "amax": "max", "amin": "min", "argwhere": "nonzero", "swapaxes": "transpose",
    "swapdims": "transpose", "moveaxis": "movedim", "tile": "repeat", "split_with_sizes": "split", "ndimension": "dim",
    "nelement": "numel", "type": "cast", "expit": "sigmoid", "concat": "cat", "concatenate": "cat",
    "ger": "outer",
}

# Methods of arithmetic and others whose result replaces the elements: the name with a _ behind it.
IN_PLACE = """
    abs acos acosh add addcdiv addcmul addmm asin asinh atan atan2 atanh bitwise_and bitwise_not bitwise_or bitwise_xor
    ceil clamp clip copysign cos cosh cumprod cumsum deg2rad digamma div erf erfc erfinv exp exp2 expm1 floor fmod frac
    heaviside hypot index_add index_copy index_fill leaky_relu lerp lgamma log log10 log1p log2 logical_not
    masked_fill masked_scatter maximum minimum mod mul multiply nan_to_num neg negative pow put rad2deg reciprocal relu
    remainder round rsqrt scatter scatter_add scatter_reduce selu sigmoid sign silu sin sinc sinh sqrt square sub
    subtract tan tanh tril triu trunc xlogy
    """.split()


# ---- shapes

def dim(self: Tensor) -> builtins.int:
    """ndim."""
    return self.ndim


def ravel(self: Tensor) -> Tensor:
    """flatten()."""
    return self.flatten()


def t(self: Tensor) -> Tensor:
    """A matrix with its axes exchanged; fewer axes stay."""
    if self.ndim > 2:
        raise ArgumentError(f"[t] takes at most two axes: got shape {self.shape}; use transpose()")
    return self.T


def narrow(self: Tensor, dim: builtins.int, start: builtins.int, length: builtins.int) -> Tensor:
    """[start, start + length) of an axis."""
    size = int(self.size(dim))
    begin = start + size if start < 0 else start
    if length < 0 or begin < 0 or begin + length > size:
        raise ArgumentError(f"[narrow] {length} elements from {start} on are not within axis {dim} of shape {self.shape}")
    key: list[Any] = [slice(None)] * self.ndim
    key[dim] = slice(begin, begin + length)
    return self[tuple(key)]


def select(self: Tensor, dim: builtins.int, index: builtins.int) -> Tensor:
    """The slice at one position of an axis, without it."""
    self.size(dim)
    key: list[Any] = [slice(None)] * self.ndim
    key[dim] = index
    return self[tuple(key)]


def expand_as(self: Tensor, other: Tensor) -> Tensor:
    """expand(other.shape)."""
    return self.expand(other.shape)


def view_as(self: Tensor, other: Tensor) -> Tensor:
    """reshape(other.shape)."""
    return self.reshape(other.shape)


def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """reshape(other.shape)."""
    return self.reshape(other.shape)


def broadcast_to(self: Tensor, *shape: Any) -> Tensor:
    """expand(shape)."""
    return self.expand(*shape)


def fliplr(self: Tensor) -> Tensor:
    """flip() of axis 1."""
    return self.flip(1)


def flipud(self: Tensor) -> Tensor:
    """flip() of axis 0."""
    return self.flip(0)


def _split_along(name: str, x: Tensor, sections: builtins.int | Sequence[builtins.int], axis: builtins.int) -> list[Tensor]:
    if isinstance(sections, int) and sections > 0 and x.size(axis) % sections:
        raise ArgumentError(f"[{name}] axis {axis} of shape {x.shape} has no {sections} equal parts: use tensor_split()")
    return x.tensor_split(sections, axis)


def hsplit(self: Tensor, sections: builtins.int | Sequence[builtins.int]) -> list[Tensor]:
    """Equal parts, or those between places, along axis 1, of one axis along that."""
    return _split_along("hsplit", self, sections, 0 if self.ndim == 1 else 1)


def vsplit(self: Tensor, sections: builtins.int | Sequence[builtins.int]) -> list[Tensor]:
    """Equal parts, or those between places, along axis 0."""
    return _split_along("vsplit", self, sections, 0)


def dsplit(self: Tensor, sections: builtins.int | Sequence[builtins.int]) -> list[Tensor]:
    """Equal parts, or those between places, along axis 2."""
    return _split_along("dsplit", self, sections, 2)


def diagflat(self: Tensor, offset: builtins.int = 0) -> Tensor:
    """A matrix with all elements on a diagonal."""
    return self.flatten().diag(offset)


# ---- dtypes, devices, what a tensor is

def type_as(self: Tensor, other: Tensor) -> Tensor:
    """cast(other.dtype)."""
    return self.cast(other.dtype)


def byte(self: Tensor) -> Tensor:
    """cast() to uint8."""
    return self.cast("uint8")


def char(self: Tensor) -> Tensor:
    """cast() to int8."""
    return self.cast("int8")


def cpu(self: Tensor) -> Tensor:
    """to("CPU")."""
    return self.to("CPU")


def is_contiguous(self: Tensor) -> builtins.bool:
    """True: what a tensor's elements are read from is in row-major order, whatever made it."""
    return True


def equal(self: Tensor, other: Tensor) -> builtins.bool:
    """Whether shapes and all elements are equal."""
    return self.shape == other.shape and builtin_bool((self == other).all().item())


def new_zeros(self: Tensor, *shape: Any, dtype: DType | str | None = None) -> Tensor:
    """Zeros of this one's dtype and device."""
    return Tensor.zeros(*shape, dtype=self.dtype if dtype is None else dtype, device=self.device)


def new_ones(self: Tensor, *shape: Any, dtype: DType | str | None = None) -> Tensor:
    """Ones of this one's dtype and device."""
    return Tensor.ones(*shape, dtype=self.dtype if dtype is None else dtype, device=self.device)


def new_empty(self: Tensor, *shape: Any, dtype: DType | str | None = None) -> Tensor:
    """empty() of this one's dtype and device."""
    return Tensor.empty(*shape, dtype=self.dtype if dtype is None else dtype, device=self.device)


def new_full(self: Tensor, shape: Sequence[builtins.int], fill_value: builtins.float,
             dtype: DType | str | None = None) -> Tensor:
    """full() of this one's dtype and device."""
    return Tensor.full(shape, fill_value, dtype=self.dtype if dtype is None else dtype, device=self.device)


def new_tensor(self: Tensor, data: Any, dtype: DType | str | None = None) -> Tensor:
    """Tensor(data) of this one's dtype and device."""
    return Tensor(data, dtype=self.dtype if dtype is None else dtype, device=self.device)


# ---- arithmetic

def positive(self: Tensor) -> Tensor:
    """This tensor."""
    return self


def floor_divide(self: Tensor, other: Tensor | builtins.float) -> Tensor:
    """self // other."""
    return self // other


def float_power(self: Tensor, exponent: Tensor | builtins.float) -> Tensor:
    """self ** exponent in float64."""
    return self.double() ** exponent


def ldexp(self: Tensor, other: Tensor | builtins.float) -> Tensor:
    """self * 2 ** other."""
    return self * Tensor.exp2(other if isinstance(other, Tensor) else Tensor(other))


def nextafter(self: Tensor, other: Tensor) -> Tensor:
    """The next number of the dtype towards other: of equals other, NaN with NaN. Without gradient."""
    bits = self.bitcast(f"int{self.dtype.bitsize}")
    grows = (other > self) == (self > 0)
    moved = (bits + grows.where(1, -1)).cast(bits.dtype).bitcast(self.dtype)
    smallest = Tensor.ones_like(bits).bitcast(self.dtype).copysign(other)
    found = (self == other).where(other, (self == 0).where(smallest, moved))
    return (self.isnan() | other.isnan()).where(math.nan, found)


def isposinf(self: Tensor) -> Tensor:
    """Whether each is infinity."""
    return self.isinf(True, False)


def isneginf(self: Tensor) -> Tensor:
    """Whether each is -infinity."""
    return self.isinf(False, True)


def clamp_min(self: Tensor, min: Tensor | builtins.float) -> Tensor:
    """clamp(min)."""
    return self.clamp(min)


def clamp_max(self: Tensor, max: Tensor | builtins.float) -> Tensor:
    """clamp(None, max)."""
    return self.clamp(None, max)


def logit(self: Tensor, eps: builtins.float | None = None) -> Tensor:
    """log(x / (1 - x)), the inverse of sigmoid; with eps of x within [eps, 1 - eps]."""
    x = self if eps is None else self.clamp(eps, 1 - eps)
    return x.log() - (-x).log1p()


def glu(self: Tensor, dim: builtins.int = -1) -> Tensor:
    """The first half of an axis times the sigmoid of the second (Dauphin et al. 2017)."""
    if int(self.size(dim)) % 2:
        raise ArgumentError(f"[glu] axis {dim} of shape {self.shape} has no halves")
    a, b = self.chunk(2, dim)
    return a * b.sigmoid()


def prelu(self: Tensor, weight: Tensor) -> Tensor:
    """leaky_relu() whose slopes are one number, or one for each channel (axis 1). He et al. 2015."""
    slope = weight.reshape(1, -1, *(1,) * (self.ndim - 2)) if weight.numel() > 1 else weight.reshape(())
    return (self > 0).where(self, slope * self)


# ---- reductions

def aminmax(self: Tensor, dim: builtins.int | None = None, keepdim: builtins.bool = False) -> tuple[Tensor, Tensor]:
    """The smallest and the largest."""
    return self.min(dim, keepdim), self.max(dim, keepdim)


def msort(self: Tensor) -> Tensor:
    """Sorted along axis 0."""
    return self.sort(0)[0]


# ---- products

def _of_rank(name: str, x: Tensor, rank: builtins.int) -> None:
    if x.ndim != rank:
        raise ArgumentError(f"[{name}] a tensor of {rank} axes is wanted: got shape {x.shape}")


def mm(self: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices."""
    _of_rank("mm", self, 2)
    _of_rank("mm", mat2, 2)
    return self @ mat2


def bmm(self: Tensor, mat2: Tensor) -> Tensor:
    """The products of as many matrices: (b, n, m) and (b, m, p)."""
    _of_rank("bmm", self, 3)
    _of_rank("bmm", mat2, 3)
    if self.shape[0] != mat2.shape[0]:
        raise ArgumentError(f"[bmm] {self.shape[0]} matrices and {mat2.shape[0]}: give as many")
    return self @ mat2


def mv(self: Tensor, vec: Tensor) -> Tensor:
    """A matrix times a vector."""
    _of_rank("mv", self, 2)
    _of_rank("mv", vec, 1)
    return self @ vec


def vdot(self: Tensor, other: Tensor) -> Tensor:
    """The sum of the products of two vectors."""
    _of_rank("vdot", self, 1)
    _of_rank("vdot", other, 1)
    return self @ other


def _scaled(x: Tensor, factor: builtins.float) -> Tensor:
    return x if factor == 1 else x * factor


def _plus(x: Tensor, beta: builtins.float, product: Tensor, alpha: builtins.float) -> Tensor:
    """beta x + alpha product; with beta 0 whatever x is."""
    scaled = _scaled(product, alpha)
    return scaled.expand(scaled.shape) if beta == 0 else _scaled(x, beta) + scaled


def addmm(self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Tensor:
    """beta * self + alpha * mat1 @ mat2."""
    return _plus(self, beta, mm(mat1, mat2), alpha)


def addmv(self: Tensor, mat: Tensor, vec: Tensor, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Tensor:
    """beta * self + alpha * mat @ vec."""
    return _plus(self, beta, mv(mat, vec), alpha)


def addr(self: Tensor, vec1: Tensor, vec2: Tensor, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Tensor:
    """beta * self + alpha * vec1.outer(vec2)."""
    return _plus(self, beta, vec1.outer(vec2), alpha)


def baddbmm(self: Tensor, batch1: Tensor, batch2: Tensor, *, beta: builtins.float = 1,
            alpha: builtins.float = 1) -> Tensor:
    """beta * self + alpha * batch1 @ batch2."""
    return _plus(self, beta, bmm(batch1, batch2), alpha)


def addbmm(self: Tensor, batch1: Tensor, batch2: Tensor, *, beta: builtins.float = 1,
           alpha: builtins.float = 1) -> Tensor:
    """beta * self + alpha * the sum of batch1 @ batch2."""
    return _plus(self, beta, bmm(batch1, batch2).sum(0), alpha)


# ---- linear algebra

def det(self: Tensor) -> Tensor:
    """weft.linalg.det()."""
    return linalg.det(self)


def logdet(self: Tensor) -> Tensor:
    """The determinant's logarithm, NaN where it is negative."""
    sign, log = linalg.slogdet(self)
    return (sign < 0).where(math.nan, log)


def slogdet(self: Tensor) -> tuple[Tensor, Tensor]:
    """weft.linalg.slogdet()."""
    return linalg.slogdet(self)


def inverse(self: Tensor) -> Tensor:
    """weft.linalg.inv()."""
    return linalg.inv(self)


def pinverse(self: Tensor, rcond: builtins.float = 1e-6) -> Tensor:
    """weft.linalg.pinv()."""
    return linalg.pinv(self, rcond)


def matrix_power(self: Tensor, n: builtins.int) -> Tensor:
    """weft.linalg.matrix_power()."""
    return linalg.matrix_power(self, n)


def cholesky(self: Tensor) -> Tensor:
    """weft.linalg.cholesky()."""
    return linalg.cholesky(self)


# ---- writing

def copy_(self: Tensor, src: Any) -> Tensor:
    """Replaces the elements by src's, broadcast and cast."""
    return self.assign(src)


def fill_(self: Tensor, value: Tensor | builtins.float) -> Tensor:
    """Replaces all elements by one number."""
    return self.assign(value)


def zero_(self: Tensor) -> Tensor:
    """Replaces all elements by 0."""
    return self.assign(0)


def fill_diagonal_(self: Tensor, fill_value: builtins.float) -> Tensor:
    """Replaces the diagonal of a matrix."""
    _of_rank("fill_diagonal_", self, 2)
    rows, columns = Tensor.arange(self.shape[0]).unsqueeze(1), Tensor.arange(self.shape[1])
    return self.assign((rows == columns).where(fill_value, self))


def uniform_(self: Tensor, low: builtins.float = 0.0, high: builtins.float = 1.0) -> Tensor:
    """Replaces the elements by uniform ones in [low, high)."""
    return self.assign(Tensor.uniform(*self.shape, low=low, high=high, dtype=self.dtype))


def normal_(self: Tensor, mean: builtins.float = 0.0, std: builtins.float = 1.0) -> Tensor:
    """Replaces the elements by normal ones."""
    return self.assign(Tensor.normal(*self.shape, mean=mean, std=std, dtype=self.dtype))


def detach_(self: Tensor) -> Tensor:
    """From here on this is detach()."""
    return self.replace(self.detach())


builtin_bool = bool


def _written(name: str, method: Any) -> Any:
    @functools.wraps(method, assigned=())
    def in_place(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        result = method(self, *args, **kwargs)
        if is_float_dtype(result.dtype) and not is_float_dtype(self.dtype):
            raise DTypeError(f"[{name}] the result is {result.dtype.name} and cannot be written to {self.dtype.name}")
        if result.shape != self.shape:
            raise ArgumentError(f"[{name}] the result has shape {result.shape} and the tensor {self.shape}")
        return self.assign(result)
    in_place.__name__ = in_place.__qualname__ = name
    in_place.__doc__ = f"Replaces the elements by those of {name[:-1]}()."
    return in_place


def _of_tensors(f: Any) -> Any:
    """f, which raises a TypeError for what is no Tensor where its annotations want one, as the methods in C++ do."""
    wanted = [(i, name) for i, name in enumerate(inspect.signature(f).parameters) if f.__annotations__.get(name) == "Tensor"]

    @functools.wraps(f)
    def checked(*args: Any, **kwargs: Any) -> Any:
        for i, name in wanted:
            given = args[i] if i < len(args) else kwargs.get(name)
            if not isinstance(given, Tensor) and (i < len(args) or name in kwargs):
                raise TypeError(f"{f.__name__}(): {name} must be a Tensor, not {type(given).__name__}; "
                                "make one with Tensor(...)")
        return f(*args, **kwargs)
    return checked


def members() -> dict[str, Any]:
    """By name, what is put on Tensor."""
    here = dict(globals())
    found = {name: _of_tensors(f) for name, f in here.items() if getattr(f, "__module__", None) == __name__ and callable(f)
             and not name.startswith("_") and name != "members"}
    found |= {name: found.get(other) or getattr(Tensor, other) for name, other in ALIASES.items()}
    found |= {f"{name}_": _written(f"{name}_", found.get(name) or getattr(Tensor, name)) for name in IN_PLACE}
    return found
