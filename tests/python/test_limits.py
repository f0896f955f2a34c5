"""Sizes that no machine has, names that are not what they look like, archives and files that lie."""
import io
import json
import struct
import tarfile
import zipfile

import pytest

from weft import Tensor, TinyJit
from weft.nn.state import safe_load, safe_load_metadata, safe_save, tar_extract, torch_load, zip_extract

B = 2 ** 62
HUGE = [
    lambda: Tensor.ones(B), lambda: Tensor.ones(2 ** 31, 2 ** 31), lambda: Tensor.zeros(B, 4), lambda: Tensor.full((2 ** 40, 2 ** 40), 3),
    lambda: Tensor.eye(B), lambda: Tensor.eye(2 ** 31), lambda: Tensor.ones(2).pad(((0, B),)), lambda: Tensor.ones(2).pad(((B, B),)),
    lambda: Tensor.ones(2, 2).pad(((0, 2 ** 31), (0, 2 ** 31))), lambda: Tensor.ones(1).expand(B), lambda: Tensor.ones(1, 1).expand(2 ** 31, 2 ** 31),
    lambda: Tensor.ones(1).expand(2 ** 56).cat(Tensor.ones(1).expand(2 ** 56)), lambda: Tensor.ones(2).repeat(B), lambda: Tensor.arange(B),
    lambda: Tensor.arange(2 ** 63 - 1), lambda: Tensor.linspace(0, 1, B), lambda: Tensor.empty(B), lambda: Tensor.ones(3).repeat_interleave(2 ** 61),
    lambda: Tensor.ones(1, 1).expand(2 ** 31, 1) + Tensor.ones(1, 1).expand(1, 2 ** 31), lambda: Tensor([1]).one_hot(B),
    lambda: Tensor.ones(1, 1, 4, 4).conv2d(Tensor.ones(1, 1, 2, 2), padding=2 ** 31),
    lambda: Tensor.stack(*[Tensor.ones(1).expand(2 ** 55)] * 4), lambda: Tensor.ones(4).reshape(2, B), lambda: Tensor.ones(-3),
]


@pytest.mark.parametrize("make", HUGE, ids=range(len(HUGE)))
def test_sizes_near_the_end_of_integers(make):
    with pytest.raises((ValueError, TypeError, MemoryError), match=r"\d"):
        make().realize()


def test_large_sizes_that_are_not_too_large():
    assert Tensor.ones(1).expand(2 ** 50)[2 ** 49].item() == 1 and Tensor.arange(2 ** 40)[2 ** 39].item() == 2 ** 39


# ---- names

NAMES = [
    lambda p: safe_load(p), lambda p: safe_save({"a": Tensor([1.0])}, p), lambda p: Tensor.empty(3, device="DISK:" + p),
    lambda p: Tensor([1.0]).to("DISK:" + p),
]


@pytest.mark.parametrize("use", NAMES, ids=range(len(NAMES)))
def test_a_nul_in_a_name_is_an_error(tmp_path, use):
    path = str(tmp_path / "a")
    safe_save({"a": Tensor([1.0])}, path)
    with pytest.raises((ValueError, OSError), match="NUL"):
        use(path + "\0b")
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_long_names(tmp_path):
    path = tmp_path / ("x" * 250)
    for i in range(2):
        safe_save({"a": Tensor([float(i)])}, path)
        assert safe_load(path)["a"].item() == i and len(list(tmp_path.iterdir())) == 1


# ---- archives

def zipped(*contents):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for i, content in enumerate(contents):
            archive.writestr(f"{i}", content)
    return out.getvalue()


def test_archives_that_would_fill_the_memory():
    piece = bytes(40 << 20)
    bomb = zipped(*[piece] * 8)
    assert len(bomb) < 1 << 20
    for extract in (zip_extract, torch_load):
        with pytest.raises(ValueError, match="max_bytes|says that it holds"):
            extract(Tensor(bomb))
    assert sum(t.numel() for t in zip_extract(Tensor(zipped(piece, b"abc"))).values()) == len(piece) + 3
    with pytest.raises(ValueError, match="max_bytes"):
        zip_extract(Tensor(zipped(bytes(1000))), max_bytes=999)
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for i in range(8):
            info = tarfile.TarInfo(f"{i}")
            info.size = len(piece)
            archive.addfile(info, io.BytesIO(piece))
    with pytest.raises(ValueError, match="max_bytes"):
        tar_extract(Tensor(out.getvalue()))


# ---- safetensors: bytes and files are read by the same reader

def safetensors(header: str, size: int) -> bytes:
    return struct.pack("<Q", len(header)) + header.encode() + bytes(size)


ENTRY = '"{}":{{"dtype":"F32","shape":[2],"data_offsets":[{},{}]}}'
LIES = {
    "overlap": ("{" + ENTRY.format("a", 0, 8) + "," + ENTRY.format("b", 4, 12) + "}", 12),
    "twice": ("{" + ENTRY.format("a", 0, 8) + "," + ENTRY.format("a", 8, 16) + "}", 16),
    "hole": ("{" + ENTRY.format("a", 0, 8) + "," + ENTRY.format("b", 12, 20) + "}", 20),
    "rest": ("{" + ENTRY.format("a", 0, 8) + "}", 9), "short": ("{" + ENTRY.format("a", 0, 8) + "}", 7),
    "dtype": ('{"a":{"dtype":"Q8","shape":[2],"data_offsets":[0,8]}}', 8), "size": ('{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}', 8),
}


@pytest.mark.parametrize("lie", LIES)
def test_safetensors_that_lie(tmp_path, lie):
    data = safetensors(*LIES[lie])
    path = tmp_path / "x"
    path.write_bytes(data)
    for source in (path, Tensor(path), Tensor(data)):
        with pytest.raises((ValueError, RuntimeError)):
            safe_load(source)
    if lie == "twice":
        with pytest.raises(ValueError, match="twice"):
            safe_load_metadata(Tensor(data))


def test_safetensors_that_do_not():
    data = safetensors("{" + ENTRY.format("a", 0, 8) + "," + ENTRY.format("b", 8, 16) + "}", 16)
    assert {k: t.tolist() for k, t in safe_load(Tensor(data)).items()} == {"a": [0, 0], "b": [0, 0]}
    assert json.loads(data[8:-16]) == safe_load_metadata(Tensor(data))[2]


# ---- captured functions with other roots

def test_roots_that_have_no_value():
    from weft import InternalError, custom_kernel
    from weft._core import unpickled_jit

    def write(k):
        i = k.range(6)
        k.store(0, (i,), k.load(0, (i, 0)))
    x = Tensor.ones(6, 7).contiguous().realize()
    f = TinyJit(lambda x: custom_kernel("column", [x], [(6,)], write)[0])
    for _ in range(3):
        f(x)
    build, (data, skeleton) = f.__reduce__()
    start = 8 + int.from_bytes(data[:8], "little")
    refused = 0
    for at in range(start, len(data)):
        for value in (0, 1, 2, 3, 5, 9, 14, 86):
            other = bytearray(data)
            other[at] = value
            try:
                g = unpickled_jit(bytes(other), skeleton)
                [g(x).numpy() for _ in range(2)]
            except InternalError:
                raise
            except (ValueError, TypeError, RuntimeError, MemoryError, IndexError):
                refused += 1
    assert refused > 500
