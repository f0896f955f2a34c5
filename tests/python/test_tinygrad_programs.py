"""Programs as tinygrad's own are written: only the import differs."""
import pathlib

import numpy as np
import pytest

import weft
from weft import Context, Device, TinyJit, nn
from weft.helpers import (ansilen, ansipad, ceildiv, colored, data64_le, dedup, floordiv, floormod, getbits, hi32, i2u, lo32, pad_bytes, pluralize,
                          profile_marker, size_to_str, time_to_str)
from weft.nn.state import get_parameters, get_state_dict
from weft.tensor import Tensor, dtypes


def test_what_is_imported_from_where():
    assert Tensor is weft.Tensor and dtypes is weft.dtypes
    for module, names in {"weft": "Tensor TinyJit Variable dtypes nn Device GlobalCounters Context fetch getenv function",
                          "weft.engine.jit": "TinyJit JitError", "weft.device": "Device is_dtype_supported canonicalize_device",
                          "weft.nn.optim": "Optimizer OptimizerGroup SGD Adam AdamW LAMB LARS Muon", "weft.nn.datasets": "mnist cifar",
                          "weft.dtype": "DType dtypes least_upper_dtype to_dtype", "weft.nn": "Linear Conv2d BatchNorm LSTMCell optim state"}.items():
        for name in names.split():
            exec(f"from {module} import {name}", {})
    assert profile_marker("epoch") is None
    assert dtypes.float32 in Device[Device.DEFAULT].renderer.supported_dtypes() == set(dtypes.all)


def test_small_functions():
    assert (floordiv(7, 0), floormod(-7, 2), lo32(2**32 + 5), hi32(2**32 + 5), data64_le(2**33)) == (0, 1, 5, 1, (0, 2))
    assert getbits(0b10110, 1, 3) == 0b011 and i2u(8, -1) == 255 and pad_bytes(b"abc", 4) == b"abc\0" and ceildiv(7, 2) == 4
    assert pluralize("kernel", 2) == "2 kernels" and size_to_str(1536) == "1.50 KB" and time_to_str(.5).strip() == "500.00ms"
    assert ansilen(ansipad(colored("x", "red"), 5)) == 5 and dedup([1, 1]) == [1]


class Net:
    def __init__(self):
        self.layers = [nn.Conv2d(1, 4, 5), Tensor.relu, nn.BatchNorm(4), Tensor.max_pool2d, lambda x: x.flatten(1), nn.Linear(4 * 4 * 4, 3)]

    def __call__(self, x: Tensor) -> Tensor:
        return x.sequential(self.layers)


@pytest.mark.parametrize("make", [nn.optim.SGD, nn.optim.Adam, nn.optim.Muon])
def test_beautiful_mnist(make):
    Tensor.manual_seed(3)
    net = Net()
    opt = make([p for p in get_parameters(net) if make is not nn.optim.Muon or p.ndim == 2], lr=.02)
    images = Tensor.randn(48, 1, 12, 12)
    labels = (images.mean((1, 2, 3)) > 0).cast(dtypes.int32).realize()

    @TinyJit
    @Context(TRAINING=1)
    def step() -> Tensor:
        opt.zero_grad()
        samples = Tensor.randint(24, high=48)
        loss = net(images[samples]).sparse_categorical_crossentropy(labels[samples]).backward()
        return loss.realize(*opt.schedule_step())
    losses = [step().item() for _ in range(30)]
    assert np.mean(losses[-5:]) < np.mean(losses[:3])
    assert not any(p is net.layers[2].num_batches_tracked for p in opt.params) and "layers.2.num_batches_tracked" in get_state_dict(net)
    opt.lr.assign(opt.lr * .5).realize()
    assert opt.lr.item() == pytest.approx(.01) and opt.lr.shape == (1,) and opt.device == Device.DEFAULT


def test_files_say_their_device(tmp_path):
    path = pathlib.Path(tmp_path) / "x.bin"
    path.write_bytes(bytes(range(16)))
    x = Tensor(path)
    assert x.device == x[4:].device == f"DISK:{path}" and x.to("CPU").device == (x + 1).device == "CPU"
    assert x[4:8].tolist() == [4, 5, 6, 7] and x.to("CPU").tolist() == list(range(16))
    x[0] = 9
    assert path.read_bytes()[0] == 9
    assert Tensor(path, device="CPU").device == "CPU"


def test_windows():
    x = Tensor.arange(48).reshape(2, 4, 6)
    y = x._pool((2, 3), stride=(2, 3))
    assert y.shape == (2, 2, 2, 2, 3) and y[1, 0, 1].tolist() == x[1, 0:2, 3:6].tolist()
    assert x._pool((3,), 1, 2).shape == (2, 4, 2, 3)
    assert x._pool((3,), 1, 2)[1, 2, 1].tolist() == x[1, 2, 1:6:2].tolist()


BAD_FORMULAS = ["a b -> a", "a a -> a", "a b -> b a c", "(a b) -> a b", "a ... -> b ...", "a b", "a -> a", "a b -> a b b", "a (b c) -> a b", "(a b -> a b",
                "a b) -> a b", "a b -> a b -> a", "a 2 -> a", "... ... -> ..."]


@pytest.mark.parametrize("formula", BAD_FORMULAS)
def test_bad_formulas_are_errors(formula):
    with pytest.raises((ValueError, RuntimeError)):
        Tensor.ones(2, 3).rearrange(formula).tolist()


def test_bad_sizes_in_formulas_are_errors():
    for sizes in ({"a": 4}, {"a": 2, "b": 2}, {"a": 2, "c": 4}, {"a": 0}, {"a": -1}):
        with pytest.raises((ValueError, RuntimeError)):
            Tensor.ones(6).rearrange("(a b) -> a b", **sizes)
    assert Tensor.ones(6).rearrange("(a b) -> b a", a=2).shape == (3, 2)


def test_parameters_that_are_views():
    base = Tensor.ones(2, 3)
    own = Tensor.ones(2, 3).reshape(6)
    assert own.requires_grad_().requires_grad and own.shape == (6,)
    with pytest.raises(ValueError):
        base.reshape(6).requires_grad_()
    opt = nn.optim.SGD([Tensor.randn(3, 2).T, Tensor.ones(4).reshape(2, 2)], lr=.1)
    with Tensor.train():
        (opt.params[0].sum() + opt.params[1].sum()).backward()
        opt.step()
    assert opt.params[1].tolist() == [[pytest.approx(.9)] * 2] * 2
