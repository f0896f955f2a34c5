"""Every operation on every dtype: casts, promotion, arithmetic and comparison of drawn and of special values, against
NumPy (and PyTorch for what NumPy has not). Values are drawn from the ranges where the answer is defined: nothing is
drawn and thrown away."""
import math
import operator

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from conftest import needs_torch
from weft import Tensor, dtypes
from weft.dtype import least_upper_dtype

INTS = dtypes.ints
NUMPYS_FLOATS = (dtypes.float16, dtypes.float32, dtypes.float64)
NUMPYS = (dtypes.bool, *INTS, *NUMPYS_FLOATS)
quickly = settings(max_examples=25, deadline=None, derandomize=True)


def numpys(dtype) -> np.dtype:
    return np.dtype(dtype.name)


def values(dtype):
    """Lists of four elements; of floats also infinities, NaN and numbers too small to be normal."""
    if dtype == dtypes.bool:
        one = st.booleans()
    elif dtypes.is_int(dtype):
        edges = st.sampled_from((dtype.min, dtype.min + 1, dtype.max, dtype.max - 1, 0, 1))
        one = st.integers(dtype.min, dtype.max) | edges
    else:  # by their bits: every one of them is a number
        def of_bits(n: int) -> float:
            return np.array([n], dtype=f"uint{dtype.bitsize}").view(numpys(dtype))[0].item()
        one = st.integers(0, 2**dtype.bitsize - 1).map(of_bits) | st.sampled_from((0.0, -0.0, 1.0, -1.5, math.inf, math.nan))
    return st.lists(one, min_size=4, max_size=4)


@st.composite
def pair(draw, dtype):
    return draw(values(dtype)), draw(values(dtype))


def same(ours: Tensor, wanted: np.ndarray, tolerance=0.0):
    got = ours.numpy()
    assert got.dtype == wanted.dtype
    np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance and 1e-30)


# ---- arithmetic

ANY = {"add": operator.add, "mul": operator.mul, "maximum": np.maximum, "minimum": np.minimum}
NUMBERS = {"sub": operator.sub}
WHOLE = {"bitwise_and": operator.and_, "bitwise_or": operator.or_, "bitwise_xor": operator.xor}
COMPARED = {"lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge, "eq": operator.eq,
            "ne": operator.ne}


def cases(table, kinds):
    return [pytest.param(name, numpy, dtype, id=f"{name}-{dtype.name}") for name, numpy in table.items() for dtype in kinds]


@pytest.mark.parametrize("name, numpy, dtype", cases(ANY | COMPARED, NUMPYS) + cases(NUMBERS, (*INTS, *NUMPYS_FLOATS))
                         + cases(WHOLE, (dtypes.bool, *INTS)))
def test_binary(name, numpy, dtype):
    @quickly
    @given(pair(dtype))
    def check(drawn):
        a, b = (np.array(x, dtype=numpys(dtype)) for x in drawn)
        with np.errstate(all="ignore"):
            same(getattr(Tensor(a), name)(Tensor(b)), numpy(a, b))
    check()


@pytest.mark.parametrize("dtype", INTS, ids=lambda d: d.name)
def test_division_of_integers(dtype):
    @quickly
    @given(values(dtype), st.lists(st.integers(max(dtype.min, -100), -1) if dtype.min < 0 else st.integers(1, 100),
                                   min_size=4, max_size=4), st.lists(st.integers(1, dtype.max), min_size=4, max_size=4))
    def check(dividends, some, large):
        for divisors in (some, large):
            a, b = (np.array(x, dtype=numpys(dtype)) for x in (dividends, divisors))
            with np.errstate(all="ignore"):  # min / -1 wraps
                same(Tensor(a) // Tensor(b), a // b)
                same(Tensor(a) % Tensor(b), a % b)
                wanted = np.array([int(math.trunc(int(x) / int(y))) if abs(int(x)) < 2**50 else
                                   abs(int(x)) // abs(int(y)) * (1 if (x < 0) == (y < 0) else -1) for x, y in zip(a, b)],
                                  dtype=object)
            got = Tensor(a).div(Tensor(b), rounding_mode="trunc").tolist()
            assert [(g - w) % 2**dtype.bitsize for g, w in zip(got, wanted)] == [0] * 4
    check()


@pytest.mark.parametrize("dtype", INTS, ids=lambda d: d.name)
def test_shifts(dtype):
    @quickly
    @given(values(dtype), st.lists(st.integers(0, dtype.bitsize - 1), min_size=4, max_size=4))
    def check(numbers, places):
        a, b = (np.array(x, dtype=numpys(dtype)) for x in (numbers, places))
        same(Tensor(a) << Tensor(b), a << b)
        same(Tensor(a) >> Tensor(b), a >> b)
    check()


@pytest.mark.parametrize("dtype", (dtypes.float32, dtypes.float64), ids=lambda d: d.name)
def test_functions_of_floats(dtype):
    table = {"sqrt": np.sqrt, "exp2": np.exp2, "exp": np.exp, "log2": np.log2, "log": np.log, "sin": np.sin, "trunc": np.trunc,
             "floor": np.floor, "ceil": np.ceil, "round": np.rint, "abs": np.abs, "neg": np.negative, "square": np.square,
             "reciprocal": np.reciprocal, "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite, "tanh": np.tanh}
    tolerance = 4 * np.finfo(numpys(dtype)).eps

    @quickly
    @given(values(dtype), st.sampled_from(sorted(table)))
    def check(drawn, name):
        x = np.array(drawn, dtype=numpys(dtype))
        if name == "sin":  # of numbers that have a period's worth of digits
            x = np.remainder(x, 1e4, out=np.zeros_like(x), where=np.isfinite(x))
        with np.errstate(all="ignore"):
            wanted = table[name](x)
        tiny = np.finfo(numpys(dtype)).smallest_normal
        got = getattr(Tensor(x), name)().numpy()
        assert got.dtype == wanted.dtype
        np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=max(tiny, tolerance if name == "sin" else 0))
    check()


# ---- casts and promotion

def castable(source, target):
    """Elements of source that target has a definite value for: all, but floats only inside of its range."""
    if not dtypes.is_float(source) or not dtypes.is_int(target):
        return values(source)
    low, high = max(target.min, -500), min(target.max, 500)
    return st.lists(st.integers(4 * low, 4 * high).map(lambda n: n / 4), min_size=4, max_size=4)


@pytest.mark.parametrize("target", NUMPYS, ids=lambda d: d.name)
@pytest.mark.parametrize("source", NUMPYS, ids=lambda d: d.name)
def test_casts(source, target):
    @quickly
    @given(castable(source, target))
    def check(drawn):
        x = np.array(drawn, dtype=numpys(source))
        with np.errstate(all="ignore"):
            same(Tensor(x).cast(target), x.astype(numpys(target)))
    check()


@pytest.mark.parametrize("dtype", INTS, ids=lambda d: d.name)
def test_floats_beyond_integers_saturate(dtype):
    x = Tensor([math.inf, -math.inf, math.nan, 1e30, -1e30])
    assert x.cast(dtype).tolist() == [dtype.max, dtype.min, 0, dtype.max, dtype.min]


def lattice():
    """The dtype of two, from the tables of A.9: the wider of one kind, the next signed one for both signs, a float
    for a float."""
    order = {dtypes.float16: 2, dtypes.bfloat16: 2, dtypes.float32: 3, dtypes.float64: 4}
    for a in (dtypes.bool, *INTS, *order):
        for b in (dtypes.bool, *INTS, *order):
            yield a, b, _met(a, b, order)


def _met(a, b, order):
    if a == b or b == dtypes.bool:
        return a
    if a == dtypes.bool:
        return b
    if dtypes.is_float(a) and dtypes.is_float(b):
        return dtypes.float32 if order[a] == order[b] else max(a, b, key=order.get)
    if dtypes.is_float(a) or dtypes.is_float(b):
        return a if dtypes.is_float(a) else b
    if dtypes.is_unsigned(a) == dtypes.is_unsigned(b):
        return max(a, b, key=lambda d: d.bitsize)
    unsigned, signed = (a, b) if dtypes.is_unsigned(a) else (b, a)
    if signed.bitsize > unsigned.bitsize:
        return signed
    wider = {8: dtypes.int16, 16: dtypes.int32, 32: dtypes.int64}
    return wider.get(unsigned.bitsize, dtypes.float32)


def test_promotion():
    for a, b, wanted in lattice():
        assert least_upper_dtype(a, b) == wanted
        x, y = Tensor([1, 0], dtype=a), Tensor([1, 1], dtype=b)
        assert (x + y).dtype == (x * y).dtype == x.maximum(y).dtype == (x == 1).where(x, y).dtype == wanted
        assert (x < y).dtype == dtypes.bool


@pytest.mark.parametrize("dtype", dtypes.all, ids=lambda d: d.name)
def test_numbers_of_pythons_take_the_dtype(dtype):
    x = Tensor([1, 0], dtype=dtype)
    whole = dtype if dtype != dtypes.bool else dtypes.int32
    assert (x + 1).dtype == (1 - x if dtype != dtypes.bool else 1 + x).dtype == x.maximum(1).dtype == whole
    assert (x + 1.5).dtype == (dtype if dtypes.is_float(dtype) else dtypes.float32)
    assert (x * True).dtype == dtype and (x / 2).dtype == (dtype if dtypes.is_float(dtype) else dtypes.float32)


@pytest.mark.parametrize("dtype", dtypes.all, ids=lambda d: d.name)
def test_what_reductions_give(dtype):
    x = Tensor([[1, 0], [1, 1]], dtype=dtype)
    total = (dtype if dtypes.is_float(dtype) else
             least_upper_dtype(dtype, dtypes.uint32 if dtypes.is_unsigned(dtype) else dtypes.int32))
    assert x.sum().dtype == x.cumsum().dtype == x.prod().dtype == total and x.sum().item() == 3
    assert x.max().dtype == x.min(0).dtype == x.sort()[0].dtype == dtype and x.max().item() == 1
    assert x.argmax().dtype == x.sort()[1].dtype == x.nonzero().dtype == dtypes.int32
    assert x.mean().dtype == (dtype if dtypes.is_float(dtype) else dtypes.float32) and x.mean().item() == 0.75
    assert x.any().dtype == x.all().dtype == dtypes.bool


@needs_torch
@pytest.mark.parametrize("name", ("add", "sub", "mul", "div", "maximum"))
def test_bfloat16_is_torchs(name):
    import torch

    @quickly
    @given(st.lists(st.integers(0, 2**16 - 1), min_size=8, max_size=8))
    def check(bits):
        raw = np.array(bits, dtype=np.uint16)
        a, b = Tensor(raw).bitcast(dtypes.bfloat16).split(4)
        ta, tb = torch.from_numpy(raw.view(np.int16)).view(torch.bfloat16).split(4)
        np.testing.assert_array_equal(getattr(a, name)(b).float().numpy(), getattr(torch, name)(ta, tb).float().numpy())
    check()


# ---- where other libraries err

NAN, INF = math.nan, math.inf


def test_not_a_number_wins():
    for x in ([NAN, 1.0, 2.0], [1.0, NAN, 2.0], [1.0, 2.0, NAN], [-INF, NAN, INF]):
        t = Tensor(x)
        assert math.isnan(t.max().item()) and math.isnan(t.min().item())
        assert t.argmax().item() == t.argmin().item() == int(np.argmax(np.isnan(x)))
        np.testing.assert_array_equal(t.sort()[0].numpy(), np.sort(x))
        np.testing.assert_array_equal(t.argsort().numpy(), np.argsort(x, kind="stable"))
        np.testing.assert_array_equal(t.maximum(0.0).numpy(), np.maximum(x, 0.0).astype(np.float32))
        assert math.isnan(t.sum().item()) and math.isnan(t.prod().item()) and math.isnan(t.cummax(0)[0].numpy()[-1])


def test_nothing_folds_that_may_be_zero_or_infinite():
    x = np.array([0.0, INF, -INF, NAN, 2.0], dtype=np.float32)
    t = Tensor(x).realize()
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal((t / t).numpy(), x / x)
        np.testing.assert_array_equal((t * 0).numpy(), x * 0)
        np.testing.assert_array_equal((t - t).numpy(), x - x)
        np.testing.assert_array_equal((0.0 / t).numpy(), np.float32(0) / x)
        np.testing.assert_array_equal((t == t).numpy(), x == x)
        np.testing.assert_array_equal((t + 0.0).numpy(), x + 0)
    n = Tensor([0, 3, -3]).realize()
    assert (n // n).tolist() == [0, 1, 1] and (n % n).tolist() == [0, 0, 0]


def test_powers_of_integers_are_exact():
    for base, exponent in ((11, 7), (3, 19), (-7, 5), (2, 30)):
        assert (Tensor([base]) ** exponent).tolist() == (Tensor([base]) ** Tensor([exponent])).tolist() == [base**exponent]
    assert (Tensor([3], dtype=dtypes.int64) ** 39).tolist() == [3**39]


def test_ties_go_to_the_first_and_keep_their_order():
    x = Tensor([2.0, 1.0, 2.0, 1.0])
    assert x.argmax().item() == 0 and x.argmin().item() == 1
    assert x.argsort().tolist() == [1, 3, 0, 2] and x.argsort(descending=True).tolist() == [0, 2, 1, 3]
    assert x.topk(3)[1].tolist() == [0, 2, 1]


def test_nothing_to_reduce():
    empty = Tensor.zeros(2, 0)
    assert empty.sum(1).tolist() == [0, 0] and empty.prod(1).tolist() == [1, 1]
    assert empty.any(1).tolist() == [False] * 2 and empty.all(1).tolist() == [True] * 2
    assert np.isnan(empty.mean(1).numpy()).all() and empty.max(0).shape == (0,) and empty.cumsum(1).shape == (2, 0)
    for name in ("max", "min", "argmax", "argmin"):
        with pytest.raises(ValueError, match="no elements"):
            getattr(empty, name)(1)
    assert empty.sort(1)[0].shape == (2, 0) and empty.masked_select(empty > 0).shape == (0,)


# ---- index forms that tinygrad's copy of PyTorch's tests leaves out

GRID = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
MASK = GRID % 3 == 0
FORMS = {
    "mask": MASK, "mask of rows": np.array([True, False]), "mask and slice": (np.array([True, False]), slice(1, 3)),
    "slice and mask": (slice(None), np.array([True, False, True])), "mask and ints": (np.array([True, True]), [0, 1]),
    "mask of two axes": MASK[..., 0], "mask of none": np.zeros((2, 3, 4), dtype=bool), "empty list": [],
    "empty array": np.zeros((0,), dtype=np.int64), "empty of two axes": np.zeros((0, 2), dtype=np.int64),
    "ints in front and behind": ([0, 1], slice(None), [1, 2]), "none between": ([0, 1], None, [1, 2]),
    "broadcast": ([[0], [1]], [0, 2]), "negative": ([-1, 0], [-3, -1]), "ellipsis and ints": (..., [3, 0]),
    "step": (slice(None, None, -1), slice(2, None, -2)), "bytes": np.array([1, 0], dtype=np.uint8),
    "number": (1, [2, 0], slice(None, None, 3))}


@pytest.mark.parametrize("form", FORMS)
def test_index_forms(form):
    def ours(part):
        return Tensor(part) if isinstance(part, np.ndarray) else part
    key = FORMS[form]
    mine = tuple(map(ours, key)) if isinstance(key, tuple) else ours(key)
    wanted = GRID[np.array(key, dtype=np.int64) if key == [] else key] if isinstance(key, list) else GRID[key]
    np.testing.assert_array_equal(Tensor(GRID)[mine].numpy(), wanted)
    t, x = Tensor(GRID), GRID.copy()
    t[mine] = -1.0
    x[np.array(key, dtype=np.int64) if isinstance(key, list) else key] = -1
    np.testing.assert_array_equal(t.numpy(), x)


# ---- names

@pytest.mark.parametrize("call", [
    lambda: Tensor([3], dtype="typo"), lambda: Tensor([3], dtype=(dtypes.int,)), lambda: Tensor([1.0]).sum(dtype=""),
    lambda: Tensor([1.0]).cast("float31"), lambda: Tensor.zeros(2, dtype="f"),
])
def test_a_name_that_no_dtype_has(call):
    with pytest.raises(AttributeError, match="there is no dtype"):
        call()
    with pytest.raises(TypeError):
        call()


def test_numbers_of_arange_fit():
    assert Tensor.arange(2 ** 33, 2 ** 33 + 2).dtype == dtypes.int64
    assert Tensor.arange(2 ** 33, 2 ** 33 + 2).tolist() == [2 ** 33, 2 ** 33 + 1]
    assert Tensor.arange(-128, 128, dtype="int8").shape == (256,)
    for wrong in (lambda: Tensor.arange(2 ** 33, dtype="int32"), lambda: Tensor.arange(-1, 2, dtype="uint8")):
        with pytest.raises(ValueError, match="does not fit"):
            wrong()


def test_random_integers_of_a_normal_distribution():
    numbers = Tensor.randn(1000, dtype="int8")
    assert numbers.dtype == dtypes.int8 and 0 < (numbers == 0).sum().item() < 1000
    with pytest.raises(ValueError, match="negative"):
        Tensor.normal(3, std=-1.0)
