"""What Python objects hold, as far as a captured function depends on it: what it is given, and what it can reach."""
import copyreg
import enum
import functools
import hashlib
import marshal
import os
import types
from collections import deque

from weft._core import DType, Tensor, TinyJit

__all__ = ["attributes", "look_into", "realize_reachable"]

_CONTAINERS = (list, tuple, dict, set, frozenset, deque, types.MappingProxyType)
_NAMED = (type, types.ModuleType, types.BuiltinFunctionType)
_POINTER = 8
_MOST_MEMBERS = 4096  # longer lists hold data rather than a model's layers
_slotnames = getattr(copyreg, "_slotnames")  # pickle's own; the stubs of the standard library leave it out


def look_into(x) -> tuple[str, list]:
    """What x is as text, two texts differ where a function could tell the objects apart, and its members, each with
    what its name adds to x's. Containers say nothing of themselves. A TypeError where x cannot be looked into."""
    members = _members_of(x)
    if isinstance(x, _CONTAINERS) or (members and members[0][0].endswith("__self__")):
        return "", members
    return _text_of(x), members


def attributes(x) -> dict | None:
    """What an instance of classes written in Python is made of, in the order of names; None for other things. What
    TinyJit keeps there is its own."""
    return _attributes(x) if _is_object(x) else None


def realize_reachable(f):
    """Computes the Tensors that f, what it closes over, its object and the globals it names hold and that have no
    memory yet, weights at random for instance: a replay would not do so again."""
    todo, seen, lazy = [f], {}, []
    while todo:
        x = todo.pop()
        if id(x) in seen:
            continue
        seen[id(x)] = x  # alive, so that no id is used again
        if not isinstance(x, Tensor):
            todo += _reachable_from(x)
        elif not x.is_realized:
            lazy.append(x)
    if lazy:
        lazy[0].realize(*lazy[1:])


def _reachable_from(x) -> list:
    if isinstance(x, _CONTAINERS) and len(x) > _MOST_MEMBERS:
        return []
    if isinstance(x, (set, frozenset)):
        return list(x)
    found = [member for _, member in _members_of(x)]
    if isinstance(x, types.FunctionType):
        found += [x.__globals__[name] for name in x.__code__.co_names if name in x.__globals__]
    elif not found and not isinstance(x, _NAMED):
        found += getattr(x, "__dict__", {}).values()
    return [member for member in found if not isinstance(member, (int, float, str, bytes))]


def _is_object(x) -> bool:
    return (not isinstance(x, (*_CONTAINERS, *_NAMED, enum.Enum, types.FunctionType, TinyJit, Tensor))
            and not _is_array(x) and _has_no_more_than_attributes(x))


def _attributes(x) -> dict:
    found = {name: getattr(x, name) for name in _slotnames(type(x)) if hasattr(x, name)}
    found.update(getattr(x, "__dict__", {}))
    return {name: found[name] for name in sorted(found) if not isinstance(found[name], TinyJit)}


def _members_of(x) -> list:
    if isinstance(x, (dict, types.MappingProxyType)):
        return [(f"[{key!r}]", member) for key, member in x.items()] + _own(x)
    if isinstance(x, (set, frozenset)):
        return [("{}", tuple(sorted(x, key=repr)))] if all(_is_value(m) for m in x) else _refuse(x, "its order is no order")
    if isinstance(x, (list, tuple, deque)):
        return [(f"[{i}]", member) for i, member in enumerate(x)] + _own(x)
    if isinstance(x, types.MethodType):
        return [(".__self__", x.__self__), (".__func__", x.__func__)]
    if isinstance(x, types.FunctionType):
        cells = zip(x.__code__.co_freevars, x.__closure__ or ())
        return [("." + name, cell.cell_contents) for name, cell in cells if cell != types.CellType()] + [
            (".__defaults__", x.__defaults__), (".__kwdefaults__", x.__kwdefaults__)]
    if isinstance(x, functools.partial):
        return [(".func", x.func), (".args", x.args), (".keywords", x.keywords)]
    if isinstance(x, slice):
        return [(".start", x.start), (".stop", x.stop), (".step", x.step)]
    return _own(x) if _is_object(x) else []


def _own(x) -> list:
    return [(f".{name}", member) for name, member in _attributes(x).items()]


def _text_of(x) -> str:
    if isinstance(x, enum.Enum):
        return f"{_name_of(type(x))}.{x.name}"
    if isinstance(x, _NAMED):
        return f"the {_name_of(x)}"
    if isinstance(x, types.FunctionType):
        return f"the function {_name_of(x)}, {marshal.dumps(x.__code__)!r}"
    if isinstance(x, (functools.partial, slice)):
        return f"a {type(x).__name__}"
    if isinstance(x, TinyJit):
        return "a TinyJit"
    if isinstance(x, os.PathLike):
        return repr(os.fspath(x))
    if _is_array(x):
        return _text_of_array(x)
    if _is_object(x):
        return f"a {_name_of(type(x))}"
    if _is_value(x):
        return f"{_name_of(type(x))} {x!r}"
    return _refuse(x, "there is no way to see what it holds")


def _name_of(x) -> str:
    return f"{getattr(x, '__module__', '')}.{getattr(x, '__qualname__', x.__name__)}"


def _is_array(x) -> bool:
    return not isinstance(x, type) and (hasattr(x, "__array__") or hasattr(x, "__dlpack__"))


def _text_of_array(x) -> str:
    """Its elements, as much a part of a capture as numbers are."""
    if getattr(x, "ndim", None) == 0 and hasattr(x, "item"):
        return repr(x.item())
    if type(x).__module__ == "numpy" and not x.dtype.hasobject:
        return f"an array of {x.dtype} {x.shape} {hashlib.blake2b(x.tobytes(), digest_size=16).hexdigest()}"
    return _refuse(x, "it is no Tensor")


def _is_value(x) -> bool:
    """Whether x compares by value and shows all of it: numbers, dates, dtypes."""
    kind = type(x)
    by_value = kind.__eq__ is not object.__eq__ and kind.__hash__ not in (None, object.__hash__)
    return (by_value or isinstance(x, (enum.Enum, DType))) and " at 0x" not in repr(x)


def _has_no_more_than_attributes(x) -> bool:
    """An object is as large as its attributes need; one that a library made holds something else besides."""
    kind = type(x)
    size = object.__basicsize__ + _POINTER * len(_slotnames(kind))
    size += _POINTER * ((kind.__dictoffset__ > 0) + (kind.__weakrefoffset__ > 0))
    return kind is not object and kind.__itemsize__ == 0 and kind.__basicsize__ <= size


def _refuse(x, why: str):
    raise TypeError(f"a {type(x).__module__}.{type(x).__qualname__}: {why}")
