"""Recurrent layers, attention, transformers, pools and optimizers against PyTorch's, by its state dicts."""
import copy
import pickle

import numpy as np
import pytest

from conftest import assert_close, needs_torch, torch
from weft import Tensor, nn
from weft.nn.state import get_parameters, get_state_dict, load_state_dict

pytestmark = needs_torch
RECURRENT = [(name, dict(num_layers=layers, bidirectional=both, batch_first=first, bias=bias))
             for name in ("RNN", "GRU", "LSTM")
             for layers, both, first, bias in ((1, False, False, True), (2, True, True, True), (2, False, True, False), (1, True, False, True))]


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def same_weights(mine, theirs):
    """The names of both are the same; from here on the values, too."""
    wanted = {name: t.detach().numpy() for name, t in theirs.state_dict().items()}
    assert get_state_dict(mine).keys() == wanted.keys()
    load_state_dict(mine, {name: Tensor(a) for name, a in wanted.items()}, verbose=False)
    return mine


def gradients_agree(mine, theirs, loss, their_loss, rtol=2e-3, atol=2e-5):
    loss.backward()
    their_loss.backward()
    own = get_state_dict(mine)
    for name, p in theirs.named_parameters():
        assert_close(own[name].grad, p.grad.numpy(), rtol, atol)


@pytest.mark.parametrize("name, options", RECURRENT, ids=str)
def test_recurrent_layers(name, options):
    theirs = getattr(torch.nn, name)(3, 4, **options)
    mine = same_weights(getattr(nn, name)(3, 4, **options), theirs)
    x = numbers(2, 5, 3) if options["batch_first"] else numbers(5, 2, 3)
    start = numbers(options["num_layers"] * (1 + options["bidirectional"]), 2, 4, seed=1)
    h, th = (Tensor(start), torch.from_numpy(start))
    hx, thx = ((h, h * .5), (th, th * .5)) if name == "LSTM" else (h, th)
    for state, their_state in ((None, None), (hx, thx)):
        y, last = mine(Tensor(x), state)
        ty, tlast = theirs(torch.from_numpy(x), their_state)
        assert_close(y, ty.detach().numpy(), 1e-4, 1e-5)
        for a, b in zip(last if name == "LSTM" else (last,), tlast if name == "LSTM" else (tlast,)):
            assert_close(a, b.detach().numpy(), 1e-4, 1e-5)
    gradients_agree(mine, theirs, (y * y).sum(), (ty * ty).sum())


@pytest.mark.parametrize("name", ["RNN", "GRU", "LSTM"])
def test_a_sequence_without_a_batch_and_cells(name):
    theirs = getattr(torch.nn, name)(3, 4)
    mine = same_weights(getattr(nn, name)(3, 4), theirs)
    x = numbers(5, 3)
    assert_close(mine(Tensor(x))[0], theirs(torch.from_numpy(x))[0].detach().numpy(), 1e-4, 1e-5)
    cell, their_cell = getattr(nn, name + "Cell")(3, 4), getattr(torch.nn, name + "Cell")(3, 4)
    same_weights(cell, their_cell)
    got, want = cell(Tensor(x)), their_cell(torch.from_numpy(x))
    for a, b in zip(got if name == "LSTM" else (got,), want if name == "LSTM" else (want,)):
        assert_close(a, b.detach().numpy(), 1e-4, 1e-5)


def test_relu_recurrence_and_bad_arguments():
    theirs = torch.nn.RNN(3, 4, nonlinearity="relu")
    mine = same_weights(nn.RNN(3, 4, nonlinearity="relu"), theirs)
    x = numbers(5, 2, 3)
    assert_close(mine(Tensor(x))[0], theirs(torch.from_numpy(x))[0].detach().numpy(), 1e-4, 1e-5)
    for bad in (lambda: nn.RNN(3, 4, nonlinearity="typo"), lambda: nn.LSTM(3, 0), lambda: nn.GRU(3, 4, num_layers=0),
                lambda: mine(Tensor.zeros(3)), lambda: nn.LSTMCell(3, 4)(Tensor.zeros(2, 2, 3))):
        with pytest.raises(ValueError):
            bad()


MASKS = {"none": {}, "float": {"attn_mask": numbers(4, 6, seed=5)},
         "bool": {"attn_mask": numbers(4, 6, seed=5) > .8}, "heads": {"attn_mask": numbers(4, 4, 6, seed=6)},
         "padding": {"key_padding_mask": np.array([[False] * 5 + [True], [False] * 6])},
         "both": {"attn_mask": numbers(4, 6, seed=5) > .9, "key_padding_mask": np.array([[False] * 4 + [True] * 2, [False] * 6])}}


@pytest.mark.parametrize("masks", MASKS.values(), ids=list(MASKS))
@pytest.mark.parametrize("batch_first", [False, True])
def test_multihead_attention(masks, batch_first):
    theirs = torch.nn.MultiheadAttention(8, 2, batch_first=batch_first)
    mine = same_weights(nn.MultiheadAttention(8, 2, batch_first=batch_first), theirs)
    shape = (lambda n: (2, n, 8)) if batch_first else (lambda n: (n, 2, 8))
    q, k, v = numbers(*shape(4)), numbers(*shape(6), seed=1), numbers(*shape(6), seed=2)
    for extra in ({}, {"average_attn_weights": False}, {"need_weights": False}):
        y, w = mine(Tensor(q), Tensor(k), Tensor(v), **{n: Tensor(m) for n, m in masks.items()}, **extra)
        ty, tw = theirs(*map(torch.from_numpy, (q, k, v)), **{n: torch.from_numpy(m) for n, m in masks.items()}, **extra)
        assert_close(y, ty.detach().numpy(), 1e-4, 1e-5)
        assert (w is None) == (tw is None)
        if w is not None:
            assert_close(w, tw.detach().numpy(), 1e-4, 1e-5)
    gradients_agree(mine, theirs, (y * y).sum(), (ty * ty).sum())


def test_attention_with_other_sizes_of_keys_and_causal():
    theirs = torch.nn.MultiheadAttention(8, 4, kdim=5, vdim=3, bias=False)
    mine = same_weights(nn.MultiheadAttention(8, 4, kdim=5, vdim=3, bias=False), theirs)
    q, k, v = numbers(4, 2, 8), numbers(6, 2, 5, seed=1), numbers(6, 2, 3, seed=2)
    assert_close(mine(Tensor(q), Tensor(k), Tensor(v))[0], theirs(*map(torch.from_numpy, (q, k, v)))[0].detach().numpy(), 1e-4, 1e-5)
    itself = nn.MultiheadAttention(8, 2)
    x = Tensor(numbers(4, 2, 8))
    unseen = Tensor(np.triu(np.ones((4, 4), bool), 1))
    assert_close(itself(x, x, x, is_causal=True)[0], itself(x, x, x, attn_mask=unseen)[0].numpy(), 1e-4, 1e-5)
    for bad in (lambda: nn.MultiheadAttention(8, 3), lambda: itself(x[0], x, x)):
        with pytest.raises(ValueError):
            bad()


TRANSFORMERS = [dict(batch_first=first, norm_first=norm, activation=how, bias=bias)
                for first, norm, how, bias in ((False, False, "relu", True), (True, True, "gelu", True),
                                               (True, False, "gelu", False))]


@pytest.mark.parametrize("options", TRANSFORMERS, ids=str)
def test_transformers(options):
    encoder = torch.nn.TransformerEncoderLayer(8, 2, 16, 0.0, **options)
    decoder = torch.nn.TransformerDecoderLayer(8, 2, 16, 0.0, **options)
    mine = same_weights(nn.TransformerEncoderLayer(8, 2, 16, 0.0, **options), encoder)
    own = same_weights(nn.TransformerDecoderLayer(8, 2, 16, 0.0, **options), decoder)
    shape = (lambda n: (2, n, 8)) if options["batch_first"] else (lambda n: (n, 2, 8))
    x, memory = numbers(*shape(4)), numbers(*shape(5), seed=1)
    unseen = np.triu(np.ones((4, 4), bool), 1)
    y, ty = mine(Tensor(x), Tensor(unseen)), encoder(torch.from_numpy(x), torch.from_numpy(unseen))
    assert_close(y, ty.detach().numpy(), 1e-3, 1e-5)
    gradients_agree(mine, encoder, (y * y * y).sum(), (ty * ty * ty).sum(), 1e-2, 1e-3)
    z, tz = own(Tensor(x), Tensor(memory), Tensor(unseen)), decoder(torch.from_numpy(x), torch.from_numpy(memory), torch.from_numpy(unseen))
    assert_close(z, tz.detach().numpy(), 1e-3, 1e-5)


def test_stacks_of_transformer_layers():
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True)
    theirs = torch.nn.TransformerEncoder(layer, 2, torch.nn.LayerNorm(8), enable_nested_tensor=False)
    mine = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True), 2, nn.LayerNorm(8))
    first, second = (get_state_dict(layer)["linear1.weight"] for layer in mine.layers)
    assert not first.is_(second)
    same_weights(mine, theirs)
    x = numbers(2, 4, 8)
    assert_close(mine(Tensor(x)), theirs(torch.from_numpy(x)).detach().numpy(), 1e-3, 1e-5)
    decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16, batch_first=True), 2)
    assert decoder(Tensor(x), Tensor(x)).shape == (2, 4, 8)


POOLS = [("MaxPool2d", (2,), {"stride": 1, "padding": 1}), ("MaxPool1d", (3,), {}), ("MaxPool3d", (2,), {}),
         ("AvgPool2d", ((2, 3),), {"padding": 1, "count_include_pad": False}), ("AvgPool1d", (2,), {"stride": 1}), ("AvgPool3d", (2,), {}),
         ("AdaptiveAvgPool1d", (3,), {}), ("AdaptiveAvgPool2d", ((2, None),), {}), ("AdaptiveAvgPool3d", (2,), {}),
         ("AdaptiveMaxPool1d", (3,), {}), ("AdaptiveMaxPool2d", ((2, 3),), {}), ("AdaptiveMaxPool3d", (2,), {}),
         ("Flatten", (), {}), ("Unflatten", (1, (2, -1)), {}), ("Identity", (), {}), ("Dropout", (.5,), {}), ("ReLU", (), {}), ("GELU", (), {}),
         ("SiLU", (), {}), ("Mish", (), {}), ("Tanh", (), {}), ("Sigmoid", (), {}), ("Hardswish", (), {}), ("ReLU6", (), {}), ("ELU", (.5,), {}),
         ("LeakyReLU", (.2,), {}), ("Softplus", (2.0,), {}), ("Softmax", (1,), {}), ("LogSoftmax", (1,), {}), ("GELU", (), {"approximate": "tanh"})]


@pytest.mark.parametrize("name, args, options", POOLS, ids=str)
def test_layers_without_weights(name, args, options):
    axes = int(name[-2]) if name.endswith("d") and name[-2].isdigit() else 2
    x = numbers(2, 4, *(5, 6, 4)[:axes])
    theirs = getattr(torch.nn, name)(*args, **options).eval()
    assert_close(getattr(nn, name)(*args, **options)(Tensor(x)), theirs(torch.from_numpy(x)).numpy(), 1e-4, 1e-5)


def test_sequential():
    theirs = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    mine = same_weights(nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)), theirs)
    x = numbers(5, 3)
    assert_close(mine(Tensor(x)), theirs(torch.from_numpy(x)).detach().numpy(), 1e-4, 1e-5)
    assert len(mine) == 3 and len(mine[:2]) == 2 and isinstance(mine[1], nn.ReLU)
    assert_close(nn.Sequential(nn.Linear(3, 2), Tensor.relu).append(lambda y: y * 0)(Tensor(x)), np.zeros((5, 2)))


# ---- optimizers

def steps(make, theirs_make, count=5):
    """Both after some steps from the same start with the same gradients."""
    start = numbers(3, 4)
    mine, theirs = Tensor(start, requires_grad=True), torch.from_numpy(start.copy()).requires_grad_()
    opt, their_opt = make([mine]), theirs_make([theirs])
    with Tensor.train():
        for i in range(count):
            opt.zero_grad()
            their_opt.zero_grad()
            ((mine * mine).sum() + (mine * (i + 1)).sum()).backward()
            ((theirs * theirs).sum() + (theirs * (i + 1)).sum()).backward()
            opt.step()
            their_opt.step()
    assert_close(mine, theirs.detach().numpy(), 1e-4, 1e-5)


OPTIM = torch.optim if torch else None


@pytest.mark.parametrize("make, theirs", [
    (lambda p: nn.optim.NAdam(p, lr=.1), lambda p: OPTIM.NAdam(p, lr=.1)),
    (lambda p: nn.optim.NAdam(p, lr=.1, weight_decay=.1), lambda p: OPTIM.NAdam(p, lr=.1, weight_decay=.1)),
    (lambda p: nn.optim.RAdam(p, lr=.1), lambda p: OPTIM.RAdam(p, lr=.1)),
    (lambda p: nn.optim.Adam(p, lr=.1, amsgrad=True), lambda p: OPTIM.Adam(p, lr=.1, amsgrad=True)),
    (lambda p: nn.optim.AdamW(p, lr=.1), lambda p: OPTIM.AdamW(p, lr=.1)),
], ids=["NAdam", "NAdam decay", "RAdam", "amsgrad", "AdamW"])
def test_optimizers(make, theirs):
    steps(make, theirs, 8)


class SignSGD(nn.optim.Optimizer):
    """tinygrad's way to write one."""

    def __init__(self, params, lr=0.1):
        super().__init__(params, lr)
        self.m = self._new_optim_param()

    def _step(self, params, grads):
        for m, g in zip(self.m, grads):
            m.assign(m * .5 + g)
        return [self.lr * m.sign() for m in self.m], self.m


def test_an_optimizer_of_ones_own():
    w, b = Tensor([1.0, -2.0]), Tensor(0, requires_grad=False)
    opt = SignSGD([w, b], lr=.5)
    assert opt.device == w.device and opt.lr.shape == (1,) and len(opt.params) == 1 and opt.buffers[0].is_(b)
    with pytest.raises(RuntimeError):
        opt.step()
    with Tensor.train():
        with pytest.raises(RuntimeError, match="no gradient"):
            opt.step()
        for _ in range(2):
            opt.zero_grad()
            (w * w).sum().backward()
            opt.step()
    assert w.tolist() == [0.0, -1.0] and len(opt.schedule_step.__self__.m) == 1
    with pytest.raises(ValueError):
        SignSGD([w], lr=-1)
    with pytest.raises(NotImplementedError), Tensor.train():
        nn.optim.Optimizer([w], .1).schedule_step()


def test_rates_have_shape_1_and_take_any():
    w = Tensor([1.0])
    opt = nn.optim.SGD([w], lr=.1)
    assert opt.lr.shape == (1,) and opt.device == "CPU"
    for rate in (.2, Tensor([.2]), Tensor(.2), opt.lr * 2):
        opt.lr = rate
        assert opt.lr.realize().item() == pytest.approx(.2)
        opt.lr.assign(Tensor([.1])).realize()
    opt.lr.assign([.25])
    with Tensor.train():
        (w * 2).sum().backward()
        opt.step()
    assert w.item() == pytest.approx(.5)


@pytest.mark.parametrize("make", [lambda p: nn.optim.SGD(p, lr=.1, momentum=.9), lambda p: nn.optim.Adam(p, lr=.1),
    lambda p: nn.optim.LAMB(p), lambda p: nn.optim.Muon(p), lambda p: nn.optim.RAdam(p), lambda p: SignSGD(p),
    lambda p: nn.optim.OptimizerGroup(nn.optim.SGD(p, lr=.1), nn.optim.RMSprop(p))],
    ids=["SGD", "Adam", "LAMB", "Muon", "RAdam", "own", "group"])
@pytest.mark.parametrize("copied", [lambda x: pickle.loads(pickle.dumps(x)), copy.deepcopy], ids=["pickle", "deepcopy"])
def test_models_and_optimizers_are_pickled_together(make, copied):
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm(4), nn.ReLU(), nn.LSTMCell(4, 4))
    net = net[:3]
    opt = make([p for p in get_parameters(net) if p.ndim == 2])
    x = Tensor(numbers(5, 3))

    def step(model, optimizer):
        optimizer.zero_grad()
        (model(x) ** 2).sum().backward()
        optimizer.step()
    with Tensor.train():
        step(net, opt)
        other, other_opt = copied((net, opt))
        assert type(other_opt) is type(opt)
        assert not get_parameters(other)[0].is_(get_parameters(net)[0])
        for _ in range(2):
            step(net, opt)
            step(other, other_opt)
    for a, b in zip(get_parameters(net), get_parameters(other)):
        assert_close(a, b.numpy())


# ---- schedules, clipping, averages

def test_schedules():
    s = nn.schedules
    opt = nn.optim.SGD([Tensor([1.0])], lr=.5)
    scheduler = s.LrScheduler(opt, s.warmup(2, s.step_decay(1, .5)))
    rates = [opt.lr.item()]
    for _ in range(4):
        scheduler.step()
        rates.append(opt.lr.item())
    assert rates == pytest.approx([0, .25, .5, .25, .125]) and scheduler.steps == 4
    assert s.cosine(10)(1.0, 5) == pytest.approx(.5) and s.linear(4, 0)(2.0, 1) == .5
    assert s.in_sequence([s.constant(), lambda first, t: t], [3])(7.0, 5) == 2
    assert s.one_cycle(1.0, 10)(0, 2) == pytest.approx(1.0)
    with pytest.raises(ValueError):
        s.cosine(0)


@pytest.mark.parametrize("copied", [lambda x: pickle.loads(pickle.dumps(x)), copy.deepcopy], ids=["pickle", "deepcopy"])
def test_schedules_and_averages_are_pickled_with_their_model(copied):
    s, net = nn.schedules, nn.Linear(2, 2)
    opt = nn.optim.SGD([net.weight], lr=.5)
    scheduler = s.LrScheduler(opt, s.in_sequence([s.warmup(2, s.cosine(8)), s.step_decay(1, .5)], [4]))
    plateau, ema = s.ReduceOnPlateau(opt, patience=0), nn.Ema(net, .5, warm_up=True)

    def go_on(parts):
        net, opt, scheduler, plateau, ema = parts
        net.weight.assign(net.weight + 1).realize()
        ema.update()
        scheduler.step()
        plateau.step(1.0)
        return [opt.lr.item(), ema.state["updates"].item(), *ema.state["weight"].flatten().tolist()]
    mine = net, opt, scheduler, plateau, ema
    go_on(mine)
    other = copied(mine)
    assert [go_on(mine) for _ in range(5)] == [go_on(other) for _ in range(5)]
    assert sorted(nn.state.get_state_dict(other[4])) == ["state.bias", "state.updates", "state.weight"]
    before = other[0].weight.tolist()
    other[4].swap()
    assert other[0].weight.tolist() != before and net.weight.tolist() == before


def test_plateaus():
    opt = nn.optim.OptimizerGroup(nn.optim.SGD([Tensor([1.0])], lr=1.0), nn.optim.SGD([Tensor([2.0])], lr=.5))
    plateau = nn.schedules.ReduceOnPlateau(opt, factor=.5, patience=1, cooldown=1)
    their_opt = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    theirs = torch.optim.lr_scheduler.ReduceLROnPlateau(their_opt, factor=.5, patience=1, cooldown=1)
    for measure in (3.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0):
        plateau.step(measure)
        theirs.step(measure)
        assert plateau.rates() == pytest.approx([their_opt.param_groups[0]["lr"], their_opt.param_groups[0]["lr"] / 2])


def test_clipping():
    w, b = Tensor([3.0, 0.0]), Tensor([4.0])
    theirs = [torch.tensor([3.0, 0]), torch.tensor([4.0])]
    for p, t in zip((w, b), theirs):
        p.grad, t.grad = Tensor(t.numpy()), t.clone()
    assert nn.gradients.gradient_norm([w, b]).item() == 5
    assert nn.gradients.clip_grad_norm_([w, b], 1.0).item() == 5
    torch.nn.utils.clip_grad_norm_(theirs, 1.0)
    for p, t in zip((w, b), theirs):
        assert_close(p.grad, t.grad.numpy(), 1e-5, 1e-6)
    nn.gradients.clip_gradient_value([w, b], .5)
    assert w.grad.tolist() == [.5, 0.0] and len(nn.gradients.gradients([w, b, Tensor([1.0])])) == 2


def test_averages():
    net = nn.Linear(2, 1)
    net.weight.assign([[1.0, 2.0]])
    net.bias.assign([0.0])
    ema = nn.Ema(net, decay=.5)
    net.weight.assign([[3.0, 2.0]])
    ema.update()
    assert ema.state["weight"].tolist() == [[2.0, 2.0]] and ema.state["updates"].item() == 1
    ema.swap()
    assert net.weight.tolist() == [[2.0, 2.0]]
    ema.swap()
    assert net.weight.tolist() == [[3.0, 2.0]]


def test_what_is_no_parameter():
    net = nn.BatchNorm(3)
    assert net.num_batches_tracked.is_param is False
    opt = nn.optim.SGD(get_parameters(net))
    assert len(opt.params) == 2 and len(opt.buffers) == 3
    parameters = [Tensor.ones(2, 3).reshape(6), nn.Linear(2, 3).weight.T]
    assert len(nn.optim.SGD(parameters).params) == 2  # views that are all there is of their storage
    parameters[0].sum().backward()
    assert parameters[0].grad.tolist() == [1.0] * 6
