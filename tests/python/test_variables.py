"""Sizes and numbers that are chosen per run, where tinygrad takes them."""
import copy
import pickle

import numpy as np
import pytest

from weft import ArgumentError, Tensor, Variable, dtypes


def test_a_variable_without_a_value():
    v = Variable("u", 1, 10, dtype=dtypes.int)
    assert (v.vmin, v.vmax, v.expr) == (1, 10, "u") and (v + 1).vmax == 11 and (2 * v).vmin == 2
    for use in (lambda: Tensor(v).item(), lambda: (Tensor(v) + 1).item(), lambda: (Tensor([1]) * v).tolist()):
        with pytest.raises(RuntimeError, match="unbound"):
            use()
    assert Tensor(v.bind(2) + 1).item() == 3 and (-v.bind(2)).val == -2


def test_values_may_be_negative_or_large():
    assert Tensor(Variable("n", -10, 10).bind(-3)).item() == -3
    large = Tensor(Variable("b", 0, 2 ** 40).bind(2 ** 35 + 3))
    assert large.dtype == dtypes.int64 and large.item() == 2 ** 35 + 3
    with pytest.raises(ValueError, match="which end"):
        Tensor([1, 2, 3])[:Variable("n", -1, 3).bind(1)]


@pytest.mark.parametrize("name", ("triu", "tril"))
@pytest.mark.parametrize("start", (0, 1, 3))
def test_triangles_whose_edge_is_chosen(name, start):
    rows, first = Variable("t", 1, 10).bind(4), Variable("start", 0, 5).bind(start)
    mask = getattr(Tensor.full((rows, first + rows), float("-inf")), name)(first + 1)
    wanted = getattr(np, name)(np.full((4, start + 4), -np.inf, dtype=np.float32), k=start + 1)
    np.testing.assert_array_equal(mask.shrink(((0, 4), (0, start + 4))).numpy(), wanted)


@pytest.mark.parametrize("size, shift", [(2, -3), (5, 4), (5, -4), (5, 0), (5, 12), (1, 7)])
def test_roll(size, shift):
    t = Tensor.arange(8).realize()[:Variable("r", 1, 8).bind(size)]
    assert t.roll(shift, 0).tolist() == np.roll(np.arange(size), shift).tolist()


def test_pad_by_a_flat_list():
    v = Variable("a", 1, 10).bind(2)
    padded = Tensor.ones(2, 2).contiguous().pad([v, v, v, v])
    assert padded.mean().item() == pytest.approx(4 / 36)


def test_reshape_to_another_number_of_elements():
    v = Variable("i", 1, 10)
    with pytest.raises(ValueError, match="30 elements|has 30"):
        Tensor.rand(30).reshape(3, v.bind(4))


def test_one_hot_without_a_number_of_classes():
    assert Tensor([1, 0, 2]).one_hot().tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 1]]


def test_gradients_of_neighbours_whose_number_depends_on_the_size():
    whole = np.arange(20, dtype=np.float32).reshape(10, 2)
    n = Variable("n", 1, 10)
    for size in (7, 1, 10, 2):
        x = Tensor(whole)[:n.bind(size)].contiguous()
        (slope,) = (x.roll(3, 0) * Tensor(whole)[:n.bind(size)]).sum().gradient(x)
        assert np.array_equal(slope.numpy(), np.roll(whole[:size], -3, 0))


def test_variables_are_pickled_and_copied():
    v = Variable("n", 4, 64, multiple_of=4)
    for other in (pickle.loads(pickle.dumps(v)), copy.copy(v), copy.deepcopy(v)):
        assert (other.vmin, other.vmax, other.expr) == (4, 64, "n") and other.bind(8) == v.bind(8)
        with pytest.raises(ValueError, match="multiples of 4"):
            other.bind(6)


@pytest.mark.parametrize("name, f", [
    ("sort", lambda x: x.sort()), ("argsort", lambda x: x.argsort()), ("topk", lambda x: x.topk(2)),
    ("median", lambda x: x.median(-1)), ("kthvalue", lambda x: x.kthvalue(2)), ("mode", lambda x: x.mode()),
    ("quantile", lambda x: x.quantile(0.5, -1)), ("unique", lambda x: x.unique()), ("nonzero", lambda x: x.nonzero()),
    ("masked_select", lambda x: x.masked_select(x > 2)), ("searchsorted", lambda x: x.searchsorted(x)), ("diff", lambda x: x.diff()),
    ("histc", lambda x: x.histc(4)), ("split", lambda x: x.split(2)), ("chunk", lambda x: x.chunk(2))])
def test_what_needs_a_size_as_a_number_says_so(name, f):
    x = Tensor([3.0, 1, 2, 5, 4, 9])[:Variable("n", 1, 6).bind(4)]
    with pytest.raises(ArgumentError, match=rf"\[{name}\] the size of axis 0 of shape \(n=4,?\) may change"):
        f(x)
    assert x.pad_to(6, value=float("inf")).sort()[0].tolist()[:4] == [1, 2, 3, 5]
    assert len(x.shrink_to(3).sort()[0].tolist()) == 3
