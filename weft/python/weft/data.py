"""Data sets: batches that a thread fetches ahead, tables of CSV, pictures, NumPy's files."""
from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from weft import Tensor, _core

__all__ = ["CsvTable", "DataLoader", "PictureFolder", "parse_csv", "parse_picture", "read_cifar", "read_csv",
           "read_npy", "read_picture", "resized_picture", "save_npy"]


class DataLoader:
    """Batches of a data set: lists of tensors with the batch as first axis.

        for x, y in DataLoader((images, labels), batch_size=64, shuffle=True):
            step(x, y)

    data: arrays or tensors that have the same first axis; or a number of rows, and `fetch`, which gives arrays of the
    rows with these numbers; or an object with len() whose members are rows (a number or an array, or a tuple of such).
    A thread fetches `prefetch` batches ahead; 0: none, and no thread. The order of an epoch depends on the seed and
    its number alone, on every machine; each iteration is the next epoch.
    """

    def __init__(self, data: Any, batch_size: int = 32, shuffle: bool = False, seed: int = 0, drop_last: bool = False,
                 prefetch: int = 2, fetch: Callable[[list[int]], Sequence[Any]] | None = None) -> None:
        self.batch_size, self.shuffle, self.seed = batch_size, shuffle, seed
        self.drop_last, self.prefetch = drop_last, prefetch
        self.next_epoch = 0
        self._core = self._loader(data, fetch, (batch_size, shuffle, seed, drop_last, prefetch))

    @staticmethod
    def _loader(data: Any, fetch: Any, options: tuple) -> _core.DataLoader:
        if isinstance(data, PictureFolder):
            return data._core.loader(*options)
        if fetch is not None:
            return _core.DataLoader(data if isinstance(data, int) else len(data), fetch, *options)
        if hasattr(data, "__array__"):
            return _core.DataLoader.of_arrays([data], *options)
        if isinstance(data, (tuple, list)):
            return _core.DataLoader.of_arrays(list(data), *options)
        if not hasattr(data, "__getitem__") or not hasattr(data, "__len__"):
            raise TypeError(f"DataLoader takes arrays, a number of rows with fetch=, or an object with len() and rows, "
                            f"not a {type(data).__name__}")
        return _core.DataLoader(len(data), lambda rows: _collated([data[i] for i in rows]), *options)

    def __len__(self) -> int:
        """Batches in each epoch."""
        return self._core.batches()

    def order(self, epoch: int) -> list[int]:
        """The numbers of all rows in an epoch's order."""
        return self._core.order(epoch)

    def epoch(self, epoch: int, first_batch: int = 0) -> Iterator[list[Tensor]]:
        """The batches of one epoch, from one on that is not the first where a training is resumed."""
        return iter(self._core.epoch(epoch, first_batch))

    def __iter__(self) -> Iterator[list[Tensor]]:
        self.next_epoch += 1
        return self.epoch(self.next_epoch - 1)


def _collated(rows: list[Any]) -> list[Any]:
    """One array for each part of a row."""
    import numpy as np
    if not isinstance(rows[0], (tuple, list)):
        rows = [(row,) for row in rows]
    return [np.stack([np.asarray(part) for part in parts]) for parts in zip(*rows)]


# ---- tables

class CsvTable:
    """Columns by name: table["price"]. int64 where every field is an integer, float64 where it is a number or empty
    (NaN), else int32, each field's place in categories(name)."""

    def __init__(self, core: _core.CsvTable) -> None:
        self._core = core

    @property
    def names(self) -> list[str]:
        return self._core.names()

    def __len__(self) -> int:
        """How many rows there are."""
        return self._core.rows()

    def __getitem__(self, name: str) -> Tensor:
        return self._core.column(name)

    def categories(self, name: str) -> list[str]:
        """The texts of a column, in order of appearance; none of a column of numbers."""
        return self._core.categories(name)

    def matrix(self, names: Sequence[str] = ()) -> Tensor:
        """float32 (rows, names), categories as their numbers; all columns where none is named."""
        return self._core.matrix(list(names))


def read_csv(path: str | os.PathLike, delimiter: str = ",", header: bool = True) -> CsvTable:
    """A table of RFC 4180. With header the first record names the columns; else they are "0", "1", ..."""
    return CsvTable(_core.read_csv(os.fspath(path), delimiter, header))


def parse_csv(text: str, delimiter: str = ",", header: bool = True) -> CsvTable:
    """The same of a text."""
    return CsvTable(_core.parse_csv(text, delimiter, header))


# ---- pictures

def read_picture(path: str | os.PathLike, channels: int = 0) -> Tensor:
    """(height, width, channels) of a PNG or JPEG (where libturbojpeg is installed): uint8, or uint16 of a PNG with 16
    bits. channels: 1, 3, 4, or 0 for what the file has."""
    return _core.read_picture(os.fspath(path), channels)


def parse_picture(data: bytes, channels: int = 0) -> Tensor:
    """The same of a file's bytes."""
    return _core.parse_picture(data, channels)


def resized_picture(picture: Tensor, height: int, width: int) -> Tensor:
    """A picture of another size, each pixel from the four that are nearest."""
    return _core.resized_picture(picture, height, width)


class PictureFolder:
    """A directory with a folder of pictures for each class, which are 0, 1, ... in the order of their names. Batches
    of DataLoader(folder) are uint8 (n, channels, height, width) and int32 (n,). Every picture is resized to height
    and width; 0: all must have one size."""

    def __init__(self, directory: str | os.PathLike, height: int = 0, width: int = 0, channels: int = 3) -> None:
        self._core = _core.PictureFolder(os.fspath(directory), height, width, channels)

    def __len__(self) -> int:
        return self._core.size()

    @property
    def classes(self) -> list[str]:
        return self._core.classes()

    def path(self, picture: int) -> str:
        return self._core.path(picture)

    def label(self, picture: int) -> int:
        return self._core.label(picture)

    def __getitem__(self, picture: int) -> tuple[Tensor, int]:
        """(channels, height, width) and its class."""
        if not 0 <= picture < len(self):
            raise IndexError(f"picture {picture} of {len(self)}")
        return self._core.fetch([picture])[0][0], self.label(picture)


# ---- files of arrays

def read_npy(path: str | os.PathLike) -> Tensor:
    """A file of numpy.save()."""
    return _core.read_npy(os.fspath(path))


def save_npy(path: str | os.PathLike, x: Tensor) -> None:
    """What numpy.load() reads; replaces the file atomically."""
    _core.save_npy(os.fspath(path), x)


def read_cifar(directory: str | os.PathLike, classes: int = 10, train: bool = True) -> tuple[Tensor, Tensor]:
    """The training or the test images of CIFAR-10 or -100 in their binary form: uint8 (n, 3, 32, 32), labels (n,)."""
    return _core.read_cifar(os.fspath(directory), classes, train)
