"""Rows of operations on each element, and casts."""
import functools
import math
import statistics

import numpy as np

from conftest import torch
from every_op.operands import (ALL, FLOATS, INTS, NUMBERS, ONE, THREE, TWO, WHOLE, Bad, boolean, counted, floating,
    is_float, same)
from every_op.rows import F, INTEGERS, X, XN, XT, of, op, theirs
from weft import Tensor, dtypes

# ---- elementwise, one operand

def sigmoid(x):
    return np.exp(-np.logaddexp(0, -x))


def softplus(x):
    return np.logaddexp(0, x)


def elu(x, alpha=1.0):
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def gelu(x):
    return .5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + .044715 * x**3)))


erf = np.vectorize(math.erf, otypes=[float])


@functools.partial(np.vectorize, otypes=[float])
def digamma(x):
    """By recurrence to where the series of Bernoulli's numbers is short; on the left by reflection."""
    if x <= 0 or math.isinf(x):
        whole = x == math.floor(x) if math.isfinite(x) else x < 0
        if x == 0 or whole or math.isinf(x):
            return math.copysign(math.inf, -math.copysign(1, x)) if x == 0 else math.nan if x < 0 else x
        return float(digamma(1 - x)) - math.pi / math.tan(math.pi * math.fmod(x, 1))
    below = 0.0
    while x < 20:
        below, x = below + 1 / x, x + 1
    return math.log(x) - 1 / (2 * x) - 1 / (12 * x**2) + 1 / (120 * x**4) - 1 / (252 * x**6) + 1 / (240 * x**8) - below


@functools.partial(np.vectorize, otypes=[float])
def lgamma(x):
    return math.inf if math.isinf(x) or x <= 0 and x == math.floor(x) else math.lgamma(x)


@functools.partial(np.vectorize, otypes=[float])
def erfinv(x):
    if not abs(x) < 1:
        return math.copysign(math.inf, x) if abs(x) == 1 else math.nan
    if abs(x) < 1e-4:  # (x + 1) / 2 would lose its digits
        return x * math.sqrt(math.pi) / 2 * (1 + math.pi * x * x / 12)
    return statistics.NormalDist().inv_cdf((x + 1) / 2) / math.sqrt(2)


def unary(name, numpy, torchs=None, *, too_many=True, **columns):
    """torchs: PyTorch's name where it is another."""
    columns = {"grad": True, "gives": floating, "shapes": ONE, "ulps": 4} | columns
    bad = columns.pop("bad", ())
    if too_many:  # every function of one operand takes one
        bad = (*bad, Bad(lambda: getattr(X, name)(X), TypeError))
    refused = [d for d in ALL if d not in columns.get("takes", ALL)]
    if refused:
        x = Tensor([1, 0], dtype=refused[0])
        bad = (*bad, Bad(lambda: getattr(x, name)(), TypeError))
    torchs = name if torchs is None else torchs
    op(name, of(name), numpy, theirs(torchs) if isinstance(torchs, str) else torchs or None, bad=bad, **columns)


unary("neg", np.negative, gives=same, takes=NUMBERS)
unary("abs", np.abs, gives=same)
unary("sign", lambda x: x if x.dtype == bool else np.sign(x), gives=same, grad=False)
unary("square", np.square, gives=same)
unary("sqrt", np.sqrt, domain=(0, 9))
unary("rsqrt", lambda x: 1 / np.sqrt(x), domain=(.1, 9))
unary("reciprocal", lambda x: 1 / x, domain=(.2, 9))
unary("exp", np.exp)
unary("exp2", np.exp2)
unary("expm1", np.expm1)
unary("log", np.log, domain=(.1, 9))
unary("log2", np.log2, domain=(.1, 9))
unary("log10", np.log10, domain=(.1, 9))
unary("log1p", np.log1p, domain=(-.5, 9))
unary("sin", np.sin)
unary("cos", np.cos)
unary("tan", np.tan, domain=(-1.4, 1.4), ulps=16)
unary("asin", np.arcsin, domain=(-.95, .95))
unary("acos", np.arccos, domain=(-.95, .95))
unary("atan", np.arctan)
unary("sinh", np.sinh)
unary("cosh", np.cosh)
unary("tanh", np.tanh)
unary("asinh", np.arcsinh)
unary("acosh", np.arccosh, domain=(1.1, 9))
unary("atanh", np.arctanh, domain=(-.95, .95))
unary("erf", erf)
unary("sigmoid", sigmoid)
unary("logsigmoid", lambda x: -softplus(-x))
unary("silu", lambda x: x * sigmoid(x))
unary("swish", lambda x: x * sigmoid(x), "silu")
unary("quick_gelu", lambda x: x * sigmoid(1.702 * x), lambda x: x * torch.sigmoid(1.702 * x))
unary("mish", lambda x: x * np.tanh(softplus(x)))
unary("softsign", lambda x: x / (1 + np.abs(x)))
unary("hardswish", lambda x: x * np.clip(x + 3, 0, 6) / 6, domain=(-5, 5))
unary("relu", lambda x: np.maximum(x, 0), gives=counted)
unary("relu6", lambda x: np.clip(x, 0, 6), gives=counted, domain=(-3, 9))
unary("trunc", np.trunc, gives=same, grad=False)
unary("floor", np.floor, gives=same, grad=False)
unary("ceil", np.ceil, gives=same, grad=False)
unary("round", np.round, gives=same, grad=False)
unary("logical_not", np.logical_not, gives=boolean, grad=False)
unary("bitwise_not", np.invert, gives=same, takes=WHOLE, grad=False)
unary("signbit", np.signbit, gives=boolean, grad=False)
unary("isnan", np.isnan, gives=boolean, grad=False)
unary("isfinite", np.isfinite, gives=boolean, grad=False)
unary("contiguous", lambda x: x, lambda x: x, gives=same)
unary("contiguous_backward", lambda x: x, lambda x: x, gives=same)
unary("detach", lambda x: x, gives=same, grad=False)
unary("frac", lambda x: x - np.trunc(x) if x.dtype.kind == "f" else x * 0, gives=same, takes=NUMBERS)
unary("deg2rad", np.deg2rad)
unary("rad2deg", np.rad2deg)
unary("sinc", np.sinc, of_most=True, domain=(-2.4, 2.4))
unary("erfc", np.vectorize(math.erfc, otypes=[float]), ulps=8)
unary("erfinv", erfinv, domain=(-.95, .95), of_most=True, ulps=16)
unary("lgamma", lgamma, domain=(.2, 9), of_most=True, ulps=16)
unary("digamma", digamma, False, domain=(.2, 9), of_most=True, ulps=16)  # PyTorch's slope has ten digits
unary("tanhshrink", lambda x: x - np.tanh(x), of_most=True)

ACTIVATIONS = {
    "softshrink": ((.25,), lambda x, a: np.where(x > a, x - a, np.where(x < -a, x + a, x * 0)), theirs("softshrink")),
    "threshold": ((.25, 1.5), lambda x, a, b: np.where(x <= a, b, x), theirs("threshold")),
    "leaky_relu": ((.2,), lambda x, a: np.where(x < 0, x * a, x), theirs("leaky_relu")),
    "hardtanh: limits that are not whole": ((-2.0, 1.5), np.clip, theirs("hardtanh")),
    "hardsigmoid": ((.25, .4), lambda x, a, b: np.clip(a * x + b, 0, 1), lambda x, a, b: (a * x + b).clamp(0, 1)),
    "elu": ((1.3,), elu, theirs("elu")),
    "celu": ((1.3,), lambda x, a: np.where(x > 0, x, a * np.expm1(np.minimum(x, 0) / a)),
             lambda x, a: torch.where(x > 0, x, a * torch.expm1(x / a))),  # whose own slope is rounded to float32
    "selu": ((1.5, 1.1), lambda x, a, s: s * elu(x, a), lambda x, a, s: s * F.elu(x, a)),
    "softplus": ((1.5,), lambda x, b: softplus(b * x) / b, theirs("softplus")),
}
for _name, (_arguments, _numpy, _torch) in ACTIVATIONS.items():
    op(_name, lambda x, n=_name.split(":")[0], a=_arguments: getattr(x, n)(*a), lambda x, f=_numpy,
        a=_arguments: f(x, *a),
       lambda x, f=_torch, a=_arguments: f(x, *a), gives=floating, shapes=ONE, grad=True, ulps=4, torch_takes=FLOATS,
       bad=(Bad(lambda n=_name.split(":")[0]: getattr(X, n)("a"), TypeError,
            torch=lambda f=_torch, a=_arguments: f(XT, "a", *a[1:])),))
op("hardtanh", lambda x: x.hardtanh(1, 2), lambda x: np.clip(x + 0, 1, 2), lambda x: F.hardtanh(x, 1, 2),
   gives=counted, shapes=ONE, grad=True, whole_range=False,
   bad=(Bad(lambda: X.hardtanh(1, 2, 3), TypeError, None, lambda: F.hardtanh(XT, 1, 2, 3, 4)),))
op("hardshrink", lambda x: x.hardshrink(.25), lambda x: np.where(np.abs(x + 0.0) <= .25, 0, x), lambda x: F.hardshrink(x, .25),
   gives=counted, shapes=ONE, grad=True, torch_takes=FLOATS,
   bad=(Bad(lambda: X.hardshrink("a"), TypeError, torch=lambda: F.hardshrink(XT, "a")),))
op("gelu", of("gelu"), gelu, lambda x: F.gelu(x, approximate="tanh"), gives=floating, shapes=ONE, grad=True,
    of_most=True,
   bad=(Bad(lambda: X.gelu("up"), ValueError, torch=lambda: F.gelu(XT, approximate="up")), Bad(lambda: X.gelu(3),
       TypeError)))
op("gelu: none", lambda x: x.gelu("none"), lambda x: .5 * x * (1 + erf(x / math.sqrt(2))), theirs("gelu"),
    gives=floating,
   shapes=ONE, grad=True, of_most=True)
op("isinf", lambda x: (x.isinf(), x.isinf(detect_negative=False), x.isinf(False)),
   lambda x: (np.isinf(x), x == np.inf, x == -np.inf), lambda x: (torch.isinf(x), torch.isposinf(x),
       torch.isneginf(x)),
   gives=boolean, shapes=ONE, bad=(Bad(lambda: X.isinf("a"), TypeError),))

# ---- elementwise, two operands

BINARY: list[str] = []


def binary(name, numpy, torchs=None, ours=None, **columns):
    bad = (Bad(lambda: getattr(X, name)(Tensor([1.0, 2.0])), ValueError, lambda: np.add(XN, XN[:2]),
               lambda: torch.add(XT, XT[:2])),
           Bad(lambda: getattr(X, name)("a"), TypeError, torch=lambda: torch.add(XT, "a")),
           Bad(lambda: getattr(X, name)(), TypeError, lambda: np.add(XN), lambda: torch.add(XT)))
    if columns.get("takes", ALL) in (WHOLE, INTS):
        # Without a shape error in front of what is tested.
        bad = (Bad(lambda: getattr(INTEGERS, name)(Tensor([1, 2])), ValueError, lambda: np.add(XN, XN[:2])), *bad[1:],
               Bad(lambda: getattr(X, name)(X), TypeError, lambda: np.bitwise_and(XN, XN),
                   lambda: torch.bitwise_and(XT, XT)))
    columns = {"gives": same, "shapes": TWO, "grad": True, "bad": bad} | columns
    BINARY.append(name)
    op(name, ours or of(name), numpy, theirs(torchs or name) if not callable(torchs) else torchs, **columns)


def zero_where_zero(f):
    """Integers divided by 0 give 0."""
    def g(a, b):
        with np.errstate(all="ignore"):
            a, b = np.broadcast_arrays(a, b)
            return np.where(b == 0, 0 * a, f(a, np.where(b == 0, np.ones_like(b),
                b))) if a.dtype.kind in "iu" else f(a, b)
    return g


def truncated(a, b):
    if a.dtype.kind == "f":
        return np.trunc(a / b)
    exact = [[int(x), int(y)] for x, y in zip(a.reshape(-1), b.reshape(-1))]
    found = [abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1) for x, y in exact]
    bits = a.dtype.itemsize * 8
    return np.array([n & (2**bits - 1) for n in found], dtype=f"uint{bits}").view(a.dtype).reshape(a.shape)


def power(a, b):
    """Integers wrap."""
    if a.dtype.kind == "f":
        return np.power(a, b)
    a, b = np.broadcast_arrays(a, b)
    if a.dtype.kind == "b":
        return a | ~b
    bits = a.dtype.itemsize * 8
    found = [pow(int(x), int(y), 2**bits) for x, y in zip(a.reshape(-1), b.reshape(-1))]
    return np.array(found, dtype=f"uint{bits}").view(a.dtype).reshape(a.shape)


binary("add", np.add)
binary("sub", np.subtract, takes=NUMBERS)
binary("mul", np.multiply)
binary("div", np.divide, gives=floating, domain=((-3, 3), (.5, 3)))
binary("mod", zero_where_zero(np.mod), "remainder", takes=NUMBERS, domain=((-9, 9), (.5, 3)), of_most=True)
binary("fmod", zero_where_zero(np.fmod), takes=NUMBERS, domain=((-9, 9), (.5, 3)), of_most=True)
binary("idiv", zero_where_zero(truncated), steep=True, torchs=lambda a, b: torch.div(a, b, rounding_mode="trunc"),
    takes=NUMBERS, grad=False,
       domain=((-9, 9), (.5, 3)))
binary("pow", power, domain=((.1, 3), (0, 3)), whole_range=False)
binary("maximum", np.maximum)
binary("minimum", np.minimum)
binary("copysign", np.copysign, gives=floating)
binary("logaddexp", np.logaddexp, gives=floating, ulps=4, of_most=True)
binary("isclose", lambda a, b: np.isclose(a, b, rtol=.5, atol=.1), lambda a, b: torch.isclose(a, b, rtol=.5, atol=.1),
       ours=lambda a, b: a.isclose(b, rtol=.5, atol=.1), gives=boolean, grad=False, whole_range=False)
for _name, _numpy in {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
                      "ge": np.greater_equal}.items():
    binary(_name, _numpy, gives=boolean, grad=False)
binary("atan2", np.arctan2, gives=floating, ulps=4)
binary("hypot", np.hypot, gives=floating, ulps=4)
binary("fmax", np.fmax)
binary("fmin", np.fmin)
binary("logaddexp2", np.logaddexp2, gives=floating, ulps=4, of_most=True)
binary("xlogy", lambda a, b: np.where((a == 0) & ~np.isnan(b), 0, a * np.log(np.where(b == 0, 0.0, b))), gives=floating, domain=((-3, 3), (.1, 3)), ulps=4, of_most=True)
binary("heaviside", lambda a, b: np.where(np.isnan(a), a, np.where(a == 0, b, (a > 0).astype(a.dtype))), grad=False,
       torchs=lambda a, b: torch.heaviside(*torch.broadcast_tensors(a, b)))
for _name, _numpy in {"logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor}.items():
    binary(_name, _numpy, gives=boolean, grad=False)
for _name, _numpy in {"bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor}.items():
    binary(_name, _numpy, takes=WHOLE, grad=False)
SHIFTS = {"lshift": (np.left_shift, "bitwise_left_shift"), "rshift": (np.right_shift, "bitwise_right_shift")}
for _name, (_numpy, _torch) in SHIFTS.items():
    binary(_name, _numpy, _torch, takes=INTS, refuses="docs/dtypes.md: shifts of bools", grad=False,
        whole_range=False, domain=((-100, 100), (0, 7)))
op("div: rounded", lambda a, b: (a.div(b, rounding_mode="floor"), a.div(b, rounding_mode="trunc")),
   lambda a, b: (zero_where_zero(np.floor_divide)(a, b), zero_where_zero(truncated)(a, b)),
   lambda a, b: (torch.div(a, b, rounding_mode="floor"), torch.div(a, b, rounding_mode="trunc")), shapes=TWO,
       takes=NUMBERS,
   gives=(same, same), domain=((-9, 9), (.5, 3)), steep=True,
   bad=(Bad(lambda: X.div(X, rounding_mode="up"), ValueError, torch=lambda: torch.div(XT, XT, rounding_mode="up")),))
op("allclose", lambda a, b: (a.allclose(b, rtol=9, atol=9), a.allclose(b, rtol=0, atol=0)),
   lambda a, b: (np.allclose(a, b, 9, 9), np.allclose(a, b, 0, 0)), shapes=TWO, gives=boolean, whole_range=False,
   torchs=lambda a, b: (torch.tensor(torch.allclose(*torch.broadcast_tensors(a, b), 9, 9)),
                        torch.tensor(torch.allclose(*torch.broadcast_tensors(a, b), 0, 0))),
   bad=(Bad(lambda: X.allclose(Tensor([1.0, 2.0])), ValueError, lambda: np.allclose(XN, XN[:2])),
        Bad(lambda: X.allclose("a"), TypeError)))

# ---- elementwise, three operands

op("where", of("where"), lambda c, a, b: np.where(c != 0, a, b), lambda c, a, b: torch.where(c != 0, a, b),
    shapes=THREE,
   grad=True, bad=(Bad(lambda: X.where(Tensor([1.0, 2]), 0), ValueError, lambda: np.where(XN, XN[:2], 0),
                       lambda: torch.where(XT > 0, XT[:2], 0)), Bad(lambda: X.where("a", 0), TypeError)))
for _name, _numpy in {"addcmul": lambda x, a, b: x + .5 * (a * b), "addcdiv": lambda x, a, b: x + .5 * (a / b)}.items():
    op(_name, lambda x, a, b, n=_name: getattr(x, n)(a, b, value=.5), _numpy, shapes=THREE, gives=floating,
       grad=True, of_most=True, ulps=4, domain=((-3, 3), (-3, 3), (.5, 3)), torch_takes=FLOATS,
       torchs=lambda x, a, b, n=_name: getattr(torch, n)(x, a, b, value=.5),
       bad=(Bad(lambda n=_name: getattr(X, n)(X, Tensor([1.0, 2])), ValueError, None, lambda n=_name: getattr(torch, n)(XT, XT, XT[:2])),
            Bad(lambda n=_name: getattr(X, n)("a", X), TypeError, None, lambda n=_name: getattr(torch, n)(XT, "a", XT))))
op("nan_to_num", lambda x: x.nan_to_num(1, 2, -2), lambda x: x if x.dtype.kind != "f" else np.nan_to_num(x, nan=1, posinf=2, neginf=-2),
   lambda x: torch.nan_to_num(x, 1, 2, -2), shapes=ONE, grad=True,
   bad=(Bad(lambda: X.nan_to_num("a"), TypeError, None, lambda: torch.nan_to_num(XT, "a")),))
op("lerp", lambda x, end: x.lerp(end, .25), lambda x, end: x + (end - x) * .25, lambda x, end: torch.lerp(x, end,
    .25),
   shapes=TWO, takes=FLOATS, grad=True, of_most=True, refuses="lerp: of integers",
   bad=(Bad(lambda: X.lerp(Tensor([1.0, 2]), .5), ValueError, torch=lambda: torch.lerp(XT, XT[:2], .5)),
        Bad(lambda: X.lerp("a", .5), TypeError, torch=lambda: torch.lerp(XT, "a", .5))))
op("lerp: weights", of("lerp"), lambda x, end, w: x + (end - x) * w, theirs("lerp"), shapes=THREE, takes=FLOATS,
    grad=True,
   of_most=True, domain=((-3, 3), (-3, 3), (0, 1)), refuses="lerp: of integers")
op("lerp: of integers", lambda x, end: x.lerp(end, .75), lambda x, end: np.round(x + (end - x.astype(float)) * .75),
    shapes=TWO, takes=WHOLE,
   whole_range=False, domain=(-100, 100), refuses="floats are not rounded")
op("masked_fill", lambda x: x.masked_fill(x > 1, 2), lambda x: np.where(x > 1,
    np.array(2).astype(x.dtype if x.dtype != bool else int), x),
   lambda x: x.masked_fill(x > 1, 2), shapes=ONE, gives=counted, grad=True,
   bad=(Bad(lambda: X.masked_fill(Tensor([True, False]), 0), ValueError,
            torch=lambda: XT.masked_fill(torch.tensor([True, False]), 0)), Bad(lambda: X.masked_fill("a", 0),
                TypeError),))
for _name in ("clamp", "clip"):
    op(_name, lambda x, n=_name: getattr(x, n)(1, 2), lambda x: np.clip(x + 0, 1, 2), lambda x: torch.clamp(x, 1, 2),
       shapes=ONE, gives=counted, grad=True, whole_range=False,
       bad=(Bad(lambda n=_name: getattr(X, n)(), ValueError, torch=lambda: torch.clamp(XT)),
            Bad(lambda n=_name: getattr(X, n)("a"), TypeError, torch=lambda: torch.clamp(XT, "a"))))

# ---- casts

CAST_DOMAIN = {"domain": (0, 100), "shapes": (((5,),), ((),), ((0,),)), "whole_range": False}
for _name in ("float", "half", "bfloat16", "double", "int", "long", "short", "bool"):
    _dtype = {"float": dtypes.float32, "int": dtypes.int32}.get(_name, getattr(dtypes, _name))
    op(_name, of(_name), lambda x, d=_dtype: x.astype(np.float64) if dtypes.is_float(d) else x.astype(d.name),
       gives=lambda d, to=_dtype: to, grad=dtypes.is_float(_dtype), ulps=1, **CAST_DOMAIN,
       bad=(Bad(lambda n=_name: getattr(X, n)(1), TypeError),))
op("cast", lambda x: tuple(x.cast(d) for d in ALL),
   lambda x: tuple(x.astype(np.float64) if dtypes.is_float(d) else x.astype(d.name) for d in ALL),
   gives=tuple(lambda _, to=d: to for d in ALL), ulps=1, **CAST_DOMAIN,
   bad=(Bad(lambda: X.cast("typo"), TypeError, lambda: XN.astype("typo")), Bad(lambda: X.cast(3), TypeError),
        Bad(lambda: X.cast(), TypeError, lambda: XN.astype(), None)))
op("bitcast", lambda x: x.bitcast({8: dtypes.uint8, 16: dtypes.int16, 32: dtypes.uint32,
    64: dtypes.int64}[x.dtype.bitsize])
   .bitcast(x.dtype), lambda x: x, shapes=ONE,
   bad=(Bad(lambda: X.bitcast(dtypes.bool), TypeError), Bad(
       lambda: X.bitcast("double"), TypeError, torch=lambda: XT.view(torch.float64)),
        Bad(lambda: X.bitcast("typo"), TypeError, lambda: XN.view("typo"))))
