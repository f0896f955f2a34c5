"""Which tensors get gradients, and when."""
import numpy as np
import pytest

from weft import _core
from weft import Tensor, dtypes

from conftest import assert_close, needs_torch, torch


def test_leaves_without_asking():
    x, y = Tensor([[1.0, 2], [3, 4]]), Tensor([[2.0, 0]])
    y.matmul(x).sum().backward()
    assert x.requires_grad is None and not x.grad.is_realized  # gradients are lazy
    assert x.grad.tolist() == [[2, 2], [0, 0]] and y.grad.tolist() == [[3, 7]]


def test_equal_constants_are_two_leaves():
    a, b = Tensor.ones(2), Tensor.ones(2)
    (a * 3 + b).sum().backward()
    assert a.grad.tolist() == [3, 3] and b.grad.tolist() == [1, 1]


def test_random_and_like_tensors_are_leaves():
    for leaf in (Tensor.rand(2), Tensor.randn(2), Tensor.zeros(2), Tensor([1.0, 2.0]).full_like(3)):
        (leaf * 2).sum().backward()
        assert leaf.grad.tolist() == [2, 2]


def test_those_who_ask_are_the_only_ones():
    w, x = Tensor([2.0], requires_grad=True), Tensor([3.0])
    (w * x).backward()
    assert w.grad.tolist() == [3] and x.grad is None


def test_excluded():
    w, frozen = Tensor([2.0]), Tensor([3.0], requires_grad=False)
    also = Tensor([4.0]).is_param_(False)
    (w * frozen * also).backward()
    assert w.grad.tolist() == [12] and frozen.grad is None and also.grad is None
    assert frozen.requires_grad is False and also.requires_grad is False
    also.is_param_()
    (w * also).backward()
    assert also.grad.tolist() == [2]


def test_integers_are_no_leaves():
    i, w = Tensor([2]), Tensor([3.0])
    (i * w).backward()
    assert i.grad is None and w.grad.tolist() == [2]
    with pytest.raises(TypeError):
        Tensor([1], requires_grad=True)


def test_views_and_results_are_no_leaves():
    x = Tensor([[1.0, 2.0]])
    y = x * 2
    y.sum().backward()
    assert y.grad.tolist() == [[1, 1]] and x.grad.tolist() == [[2, 2]]
    assert x[0].grad is None  # of a whole tensor alone
    with pytest.raises(ValueError, match="view"):
        x[0].requires_grad_()


def test_a_parameter_that_is_computed():
    w = Tensor([2.0])
    p = w * .5
    (p * p * 3).sum().backward()
    assert p.grad.tolist() == [6] and w.grad.tolist() == [3]
    (p * 2).sum().backward()
    assert p.grad.tolist() == [8]
    asked = Tensor([2.0], requires_grad=True)
    q = asked * .5
    (q * q * p).sum().backward()
    with pytest.warns(UserWarning, match="computed"):
        assert q.grad is None
    assert asked.grad.tolist() == [1] and p.grad.tolist() == [8]  # those who ask are the only ones
    q = (asked * .5).requires_grad_()
    (q * q).sum().backward()
    assert q.grad.tolist() == [2]


def test_constants():
    """tinygrad's front page."""
    x, y = Tensor.eye(3), Tensor([[2.0, 0, -2.0]])
    z = y.matmul(x).sum()
    z.backward()
    gx, gy = z.gradient(x, y)
    assert x.grad.tolist() == gx.tolist() == [[2, 2, 2], [0, 0, 0], [-2, -2, -2]]
    assert y.grad.tolist() == gy.tolist() == [[1, 1, 1]]
    for make in (lambda: Tensor.eye(2), lambda: Tensor.arange(4).float().reshape(2, 2), lambda: Tensor.ones(2, 2),
                 lambda: Tensor.linspace(0, 1, 4).reshape(2, 2), lambda: Tensor.ones(2, 2).tril(), lambda: Tensor.rand(2, 2)):
        t = make()
        g, = (t * t * t).sum().gradient(t)
        assert_close(g, 3 * t.numpy()**2)
    with pytest.raises(ValueError, match="constant"):
        t = Tensor.full((2,), 2.0, buffer=False)
        (t * 2).sum().gradient(t)


def test_what_was_not_used_has_zeros():
    x, unused = Tensor([1.0, 2.0]), Tensor([[3.0]])
    gx, g = (x * x).sum().gradient(x, unused)
    assert gx.tolist() == [2, 4] and g.tolist() == [[0]]
    (x * 2).sum().backward()
    assert unused.grad is None
    y = (x * 3).realize()
    with pytest.raises(ValueError, match="history"):
        (y * y).sum().gradient(x)
    gy, = (y * y).sum().gradient(y)
    assert gy.tolist() == [6, 12]


def test_a_detached_alias():
    w = Tensor([1.0, 2.0], requires_grad=True)
    d = w.detach()
    (w * d).sum().backward()
    assert w.grad.tolist() == [1, 2] and d.grad is None and d.requires_grad is False
    leaf = w.detach().requires_grad_()
    (leaf * leaf).sum().backward()
    assert leaf.grad.tolist() == [2, 4] and w.grad.tolist() == [1, 2]
    y = w * 3
    y.detach().realize()
    y.detach().numpy()
    y.sum().backward()  # looking at an alias has not ended y's history
    assert w.grad.tolist() == [4, 5]


def test_gradients_add_up_until_forgotten():
    w = Tensor([1.0])
    (w * 2).backward()
    (w * 3).backward()
    assert w.grad.tolist() == [5]
    w.grad = None
    (w * 3).backward()
    assert w.grad.tolist() == [3]
    w.grad = Tensor([7.0])
    assert w.grad.tolist() == [7]
    with pytest.raises(ValueError):
        w.grad = Tensor([1.0, 2.0])


def test_a_leaf_that_was_realized_meanwhile():
    w = Tensor.rand(3)
    y = (w * 2).sum()
    w.realize()
    y.backward()
    assert w.grad.tolist() == [2, 2, 2]


def test_upstream_gradient_and_errors():
    w = Tensor([1.0, 2.0])
    (w * w).backward(gradient=Tensor([1.0, 10.0]))
    assert w.grad.tolist() == [2, 40]
    with pytest.raises(ValueError, match="one number"):
        (w * w).backward()
    with pytest.raises(ValueError, match="no tensor"):
        Tensor.arange(3).float().sum().backward()


def test_gradient_returns_without_touching_grad():
    x, y = Tensor([2.0, 3.0]), Tensor([4.0, 5.0])
    gx, gy = (x * x * y).sum().gradient(x, y)
    second, = gx.sum().gradient(x)
    assert second.tolist() == [8, 10]
    assert gx.tolist() == [16, 30] and gy.tolist() == [4, 9] and x.grad is None
    again, = gx.sum().gradient(x)  # reading gx has not ended its history
    assert again.tolist() == [8, 10]
    gx, = (x * x * y).sum().gradient(x)
    gx.realize()
    with pytest.raises(ValueError, match="history"):
        gx.sum().gradient(x)
    zeros, = gx.sum().gradient(x, materialize_grads=True)
    assert zeros.tolist() == [0, 0]
    up, = (x * y).gradient(x, gradient=Tensor([1.0, 2.0]))
    assert up.tolist() == [4, 10]


def test_detach_stops():
    x = Tensor([2.0])
    (x * x.detach()).backward()
    assert x.grad.tolist() == [2]


def test_no_grad_and_train_are_scopes():
    assert not Tensor([1.0, 1]).dropout(1.0).tolist() == [0, 0]
    with Tensor.no_grad(), Tensor.train():
        assert Tensor([1.0, 1]).dropout(1.0).tolist() == [0, 0]
        with Tensor.train(False):
            assert Tensor([1.0]).dropout(1.0).tolist() == [1]

    Tensor.training = True  # tinygrad's older spelling
    assert Tensor.training and Tensor([1.0]).dropout(1.0).tolist() == [0]
    Tensor.training = False

    @Tensor.train()
    def inside():
        return Tensor([1.0]).dropout(1.0).tolist()
    assert inside() == [0] and Tensor([1.0]).dropout(1.0).tolist() == [1]


TORCH_CASES = {
    "conv": lambda t, x, w: t.conv2d(x.reshape(1, 2, 5, 5), w.reshape(4, 2, 3, 3), padding=1, stride=2),
    "attention": lambda t, x, w: t.attention(x.reshape(1, 5, 10), w[:50].reshape(1, 5, 10), w[20:70].reshape(1, 5, 10)),
    "cross_entropy": lambda t, x, w: t.cross_entropy(x.reshape(10, 5)),
    "max_pool": lambda t, x, w: t.max_pool2d(x.reshape(1, 2, 5, 5), 2),
    "layernorm": lambda t, x, w: t.layernorm(x.reshape(5, 10)),
    "gelu": lambda t, x, w: t.gelu(x) * w[:50],
    "matmul": lambda t, x, w: x.reshape(5, 10) @ w[:60].reshape(10, 6),
}


class Ours:
    conv2d = staticmethod(lambda x, w, **k: x.conv2d(w, **k))
    attention = staticmethod(lambda q, k, v: q.scaled_dot_product_attention(k, v, is_causal=True))
    cross_entropy = staticmethod(lambda x: x.cross_entropy(Tensor([0, 1, 2, 3, 4] * 2), label_smoothing=.1))
    max_pool2d = staticmethod(lambda x, k: x.max_pool2d(k))
    layernorm = staticmethod(lambda x: x.layernorm())
    gelu = staticmethod(lambda x: x.gelu())


class Torchs:
    conv2d = staticmethod(lambda x, w, **k: torch.nn.functional.conv2d(x, w, **k))
    attention = staticmethod(lambda q, k, v: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True))
    cross_entropy = staticmethod(lambda x: torch.nn.functional.cross_entropy(x, torch.tensor([0, 1, 2, 3, 4] * 2), label_smoothing=.1))
    max_pool2d = staticmethod(lambda x, k: torch.nn.functional.max_pool2d(x, k))
    layernorm = staticmethod(lambda x: torch.nn.functional.layer_norm(x, x.shape[-1:]))
    gelu = staticmethod(lambda x: torch.nn.functional.gelu(x, approximate="tanh"))


@needs_torch
@pytest.mark.parametrize("name", TORCH_CASES)
def test_values_and_gradients_are_torchs(name):
    rng = np.random.default_rng(1)
    x, w = rng.normal(size=50), rng.normal(size=72)
    ours = [Tensor(a, requires_grad=True) for a in (x, w)]
    theirs = [torch.tensor(a, requires_grad=True) for a in (x, w)]
    y, wanted = TORCH_CASES[name](Ours, *ours), TORCH_CASES[name](Torchs, *theirs)
    (y * y).sum().backward()
    (wanted * wanted).sum().backward()
    assert_close(y, wanted.detach().numpy(), 1e-6, 1e-7)
    for a, b in zip(ours, theirs):
        if b.grad is not None:
            assert_close(a.grad, b.grad.numpy(), 1e-5, 1e-6)


def test_dtype_of_gradients():
    x = Tensor([1.0, 2.0], dtype="half", requires_grad=True)
    (x.float() * 2).sum().backward()
    assert x.grad.dtype == dtypes.half


def test_backward_returns_the_tensor():
    w = Tensor([2.0], requires_grad=True)
    loss = (w * w).sum().backward()
    assert loss.item() == 4 and w.grad.tolist() == [4]


# ---- what was read

def test_reading_a_loss_does_not_end_its_history():
    x = Tensor([1.0, 2.0], requires_grad=True)
    loss = (x * x).sum()
    assert loss.item() == 5
    loss.backward()
    assert x.grad.tolist() == [2, 4]


def test_reading_what_is_between_does_not_either():
    x, w = Tensor([1.0, 2.0], requires_grad=True), Tensor([3.0, 4.0], requires_grad=True)
    hidden = (x * w).relu()
    shown = hidden.numpy()
    further = hidden * hidden
    assert further.tolist() == [9, 64] and shown.tolist() == [3, 8]
    further.sum().backward()
    assert x.grad.tolist() == [18, 64] and w.grad.tolist() == [6, 32]


def test_what_was_read_is_a_target_as_well():
    x = Tensor([1.0, 2.0])
    y = x * 3
    assert y.tolist() == [3, 6]
    dx, dy = (y * y).sum().gradient(x, y)
    assert dx.tolist() == [18, 36] and dy.tolist() == [6, 12]


def test_a_write_ends_the_history():
    x = Tensor([1.0, 2.0], requires_grad=True)
    y = x * 3
    y.numpy()
    y.assign(Tensor([5.0, 5.0]))
    with pytest.raises(RuntimeError, match="depends on no tensor"):
        y.sum().backward()


# ---- slopes at kinks, and outside of where functions are defined

@pytest.mark.parametrize("name, at, slope", [
    ("elu", 0.0, 1.0), ("celu", 0.0, 1.0), ("leaky_relu", 0.0, 0.01), ("selu", 0.0, 1.0507009873554805 * 1.6732632423543772),
    ("atanh", 1.0, np.inf), ("atanh", 2.0, -1 / 3), ("atanh", 0.4999, 1 / (1 - 0.4999 ** 2)),
    ("acosh", -300.0, 1 / np.sqrt(300.0 ** 2 - 1)), ("acosh", 2.0, 1 / np.sqrt(3)),
])
def test_slope(name, at, slope):
    x = Tensor([at], dtype="float64")
    np.testing.assert_allclose(getattr(x, name)().sum().gradient(x)[0].numpy(), [slope], rtol=1e-9)


@pytest.mark.parametrize("base, exponent, value, slope", [
    (-np.inf, 0.3, np.inf, 0.0), (np.inf, 0.3, np.inf, 0.0), (np.inf, -0.5, 0.0, 0.0), (np.inf, 1.5, np.inf, np.inf),
    (-np.inf, 2.5, np.inf, -np.inf),
])
def test_powers_of_infinities(base, exponent, value, slope):
    x = Tensor([base])
    y = x ** exponent
    assert y.sum().gradient(x)[0].tolist() == [slope] and y.tolist() == [value]


def test_a_power_of_a_negative_number_has_no_slope_along_its_exponent():
    x, e = Tensor([-2.0, 2.0]), Tensor([3.0, 3.0])
    dx, de = (x ** e).sum().gradient(x, e)
    np.testing.assert_allclose(dx.numpy(), [12, 12])
    np.testing.assert_allclose(de.numpy(), [np.nan, 8 * np.log(2)], rtol=1e-6)


def test_equal_numbers_have_no_spread_to_grow():
    x = Tensor([[2.0, 2.0], [1.0, 3.0]])
    np.testing.assert_allclose(x.std(1).sum().gradient(x)[0].numpy(), [[0, 0], [-0.5 ** 0.5, 0.5 ** 0.5]], rtol=1e-6)


@pytest.mark.parametrize("dtype", ("float16", "bfloat16"))
def test_many_that_are_the_largest_share_the_slope(dtype):
    x = Tensor.ones(70000, dtype=dtype).contiguous()
    share = x.max().gradient(x)[0].float()
    assert share.sum().item() == pytest.approx(1, rel=3e-3) and share.max().item() == share.min().item()


def test_a_gradient_of_one_number_in_a_row():
    x = Tensor([1.0, 2.0, 3.0])
    assert (x * x).sum().gradient(x, gradient=Tensor([3.0]))[0].tolist() == [6, 12, 18]
    (x * x).sum().backward(Tensor([[2.0]]))
    assert x.grad.tolist() == [4, 8, 12]


def test_acosh_has_no_value_below_1():
    x = Tensor([-np.inf, -1e30, -300.0, 0.5, 1.0, 2.0])
    np.testing.assert_allclose(x.acosh().numpy(), [np.nan] * 4 + [0, np.arccosh(2)], rtol=1e-6)


def test_a_list_of_losses_holds_no_parameters():
    w = Tensor.ones(1000, requires_grad=True).contiguous().realize()
    losses, live = [], []
    for _ in range(6):
        w.grad = None
        loss = (w * w).sum().backward()
        w.assign(w.detach() - 0.1 * w.grad).realize()
        assert loss.item() > 0
        losses.append(loss)
        _core.collect_garbage()
        live.append(_core.stats()["memory_live"])
    assert live[-1] - live[1] < 4000  # bytes of one w
