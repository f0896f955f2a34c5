"""Rows of views and movement."""
import numpy as np

from conftest import torch
from every_op.operands import ONE, WHOLE, WIDE, Bad, position, same
from every_op.rows import (F, INTEGERS, IT, MATRIX, MN, MT, X, XN, XT, bad_axes, of, op, theirs)
from weft import Tensor

# ---- movement


def moves(name, ours, numpy, torchs=None, **columns):
    op(name, ours, numpy, torchs, **{"shapes": (((2, 3),), ((3, 1, 4),)), "grad": True, "ulps": 0} | columns)


def no_fit(*calls):
    return tuple(Bad(*call) if isinstance(call, tuple) else Bad(call, ValueError) for call in calls)


SIX = (((6,),), ((2, 3),), ((1, 6, 1),))
for _name in ("reshape", "view"):
    moves(_name, lambda x, n=_name: (getattr(x, n)(3, -1), getattr(x, n)((6, 1))), lambda x: (x.reshape(3, -1),
        x.reshape(6, 1)),
          lambda x: (x.reshape(3, -1), x.reshape(6, 1)), shapes=SIX, gives=(same, same), bad=(
        Bad(lambda n=_name: getattr(X, n)(2, 2), ValueError, lambda: XN.reshape(2, 2), lambda: XT.reshape(2, 2)),
        Bad(lambda n=_name: getattr(X, n)(-1, -1), ValueError, lambda: XN.reshape(-1, -1), lambda: XT.reshape(-1,
            -1)),
        Bad(lambda n=_name: getattr(X, n)(-3), ValueError, lambda: XN.reshape(-3, -1), lambda: XT.reshape(-3)),
        Bad(lambda n=_name: getattr(X, n)("a"), TypeError, lambda: XN.reshape("a"), lambda: XT.reshape("a")),
        Bad(lambda n=_name: getattr(X, n)(1.5), TypeError, lambda: XN.reshape(1.5), lambda: XT.reshape(1.5))))
moves("expand", lambda x: x.expand(2, *x.shape), lambda x: np.broadcast_to(x, (2, *x.shape)), lambda x: x.expand(2,
    *x.shape),
      shapes=ONE, bad=(
    Bad(lambda: X.expand(4), ValueError, lambda: np.broadcast_to(XN, 4), lambda: XT.expand(4)),
    Bad(lambda: MATRIX.expand(3), ValueError, lambda: np.broadcast_to(MN, 3), lambda: MT.expand(3)),
    Bad(lambda: X.expand("a"), TypeError, lambda: np.broadcast_to(XN, "a"), lambda: XT.expand("a"))))
moves("permute", lambda x: x.permute(tuple(range(1, x.ndim)) + (0,)), lambda x: np.moveaxis(x, 0, -1),
      lambda x: x.movedim(0, -1), bad=(
    Bad(lambda: MATRIX.permute(0, 0), ValueError, lambda: MN.transpose(0, 0), lambda: MT.permute(0, 0)),
    Bad(lambda: MATRIX.permute(0), ValueError, lambda: MN.transpose(0), lambda: MT.permute(0)),
    Bad(lambda: MATRIX.permute(0, 2), IndexError, lambda: MN.transpose(0, 2), lambda: MT.permute(0, 2)),
    Bad(lambda: MATRIX.permute("a", 0), TypeError, lambda: MN.transpose("a", 0), lambda: MT.permute("a", 0))))
moves("transpose", lambda x: x.transpose(0, -1), lambda x: x.swapaxes(0, -1), lambda x: x.transpose(0, -1),
    bad=bad_axes(
    lambda x, a: x.transpose(0, a), lambda x, a: x.swapaxes(0, a), lambda x, a: x.transpose(0, a)))
moves("T", lambda x: x.T, lambda x: x.swapaxes(-1, -2), lambda x: x.mT)
moves("flip", lambda x: (x.flip(0), x.flip((0, -1))), lambda x: (x[::-1], x[::-1, ..., ::-1]),
      lambda x: (x.flip(0), x.flip((0, -1))), gives=(same, same), bad=(*bad_axes(
          lambda x, a: x.flip(a), np.flip, lambda x, a: x.flip(a)),
    Bad(lambda: MATRIX.flip((0, 0)), ValueError, lambda: np.flip(MN, (0, 0)), lambda: MT.flip((0, 0)))))
moves("shrink", lambda x: x.shrink(((1, 2), None)), lambda x: x[1:2], lambda x: x[1:2], shapes=(((2, 3),), ((4,
    0),)), bad=no_fit(
    (lambda: X.shrink(((0, 4),)), IndexError), (lambda: X.shrink(((2, 1),)), IndexError), lambda: X.shrink(((0, 1),
        (0, 1))),
    (lambda: X.shrink(((0, "a"),)), TypeError), (lambda: X.shrink(3), TypeError)))
moves("pad", lambda x: (x.pad(((1, 0), None), value=2), x.pad((1, 2, 0, 1)), x.pad((-1, 1))), lambda x: (
    np.pad(x, ((1, 0), (0, 0)), constant_values=2), np.pad(x, ((0, 1), (1, 2))), np.pad(x[:, 1:], ((0, 0), (0, 1)))),
      lambda x: (F.pad(x, (0, 0, 1, 0), value=2), F.pad(x, (1, 2, 0, 1)), F.pad(x, (-1, 1))), gives=(same,) * 3,
      shapes=(((2, 3),), ((0, 3),)), bad=(
    Bad(lambda: X.pad((-2, -2)), ValueError, torch=lambda: F.pad(XT, (-2, -2))),
    Bad(lambda: X.pad((1, 2, 3)), ValueError, torch=lambda: F.pad(XT, (1, 2, 3))),
    Bad(lambda: X.pad(((1, 1), (1, 1))), ValueError, lambda: np.pad(XN, ((1, 1), (1, 1), (1, 1)))),
    Bad(lambda: X.pad((1, 1), mode="typo"), NotImplementedError, torch=lambda: F.pad(XT, (1, 1), mode="typo")),
    Bad(lambda: X.pad("a"), TypeError, lambda: np.pad(XN, "a"))))
MODES = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}
for _mode, _numpy in MODES.items():
    moves(f"pad: {_mode}", lambda x, m=_mode: x.pad((2, 1), mode=m),
          lambda x, m=_numpy: np.pad(x, ((0, 0),) * (x.ndim - 1) + ((2, 1),), mode=m), lambda x, m=_mode: F.pad(x,
              (2, 1), mode=m),
          shapes=(((2, 3),), ((1, 2, 4),)), torch_takes=WIDE, bad=(
        Bad(lambda m=_mode: MATRIX.pad((7, 0), mode=m), ValueError, torch=lambda m=_mode: F.pad(MT, (7, 0),
            mode=m)),) if
          _mode != "replicate" else ())
moves("pad_to", lambda x: x.pad_to(None, 5), lambda x: np.pad(x, ((0, 0), (0, 2))), shapes=(((2, 3),),), bad=no_fit(
    lambda: X.pad_to(2), lambda: X.pad_to(2, 3), (lambda: X.pad_to("a"), TypeError)))
moves("shrink_to", lambda x: x.shrink_to(None, 2), lambda x: x[:, :2], shapes=(((2, 3),),), bad=no_fit(
    lambda: X.shrink_to(4), lambda: X.shrink_to(-1), lambda: X.shrink_to(2, 3), (lambda: X.shrink_to("a"),
        TypeError)))
moves("squeeze", lambda x: (x.squeeze(), x.squeeze(0)), lambda x: (np.squeeze(x), x[0] if x.shape[:1] == (1,) else x),
      lambda x: (x.squeeze(), x.squeeze(0)), gives=(same, same), shapes=(((1, 3),), ((2, 1, 1),), ((1, 0),)),
          bad=bad_axes(
          lambda x, a: x.squeeze(a), lambda x, a: np.squeeze(x, a), lambda x, a: x.squeeze(a)))
moves("unsqueeze", lambda x: (x.unsqueeze(0), x.unsqueeze(-1)), lambda x: (x[None], x[..., None]),
      lambda x: (x.unsqueeze(0), x.unsqueeze(-1)), gives=(same, same), shapes=ONE, bad=(
    Bad(lambda: X.unsqueeze(2), IndexError, lambda: np.expand_dims(XN, 2), lambda: XT.unsqueeze(2)),
    Bad(lambda: X.unsqueeze(-3), IndexError, lambda: np.expand_dims(XN, -3), lambda: XT.unsqueeze(-3)),
    Bad(lambda: X.unsqueeze("a"), TypeError, lambda: np.expand_dims(XN, "a"), lambda: XT.unsqueeze("a"))))
moves("flatten", lambda x: (x.flatten(), x.flatten(1)), lambda x: (x.reshape(-1), x.reshape(x.shape[0],
    -1) if x.size else
                                                                 x.reshape(x.shape[0], 0)),
      lambda x: (x.flatten(), x.flatten(1)), gives=(same, same), shapes=(((2, 3),), ((2, 1, 4),), ((2, 0, 3),)),
          bad=(*bad_axes(
          lambda x, a: x.flatten(a), torchs=lambda x, a: x.flatten(a)),
    Bad(lambda: MATRIX.flatten(1, 0), ValueError, torch=lambda: MT.flatten(1, 0))))
moves("unflatten", lambda x: x.unflatten(-1, (2, -1)), lambda x: x.reshape(*x.shape[:-1], 2, -1),
    lambda x: x.unflatten(-1, (2, -1)),
      shapes=(((4,),), ((3, 6),)), bad=(*bad_axes(lambda x, a: x.unflatten(a, (1, -1)), torchs=lambda x,
          a: x.unflatten(a, (1, -1))),
    Bad(lambda: X.unflatten(0, (2, 2)), ValueError, torch=lambda: XT.unflatten(0, (2, 2)))))
moves("unfold", lambda x: x.unfold(-1, 2, 2), lambda x: np.lib.stride_tricks.sliding_window_view(x, 2, -1)[..., ::2,
    :],
      lambda x: x.unfold(-1, 2, 2), shapes=(((5,),), ((2, 4),)), bad=(*bad_axes(lambda x, a: x.unfold(a, 1, 1),
          torchs=lambda x, a:
                                                                               x.unfold(a, 1, 1)),
    Bad(lambda: X.unfold(0, 4, 1), ValueError, torch=lambda: XT.unfold(0, 4, 1)),
    Bad(lambda: X.unfold(0, -1, 1), ValueError, torch=lambda: XT.unfold(0, -1, 1)),
    Bad(lambda: X.unfold(0, 2, 0), ValueError, torch=lambda: XT.unfold(0, 2, 0))))
moves("diagonal", lambda x: (x.diagonal(), x.diagonal(1, 0, -1)), lambda x: (np.diagonal(x), np.diagonal(x, 1, 0,
    -1)),
      lambda x: (x.diagonal(), x.diagonal(1, 0, -1)), gives=(same, same), bad=(*bad_axes(
          lambda x, a: x.diagonal(0, 0, a), lambda x, a: x.diagonal(0, 0, a), lambda x, a: x.diagonal(0, 0, a)),
    Bad(lambda: MATRIX.diagonal(0, 1, 1), ValueError, lambda: MN.diagonal(0, 1, 1), lambda: MT.diagonal(0, 1, 1))))
moves("diag", of("diag"), np.diag, theirs("diag"), shapes=(((3,),), ((2, 3),)), bad=(
    Bad(lambda: Tensor.ones(2, 2, 2).diag(), ValueError, lambda: np.diag(np.ones((2, 2, 2))),
        lambda: torch.diag(torch.ones(2, 2, 2))),
    Bad(lambda: X.diag("a"), TypeError, lambda: np.diag(XN, "a"), lambda: torch.diag(XT, "a"))))
moves("split", lambda x: (*x.split(2, -1), *x.split([1, 2], -1)),
      lambda x: (x[..., :2], x[..., 2:], x[..., :1], x[..., 1:]), lambda x: (*x.split(2, -1), *x.split([1, 2], -1)),
          gives=(same,) * 4,
      shapes=(((3,),), ((2, 3),)), bad=(*bad_axes(lambda x, a: x.split(1, a), torchs=lambda x, a: torch.split(x, 1,
          a)),
    Bad(lambda: X.split([1, 1]), ValueError, torch=lambda: XT.split([1, 1])),
    Bad(lambda: X.split(-1), ValueError, torch=lambda: XT.split(-1)), Bad(lambda: X.split("a"), TypeError),
    Bad(lambda: X.split([4, -1]), ValueError, torch=lambda: XT.split([4, -1]))))
moves("chunk", lambda x: x.chunk(2, -1), lambda x: np.array_split(x, 2, -1), lambda x: x.chunk(2, -1), gives=(same,
    same),
      shapes=(((3,),), ((2, 4),)), bad=(*bad_axes(lambda x, a: x.chunk(1, a), lambda x, a: np.array_split(x, 1, a),
          lambda x, a:
                                                 torch.chunk(x, 1, a)),
    Bad(lambda: X.chunk(0), ValueError, lambda: np.array_split(XN, 0), lambda: XT.chunk(0)),
    Bad(lambda: X.chunk(-1), ValueError, lambda: np.array_split(XN, -1), lambda: XT.chunk(-1))))
for _name, _numpy in {"tril": np.tril, "triu": np.triu}.items():
    moves(_name, lambda x, n=_name: (getattr(x, n)(), getattr(x, n)(-1)), lambda x, f=_numpy: (f(x), f(x, -1)),
          lambda x, n=_name: (getattr(torch, n)(x), getattr(torch, n)(x, -1)), gives=(same, same), bad=(
        Bad(lambda n=_name: getattr(X, n)(), ValueError, torch=lambda n=_name: getattr(torch, n)(XT)),
        Bad(lambda n=_name: getattr(MATRIX, n)("a"), TypeError, lambda f=_numpy: f(MN, "a"),
            lambda n=_name: getattr(torch, n)(MT, "a"))))
PAIRS = (((3,), (3,)), ((2, 3), (2, 3)))
moves("cat", lambda x, y: (x.cat(y, dim=-1), Tensor.cat([y, x])), lambda x, y: (np.concatenate([x, y], -1),
    np.concatenate([y, x])),
      lambda x, y: (torch.cat([x, y], -1), torch.cat([y, x])), gives=(same, same), shapes=(*PAIRS, ((0, 2), (0,
          2))), bad=(
    *bad_axes(lambda x, a: x.cat(x, dim=a), lambda x, a: np.concatenate([x, x], a), lambda x, a: torch.cat([x, x],
        a)),
    Bad(lambda: X.cat(MATRIX), ValueError, lambda: np.concatenate([XN, MN]), lambda: torch.cat([XT, MT])),
    Bad(lambda: MATRIX.cat(MATRIX[:1], dim=1), ValueError, lambda: np.concatenate([MN, MN[:1]], 1),
        lambda: torch.cat([MT, MT[:1]], 1)),
    Bad(lambda: Tensor.cat([]), ValueError, lambda: np.concatenate([]), lambda: torch.cat([])),
    Bad(lambda: X.cat("a"), TypeError, torch=lambda: torch.cat([XT, "a"]))))
moves("stack", lambda x, y: (x.stack(y, dim=-1), Tensor.stack([y, x])), lambda x, y: (np.stack([x, y], -1),
    np.stack([y, x])),
      lambda x, y: (torch.stack([x, y], -1), torch.stack([y, x])), gives=(same, same), shapes=(*PAIRS, ((), ())),
          bad=(
    Bad(lambda: X.stack(X, dim=2), IndexError, lambda: np.stack([XN, XN], 2), lambda: torch.stack([XT, XT], 2)),
    Bad(lambda: X.stack(MATRIX), ValueError, lambda: np.stack([XN, MN]), lambda: torch.stack([XT, MT])),
    Bad(lambda: Tensor.stack([]), ValueError, lambda: np.stack([]), lambda: torch.stack([])),
    Bad(lambda: X.stack("a"), TypeError, torch=lambda: torch.stack([XT, "a"]))))
moves("repeat", lambda x: x.repeat(2, 1, 3), lambda x: np.tile(x, (2, 1, 3)), lambda x: x.repeat(2, 1, 3), ulps=2,
    bad=(
    Bad(lambda: MATRIX.repeat(2), ValueError, torch=lambda: MT.repeat(2)), Bad(lambda: X.repeat(-1), ValueError,
                                                                            torch=lambda: XT.repeat(-1)),
    Bad(lambda: X.repeat("a"), TypeError, torch=lambda: XT.repeat("a"))))
moves("repeat_interleave", lambda x: (x.repeat_interleave(2), x.repeat_interleave(3, -1)), lambda x: (np.repeat(x,
    2), np.repeat(x, 3, -1)),
      lambda x: (x.repeat_interleave(2), x.repeat_interleave(3, -1)), gives=(same, same), bad=(
    *bad_axes(lambda x, a: x.repeat_interleave(2, a), lambda x, a: np.repeat(x, 2, a), lambda x,
        a: x.repeat_interleave(2, a)),
    Bad(lambda: X.repeat_interleave(-1), ValueError, lambda: np.repeat(XN, -1), lambda: XT.repeat_interleave(-1))))
moves("roll", lambda x: (x.roll(1), x.roll((1, -1), (0, -1)), x.roll(7, 0)), lambda x: (np.roll(x, 1), np.roll(x,
    (1, -1), (0, -1)), np.roll(x, 7, 0)),
      lambda x: (x.roll(1), x.roll((1, -1), (0, -1)), x.roll(7, 0)), gives=(same,) * 3, bad=(
    *bad_axes(lambda x, a: x.roll(1, a), lambda x, a: np.roll(x, 1, a), lambda x, a: x.roll(1, a)),
    Bad(lambda: MATRIX.roll((1, 2, 3), (0, 1)), ValueError, lambda: np.roll(MN, (1, 2, 3), (0, 1)),
        lambda: MT.roll((1, 2, 3), (0, 1)))))
moves("meshgrid", lambda x, y: (*x.meshgrid(y), *x.meshgrid(y, indexing="xy")), lambda x, y: (
    *np.meshgrid(x, y, indexing="ij"), *np.meshgrid(x, y)), lambda x, y: (*torch.meshgrid(x, y, indexing="ij"),
                                                                         *torch.meshgrid(x, y, indexing="xy")),
      gives=(same,) * 4, shapes=(((3,), (2,)), ((0,), (2,))), bad=(
    Bad(lambda: X.meshgrid(X, indexing="typo"), ValueError, lambda: np.meshgrid(XN, XN, indexing="typo"),
        lambda: torch.meshgrid(XT, XT, indexing="typo")),
    Bad(lambda: MATRIX.meshgrid(X), ValueError, torch=lambda: torch.meshgrid(MT, XT, indexing="ij")),
        Bad(lambda: X.meshgrid(3), TypeError)))
moves("rearrange", lambda x: x.rearrange("a (b c) -> (c a) b", c=2), lambda x: x.reshape(x.shape[0], -1,
    2).transpose(2, 0, 1)
      .reshape(-1, x.shape[1] // 2), lambda x: x.reshape(x.shape[0], -1, 2).permute(2, 0, 1).reshape(-1,
          x.shape[1] // 2),
      shapes=(((3, 4),),), bad=no_fit(lambda: X.rearrange("a b -> b a"), lambda: X.rearrange("a -> b"),
          lambda: X.rearrange("a"),
                                     lambda: X.rearrange("(a b) -> a b", a=2), (lambda: X.rearrange(3), TypeError)))
op("einsum", lambda x, y: (Tensor.einsum("ij,jk->ki", x, y), Tensor.einsum("ij,jk", x, y)),
   lambda x, y: (np.einsum("ij,jk->ki", x, y), np.einsum("ij,jk", x, y)),
   lambda x, y: (torch.einsum("ij,jk->ki", x, y), torch.einsum("ij,jk", x, y)), shapes=(((2, 3), (3, 4)),),
       gives=(same, same), grad=True,
   of_most=True, bad=(
    Bad(lambda: Tensor.einsum("ij,jk", MATRIX, MATRIX), ValueError, lambda: np.einsum("ij,jk", MN, MN),
        lambda: torch.einsum("ij,jk", MT, MT)),
    Bad(lambda: Tensor.einsum("ij,k", MATRIX), ValueError, lambda: np.einsum("ij,k", MN),
        lambda: torch.einsum("ij,k", MT)),
    Bad(lambda: Tensor.einsum("i", MATRIX), ValueError, lambda: np.einsum("i", MN), lambda: torch.einsum("i", MT)),
    Bad(lambda: Tensor.einsum("ij->ijk", MATRIX), ValueError, lambda: np.einsum("ij->ijk", MN),
        lambda: torch.einsum("ij->ijk", MT)),
    Bad(lambda: Tensor.einsum(3, MATRIX), TypeError, None, lambda: torch.einsum(3, MT))))
op("one_hot", lambda x: x.abs().one_hot(4), lambda x: (np.abs(x)[..., None] == np.arange(4)).astype(int),
    shapes=ONE, takes=WHOLE,
   gives=position, domain=(-3, 3), whole_range=False, bad=(
       Bad(lambda: X.one_hot(3), TypeError, torch=lambda: F.one_hot(XT, 3)), Bad(lambda: INTEGERS.one_hot("a"),
           TypeError),
       Bad(lambda: INTEGERS.one_hot(-2), ValueError, torch=lambda: F.one_hot(IT.long(), -2))))
