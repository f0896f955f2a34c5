"""Rows of indexing, gathering and scattering, and of what makes Python's or NumPy's objects of tensors."""
import numpy as np

from conftest import torch
from every_op.operands import ALL, ONE, TWO, Bad, boolean, numpys, position, same
from every_op.rows import (IN, INTEGERS, IT, MATRIX, MN, MT, X, XN, XT, bad_axes, op)
from every_op.elementwise import unary
from weft import Tensor, dtypes

# ---- indexing and selection

AT = np.array([[2, 0, 1], [0, 0, -1]])
PLACES = Tensor(AT)
op("gather", lambda x: x.gather(-1, PLACES), lambda x: np.take_along_axis(x, AT, -1), shapes=(((2, 3),),),
    grad=True, ulps=2,
   torchs=lambda x: torch.gather(x, -1, torch.from_numpy(AT % 3)), bad=(
    *bad_axes(lambda x, a: x.gather(a, PLACES), lambda x, a: np.take_along_axis(x, AT, a), lambda x,
        a: torch.gather(x, a, torch.from_numpy(AT))),
    Bad(lambda: MATRIX.gather(0, INTEGERS), ValueError, lambda: np.take_along_axis(MN, IN, 0),
        lambda: torch.gather(MT, 0, IT)),
    Bad(lambda: MATRIX.gather(0, MATRIX), TypeError, None, lambda: torch.gather(MT, 0, MT)),
        Bad(lambda: MATRIX.gather(0, "a"), TypeError)))
op("index_select", lambda x: x.index_select(-1, Tensor([2, 0, 0])), lambda x: x[..., [2, 0, 0]],
   lambda x: torch.index_select(x, -1, torch.tensor([2, 0, 0])), shapes=(((3,),), ((2, 3),)), grad=True, bad=(
    *bad_axes(lambda x, a: x.index_select(a, INTEGERS), lambda x, a: np.take(x, IN, a), lambda x,
        a: torch.index_select(x, a, IT)),
    Bad(lambda: X.index_select(0, X), TypeError, lambda: np.take(XN, XN), lambda: torch.index_select(XT, 0, XT)),
    Bad(lambda: X.index_select(0, Tensor([[0]])), ValueError)))
ROW, HERE = np.array([[0, 2, 1], [1, 1, 0]]), Tensor([[0, 2, 1], [1, 1, 0]])


def scattered(x, src, f):
    y = np.array(x)
    for i, j in np.ndindex(ROW.shape):
        y[i, ROW[i, j]] = f(y[i, ROW[i, j]], src[i, j])
    return y


BAD_SCATTER = (
    Bad(lambda: MATRIX.scatter(2, HERE, MATRIX), IndexError, None, lambda: MT.scatter(2, torch.from_numpy(ROW), MT)),
    Bad(lambda: MATRIX.scatter("a", HERE, MATRIX), TypeError, None, lambda: MT.scatter("a", torch.from_numpy(ROW),
        MT)),
    Bad(lambda: MATRIX.scatter(1, MATRIX, MATRIX), TypeError, None, lambda: MT.scatter(1, MT, MT)),
    Bad(lambda: MATRIX.scatter(1, HERE, MATRIX.cast("int")), TypeError, None, lambda: MT.scatter(1,
        torch.from_numpy(ROW), MT.int())),
    Bad(lambda: MATRIX.scatter(1, HERE[0], MATRIX), ValueError, None, lambda: MT.scatter(1,
        torch.from_numpy(ROW[0]), MT)))
op("scatter", lambda x, s: (x.scatter(1, HERE, s), x.scatter(1, HERE, 1)), lambda x, s: (
    scattered(x, s, lambda a, b: b), scattered(x, np.ones_like(s), lambda a, b: b)), shapes=(((2, 3), (2, 3)),),
        gives=(same, same),
   grad=True, bad=(*BAD_SCATTER, Bad(lambda: MATRIX.scatter(1, HERE, MATRIX, reduce="max"), TypeError)))
op("scatter: folded", lambda x, s: (x.scatter(1, HERE, s, "add"), x.scatter(1, HERE, s, "multiply")), lambda x, s: (
    scattered(x, s, lambda a, b: a + b), scattered(x, s, lambda a, b: a * b)), shapes=(((2, 3), (2, 3)),),
        gives=(same, same), of_most=True)
REDUCE = {"sum": lambda a, b: a + b, "prod": lambda a, b: a * b, "amax": np.maximum, "amin": np.minimum}
op("scatter_reduce", lambda x, s: tuple(x.scatter_reduce(1, HERE, s, reduce=r) for r in REDUCE), lambda x, s: tuple(
    scattered(x, s, f) for f in REDUCE.values()), lambda x, s: tuple(x.scatter_reduce(1, torch.from_numpy(ROW), s,
        r) for r in REDUCE),
   shapes=(((2, 3), (2, 3)),), gives=(same,) * 4, grad=True, of_most=True, ulps=4, bad=(
    Bad(lambda: MATRIX.scatter_reduce(1, HERE, MATRIX, "typo"), ValueError, None,
        lambda: MT.scatter_reduce(1, torch.from_numpy(ROW), MT, "typo")),
    Bad(lambda: MATRIX.scatter_reduce(2, HERE, MATRIX, "sum"), IndexError, None, lambda: MT.scatter_reduce(2,
        torch.from_numpy(ROW), MT, "sum")),
    Bad(lambda: MATRIX.scatter_reduce(1, HERE, MATRIX.int(), "sum"), TypeError, None,
        lambda: MT.scatter_reduce(1, torch.from_numpy(ROW), MT.int(), "sum"))))
op("masked_select", lambda x: x.masked_select(Tensor([True, False, True])), lambda x: x[..., [0, 2]].reshape(-1),
   lambda x: x.masked_select(torch.tensor([True, False, True])), shapes=(((3,),), ((2, 3),)), grad=True, bad=(
    Bad(lambda: X.masked_select(Tensor([True, False])), ValueError,
        torch=lambda: XT.masked_select(torch.tensor([True, False]))),
    Bad(lambda: X.masked_select("a"), TypeError, torch=lambda: XT.masked_select("a"))))
op("nonzero", lambda x: (x > 0).nonzero(), lambda x: np.argwhere(x > 0), lambda x: torch.nonzero(x > 0), shapes=ONE,
    gives=position,
   bad=(Bad(lambda: X.nonzero(size="a"), TypeError), Bad(lambda: X.nonzero(size=-1), ValueError,
       lambda: np.zeros(-1))))
op("unique", lambda x: x.sign().unique(), lambda x: np.unique(np.sign(x) if x.dtype != bool else x,
    return_inverse=True, return_counts=True),
   lambda x: torch.unique(torch.sign(x), return_inverse=True, return_counts=True), shapes=(((),), ((7,),), ((2,
       3),), ((0,),)),
   gives=(same, position, position), bad=(Bad(lambda: X.unique(1.5), TypeError),))
SELECTIONS = {"number": 1, "negative": -1, "slice": slice(0, 1), "step": (slice(None), slice(None, None, -2)),
    "list": [1, 0],
              "new axis": (None, ..., 1), "ellipsis": (..., 0), "array": (slice(None), np.array([2, 0, 0]))}
op("__getitem__", lambda x: tuple(x[key] for key in SELECTIONS.values()),
    lambda x: tuple(x[key] for key in SELECTIONS.values()),
   shapes=(((2, 3),),), gives=(same,) * len(SELECTIONS), grad=True, bad=(
    Bad(lambda: X[3], IndexError, lambda: XN[3], lambda: XT[3]), Bad(lambda: X[-4], IndexError, lambda: XN[-4],
        lambda: XT[-4]),
    Bad(lambda: X[0, 0], IndexError, lambda: XN[0, 0], lambda: XT[0, 0]), Bad(lambda: X[1.5], IndexError,
        lambda: XN[1.5], None),
    Bad(lambda: X["a"], IndexError, lambda: XN["a"], lambda: XT["a"]), Bad(lambda: X[X], IndexError, lambda: XN[XN],
        lambda: XT[XT]),
    Bad(lambda: X[Tensor([True, False])], IndexError, lambda: XN[[True, False]], lambda: XT[torch.tensor([True,
        False])]),
    Bad(lambda: X[::0], ValueError, lambda: XN[::0], lambda: XT[::0])))


def written(x, value):
    y = x.clone() if isinstance(x, Tensor) else np.array(x)
    y[..., 0] = value
    y[..., 1:] = 1
    return y


op("__setitem__", written, written, shapes=(((3,), ()), ((2, 3), (2,)), ((2, 3), ())), bad=(
    Bad(lambda: X.clone().__setitem__(3, 0), IndexError, lambda: XN.copy().__setitem__(3, 0),
        lambda: XT.clone().__setitem__(3, 0)),
    Bad(lambda: X.clone().__setitem__(slice(None), Tensor([1.0, 2])), ValueError,
        lambda: XN.copy().__setitem__(slice(None), XN[:2]),
        lambda: XT.clone().__setitem__(slice(None), XT[:2])),
    Bad(lambda: X.clone().__setitem__(0, "a"), TypeError, None, lambda: XT.clone().__setitem__(0, "a"))))
op("assign", lambda x, v: (x + 0 if x.dtype != dtypes.bool else x.clone()).assign(v), lambda x,
    v: np.array(np.broadcast_to(v, x.shape)),
   shapes=(((3,), ()), ((2, 3), (3,)), ((2, 3), (2, 3))), bad=(
    Bad(lambda: X.clone().assign(Tensor([1.0, 2])), ValueError, lambda: np.copyto(XN.copy(), XN[:2]),
        lambda: XT.clone().copy_(XT[:2])),
    Bad(lambda: X.clone().assign({}), TypeError, lambda: np.copyto(XN.copy(), {}), lambda: XT.clone().copy_({}))))

# ---- values, copies, several operands

unary("clone", lambda x: x, lambda x: x, gives=same, too_many=False, bad=(Bad(lambda: X.clone(3), TypeError),))
op("usum", lambda x, y: x.usum(y, x), lambda x, y: x + y + x, lambda x, y: x + y + x, shapes=TWO, grad=True,
    of_most=True,
   bad=(Bad(lambda: X.usum("a"), TypeError), Bad(lambda: X.usum(X[:2]), ValueError, lambda: XN + XN[:2],
       lambda: XT + XT[:2])))
op("uprod", lambda x, y: x.uprod(y), np.multiply, lambda x, y: x * y, shapes=TWO, grad=True,
   bad=(Bad(lambda: X.uprod("a"), TypeError), Bad(lambda: X.uprod(X[:2]), ValueError, lambda: XN * XN[:2],
       lambda: XT * XT[:2])))
op("ufix", lambda x: x.ufix(1), lambda x: np.array(1), shapes=(((3,),),), bad=(Bad(lambda: X.ufix("a"), TypeError),))
op("sequential", lambda x: x.sequential([Tensor.square, Tensor.square]), lambda x: x**4 if x.dtype != bool else x,
    shapes=ONE, grad=True,
   bad=(Bad(lambda: X.sequential(3), TypeError), Bad(lambda: X.sequential([3]), TypeError)))
op("tolist", lambda x: np.array(x.tolist(), dtype=numpys(x.dtype)).reshape(x.shape), lambda x: x, shapes=ONE, ulps=0,
   bad=(Bad(lambda: X.tolist(1), TypeError, lambda: XN.tolist(1), lambda: XT.tolist(1)),))
op("numpy", lambda x: x.numpy(), lambda x: x, shapes=ONE, ulps=0, bad=(Bad(lambda: X.numpy(1), TypeError),))
op("item", lambda x: np.array(x.item(), dtype=numpys(x.dtype)), lambda x: x.reshape(()), shapes=(((),), ((1,),),
    ((1, 1),)), ulps=0, bad=(
    Bad(lambda: X.item(), ValueError, lambda: XN.item(), lambda: XT.item()), Bad(lambda: X.item("a"), TypeError,
        lambda: XN.item("a"),
                                                                               lambda: XT.item("a"))))
op("data", lambda x: np.asarray(x.data()), lambda x: x, shapes=ONE, ulps=0, takes=tuple(d for d in ALL if d.fmt),
   refuses="memoryview has no letter for bfloat16 and 8-bit floats", bad=(Bad(lambda: X.data(1), TypeError),))
op("size", lambda x: np.array(x.size()), lambda x: np.array(x.shape), shapes=(((2, 3),),),
    gives=lambda d: dtypes.int64, bad=bad_axes(
    lambda x, a: x.size(a), np.size, lambda x, a: x.size(a)))
op("numel", lambda x: np.array(x.numel()), lambda x: np.array(x.size), shapes=ONE, gives=lambda d: dtypes.int64,
   bad=(Bad(lambda: X.numel(1), TypeError, None, lambda: XT.numel(1)),))
op("nbytes", lambda d: np.array(Tensor.ones(2, dtype=d).nbytes()), lambda d: np.array(2 * d.itemsize), shapes=((),),
   gives=lambda d: dtypes.int64, bad=(Bad(lambda: X.nbytes(1), TypeError),))
op("element_size", lambda d: np.array(Tensor.ones(2, dtype=d).element_size()), lambda d: np.array(d.itemsize),
    shapes=((),),
   gives=lambda d: dtypes.int64, bad=(Bad(lambda: X.element_size(1), TypeError, None, lambda: XT.element_size(1)),))
op("is_floating_point", lambda d: np.array(Tensor.ones(2, dtype=d).is_floating_point()),
    lambda d: np.array(dtypes.is_float(d)),
   shapes=((),), gives=boolean, bad=(Bad(lambda: X.is_floating_point(1), TypeError, None,
       lambda: XT.is_floating_point(1)),))
