"""What C++ and Python offer, side by side, made from the headers, docs/ops.md and the package:

    python tests/python/faces.py > docs/faces.md
"""
import pathlib
import re

import weft
import weft.data
from weft import Tensor, torch_names

SOURCE = pathlib.Path(__file__).parents[2]
PLACES = {"Tensor": Tensor, "weft.linalg": weft.linalg, "weft.fft": weft.fft, "weft.random": weft.random, "weft": weft}
# Python's way to say what has another name or form there.
RENAMED = {
    "from": "Tensor(data)", "of": "Tensor(data)", "from_bytes": "Tensor(bytes)", "const": "Tensor.const", "operator[]": "x[...]",
    "index": "x[...]", "index_put": "x[...] = y", "floor_div": "x // y", "pad_modes": "Tensor.pad(mode=)",
    "pads_from_last": "Tensor.pad", "max_pool2d_with_positions": "Tensor.max_pool2d(return_indices=True)",
    "vector_norm": "Tensor.norm", "fold": "Tensor.fold2d", "take_along_axis": "Tensor.take_along_dim", "content_hash": "Tensor.hash",
    "triangular_solve": "weft.linalg.solve_triangular", "sha256": "hashlib", "copy_from": "Tensor.assign", "copy_to": "Tensor.numpy", "to_vector": "Tensor.tolist", "zero_grad": "x.grad = None",
    "with_gradient": "weft.custom_gradient", "traced": "weft.function", "dims": "Tensor.shape", "random_key": "weft.random.key",
    "split_key": "weft.random.split", "keyed_bits": "weft.random.bits", "keyed_uniform": "weft.random.uniform", "polynomial": "helpers.polyN",
    "hann_window": "weft.fft.hann_window", "multi_step": "weft.nn.schedules.multi_step", "MaxPool": "weft.nn.MaxPool2d",
    "AvgPool": "weft.nn.AvgPool2d", "AdaptiveAvgPool": "weft.nn.AdaptiveAvgPool2d", "AdaptiveMaxPool": "weft.nn.AdaptiveMaxPool2d",
    "Conv": "weft.nn.Conv2d", "ConvTranspose": "weft.nn.ConvTranspose2d", "same_padding": "Conv2d(padding=\"same\")",
    "Recurrent": "weft.nn.RNN", "RecurrentCell": "weft.nn.RNNCell", "adamw": "weft.nn.optim.AdamW", "lamb": "weft.nn.optim.LAMB",
    "lars": "weft.nn.optim.LARS", "clip_gradient_norm": "weft.nn.gradients.clip_gradient_norm",
    "read_idx": "weft.nn.datasets.mnist", "read_safetensors": "weft.nn.state.safe_load", "save_tensors": "weft.nn.state.safe_save",
    "load_tensors": "weft.nn.state.safe_load", "load_gguf": "weft.nn.state.gguf_load", "save_gguf": "weft.nn.state.gguf_save",
    "product_with": "weft.nn.state.product_with",
}
# In C++ alone, and why.
CPP_ONLY = {"alu": "no operation of users'", "decode_hevc_frame": "in neither", "rank": ""}
LAYERS = ("layers.h", "convolution.h", "normalisation.h", "pooling.h", "recurrent.h", "attention.h", "sequential.h")
# Options and parts of layers, which in Python are keyword arguments and attributes.
PARTS = {"PoolAxes", "PlaceAxes", "WithAxes", "Result", "AnyStep", "Holder", "Visible", "Optimizer"}


def python_name(name: str) -> str | None:
    """How Python has what C++ calls so."""
    if name in RENAMED:
        return RENAMED[name]
    if not re.fullmatch(r"\w+", name):
        return f"x {name} y"
    return next((f"{place}.{name}" for place, holder in PLACES.items() if hasattr(holder, name)), None)


def functions() -> list[tuple[str, str, str | None]]:
    """(name, header, Python's name) of docs/ops.md."""
    text = (SOURCE / "docs" / "ops.md").read_text().split("# Functions\n", 1)[1]
    rows = re.findall(r"^\| `([^`]+)` \| (?:\[([^]]+)\]|(no) \||([^|]+) \|$)", text, flags=re.M)
    return [(name.replace("\\", ""), header or ("no" if no else "derived.def"), python_name(name.replace("\\", ""))) for name, header, no, _ in rows
            if header != "Python" and not no]


def declared(path: pathlib.Path) -> list[str]:
    """Structs, classes, their aliases and free functions of a header of nn/."""
    text = path.read_text()
    found = re.findall(r"^(?:struct|class) (\w+)(?=[ :{]).*[{:]", text, flags=re.M) + re.findall(r"^using (\w+) = ", text, flags=re.M)
    found += re.findall(r"^(?:Schedule|Tensor|void|std::vector<Tensor>|Adam|SGD) (\w+)\(", text, flags=re.M)
    return [name for name in dict.fromkeys(found) if name not in PARTS and not name.endswith("Options") and not name.endswith("State")]


def networks() -> list[tuple[str, str, str | None]]:
    """The same of nn/: layers, optimizers, schedules, what is between backward() and step()."""
    from weft import nn
    groups = {"weft.nn": (nn, LAYERS), "weft.nn.optim": (nn.optim, ("sgd.h", "adam.h", "adaptive.h", "optimizer.h")),
              "weft.nn.schedules": (nn.schedules, ("schedules.h",)), "weft.nn.gradients": (nn.gradients, ("gradients.h",)),
              "weft.nn.ema": (nn.ema, ("ema.h",))}
    rows = []
    for place, (holder, headers) in groups.items():
        for header in headers:
            for name in declared(SOURCE / "weft" / "nn" / header):
                if name in ("check_option", "trust_ratio", "LrController", "Recurrence", "Activation", "Schedule"):
                    continue
                rows.append((name, f"nn/{header}", f"{place}.{name}" if hasattr(holder, name) else RENAMED.get(name)))
    return rows


def data() -> list[tuple[str, str, str | None]]:
    """Of io/, and what is for files of packed weights: data sets and files."""
    known = {"data_loader.h": ["DataLoader"], "csv.h": ["read_csv", "parse_csv", "CsvTable"], "pictures.h": ["read_picture", "parse_picture"],
             "picture_folder.h": ["PictureFolder"], "cifar.h": ["read_cifar"], "npy.h": ["read_npy", "save_npy"], "idx.h": ["read_idx"],
             "tensors.h": ["save_tensors", "load_tensors"], "gguf_model.h": ["load_gguf"], "gguf.h": ["save_gguf"],
             "tensor/packed.h": ["product_with"]}
    return [(name, header if "/" in header else f"io/{header}", f"weft.data.{name}" if hasattr(weft.data, name) else RENAMED.get(name))
            for header, names in known.items() for name in names]


def texts() -> list[tuple[str, str, str | None]]:
    """Of text/: tokenizers, read and learnt."""
    from weft import text
    known = {"tokenizer.h": ["Tokenizer", "Encoding", "DecodeStream"], "train_bpe.h": ["BpeTrainer"]}
    return [(name, f"text/{header}", f"weft.text.{name}" if hasattr(text, name) else None) for header, names in known.items() for name in names]


def page() -> str:
    lines = ["# Faces", "", "What C++ and Python offer, side by side; C has what is a function (`tests/c` fails where one is missing). Made by",
             "`tests/python/faces.py`; `tests/python/test_faces.py` fails where Python has nothing.", ""]
    for title, rows in (("Functions", functions()), ("Networks", networks()), ("Data", data()), ("Texts", texts())):
        lines += [f"## {title}", "", "| C++ | where | Python |", "|---|---|---|"]
        lines += [f"| `{name}` | {header} | `{python}` |".replace("`x | y`", "`x \\| y`").replace("`|`", "`\\|`")
                  for name, header, python in dict.fromkeys(rows)]
        lines.append("")
    names = sorted(torch_names.members())
    lines += ["## In Python alone", "", "PyTorch's names for what has another one, or is a line of others (`weft/python/weft/torch_names.py`):",
              ", ".join(f"`{name}`" for name in names) + "."]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(page(), end="")
