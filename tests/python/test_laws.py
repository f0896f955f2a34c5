"""The laws of the transforms, on every operation that has a gradient: vmap is the loop over slices, gradients of what
is mapped are the mapped gradients, jvp and vjp are each other's transpose."""
import numpy as np
import pytest

import every_op  # noqa: F401: fills ROWS
from every_op.operands import as_tuple, drawn, eps
from every_op.rows import ROWS
from weft import Tensor, dtypes, jvp, vjp, vmap

LAWFUL = [name for name, row in ROWS.items() if row.grad and any(row.shapes)]
SLICES = 3


def primals(name, count=()):
    """Operands of the largest shapes that the row lists; `count` of each, stacked."""
    row = ROWS[name]
    shapes = max(row.shapes, key=lambda s: sum(int(np.prod(x)) for x in s))
    rng = np.random.default_rng(sum(map(ord, name)))
    return [np.stack([drawn(row, dtypes.float64, s, i, rng) for _ in range(*count)]) if count
            else drawn(row, dtypes.float64, s, i, rng) for i, s in enumerate(shapes)]


def function(name):
    """The row's results that have derivatives."""
    def f(*operands):
        return [y for y in as_tuple(ROWS[name].ours(*operands)) if isinstance(y, Tensor) and y.is_floating_point()]
    return f


def tensors(arrays):
    return [Tensor(a, dtype=dtypes.float64) for a in arrays]


def weights(y: Tensor) -> Tensor:
    return Tensor(np.cos(np.arange(y.numel()) + 1.0).reshape(y.shape), dtype=y.dtype)


def assert_close(a, b, where):
    assert len(a) == len(b), where
    for x, y in zip(a, b):
        near = 1e-9 if x.dtype == dtypes.float64 else 4 * eps(x.dtype)  # of what casts give
        np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=near, atol=near, err_msg=where)


@pytest.mark.parametrize("name", LAWFUL)
def test_vmap_is_the_loop(name):
    f, stacks = function(name), tensors(primals(name, (SLICES,)))
    slices = [f(*(s[i] for s in stacks)) for i in range(SLICES)]
    looped = [Tensor.stack(*ys) for ys in zip(*slices)]
    Tensor.realize(*looped)
    assert_close(vmap(f)(*stacks), looped, name)


@pytest.mark.parametrize("name", LAWFUL)
def test_gradients_of_slices_are_slices_of_gradients(name):
    f = function(name)

    def gradients(*x):
        ys, pull = vjp(f, *x)
        return list(pull([weights(y) for y in ys]))
    stacks = tensors(primals(name, (SLICES,)))
    mapped = vmap(gradients)(*stacks)
    ys, pull = vjp(vmap(f), *stacks)
    of_all = pull([Tensor.stack(*[weights(y[0])] * SLICES) for y in ys])
    assert_close(mapped, of_all, name)


@pytest.mark.parametrize("name", LAWFUL)
def test_forward_and_reverse_are_transposes(name):
    f, x = function(name), tensors(primals(name))
    along = [weights(a) for a in x]
    ys, moved = jvp(f, x, along)
    _, pull = vjp(f, *x)
    forward = sum((m * weights(y)).sum() for y, m in zip(ys, moved))
    reverse = sum((g * a).sum() for g, a in zip(pull([weights(y) for y in ys]), along))
    assert_close([forward], [reverse], name)
