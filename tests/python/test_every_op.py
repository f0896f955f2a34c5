"""Every operation of Tensor: every dtype it takes, shapes of no and of zero axes, operands that broadcast, views,
gradients, and the exceptions of bad calls, against NumPy and, where it is installed, PyTorch. The rows are
every_op's; a public method without one fails here."""
import dataclasses
import itertools
import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as npst

from conftest import needs_torch, torch
from every_op.operands import (ALL, ONE, VIEWS, as_tuple, assert_near, bounds, decoded, drawn, grid, eps, is_float,
    is_whole, largest, numbers, numpys, operand,
                      rounded, same, tensor, torchs, wanted_as)
from every_op.elementwise import BINARY
from every_op.rows import ROWS
from test_torch_names import COVERED
import weft
from weft import Tensor, dtypes
from weft.dtype import least_upper_dtype

# No operations on numbers: what they are, or where they are tested.
NO_ROW = {
    "backward": "test_autograd.py", "gradient": "test_autograd.py", "requires_grad_": "test_autograd.py",
    "is_param_": "test_autograd.py", "realize": "runs others", "replace": "a handle's", "is_": "a handle's",
    "to": "devices: test_tensor.py", "to_": "devices", "to_device": "devices: test_array_api_object.py",
    "shard": "devices: test_arguments.py", "shard_": "devices",
        "shard_like": "devices",
    "gumbel": "test_draws", "laplace": "test_draws", "cauchy": "test_draws", "log_normal": "test_draws",
    "exponential": "test_draws", "gamma": "test_draws", "beta": "test_draws", "dirichlet": "test_draws",
    "student_t": "test_draws", "gumbel_softmax": "test_draws", "randint_like": "test_draws", "random_crop": "test_draws",
    "random_flip": "test_draws", "cutmix": "test_draws",
    "manual_seed": "a state's: test_tensor.py", "train": "a mode", "no_grad": "a mode",
        "from_dlpack": "test_dlpack.py",
    "from_blob": "test_dlpack.py", "from_url": "test_files.py", "fs_store": "test_files.py",
        "fs_load": "test_files.py",
}


def rng_of(name):
    return np.random.default_rng(sum(map(ord, name)))


def of_operands(row):
    """Creation functions are called with a dtype instead."""
    return row.shapes != ((),)


def results(y):
    return [x if isinstance(x, Tensor) else np.asarray(x) for x in as_tuple(y)]


def dtype_of(result):
    return result.dtype if isinstance(result, Tensor) else None


class Call:
    """One call of a row: what is lazy of it, so that many run together, and what it has to give."""

    def __init__(self, name, dtype, shapes, view, fill):
        self.row, self.dtype, self.where = ROWS[name], dtype, f"{name} of {dtype.name} {shapes} {view}"
        self.operands = [operand(self.row, dtype, s, i, view, fill) for i, s in enumerate(shapes)]
        self.arrays = [o.array for o in self.operands]
        self.bases = [tensor(o.base, dtype) for o in self.operands]
        self.tensors = [o.viewed(b) for o, b in zip(self.operands, self.bases)]
        self.given = self.tensors if of_operands(self.row) else [dtype]
        self.results = results(self.row.ours(*self.given))

    def __repr__(self):
        return f"{self.where}: {self.arrays}"

    def lazy(self):
        return [y for y in self.results if isinstance(y, Tensor)]

    def oracle(self, f, arrays):
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return [np.asarray(y) for y in as_tuple(f(*arrays))]

    def compare(self, wanted, who):
        gives = self.row.results(self.dtype)
        gives = gives if isinstance(gives, tuple) else (gives,) * len(self.results)
        assert len(self.results) == len(wanted) == len(gives), self.where
        for y, want, dtype in zip(self.results, wanted, gives):
            where = f"{self.where}, {who}"
            assert dtype_of(y) in (dtype, None), f"{where}: {dtype_of(y)}, wanted {dtype}"
            most = largest([*self.arrays, want]) if self.row.of_most else 0
            assert_near(numbers(y), wanted_as(dtype, want), dtype, self.row, where, most)

    def check(self):
        if self.row.check:
            self.row.check(self.dtype, *self.results)
        if self.row.numpy:
            seen = self.arrays if of_operands(self.row) else [self.dtype]
            floats = not self.row.gives_whole(self.dtype) and is_whole(self.dtype)
            seen = [a.astype(np.float64) if floats and isinstance(a, np.ndarray) else a for a in seen]
            self.compare(self.oracle(self.row.numpy, seen), "NumPy")
        if torch and self.row.torch and self.offered():
            self.compare([y.detach().numpy() for y in self.torch_results(self.arrays)], "PyTorch")

    def offered(self):
        """PyTorch is compared in float64 and in the integers that all of it takes; it has fewer of the others."""
        if self.row.torch_takes and self.dtype not in self.row.torch_takes:
            return False
        if is_float(self.dtype):
            return True
        if self.dtype not in (dtypes.bool, dtypes.uint8, dtypes.int32, dtypes.int64):
            return False
        try:
            self.torch_results(self.arrays)
        except (RuntimeError, TypeError, NotImplementedError):
            return False
        return True

    def torch_results(self, arrays):
        return as_tuple(self.row.torch(*(torchs(a) for a in arrays)))


def call_of(name, dtype, shapes, view, rng):
    return Call(name, dtype, shapes, view, lambda place, shape: drawn(ROWS[name], dtype, shape, place, rng))


def widest_of(row):
    return max(row.shapes, key=lambda shapes: sum(map(math.prod, shapes)))


def calls_of(name):
    """float32 and int32 in all shapes and all views; the other dtypes in two shapes and one view, in turns."""
    row, rng = ROWS[name], rng_of(name)
    views = [v for v in VIEWS if v != "whole"] if row.views and of_operands(row) else []
    widest = widest_of(row)
    for i, dtype in enumerate(row.takes):
        if dtype in (dtypes.float32, dtypes.int32) or (dtypes.float32 not in row.takes and dtype == row.takes[0]):
            chosen = [(s, "whole") for s in row.shapes] + [(widest, v) for v in views]
        else:
            chosen = [(row.shapes[i % len(row.shapes)], "whole"), (widest, "whole")]
            chosen += [(widest, views[i % len(views)])] if views else []
        for shapes, view in dict.fromkeys(chosen):
            yield call_of(name, dtype, shapes, view, rng)


@pytest.mark.parametrize("name", ROWS)
def test_values(name):
    calls = list(calls_of(name))
    lazy = [y for call in calls for y in call.lazy()]
    if lazy:
        lazy[0].realize(*lazy[1:])
    for call in calls:
        call.check()


# ---- gradients

def weights(y):
    """Different for every element, so that a gradient in the wrong place shows; exact in every float."""
    return np.asarray((np.arange(np.size(y)) % 7 + 1).reshape(np.shape(y)) / 4)


def differences(f, arrays, step=1e-5):
    """Central differences of the sum of f's results times their weights."""
    def value(xs):
        with np.errstate(all="ignore"):
            return sum(float((np.asarray(y, dtype=float) * weights(y)).sum()) for y in as_tuple(f(*xs)))
    for i, x in enumerate(arrays):
        slope = np.zeros(x.shape)
        for at in np.ndindex(x.shape):
            up, down = ([a.copy() for a in arrays] for _ in range(2))
            up[i][at] += step
            down[i][at] -= step
            slope[at] = (value(up) - value(down)) / (2 * step)
        yield slope


def torch_slopes(call):
    leaves = [torchs(a, requires_grad=True) for a in call.arrays]
    found = [y for y in as_tuple(call.row.torch(*leaves)) if y.requires_grad]
    slopes = torch.autograd.grad(found, leaves, [torch.from_numpy(weights(y.detach().numpy())) for y in found],
        allow_unused=True)
    return [np.zeros(a.shape) if s is None else s.numpy() for s, a in zip(slopes, call.arrays)]


def slopes(call):
    """Lazy gradients of the bases, which lie in front of the views."""
    floats = [y for y in call.results if is_float(y.dtype)]
    loss = sum((y * tensor(weights(np.empty(y.shape)), y.dtype)).sum() for y in floats)
    return loss.gradient(*call.bases, materialize_grads=True)


SLOPED = (dtypes.float64, dtypes.float32, dtypes.float16, dtypes.bfloat16)


def sloped_calls(name):
    row, rng = ROWS[name], rng_of(name)
    views = [v for v in VIEWS if v != "whole"] if row.views else ["whole"]
    widest = widest_of(row)
    for dtype in (d for d in SLOPED if d in row.takes):
        chosen = {dtypes.float64: [(s, "whole") for s in row.shapes], dtypes.float32: [(widest, v) for v in views]}
        for shapes, view in chosen.get(dtype, [(widest, views[len(name) % len(views)])]):
            yield call_of(name, dtype, shapes, view, rng)


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if row.grad])
def test_gradients(name):
    calls = [(call, slopes(call)) for call in sloped_calls(name)]
    calls[0][1][0].realize(*(g for _, found in calls for g in found))
    for call, found in calls:
        # Differences see the steps that narrow floats fall on, and ties.
        random_enough = call.dtype == dtypes.float64 and call.row.numpy
        wanted = {"differences": list(differences(call.row.numpy, call.arrays))} if random_enough else {}
        if torch and call.row.torch:
            wanted["PyTorch"] = torch_slopes(call)
        for who, each in wanted.items():
            for o, got, want in zip(call.operands, found, each):
                assert got.dtype == call.dtype and got.shape == o.base.shape, call.where
                whole = o.pulled_back(want)
                most = max(1.0, largest([whole]))
                near = max(32 * eps(call.dtype), 1e-6 if who == "differences" else 0) * most
                np.testing.assert_allclose(numbers(got).astype(float), whole, rtol=0, atol=near,
                    err_msg=f"{call.where}, {who}")


# ---- what is refused

def operation(name):
    return name.partition(":")[0]


def accepts(name, dtype) -> bool:
    """Whether NumPy's function or PyTorch's takes these."""
    row, rng = ROWS[name], rng_of(name)
    arrays = [drawn(row, dtype, s, i, rng) for i, s in enumerate(row.shapes[0])]
    calls = [lambda: row.numpy(*arrays)] if isinstance(row.numpy, np.ufunc) else []
    if torch and row.torch and hasattr(torch, dtype.name):
        calls.append(lambda: row.torch(*(torch.from_numpy(np.array(a)).to(getattr(torch,
            dtype.name)) for a in arrays)))
    for call in calls:
        try:
            call()
            return True
        except (TypeError, RuntimeError, NotImplementedError):
            pass
    return False


@pytest.mark.parametrize("name", [name for name,
    row in ROWS.items() if of_operands(row) and len(row.takes) < len(ALL)])
def test_refused_dtypes(name):
    row = ROWS[name]
    for dtype in ALL:
        if any(dtype in other.takes for n, other in ROWS.items() if operation(n) == operation(name)):
            continue
        with pytest.raises((TypeError, BufferError)):
            call_of(name, dtype, row.shapes[0], "whole", rng_of(name))
        assert row.refuses or not accepts(name, dtype), f"{name} of {dtype.name} works elsewhere"


KINDS = (IndexError, TypeError, ValueError, NotImplementedError, RuntimeError)


@pytest.mark.parametrize("name", ROWS)
def test_bad_arguments(name):
    for place, bad in enumerate(ROWS[name].bad):
        with pytest.raises(bad.kind) as ours:
            bad.call()
            pytest.fail(f"call {place} works", pytrace=False)
        if hasattr(ours.value, "code"):
            assert weft.explain(ours.value.code)
        theirs = [f for f in (bad.numpy, bad.torch if torch else None) if f]
        if not theirs:
            continue
        found = []
        for f in theirs:
            with pytest.raises(Exception) as other, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                f()
            found.append(other.value)
        assert any(isinstance(ours.value, kind) for e in found for kind in KINDS if isinstance(e, kind)), (
            f"call {place}: {type(ours.value)} here, {[type(e) for e in found]} elsewhere")


def test_every_operation_has_a_row_and_every_row_bad_arguments():
    public = {name for name in dir(Tensor) if not name.startswith("_") and callable(getattr(Tensor, name))}
    named = {operation(name) for name in ROWS}
    # By PyTorch's names and arguments: tests/python/test_torch_names.py.
    assert public - named - NO_ROW.keys() - COVERED == set()
    assert NO_ROW.keys() & named == set() and NO_ROW.keys() - public == set(), "a reason that is no longer one"
    assert {name for name in named if not any(row.bad for n, row in ROWS.items() if operation(n) == name)} == {"T"}
    assert all(row.numpy or row.check or row.torch for row in ROWS.values())


# ---- two dtypes

@pytest.mark.parametrize("name", BINARY)
def test_promotion(name):
    row = ROWS[name]
    of = {d: Tensor([1, 1], dtype=d) for d in ALL}
    for a, b in itertools.product(ALL, ALL):
        meeting = least_upper_dtype(a, b)
        if meeting in row.takes:
            assert row.ours(of[a], of[b]).dtype == row.results(meeting), (a, b)
        else:
            with pytest.raises(TypeError):
                row.ours(of[a], of[b])


# ---- any operation, any dtype, any values of its domain

def elements(row, dtype, place):
    """Where the row has a definite value. Floats by their place among those of 8 or 16 bits, or as they come."""
    low, high = bounds(row, place)
    if dtype == dtypes.bool:
        return st.booleans()
    if is_whole(dtype):
        whole_range = row.gives_whole(dtype) if row.whole_range is None else row.whole_range
        low, high = (dtype.min, dtype.max) if whole_range else (max(math.ceil(low), dtype.min),
            min(math.floor(high), dtype.max))
        return st.integers(low, high)
    if dtype.bitsize > 16:
        low, high = (float(np.dtype(dtype.name).type(bound)) for bound in (low, high))  # hypothesis wants bounds of that width
        return st.floats(low, high, width=dtype.bitsize, allow_subnormal=False)
    known = grid(dtype)[(grid(dtype) >= low) & (grid(dtype) <= high)]
    return st.integers(0, len(known) - 1).map(lambda i: float(known[i]))


@st.composite
def any_call(draw):
    name = draw(st.sampled_from(ANY_VALUES))
    row = ROWS[name]
    dtype, shapes = draw(st.sampled_from(row.takes)), draw(st.sampled_from(row.shapes))
    view = draw(st.sampled_from(sorted(VIEWS)) if row.views else st.just("whole"))

    def fill(place, shape):
        return draw(npst.arrays(numpys(dtype), shape, elements=elements(row, dtype, place), fill=st.nothing()))
    return Call(name, dtype, shapes, view, fill)


# What jumps between two values, or depends on its operands without bounds, has no definite value near to theirs.
ANY_VALUES = sorted(name for name, row in ROWS.items() if of_operands(row) and not row.steep)


@settings(max_examples=400, deadline=None, derandomize=True)
@given(any_call())
def test_any_operation_on_any_values(call):
    call.check()


# ---- NaN, infinities and zeros of both signs

SPECIAL = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, .5, -2.5]


@pytest.mark.parametrize("name", [name for name in BINARY if dtypes.float32 in ROWS[name].takes])
def test_special_values_in_pairs(name):
    row = ROWS[name]
    a, b = (np.array(x) for x in zip(*itertools.product(SPECIAL, SPECIAL)))
    for dtype in (d for d in dtypes.floats if d in row.takes):
        x, y = (rounded(v, dtype) for v in (a, b))
        with np.errstate(all="ignore"):
            want = row.numpy(x, y)
        gives, got = row.results(dtype), numbers(row.ours(tensor(x, dtype), tensor(y, dtype)))
        defined = ~np.isnan(y) if name == "copysign" else np.full(y.shape, True)  # the sign of a NaN is not
        assert_near(got[defined], wanted_as(gives, want)[defined], gives, row, f"{name} of {dtype}")


# ---- all values of 8 and of 16 bits

EXHAUSTIVE = [name for name, row in ROWS.items() if row.shapes == ONE and row.numpy and name not in ("one_hot",
    "nonzero", "sequential")]


@pytest.mark.parametrize("name", EXHAUSTIVE)
def test_all_values(name):
    row = dataclasses.replace(ROWS[name], ulps=1)
    for dtype in (d for d in row.takes if d != dtypes.bool and d.bitsize <= 16):
        if is_whole(dtype) and not row.gives_whole(dtype):
            continue  # float32's function of them
        x = np.arange(dtype.min,
            dtype.max + 1).astype(dtype.name) if is_whole(dtype) else decoded(np.arange(2**dtype.bitsize), dtype)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wanted = as_tuple(row.numpy(x))
        got = results(row.ours(tensor(x, dtype)))
        gives = row.results(dtype)
        for y, want, d in zip(got, wanted, gives if isinstance(gives, tuple) else (gives,) * len(got)):
            scale = np.abs(x).astype(float) if row.of_most else 0
            assert_near(numbers(y), wanted_as(d, want), d, row, f"{name} of {dtype.name}", most=scale)


# ---- where functions are hard: near 0, at kinks, where nothing varies

SMOOTH = [name for name in EXHAUSTIVE if not ROWS[name].of_most and ROWS[name].results(dtypes.int32) == dtypes.float32]


@pytest.mark.parametrize("name", SMOOTH)
def test_small_arguments(name):
    """A function that is 0 at 0 keeps its relative accuracy there."""
    row = ROWS[name]
    for dtype in (dtypes.float32, dtypes.float64):
        x = rounded(np.geomspace(1e-7, .3, 60) * np.where(np.arange(60) % 2, 1, -1), dtype)
        with np.errstate(all="ignore"):
            want = row.numpy(x)
        assert_near(numbers(row.ours(tensor(x, dtype))), want, dtype, row, f"{name} of {dtype.name}")


KINKS = np.array([-6.0, -3, -2, -1, -.5, 0, .5, 1, 1.5, 2, 3, 6])
# Outside of where they are defined, PyTorch's slopes are those of formulas, and at the ends infinite.
UNDEFINED = {"log1p", "asin", "acos", "acosh", "atanh", "erfinv", "lgamma", "digamma"}


@needs_torch
@pytest.mark.parametrize("name", [n for n, row in ROWS.items() if row.grad and row.torch and row.shapes == ONE and n not in UNDEFINED])
def test_slopes_at_kinks_are_torchs(name):
    x, leaf = Tensor(KINKS), torch.tensor(KINKS, requires_grad=True)
    ours = sum(y.sum() for y in as_tuple(ROWS[name].ours(x))).gradient(x)[0]
    sum(y.sum() for y in as_tuple(ROWS[name].torch(leaf))).backward()
    np.testing.assert_allclose(ours.numpy(), leaf.grad.numpy(), rtol=1e-6, atol=1e-9)


def test_slopes_where_nothing_varies():
    x = Tensor.ones(3, 4)
    assert x.std(1).sum().gradient(x)[0].tolist() == [[0] * 4] * 3
    empty = Tensor.ones(3, 0)
    assert empty.prod(1).sum().gradient(empty)[0].shape == (3, 0)
    assert empty.logsumexp(1).tolist() == [-math.inf] * 3 and empty.softmax(1).shape == (3, 0)


def test_remainders_are_exact():
    rng = np.random.default_rng(0)
    for dtype in (np.float32, np.float64):
        x, y = (rng.uniform(-9, 9, 2000) / 10).round(1).astype(dtype), rng.choice(np.array([.1, -.1, .2, .3, -.7]), 2000).astype(dtype)
        for ours, numpy in ((Tensor.mod, np.mod), (Tensor.fmod, np.fmod), (lambda a, b: a // b, np.floor_divide)):
            np.testing.assert_array_equal(ours(Tensor(x), Tensor(y)).numpy(), numpy(x, y))


def test_empty_slices_from_the_back():
    for n, key in ((0, slice(None, None, -2)), (3, slice(2, 2, -3)), (3, slice(0, 5, -2)), (1, slice(-5, None, -2))):
        x = np.arange(float(n))
        np.testing.assert_array_equal(Tensor(x)[key].numpy(), x[key])


def test_numbers_stay_weak():
    half = Tensor([1.0, 2.0], dtype=dtypes.half)
    assert half.logaddexp(1.0).dtype == half.copysign(-1).dtype == half.mod(3).dtype == half.fmod(.5).dtype == dtypes.half
    assert half.copysign(Tensor([1.0, -1.0])).dtype == dtypes.float32
    assert Tensor([1, 7]).relu6().dtype == Tensor([1, 7]).hardtanh().dtype == dtypes.int32
