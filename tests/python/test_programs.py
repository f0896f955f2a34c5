"""Whole programs as tinygrad's users write them: another import is all that changes."""
import pathlib

import numpy as np
import pytest

from weft import Context, Device, GlobalCounters, Tensor, TinyJit, Variable, dtypes, nn
from weft.nn.datasets import mnist
from weft.nn.state import get_parameters, get_state_dict, load_state_dict, safe_load, safe_save

FASHION = pathlib.Path("/usr/share/datasets/fashion-mnist")
needs_images = pytest.mark.skipif(not FASHION.is_dir(), reason="Debian's dataset-fashion-mnist is not installed")


class Net:
    """The convolutional network of tinygrad's MNIST tutorial, smaller."""

    def __init__(self):
        self.l1 = nn.Conv2d(1, 8, kernel_size=(3, 3))
        self.l2 = nn.Conv2d(8, 16, kernel_size=(3, 3))
        self.l3 = nn.Linear(400, 10)

    def __call__(self, x: Tensor) -> Tensor:
        x = self.l1(x).relu().max_pool2d((2, 2))
        x = self.l2(x).relu().max_pool2d((2, 2))
        return self.l3(x.flatten(1).dropout(0.5))


@needs_images
def test_the_mnist_tutorial():
    X_train, Y_train, X_test, Y_test = mnist(fashion=True)
    assert X_train.shape == (60000, 1, 28, 28) and X_train.dtype == dtypes.uint8
    assert Y_train.shape == (60000,) and X_test.shape == (10000, 1, 28, 28)
    Tensor.manual_seed(1337)
    model = Net()
    X_test, Y_test = X_test[:1000].realize(), Y_test[:1000].realize()
    acc = (model(X_test).argmax(axis=1) == Y_test).mean()
    assert acc.item() < .35  # nothing learned yet

    optimizer = nn.optim.Adam(nn.state.get_parameters(model), lr=.003)
    batch_size = 64

    def step():
        samples = Tensor.randint(batch_size, high=X_train.shape[0])
        X, Y = X_train[samples], Y_train[samples]
        optimizer.zero_grad()
        loss = model(X).sparse_categorical_crossentropy(Y)
        loss.backward()
        optimizer.step()
        return loss

    jit_step = TinyJit(step)
    losses = []
    with Context(TRAINING=1):
        for _ in range(60):
            losses.append(jit_step().item())
    assert jit_step.captured and np.mean(losses[-10:]) < .6 * np.mean(losses[:3])
    assert (model(X_test).argmax(axis=1) == Y_test).mean().item() > .55


def test_saving_and_loading_goes_on_where_it_was(tmp_path):
    a, b = Net(), Net()
    safe_save(get_state_dict(a), str(tmp_path / "a.safetensors"))
    load_state_dict(b, safe_load(str(tmp_path / "a.safetensors")))
    x = Tensor.rand(2, 1, 28, 28)
    assert np.array_equal(a(x).numpy(), b(x).numpy())


def test_the_quickstart():
    t1 = Tensor([1, 2, 3, 4, 5])
    t2 = Tensor(np.array([1, 2, 3, 4, 5]))
    assert t1.dtype == dtypes.int32 and t2.dtype == dtypes.int64
    assert Tensor.full(shape=(2, 3), fill_value=5).tolist() == [[5] * 3] * 2
    assert Tensor.rand(2, 3).shape == (2, 3) and Tensor.arange(start=0, stop=10, step=1).shape == (10,)
    t5 = ((t1 + 1) * t1).relu().log_softmax()
    assert abs(t5.exp().sum().item() - 1) < 1e-5

    class TinyNet:
        def __init__(self):
            self.l1, self.l2 = Linear(784, 128, bias=False), Linear(128, 10, bias=False)

        def __call__(self, x):
            return self.l2(self.l1(x).leaky_relu())

    class Linear:  # the quickstart's own
        def __init__(self, in_features, out_features, bias=True):
            self.weight = Tensor.kaiming_uniform(out_features, in_features)
            self.bias = Tensor.zeros(out_features) if bias else None

        def __call__(self, x):
            return x.linear(self.weight.transpose(), self.bias)

    Tensor.manual_seed(0)
    net = TinyNet()
    opt = nn.optim.SGD([net.l1.weight, net.l2.weight], lr=3e-2)
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(10, 784)).astype("float32")
    losses = []
    with Tensor.train():
        for _ in range(40):
            labels = rng.integers(0, 10, 64)
            batch = Tensor(centres[labels] + rng.normal(size=(64, 784)).astype("float32"), requires_grad=False)
            out = net(batch)
            loss = out.sparse_categorical_crossentropy(Tensor(labels))
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.numpy().item())
    assert losses[-1] < .2 * losses[0]
    pred = net(Tensor(centres)).argmax(axis=-1).numpy()
    assert (pred == np.arange(10)).mean() > .9


def test_the_readme():
    x = Tensor.eye(3, requires_grad=True)
    y = Tensor([[2.0, 0, -2.0]])
    z = y.matmul(x).sum()
    z.backward()
    assert x.grad.tolist() == [[2, 2, 2], [0, 0, 0], [-2, -2, -2]]
    assert y.grad is None  # x asked, so only those who asked
    assert Device.DEFAULT == "CPU"


def test_gradients_by_hand():
    w, b = Tensor.zeros(1), Tensor.zeros(1)
    xs = np.linspace(-1, 1, 50, dtype="float32")
    x, y = Tensor(xs, requires_grad=False), Tensor(3 * xs + 1, requires_grad=False)
    for _ in range(100):
        ((x * w + b) - y).square().mean().backward()
        for p in (w, b):
            p.assign(p.detach() - .3 * p.grad).realize()
            p.grad = None
    assert abs(w.item() - 3) < .05 and abs(b.item() - 1) < .01


def test_a_decoder_with_a_cache():
    """Variables, slice assignment and a captured step, as tinygrad's language models use them."""
    dim, most = 8, 16
    cache = Tensor.zeros(most, dim).contiguous().realize()
    start = Variable("start", 0, most - 1)

    @TinyJit
    def step(x, position):
        cache[position:position + 1] = x
        seen = cache.shrink(((0, position + 1), None))
        return (x @ seen.T).softmax(-1) @ seen

    rng = np.random.default_rng(3)
    kept = []
    for i in range(6):
        row = rng.normal(size=(1, dim)).astype("float32")
        kept.append(row[0])
        all_rows = np.stack(kept)
        scores = np.exp(row @ all_rows.T)
        wanted = scores / scores.sum() @ all_rows
        np.testing.assert_allclose(step(Tensor(row), start.bind(i)).numpy(), wanted, rtol=1e-4, atol=1e-5)
    assert step.captured


def test_in_place_updates_take_no_more_memory():
    w = Tensor.ones(1000, 100).realize()
    GlobalCounters.reset()
    before = GlobalCounters.mem_used
    for _ in range(5):
        w.assign(w * 1.01).realize()
    assert GlobalCounters.mem_used <= before and GlobalCounters.kernel_count == 5
