"""x[...] and x[...] = value: random indices against NumPy, and what lies outside."""
import random

import numpy as np
import pytest

from conftest import assert_equal, needs_torch, torch
from weft import Tensor, TinyJit, dtypes, nn


class Positions:
    """An array that is given to weft as a Tensor."""

    def __init__(self, array):
        self.array = array


def members_of(rng, shape):
    """A random index of an array of this shape. Numbers stand without arrays: see test_numbers_first."""
    members, axis, picked = [], 0, rng.choice([(1,), (2,), (3,), (2, 3), (1, 3)])
    arrays = rng.random() < .7
    while axis < len(shape) and rng.random() < .9:
        n, kind = shape[axis], rng.randrange(10)
        if kind <= 1 and n and not arrays:
            members.append(rng.randrange(-n, n))
        elif kind <= 4:
            ends = [None, *range(-n - 2, n + 3)]
            members.append(slice(rng.choice(ends), rng.choice(ends), rng.choice([None, 1, 2, 3, -1, -2, -3])))
        elif kind == 5:
            members.append(None)
            continue
        elif kind == 6 and Ellipsis not in [m for m in members if m is Ellipsis]:
            members.append(Ellipsis)
            axis += rng.randrange(0, len(shape) - axis + 1)
            continue
        elif kind <= 8 and n and arrays:
            sizes = tuple(d if rng.random() < .8 else 1 for d in picked)
            a = np.array([rng.randrange(-n, n) for _ in range(int(np.prod(sizes)))], rng.choice(["i4", "i8", "i1"]))
            a = a.reshape(sizes)
            members.append(rng.choice([a, Positions(a), a.tolist(), tuple(a.tolist()) if a.ndim == 1 else a]))
        elif arrays:
            axes = rng.randrange(1, min(3, len(shape) - axis) + 1)
            mask = np.zeros(shape[axis:axis + axes], bool)
            trues = picked[-1]
            mask.reshape(-1)[rng.sample(range(mask.size), min(trues, mask.size))] = True
            members.append(rng.choice([mask, mask.tolist(), Positions(mask)]))
            axis += axes
            continue
        else:
            continue
        axis += 1
    if arrays and rng.random() < .1:
        members.insert(rng.randrange(len(members) + 1), rng.choice([True, False]))
    return members[0] if len(members) == 1 and rng.random() < .5 else tuple(members)


def key(index, of_positions):
    if isinstance(index, tuple):
        return tuple(key(m, of_positions) for m in index)
    return of_positions(index.array) if isinstance(index, Positions) else index


def outcome(f):
    """What f gives, or that it is an error."""
    try:
        return f()
    except (IndexError, ValueError, TypeError):
        return "an error"


def written(x, at, value):
    x[at] = value
    return x.numpy() if isinstance(x, Tensor) else x


@pytest.mark.parametrize("first", range(0, 2000, 250))
def test_random_indices(first):
    for seed in range(first, first + 250):
        rng = random.Random(seed)
        shape = tuple(rng.randrange(1, 5) for _ in range(rng.randrange(1, 5)))
        if rng.random() < .05:
            shape = shape[:-1] + (0,)
        x = np.arange(int(np.prod(shape)), dtype="i4").reshape(shape)
        index = members_of(rng, shape)
        theirs, ours = key(index, lambda a: a), key(index, Tensor)
        note = f"seed {seed}: shape {shape}, index {theirs}"
        wanted, got = outcome(lambda: x[theirs]), outcome(lambda: Tensor(x)[ours].numpy())
        np.testing.assert_array_equal(got, wanted, note)
        if isinstance(wanted, str):
            continue
        count = np.arange(wanted.size, dtype="i4").reshape(wanted.shape)
        value = rng.choice([-1, -1 - count, -1 - count[..., -1:] if wanted.ndim and wanted.size else -1])
        given = Tensor(value) if isinstance(value, np.ndarray) and rng.random() < .5 else value
        np.testing.assert_array_equal(outcome(lambda: written(Tensor(x), ours, given)),
                                      outcome(lambda: written(x.copy(), theirs, value)), note)


def test_a_list_or_tuple_within_a_tuple_is_positions():
    a = np.arange(10).reshape(5, 2)
    for index in (((0, 2, 4),), ([0, 2, 4],), ((0, 2), (1, 0)), ([[0], [1]], [1, 0]), (range(3),), ((), slice(1))):
        assert_equal(Tensor(a)[index], a[tuple(list(i) if isinstance(i, range) else i for i in index)])


def test_a_list_with_slices_is_an_index():
    a = np.arange(12).reshape(3, 4)
    assert_equal(Tensor(a)[[slice(0, 2), np.array([0, 3])]], a[slice(0, 2), np.array([0, 3])])
    assert_equal(Tensor(a)[[1, None]], a[1, None])
    assert_equal(Tensor(a)[[..., 1]], a[..., 1])


def test_numbers_first():
    """Beside index tensors numbers are views: x[0, :, i] is x[0][:, i], as in PyTorch and tinygrad."""
    a, i = np.arange(120).reshape(2, 3, 4, 5), np.array([3, 0])
    assert_equal(Tensor(a)[1, :, i], a[1][:, i])
    assert_equal(Tensor(a)[:, i % 3, :, -1], a[..., -1][:, i % 3])


# ---- outside

OUTSIDE = {
    "index": lambda x, i: x[i], "index of an axis": lambda x, i: x[:, i], "set": lambda x, i: x.__setitem__(i, 0),
    "gather": lambda x, i: x.gather(0, i.reshape(-1, 1)), "index_select": lambda x, i: x.index_select(0, i),
    "scatter": lambda x, i: x.scatter(0, i.reshape(-1, 1), x[:1, :1].expand(i.shape[0], 1)),
    "one_hot": lambda x, i: i.one_hot(3), "embedding": lambda x, i: nn.Embedding(3, 2)(i),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_known_position_outside_is_an_error(name):
    x = Tensor.arange(9).reshape(3, 3).float()
    for positions in ([3], [0, 5], [-4], [0, 2**40]):
        i = Tensor(positions)
        views = (i, i.reshape(-1, 1)[:, 0], i.flip(0), Tensor([7, *positions, 7])[1:-1], i.realize(), i.detach())
        for view in views:
            with pytest.raises(IndexError, match="out of bounds"):
                OUTSIDE[name](x, view)
    OUTSIDE[name](x, Tensor([9, 0, 1, 9])[1:3])  # what a view does not show does not count
    OUTSIDE[name](x, Tensor([], dtype=dtypes.int32))


def test_a_position_that_is_computed_reads_0_and_writes_nothing():
    x, i = Tensor([1, 2, 3]), Tensor([1, 4, -3]) + 1
    assert x[i].tolist() == [3, 0, 2] and i.one_hot(3).tolist() == [[0, 0, 1], [0, 0, 0], [0, 0, 0]]
    x[i] = 9
    assert x.tolist() == [1, 9, 9]


def test_a_captured_function_takes_other_positions():
    f = TinyJit(lambda x, i: x[i].realize())
    x = Tensor([1.0, 2, 3]).realize()
    with pytest.raises(IndexError):
        f(x, Tensor([3]).realize())
    assert [f(x, Tensor([k]).realize()).tolist() for k in (0, 1, 2, 0)] == [[1], [2], [3], [1]]


def test_wide_class_numbers():
    assert (Tensor([2**32], dtype=dtypes.int64) + 1).one_hot(3).tolist() == [[0, 0, 0]]
    assert Tensor([True, False]).one_hot(2).tolist() == [[0, 1], [1, 0]]
    assert Tensor([255], dtype=dtypes.uint8).one_hot(256).argmax(-1).item() == 255


# ---- gradients of what is written

SETS = {
    "all": lambda z, x: z.__setitem__(slice(None), x), "a row": lambda z, x: z.__setitem__(1, x[0]),
    "columns": lambda z, x: z.__setitem__((slice(None), slice(3, 0, -2)), x[:, :2]),
    "positions": lambda z, x: z.__setitem__(Tensor([2, 0]), x[:2]),
    "pairs": lambda z, x: z.__setitem__(([0, 2], [1, 3]), x[0, :2]),
    "a mask": lambda z, x: z.__setitem__(Tensor(np.eye(3, 4) > 0), x[0, :3]),
    "a transpose": lambda z, x: z.T.__setitem__(2, x[:, 1]), "assign": lambda z, x: z.assign(x),
    "+=": lambda z, x: z.__iadd__(x), "+= of a row": lambda z, x: z.__setitem__(1, z[1] + x[2]),
    "twice": lambda z, x: (z.__setitem__(0, x[1]), z.__setitem__((slice(None), 0), x[:, 2])),
}


@needs_torch
@pytest.mark.parametrize("asked", (True, None))
@pytest.mark.parametrize("name", SETS)
def test_what_is_written_has_gradients(name, asked):
    a, b = (np.arange(12, dtype="f4").reshape(3, 4) / 7 + k for k in (1, 2))
    weights = np.arange(12, dtype="f4").reshape(3, 4)

    x, z = Tensor(a, requires_grad=asked), Tensor(b)
    SETS[name](z, x)
    (z * z * Tensor(weights, requires_grad=False)).sum().backward()

    u, leaf = torch.tensor(a, requires_grad=True), torch.tensor(b, requires_grad=True)
    v = leaf * 1
    torch_sets = {
        "all": lambda: v.__setitem__(slice(None), u), "a row": lambda: v.__setitem__(1, u[0]),
        "columns": lambda: v.__setitem__((slice(None), [3, 1]), u[:, :2]),
        "positions": lambda: v.__setitem__(torch.tensor([2, 0]), u[:2]),
        "pairs": lambda: v.__setitem__(([0, 2], [1, 3]), u[0, :2]),
        "a mask": lambda: v.__setitem__(torch.eye(3, 4) > 0, u[0, :3]), "a transpose": lambda: v.T.__setitem__(2, u[:, 1]),
        "assign": lambda: v.copy_(u), "+=": lambda: v.__iadd__(u), "+= of a row": lambda: v.__setitem__(1, v[1] + u[2]),
        "twice": lambda: (v.__setitem__(0, u[1]), v.__setitem__((slice(None), 0), u[:, 2])),
    }
    torch_sets[name]()
    (v * v * torch.tensor(weights)).sum().backward()
    np.testing.assert_allclose(z.numpy(), v.detach().numpy(), rtol=1e-6)
    np.testing.assert_allclose(x.grad.numpy(), u.grad.numpy(), rtol=1e-5)
