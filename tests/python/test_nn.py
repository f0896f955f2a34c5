"""Layers, optimizers, state and files; against PyTorch where it is installed."""
import numpy as np
import pytest

from weft import Context, Tensor, TinyJit, dtypes, nn
from weft.nn import optim, state

from conftest import assert_close, assert_equal, needs_torch, torch

RNG = np.random.default_rng(2)


class Net:
    def __init__(self):
        self.l1, self.l2 = nn.Linear(4, 8), nn.Linear(8, 3)
        self.norms = [nn.BatchNorm(8)]

    def __call__(self, x):
        return self.l2(self.norms[0](self.l1(x)).relu())


# ---- layers: name, ours, torch's, shape of the input
LAYERS = {
    "Linear": (lambda: nn.Linear(6, 3), lambda n: n.Linear(6, 3), (5, 6)),
    "Conv1d": (lambda: nn.Conv1d(4, 6, 3, padding=1, groups=2), lambda n: n.Conv1d(4, 6, 3, padding=1, groups=2), (2, 4, 7)),
    "Conv2d": (lambda: nn.Conv2d(3, 4, 3, stride=2, bias=False), lambda n: n.Conv2d(3, 4, 3, stride=2, bias=False), (2, 3, 7, 8)),
    "Conv2d same": (lambda: nn.Conv2d(3, 4, (3, 2), padding="same", dilation=2), lambda n: n.Conv2d(3, 4, (3, 2), padding="same", dilation=2), (2, 3, 7, 8)),
    "ConvTranspose2d": (lambda: nn.ConvTranspose2d(3, 4, 3, stride=2, padding=1, output_padding=1),
                        lambda n: n.ConvTranspose2d(3, 4, 3, stride=2, padding=1, output_padding=1), (2, 3, 4, 5)),
    "ConvTranspose1d": (lambda: nn.ConvTranspose1d(3, 4, 3), lambda n: n.ConvTranspose1d(3, 4, 3), (2, 3, 5)),
    "BatchNorm": (lambda: nn.BatchNorm(3), lambda n: n.BatchNorm2d(3), (4, 3, 2, 5)),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), lambda n: n.GroupNorm(2, 4), (2, 4, 3, 3)),
    "InstanceNorm": (lambda: nn.InstanceNorm(3), lambda n: n.InstanceNorm2d(3, affine=True), (2, 3, 4, 4)),
    "LayerNorm": (lambda: nn.LayerNorm((4, 5)), lambda n: n.LayerNorm((4, 5)), (2, 4, 5)),
    "RMSNorm": (lambda: nn.RMSNorm(5), lambda n: n.RMSNorm(5, eps=1e-6), (2, 5)),
    "LSTMCell": (lambda: nn.LSTMCell(5, 3), lambda n: n.LSTMCell(5, 3), (2, 5)),
}


@needs_torch
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", LAYERS)
def test_layers_are_torchs(name, training):
    ours, theirs = LAYERS[name][0](), LAYERS[name][1](torch.nn)
    theirs.train(training)
    state.load_state_dict(ours, {k: Tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    a = RNG.normal(size=LAYERS[name][2]).astype("float32")
    x, y = Tensor(a, requires_grad=True), torch.tensor(a, requires_grad=True)
    with Tensor.train(training):
        got = ours(x)
    wanted = theirs(y)
    got, wanted = (got[0], wanted[0]) if isinstance(got, tuple) else (got, wanted)
    (got * got).sum().backward()
    (wanted * wanted).sum().backward()
    assert_close(got, wanted.detach().numpy(), 1e-4, 1e-5)
    assert_close(x.grad, y.grad.numpy(), 1e-3, 1e-4)
    mine = state.get_state_dict(ours)
    for key, value in theirs.state_dict().items():
        assert_close(mine[key], value.numpy(), 1e-4, 1e-5)


def test_starts_of_weights():
    assert nn.Linear(100, 50).weight.abs().max().item() <= .1 and nn.Linear(3, 4, bias=False).bias is None
    assert nn.Conv2d(4, 8, 3).weight.shape == (8, 4, 3, 3) and nn.Embedding(10, 3).weight.shape == (10, 3)
    assert nn.BatchNorm(3).running_mean.requires_grad is False
    assert list(state.get_state_dict(nn.BatchNorm2d(3))) == ["weight", "bias", "num_batches_tracked", "running_mean", "running_var"]
    assert list(state.get_state_dict(nn.BatchNorm2d(3, track_running_stats=False))) == ["weight", "bias"]


def test_embedding_and_layernorm2d():
    e = nn.Embedding(5, 3)
    assert_equal(e(Tensor([[1, 4], [0, 0]])), e.weight.numpy()[[[1, 4], [0, 0]]])
    with pytest.raises(TypeError):
        e(Tensor([0.5]))
    x = RNG.normal(size=(2, 3, 4, 4))
    wanted = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    assert_close(nn.LayerNorm2d(3)(Tensor(x)), wanted, 1e-5, 1e-6)
    with pytest.raises(ValueError):
        nn.LayerNorm(4)(Tensor.ones(2, 3))
    with pytest.raises(ValueError, match="stride"):
        nn.Conv2d(1, 1, 3, stride=2, padding="same")


def test_batchnorm_moves_its_statistics_only_while_training():
    norm, x = nn.BatchNorm(2), Tensor(RNG.normal(size=(50, 2)).astype("float32") * 3 + 1)
    norm(x).realize()
    assert norm.running_mean.tolist() == [0, 0] and norm.num_batches_tracked.item() == 0
    with Tensor.train():
        norm(x).realize()
    assert_close(norm.running_mean, .1 * x.numpy().mean(0), 1e-4)
    assert_close(norm.running_var, .9 + .1 * x.numpy().var(0, ddof=1), 1e-4)
    assert norm.num_batches_tracked.item() == 1


# ---- state

def test_names():
    class Deep:
        def __init__(self):
            self.net = Net()
            self.table = {"a": Tensor([1]), "b": [Tensor([2])]}
            self.me = self  # a model may refer to itself
    names = list(state.get_state_dict(Deep()))
    assert names[:4] == ["net.l1.weight", "net.l1.bias", "net.l2.weight", "net.l2.bias"]
    assert "net.norms.0.running_var" in names and names[-2:] == ["table.a", "table.b.0"]
    assert len(state.get_parameters(Net())) == 9
    assert list(state.get_state_dict(Tensor([1]), "x")) == ["x"]


def test_files(tmp_path):
    net, path = Net(), tmp_path / "net.safetensors"
    state.safe_save(state.get_state_dict(net), path, metadata={"epoch": 3})
    assert state.safe_load_metadata(path)[2]["__metadata__"]["epoch"] == "3"
    loaded = state.safe_load(str(path))
    other = Net()
    state.load_state_dict(other, loaded)
    x = Tensor.ones(2, 4)
    assert_equal(other(x), net(x).numpy())
    # The file may go on to be replaced while what was loaded is alive.
    state.safe_save(state.get_state_dict(Net()), path)
    assert_equal(other.l1.weight, net.l1.weight.numpy())
    assert_equal(loaded["l1.weight"], net.l1.weight.numpy())
    with pytest.raises(FileNotFoundError):
        state.safe_load(tmp_path / "none.safetensors")


def test_load_state_dict_says_everything_and_changes_nothing():
    net = Net()
    before = net.l1.weight.numpy()
    wrong = {k: v for k, v in state.get_state_dict(Net()).items() if k != "l2.bias"}
    wrong["extra"], wrong["l1.bias"] = Tensor([1]), Tensor([1.0])
    with pytest.raises(ValueError) as caught:
        state.load_state_dict(net, wrong)
    for part in ("missing: l2.bias", "unexpected: extra", "layer `l1.bias`: Expected shape (8,), but found (1,)"):
        assert part in str(caught.value)
    assert_equal(net.l1.weight, before)
    state.load_state_dict(net, {"l1.bias": Tensor.ones(8)}, strict=False)
    assert net.l1.bias.tolist() == [1] * 8
    halves = {"l1.bias": Tensor.ones(8, dtype="half") * 2}
    state.load_state_dict(net, halves, strict=False, consume=True)
    assert net.l1.bias.tolist() == [2] * 8 and net.l1.bias.dtype == dtypes.float32 and not halves


# ---- optimizers

OPTIMIZERS = {
    "SGD": (lambda p: optim.SGD(p, lr=.1), lambda o, p: o.SGD(p, lr=.1)),
    "momentum": (lambda p: optim.SGD(p, lr=.1, momentum=.9, weight_decay=.01), lambda o, p: o.SGD(p, lr=.1, momentum=.9, weight_decay=.01)),
    "nesterov": (lambda p: optim.SGD(p, lr=.1, momentum=.9, nesterov=True), lambda o, p: o.SGD(p, lr=.1, momentum=.9, nesterov=True)),
    "Adam": (lambda p: optim.Adam(p, lr=.01), lambda o, p: o.Adam(p, lr=.01)),
    "AdamW": (lambda p: optim.AdamW(p, lr=.01, weight_decay=.1), lambda o, p: o.AdamW(p, lr=.01, weight_decay=.1)),
    "RMSprop": (lambda p: optim.RMSprop(p, lr=.01, momentum=.5), lambda o, p: o.RMSprop(p, lr=.01, momentum=.5)),
    "centered RMSprop": (lambda p: optim.RMSprop(p, lr=.01, centered=True),
                         lambda o, p: o.RMSprop(p, lr=.01, centered=True)),
    "Adagrad": (lambda p: optim.Adagrad(p, lr=.1, lr_decay=.1), lambda o, p: o.Adagrad(p, lr=.1, lr_decay=.1)),
}


@needs_torch
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_are_torchs(name):
    start, x = RNG.normal(size=(3, 4)), RNG.normal(size=(5, 3))
    w, v = Tensor(start), torch.tensor(start, requires_grad=True)
    mine, theirs = OPTIMIZERS[name][0]([w]), OPTIMIZERS[name][1](torch.optim, [v])
    for _ in range(5):
        with Context(TRAINING=1):
            mine.zero_grad()
            (Tensor(x) @ w).square().mean().backward()
            mine.step()
        theirs.zero_grad()
        (torch.tensor(x) @ v).square().mean().backward()
        theirs.step()
        assert_close(w, v.detach().numpy(), 1e-4, 1e-5)  # weft's lr and powers of beta are float32


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_go_down(name):
    w = Tensor([3.0, -2.0])
    o = OPTIMIZERS[name][0]([w])
    with Tensor.train():
        for _ in range(10):
            o.zero_grad()
            w.square().sum().backward()
            o.step()
    assert w.square().sum().item() < 12.5


def test_lr_is_a_tensor_that_captured_steps_read():
    w = Tensor([1.0])
    o = optim.SGD([w], lr=.5)
    assert isinstance(o.lr, Tensor) and o.lr.item() == .5

    @TinyJit
    @Tensor.train()
    def step():
        o.zero_grad()
        w.sum().backward()
        o.step()
    for lr, wanted in [(.5, .5), (.5, 0), (.25, -.25), (1, -1.25), (0, -1.25)]:
        o.lr = lr
        step()
        assert w.item() == wanted
    o.lr.assign([2.0][0])
    step()
    assert w.item() == -3.25


def test_what_optimizers_train():
    net = Net()
    o = optim.Adam(state.get_parameters(net))
    assert len(o.params) == 6  # neither running statistics nor counters
    assert any(name.startswith("state.m") for name in state.get_state_dict(o))
    with pytest.raises(RuntimeError, match="training"):
        o.step()
    with pytest.raises(ValueError):
        optim.SGD([])
    w = Tensor([1.0])
    assert len(optim.SGD([w, w]).params) == 1
    both = optim.OptimizerGroup(optim.SGD([w]), optim.Adam([Tensor([2.0])]))
    assert len(both.params) == 2 and both[0].params[0] is w


@pytest.mark.parametrize("make", [
    lambda p: optim.SGD(p, lr=.1, momentum=.9, classic=True), lambda p: optim.LARS(p, lr=100.),
    lambda p: optim.LAMB(p, lr=.1), lambda p: optim.LAMB(p, lr=.1, adam=True), lambda p: optim.Muon(p, lr=.1)])
def test_layerwise_optimizers_go_down(make):
    w = Tensor(RNG.normal(size=(4, 3)).astype("float32"))
    before = w.square().sum().item()
    o = make([w])
    with Tensor.train():
        for _ in range(10):
            o.zero_grad()
            w.square().sum().backward()
            o.step()
    assert w.square().sum().item() < before
    with pytest.raises(ValueError):
        optim.Muon([Tensor([1.0, 2.0])])


def test_schedule_step():
    w = Tensor([1.0])
    o = optim.SGD([w], lr=.5)
    loss = w.square().sum()
    loss.backward()
    loss.realize(*o.schedule_step())
    assert loss.item() == 1 and w.item() == 0


def test_what_optimizers_remember():
    w, u = Tensor([1.0, 2.0]), Tensor([3.0])
    with Tensor.train():
        adam, sgd = nn.optim.LAMB([w, u]), nn.optim.SGD([Tensor([1.0])], momentum=0.9)
        (w.sum() * 2 + u.sum()).backward()
        adam.step()
    np.testing.assert_allclose(adam.m[0].numpy(), [0.2, 0.2], rtol=1e-6)
    np.testing.assert_allclose(adam.v[1].numpy(), [0.001], rtol=1e-6)
    np.testing.assert_allclose([adam.b1_t.item(), adam.b2_t.item()], [0.9, 0.999], rtol=1e-6)
    assert [b.shape for b in sgd.b] == [(1,)]


@pytest.mark.parametrize("mode, numpy_mode", [("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")])
def test_convolutions_pad_in_other_ways(mode, numpy_mode):
    x = np.random.default_rng(0).normal(size=(2, 3, 6, 7)).astype(np.float32)
    for padding, pads in (((1, 2), ((1, 1), (2, 2))), ("same", ((1, 1), (0, 1)))):
        conv = nn.Conv2d(3, 4, (3, 2), padding=padding, padding_mode=mode)
        plain = nn.Conv2d(3, 4, (3, 2), padding="valid")
        plain.weight, plain.bias = conv.weight, conv.bias
        expected = plain(Tensor(np.pad(x, ((0, 0), (0, 0), *pads), mode=numpy_mode)))
        np.testing.assert_allclose(conv(Tensor(x)).numpy(), expected.numpy(), rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="padding_mode='wrap'"):
        nn.Conv1d(3, 4, 3, padding_mode="wrap")


def test_batch_norm_without_momentum_keeps_the_mean_of_all_batches():
    batches = np.random.default_rng(0).normal(size=(3, 8, 2)).astype(np.float32)
    norm = nn.BatchNorm(2, momentum=None)
    with Tensor.train():
        for batch in batches:
            norm(Tensor(batch)).realize()
    np.testing.assert_allclose(norm.running_mean.numpy(), batches.mean((0, 1)), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(norm.running_var.numpy(), batches.var(1, ddof=1).mean(0), rtol=1e-4)


def test_the_row_of_padding_is_not_trained():
    table = nn.Embedding(5, 3, padding_idx=-1)
    assert table.weight[4].tolist() == [0, 0, 0]
    table.weight.requires_grad_()
    table(Tensor([[4, 1], [1, 0]])).sum().backward()
    assert table.weight.grad.tolist() == [[1] * 3, [2] * 3, [0] * 3, [0] * 3, [0] * 3]
    with pytest.raises(ValueError, match="padding_idx is 5"):
        nn.Embedding(5, 3, padding_idx=5)


def test_cells_take_one_example():
    x = Tensor(np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32))
    for kind in (nn.RNNCell, nn.GRUCell):
        cell = kind(3, 4)
        h = cell(x)
        np.testing.assert_allclose(cell(x[1], cell(x[1])).numpy(), cell(x, h)[1].numpy(), rtol=1e-5, atol=1e-6)
    cell = nn.LSTMCell(3, 4)
    for one, both in zip(cell(x[1], cell(x[1])), cell(x, cell(x))):
        np.testing.assert_allclose(one.numpy(), both[1].numpy(), rtol=1e-5, atol=1e-6)
