"""What rows are: columns, drawn operands, views of them, and how close
a result has to be. Oracles see the operands that weft sees, rounded to the dtype, in float64: its own result is then
the only thing that is rounded. Integers they see in their own dtype, where they wrap as weft's do."""
import dataclasses
import functools
import math
from collections.abc import Callable

import numpy as np

from conftest import torch
from weft import Tensor, dtypes

BOOL, INTS, F8, FLOATS = (dtypes.bool,), dtypes.ints, dtypes.fp8s, dtypes.floats
WIDE = (dtypes.float32, dtypes.float64)
WHOLE = (*BOOL, *INTS)
NUMBERS = (*INTS, *FLOATS)
ALL = (*WHOLE, *FLOATS)


# ---- values of a dtype

def is_float(dtype) -> bool:
    return dtypes.is_float(dtype)


def is_whole(dtype) -> bool:
    return not is_float(dtype)


@functools.cache
def grid(dtype) -> np.ndarray:
    """The finite values of a float of 8 or 16 bits, ascending, decoded here."""
    values = decoded(np.arange(2**dtype.bitsize), dtype)
    return np.unique(values[np.isfinite(values)])


def decoded(codes: np.ndarray, dtype) -> np.ndarray:
    """The float64 of the bits of a float of 8 or 16 bits."""
    mantissa_bits = {dtypes.float16: 10, dtypes.bfloat16: 7, dtypes.fp8e4m3: 3, dtypes.fp8e4m3fnuz: 3}.get(dtype, 2)
    exponent_bits = dtype.bitsize - 1 - mantissa_bits
    fnuz = dtype in dtypes.fp8_fnuz
    bias = 2**(exponent_bits - 1) - (not fnuz)
    sign = np.where(codes >> (dtype.bitsize - 1), -1.0, 1.0)
    exponent, mantissa = codes >> mantissa_bits & (2**exponent_bits - 1), codes & (2**mantissa_bits - 1)
    value = np.where(exponent == 0, np.ldexp(mantissa.astype(float), 1 - bias - mantissa_bits),
                     np.ldexp(1 + mantissa / 2**mantissa_bits, exponent - bias)) * sign
    if fnuz:  # the code of -0 is the one NaN
        return np.where(codes == 2**(dtype.bitsize - 1), -np.nan, value)
    if dtype == dtypes.fp8e4m3:  # no infinities, one NaN of each sign
        return np.where((codes & 0x7F) == 0x7F, np.copysign(np.nan, sign), value)
    top = exponent == 2**exponent_bits - 1
    return np.where(top, np.where(mantissa == 0, sign * np.inf, np.copysign(np.nan, sign)), value)


def rounded(x, dtype) -> np.ndarray:
    """Float64 to the nearest value of a float dtype, halves to even."""
    x = np.asarray(x, dtype=np.float64)
    if dtype in (dtypes.float16, *WIDE):
        with np.errstate(over="ignore"):
            return x.astype(dtype.name).astype(np.float64)
    known = grid(dtype)
    above = np.clip(np.searchsorted(known, x), 1, len(known) - 1)
    low, high = known[above - 1], known[above]
    # Neighbours have codes of which one is even, and so have their places from 0.
    even = (np.abs(above - np.searchsorted(known, 0.0)) % 2) == 0
    nearest = np.where((x - low > high - x) | ((x - low == high - x) & even), high, low)
    half = (known[-1] - known[-2]) / 2
    beyond = np.abs(x) >= known[-1] + half
    most = known[-1] if dtype == dtypes.fp8e4m3 else np.inf  # which saturates
    infinite = np.nan if dtype in dtypes.fp8_fnuz else np.copysign(most, x)
    nearest = nearest + 0.0 if dtype in dtypes.fp8_fnuz else np.copysign(nearest, x)  # which have no -0
    return np.where(np.isnan(x), x, np.where(beyond, infinite, nearest))


def eps(dtype) -> float:
    return 2.0**-dtypes.finfo(dtype)[1]


def smallest(dtype) -> float:
    """The least number above 0."""
    return {dtypes.float32: 2.0**-149,
        dtypes.float64: 2.0**-1074}.get(dtype) or float(grid(dtype)[grid(dtype) > 0][0])


def numpys(dtype) -> np.dtype:
    """How oracles see elements of a dtype."""
    return np.dtype(np.float64 if is_float(dtype) else dtype.name)


def tensor(x: np.ndarray, dtype) -> Tensor:
    return Tensor(x, dtype=dtype)


# ---- rows

def same(dtype):
    return dtype


def counted(dtype):
    """Of bools int32: what they meet whole numbers in."""
    return dtypes.int32 if dtype == dtypes.bool else dtype


def boolean(dtype):
    return dtypes.bool


def floating(dtype):
    """Of integers float32, as tinygrad's and PyTorch's functions give."""
    return dtype if is_float(dtype) else dtypes.float32


def summed(dtype):
    if is_float(dtype):
        return dtype
    wide = dtypes.uint32 if dtypes.is_unsigned(dtype) else dtypes.int32
    return wide if dtype.bitsize < 32 else dtype


def position(dtype):
    return dtypes.int32


@dataclasses.dataclass(frozen=True)
class Bad:
    """A call that must fail, with `kind`; and the same call of another library, which fails the same way."""
    call: Callable
    kind: type
    numpy: Callable | None = None
    torch: Callable | None = None


@dataclasses.dataclass(frozen=True)
class Row:
    ours: Callable
    numpy: Callable | None = None  # None: check() alone says what is right
    torch: Callable | None = None
    shapes: tuple = ()          # each a tuple with one shape per operand
    takes: tuple = ALL
    gives: Callable = same      # of the dtype, or a tuple of such for several results
    domain: tuple = (-3.0, 3.0)  # of all operands, or one pair for each
    grad: bool = False
    ulps: float = 2             # how far from the oracle, in units in the last place of the result
    of_most: bool = False       # ... in units of the largest magnitude there is: sums of many terms
    whole_range: bool | None = None  # integers of any size; None: where results are integers
    refuses: str = ""           # why it takes less than the other libraries
    check: Callable | None = None    # check(dtype, *results) beyond the oracle
    bad: tuple = ()
    views: bool = True          # False: operands have a structure that views of random numbers lack
    torch_takes: tuple = ()     # what PyTorch is compared at; () for all it offers
    steep: bool = False         # a little more or less of an operand may change the result by any amount

    def results(self, dtype) -> tuple:
        gives = self.gives if isinstance(self.gives, tuple) else None
        return tuple(g(dtype) for g in gives) if gives else self.gives(dtype)

    def gives_whole(self, dtype) -> bool:
        found = self.results(dtype)
        return all(is_whole(d) for d in (found if isinstance(found, tuple) else (found,)))


ONE = (((),), ((0,),), ((1,),), ((5,),), ((2, 3),), ((2, 0, 3),))
LINES = (((),), ((5,),), ((2, 3),), ((3, 1, 4),))  # for what has axes
TWO = (((), ()), ((3,), (3,)), ((3, 1), (4,)), ((2, 1, 3), (4, 1)), ((0, 3), (1, 3)), ((), (2, 2)))
THREE = (((3,), (3,), (3,)), ((2, 1), (3,), ()), ((), (2, 2), (2, 1)), ((0, 2), (2,), (1, 2)))


# ---- operands

def bounds(row: Row, operand: int) -> tuple[float, float]:
    return row.domain[operand] if isinstance(row.domain[0], tuple) else row.domain


def drawn(row: Row, dtype, shape, operand: int, rng) -> np.ndarray:
    """Elements where the row has a definite value, as oracles see them. Nothing is drawn and thrown away."""
    low, high = bounds(row, operand)
    if dtype == dtypes.bool:
        return rng.random(shape) < 0.6
    if is_float(dtype):
        return rounded(rng.uniform(low, high, shape), dtype)
    whole_range = row.gives_whole(dtype) if row.whole_range is None else row.whole_range
    if whole_range:
        low, high = dtype.min, dtype.max
        some = rng.integers(low, high, shape, dtype=dtype.name, endpoint=True)
        edges = rng.choice(np.array([low, high, 0, 1, low + 1], dtype=dtype.name), shape)
        return np.where(rng.random(shape) < 0.3, edges, some)
    return rng.integers(max(math.ceil(low), dtype.min), min(math.floor(high), dtype.max), shape, dtype=dtype.name,
                        endpoint=True)


def _last(shape, change):
    return (*shape[:-1], change(shape[-1]))


# name: (the shape that a view of this shape is taken of, the view: of a Tensor and of an array alike)
VIEWS = {
    "whole": (lambda s: s, lambda t, s, fill: t),
    "transposed": (lambda s: s[::-1], lambda t, s, fill: t.T if t.ndim < 2 else _reversed_axes(t)),
    "backwards": (lambda s: _last(s, lambda n: 2 * n), lambda t, s, fill: t[..., ::-2]),
    "expanded": (lambda s: (1, *s[1:]), lambda t, s, fill: t.expand(s) if isinstance(t,
        Tensor) else np.broadcast_to(t, s)),
    "cut": (lambda s: _last(s, lambda n: n + 2), lambda t, s, fill: t[..., 1:-1]),
    "padded": (lambda s: _last(s, lambda n: max(n - 1, 0)), lambda t, s, fill: t if t.shape == s else _padded(t,
        fill)),
}


def _reversed_axes(t):
    order = tuple(reversed(range(t.ndim)))
    return t.permute(order) if isinstance(t, Tensor) else t.transpose(order)


def _padded(t, fill):
    front = [(0, 0)] * (t.ndim - 1) + [(1, 0)]
    return t.pad(tuple(front), value=fill) if isinstance(t, Tensor) else np.pad(t, front, constant_values=fill)


@dataclasses.dataclass(frozen=True)
class Operand:
    """A view of a drawn base: what oracles see of it, and where the elements lie in the base."""
    base: np.ndarray
    dtype: object
    shape: tuple
    view: str
    fill: float  # what a padded view has in front

    def viewed(self, of, fill=None):
        if not self.shape:
            return of[1]
        return VIEWS[self.view][1](of, self.shape, self.fill if fill is None else fill)

    @property
    def array(self) -> np.ndarray:
        return np.array(self.viewed(self.base))

    def pulled_back(self, gradient: np.ndarray) -> np.ndarray:
        """The gradient of the base from that of the view."""
        places = self.viewed(np.arange(self.base.size).reshape(self.base.shape) + 1, fill=0)
        whole = np.zeros(self.base.size + 1)
        np.add.at(whole, np.asarray(places).reshape(-1), gradient.reshape(-1))
        return whole[1:].reshape(self.base.shape)


def operand(row: Row, dtype, shape, place: int, view: str, fill: Callable) -> Operand:
    """fill(place, shape) makes the base."""
    view = view if row.views else "whole"
    base_shape = VIEWS[view][0](shape) if shape else (3,)
    low, high = bounds(row, place)
    middle = 1.0 if low <= 1 <= high else (low + high) / 2
    return Operand(fill(place, base_shape), dtype, shape, view, float(rounded(middle,
        dtype)) if is_float(dtype) else 1)


# ---- comparison

def as_tuple(x) -> tuple:
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def numbers(y) -> np.ndarray:
    """A result as NumPy's; a number or a tuple of sizes as it is."""
    return y.numpy() if isinstance(y, Tensor) else np.asarray(y)


def wanted_as(dtype, want) -> np.ndarray:
    """What an oracle gave in the dtype of the result: integers wrap, floats are left as they are."""
    want = np.asarray(want)
    if is_float(dtype):
        return want.astype(np.float64)
    return want.astype(bool) if dtype == dtypes.bool else want.astype(dtype.name)


def assert_near(got: np.ndarray, want: np.ndarray, dtype, row: Row, where: str, most=0.0):
    assert got.shape == want.shape, f"{where}: shape {got.shape}, wanted {want.shape}"
    if is_whole(dtype):
        np.testing.assert_array_equal(got, want, err_msg=where)
        return
    got = got.astype(np.float64)
    with np.errstate(all="ignore"):
        near = rounded(want, dtype)
        scale = np.maximum(np.abs(want), most if row.of_most else 0)
        allowed = row.ulps * np.maximum(eps(dtype) * scale, smallest(dtype))
        ok = (got == near) | (np.isnan(got) & np.isnan(near)) | (np.isfinite(want) & (np.abs(got - want) <= allowed))
    if not ok.all():
        at = tuple(np.argwhere(~ok)[0])
        raise AssertionError(f"{where}: got {got[at]!r}, wanted {want[at]!r} at {at} ({np.count_nonzero(~ok)} of "
                             f"{ok.size} differ)\ngot    {got}\nwanted {want}")


def largest(arrays) -> float:
    """The largest magnitude among operands and results."""
    found = 0.0
    for a in arrays:
        a = np.abs(np.asarray(a, dtype=np.float64))
        found = max(found, float(np.max(a, initial=0, where=np.isfinite(a))))
    return found


def torchs(x: np.ndarray, requires_grad=False):
    """A tensor of PyTorch's for what oracles see."""
    t = torch.from_numpy(np.array(x, order="C"))
    return t.requires_grad_() if requires_grad else t
