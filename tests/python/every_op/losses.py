"""Rows of losses and of decompositions of matrices."""
import numpy as np

from conftest import torch
from every_op.operands import FLOATS, Bad, floating
from every_op.rows import F, MATRIX, MT, X, XN, XT, of, op
from every_op.elementwise import softplus
from every_op.reductions import logsumexp
from weft import Tensor

# ---- losses


def mean_and_each(f):
    """With reduction "mean" and "none"."""
    return lambda *a: (f(*a, reduction="mean"), f(*a, reduction="none"))


def loss(name, numpy, torchs=None, **columns):
    """numpy gives one number for each element."""
    columns = {"shapes": (((3,), (3,)), ((2, 3), (2, 3))), "gives": (floating, floating), "grad": True,
        "of_most": True, "ulps": 4} | columns
    bad = (Bad(lambda: getattr(MATRIX, name)(X), ValueError, None, None),
           Bad(lambda: getattr(X, name)(X, reduction="typo"), ValueError, None, lambda: F.mse_loss(XT, XT,
               reduction="typo")),
           Bad(lambda: getattr(X, name)("a"), TypeError))

    def both(*a):
        each = numpy(*(np.asarray(x, dtype=float) for x in a))
        return np.mean(each), each
    columns = {"bad": bad} | columns
    op(name, mean_and_each(lambda x, *a, **k: getattr(x, name)(*a, **k)), both,
       mean_and_each(lambda *a, **k: (torchs or getattr(F, name))(*a, **k)), **columns)


def reduced(x, reduction):
    return x.mean() if reduction == "mean" else x


loss("mse_loss", lambda x, y: (x - y)**2)
loss("l1_loss", lambda x, y: abs(x - y))
loss("huber_loss", lambda x, y: np.where(abs(x - y) < 1, (x - y)**2 / 2, abs(x - y) - .5))
loss("soft_margin_loss", lambda x, y: np.logaddexp(0, -y * x), lambda x, y, reduction: reduced(F.softplus(-y * x),
    reduction))
loss("binary_crossentropy", lambda x, y: -(y * np.maximum(np.log(x), -100) + (1 - y) * np.maximum(np.log(1 - x),
    -100)), lambda *a, **k: F.binary_cross_entropy(*a, **k),
     domain=(0, 1), torch_takes=FLOATS)
loss("binary_crossentropy_logits", lambda x, y: softplus(x) - x * y, lambda *a,
    **k: F.binary_cross_entropy_with_logits(*a, **k),
     domain=((-3, 3), (0, 1)))
KINDS = np.array([2, 0, 1, 1])
CLASSES = Tensor(KINDS)


def at_classes(log_p):
    return -np.take_along_axis(np.asarray(log_p, dtype=float), KINDS[:, None], 1)[:, 0]


def class_loss(name, ours, numpy, torchs, **columns):
    op(name, mean_and_each(ours), lambda x: (numpy(x).mean(), numpy(x)), mean_and_each(torchs), shapes=(((4, 3),),),
       gives=(floating, floating), grad=True, of_most=True, ulps=4, bad=(
        Bad(lambda: ours(Tensor.ones(3, 3), reduction="mean"), ValueError, None, lambda: torchs(torch.ones(3, 3),
            reduction="mean")),
        Bad(lambda: ours(Tensor.ones(4, 3), reduction="typo"), ValueError, None, lambda: torchs(torch.ones(4, 3),
            reduction="typo"))), **columns)


def classes_of(f):
    return lambda x, **k: f(x, torch.from_numpy(KINDS), **k)


class_loss("cross_entropy", lambda x, **k: x.cross_entropy(CLASSES, **k), lambda x: at_classes(x - logsumexp(x, 1,
    True)),
           classes_of(lambda *a, **k: F.cross_entropy(*a, **k)))
class_loss("sparse_categorical_crossentropy", lambda x, **k: x.sparse_categorical_crossentropy(CLASSES, **k),
           lambda x: at_classes(x - logsumexp(x, 1, True)), classes_of(lambda *a, **k: F.cross_entropy(*a, **k)))
class_loss("nll_loss", lambda x, **k: x.nll_loss(CLASSES, **k), at_classes, classes_of(lambda *a,
    **k: F.nll_loss(*a, **k)))

# ---- decompositions of matrices


LINALG = "docs/dtypes.md: linear algebra takes floats, as in PyTorch"
op("qr", lambda x: (lambda q, r: (q @ r, q.T @ q, r.tril(-1)))(*x.qr()), lambda x: (x, np.eye(x.shape[1]),
    np.zeros((x.shape[1],) * 2)),
   shapes=(((3, 2),), ((4, 4),)), gives=(floating,) * 3, of_most=True, ulps=32, domain=(.5, 3), takes=FLOATS,
       refuses=LINALG, bad=(
    Bad(lambda: X.qr(), ValueError, lambda: np.linalg.qr(XN), lambda: torch.linalg.qr(XT)),
        Bad(lambda: MATRIX.qr(1), TypeError)))
op("svd", lambda x: (lambda u, s, v: ((u * s) @ v, s))(*x.svd(full_matrices=False)), lambda x: (x,
    np.linalg.svd(x)[1]),
   lambda x: (x, torch.linalg.svdvals(x)), shapes=(((3, 2),), ((3, 3),)), gives=(floating,) * 2, of_most=True,
       ulps=64, domain=(.5, 3), takes=FLOATS, refuses=LINALG, bad=(
    Bad(lambda: X.svd(), ValueError, lambda: np.linalg.svd(XN), lambda: torch.linalg.svd(XT)),
    Bad(lambda: MATRIX.svd(full_matrices="a"), TypeError, None, lambda: torch.linalg.svd(MT, full_matrices="a"))))


def newton_schulz(g, steps=5, a=3.4445, b=-4.775, c=2.0315):
    x = np.asarray(g, dtype=float) / (np.linalg.norm(g) + 1e-7)
    for _ in range(steps):
        s = x @ x.T
        x = a * x + (b * s + c * s @ s) @ x
    return x


op("newton_schulz", of("newton_schulz"), newton_schulz, shapes=(((2, 3),), ((3, 3),)), gives=floating, of_most=True,
    ulps=64, takes=FLOATS,
   refuses=LINALG, bad=(Bad(lambda: X.newton_schulz(), ValueError), Bad(lambda: MATRIX.newton_schulz("a"),
       TypeError)))
