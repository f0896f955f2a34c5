"""The rows, and what they are made of. Rows of one operation in several forms are "name: form"."""
from conftest import torch
from every_op.operands import Bad, Row
from weft import Tensor

F = torch.nn.functional if torch else None
ROWS: dict[str, Row] = {}
X, MATRIX, INTEGERS = Tensor([1.0, 2.0, 3.0]), Tensor([[1.0, 2, 3], [4, 5, 6]]), Tensor([1, 2, 3])
XN, MN, IN = X.numpy(), MATRIX.numpy(), INTEGERS.numpy()
XT, MT, IT = (torch.from_numpy(a) if torch else None for a in (XN, MN, IN))


def op(name, ours, numpy=None, torchs=None, **columns):
    assert name not in ROWS, name
    ROWS[name] = Row(ours, numpy, torchs, **columns)


def of(name):
    return lambda *operands: getattr(operands[0], name)(*operands[1:])


def theirs(name):
    """A function of PyTorch's by its name."""
    return lambda *operands: (getattr(torch, name, None) or getattr(F, name))(*operands)


EMPTY = (((0,),), ((2, 0, 3),), ((2, 0),))


def bad_axes(call, numpy=None, torchs=None):
    """call(x, axis): an axis that is not there, or is none."""
    def also(f, x, axis):
        return (lambda: f(x, axis)) if f else None
    return (Bad(lambda: call(MATRIX, 2), IndexError, also(numpy, MN, 2), also(torchs, MT, 2)),
            Bad(lambda: call(MATRIX, -3), IndexError, also(numpy, MN, -3), also(torchs, MT, -3)),
            Bad(lambda: call(MATRIX, "a"), TypeError, also(numpy, MN, "a"), also(torchs, MT, "a")),
            Bad(lambda: call(MATRIX, 1.5), TypeError, also(numpy, MN, 1.5), also(torchs, MT, 1.5)))
