"""Views, movement and indexing against NumPy."""
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from weft import Tensor, Variable, dtypes

from conftest import assert_equal, check_gradient

A = np.arange(24.0).reshape(2, 3, 4)

CASES = {
    "reshape": (lambda t: t.reshape(4, -1), lambda a: a.reshape(4, -1)),
    "reshape_tuple": (lambda t: t.reshape((6, 4)), lambda a: a.reshape(6, 4)),
    "reshape_none": (lambda t: t.reshape(None, 12), lambda a: a.reshape(2, 12)),
    "view": (lambda t: t.view(24), lambda a: a.reshape(24)),
    "permute": (lambda t: t.permute(2, 0, 1), lambda a: a.transpose(2, 0, 1)),
    "transpose": (lambda t: t.transpose(0, 2), lambda a: a.swapaxes(0, 2)),
    "T": (lambda t: t.T, lambda a: a.swapaxes(-1, -2)),
    "flip": (lambda t: t.flip(0, 2), lambda a: a[::-1, :, ::-1]),
    "flip_list": (lambda t: t.flip([1]), lambda a: a[:, ::-1]),
    "shrink": (lambda t: t.shrink(((0, 1), None, (1, 3))), lambda a: a[0:1, :, 1:3]),
    "pad": (lambda t: t.pad(((1, 0), None, (2, 1)), value=7), lambda a: np.pad(a, ((1, 0), (0, 0), (2, 1)), constant_values=7)),
    "pad_flat": (lambda t: t.pad((1, 2, 0, 1)), lambda a: np.pad(a, ((0, 0), (0, 1), (1, 2)))),
    "pad_negative": (lambda t: t.pad((-1, 1)), lambda a: np.pad(a[:, :, 1:], ((0, 0), (0, 0), (0, 1)))),
    "pad_reflect": (lambda t: t.pad((1, 2), mode="reflect"), lambda a: np.pad(a, ((0, 0), (0, 0), (1, 2)), mode="reflect")),
    "pad_replicate": (lambda t: t.pad((1, 2), mode="replicate"), lambda a: np.pad(a, ((0, 0), (0, 0), (1, 2)), mode="edge")),
    "pad_circular": (lambda t: t.pad((1, 2), mode="circular"), lambda a: np.pad(a, ((0, 0), (0, 0), (1, 2)), mode="wrap")),
    "pad_to": (lambda t: t.pad_to(None, 5, 4), lambda a: np.pad(a, ((0, 0), (0, 2), (0, 0)))),
    "shrink_to": (lambda t: t.shrink_to((1, None, 2)), lambda a: a[:1, :, :2]),
    "unsqueeze": (lambda t: t.unsqueeze(-1), lambda a: a[..., None]),
    "squeeze": (lambda t: t.reshape(2, 1, 12, 1).squeeze(), lambda a: a.reshape(2, 12)),
    "squeeze_dim": (lambda t: t.reshape(2, 1, 12, 1).squeeze(1), lambda a: a.reshape(2, 12, 1)),
    "expand": (lambda t: t.reshape(2, 1, 12).expand(-1, 3, None), lambda a: np.broadcast_to(a.reshape(2, 1, 12), (2, 3, 12))),
    "flatten": (lambda t: t.flatten(1), lambda a: a.reshape(2, 12)),
    "unflatten": (lambda t: t.unflatten(2, (2, -1)), lambda a: a.reshape(2, 3, 2, 2)),
    "roll": (lambda t: t.roll((1, -1), (0, 2)), lambda a: np.roll(a, (1, -1), (0, 2))),
    "roll_flat": (lambda t: t.roll(5), lambda a: np.roll(a, 5)),
    "repeat": (lambda t: t.repeat(2, 1, 3), lambda a: np.tile(a, (2, 1, 3))),
    "repeat_interleave": (lambda t: t.repeat_interleave(2, 1), lambda a: np.repeat(a, 2, 1)),
    "repeat_interleave_flat": (lambda t: t.repeat_interleave(2), lambda a: np.repeat(a, 2)),
    "cat": (lambda t: t.cat(t, t, dim=1), lambda a: np.concatenate([a, a, a], 1)),
    "cat_list": (lambda t: Tensor.cat([t, t], dim=-1), lambda a: np.concatenate([a, a], -1)),
    "stack": (lambda t: t.stack(t, dim=1), lambda a: np.stack([a, a], 1)),
    "stack_static": (lambda t: Tensor.stack(t, t), lambda a: np.stack([a, a])),
    "tril": (lambda t: t.tril(1), lambda a: np.tril(a, 1)), "triu": (lambda t: t.triu(-1), lambda a: np.triu(a, -1)),
    "diagonal": (lambda t: t.diagonal(1, 0, 2), lambda a: np.diagonal(a, 1, 0, 2)),
    "unfold": (lambda t: t.unfold(2, 2, 1), lambda a: np.lib.stride_tricks.sliding_window_view(a, 2, 2)),
    "rearrange": (lambda t: t.rearrange("a b (c d) -> (a c) d b", d=2), lambda a: a.reshape(2, 3, 2, 2).transpose(0, 2, 3, 1).reshape(4, 2, 3)),
    "einsum": (lambda t: Tensor.einsum("abc,abd->cd", t, t), lambda a: np.einsum("abc,abd->cd", a, a)),
    "gather": (lambda t: t.gather(1, Tensor([[[2, 0, 1, 1]], [[0, 0, 2, 1]]])), lambda a: np.take_along_axis(a, np.array([[[2, 0, 1, 1]], [[0, 0, 2, 1]]]), 1)),
}


@pytest.mark.parametrize("name", CASES)
def test_movement(name):
    ours, numpys = CASES[name]
    assert_equal(ours(Tensor(A)), numpys(A))


@pytest.mark.parametrize("name", CASES)
def test_gradient_of_movement(name):
    check_gradient(CASES[name][0], A, rtol=1e-3 if name == "einsum" else 1e-4)


def test_split_chunk_meshgrid_diag():
    t = Tensor(A)
    assert [p.shape for p in t.split(2, dim=2)] == [(2, 3, 2)] * 2
    assert [p.shape for p in t.split([1, 3], 2)] == [(2, 3, 1), (2, 3, 3)]
    assert [p.shape for p in t.chunk(2, 1)] == [(2, 2, 4), (2, 1, 4)]
    for ours, numpys in zip(Tensor.arange(3).meshgrid(Tensor.arange(2), indexing="xy"), np.meshgrid(np.arange(3), np.arange(2))):
        assert ours.tolist() == numpys.tolist()
    assert Tensor([1, 2]).diag().tolist() == [[1, 0], [0, 2]]


INDICES = [
    0, -1, slice(None), slice(1, 3), slice(None, None, -1), slice(3, None, -2), (slice(None), 1), (..., 2), (0, ..., None),
    (None, 1), (1, 2, 3), (slice(None), slice(None), slice(0, 0)), [0, 1], ([1, 0], [2, 1]), (slice(None), [2, 0]),
    (slice(None), [[0, 1], [2, 0]]), ([0, 1], slice(None), [1, 2]), (0, [1, 2], 0), (..., [0, -1]), np.array([1, 0, 1]),
    (None, [1], slice(1, 3)), (slice(10, 20),), (slice(-100, 100),), (),
]


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_getitem_is_numpys(index):
    assert_equal(Tensor(A)[index], A[index])


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_setitem_is_numpys(index):
    a, t = A.copy(), Tensor(A)
    a[index] = -1
    t[index] = -1
    assert_equal(t, a)
    value = np.arange(a[index].size, dtype=float).reshape(a[index].shape)
    if not isinstance(index, np.ndarray):  # which of two writes to one place wins is weft's own rule
        a[index] = value
        t[index] = Tensor(value)
        assert_equal(t, a)


@pytest.mark.parametrize("index", [i for i in INDICES if not isinstance(i, np.ndarray)], ids=str)
def test_gradient_of_getitem(index):
    if A[index].size:
        check_gradient(lambda t: t[index], A)


def test_tensors_as_indices():
    t = Tensor(A)
    assert_equal(t[Tensor([1, 0])], A[[1, 0]])
    assert_equal(t[:, Tensor(2)], A[:, 2])
    assert_equal(t[Tensor(1)], A[1])
    with pytest.raises((TypeError, IndexError, ValueError)):
        t[Tensor([0.5])]
    assert_equal(t[True], A[True])
    assert t[False].shape == A[False].shape
    assert t[...] is t


@pytest.mark.parametrize("index", [[0, 9], (slice(None), [-9]), (..., [0, 99]), ([[0, 1], [2, 9]],), ([9], 0)])
def test_positions_in_lists_are_checked(index):
    with pytest.raises(IndexError):
        A[index if isinstance(index, tuple) else list(index)]
    for act in (lambda t: t[index], lambda t: t.__setitem__(index, 0)):
        with pytest.raises(IndexError, match="out of bounds"):
            act(Tensor(A))


def test_index_tensors_that_do_not_fit_each_other():
    with pytest.raises(IndexError, match="do not broadcast"):
        Tensor(A)[[0, 1], [0, 1, 2]]


def test_ends_of_slices_are_numbers():
    t = Tensor(A)
    assert_equal(t[Tensor(1):], A[1:])
    with pytest.raises(TypeError, match="shape"):
        t[Tensor([1]):]
    with pytest.raises(TypeError, match="deleted"):
        del t[0]


def test_axes_of_size_1_in_front_of_a_value_are_none():
    t, a = Tensor(A).contiguous(), A.copy()
    t[True], a[True] = Tensor(np.ones((1, 1, *A.shape)) * -1, dtype=t.dtype), np.ones((1, 1, *A.shape)) * -1
    t[False] = 5
    assert_equal(t, a)


def test_windows_of_no_elements():
    assert Tensor.zeros(3, 3, 3).unfold(1, 0, 8).shape == (3, 1, 3, 0)
    assert Tensor.zeros(8).unfold(0, 0, 3).shape == (3, 0)


def test_masks():
    t, mask = Tensor(A), A > 10
    assert_equal(t[Tensor(mask)], A[mask])
    assert_equal(t[mask], A[mask])
    assert_equal(t[np.array([False, True])], A[[False, True]])
    a = A.copy()
    a[mask] = 0
    t[t > 10] = 0
    assert_equal(t, a)
    assert_equal(Tensor(A).masked_select(Tensor(mask)), A[mask])
    assert Tensor(A).masked_select(Tensor(mask), size=3).shape == (3,)
    assert_equal(Tensor(mask).nonzero(), np.argwhere(mask).astype("int32"))
    values, inverse, counts = Tensor([3, 1, 3]).unique()
    assert (values.tolist(), inverse.tolist(), counts.tolist()) == ([1, 3], [1, 0, 1], [1, 2])


def test_scatter():
    index, src = np.array([[0, 1, 2, 0]]), np.array([[1.0, 2, 3, 4]])
    wanted = np.zeros((3, 4))
    np.put_along_axis(wanted, index, src, 0)
    assert_equal(Tensor.zeros(3, 4, dtype="float64").scatter(0, Tensor(index), Tensor(src)), wanted)
    assert_equal(Tensor.zeros(3, 4, dtype="float64").scatter(0, Tensor(index), 7.0), np.where(wanted > 0, 7.0, 0))
    added = Tensor.ones(2).scatter(0, Tensor([0, 0, 1]), Tensor([1.0, 2, 3]), reduce="add")
    assert added.tolist() == [4, 4]
    most = Tensor.zeros(2).scatter_reduce(0, Tensor([0, 0, 1]), Tensor([1.0, 5, -3]), reduce="amax", include_self=False)
    assert most.tolist() == [5, -3]
    with pytest.raises(TypeError, match="scatter"):
        Tensor.ones(2).scatter(0, Tensor([0]), 1.0, reduce="max")


def test_one_hot():
    assert Tensor([2, 0]).one_hot(3).tolist() == [[0, 0, 1], [1, 0, 0]]


def test_views_alias():
    t = Tensor(A)
    u = t.reshape(6, 4)[1:3].T
    u += 100
    wanted = A.copy()
    wanted.reshape(6, 4)[1:3] += 100
    assert_equal(t, wanted)


def test_variables():
    n = Variable("n", 1, 4)
    for k in (2, 3):
        size = n.bind(k)
        t = Tensor(A).shrink((None, None, (0, size)))
        assert t.shape[2] == size and int(size) == k
        assert t.sum().item() == A[:, :, :k].sum()
        assert Tensor(A)[:, :, :size].sum(axis=2).tolist() == A[:, :, :k].sum(2).tolist()
        assert int(size + 1) == k + 1 and int(2 * size - 1) == 2 * k - 1
    with pytest.raises(ValueError):
        n.bind(9)
    with pytest.raises(ValueError):
        Variable("m", 3, 2)


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_any_basic_index(data):
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=4))
    a = np.arange(np.prod(shape)).reshape(shape).astype("int32")
    index = data.draw(hnp.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True))
    assert_equal(Tensor(a)[index], np.asarray(a[index]))


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_any_fancy_index(data):
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4))
    a = np.arange(np.prod(shape)).reshape(shape).astype("int32")
    index = data.draw(hnp.integer_array_indices(shape, result_shape=hnp.array_shapes(max_dims=2, max_side=3)))
    assert_equal(Tensor(a)[index], a[index])


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "int64", "uint16", "int8", "bool"])
def test_flips_read_vectors_backwards(dtype):
    rng = np.random.default_rng(0)
    for n in (4, 8, 16, 17, 40, 64, 1000):
        x = (rng.standard_normal((3, n)) * 50).astype(dtype)
        assert_equal(Tensor(x).flip(1).contiguous(), x[:, ::-1])
        assert_equal(Tensor(x).flip(1) == Tensor(x), x[:, ::-1] == x)
