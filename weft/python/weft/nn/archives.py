"""Files in a Tensor of bytes: read as a file; zip and tar archives, NumPy's files and compressed ones as Tensors."""
import functools
import io
import os
import pathlib

from weft import Tensor, _core, dtypes

__all__ = ["TensorIO", "accept_filename", "decompress", "npy_load", "npz_load", "npz_save", "tar_extract",
           "zip_extract"]


class TensorIO(io.RawIOBase):
    """A one-dimensional uint8 Tensor as a file that is open for reading."""

    def __init__(self, t: Tensor):
        if t.ndim != 1 or t.dtype != dtypes.uint8:
            raise ValueError(f"a 1-D uint8 Tensor can be read as a file, not {t.dtype} of shape {t.shape}")
        self._bytes = t.data() if t.numel() else memoryview(b"")
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        part = self._bytes[self._at:self._at + len(buffer)]
        buffer[:len(part)] = part
        self._at += len(part)
        return len(part)

    def seek(self, offset: int, whence: int = 0) -> int:
        start = {0: 0, 1: self._at, 2: len(self._bytes)}[whence]
        self._at = min(max(start + offset, 0), len(self._bytes))
        return self._at


def accept_filename(function):
    """The function, of a Tensor of a file's bytes, also of the file's name: then the bytes are mapped."""
    @functools.wraps(function)
    def call(t, *args, **kwargs):
        return function(Tensor(pathlib.Path(t)) if isinstance(t, (str, os.PathLike)) else t, *args, **kwargs)
    return call


def _kind(error: RuntimeError, damaged: type[Exception]) -> type[Exception]:
    return ValueError if "max_bytes" in str(error) else damaged


@accept_filename
def zip_extract(t: Tensor, max_bytes: int | None = None) -> dict[str, Tensor]:
    """The members of a zip archive by name, as bytes. What is stored uncompressed stays where it is. An archive whose
    members decompress to more than max_bytes, else to 256 MiB and to 100 times its own size, is a ValueError; one
    whose directory and members differ, or with bytes around them, a zipfile.BadZipFile."""
    try:
        return _core.unzip(t, "zip_extract", max_bytes or 0)
    except RuntimeError as error:
        import zipfile
        raise _kind(error, zipfile.BadZipFile)(str(error)) from None


@accept_filename
def tar_extract(t: Tensor, max_bytes: int | None = None) -> dict[str, Tensor]:
    """The regular files of a tar archive by name, as bytes. Those of an uncompressed one stay where they are; gzip and
    zstd are decompressed. Limits are those of zip_extract(); what is no such archive is a tarfile.ReadError."""
    try:
        return _core.untar(t, "tar_extract", max_bytes or 0)
    except RuntimeError as error:
        import tarfile
        raise _kind(error, tarfile.ReadError)(str(error)) from None


def _read(function, t: Tensor, what: str, *args):
    try:
        return function(t, what, *args)
    except RuntimeError as error:
        raise ValueError(str(error)) from None


@accept_filename
def npy_load(t: Tensor) -> Tensor:
    """The array of a file of numpy.save(), mapped. A ValueError for what is none, and for objects."""
    return _read(_core.load_npy, t, "npy_load")


@accept_filename
def npz_load(t: Tensor, max_bytes: int | None = None) -> dict[str, Tensor]:
    """The arrays of a file of numpy.savez() or savez_compressed() by name."""
    return _read(_core.load_npz, t, "npz_load", max_bytes or 0)


def npz_save(tensors: dict[str, Tensor], fn: str | os.PathLike) -> None:
    """Realizes all tensors together and replaces the file atomically; numpy.load() reads it."""
    _core.save_npz(dict(tensors), os.fspath(fn))


@accept_filename
def decompress(t: Tensor, max_bytes: int | None = None) -> Tensor:
    """The content of a gzip or zstd file as bytes; of other files, those themselves."""
    return _read(_core.decompressed, t, "decompress", max_bytes or 0)
