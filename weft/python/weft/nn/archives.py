"""Files in a Tensor of bytes: read as a file, and zip and tar archives as Tensors of their members."""
import functools
import io
import os
import pathlib
import tarfile
import zipfile
from collections.abc import Iterable

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


# What is real seldom becomes 100 times larger. Deflate's limit is 1032 times, so that a small file could fill memory.
_MOST_BYTES, _MOST_RATIO = 1 << 28, 100


def _check_sizes(sizes: Iterable[int], t: Tensor, max_bytes: int | None):
    """Members say how large they are before they are decompressed, and no more than that is."""
    limit = max(_MOST_BYTES, _MOST_RATIO * t.numel()) if max_bytes is None else max_bytes
    total = sum(sizes)
    if total > limit:
        raise ValueError(f"an archive of {t.numel()} bytes says that it holds {total}, more than {limit}; pass max_bytes "
                         f"if it is to be trusted")


@accept_filename
def zip_extract(t: Tensor, max_bytes: int | None = None) -> dict[str, Tensor]:
    """The members of a zip archive by name, as bytes. What is stored uncompressed stays where it is. An archive whose
    members decompress to more than max_bytes, else to 256 MiB and to 100 times its own size, is a ValueError."""
    return {name: data if begin == 0 and end == data.numel() else data[begin:end]
            for name, (data, begin, end) in zip_members(t, max_bytes).items()}


def zip_members(t: Tensor, max_bytes: int | None = None) -> dict[str, tuple[Tensor, int, int]]:
    """The members of a zip archive as bytes, and which of those bytes are the member."""
    with _as_file(t) as file, zipfile.ZipFile(file) as archive:
        _check_sizes((info.file_size for info in archive.infolist() if not _is_stored(info)), t, max_bytes)
        return {info.filename: _zip_member(t, file, archive, info) for info in archive.infolist() if not info.is_dir()}


def _is_stored(info: zipfile.ZipInfo) -> bool:
    return info.compress_type == zipfile.ZIP_STORED and not info.flag_bits & 1


def _zip_member(t: Tensor, file, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> tuple[Tensor, int, int]:
    if not _is_stored(info):
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
def tar_extract(t: Tensor, max_bytes: int | None = None) -> dict[str, Tensor]:
    """The files of a tar archive by name, as bytes. Those of an uncompressed one stay where they are. Limits are those
    of zip_extract()."""
    with _as_file(t) as file, tarfile.open(fileobj=file, mode="r:*") as archive:
        plain = archive.fileobj is file
        found, large = {}, 0
        for member in archive:
            if not member.isfile():
                continue
            large += 0 if _lies_in(plain, member) else member.size
            _check_sizes((large,), t, max_bytes)
            found[member.name] = _tar_member(t, archive, member, plain)
        return found


def _lies_in(plain: bool, member: tarfile.TarInfo) -> bool:
    return plain and not member.issparse()


def _tar_member(t: Tensor, archive: tarfile.TarFile, member: tarfile.TarInfo, plain: bool) -> Tensor:
    if not _lies_in(plain, member):
        content = archive.extractfile(member)
        return _in_memory(content.read() if content else b"")
    if member.offset_data + member.size > t.numel():
        raise tarfile.ReadError(f"{member.name!r} is cut off")
    return t[member.offset_data:member.offset_data + member.size]
