"""ONNX models as functions of named tensors. https://onnx.ai"""
import os
from typing import Any

from weft import Tensor, _core

__all__ = ["OnnxRunner"]


class OnnxRunner:
    """A model out of an .onnx file: its path, its bytes, or a Tensor of them (as Tensor(path) is).

    The first call for inputs of given dtypes and shapes captures what it launches; later ones replay that. Models that
    must look at their data to know shapes run node by node. Weights stay in the mapped file.

        model = OnnxRunner("resnet50.onnx")
        scores = model({"data": Tensor.rand(1, 3, 224, 224)})["scores"]

    An operator that weft lacks is an error here, with all others that are missing and where they are."""

    def __init__(self, model: Any) -> None:
        if isinstance(model, (bytes, bytearray, memoryview)):
            model = Tensor(bytes(model))
        if isinstance(model, Tensor):
            self._model = _core.OnnxModel.of_bytes(model, "model")
        else:
            self._model = _core.OnnxModel.of_file(os.fspath(model))
        self._device: Any = None
        #: name: (kind, element type, shape), of inputs that have to be given
        self.graph_inputs = {name: (kind, type, shape) for name, kind, type, shape in self._model.inputs()}
        self.graph_outputs = tuple(name for name, *_ in self._model.outputs())

    def __call__(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """All outputs by name: Tensors; lists for sequences; None or what it holds for an optional; nested lists of
        str; (keys, values) for a map. Inputs are the same, or anything that Tensor() takes."""
        outputs = self._model({name: self._given(x) for name, x in inputs.items()})
        return {name: _shown(x) for name, x in outputs.items()}

    def state_dict(self) -> dict[str, Tensor]:
        """The model's Tensors of floats by the names of its initialisers: leaves, in memory of their own."""
        return dict(self._model.state_dict())

    def parameters(self) -> list[Tensor]:
        """What of state_dict() is trained. After this call outputs are not computed yet and backward() works through
        the model; the file is never written to. TinyJit of the step captures it. Set requires_grad to False on all of
        them to go back to captured calls.

            optimizer = nn.optim.Adam(model.parameters())
            ((model({"x": x})["y"] - wanted) ** 2).mean().backward()"""
        return list(self._model.parameters())

    def save(self, path: Any, external_data: bool = False) -> None:
        """Writes the model with its Tensors as they are now, to a file that is replaced atomically."""
        self._model.save(os.fspath(path), external_data)

    def to(self, device: Any) -> "OnnxRunner":
        """Inputs are moved to this device; weights follow them."""
        self._device = device
        return self

    def get_empty_input_data(self, device: Any = None, dtype: Any = None) -> dict[str, Any]:
        """Inputs of the declared shapes and dtypes, zeros; 1 for a size that the model leaves open."""
        def made(x: Any) -> Any:
            if not isinstance(x, Tensor):
                return _shown(x)
            x = x.cast(dtype) if dtype is not None else x
            return x.to(device) if device is not None else x
        return {name: made(x) for name, x in self._model.empty_inputs().items()}

    def _given(self, x: Any) -> Any:
        if x is None or isinstance(x, Tensor):
            return x.to(self._device) if x is not None and self._device is not None else x
        texts = _texts(x)
        if texts is not None:
            return texts
        if isinstance(x, list) and (not x or not isinstance(x[0], (bool, int, float))):
            return [self._given(element) for element in x]
        return self._given(Tensor(x))


def _texts(x: Any) -> Any:
    """(texts, shape) of a str or an array of them, None for anything else."""
    if isinstance(x, str):
        return [x], []
    if getattr(getattr(x, "dtype", None), "kind", "") in ("O", "U", "S"):
        flat = [t.decode() if isinstance(t, bytes) else str(t) for t in x.reshape(-1).tolist()]
        return flat, list(x.shape)
    return None


def _shown(x: Any) -> Any:
    if isinstance(x, list):
        return [_shown(element) for element in x]
    if isinstance(x, tuple) and isinstance(x[0], list) and isinstance(x[1], tuple):
        return _nested(x[0], x[1])
    return tuple(_shown(part) for part in x) if isinstance(x, tuple) else x


def _nested(flat: list[str], shape: tuple[int, ...]) -> Any:
    for size in reversed(shape[1:]):
        flat = [flat[i:i + size] for i in range(0, len(flat), size)] if size else []  # type: ignore[misc]
    return flat if shape else flat[0]
