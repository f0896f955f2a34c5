"""A model's tensors by name, and files of them."""
import json
import os
from collections import OrderedDict
from typing import Any

from weft import Tensor, _core, dtypes
from weft.nn.archives import (TensorIO, accept_filename, decompress, npy_load, npz_load, npz_save, tar_extract,
                              zip_extract)
from weft.nn.gguf import ggml_data_to_tensor, gguf_load, gguf_save, product_with
from weft.nn.torch_files import torch_load, torch_save

__all__ = ["TensorIO", "decompress", "fs_load", "fs_store", "get_parameters", "get_state_dict", "ggml_data_to_tensor",
           "gguf_load", "gguf_save", "load_state_dict", "npy_load", "npz_load", "npz_save", "product_with", "safe_load",
           "safe_load_metadata", "safe_save", "tar_extract", "torch_load", "torch_save", "zip_extract"]


def get_state_dict(obj: Any, prefix: str = "", tensor_type: Any = Tensor) -> dict[str, Tensor]:
    """Every Tensor of an object's attributes, of lists, tuples and dicts, by dotted names."""
    found: dict[str, Tensor] = {}
    _visit(obj, prefix.strip("."), tensor_type, found, set())
    return found


def _visit(obj: Any, name: str, tensor_type: Any, found: dict, above: set) -> None:
    if isinstance(obj, tensor_type):
        found[name] = obj
        if isinstance(obj, Tensor):
            _core.name_tensor(obj, name)  # for recordings
        return
    if id(obj) in above:  # a model that refers to itself
        return
    for key, member in _members(obj):
        _visit(member, f"{name}.{key}" if name else str(key), tensor_type, found, above | {id(obj)})


def _members(obj: Any) -> Any:
    if hasattr(obj, "_asdict"):
        return obj._asdict().items()
    if isinstance(obj, (dict, OrderedDict)):
        return obj.items()
    if isinstance(obj, (list, tuple)):
        return enumerate(obj)
    return obj.__dict__.items() if hasattr(obj, "__dict__") and not isinstance(obj, type) else ()


def get_parameters(obj: Any) -> list[Tensor]:
    """The values of get_state_dict(); an optimizer leaves alone what is is_param_(False)."""
    return list(get_state_dict(obj).values())


def load_state_dict(model: Any, state_dict: dict[str, Tensor], strict: bool = True, verbose: bool = True,
                    consume: bool = False, realize: bool = True) -> list[Tensor]:
    """Writes values into a model's tensors by name. Everything is compared first: names that are
    missing or unexpected (strict) and shapes that differ are one ValueError, and nothing is written."""
    own = get_state_dict(model)
    problems = []
    if strict:
        problems += [f"missing: {name}" for name in own if name not in state_dict]
        problems += [f"unexpected: {name}" for name in state_dict if name not in own]
    both = [name for name in own if name in state_dict]
    values = {name: _fitting(state_dict[name], own[name]) for name in both}
    problems += [f"Shape mismatch in layer `{name}`: Expected shape {tuple(own[name].shape)}, but found "
                 f"{tuple(state_dict[name].shape)} in state dict." for name in both if values[name] is None]
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


def _fitting(value: Tensor, into: Tensor) -> Any:
    if value.shape == into.shape:
        return value
    # () and (1,) are one number either way.
    return value.reshape(into.shape) if {value.shape, into.shape} == {(), (1,)} else None


# https://github.com/huggingface/safetensors#format
def safe_load(fn: Tensor | str | os.PathLike) -> dict[str, Tensor]:
    """The tensors of a safetensors file (or index, or directory), mapped: read when used. Or of a file's bytes."""
    if not isinstance(fn, Tensor):
        return _core.load_safetensors(os.fspath(fn))
    try:
        return _core.parse_safetensors(fn, "safe_load")
    except RuntimeError as error:
        raise ValueError(str(error)) from None


@accept_filename
def safe_load_metadata(t: Tensor) -> tuple[Tensor, int, dict]:
    """(the file's bytes, where the tensors' data starts in them, the header: names, dtypes, shapes, offsets, and
    "__metadata__", what the file says about itself)."""
    with TensorIO(t) as file:
        size = int.from_bytes(file.read(8), "little")
        if size > t.numel() - 8:
            raise ValueError(f"safe_load: a header of {size} bytes in a file of {t.numel()}")
        try:
            header = json.loads(file.read(size), object_pairs_hook=_without_duplicates)
        except ValueError as error:
            raise ValueError(f"safe_load: the header is no JSON: {error}") from error
    if not isinstance(header, dict):
        raise ValueError("safe_load: the header is no object")
    return t, 8 + size, header


def _without_duplicates(pairs: list[tuple[str, object]]) -> dict:
    names = dict(pairs)
    if len(names) < len(pairs):
        twice = next(name for i, (name, _) in enumerate(pairs) if name in dict(pairs[:i]))
        raise ValueError(f"{twice!r} is listed twice")
    return names


def safe_save(tensors: dict[str, Tensor], fn: str | os.PathLike, metadata: dict | None = None) -> None:
    """Realizes all tensors together and replaces the file atomically."""
    _core.save_safetensors(dict(tensors), os.fspath(fn),
                           {str(k): str(v) for k, v in (metadata or {}).items()})


# ---- contents by their hash

def _stored(digest: bytes) -> Any:
    """Where contents of this hash lie: in a folder of this machine."""
    import pathlib
    root = _core.option("CACHE_DIR") or os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(root) / "weft" / "contents" / digest.hex()


def fs_store(t: Tensor) -> Tensor:
    """Keeps a tensor's bytes; 16 bytes that fs_load() finds them by, their Tensor.hash()."""
    data = t.contiguous().bitcast(dtypes.uint8).flatten()
    digest = data.hash().realize()
    path = _stored(bytes(digest.data()))
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}")
        part.write_bytes(data.data())
        part.replace(path)
    return digest


def fs_load(t: Tensor, size: int) -> Tensor:
    """The first `size` bytes of what fs_store() kept under these 16 bytes."""
    path = _stored(bytes(t.data()))
    if not path.is_file():
        raise FileNotFoundError(f"no contents are stored as {path.name}")
    found = Tensor(path)
    if size > found.numel():
        raise ValueError(f"{size} bytes of contents that have {found.numel()}")
    return found[:size]
