"""detach() and bitcast() are views: random programs against NumPy, and files."""
import random

import numpy as np
import pytest

from weft import Tensor, TinyJit

INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64"]


def seen(rng, x, t):
    """A random view of both."""
    kind = rng.randrange(6)
    if kind == 0:
        return x.view(), t.detach()
    if kind == 1:
        axes = rng.sample(range(x.ndim), x.ndim)
        return x.transpose(axes), t.permute(axes)
    if kind == 2 and x.ndim:
        axis = rng.randrange(x.ndim)
        cut = (slice(None),) * axis + (slice(rng.randrange(x.shape[axis]), None, rng.choice([1, 2])),)
        return x[cut], t[cut]
    if kind == 3:
        sizes = rng.choice([(-1,), (1, -1), (x.shape[0], -1)]) if x.ndim else (1,)
        try:
            y = x.view()
            y.shape = y.reshape(sizes).shape  # refuses what would be a copy
        except AttributeError:
            return x, t
        return y, t.reshape(sizes)
    dtype = rng.choice(INTEGERS)
    try:
        return x.view(dtype), t.bitcast(dtype)
    except ValueError:
        return x, t


@pytest.mark.parametrize("first", range(0, 400, 100))
def test_writing_through_views(first):
    for seed in range(first, first + 100):
        rng = random.Random(seed)
        memory = np.arange(48, dtype=rng.choice(INTEGERS)).reshape(rng.choice([(48,), (6, 8), (2, 3, 8)]))
        whole = Tensor(memory.copy())
        if rng.random() < .3:
            whole = whole + 0  # not in memory yet
        pool = [(memory, whole)]
        for _ in range(8):
            x, t = seen(rng, *rng.choice(pool))
            pool.append((x, t))
            if rng.random() < .5 and x.size:
                value = rng.randrange(100)
                x[...] = value
                t[...] = value
            if rng.random() < .2:
                t.realize()
        for x, t in pool:
            np.testing.assert_array_equal(t.numpy(), x, f"seed {seed}")


# Where nothing is left to compute the result is no view all the same: NumPy's and PyTorch's are none.
COPIES = (lambda t: t.repeat(1, 1), lambda t: t.repeat(3, 1), lambda t: t.repeat_interleave(1, 0),
          lambda t: t.repeat_interleave(2, 0), lambda t: t.roll(3, 1), lambda t: t.roll(0, 0), lambda t: t.roll(6), lambda t: t**1,
          lambda t: t.floor(), lambda t: t.ceil(), lambda t: t.round(), lambda t: t.trunc(), lambda t: t.abs(),
          lambda t: t.nan_to_num())


@pytest.mark.parametrize("f", COPIES)
@pytest.mark.parametrize("dtype", ["uint8", "int32", "float32"])
def test_functions_that_change_nothing_copy(f, dtype):
    t = Tensor([[1, 2, 3]], dtype=dtype)
    y = f(t)
    before = y.tolist()
    t[:] = 7
    assert y.tolist() == before
    y[0] = 9  # nor does it show several elements in one place
    assert t.tolist() == [[7] * 3] and y.tolist()[0] == [9] * y.shape[1]


@pytest.mark.parametrize("offset", range(-4, 5))
def test_writing_through_diagonals(offset):
    for shape, axes in (((3, 5), (0, 1)), ((5, 3), (1, 0)), ((4, 4), (0, 1)), ((2, 3, 4), (0, 2)), ((3, 0), (0, 1))):
        for part in (slice(None), slice(1, None), slice(None, None, -1)):
            x = np.arange(float(np.prod(shape)), dtype=np.float32).reshape(shape)
            t = Tensor(x.copy())
            seen, ours = x[:, part].diagonal(offset, *axes), t[:, part].diagonal(offset, *axes)
            seen.flags.writeable = True
            seen[...] = -1
            ours[:] = -1
            np.testing.assert_array_equal(t.numpy(), x, f"{shape} {axes} {part}")
            x[:] += 1
            t += 1
            np.testing.assert_array_equal(ours.numpy(), seen)


@pytest.mark.parametrize("select", (lambda t, at: t.index_select(1, at), lambda t, at: t[:, at]))
def test_views_of_what_is_selected(select):
    at = Tensor(np.arange(33) % 2)

    def f(t):
        y = select(t, at)
        y.reshape(11, 3, 5)[0] = 9
        return y
    jitted = TinyJit(f)
    for k in range(4):
        x = np.arange(10, dtype=np.float32).reshape(5, 2) + k
        wanted = np.ascontiguousarray(x[:, at.numpy()])
        wanted.reshape(11, 3, 5)[0] = 9
        for got in (f(Tensor(x)), jitted(Tensor(x).realize())):
            np.testing.assert_array_equal(got.numpy(), wanted)


def test_detach_aliases():
    w = Tensor.ones(3).contiguous().realize()
    d = w.detach()
    d[0] = 0
    d.realize()
    assert w.tolist() == [0, 1, 1]
    d.assign(Tensor([5.0, 6, 7]))
    assert w.tolist() == d.tolist() == [5, 6, 7]
    w += 1
    assert d.tolist() == [6, 7, 8]
    w.detach().detach()[1:].T[0] = 9
    assert w.tolist() == [6, 9, 8]


def test_files(tmp_path):
    path = tmp_path / "numbers"
    t = Tensor.empty(16, dtype="uint8", device=f"disk:{path}")
    wanted = np.zeros(16, np.uint8)
    t.bitcast("float32")[1] = 1.0
    wanted.view("f4")[1] = 1
    t.bitcast("float32").reshape(2, 2).bitcast("uint16")[0] = 7
    wanted.view("f4").reshape(2, 2).view("u2")[0] = 7
    t.detach()[-1] = 3
    wanted[-1] = 3
    assert path.read_bytes() == wanted.tobytes() and t.tolist() == wanted.tolist()


def test_bits_of_a_bool_are_one():
    x = Tensor([0, 1, 2, 255], dtype="uint8").bitcast("bool")
    assert x.tolist() == [False, True, True, True] and x.bitcast("uint8").tolist() == [0, 1, 1, 1]
    assert x.sort()[0].tolist() == [False, True, True, True] and x.sum().item() == 3
