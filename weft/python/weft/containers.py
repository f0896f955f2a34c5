"""Small functions on numbers and lists, by tinygrad's names: of these, only what programs import."""
import functools
import itertools
import operator
from typing import Any

__all__ = ["all_int", "all_same", "argfix", "argsort", "cdiv", "ceildiv", "cmod", "data64", "data64_le", "dedup",
           "flat_to_grouped", "flatten", "floordiv", "floormod", "fully_flatten", "get_child", "get_shape",
           "get_single_element", "getbits", "hi32", "i2u", "lo32", "make_tuple", "merge_dicts", "next_power2",
           "pad_bytes", "partition", "polyN", "prod", "round_down", "round_up", "strides_for_shape", "to_tuple",
           "unwrap"]


def prod(x: Any) -> Any:
    """The product; 1 of nothing. Unlike math.prod also of sizes that are no numbers."""
    return functools.reduce(operator.mul, x, 1)


def argfix(*x: Any) -> tuple:
    """f(2, 3) and f((2, 3)) as (2, 3)."""
    if not x or not isinstance(x[0], (tuple, list)):
        return x
    if len(x) > 1:
        raise ValueError(f"one list, or members one by one, not {x}")
    return tuple(x[0])


# ---- lists

def argsort(x: Any) -> Any:
    """The positions that put x in order, as a list or tuple as x is."""
    return type(x)(i for i, _ in sorted(enumerate(x), key=operator.itemgetter(1)))


def dedup(x: Any) -> list:
    """Each member once, where it came first."""
    return list(dict.fromkeys(x))


def all_same(items: Any) -> bool:
    return all(item == items[0] for item in items)


def all_int(t: Any) -> bool:
    return all(isinstance(member, int) for member in t)


def flatten(l: Any) -> list:
    """One level less of lists."""
    return list(itertools.chain.from_iterable(l))


def fully_flatten(l: Any) -> list:
    """No lists in lists; an array's elements too."""
    if isinstance(l, (str, bytes)) or not hasattr(l, "__len__") or not hasattr(l, "__getitem__"):
        return [l]
    if getattr(l, "shape", None) == ():
        return [l[()]]
    return flatten(fully_flatten(member) for member in l)


def get_shape(x: Any) -> tuple[int, ...]:
    """The shape of nested lists; a ValueError where their lengths differ."""
    if isinstance(x, str) or not hasattr(x, "__len__") or getattr(x, "shape", None) == ():
        return ()
    inner = [get_shape(member) for member in x]
    if not all_same(inner):
        raise ValueError(f"inhomogeneous shape from {x}")
    return (len(inner), *(inner[0] if inner else ()))


def partition(itr: Any, fxn: Any) -> tuple[list, list]:
    """Those that fxn holds for, and the others."""
    parts: tuple[list, list] = ([], [])
    for member in itr:
        parts[0 if fxn(member) else 1].append(member)
    return parts


def merge_dicts(ds: Any) -> dict:
    """All entries; a RuntimeError where two differ."""
    merged: dict = {}
    for key, value in (entry for d in ds for entry in d.items()):
        if key in merged and merged[key] != value:
            raise RuntimeError(f"{key} is {merged[key]} and {value}")
        merged[key] = value
    return merged


def make_tuple(x: Any, cnt: int) -> tuple:
    """A number cnt times, or a list as a tuple."""
    return (x,) * cnt if isinstance(x, int) else tuple(x)


def to_tuple(x: Any) -> tuple:
    return x if isinstance(x, tuple) else (x,)


def unwrap(x: Any) -> Any:
    """x, which is not None."""
    if x is None:
        raise AssertionError("a value is wanted, not None")
    return x


def get_single_element(x: Any) -> Any:
    if len(x) != 1:
        raise AssertionError(f"{x} must have one element")
    return x[0]


def get_child(obj: Any, key: str) -> Any:
    """get_child(model, "layers.0.weight"): attributes, members, entries."""
    for part in key.split("."):
        obj = obj[int(part)] if part.isnumeric() else obj[part] if isinstance(obj, dict) else getattr(obj, part)
    return obj


def flat_to_grouped(padding: Any) -> tuple:
    """(left, right, top, bottom) to ((top, bottom), (left, right))."""
    pairs = zip(padding[::2], padding[1::2])
    return tuple(reversed(list(pairs)))


def strides_for_shape(shape: Any) -> tuple:
    """Row-major strides in elements; 0 along axes of size 1."""
    strides = list(itertools.accumulate(reversed(shape[1:]), operator.mul, initial=1))[::-1] if shape else []
    return tuple(0 if size == 1 else stride for size, stride in zip(shape, strides))


# ---- numbers

def ceildiv(num: Any, amt: Any) -> Any:
    """num / amt rounded up: of ints, floats and sizes."""
    return (num + amt - 1) // amt if hasattr(num, "vmin") else int(-(num // -amt))


def round_up(num: int, amt: int) -> int:
    return ceildiv(num, amt) * amt


def round_down(num: int, amt: int) -> int:
    return num // amt * amt


def next_power2(x: int) -> int:
    return 1 << max(x - 1, 0).bit_length()


def cdiv(x: int, y: int) -> int:
    """x / y rounded towards 0, as C divides; 0 for y = 0."""
    if y == 0:
        return 0
    return abs(x) // abs(y) * (-1 if (x < 0) != (y < 0) else 1)


def cmod(x: int, y: int) -> int:
    """What cdiv() leaves."""
    return x - cdiv(x, y) * y


def polyN(x: Any, p: Any) -> Any:
    """The polynomial with these coefficients, the highest power's first (Horner)."""
    return functools.reduce(lambda total, coefficient: total * x + coefficient, p, 0.0)


# ---- bits

def floordiv(x: int, y: int) -> int:
    """x // y, 0 by 0."""
    return x // y if y else 0


def floormod(x: int, y: int) -> int:
    """What floordiv() leaves."""
    return x - floordiv(x, y) * y


def lo32(x: Any) -> Any:
    """The lower 32 bits."""
    return x & 0xFFFFFFFF


def hi32(x: Any) -> Any:
    """The bits above those."""
    return x >> 32


def data64(data: Any) -> tuple:
    return hi32(data), lo32(data)


def data64_le(data: Any) -> tuple:
    return lo32(data), hi32(data)


def getbits(value: int, start: int, end: int) -> int:
    """Bits start to end, both included."""
    return value >> start & ((1 << (end - start + 1)) - 1)


def i2u(bits: int, value: int) -> int:
    """A negative number as the unsigned one of the same bits."""
    return value % (1 << bits) if value < 0 else value


def pad_bytes(b: bytes, align: int) -> bytes:
    """With zeros behind it to a multiple of align."""
    return b + bytes(-len(b) % align)
