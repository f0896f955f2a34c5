"""Rows of reductions, of what runs along an axis, and of sorting."""
import numpy as np

from conftest import torch
from every_op.operands import LINES, Bad, boolean, floating, position, same, summed
from every_op.rows import (EMPTY, F, MATRIX, MN, MT, X, XT, bad_axes, op)
from weft import Tensor

# ---- reductions


def axes(name, **options):
    """Over everything, over axis 0, over the last with keepdim."""
    return lambda x: tuple(getattr(x, name)(**options, **how) for how in ({}, {"axis": 0}, {"axis": -1,
        "keepdim": True}))


def numpy_axes(f):
    """f(a, axis=, keepdims=) in the same three ways; a number has an axis, as in PyTorch."""
    def g(a):
        first, last = (0, -1) if a.ndim else (None, None)
        return f(a, axis=None, keepdims=False), f(a, axis=first, keepdims=False), f(a, axis=last, keepdims=True)
    return g


def torch_axes(f):
    def g(a):
        return f(a, tuple(range(a.ndim)), False), f(a, 0, False), f(a, -1, True)
    return g


def reduction(name, numpy, torchs, **columns):
    columns = {"gives": same, "shapes": (*LINES, ((0, 3),)), "grad": True, "of_most": True} | columns
    bad = (*bad_axes(lambda x, a: getattr(x, name)(a), lambda x, a: np.sum(x, a), lambda x, a: torch.sum(x, a)),
           Bad(lambda: getattr(MATRIX, name)((0, 0)), ValueError, lambda: np.sum(MN, (0, 0)), lambda: torch.sum(MT,
               (0, 0))),
           *columns.pop("bad", ()))
    gives = columns.pop("gives")
    op(name, axes(name), numpy_axes(numpy), torch_axes(torchs), gives=(gives,) * 3, bad=bad, **columns)


def no_elements(name, numpy):
    return (Bad(lambda: getattr(Tensor.zeros(0, 3), name)(0), ValueError, lambda: numpy(np.zeros((0, 3)), 0),
                lambda: getattr(torch, name)(torch.zeros(0, 3), 0)),
            Bad(lambda: getattr(Tensor.zeros(0), name)(), ValueError, lambda: numpy(np.zeros(0)),
                lambda: getattr(torch, name)(torch.zeros(0))))


def wide(x):
    """Bools and integers wrap in 64 bits as in fewer."""
    return {"f": None, "u": np.uint64}.get(x.dtype.kind, np.int64)


def logsumexp(x, axis=None, keepdims=False):
    x = np.asarray(x, dtype=np.float64)
    return np.logaddexp.reduce(x, axis=axis if axis is not None else tuple(range(x.ndim)), keepdims=keepdims)


def prod_of(x, axes, keep):
    for a in sorted({a % max(x.ndim, 1) for a in (axes if isinstance(axes, tuple) else (axes,))}, reverse=True):
        x = torch.prod(x, a, keep)
    return x


reduction("sum", lambda x, **how: np.sum(x, dtype=wide(x), **how), lambda x, a, k: torch.sum(x, a, k), gives=summed)
reduction("prod", lambda x, **how: np.prod(x, dtype=wide(x), **how), prod_of, gives=summed)
reduction("max", np.max, lambda x, a, k: torch.amax(x, a, k), shapes=LINES, bad=no_elements("max", np.max))
reduction("min", np.min, lambda x, a, k: torch.amin(x, a, k), shapes=LINES, bad=no_elements("min", np.min))
reduction("any", np.any, lambda x, a, k: torch.any(x, a, k) if a != () else x != 0, gives=boolean, grad=False)
reduction("all", np.all, lambda x, a, k: torch.all(x, a, k) if a != () else x != 0, gives=boolean, grad=False)
reduction("mean", np.mean, lambda x, a, k: torch.mean(x, a, k), gives=floating)
reduction("logsumexp", logsumexp, lambda x, a, k: torch.logsumexp(x, a, k), gives=floating)
SPREAD = {"gives": floating, "shapes": (((5,),), ((3, 2),), ((3, 4, 2),)), "ulps": 4}
reduction("var", lambda x, **how: np.var(x, ddof=1, **how), lambda x, a, k: torch.var(x, a, correction=1,
    keepdim=k), **SPREAD)
reduction("std", lambda x, **how: np.std(x, ddof=1, **how), lambda x, a, k: torch.std(x, a, correction=1,
    keepdim=k), **SPREAD)
for _name, _numpy in {"var_mean": np.var, "std_mean": np.std}.items():
    op(_name, lambda x, n=_name: getattr(x, n)(1, correction=0), lambda x, f=_numpy: (f(x, 1), np.mean(x, 1)),
       lambda x, n=_name: getattr(torch, n)(x, 1, correction=0), gives=(floating, floating), shapes=(((2, 3),), ((3,
           4, 2),)),
       grad=True, of_most=True, ulps=4, bad=bad_axes(lambda x, a, n=_name: getattr(x, n)(a),
                                                     torchs=lambda x, a, n=_name: getattr(torch, n)(x, a)))
for _name in ("argmax", "argmin"):
    op(_name, lambda x, n=_name: (getattr(x, n)(), getattr(x, n)(-1), getattr(x, n)(0, keepdim=True)),
       lambda x, n=_name: (getattr(np, n)(x), getattr(np, n)(x, -1), getattr(np, n)(x, 0,
           keepdims=True)) if x.ndim else
       (np.array(0),) * 3, gives=(position,) * 3, shapes=LINES, whole_range=True,
       bad=(*bad_axes(lambda x, a, n=_name: getattr(x, n)(a), lambda x, a, n=_name: getattr(np, n)(x, a),
                      lambda x, a, n=_name: getattr(torch, n)(x, a)), *no_elements(_name, getattr(np, _name))))

# ---- along an axis


def along(name, numpy, torchs=None, **columns):
    """numpy(a, axis), for which numbers have an axis."""
    columns = {"gives": floating, "shapes": LINES, "grad": True, "of_most": True} | columns
    torchs = torchs or getattr(torch, name, None)
    gives, bad = columns.pop("gives"), columns.pop("bad", ())

    def both(x):
        y = x if x.ndim else x.reshape(1)
        return tuple(found.reshape(x.shape) for found in (numpy(y, 0), numpy(y, -1)))
    op(name, lambda x: (getattr(x, name)(0), getattr(x, name)(-1)), both,
       (lambda x: (torchs(x, 0), torchs(x, -1))) if torchs else None, gives=(gives, gives),
       bad=(*bad_axes(lambda x, a: getattr(x, name)(a), numpy and (lambda x, a: np.cumsum(x, a)),
                      lambda x, a: torch.cumsum(x, a)), *bad), **columns)


def softmax(x, axis):
    return np.exp(x - logsumexp(x, axis, True))


along("softmax", softmax, shapes=(*LINES, *EMPTY))
along("log_softmax", lambda x, a: x - logsumexp(x, a, True), shapes=(*LINES, *EMPTY))
along("softmin", lambda x, a: softmax(-x, a), lambda x, a: F.softmin(x, a), shapes=(*LINES, *EMPTY))
along("cumsum", lambda x, a: np.cumsum(x, a, dtype=wide(x)),
      gives=summed, shapes=(*LINES, *EMPTY))
along("cumprod", lambda x, a: np.cumprod(x, a, dtype=wide(x)), gives=summed, ulps=3, shapes=(*LINES, *EMPTY))
along("logcumsumexp", lambda x, a: np.logaddexp.accumulate(np.asarray(x, dtype=float), a), shapes=(*LINES, *EMPTY))
for _name, _numpy in {"cummax": np.maximum, "cummin": np.minimum}.items():
    def last_seat(x, axis, f=_numpy):
        """Where the running extreme was met last, PyTorch's rule."""
        running = f.accumulate(x, axis)
        seats = np.expand_dims(np.arange(x.shape[axis]), tuple(i for i in range(x.ndim) if i != axis % x.ndim))
        return running, np.maximum.accumulate(np.where(x == running, seats, 0), axis)
    op(_name, lambda x, n=_name: getattr(x, n)(-1)[0], lambda x, f=_numpy: f.accumulate(x, -1) if x.ndim else x,
       lambda x, n=_name: getattr(torch, n)(x, -1)[0], shapes=LINES, grad=True,
       bad=bad_axes(lambda x, a, n=_name: getattr(x, n)(a), torchs=lambda x, a, n=_name: getattr(torch, n)(x, a)))
    op(f"{_name}: positions", lambda x, n=_name: getattr(x, n)(0)[1], lambda x, g=last_seat: g(x, 0)[1],
       lambda x, n=_name: getattr(torch, n)(x, 0)[1], gives=position, shapes=LINES[1:], whole_range=True)
op("normalize", lambda x: (x.normalize(dim=-1), x.normalize(p=1, dim=0)),
   lambda x: (x / np.maximum(np.sqrt((x * x).sum(-1, keepdims=True)), 1e-12), x / np.maximum(np.abs(x).sum(0,
       keepdims=True), 1e-12)),
   lambda x: (F.normalize(x, dim=-1), F.normalize(x, p=1, dim=0)), shapes=(((2, 3),), ((3, 1, 4),)),
       gives=(floating,) * 2,
   grad=True, domain=(.5, 3), bad=bad_axes(lambda x, a: x.normalize(dim=a), torchs=lambda x, a: F.normalize(x,
       dim=a)))
for _descending in (False, True):
    _form = ": descending" if _descending else ""

    def in_order(x, down=_descending):
        x = x if x.ndim else x.reshape(1)
        reverse = np.argsort(x[..., ::-1], -1, kind="stable")[..., ::-1]  # ties keep their order
        return x.shape[-1] - 1 - reverse if down else np.argsort(x, -1, kind="stable")
    op(f"sort{_form}", lambda x, d=_descending: x.sort(-1, d), lambda x, f=in_order: tuple(
        y.reshape(x.shape) for y in (np.take_along_axis(x if x.ndim else x.reshape(1), f(x), -1), f(x))),
       lambda x, d=_descending: torch.sort(x, dim=-1, descending=d, stable=True), gives=(same, position),
           shapes=(*LINES, ((2, 0),)), grad=True,
       bad=bad_axes(lambda x, a: x.sort(a), lambda x, a: np.sort(x, a), lambda x, a: torch.sort(x, a)))
    op(f"argsort{_form}", lambda x, d=_descending: x.argsort(-1, d), lambda x, f=in_order: f(x).reshape(x.shape),
       lambda x, d=_descending: torch.argsort(x, dim=-1, descending=d, stable=True), gives=position, shapes=LINES,
           whole_range=True,
       bad=bad_axes(lambda x, a: x.argsort(a), lambda x, a: np.argsort(x, a), lambda x, a: torch.argsort(x, a)))
op("topk", lambda x: (x.topk(2)[0], x.topk(2, largest=False)[0]), lambda x: (np.sort(x, -1)[..., :-3:-1], np.sort(x,
    -1)[..., :2]),
   lambda x: (torch.topk(x, 2)[0], torch.topk(x, 2, largest=False)[0]), shapes=(((5,),), ((3, 4),)), gives=(same,
       same), grad=True,
   bad=(*bad_axes(lambda x, a: x.topk(1, a), torchs=lambda x, a: torch.topk(x, 1, a)),
        Bad(lambda: X.topk(4), ValueError, torch=lambda: torch.topk(XT, 4)),
        Bad(lambda: X.topk(-1), ValueError, torch=lambda: torch.topk(XT, -1)), Bad(lambda: X.topk("a"), TypeError)))
