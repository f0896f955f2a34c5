"""A model's tensors by name, and files of them."""
import os
from collections import OrderedDict

from weft import Tensor, _core

__all__ = ["get_parameters", "get_state_dict", "load_state_dict", "safe_load", "safe_load_metadata",
           "safe_save"]


def get_state_dict(obj, prefix: str = "", tensor_type=Tensor) -> dict[str, Tensor]:
    """Every Tensor of an object's attributes, of lists, tuples and dicts, by dotted names."""
    found: dict[str, Tensor] = {}
    _visit(obj, prefix.strip("."), tensor_type, found, set())
    return found


def _visit(obj, name: str, tensor_type, found: dict, above: set):
    if isinstance(obj, tensor_type):
        found[name] = obj
        return
    if id(obj) in above:  # a model that refers to itself
        return
    for key, member in _members(obj):
        _visit(member, f"{name}.{key}" if name else str(key), tensor_type, found, above | {id(obj)})


def _members(obj):
    if hasattr(obj, "_asdict"):
        return obj._asdict().items()
    if isinstance(obj, (dict, OrderedDict)):
        return obj.items()
    if isinstance(obj, (list, tuple)):
        return enumerate(obj)
    return obj.__dict__.items() if hasattr(obj, "__dict__") and not isinstance(obj, type) else ()


def get_parameters(obj) -> list[Tensor]:
    """The values of get_state_dict(); an optimizer leaves alone what is is_param_(False)."""
    return list(get_state_dict(obj).values())


def load_state_dict(model, state_dict: dict[str, Tensor], strict=True, verbose=True, consume=False,
                    realize=True) -> list[Tensor]:
    """Writes values into a model's tensors by name. Everything is compared first: names that are
    missing or unexpected (strict) and shapes that differ are one ValueError, and nothing is written."""
    own = get_state_dict(model)
    problems = []
    if strict:
        problems += [f"missing: {name}" for name in own if name not in state_dict]
        problems += [f"unexpected: {name}" for name in state_dict if name not in own]
    both = [name for name in own if name in state_dict]
    values = {name: _fitting(state_dict[name], own[name]) for name in both}
    problems += [f"{name}: {tuple(state_dict[name].shape)} does not fit {tuple(own[name].shape)}"
                 for name in both if values[name] is None]
    if problems:
        raise ValueError("load_state_dict: " + "; ".join(problems))
    for name in both:
        own[name].assign(values[name].to(own[name].device))
        if consume:
            del state_dict[name]
    changed = [own[name] for name in both]
    if realize and changed:
        changed[0].realize(*changed[1:])
    return changed


def _fitting(value: Tensor, into: Tensor):
    if value.shape == into.shape:
        return value
    # () and (1,) are one number either way.
    return value.reshape(into.shape) if {value.shape, into.shape} == {(), (1,)} else None


def safe_load(fn: str | os.PathLike) -> dict[str, Tensor]:
    """The tensors of a safetensors file (or index, or directory), mapped: read when used."""
    return _core.load_safetensors(os.fspath(fn))


def safe_load_metadata(fn: str | os.PathLike) -> dict[str, str]:
    """What a safetensors file says about itself."""
    return _core.safetensors_metadata(os.fspath(fn))


def safe_save(tensors: dict[str, Tensor], fn: str | os.PathLike, metadata: dict | None = None):
    """Realizes all tensors together and replaces the file atomically."""
    _core.save_safetensors(dict(tensors), os.fspath(fn),
                           {str(k): str(v) for k, v in (metadata or {}).items()})
