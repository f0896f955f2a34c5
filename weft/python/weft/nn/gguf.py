"""GGUF files: a model's metadata, and its weights, which stay packed until they are used."""
import os
from collections.abc import Mapping
from typing import Any

from weft import Tensor, _core, dtypes

__all__ = ["ggml_data_to_tensor", "gguf_load", "gguf_save", "product_with"]

_PLAIN = {"F32": dtypes.float32, "F16": dtypes.float16, "BF16": dtypes.bfloat16, "F64": dtypes.float64,
          "I8": dtypes.int8, "I16": dtypes.int16, "I32": dtypes.int32, "I64": dtypes.int64}


def gguf_load(fn: Tensor | str | os.PathLike) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """(metadata, tensors) of a GGUF file, of the first part of a split one, or of a file's bytes.

    The file is mapped. A packed weight is an expression that decodes to float32 where it is used: the product that
    it is used in reads the packed bytes. Call .realize() or .contiguous() for the numbers themselves."""
    if isinstance(fn, Tensor):
        try:
            metadata, packed = _core.parse_gguf(fn, "gguf_load")
        except RuntimeError as error:
            raise ValueError(str(error)) from None
    else:
        metadata, packed = _core.load_gguf(os.fspath(fn))
    return metadata, {name: _decoded(*entry) for name, entry in packed.items()}


def _decoded(packed: Tensor, codec: str, shape: tuple[int, ...]) -> Tensor:
    return packed if codec in _PLAIN else _core.decode(packed, codec, shape, "float32")


def product_with(x: Tensor, weight: Tensor, factors: str = "f32") -> Tensor:
    """x @ weight.T in float32, of factors that are rounded first: "f32" not at all, "bf16", or "q8", by which x is rounded
    to 8 bits in blocks of 32 and multiplied with the codes of a packed weight as gguf_load() gives it; "auto": q8 where
    the machine multiplies bytes. Bounds of the error are in docs/packed.md."""
    return _core.product_with(x, weight, factors)


def ggml_data_to_tensor(t: Tensor, n: int, ggml_type: int) -> Tensor:
    """The first n numbers in packed bytes, by ggml's number of the type, decoded where they are used."""
    rows = {number: rest for number, *rest in _core.codecs()}
    if ggml_type not in rows:
        raise ValueError(f"GGML type {ggml_type} is not supported; there are {sorted(rows)}")
    name, elements, size = rows[ggml_type]
    if n % elements:
        raise ValueError(f"{name} has blocks of {elements}, which do not make up {n}")
    data = t.flatten().bitcast("uint8")
    return _core.decode(data[:n // elements * size], name, (n,), _PLAIN.get(name, dtypes.float32))


def gguf_save(tensors: Mapping[str, Tensor], fn: str | os.PathLike, metadata: Mapping[str, Any] | None = None,
              types: str | Mapping[str, str] | None = None) -> None:
    """Replaces the file atomically. `types` names ggml's type of all tensors ("Q8_0"), or of some by name; others keep
    their dtype. A packed type needs a last axis of whole blocks. Metadata: texts, bools, numbers, and lists of one of
    them; whole numbers are written as u32 where they fit, others as f32."""
    def type_of(name: str, t: Tensor) -> str:
        if isinstance(types, str):
            return types
        return (types or {}).get(name) or _own_type(name, t)

    _core.save_gguf(os.fspath(fn), dict(metadata or {}), [(name, t, type_of(name, t)) for name, t in tensors.items()])


def _own_type(name: str, t: Tensor) -> str:
    found = next((codec for codec, dtype in _PLAIN.items() if t.dtype == dtype), None)
    if found is None:
        raise ValueError(f"{name!r} is {t.dtype}, which GGUF files do not have: cast it, or name a type")
    return found
