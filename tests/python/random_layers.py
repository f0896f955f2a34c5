"""Random layers and functions of networks, written once for weft and once for PyTorch.

`random_case(rng, family)` draws one; tests compare values, `tools/sweep` also compares times.
"""
import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F

from weft import Tensor, nn

LARGEST = 3e6  # elements of an operand, at most; tests set less
WORK = 3e9     # floating point operations of a case, about


@dataclass
class Case:
    """A function of `inputs` in both libraries; gradients are with respect to the first
    `differentiable` inputs and the parameters."""
    name: str
    inputs: list
    weft: Callable
    torch: Callable
    differentiable: int = 0
    weft_parameters: list = field(default_factory=list)
    torch_parameters: list = field(default_factory=list)
    module: torch.nn.Module | None = None  # of PyTorch's, where it is one
    dtypes: tuple | None = None            # weft's and PyTorch's, in which floating operands are taken

    def operands(self):
        """The inputs as weft's tensors and as PyTorch's."""
        ours, theirs = [Tensor(x) for x in self.inputs], [torch.from_numpy(x) for x in self.inputs]
        if self.dtypes is not None:
            floats = [x.dtype == np.float32 for x in self.inputs]
            ours = [t.cast(self.dtypes[0]) if f else t for t, f in zip(ours, floats, strict=True)]
            theirs = [t.to(self.dtypes[1]) if f else t for t, f in zip(theirs, floats, strict=True)]
        return [t.realize() for t in ours], theirs

    def doubled(self):
        """PyTorch's inputs, and from now on its parameters, in f64. Values are compared in it: where
        a sum in f32 is a rounding away from the step of a relu, gradients differ by more."""
        if self.module is not None:
            self.module.double()
        return [t.double() if t.is_floating_point() else t for t in self.operands()[1]]


def normal(rng, *shape):
    return rng.standard_normal(shape, dtype=np.float32)


def log_uniform(rng, low, high):
    """An integer; half of the draws are multiples of 8, as widths of real networks are."""
    n = int(round(math.exp(rng.uniform(math.log(low), math.log(high)))))
    if rng.random() < 0.5 and n > 12:
        n = n // 8 * 8
    return max(low, min(high, n))


def bounded(rng, *ranges, elements=math.inf):
    """A random size for each (low, high), their product below `elements`."""
    elements = max(min(elements, LARGEST), math.prod(low for low, _ in ranges))
    while True:
        sizes = [log_uniform(rng, *r) for r in ranges]
        if math.prod(sizes) <= elements:
            return sizes


def some(rng, of):
    return of[int(rng.integers(len(of)))]


# Convolutions and pools

def convolution(rng):
    dims = some(rng, (1, 2, 2, 2, 3))
    while True:
        batch, groups = log_uniform(rng, 1, 32), some(rng, (1, 1, 1, 2, 4, 0))
        c, o = log_uniform(rng, 1, 300), log_uniform(rng, 1, 300)
        if groups == 0:  # depthwise
            groups, o = c, c
        c, o = max(1, c // groups) * groups, max(1, o // groups) * groups
        size = [log_uniform(rng, 1, (4000, 200, 40)[dims - 1])] * dims
        k, stride = some(rng, (1, 2, 3, 3, 3, 4, 5, 7)), some(rng, (1, 1, 1, 2, 3))
        dilation = some(rng, (1, 1, 1, 2)) if k > 1 else 1
        padding = some(rng, (0, k // 2 * dilation, 1))
        out = [(s + 2 * padding - dilation * (k - 1) - 1) // stride + 1 for s in size]
        if min(out) < 1:
            continue
        flops = 2 * batch * o * (c // groups) * k ** dims * math.prod(out)
        biggest = batch * max(c * math.prod(size), o * math.prod(out))
        if flops < WORK and biggest < LARGEST and padding <= k * dilation:
            break
    x, w = normal(rng, batch, c, *size), normal(rng, o, c // groups, *[k] * dims) * 0.1
    args = dict(stride=stride, padding=padding, dilation=dilation, groups=groups)
    ours = lambda x, w: x.conv2d(w, **args)
    theirs = lambda x, w: (F.conv1d, F.conv2d, F.conv3d)[dims - 1](x, w, **args)
    return Case(f"conv{dims}d {x.shape} {w.shape} s{stride} p{padding} d{dilation} g{groups}", [x, w],
                ours, theirs, 2)


def transposed_convolution(rng):
    dims = some(rng, (1, 2, 2, 2, 3))
    while True:
        batch, groups = log_uniform(rng, 1, 16), some(rng, (1, 1, 1, 2))
        c, o = log_uniform(rng, 1, 256), log_uniform(rng, 1, 256)
        c, o = max(1, c // groups) * groups, max(1, o // groups) * groups
        size = [log_uniform(rng, 1, (2000, 100, 24)[dims - 1])] * dims
        k, stride = some(rng, (2, 3, 4, 4, 5)), some(rng, (1, 2, 2, 3))
        padding = some(rng, (0, 0, 1))
        extra = some(rng, (0, 0, 1)) if stride > 1 else 0
        out = [(s - 1) * stride - 2 * padding + k + extra for s in size]
        if min(out) < 1:
            continue
        flops = 2 * batch * c * (o // groups) * k ** dims * math.prod(size)
        if flops < WORK and batch * max(c * math.prod(size), o * math.prod(out)) < LARGEST:
            break
    x, w = normal(rng, batch, c, *size), normal(rng, c, o // groups, *[k] * dims) * 0.1
    args = dict(stride=stride, padding=padding, output_padding=extra, groups=groups)
    ours = lambda x, w: x.conv_transpose2d(w, **args)
    theirs = lambda x, w: (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[dims - 1](
        x, w, **args)
    return Case(f"conv_transpose{dims}d {x.shape} {w.shape} s{stride} p{padding}+{extra} g{groups}",
                [x, w], ours, theirs, 2)


def pool(rng):
    batch, c, h = bounded(rng, (1, 32), (1, 256), (4, 200), elements=3e5)
    h = max(4, int(math.sqrt(min(h * h, LARGEST / batch / c))))
    x, k, stride = normal(rng, batch, c, h, h), some(rng, (2, 3)), some(rng, (1, 2, 3))
    padding = some(rng, (0, 1))
    if rng.random() < 0.5:
        return Case(f"max_pool {x.shape} {k} s{stride} p{padding}", [x],
                    lambda x: x.max_pool2d(k, stride, padding=padding),
                    lambda x: F.max_pool2d(x, k, stride, padding), 1)
    return Case(f"avg_pool {x.shape} {k} s{stride} p{padding}", [x],
                lambda x: x.avg_pool2d(k, stride, padding=padding),
                lambda x: F.avg_pool2d(x, k, stride, padding), 1)


def interpolate(rng):
    batch, c, h = bounded(rng, (1, 8), (1, 128), (4, 64), elements=1e5)
    x = normal(rng, batch, c, min(h, 60), min(h, 60))
    mode, scale = some(rng, ("nearest", "bilinear")), some(rng, (2, 3))
    size = (x.shape[2] * scale, x.shape[3] * scale)
    ours = mode if mode == "nearest" else "linear"
    return Case(f"interpolate {mode} {x.shape} x{scale}", [x],
                lambda x: x.interpolate(size, mode=ours), lambda x: F.interpolate(x, size, mode=mode), 1)


# Norms, products, attention, recurrences

def norm(rng):
    kind = some(rng, ("batch", "layer", "group", "instance", "rms"))
    if kind in ("layer", "rms"):
        rows, width = bounded(rng, (1, 4000), (8, 3000))
        x = normal(rng, rows, width)
        ours, theirs = ((nn.LayerNorm(width), torch.nn.LayerNorm(width)) if kind == "layer" else
                        (nn.RMSNorm(width), torch.nn.RMSNorm(width, eps=1e-6)))
        return module_case(f"{kind}norm {x.shape}", [x], ours, theirs, 1)
    batch, c, h = bounded(rng, (1, 64), (1, 300), (2, 120), elements=3e4)
    h = int(max(2, min(h, math.sqrt(LARGEST / batch / c))))
    groups = some(rng, [g for g in (1, 2, 4, 8, 32) if c % g == 0])
    x = normal(rng, max(2, batch), c, h, h)
    ours, theirs = {"batch": lambda: (nn.BatchNorm2d(c), torch.nn.BatchNorm2d(c)),
                    "group": lambda: (nn.GroupNorm(groups, c), torch.nn.GroupNorm(groups, c)),
                    "instance": lambda: (nn.InstanceNorm(c, affine=False),
                                         torch.nn.InstanceNorm2d(c))}[kind]()
    theirs.train(kind != "batch")
    return module_case(f"{kind}norm {x.shape} {groups if kind == 'group' else ''}", [x], ours, theirs, 1)


def linear(rng):
    while True:
        rows, i, o = log_uniform(rng, 1, 4000), log_uniform(rng, 1, 2000), log_uniform(rng, 1, 2000)
        if rows * i * o < WORK / 2:
            break
    x, w, b = normal(rng, rows, i), normal(rng, o, i), normal(rng, o)
    act = some(rng, ("relu", "gelu", "none"))
    ours = lambda x, w, b: getattr(x @ w.T + b, act)() if act != "none" else x @ w.T + b
    theirs = lambda x, w, b: getattr(F, act)(F.linear(x, w, b)) if act != "none" else F.linear(x, w, b)
    if act == "gelu":
        theirs = lambda x, w, b: F.gelu(F.linear(x, w, b), approximate="tanh")
    return Case(f"linear {act} {rows}x{i}x{o}", [x, w, b], ours, theirs, 3)


def matmul(rng):
    while True:
        batch = some(rng, (1, 1, log_uniform(rng, 2, 100)))
        m, k, n = (log_uniform(rng, 1, 1500) for _ in range(3))
        if batch * m * k * n < WORK / 2 and batch * max(m * k, k * n, m * n) < LARGEST:
            break
    ta, tb = bool(rng.integers(2)), bool(rng.integers(2))
    x = normal(rng, batch, *((k, m) if ta else (m, k)))
    y = normal(rng, batch, *((n, k) if tb else (k, n)))
    turn = lambda t, yes: t.transpose(1, 2) if yes else t
    f = lambda x, y: turn(x, ta) @ turn(y, tb)
    return Case(f"matmul {batch}x{m}x{k}x{n}{' A^T' * ta}{' B^T' * tb}", [x, y], f, f, 2)


def attention(rng):
    batch, heads, length = bounded(rng, (1, 8), (1, 16), (8, 1024), elements=8000)
    width, causal = some(rng, (16, 32, 64, 80, 128)), bool(rng.integers(2))
    q, k, v = (normal(rng, batch, heads, length, width) for _ in range(3))
    return Case(f"attention {q.shape}{' causal' * causal}", [q, k, v],
                lambda q, k, v: q.scaled_dot_product_attention(k, v, is_causal=causal),
                lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=causal), 3)


def embedding(rng):
    words, width = bounded(rng, (10, 30000), (4, 512))
    batch, length = bounded(rng, (1, 64), (1, 256), elements=LARGEST / width)
    i = rng.integers(0, words, (batch, length)).astype(np.int64)
    w = normal(rng, words, width)
    return Case(f"embedding {w.shape} {i.shape}", [w, i], lambda w, i: w[i],
                lambda w, i: F.embedding(i, w), 1)


def recurrent(rng):
    kind = some(rng, ("LSTM", "GRU", "RNN"))
    batch, length, i, h = (log_uniform(rng, *r) for r in ((1, 32), (2, 40), (4, 200), (4, 200)))
    x = normal(rng, length, batch, i)
    ours, theirs = getattr(nn, kind)(i, h), getattr(torch.nn, kind)(i, h)
    return module_case(f"{kind} {x.shape} -> {h}", [x], ours, theirs, 1, first=True)


def module_case(name, inputs, ours, theirs, differentiable, first=False):
    """The same parameters in both."""
    state = {k: Tensor(v.detach().numpy()) for k, v in theirs.state_dict().items()}
    nn.state.load_state_dict(ours, state, strict=False, verbose=False)
    take = (lambda y: y[0]) if first else (lambda y: y)
    named = dict(theirs.named_parameters())
    own = nn.state.get_state_dict(ours)
    both = [k for k in named if k in own]
    return Case(name, inputs, lambda *x: take(ours(*x)), lambda *x: take(theirs(*x)), differentiable,
                [own[k] for k in both], [named[k] for k in both], theirs)


# Reductions, movement, indices, losses

def random_tensor(rng, rank=None, elements=math.inf):
    rank = rank or int(rng.integers(1, 5))
    return normal(rng, *bounded(rng, *[(1, int(4e6 ** (1 / rank)))] * rank, elements=elements))


def reduction(rng):
    x = random_tensor(rng)
    axes = tuple(int(a) for a in np.flatnonzero(rng.random(x.ndim) < 0.5)) or (int(rng.integers(x.ndim)),)
    kind = some(rng, ("sum", "mean", "max", "argmax", "std", "logsumexp", "prod", "norm", "flatsum"))
    if kind == "flatsum":
        return Case(f"flatten.sum {x.shape}", [x], lambda x: x.flatten().sum(), lambda x: x.flatten().sum(), 1)
    if kind in ("argmax", "prod"):
        axes = axes[:1]
    axis = axes[0] if len(axes) == 1 else axes
    theirs = {"max": lambda x: torch.amax(x, axes), "argmax": lambda x: x.argmax(axis),
              "norm": lambda x: torch.linalg.vector_norm(x, dim=axes),
              "prod": lambda x: x.prod(axis)}.get(kind, lambda x: getattr(x, kind)(axis))
    ours = {"norm": lambda x: x.square().sum(axis).sqrt()}.get(kind, lambda x: getattr(x, kind)(axis))
    if kind == "prod":
        x = np.exp(x * 0.01, dtype=np.float32)
    if kind == "std" and math.prod(x.shape[a] for a in axes) < 2:
        return reduction(rng)
    return Case(f"{kind} {x.shape} over {axes}", [x], ours, theirs, kind not in ("argmax", "max"))


def softmax(rng):
    x = random_tensor(rng)
    axis, kind = int(rng.integers(x.ndim)), some(rng, ("softmax", "log_softmax"))
    f = lambda x: getattr(x, kind)(axis)
    return Case(f"{kind} {x.shape} over {axis}", [x], f, f, 1)


def cumulative(rng):
    x, kind = random_tensor(rng, elements=1e6), some(rng, ("cumsum", "cumsum", "cumprod", "cummax", "logcumsumexp"))
    axis = int(rng.integers(x.ndim))
    first = (lambda y: y[0]) if kind == "cummax" else (lambda y: y)
    if kind == "cumprod":
        x = np.exp(x * 0.01, dtype=np.float32)
    f = lambda x: first(getattr(x, kind)(axis))
    return Case(f"{kind} {x.shape} along {axis}", [x], f, f, kind not in ("cumprod", "cummax"))


def elementwise(rng):
    x = random_tensor(rng)
    kind = some(rng, ("exp", "log", "sin", "cos", "tanh", "sigmoid", "gelu", "relu", "sqrt", "erf", "silu",
                      "softplus", "atan", "where", "add", "broadcast", "pow", "lerp", "clip"))
    y = normal(rng, *x.shape)
    if kind in ("log", "sqrt", "pow"):
        x = np.abs(x) + 0.1
    if kind == "where":
        f, g = (lambda x, y: (x > 0).where(x, y)), (lambda x, y: torch.where(x > 0, x, y))
        return Case(f"where {x.shape}", [x, y], f, g, 2)
    if kind in ("add", "broadcast"):
        y = y if kind == "add" else normal(rng, *[1 if rng.random() < 0.5 else s for s in x.shape])
        f = lambda x, y: x + y
        return Case(f"add {x.shape} {y.shape}", [x, y], f, f, 2)
    if kind == "lerp":
        f = lambda x, y: x.lerp(y, 0.3)
        return Case(f"lerp {x.shape}", [x, y], f, f, 2)
    plain = {"pow": lambda x: x ** 1.7, "clip": lambda x: x.clip(-1, 1)}
    f = plain.get(kind, lambda x: getattr(x, kind)())
    g = plain.get(kind) or (lambda x: getattr(F if kind in ("gelu", "silu", "softplus") else torch, kind)(
        x, **({"approximate": "tanh"} if kind == "gelu" else {})))
    return Case(f"{kind} {x.shape}", [x], f, g, 1)


def movement(rng):
    kind = some(rng, ("pad", "roll", "flip", "permute", "transpose", "repeat", "cat", "cat", "stack", "tile",
                      "slice", "split", "tril", "reflect", "unfold"))
    x = random_tensor(rng, elements=1e6 if kind in ("repeat", "tile", "stack", "cat") else LARGEST)
    axis = int(rng.integers(x.ndim))
    if kind == "pad":
        amount = [int(rng.integers(0, 4)) for _ in range(2 * x.ndim)]
        return Case(f"pad {x.shape} {amount}", [x], lambda x: x.pad(tuple(amount)), lambda x: F.pad(x, amount), 1)
    if kind == "reflect":
        x = normal(rng, *bounded(rng, (1, 8), (1, 64), (8, 200), (8, 200), elements=1e6))
        f = lambda x: F.pad(x, (3, 2, 1, 4), mode="reflect")
        return Case(f"pad reflect {x.shape}", [x], lambda x: x.pad((3, 2, 1, 4), mode="reflect"), f, 1)
    if kind == "roll":
        by = int(rng.integers(1, 50))
        return Case(f"roll {x.shape} {by} along {axis}", [x], lambda x: x.roll(by, axis), lambda x: x.roll(by, axis), 1)
    if kind == "flip":
        return Case(f"flip {x.shape} {axis}", [x], lambda x: x.flip(axis), lambda x: x.flip(axis), 1)
    if kind == "permute":
        axes = tuple(int(a) for a in rng.permutation(x.ndim))
        f = lambda x: x.permute(*axes).contiguous()
        return Case(f"permute {x.shape} {axes}", [x], f, lambda x: f(x) if axes != tuple(sorted(axes)) else x + 0, 1)
    if kind == "transpose":
        x = normal(rng, *bounded(rng, (2, 3000), (2, 3000)))
        return Case(f"transpose {x.shape}", [x], lambda x: x.T.contiguous(), lambda x: x.T.contiguous(), 1)
    if kind == "repeat":
        n = some(rng, (2, 3))
        f = lambda x: x.repeat_interleave(n, axis)
        return Case(f"repeat_interleave {x.shape} {n} along {axis}", [x], f, f, 1)
    if kind == "tile":
        times = [int(rng.integers(1, 3)) for _ in x.shape]
        return Case(f"tile {x.shape} {times}", [x], lambda x: x.repeat(*times) + 1, lambda x: x.repeat(*times) + 1, 1)
    if kind == "slice":
        cut = tuple(slice(int(rng.integers(0, s // 2 + 1)), s, int(rng.integers(1, 4))) for s in x.shape)
        f = lambda x: x[cut] * 2
        return Case(f"slice {x.shape} {[(c.start, c.step) for c in cut]}", [x], f, f, 1)
    if kind == "split":
        f = lambda x, torch=False: (lambda p: p[0][..., :1] + p[-1][..., :1])(x.chunk(2, axis))
        x = np.concatenate([x, x], axis)
        return Case(f"chunk {x.shape} along {axis}", [x], f, f, 1)
    if kind == "tril":
        x = normal(rng, *bounded(rng, (1, 20), (2, 800), (2, 800)))
        return Case(f"tril {x.shape}", [x], lambda x: x.tril(), lambda x: x.tril(), 1)
    if kind == "unfold":
        x = normal(rng, *bounded(rng, (1, 8), (1, 64), (8, 100), (8, 100), elements=2e5))
        return Case(f"unfold {x.shape} 3", [x], lambda x: x.unfold(2, 3, 2).contiguous() * 1, lambda x: x.unfold(2, 3, 2) * 1, 1)
    parts = some(rng, (2, 3, 4, 8, 9, 20, 64))
    x = x if x.size * parts <= 2 * LARGEST else x.reshape(-1)[:int(2 * LARGEST / parts)]
    axis = min(axis, x.ndim - 1)
    xs = [normal(rng, *x.shape) for _ in range(parts)]
    if kind == "cat":
        return Case(f"cat {parts} x {x.shape} along {axis}", xs, lambda *t: t[0].cat(*t[1:], dim=axis),
                    lambda *t: torch.cat(t, axis), parts)
    return Case(f"stack {parts} x {x.shape} along {axis}", xs, lambda *t: t[0].stack(*t[1:], dim=axis),
                lambda *t: torch.stack(t, axis), parts)


def indices(rng):
    kind = some(rng, ("gather", "scatter_add", "index_add", "index_select", "index_put", "masked_fill", "one_hot", "take"))
    rows, width = bounded(rng, (4, 20000), (1, 512))
    x, n = normal(rng, rows, width), log_uniform(rng, 1, 2000)
    i = rng.integers(0, rows, n).astype(np.int64)
    wide = rng.integers(0, rows, (min(n, int(LARGEST / width)), width)).astype(np.int64)
    v = normal(rng, n, width)
    if kind == "gather":
        return Case(f"gather {x.shape} {wide.shape}", [x, wide], lambda x, i: x.gather(0, i), lambda x, i: x.gather(0, i), 1)
    if kind == "scatter_add":
        s = normal(rng, *wide.shape)
        f = lambda x, s, i: x.scatter_add(0, i, s)
        return Case(f"scatter_add {x.shape} {wide.shape}", [x, s, wide], f, f, 2)
    if kind == "index_add":
        f = lambda x, v, i: x.index_add(0, i, v)
        return Case(f"index_add {x.shape} {i.shape}", [x, v, i], f, f, 2)
    if kind == "index_select":
        return Case(f"index {x.shape} {i.shape}", [x, i], lambda x, i: x[i] * 2, lambda x, i: x[i] * 2, 1)
    if kind == "take":
        j = rng.integers(0, width, n).astype(np.int64)
        return Case(f"x[i, j] {x.shape} {i.shape}", [x, i, j], lambda x, i, j: x[i, j] * 2, lambda x, i, j: x[i, j] * 2, 1)
    if kind == "index_put":
        i = rng.permutation(rows)[:n].astype(np.int64)
        v = v[:len(i)]
        def put(x, v, i):
            y = x + 0
            y[i] = v
            return y
        return Case(f"y[i] = v {x.shape} {i.shape}", [x, v, i], put, put)
    if kind == "masked_fill":
        return Case(f"masked_fill {x.shape}", [x], lambda x: x.masked_fill(x > 0, 0.5), lambda x: x.masked_fill(x > 0, 0.5), 1)
    c = log_uniform(rng, 2, 300)
    i = i % c
    return Case(f"one_hot {i.shape} {c}", [i], lambda i: i.one_hot(c).float(), lambda i: F.one_hot(i, c).float())


def loss(rng):
    rows, width = bounded(rng, (1, 4000), (2, 3000))
    x, y, i = normal(rng, rows, width), normal(rng, rows, width), rng.integers(0, width, rows).astype(np.int64)
    kind = some(rng, ("cross_entropy", "mse", "l1", "bce", "huber", "kl"))
    if kind == "cross_entropy":
        return Case(f"cross_entropy {x.shape}", [x, i], lambda x, i: x.cross_entropy(i), F.cross_entropy, 1)
    if kind == "bce":
        t = (y > 0).astype(np.float32)
        return Case(f"bce {x.shape}", [x, t], lambda x, t: x.binary_crossentropy_logits(t),
                    F.binary_cross_entropy_with_logits, 1)
    if kind == "kl":
        t = np.exp(y) / np.exp(y).sum(1, keepdims=True)
        return Case(f"kl_div {x.shape}", [x, t], lambda x, t: x.log_softmax(1).kl_div(t),
                    lambda x, t: F.kl_div(x.log_softmax(1), t), 1)
    name = {"mse": "mse_loss", "l1": "l1_loss", "huber": "huber_loss"}[kind]
    return Case(f"{name} {x.shape}", [x, y], lambda x, y: getattr(x, name)(y), getattr(F, name), 2)


# Small networks: blocks of functions of their weights

def mlp(rng):
    batch, i, h, o = (log_uniform(rng, *r) for r in ((1, 500), (4, 800), (4, 600), (2, 100)))
    ws = [normal(rng, *s) / math.sqrt(s[1]) for s in ((h, i), (h, h), (o, h))]
    f = lambda x, a, b, c: ((x @ a.T).relu() @ b.T).relu() @ c.T
    return Case(f"mlp {batch}x{i}x{h}x{h}x{o}", [*ws, normal(rng, batch, i)],
                lambda a, b, c, x: f(x, a, b, c), lambda a, b, c, x: f(x, a, b, c), 3)


def residual(rng):
    while True:
        batch, c, h = log_uniform(rng, 1, 32), log_uniform(rng, 3, 256), log_uniform(rng, 4, 100)
        if 4 * batch * c * c * 9 * h * h < WORK and batch * c * h * h < LARGEST:
            break
    x, a, b = normal(rng, batch, c, h, h), normal(rng, c, c, 3, 3) * 0.05, normal(rng, c, c, 3, 3) * 0.05
    def ours(x, a, b):
        y = x.conv2d(a, padding=1)
        y = ((y - y.mean((0, 2, 3), keepdim=True)) * (y.var((0, 2, 3), keepdim=True, correction=0) + 1e-5).rsqrt()).relu()
        return (y.conv2d(b, padding=1) + x).relu()
    def theirs(x, a, b):
        y = F.batch_norm(F.conv2d(x, a, padding=1), None, None, training=True).relu()
        return (F.conv2d(y, b, padding=1) + x).relu()
    return Case(f"residual block {x.shape}", [x, a, b], ours, theirs, 3)


def unet(rng):
    dims = some(rng, (2, 3))
    while True:
        batch, c = log_uniform(rng, 1, 8), log_uniform(rng, 2, 64)
        h = log_uniform(rng, 4, (100, 32)[dims - 2]) // 2 * 2
        if 14 * batch * c * c * 3 ** dims * h ** dims < WORK and batch * c * h ** dims < LARGEST / 2:
            break
    k = [3] * dims
    x = normal(rng, batch, c, *[h] * dims)
    ws = [normal(rng, *s) * 0.1 for s in ((c, c, *k), (2 * c, c, *k), (2 * c, c, *[2] * dims), (c, 2 * c, *k))]
    conv = (F.conv2d, F.conv3d)[dims - 2]
    up = (F.conv_transpose2d, F.conv_transpose3d)[dims - 2]
    pooled = (F.max_pool2d, F.max_pool3d)[dims - 2]
    def ours(a, b, c, d, x):
        skip = x.conv2d(a, padding=1).relu()
        low = skip.max_pool2d((2,) * dims).conv2d(b, padding=1).relu()
        return skip.cat(low.conv_transpose2d(c, stride=2), dim=1).conv2d(d, padding=1)
    def theirs(a, b, c, d, x):
        skip = conv(x, a, padding=1).relu()
        low = conv(pooled(skip, 2), b, padding=1).relu()
        return conv(torch.cat([skip, up(low, c, stride=2)], 1), d, padding=1)
    return Case(f"unet{dims}d {x.shape}", [*ws, x], ours, theirs, 4)


def transformer(rng):
    heads, width = some(rng, ((2, 32), (4, 64), (4, 128), (8, 256), (12, 384), (5, 100)))
    batch, length = bounded(rng, (1, 16), (4, 256), elements=2000)
    x = normal(rng, batch, length, width)
    theirs = torch.nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, batch_first=True)
    ours = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, batch_first=True)
    return module_case(f"transformer {x.shape} {heads} heads", [x], ours, theirs, 1)


FAMILIES = {f.__name__: f for f in (
    convolution, transposed_convolution, pool, interpolate, norm, linear, matmul, attention, embedding,
    recurrent, reduction, softmax, cumulative, elementwise, movement, indices, loss, mlp, residual, unet,
    transformer)}


def random_case(rng, family=None):
    """One random case; of any family if none is named."""
    return FAMILIES[family or some(rng, list(FAMILIES))](rng)
