"""vmap, grad and the like: laws, and NumPy where there is a closed form."""
import numpy as np
import pytest

import weft
from conftest import needs_torch, torch
from weft import Tensor, dtypes, nn
from weft.dtype import (can_lossless_cast, float_to_bf16, float_to_fp16, float_to_fp8, fp8_to_float)


def near(a, b, tolerance=1e-5):
    np.testing.assert_allclose(a.numpy(), b.numpy() if isinstance(b, Tensor) else b, rtol=tolerance,
                               atol=tolerance)


FUNCTIONS = [
    lambda x: (x * x).sum(),
    lambda x: x.softmax(-1),
    lambda x: x @ x.T,
    lambda x: x.relu().cumsum(0),
    lambda x: x[1:, ::2].max(axis=0),
    lambda x: (x.reshape(2, 6).permute(1, 0), x.mean()),
]


@pytest.mark.parametrize("f", FUNCTIONS)
def test_vmap_is_a_loop(f):
    Tensor.manual_seed(1)
    x = Tensor.randn(5, 3, 4)
    got = weft.vmap(f)(x)
    each = [f(x[i]) for i in range(5)]
    if isinstance(got, tuple):
        for k, g in enumerate(got):
            near(g, Tensor.stack(*[e[k] for e in each]))
    else:
        near(got, Tensor.stack(*each))


def test_per_example_gradients():
    w, x, y = Tensor.randn(3, 2), Tensor.randn(8, 3), Tensor.randn(8, 2)

    def loss(w, x, y):
        return ((x.reshape(1, 3) @ w).reshape(2) - y).square().sum()
    each = weft.vmap(weft.grad(loss), in_axes=(None, 0, 0))(w, x, y)
    assert each.shape == (8, 3, 2)
    error = x.numpy() @ w.numpy() - y.numpy()
    near(each, 2 * x.numpy()[:, :, None] * error[:, None, :], 1e-4)


def test_jvp_and_vjp_are_dual():
    x, v = Tensor.randn(4, 3), Tensor.randn(4, 3)
    y, moved = weft.jvp(lambda t: t.tanh() @ t.T, [x], [v])
    u = Tensor.randn(*y.shape)
    same, pull = weft.vjp(lambda t: t.tanh() @ t.T, x)
    near(y, same)
    near((u * moved).sum(), (pull(u)[0] * v).sum(), 1e-4)


def test_jacobian_and_hessian():
    m = Tensor.randn(4, 4)
    x = Tensor.randn(4)
    near(weft.jacobian(lambda v: m @ v)(x), m)
    near(weft.hessian(lambda v: v.dot(m @ v))(x), m.numpy() + m.numpy().T)


def test_value_and_grad_of_several():
    a, b = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
    value, (da, db) = weft.value_and_grad(lambda p, q: (p * q).sum(), argnums=(0, 1))(a, b)
    assert value.item() == 11
    near(da, [3, 4])
    near(db, [1, 2])


def test_errors():
    with pytest.raises(ValueError, match="slices"):
        weft.vmap(lambda a, b: a + b)(Tensor.ones(3), Tensor.ones(4))
    with pytest.raises(TypeError, match="floating-point"):
        weft.vjp(lambda t: t, Tensor([1, 2]))
    for reads in (lambda t: t.item(), lambda t: t.numpy(), lambda t: t.realize(), lambda t: t if t > 0 else -t):
        with pytest.raises((ValueError, RuntimeError), match="asked for the values"):
            weft.vmap(reads)(Tensor.ones(3))
    with pytest.raises(ZeroDivisionError):
        weft.vmap(lambda t: 1 / 0)(Tensor.ones(3))


@pytest.mark.parametrize("dtype", dtypes.fp8s)
def test_8_bit_floats(dtype):
    codes = Tensor(bytes(range(256))).bitcast(dtype)
    values = codes.cast(dtypes.float32)
    back = values.cast(dtype).cast(dtypes.float32)
    np.testing.assert_array_equal(values.numpy(), back.numpy())
    assert (codes + 1.0).dtype == dtype
    assert (codes + Tensor([1.0], dtype=dtypes.half)).dtype == dtypes.half


@needs_torch
@pytest.mark.parametrize("dtype", dtypes.fp8s)
def test_8_bit_floats_are_torchs(dtype):
    kind = getattr(torch, dtype.name)
    values = Tensor(bytes(range(256))).bitcast(dtype).cast(dtypes.float32)
    expected = torch.arange(256, dtype=torch.uint8).view(kind).to(torch.float32).numpy()
    np.testing.assert_array_equal(values.numpy(), expected)
    x = np.random.default_rng(0).normal(0, 100, 5000).astype(np.float32)
    theirs = torch.tensor(x).to(kind).to(torch.float32).numpy()
    np.testing.assert_array_equal(Tensor(x).cast(dtype).cast(dtypes.float32).numpy(), theirs)


def test_conversions_of_single_numbers():
    assert float_to_fp8(448.0, dtypes.fp8e4m3) == 126
    assert float_to_fp8(-57344.0, dtypes.fp8e5m2) == 123 + 128
    assert float_to_fp8(1e9, dtypes.fp8e4m3) == 126 and float_to_fp8(-449.0, dtypes.fp8e4m3) == 126 + 128
    assert float_to_fp8(float("inf"), dtypes.fp8e4m3) & 127 == 127
    assert float_to_fp8(float("inf"), dtypes.fp8e5m2) == 124
    assert fp8_to_float(1, dtypes.fp8e4m3) == 2.0 ** -9
    assert fp8_to_float(1, dtypes.fp8e5m2) == 2.0 ** -16
    assert float_to_fp16(65519.9) == 65504 and float_to_fp16(65520) == float("inf")
    assert float_to_bf16(1.00390625) == 1.0 and float_to_bf16(1.01171875) == 1.015625
    with pytest.raises(TypeError):
        float_to_fp8(1.0, dtypes.float16)


def test_can_lossless_cast():
    assert can_lossless_cast(dtypes.uint8, dtypes.float16) and can_lossless_cast(dtypes.bool, dtypes.int8)
    assert can_lossless_cast(dtypes.fp8e5m2, dtypes.half) and can_lossless_cast(dtypes.int32, dtypes.double)
    assert not can_lossless_cast(dtypes.int32, dtypes.float32)
    assert not can_lossless_cast(dtypes.half, dtypes.bfloat16)
    assert not can_lossless_cast(dtypes.uint64, dtypes.int64)
    assert not can_lossless_cast(dtypes.float32, dtypes.int32)


def _regression(parts=None):
    Tensor.manual_seed(5)
    w = Tensor.randn(4, 3).realize().requires_grad_()
    x, y = Tensor.randn(12, 4).realize(), Tensor.randn(12, 3).realize()
    def loss(a, b):
        return ((a @ w).tanh() - b).square().mean()
    if parts is None:
        value = loss(x, y)
        value.backward()
    else:
        value = weft.accumulate_gradients(loss, (x, y), parts)
    return value.numpy(), w.grad.numpy()


@pytest.mark.parametrize("parts", [1, 2, 3, 12])
def test_gradients_accumulate_to_those_of_the_batch(parts):
    want, got = _regression(), _regression(parts)
    np.testing.assert_allclose(got[0], want[0], rtol=1e-6)
    np.testing.assert_allclose(got[1], want[1], rtol=1e-5, atol=1e-7)


def test_accumulation_takes_trees_and_sums():
    w = Tensor([1.0, 2.0]).requires_grad_()
    x = Tensor(np.arange(16, dtype=np.float32).reshape(8, 2))
    loss = weft.accumulate_gradients(lambda batch: (batch["x"][0] * w).sum(), [{"x": [x]}], 4, reduction="sum")
    assert loss.item() == (x.numpy() * [1, 2]).sum()
    np.testing.assert_array_equal(w.grad.numpy(), x.numpy().sum(0))
    assert weft.accumulate_gradients(lambda a: (a * w).sum(), x, 2).item() == loss.item() / 2


def test_accumulation_refuses_what_it_cannot_cut():
    w = Tensor([1.0]).requires_grad_()
    with pytest.raises(ValueError, match="a batch of 6 cannot be cut into 4 equal micro-batches"):
        weft.accumulate_gradients(lambda a: (a * w).sum(), Tensor.ones(6), 4)
    with pytest.raises(ValueError, match="reduction must be"):
        weft.accumulate_gradients(lambda a: (a * w).sum(), Tensor.ones(6), 2, reduction="none")
    with pytest.raises(ValueError, match="must be one number"):
        weft.accumulate_gradients(lambda a: a * w, Tensor.ones(6), 2)


def test_hessian_of_a_write_to_a_part():
    def f(x):
        part = x[1:]
        y = part + 0
        y[0] = part[-1] * 2
        return (y * y).sum()
    got = weft.hessian(f)(Tensor([.1, .2, .3, .4, .5]))
    np.testing.assert_allclose(got.numpy(), np.diag([0, 0, 2, 2, 10]), atol=1e-6)


def test_batch_norm_in_transforms_updates_its_averages_once():
    data = np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32)

    def after(run):
        norm = nn.BatchNorm(3)
        with Tensor.train():
            result = run(norm, Tensor(data, requires_grad=True))
        return result.numpy(), norm.running_mean.numpy(), norm.running_var.numpy(), norm.num_batches_tracked.item()

    def gradient(norm, x):
        (norm(x) ** 3).sum().backward()
        return x.grad

    def checkpointed(norm, x):
        (weft.checkpoint(lambda z: norm(z) ** 3)(x)).sum().backward()
        return x.grad

    def nested(norm, x):
        return weft.grad(lambda z: weft.checkpoint(lambda y: (norm(y) ** 3).sum())(z))(x)

    expected = after(gradient)
    for run in (checkpointed, nested, lambda norm, x: weft.grad(lambda z: (norm(z) ** 3).sum())(x),
                lambda norm, x: weft.vjp(lambda z: (norm(z) ** 3).sum(), x)[1](Tensor(1.0))[0]):
        for got, want in zip(after(run), expected):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_what_slices_and_rounds_assign_to_is_refused():
    data = Tensor(np.ones((2, 8, 3), np.float32))
    norm, count = nn.BatchNorm(3), Tensor([0.0]).realize()

    def counting(h, x):
        count.assign(count + 1)
        return h + x.sum(), None

    with Tensor.train():
        with pytest.raises(weft.ArgumentError, match="another value for each slice"):
            weft.vmap(norm)(data)
        with pytest.raises(weft.ArgumentError, match="rounds do not hand on: carry it"):
            weft.scan(lambda h, x: (h, norm(x)), Tensor([0.0]), data)
        with pytest.raises(weft.ArgumentError, match="carry it"):
            weft.scan(counting, Tensor(0.0), data)
        with pytest.raises(ZeroDivisionError):
            weft.grad(lambda z: norm(z).sum() * (1 // 0))(data[0])
    assert norm.running_mean.tolist() == [0.0, 0.0, 0.0] and norm.num_batches_tracked.item() == 0
    assert count.item() == 0


def test_tensors_made_inside_of_slices_and_rounds_are_written():
    x = Tensor([[1.0, 2.0], [3.0, 4.0]])
    kept = []

    def f(row):
        made = Tensor.zeros(2)
        made[0] = row[1]
        kept.append(made)
        return made + row

    assert weft.vmap(f)(x).tolist() == [[3.0, 2.0], [7.0, 4.0]]
    assert weft.scan(lambda h, row: (h, f(row)), Tensor([0.0]), x)[1].tolist() == [[3.0, 2.0], [7.0, 4.0]]
    assert weft.checkpoint(f)(x[0]).tolist() == [3.0, 2.0]
