"""Class numbers that are none: ignored, an error, or NaN, and what PyTorch makes of the others."""
import numpy as np
import pytest

from conftest import assert_close, needs_torch, torch
from weft import Tensor, TinyJit, dtypes

X = np.random.default_rng(5).normal(size=(6, 4)).astype("f4")
LABELS = np.array([3, -100, 0, 2, -100, 1])
WEIGHTS = np.array([1, 2, .5, 3], "f4")

LOSSES = {"cross_entropy": lambda x, y, **k: x.cross_entropy(y, **k),
          "nll_loss": lambda x, y, **k: x.log_softmax().nll_loss(y, **k),
          "sparse": lambda x, y, **k: x.sparse_categorical_crossentropy(y, **k)}


@needs_torch
@pytest.mark.parametrize("reduction", ("mean", "sum", "none"))
@pytest.mark.parametrize("options", ({}, {"weight": WEIGHTS}, {"label_smoothing": .1}, {"ignore_index": 2},
                                     {"weight": WEIGHTS, "label_smoothing": .2, "ignore_index": 0}))
@pytest.mark.parametrize("dtype", ("int8", "int32", "int64"))
def test_values_and_gradients_are_pytorchs(options, reduction, dtype):
    names = ["cross_entropy"] + ["nll_loss"] * ("label_smoothing" not in options)
    ignored = options.get("ignore_index", -100)
    labels = np.where(LABELS == -100, ignored, LABELS)
    for name in names:
        x, u = Tensor(X, requires_grad=True), torch.tensor(X, requires_grad=True)
        ours = {k: Tensor(v) if k == "weight" else v for k, v in options.items()}
        theirs = {k: torch.tensor(v) if k == "weight" else v for k, v in options.items()}
        got = LOSSES[name](x, Tensor(labels).cast(dtype).realize(), reduction=reduction, **ours)
        log_p = u if name == "cross_entropy" else u.log_softmax(-1)
        wanted = getattr(torch.nn.functional, name)(log_p, torch.tensor(labels), reduction=reduction, **theirs)
        assert_close(got, wanted.detach(), 1e-5, 1e-6)
        got.sum().backward()
        wanted.sum().backward()
        assert_close(x.grad, u.grad, 1e-5, 1e-6)


def test_the_default_of_each():
    x = Tensor([[1.0, 2, 3], [3, 2, 1]])
    assert_close(x.cross_entropy(Tensor([-100, 0])), 0.40760598, 1e-6)
    assert_close(x.log_softmax().nll_loss(Tensor([-100, 0])), 0.40760598, 1e-6)
    assert_close(x.sparse_categorical_crossentropy(Tensor([-1, 0])), 0.40760598, 1e-6)
    assert np.isnan(x.cross_entropy(Tensor([-100, -100])).item())  # the mean of none, as PyTorch's


@pytest.mark.parametrize("label", (4, -1, 100, -2**31, 2**40))
@pytest.mark.parametrize("name", LOSSES)
def test_a_known_label_outside_is_an_error(name, label):
    if name == "sparse" and label == -1:
        return
    labels = Tensor([0, label, 1, 2, 3, 0])
    for y in (labels, Tensor([9, 0, label, 1, 2, 3, 0])[1:], labels.reshape(2, 3).reshape(6)):
        with pytest.raises(IndexError, match=f"class number {label} is out of bounds for 4 classes"):
            LOSSES[name](Tensor(X), y)


@pytest.mark.parametrize("label", (4, -1, 100, 2**31 - 1))
@pytest.mark.parametrize("name", LOSSES)
def test_a_computed_label_outside_is_nan(name, label):
    if name == "sparse" and label == -1:
        return
    ignored = -1 if name == "sparse" else -100
    x = Tensor(X, requires_grad=True)
    y = Tensor([0, label - 1, 1, 2, ignored - 1, 0]) + 1
    each = LOSSES[name](x, y, reduction="none")
    assert np.isnan(each.numpy()).tolist() == [False, True, False, False, False, False]
    assert each.numpy()[4] == 0
    assert np.isnan(LOSSES[name](x, y).item()) and np.isnan(LOSSES[name](x, y, reduction="sum").item())
    each.sum().backward()
    assert np.isnan(x.grad.numpy()).any(1).tolist() == [False, True, False, False, False, False]
    assert (x.grad.numpy()[4] == 0).all()


def test_a_captured_loss_is_nan_as_well():
    f = TinyJit(lambda x, y: x.cross_entropy(y).realize())
    x = Tensor(X).realize()
    for label in (0, 1, -100, 3):
        y = Tensor([label, 0, 0, 0, 0, 0]).realize()
        assert np.isfinite(f(x, y).item())
    assert np.isnan(f(x, Tensor([4, 0, 0, 0, 0, 0]).realize()).item())


def test_unsigned_labels_are_never_ignored():
    x = Tensor(np.zeros((2, 200), "f4"))
    y = Tensor([156, 3], dtype=dtypes.uint8)  # -100 in 8 bits
    assert_close(x.cross_entropy(y, reduction="none"), np.log([200.0, 200.0]).astype("f4"), 1e-5)


def test_images():
    x = np.random.default_rng(1).normal(size=(2, 3, 4, 5)).astype("f4")
    y = np.random.default_rng(2).integers(0, 3, (2, 4, 5))
    y[0, 1] = -100
    log_p = x - np.log(np.exp(x).sum(1, keepdims=True))
    each = -np.take_along_axis(log_p, np.maximum(y, 0)[:, None], 1)[:, 0]
    assert_close(Tensor(x).cross_entropy(Tensor(y)), each[y >= 0].mean(), 1e-5)
