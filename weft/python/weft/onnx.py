"""ONNX models out and in: export() writes what a function of Tensors computes, OnnxRunner runs a model."""
import os
from collections.abc import Sequence
from typing import Any

from weft import Tensor, _core
from weft.contents import realize_reachable
from weft.nn.onnx import OnnxRunner
from weft.nn.state import get_state_dict

__all__ = ["OnnxRunner", "export"]


def export(function: Any, inputs: Any, path: Any = None, *, input_names: Any = None, output_names: Any = None,
           dynamic_axes: Any = None, opset: int = 20, external_data: bool = False, state: Any = None,
           name: str = "weft") -> bytes | None:
    """What function(*inputs) computes as an ONNX model: a file at path, replaced atomically, or its bytes.

    inputs is a Tensor, a list of them, or a dict of keyword arguments, whose names the model's inputs then have. The
    function is called once, with placeholders of their shapes and dtypes, and gives a Tensor, a list, or a dict, whose
    keys name the outputs. Tensors of an object with parameters become initialisers with the names of get_state_dict(),
    or those of `state`. dynamic_axes names sizes that may differ from run to run: {"x": {0: "batch"}} or {"x": [0]}.
    external_data puts large tensors into a file beside the model; above 2 GiB they lie there anyway.

        weft.onnx.export(model, Tensor.zeros(1, 3, 224, 224), "model.onnx", dynamic_axes={"input_0": {0: "batch"}})

    Random numbers (dropout while training), writes to Tensors and kernels of one's own cannot be exported: one
    ValueError says all that stands in the way."""
    keys = list(inputs) if isinstance(inputs, dict) else None
    given = [inputs] if isinstance(inputs, Tensor) else list(inputs.values() if keys else inputs)
    given = [x if isinstance(x, Tensor) else Tensor(x) for x in given]
    names = _names(input_names, keys)
    realize_reachable(function)
    found = get_state_dict(getattr(function, "__self__", function)) if state is None else state

    def traced(holes: Sequence[Tensor]) -> tuple[list[str], list[Tensor]]:
        y = function(**dict(zip(keys, holes))) if keys else function(*holes)
        results = [y] if isinstance(y, Tensor) else list(y.values() if isinstance(y, dict) else y)
        return _names(output_names, y if isinstance(y, dict) else None), results

    model = _core.OnnxExport.of(traced, given, names, list(found.items()), _axes(dynamic_axes), opset, name)
    if path is None:
        return model.bytes()
    model.save(os.fspath(path), external_data)
    return None


def _names(given: Any, keys: Any) -> list[str]:
    return list(given) if given is not None else list(keys or [])


def _axes(given: Any) -> dict[str, dict[int, str]]:
    """PyTorch's form: names by axes, or axes alone, which are named after the input."""
    return {name: axes if isinstance(axes, dict) else {axis: f"{name}_{axis}" for axis in axes}
            for name, axes in (given or {}).items()}
