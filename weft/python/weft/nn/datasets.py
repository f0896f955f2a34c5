"""Data sets that are small enough to learn with."""
import os
import pathlib
from typing import Any

from weft import Tensor, _core

__all__ = ["cifar", "mnist"]

# Where Debian's dataset-fashion-mnist puts it.
_FASHION_FOLDER = "/usr/share/datasets/fashion-mnist"
_URLS = {False: "https://storage.googleapis.com/cvdf-datasets/mnist/",
         True: "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"}
_FILES = ["train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte",
          "t10k-labels-idx1-ubyte"]


def mnist(device: Any = None, fashion: bool = False, folder: Any = None) -> Any:
    """(X_train, Y_train, X_test, Y_test): uint8 images (n, 1, 28, 28) and labels (n,). Read from
    `folder` where it is given, for fashion=True from Debian's package, else downloaded once."""
    arrays = [Tensor(_core.load_idx(_file(name, fashion, folder)), device=device) for name in _FILES]
    for i in (0, 2):
        arrays[i] = arrays[i].reshape(-1, 1, 28, 28)
    return tuple(arrays)


def cifar(device: Any = None, folder: Any = None) -> Any:
    """(X_train, Y_train, X_test, Y_test): CIFAR-10's uint8 images (n, 3, 32, 32) and labels (n,). From the binary
    version in `folder` (data_batch_1.bin ...) where it is given, else downloaded once."""
    root = pathlib.Path(folder) if folder else _cifar_folder()
    train = Tensor.cat(*[_cifar_part(root / f"data_batch_{i}.bin", device) for i in range(1, 6)])
    test = _cifar_part(root / "test_batch.bin", device)
    return tuple(part for rows in (train, test) for part in (rows[:, 1:].reshape(-1, 3, 32, 32), rows[:, 0]))


def _cifar_folder() -> pathlib.Path:
    from weft.helpers import fetch
    return fetch("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz", gunzip=True,
                 extract=True) / "cifar-10-batches-bin"


def _cifar_part(path: pathlib.Path, device: Any) -> Tensor:
    """Rows of a label and 3 * 32 * 32 bytes of an image."""
    rows = Tensor(path, device=device)
    if rows.numel() % 3073:
        raise ValueError(f"{path} has {rows.numel()} bytes, which are no rows of 3073")
    return rows.reshape(-1, 3073)


def _file(name: str, fashion: bool, folder: Any) -> str:
    folders = [folder] if folder else [_FASHION_FOLDER] if fashion else []
    for place in folders:
        for ending in ("", ".gz"):
            path = pathlib.Path(place) / (name + ending)
            if path.is_file():
                return os.fspath(path)
        if folder:
            raise FileNotFoundError(f"{folder} has no {name} or {name}.gz")
    from weft.helpers import fetch
    return os.fspath(fetch(_URLS[fashion] + name + ".gz",
                           name=("fashion-" if fashion else "") + name + ".gz", subdir="mnist"))
