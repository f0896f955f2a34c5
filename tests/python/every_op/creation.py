"""Rows of what makes tensors: constants, sequences, random numbers, hashes. They are called with a dtype."""
import hashlib

import numpy as np

from conftest import torch
from every_op.operands import ALL, FLOATS, INTS, NUMBERS, Bad, numbers, position, same
from every_op.rows import F, INTEGERS, IT, X, XN, XT, op
from weft import Tensor, dtypes

# ---- creation: ours(dtype), numpy(dtype)


def made(name, ours, numpy, bad=(), **columns):
    op(name, ours, numpy, shapes=((),), bad=bad, **columns)


def filled(value):
    return lambda d: np.full((2, 3), value)


for _name, _value in {"zeros": 0, "ones": 1, "empty": 0, "invalids": 0}.items():
    made(_name, lambda d, n=_name: getattr(Tensor, n)(2, 3, dtype=d), filled(_value), bad=(
        Bad(lambda n=_name: getattr(Tensor, n)(-2), ValueError, lambda: np.zeros(-2), lambda: torch.zeros(-2)),
        Bad(lambda n=_name: getattr(Tensor, n)("a"), TypeError, lambda: np.zeros("a"), lambda: torch.zeros("a")),
        Bad(lambda n=_name: getattr(Tensor, n)(2.5), TypeError, lambda: np.zeros(2.5), lambda: torch.zeros(2.5)),
        Bad(lambda n=_name: getattr(Tensor, n)(2, dtype="typo"), TypeError, lambda: np.zeros(2, "typo"))))
for _name, _value in {"zeros_like": 0, "ones_like": 1, "empty_like": 0}.items():
    made(_name, lambda d, n=_name: getattr(Tensor([[1, 0, 1]] * 2, dtype=d), n)(), filled(_value), bad=(
        Bad(lambda n=_name: getattr(X, n)(dtype="typo"), TypeError, lambda: np.zeros_like(XN, "typo")),))
made("full", lambda d: Tensor.full((2, 3), 1, dtype=d), filled(1), bad=(
    Bad(lambda: Tensor.full((2, -1), 1), ValueError, lambda: np.full((2, -1), 1), lambda: torch.full((2, -1), 1)),
    Bad(lambda: Tensor.full("a", 1), TypeError, lambda: np.full("a", 1), lambda: torch.full("a", 1)),
    Bad(lambda: Tensor.full((2,), "a"), TypeError, None, lambda: torch.full((2,), "a"))))
made("full_like", lambda d: Tensor([[1, 0, 1]] * 2, dtype=d).full_like(1), filled(1), bad=(
    Bad(lambda: X.full_like("a"), TypeError, None, lambda: torch.full_like(XT, "a")),))
made("const", lambda d: Tensor.const(1, d), lambda d: np.array(1), bad=(Bad(lambda: Tensor.const("a"), TypeError),))
made("const_like", lambda d: Tensor([[1, 0, 1]] * 2, dtype=d).const_like(1), filled(1),
    bad=(Bad(lambda: X.const_like("a"), TypeError),))
made("arange", lambda d: (Tensor.arange(5, dtype=d), Tensor.arange(5, 1, -2, dtype=d)), lambda d: (np.arange(5),
    np.arange(5, 1, -2)),
     takes=NUMBERS, gives=(same, same), bad=(
    Bad(lambda: Tensor.arange(0, 3, 0), ValueError, None, lambda: torch.arange(0, 3, 0)),
    Bad(lambda: Tensor.arange("a"), TypeError, lambda: np.arange("a"), lambda: torch.arange("a"))))
made("linspace", lambda d: Tensor.linspace(0, 4, 5, dtype=d), lambda d: np.linspace(0, 4, 5), takes=NUMBERS, bad=(
    Bad(lambda: Tensor.linspace(0, 1, -2), ValueError, lambda: np.linspace(0, 1, -2), lambda: torch.linspace(0, 1,
        -2)),
    Bad(lambda: Tensor.linspace("a", 1, 2), TypeError, None, lambda: torch.linspace("a", 1, 2))))
made("eye", lambda d: (Tensor.eye(3, dtype=d), Tensor.eye(2, 3, dtype=d)), lambda d: (np.eye(3), np.eye(2, 3)),
    gives=(same, same), bad=(
    Bad(lambda: Tensor.eye(-1), ValueError, None, lambda: torch.eye(-1)), Bad(lambda: Tensor.eye("a"), TypeError,
        lambda: np.eye("a"),
                                                                            lambda: torch.eye("a"))))

# ---- random numbers: the shape, the dtype, and where they lie


def random(name, ours, low, high, takes=FLOATS, bad=(), **columns):
    def check(dtype, y):
        drawn = numbers(y).astype(float)
        assert drawn.shape == (4, 50) and (drawn >= low).all() and (drawn <= high).all(), (dtype, drawn.min(),
            drawn.max())
        assert len(np.unique(drawn)) > 1
    op(name, ours, check=check, shapes=((),), takes=takes, bad=bad, **columns)


def bad_sizes(f, numpy=None):
    return (Bad(lambda: f(-2), ValueError, lambda: np.random.rand(-2), lambda: torch.rand(-2)),
            Bad(lambda: f("a"), TypeError, lambda: np.random.rand("a"), lambda: torch.rand("a")))


RANDOM = {"rand": (0, 1), "randn": (-9, 9), "glorot_uniform": (-1, 1), "scaled_uniform": (-1, 1),
    "kaiming_uniform": (-2, 2),
          "kaiming_normal": (-9, 9), "uniform": (0, 1), "normal": (-9, 9)}
for _name, (_low, _high) in RANDOM.items():
    random(_name, lambda d, n=_name: getattr(Tensor, n)(4, 50, dtype=d), _low, _high, bad=bad_sizes(getattr(Tensor,
        _name)))
for _name in ("rand_like", "randn_like"):
    random(_name, lambda d, n=_name: getattr(Tensor.zeros(4, 50, dtype=d), n)(), *RANDOM[_name[:-5]], bad=(
        Bad(lambda n=_name: getattr(X, n)(dtype=dtypes.int32), TypeError, None, lambda n=_name: getattr(torch,
            n)(XT, dtype=torch.int32)),))
random("randint", lambda d: Tensor.randint(4, 50, low=3, high=9, dtype=d), 3, 8, takes=INTS, bad=(
    *bad_sizes(Tensor.randint), Bad(lambda: Tensor.randint(3, low=5, high=2), ValueError,
        lambda: np.random.randint(5, 2, 3),
                                    lambda: torch.randint(5, 2, (3,)))))
random("bernoulli", lambda d: Tensor.full((4, 50), .5, dtype=d).bernoulli(), 0, 1, bad=(
    Bad(lambda: INTEGERS.bernoulli(), TypeError, None, lambda: torch.bernoulli(IT)),))
random("random_bits", lambda d: Tensor.random_bits(4, 50), 0, 2**32 - 1, takes=(dtypes.uint32,),
    bad=bad_sizes(Tensor.random_bits))
random("multinomial", lambda d: Tensor.ones(4, 3, dtype=d).multinomial(50, replacement=True), 0, 2, takes=ALL,
    gives=position, bad=(
    Bad(lambda: X.multinomial(4), ValueError, None, lambda: torch.multinomial(XT, 4)),
    Bad(lambda: X.multinomial(-1), ValueError, None, lambda: torch.multinomial(XT, -1)),
    Bad(lambda: Tensor(1.0).multinomial(1), ValueError, None, lambda: torch.multinomial(torch.tensor(1.0), 1)),
    Bad(lambda: X.multinomial("a"), TypeError, None, lambda: torch.multinomial(XT, "a"))))


def all_of_them(dtype, y):
    assert sorted(y.tolist()) == list(range(9))


op("randperm", lambda d: Tensor.randperm(9, dtype=d), check=all_of_them, shapes=((),), takes=NUMBERS, bad=(
    Bad(lambda: Tensor.randperm(-1), ValueError, None, lambda: torch.randperm(-1)),
    Bad(lambda: Tensor.randperm("a"), TypeError, None, lambda: torch.randperm("a"))))


def halved(x):
    with Tensor.train():
        return x.dropout(.5)


def check_dropped(dtype, y):
    assert set(numbers(y).astype(float).reshape(-1)) == {0.0, 2.0}


op("dropout", lambda d: halved(Tensor.ones(4, 50, dtype=d)), check=check_dropped, shapes=((),), takes=FLOATS, bad=(
    Bad(lambda: X.dropout(1.5), ValueError, None, lambda: F.dropout(XT, 1.5)), Bad(lambda: X.dropout("a"),
        TypeError, None,
                                                                                 lambda: F.dropout(XT, "a"))))

# ---- hashes and keys: of fixed dtypes

DIGEST = Tensor(b"weft")
op("keccak", lambda d: DIGEST.keccak(), lambda d: np.frombuffer(hashlib.sha3_256(b"weft").digest(), np.uint8),
    shapes=((),),
   takes=(dtypes.uint8,), bad=(Bad(lambda: X.keccak(), TypeError), Bad(lambda: DIGEST.keccak("typo"), ValueError,
       lambda: hashlib.new("typo")),
                              Bad(lambda: DIGEST.keccak(3), TypeError)))
op("hash", lambda d: DIGEST.hash(), check=lambda d, y: None if y.shape == (16,) else 1 / 0, shapes=((),),
    takes=(dtypes.uint8,),
   bad=(Bad(lambda: DIGEST.hash(1), TypeError),))
op("threefry2x32", lambda d: Tensor.threefry2x32(*(Tensor([n], dtype=d) for n in (0, 0, 0, 0))),
   lambda d: (np.array([0x6B200159]), np.array([0x99BA4EFE])), shapes=((),), takes=(dtypes.uint32,), gives=(same,
       same),
   bad=(Bad(lambda: Tensor.threefry2x32(X, X, X, X), TypeError), Bad(lambda: Tensor.threefry2x32(1, 2), TypeError)))
op("threefry", lambda d: Tensor([0], dtype=d).threefry(Tensor([0], dtype=d)),
    lambda d: np.array([0x6B200159 | 0x99BA4EFE << 32], dtype=np.uint64),
   shapes=((),), takes=(dtypes.uint64,), bad=(Bad(lambda: X.threefry(X), TypeError),
       Bad(lambda: INTEGERS.threefry("a"), TypeError)))
