"""Folders as they are published: config.json as a dataclass, weights by name, the tokenizer."""
import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

from weft import Tensor, nn

# What the weights of a folder are called, the best first: transformers', diffusers', and both in half precision.
WEIGHT_FILES = ("model.safetensors", "model.safetensors.index.json", "diffusion_pytorch_model.safetensors",
                "diffusion_pytorch_model.safetensors.index.json", "model.fp16.safetensors",
                "diffusion_pytorch_model.fp16.safetensors", "pytorch_model.bin", "diffusion_pytorch_model.bin")


def read_json(folder: str | Path, name: str, missing: Any = None) -> Any:
    """What a file of a folder says; `missing`, where that is given, if there is no such file."""
    path = Path(folder) / name
    if not path.is_file() and missing is not None:
        return missing
    return json.loads(path.read_text(encoding="utf-8"))


def configured(kind: type, values: dict[str, Any]) -> Any:
    """A configuration with those of the values that it has a field for."""
    names = {field.name for field in fields(kind)}
    return kind(**{name: value for name, value in values.items() if name in names and value is not None})


def read_weights(folder: str | Path) -> dict[str, Tensor]:
    """The tensors of a folder, which stay in the mapped file until they are used."""
    folder = Path(folder)
    for name in WEIGHT_FILES:
        if (folder / name).is_file():
            return (nn.state.torch_load if name.endswith(".bin") else nn.state.safe_load)(str(folder / name))
    raise FileNotFoundError(f"{folder} has no weights: none of {', '.join(WEIGHT_FILES)}")


def load(model: Any, folder: str | Path, renamed: dict[str, str] | None = None) -> Any:
    """The model with a folder's weights as float32. `renamed`: patterns of names in the file, and what takes their
    place in the model's names. A name that the file lacks is an error; what the model has no place for is left alone."""
    own, found = nn.state.get_state_dict(model), {}
    for name, value in read_weights(folder).items():
        for pattern, replacement in (renamed or {}).items():
            name = re.sub(pattern, replacement, name)
        if name in own:
            found[name] = _without_last_ones(value, own[name].ndim).float()
    nn.state.load_state_dict(model, found)
    return model


def _without_last_ones(x: Tensor, ndim: int) -> Tensor:
    """A product that was published as a convolution of size 1 has axes of 1 at its end."""
    while x.ndim > ndim and x.shape[-1] == 1:
        x = x.squeeze(-1)
    return x


class ByteTokenizer:
    """Stands in for the tokenizer of a model with random weights: a token for each byte of UTF-8, the numbers that
    are left at the end of the vocabulary for `first` and `last`."""

    def __init__(self, first: list[int], last: list[int], size: int) -> None:
        self.first, self.last, self.size = first, last, size

    def encode(self, text: str) -> list[int]:
        return self.first + [byte % self.size for byte in text.encode()] + self.last

    def decode(self, ids: list[int], skip_special_tokens: bool = True) -> str:
        return bytes(i for i in ids if i < self.size).decode(errors="replace")


def read_tokenizer(folder: str | Path) -> Any:
    """The tokenizer of a folder, which gives all tokens of a text and no others."""
    from weft import text
    tokenizer = text.Tokenizer.from_file(str(Path(folder) / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer
