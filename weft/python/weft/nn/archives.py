"""Files in a Tensor of bytes: read as a file, and zip and tar archives as Tensors of their members."""
import functools
import io
import os
import pathlib
import tarfile
import zipfile

from weft import Tensor, dtypes

__all__ = ["TensorIO", "accept_filename", "tar_extract", "zip_extract"]


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


def _as_file(t: Tensor) -> io.BufferedReader:
    return io.BufferedReader(TensorIO(t))


def _in_memory(data: bytes) -> Tensor:
    return Tensor(data) if data else Tensor.empty(0, dtype=dtypes.uint8)


@accept_filename
def zip_extract(t: Tensor) -> dict[str, Tensor]:
    """The members of a zip archive by name, as bytes. What is stored uncompressed stays where it is."""
    return {name: data if begin == 0 and end == data.numel() else data[begin:end]
            for name, (data, begin, end) in zip_members(t).items()}


def zip_members(t: Tensor) -> dict[str, tuple[Tensor, int, int]]:
    """The members of a zip archive as bytes, and which of those bytes are the member."""
    with _as_file(t) as file, zipfile.ZipFile(file) as archive:
        return {info.filename: _zip_member(t, file, archive, info) for info in archive.infolist() if not info.is_dir()}


def _zip_member(t: Tensor, file, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> tuple[Tensor, int, int]:
    if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
        return _in_memory(archive.read(info)), 0, info.file_size
    # Before the data: 30 bytes whose last four are the lengths of a name and of an extra field, and those
    # (APPNOTE.TXT 4.3.7).
    file.seek(info.header_offset + 26)
    lengths = file.read(4)
    start = info.header_offset + 30 + int.from_bytes(lengths[:2], "little") + int.from_bytes(lengths[2:], "little")
    if len(lengths) < 4 or start + info.file_size > t.numel():
        raise zipfile.BadZipFile(f"{info.filename!r} is said to be outside of the file")
    return t, start, start + info.file_size


@accept_filename
def tar_extract(t: Tensor) -> dict[str, Tensor]:
    """The files of a tar archive by name, as bytes. Those of an uncompressed one stay where they are."""
    with _as_file(t) as file, tarfile.open(fileobj=file, mode="r:*") as archive:
        plain = archive.fileobj is file
        return {member.name: _tar_member(t, archive, member, plain) for member in archive if member.isfile()}


def _tar_member(t: Tensor, archive: tarfile.TarFile, member: tarfile.TarInfo, plain: bool) -> Tensor:
    if not plain or member.issparse():
        content = archive.extractfile(member)
        return _in_memory(content.read() if content else b"")
    if member.offset_data + member.size > t.numel():
        raise tarfile.ReadError(f"{member.name!r} is cut off")
    return t[member.offset_data:member.offset_data + member.size]
