"""What users write, in every width of number: a fixed list of functions for weft and for PyTorch.

`rows()` yields `(name, make)`; `make(rng)` draws the operands and returns a `random_layers.Case`.
`tools/sweep --rows` compares values and times. Random layers of f32 are in `random_layers.py`.
Results whose shapes depend on data (unique, nonzero, a mask as index) cannot be captured: not here.
"""
import math

import numpy as np
import torch
import torch.nn.functional as F
from random_layers import Case, normal

import weft
import weft.fft
import weft.linalg
from weft import Tensor

FLOATS = ("f32", "f64", "f16", "bf16")
INTEGERS = ("i8", "u8", "i16", "i32", "i64")
MILLION = 10 ** 6
OF_WEFT = {"f32": weft.dtypes.float32, "f64": weft.dtypes.float64, "f16": weft.dtypes.float16,
           "bf16": weft.dtypes.bfloat16}
OF_TORCH = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16}
OF_NUMPY = {"i8": np.int8, "u8": np.uint8, "i16": np.int16, "i32": np.int32, "i64": np.int64}


def operand(rng, dtype, *shape):
    """Normal floats in f32 (`Case.dtypes` says in what they are taken), integers of 1 to 100, bools."""
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if dtype in OF_NUMPY:
        return rng.integers(1, 100, shape).astype(OF_NUMPY[dtype])
    return normal(rng, *shape)


def row(name, dtype, shapes, f, g=None, differentiable=0, change=None, extra=()):
    """`change` maps drawn operands to the case's; `extra` are functions of rng for more of them."""
    def make(rng):
        inputs = [operand(rng, dtype, *s) for s in shapes]
        inputs = list(change(*inputs)) if change else inputs
        inputs += [e(rng) for e in extra]
        return Case(full, inputs, f, g or f, differentiable,
                    dtypes=(OF_WEFT[dtype], OF_TORCH[dtype]) if dtype in ("f64", "f16", "bf16") else None)
    full = f"{name} {dtype} {' '.join('x'.join(map(str, s)) for s in shapes)}"
    return full, make


def call(name, *args, of=None, **named):
    """A method of both libraries' tensors, or a function of a module of PyTorch's."""
    ours = lambda x, *more: getattr(x, name)(*more, *args, **named)
    return (ours, lambda x, *more: getattr(of, name)(x, *more, *args, **named)) if of else (ours, None)


positive = lambda *x: [abs(t) + 0.1 for t in x]
whole = (MILLION,)
indices = lambda n, *shape: lambda rng: rng.integers(0, n, shape).astype(np.int64)


def elementwise():
    for dtype in FLOATS:
        for name in ("exp", "sin", "tanh", "sigmoid", "erf", "floor", "abs", "relu", "neg", "square", "sign", "round"):
            yield row(name, dtype, [whole], *call(name))
        for name in ("log", "sqrt", "rsqrt", "log2", "log1p", "reciprocal"):
            yield row(name, dtype, [whole], *call(name), change=positive)
        for name in ("silu", "softplus", "elu", "hardswish", "mish", "leaky_relu"):
            yield row(name, dtype, [whole], *call(name, of=F))
        yield row("gelu", dtype, [whole], lambda x: x.gelu(), lambda x: F.gelu(x, approximate="tanh"))
        yield row("x ** 3", dtype, [whole], lambda x: x ** 3)
        yield row("x ** y", dtype, [whole, whole], lambda x, y: x ** y, change=lambda x, y: (abs(x) + 0.1, y))
        yield row("x / y", dtype, [whole, whole], lambda x, y: x / y)
        yield row("atan2", dtype, [whole, whole], *call("atan2"))
        yield row("isnan", dtype, [whole], *call("isnan"))
        yield row("a * b + c", dtype, [whole] * 3, lambda a, b, c: a * b + c)
        yield row("clip", dtype, [whole], lambda x: x.clip(-1, 1))
        yield row("to f32", dtype, [whole], lambda x: x.float() * 2)
        yield row("to i32", dtype, [whole], lambda x: x.int() + 1)
    for dtype in INTEGERS:
        yield row("abs", dtype, [whole], *call("abs"))
        for name, f in {"x // 7": lambda x: x // 7, "x % 7": lambda x: x % 7, "x << 2": lambda x: x << 2,
                        "x * 3 + 1": lambda x: x * 3 + 1, "x > 50": lambda x: x > 50,
                        "x & 12": lambda x: x & 12, "to f32": lambda x: x.float() * 0.5,
                        "to i64": lambda x: x.long() + 1, "x / 2": lambda x: x / 2}.items():
            yield row(name, dtype, [whole], f)
        for name, f in {"x // y": lambda x, y: x // y, "x % y": lambda x, y: x % y, "x ^ y": lambda x, y: x ^ y,
                        "x == y": lambda x, y: x == y, "x * y": lambda x, y: x * y}.items():
            yield row(name, dtype, [whole, whole], f)
        yield row("maximum", dtype, [whole, whole], *call("maximum"))
    yield row("x & y", "bool", [whole, whole], lambda x, y: x & y)
    yield row("logical_not", "bool", [whole], *call("logical_not"))


def broadcasts():
    for dtype in ("f32", "f64", "bf16", "u8", "i32"):
        for a, b in (((1000, 1000), (1000,)), ((1000, 1000), (1000, 1)), ((1000, 1), (1, 1000)),
                     ((100, 100, 100), (100, 1, 100)), ((100000, 10), (10,)), ((10, 100000), (10, 1)),
                     ((65536,), (65536,)), ((1024,), (1024,))):
            yield row("x + y", dtype, [a, b], lambda x, y: x + y)
        yield row("where", dtype, [(1000, 1000), (1000,)], lambda x, y: (x > 1).where(x, y),
                  lambda x, y: torch.where(x > 1, x, y))


def reductions():
    shapes = ((MILLION,), (1000, 1000), (100000, 10), (10, 100000), (32, 1024), (100, 100, 100))
    for dtype in (*FLOATS, "u8", "i32", "i64"):
        for shape in shapes:
            for axis in range(len(shape)):
                for name in ("sum", "argmax"):
                    yield row(f"{name}({axis})", dtype, [shape], *call(name, axis))
                yield row(f"max({axis})", dtype, [shape], lambda x, axis=axis: x.max(axis),
                          lambda x, axis=axis: x.amax(axis))
                if dtype in FLOATS:
                    yield row(f"var({axis})", dtype, [shape], *call("var", axis))
        yield row("x.sum((0, 2))", dtype, [(100, 100, 100)], *call("sum", (0, 2)))
        yield row("count", dtype, [whole], lambda x: (x > 1).sum())
    for dtype in FLOATS:
        yield row("dot", dtype, [whole, whole], lambda x, y: (x * y).sum())
        yield row("norm", dtype, [whole], lambda x: x.square().sum().sqrt())
        yield row("prod(0)", dtype, [(1000, 100)], *call("prod", 0))
        yield row("allclose", dtype, [whole, whole], lambda x, y: ((x - y).abs() < 1e-3).all())
        for shape in ((1000, 1000), (100000, 10), (30000, 33), (32, 30000), (4096, 7)):
            yield row("softmax", dtype, [shape], *call("softmax", -1))
            yield row("log_softmax", dtype, [shape], *call("log_softmax", -1))
            yield row("logsumexp", dtype, [shape], *call("logsumexp", -1))
            yield row("layer_norm", dtype, [shape], lambda x: x.layernorm(),
                      lambda x: F.layer_norm(x, x.shape[-1:]))
        yield row("softmax(0)", dtype, [(1000, 1000)], *call("softmax", 0))
        yield row("rms_norm", dtype, [(4000, 256), (256,)],
                  lambda x, w: x * (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt() * w,
                  lambda x, w: F.rms_norm(x, x.shape[-1:], w, 1e-6))
    for name in ("any", "all"):
        yield row(name, "bool", [whole], *call(name))
        yield row(f"{name}(1)", "bool", [(1000, 1000)], *call(name, 1))


def views():
    for dtype in ("f32", "f64", "bf16", "u8"):
        square = (1000, 1000)
        for name, f in {"x.T + 1": lambda x: x.T + 1, "x + x.T": lambda x: x + x.T, "x[::2] * 2": lambda x: x[::2] * 2,
                        "x[:, ::2] * 2": lambda x: x[:, ::2] * 2, "x[1:] - x[:-1]": lambda x: x[1:] - x[:-1],
                        "x[:, 1:] - x[:, :-1]": lambda x: x[:, 1:] - x[:, :-1], "x.flip(1)": lambda x: x.flip(1) * 1,
                        "x.flip(0)": lambda x: x.flip(0) * 1, "x[:, 3].sum()": lambda x: x[:, 3].sum(),
                        "x.roll": lambda x: x.roll(3, 1), "x.tril()": lambda x: x.tril(),
                        "x[100:900, 100:900].sum()": lambda x: x[100:900, 100:900].sum(),
                        "x.diagonal().sum()": lambda x: x.diagonal().sum(),
                        "reshaped, moved": lambda x: x.reshape(100, 10, 10, 100).permute(0, 2, 1, 3).contiguous(),
                        "reshaped, moved, narrow": lambda x: x.reshape(100, 2500, 4).permute(0, 2, 1).contiguous(),
                        "narrow outside": lambda x: x.reshape(100, 4, 2500).permute(0, 2, 1).contiguous()}.items():
            yield row(name, dtype, [square], f)
        for mode in ("reflect", "replicate", "circular"):
            yield row(f"pad {mode}", dtype, [(4, 16, 100, 100)], lambda x, m=mode: x.pad((3, 3, 3, 3), mode=m),
                      lambda x, m=mode: F.pad(x, (3, 3, 3, 3), mode=m))
        yield row("pad", dtype, [(4, 16, 100, 100)], lambda x: x.pad((3, 3, 3, 3)), lambda x: F.pad(x, (3, 3, 3, 3)))
        for axis in (0, 1):
            yield row(f"cat({axis})", dtype, [(300, 1000)] * 3, lambda *t, a=axis: t[0].cat(*t[1:], dim=a),
                      lambda *t, a=axis: torch.cat(t, a))
            yield row(f"stack({axis + 1})", dtype, [(300, 1000)] * 3, lambda *t, a=axis: t[0].stack(*t[1:], dim=a + 1),
                      lambda *t, a=axis: torch.stack(t, a + 1))
            yield row(f"repeat_interleave({axis})", dtype, [(300, 1000)], *call("repeat_interleave", 3, axis))
        yield row("repeat", dtype, [(300, 1000)], *call("repeat", 3, 2))
        yield row("to channels last", dtype, [(8, 64, 56, 56)], lambda x: x.permute(0, 2, 3, 1).contiguous())
        yield row("to channels first", dtype, [(8, 56, 56, 64)], lambda x: x.permute(0, 3, 1, 2).contiguous())
        yield row("image to floats", dtype, [(8, 224, 224, 3)], lambda x: x.permute(0, 3, 1, 2).float() / 255)


def indexing():
    for dtype in ("f32", "f64", "bf16", "u8"):
        rows = (20000, 64)
        yield row("x[i]", dtype, [rows], lambda x, i: x[i], extra=[indices(20000, 10000)])
        yield row("x[i] narrow", dtype, [(100000, 4)], lambda x, i: x[i], extra=[indices(100000, 100000)])
        yield row("x[i] of numbers", dtype, [whole], lambda x, i: x[i], extra=[indices(MILLION, 100000)])
        yield row("x[:, i]", dtype, [(1000, 1000)], lambda x, i: x[:, i], extra=[indices(1000, 500)])
        yield row("gather(1)", dtype, [(1000, 1000)], lambda x, i: x.gather(1, i), extra=[indices(1000, 1000, 100)])
        yield row("masked_fill", dtype, [(1000, 1000)], lambda x: x.masked_fill(x > 1, 0))
        if dtype != "u8":
            yield row("index_add", dtype, [(1000, 64), (5000, 64)], lambda x, v, i: x.index_add(0, i, v),
                      extra=[indices(1000, 5000)])
            yield row("scatter_add", dtype, [(1000,), whole], lambda x, v, i: x.scatter_add(0, i, v),
                      extra=[indices(1000, MILLION)])
            yield row("scatter_add(1)", dtype, [(256, 1000), (256, 500)], lambda x, v, i: x.scatter_add(1, i, v),
                      extra=[indices(1000, 256, 500)])
    yield row("one_hot", "i64", [], lambda i: i.one_hot(100), lambda i: F.one_hot(i, 100), extra=[indices(100, 10000)])
    yield row("bincount", "i64", [], lambda i: i.bincount(minlength=100), lambda i: i.bincount(minlength=100),
              extra=[indices(100, MILLION)])
    yield row("searchsorted", "f32", [(1000,), (100000,)], lambda s, x: s.searchsorted(x),
              torch.searchsorted, change=lambda s, x: (np.sort(s), x))


def orders():
    for dtype in ("f32", "f64", "bf16", "u8", "i32", "i64"):
        for shape in ((1024,), (65536,), (MILLION,), (1000, 1000), (10000, 16)):
            yield row("sort", dtype, [shape], lambda x: x.sort(-1)[0])
            yield row("argsort", dtype, [shape], lambda x: x.argsort(-1),
                      lambda x: torch.argsort(x, dim=-1, stable=True))
        yield row("topk 10", dtype, [(64, 30000)], lambda x: x.topk(10)[0])
        yield row("median(1)", dtype, [(1000, 1000)], lambda x: x.median(1)[0])
        for shape, axis in ((whole, 0), ((1000, 1000), 0), ((1000, 1000), 1), ((10000, 16), 1)):
            yield row(f"cumsum({axis})", dtype, [shape], *call("cumsum", axis))
            yield row(f"cummax({axis})", dtype, [shape], lambda x, a=axis: x.cummax(a)[0])
    yield row("kthvalue", "f32", [(1000, 1000)], lambda x: x.kthvalue(100, 1)[0])
    yield row("quantile", "f32", [(100000,)], lambda x: x.quantile(0.3))


def products():
    for dtype in (*FLOATS, "i32", "i64"):
        for n in (2, 3, 4, 8, 16, 32, 64):
            batch = max(16, 200000 // n ** 2 // 4)
            yield row("a @ b", dtype, [(batch, n, n), (batch, n, n)], lambda a, b: a @ b)
        for m, k, n in ((100, 100, 100), (256, 256, 256), (512, 512, 512), (1000, 1000, 1000), (1, 1000, 1000),
                        (1000, 1000, 1), (4, 2048, 2048), (32, 1024, 1024), (20000, 32, 32), (32, 20000, 32),
                        (1000, 10, 1000), (2000, 3, 3), (128, 784, 10), (10000, 100, 10)):
            yield row("a @ b", dtype, [(m, k), (k, n)], lambda a, b: a @ b)
            yield row("a @ b.T", dtype, [(m, k), (n, k)], lambda a, b: a @ b.T)
        yield row("a.T @ b", dtype, [(1000, 300), (1000, 200)], lambda a, b: a.T @ b)
        yield row("outer", dtype, [(1000, 1), (1, 1000)], lambda a, b: a @ b)
        yield row("points by points", dtype, [(2000, 1, 3), (1, 2000, 3)], lambda a, b: ((a - b) * (a - b)).sum(-1))
        if dtype in FLOATS:
            yield row("einsum bij,bkj->bik", dtype, [(32, 64, 100), (32, 80, 100)],
                      lambda a, b: Tensor.einsum("bij,bkj->bik", a, b), lambda a, b: torch.einsum("bij,bkj->bik", a, b))


def layers():
    attention = (lambda q, k, v, **n: q.scaled_dot_product_attention(k, v, **n), F.scaled_dot_product_attention)
    for dtype in ("f32", "bf16", "f16", "f64"):
        for shape in ((2, 8, 256, 64), (32, 8, 32, 32), (1, 16, 1024, 64), (1, 12, 77, 64)):
            yield row("attention", dtype, [shape] * 3, *attention)
            yield row("causal attention", dtype, [shape] * 3, *(lambda q, k, v, f=f: f(q, k, v, is_causal=True)
                                                               for f in attention))
        yield row("attention, one query", dtype, [(4, 16, 1, 64), (4, 16, 1000, 64), (4, 16, 1000, 64)], *attention)
        for x, w, named in (((8, 64, 56, 56), (64, 64, 3, 3), {"padding": 1}),
                            ((8, 3, 112, 112), (32, 3, 3, 3), {"stride": 2, "padding": 1}),
                            ((8, 64, 56, 56), (64, 1, 3, 3), {"padding": 1, "groups": 64}),
                            ((8, 256, 14, 14), (256, 256, 1, 1), {}),
                            ((1, 1, 28, 28), (32, 1, 3, 3), {}), ((1, 128, 28, 28), (128, 128, 3, 3), {"padding": 1})):
            yield row(f"conv {named}", dtype, [x, w], lambda x, w, n=named: x.conv2d(w, **n),
                      lambda x, w, n=named: F.conv2d(x, w, **n))
        yield row("linear, relu", dtype, [(128, 512), (512, 512), (512,)], lambda x, w, b: (x @ w.T + b).relu(),
                  lambda x, w, b: F.linear(x, w, b).relu())
        yield row("max_pool", dtype, [(8, 64, 56, 56)], lambda x: x.max_pool2d(2), lambda x: F.max_pool2d(x, 2))
        yield row("avg_pool", dtype, [(8, 64, 56, 56)], lambda x: x.avg_pool2d(2), lambda x: F.avg_pool2d(x, 2))
        yield row("bilinear", dtype, [(4, 16, 64, 64)], lambda x: x.interpolate((128, 128), mode="linear"),
                  lambda x: F.interpolate(x, (128, 128), mode="bilinear"))
        yield row("cross_entropy", dtype, [(1000, 1000)], lambda x, i: x.cross_entropy(i), F.cross_entropy,
                  extra=[indices(1000, 1000)])


def gradients():
    for dtype in ("f32", "f64", "bf16"):
        for name in ("exp", "tanh", "sigmoid", "relu", "square", "sin"):
            yield row(f"{name} gradient", dtype, [whole], *call(name), differentiable=1)
        yield row("x + y gradient", dtype, [(1000, 1000), (1000,)], lambda x, y: x + y, differentiable=2)
        yield row("x * y gradient", dtype, [(1000, 1000), (1000, 1)], lambda x, y: x * y, differentiable=2)
        yield row("softmax gradient", dtype, [(1000, 1000)], *call("softmax", -1), differentiable=1)
        yield row("layer_norm gradient", dtype, [(1000, 1000)], lambda x: x.layernorm(),
                  lambda x: F.layer_norm(x, x.shape[-1:]), differentiable=1)
        yield row("max(1) gradient", dtype, [(1000, 1000)], lambda x: x.max(1), lambda x: x.amax(1), differentiable=1)
        yield row("x[i] gradient", dtype, [(20000, 64)], lambda x, i: x[i],
                  extra=[indices(20000, 10000)], differentiable=1)
        yield row("a @ b gradient", dtype, [(256, 256)] * 2, lambda a, b: a @ b, differentiable=2)
        yield row("cumsum gradient", dtype, [(1000, 1000)], *call("cumsum", 1), differentiable=1)
        yield row("var gradient", dtype, [(1000, 1000)], *call("var", 1), differentiable=1)
        yield row("cat gradient", dtype, [(300, 1000)] * 3, lambda *t: t[0].cat(*t[1:], dim=1),
                  lambda *t: torch.cat(t, 1), differentiable=3)
        yield row("max_pool gradient", dtype, [(8, 64, 56, 56)], lambda x: x.max_pool2d(2),
                  lambda x: F.max_pool2d(x, 2), differentiable=1)


def linear_algebra():
    regular = lambda x: [x + 2 * math.sqrt(x.shape[-1]) * np.eye(x.shape[-1], dtype=x.dtype)]
    definite = lambda x: [x @ np.swapaxes(x, -1, -2) + np.eye(x.shape[-1], dtype=x.dtype)]
    both = lambda name, change, take=lambda y: y: (
        name, change, lambda x: take(getattr(weft.linalg, name)(x)), lambda x: take(getattr(torch.linalg, name)(x)))
    for dtype in ("f32", "f64"):
        for shape in ((8, 8), (32, 32), (100, 100), (300, 300), (64, 8, 8), (1000, 4, 4), (16, 32, 32)):
            for name, change, f, g in (both("inv", regular), both("det", regular), both("cholesky", definite),
                                       both("qr", regular, lambda y: abs(y[1])), both("eigh", definite, lambda y: y[0]),
                                       both("svd", regular, lambda y: y[1])):
                yield row(name, dtype, [shape], f, g, change=change)
            yield row("solve", dtype, [shape, (*shape[:-1], 1)], weft.linalg.solve, torch.linalg.solve,
                      change=lambda a, b: (*regular(a), b))
        for n in (512, 1000, 1024):
            yield row("fft", dtype, [(64, n, 2)], weft.fft.fft,
                      lambda x: torch.view_as_real(torch.fft.fft(torch.view_as_complex(x))))
            yield row("rfft", dtype, [(64, n)], weft.fft.rfft, lambda x: torch.view_as_real(torch.fft.rfft(x)))
        yield row("fft2", dtype, [(4, 128, 128, 2)], lambda x: weft.fft.fftn(x, (1, 2)),
                  lambda x: torch.view_as_real(torch.fft.fft2(torch.view_as_complex(x))))


def rows():
    for group in (elementwise, broadcasts, reductions, views, indexing, orders, products, layers, gradients,
                  linear_algebra):
        yield from group()
