"""Rows of matrix products, convolutions, pools, resizing and normalisation."""
import math

import numpy as np

from conftest import torch
from every_op.operands import FLOATS, NUMBERS, Bad, floating, same
from every_op.rows import (F, MATRIX, MN, MT, X, XN, XT, bad_axes, of, op, theirs)
from every_op.reductions import softmax
from every_op.selection import HERE, ROW
from weft import Tensor

# ---- products, windows, normalisation

MATRICES = (((3,), (3,)), ((2, 3), (3, 4)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 1, 2, 3), (2, 3, 1)), ((2, 0), (0,
    3)), ((0, 2), (2, 3)))


def product(a, b):
    """Integers wrap in their own dtype; a sum of bools is any of them."""
    with np.errstate(all="ignore"):
        return np.matmul(a, b)


BAD_MATRICES = lambda f: (  # noqa: E731
    Bad(lambda: f(MATRIX, MATRIX), ValueError, lambda: MN @ MN, lambda: MT @ MT),
    Bad(lambda: f(X, Tensor([1.0, 2])), ValueError, lambda: XN @ XN[:2], lambda: XT @ XT[:2]),
    Bad(lambda: f(X, Tensor(1.0)), ValueError, lambda: XN @ np.float32(1), lambda: XT @ torch.tensor(1.0)),
    Bad(lambda: f(X, 3), TypeError, None, lambda: XT @ 3), Bad(lambda: f(X, "a"), TypeError, None, lambda: XT @ "a"))
SUMS = {"of_most": True, "ulps": 4, "grad": True}
for _name in ("matmul", "dot", "image_dot", "__matmul__"):
    op(_name, of(_name), product, lambda a, b: torch.matmul(a, b), shapes=MATRICES,
       bad=BAD_MATRICES(lambda a, b, n=_name: getattr(a, n)(b)) if _name != "__matmul__" else BAD_MATRICES(lambda a,
           b: a @ b), **SUMS)
op("linear", of("linear"), lambda x, w, b: product(x, w) + b, lambda x, w, b: x @ w + b, shapes=(((2, 3), (3, 4),
    (4,)), ((3,), (3, 2), (2,))),
   bad=(Bad(lambda: MATRIX.linear(MATRIX), ValueError, lambda: MN @ MN, lambda: F.linear(MT, MT.T)),
        Bad(lambda: MATRIX.linear(MATRIX.T, X), ValueError, lambda: MN @ MN.T + XN, lambda: F.linear(MT, MT, XT)),
        Bad(lambda: MATRIX.linear("a"), TypeError, None, lambda: F.linear(MT, "a"))), **SUMS)


def windows(x, kernel, stride=(1, 1)):
    found = np.lib.stride_tricks.sliding_window_view(x, kernel, (-2, -1))
    return found[..., ::stride[0], ::stride[1], :, :]


def convolved(x, w, padding=1, stride=2):
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    with np.errstate(all="ignore"):
        return np.einsum("ncyxij,ocij->noyx", windows(x, w.shape[2:], (stride, stride)), w)


def scattered_windows(x, w, stride=2):
    n, c, h, width = x.shape
    kh, kw = w.shape[2:]
    y = np.zeros((n, w.shape[1], (h - 1) * stride + kh, (width - 1) * stride + kw), dtype=np.result_type(x, w))
    for i, j in np.ndindex(h, width):
        y[:, :, i * stride:i * stride + kh, j * stride:j * stride + kw] += np.einsum("nc,coij->noij", x[:, :, i, j],
            w)
    return y


IMAGE, KERNEL = Tensor.ones(1, 2, 4, 4), Tensor.ones(3, 2, 2, 2)
IMAGET, KERNELT = (torch.ones(1, 2, 4, 4), torch.ones(3, 2, 2, 2)) if torch else (None, None)
CONV = {"shapes": (((2, 2, 4, 5), (3, 2, 2, 3)),), **SUMS}
for _name in ("conv2d", "image_conv2d"):
    op(_name, lambda x, w, n=_name: getattr(x, n)(w, stride=2, padding=1), convolved, lambda x, w: F.conv2d(x, w,
        stride=2, padding=1),
       **CONV, bad=(
        Bad(lambda n=_name: getattr(IMAGE, n)(KERNEL[:, :1]), ValueError, None, lambda: F.conv2d(IMAGET, KERNELT[:,
            :1])),
        Bad(lambda n=_name: getattr(IMAGE, n)(KERNEL, stride=0), ValueError, None, lambda: F.conv2d(IMAGET, KERNELT,
            stride=0)),
        Bad(lambda n=_name: getattr(IMAGE, n)(KERNEL, groups=2), ValueError, None, lambda: F.conv2d(IMAGET, KERNELT,
            groups=2)),
        Bad(lambda n=_name: getattr(IMAGE, n)(Tensor.ones(3, 2, 5, 5)), ValueError, None, lambda: F.conv2d(IMAGET,
            torch.ones(3, 2, 5, 5))),
        Bad(lambda n=_name: getattr(IMAGE, n)(KERNEL, Tensor.ones(2)), ValueError, None, lambda: F.conv2d(IMAGET,
            KERNELT, torch.ones(2))),
        Bad(lambda n=_name: getattr(X, n)(KERNEL), ValueError, None, lambda: F.conv2d(XT, KERNELT)),
        Bad(lambda n=_name: getattr(IMAGE, n)("a"), TypeError, None, lambda: F.conv2d(IMAGET, "a"))))
op("conv_transpose2d", lambda x, w: x.conv_transpose2d(w, stride=2), scattered_windows, lambda x,
    w: F.conv_transpose2d(x, w, stride=2),
   shapes=(((2, 2, 2, 3), (2, 3, 2, 3)),), **SUMS, bad=(
    Bad(lambda: IMAGE.conv_transpose2d(Tensor.ones(1, 2, 2, 2)), ValueError, None,
        lambda: F.conv_transpose2d(IMAGET, torch.ones(1, 2, 2, 2))),
    Bad(lambda: IMAGE.conv_transpose2d(Tensor.ones(2, 1, 2, 2), stride=0), ValueError, None,
        lambda: F.conv_transpose2d(IMAGET, torch.ones(2, 1, 2, 2), stride=0)),
    Bad(lambda: IMAGE.conv_transpose2d("a"), TypeError, None, lambda: F.conv_transpose2d(IMAGET, "a"))))
POOL = {"shapes": (((2, 4, 4),), ((1, 2, 5, 4),)), "grad": True}
BAD_POOL = lambda name, theirs_: (  # noqa: E731
    Bad(lambda: getattr(IMAGE, name)(0), ValueError, None, lambda: theirs_(IMAGET, 0)),
    Bad(lambda: getattr(IMAGE, name)(5), ValueError, None, lambda: theirs_(IMAGET, 5)),
    Bad(lambda: getattr(IMAGE, name)(2, stride=-1), ValueError, None, lambda: theirs_(IMAGET, 2, stride=-1)),
    Bad(lambda: getattr(X, name)(2), ValueError),
    Bad(lambda: getattr(IMAGE, name)("a"), TypeError, None, lambda: theirs_(IMAGET, "a")))
op("avg_pool2d", lambda x: x.avg_pool2d(2), lambda x: windows(np.asarray(x, dtype=float), (2, 2), (2, 2)).mean((-2,
    -1)), lambda x:
   F.avg_pool2d(x, 2), gives=floating, of_most=True, torch_takes=FLOATS, **POOL, bad=BAD_POOL("avg_pool2d",
       lambda *a, **k: F.avg_pool2d(*a, **k)))
op("max_pool2d", lambda x: x.max_pool2d(2), lambda x: windows(x, (2, 2), (2, 2)).max((-2, -1)),
    lambda x: F.max_pool2d(x, 2), **POOL,
   bad=BAD_POOL("max_pool2d", lambda *a, **k: F.max_pool2d(*a, **k)))


def unpooled(x):
    y = np.zeros((*x.shape[:-2], 2 * x.shape[-2], 2 * x.shape[-1]), dtype=x.dtype)
    y[..., ::2, 1::2] = x
    return y


def corners(shape):
    rows, columns = np.indices(shape[-2:])
    return np.broadcast_to(2 * rows * 2 * shape[-1] + 2 * columns + 1, shape).astype(np.int64).copy()


op("max_unpool2d", lambda x: x.max_unpool2d(Tensor(corners(x.shape))), unpooled, lambda x: F.max_unpool2d(
    x, torch.from_numpy(corners(x.shape)), 2), shapes=(((1, 2, 2, 3),),), grad=True, bad=(
    Bad(lambda: IMAGE.max_unpool2d(HERE), ValueError, None, lambda: F.max_unpool2d(IMAGET, torch.from_numpy(ROW), 2)),
    Bad(lambda: IMAGE.max_unpool2d("a"), TypeError)))
op("interpolate", lambda x: (x.interpolate((3, 8), mode="nearest"), x.interpolate((2, 2), mode="area")), lambda x: (
    x[..., np.arange(3) * 4 // 3, :][..., np.arange(8) // 2], np.round(windows(np.asarray(x, float), (2, 2), (2,
        2)).mean((-2, -1)))
    if x.dtype.kind != "f" else windows(x, (2, 2), (2, 2)).mean((-2, -1))), lambda x: (
    F.interpolate(x, (3, 8), mode="nearest"), F.interpolate(x, (2, 2), mode="area")), shapes=(((1, 2, 4, 4),),),
        gives=(same, same), grad=True,
   whole_range=False, of_most=True, torch_takes=FLOATS, bad=(
    Bad(lambda: IMAGE.interpolate((3, 3), mode="typo"), ValueError, None, lambda: F.interpolate(IMAGET, (3, 3),
        mode="typo")),
    Bad(lambda: IMAGE.interpolate((0, 3)), ValueError, None, lambda: F.interpolate(IMAGET, (0, 3), mode="bilinear")),
    Bad(lambda: IMAGE.interpolate("a"), TypeError, None, lambda: F.interpolate(IMAGET, "a"))))
for _mode, _theirs in {"linear": "bilinear", "cubic": "bicubic"}.items():
    op(f"interpolate: {_mode}", lambda x, m=_mode: x.interpolate((3, 6), mode=m), None, lambda x,
        m=_theirs: F.interpolate(x, (3, 6), mode=m),
       shapes=(((1, 2, 4, 4),),), grad=True, of_most=True, ulps=16, torch_takes=FLOATS, takes=FLOATS,
       refuses="integers are rounded: interpolate")


def normal(x, axis=-1, eps=1e-5):
    return (x - x.mean(axis, keepdims=True)) / np.sqrt(x.var(axis, keepdims=True) + eps)


op("layernorm", of("layernorm"), lambda x: normal(np.asarray(x, float)), lambda x: F.layer_norm(x, x.shape[-1:]),
    shapes=(((2, 5),), ((3, 1, 4),)),
   gives=floating, grad=True, of_most=True, ulps=4, bad=bad_axes(lambda x, a: x.layernorm(a)))
op("batchnorm", lambda x, w, b, m, s: x.batchnorm(w, b, m, s), lambda x, w, b, m, s: (x - m[:, None]) * s[:,
    None] * w[:, None] + b[:, None],
   lambda x, w, b, m, s: (x - m[:, None]) * s[:, None] * w[:, None] + b[:, None], shapes=(((2, 3, 4), (3,), (3,),
       (3,), (3,)),), takes=NUMBERS,
   grad=True, of_most=True, ulps=8, bad=(
    Bad(lambda: MATRIX.batchnorm(X, X, X, X, axis=2), IndexError), Bad(lambda: MATRIX.batchnorm(X[:2], X, X, X),
        ValueError, None,
                                                                     lambda: F.batch_norm(MT, XT, XT, XT[:2])),
    Bad(lambda: MATRIX.batchnorm("a", X, X, X), TypeError, None, lambda: F.batch_norm(MT, XT, XT, "a"))))


def attention(q, k, v):
    return softmax(q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1]), -1) @ v


op("scaled_dot_product_attention", of("scaled_dot_product_attention"), attention,
    theirs("scaled_dot_product_attention"),
   shapes=(((2, 3, 4), (2, 5, 4), (2, 5, 4)),), takes=FLOATS, refuses="PyTorch refuses integers, too", **SUMS, bad=(
    Bad(lambda: MATRIX.scaled_dot_product_attention(Tensor.ones(2, 4), MATRIX), ValueError, lambda: MN @ np.ones((4,
        2)),
        lambda: F.scaled_dot_product_attention(MT, torch.ones(2, 4), MT)),
    Bad(lambda: MATRIX.scaled_dot_product_attention("a", MATRIX), TypeError, None,
        lambda: F.scaled_dot_product_attention(MT, "a", MT))))
