"""What a function can reach: TinyJit computes it before it captures, as a replay would not do so again."""
import functools
import types

from weft._core import Tensor

__all__ = ["realize_reachable"]

# Longer lists hold data rather than a model's layers.
_MOST_MEMBERS = 4096


def realize_reachable(f):
    """Computes the Tensors that f, what it closes over, its object and the globals it names hold and that have no
    memory yet, weights at random for instance."""
    found: dict[int, Tensor] = {}
    _visit(f, found, set())
    lazy = [t for t in found.values() if not t.is_realized]
    if lazy:
        lazy[0].realize(*lazy[1:])


def _visit(x, found: dict[int, Tensor], seen: set[int]):
    todo = [x]
    while todo:
        x = todo.pop()
        if id(x) in seen:
            continue
        seen.add(id(x))
        if isinstance(x, Tensor):
            found[id(x)] = x
        else:
            todo += _members(x)


def _members(x) -> list:
    if isinstance(x, types.MethodType):
        return [x.__self__, x.__func__]
    if isinstance(x, functools.partial):
        return [x.func, *x.args, *x.keywords.values()]
    if isinstance(x, types.FunctionType):
        cells = [cell.cell_contents for cell in x.__closure__ or () if cell != types.CellType()]
        defaults = [*(x.__defaults__ or ()), *(x.__kwdefaults__ or {}).values()]
        return cells + defaults + [x.__globals__[name] for name in x.__code__.co_names if name in x.__globals__]
    if isinstance(x, (list, tuple, dict)):
        members = list(x.values() if isinstance(x, dict) else x) if len(x) <= _MOST_MEMBERS else []
        return [m for m in members if not isinstance(m, (int, float, str, bytes))]
    if isinstance(x, (type, types.ModuleType)):
        return []
    return list(getattr(x, "__dict__", {}).values())
