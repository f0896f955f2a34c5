"""Archives, torch.save's files (honest, damaged, hostile), contents by hash, CIFAR."""
import io
import os
import pickle
import struct
import tarfile
import zipfile

import numpy as np
import pytest

from conftest import needs_torch
from weft import Tensor, dtypes
from weft.nn.datasets import cifar
from weft.nn.state import (TensorIO, decompress, fs_load, fs_store, npy_load, npz_load, npz_save, safe_load,
                           safe_load_metadata, safe_save, tar_extract, torch_load, torch_save, zip_extract)

try:
    import torch
except ImportError:
    torch = None


def test_a_tensor_as_a_file():
    with TensorIO(Tensor(b"hello world")) as file:
        assert file.read(5) == b"hello" and file.tell() == 5
        assert file.seek(-5, 2) == 6 and file.read() == b"world" and file.read() == b""
        assert file.seek(-100, 1) == 0 and file.readable() and not file.writable()
    for bad in (Tensor([1, 2]), Tensor([[1]], dtype=dtypes.uint8)):
        with pytest.raises(ValueError):
            TensorIO(bad)


@pytest.fixture
def files(tmp_path):
    contents = {"a.txt": b"abc", "folder/b.bin": bytes(range(256)) * 10, "empty": b""}
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        for i, (name, data) in enumerate(contents.items()):
            archive.writestr(name, data, compress_type=zipfile.ZIP_DEFLATED if i == 1 else zipfile.ZIP_STORED)
    for name, mode in (("x.tar", "w"), ("x.tgz", "w:gz")):
        with tarfile.open(tmp_path / name, mode) as archive:
            for member, data in contents.items():
                info = tarfile.TarInfo(member)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
    return tmp_path, contents


@pytest.mark.parametrize("extract, name", ((zip_extract, "x.zip"), (tar_extract, "x.tar"), (tar_extract, "x.tgz")))
def test_archives(files, extract, name):
    folder, contents = files
    for source in (folder / name, str(folder / name), Tensor((folder / name).read_bytes())):
        assert {member: bytes(t.data()) for member, t in extract(source).items()} == contents


def test_damaged_archives(files):
    folder, _ = files
    whole = (folder / "x.zip").read_bytes()
    for cut in range(1, len(whole), 7):
        try:
            zip_extract(Tensor(whole[:cut] + bytes(len(whole) - cut)))
        except (zipfile.BadZipFile, ValueError, RuntimeError, NotImplementedError, OSError, struct.error, EOFError):
            pass
    with pytest.raises(zipfile.BadZipFile):
        zip_extract(Tensor(b"no archive"))
    with pytest.raises(tarfile.ReadError):
        tar_extract(Tensor(b"no archive" * 100))


# ---- torch.save

def state_dict():
    base = torch.arange(24, dtype=torch.float32).reshape(4, 6)
    shared = torch.arange(10, dtype=torch.int64)
    return {"whole": base, "transposed": base.T, "part": shared[2:8:2], "half": torch.tensor([1.5, -2.0]).half(),
            "bfloat16": torch.tensor([1.5, -2.0]).bfloat16(), "bool": torch.tensor([True, False]),
            "parameter": torch.nn.Parameter(torch.ones(2)), "empty": torch.zeros(0, 3), "number": torch.tensor(3.5),
            "float8": torch.tensor([1.0, 2.0]).to(torch.float8_e4m3fn), "double": torch.tensor([1.0]).double()}


@needs_torch
@pytest.mark.parametrize("zipped", (True, False))
def test_files_of_torch(tmp_path, zipped):
    wanted = state_dict()
    path = tmp_path / "model.pt"
    torch.save({"model": wanted, "epoch": 3, "names": ["a", ("b", None)]}, path, _use_new_zipfile_serialization=zipped)
    for source in (path, str(path), Tensor(path), Tensor(path.read_bytes())):
        got = torch_load(source)
        assert got["epoch"] == 3 and got["names"] == ["a", ("b", None)]
        for name, t in wanted.items():
            ours = got["model"][name]
            assert ours.shape == tuple(t.shape) and ours.dtype == getattr(dtypes, str(ours.dtype)[7:], ours.dtype)
            np.testing.assert_array_equal(ours.float().numpy(), t.detach().float().numpy())


@needs_torch
@pytest.mark.parametrize("zipped", (True, False))
def test_modules_are_not_made(tmp_path, zipped):
    path = tmp_path / "model.pt"
    torch.save({"net": torch.nn.Linear(2, 2), "x": torch.ones(2)}, path, _use_new_zipfile_serialization=zipped)
    got = torch_load(path)
    assert got["x"].tolist() == [1, 1] and not isinstance(got["net"], torch.nn.Module)


class Runs:
    """What pickle.load() would run."""

    def __init__(self, *call):
        self.call = call

    def __reduce__(self):
        return self.call


def zipped(pickled: bytes, **members: bytes) -> Tensor:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", pickled)
        for name, data in members.items():
            archive.writestr(f"archive/data/{name.strip('_')}", data)
    return Tensor(file.getvalue())


def tensor_pickle(size, stride, offset=0, storage="FloatStorage", key="0", numel=4) -> bytes:
    """What torch.save() writes for one tensor, with numbers of our choice."""
    def text(s: str) -> bytes:
        return b"X" + struct.pack("<I", len(s)) + s.encode()

    def number(n: int) -> bytes:
        return b"\x8a\x08" + struct.pack("<q", n)

    def numbers(ns) -> bytes:
        return b"(" + b"".join(number(n) for n in ns) + b"t"
    pid = b"(" + text("storage") + b"ctorch\n" + storage.encode() + b"\n" + text(key) + text("cpu") + number(numel) + b"tQ"
    return (b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(" + pid + number(offset) + numbers(size) + numbers(stride)
            + b"\x89)tR.")


def test_a_pickle_runs_nothing(tmp_path):
    trap = tmp_path / "trap"
    for call in ((os.mkdir, (str(trap),)), (eval, (f"__import__('os').mkdir({str(trap)!r})",)),
                 (os.system, (f"mkdir {trap}",))):
        for protocol in (0, 2, 4):
            with pytest.raises(ValueError):
                torch_load(Tensor(pickle.dumps(Runs(*call), protocol)))
        for protocol in (2, 4):
            loaded = torch_load(zipped(pickle.dumps({"x": Runs(*call)}, protocol)))
            assert loaded["x"].name.split()[1] == call[0].__name__
        with pytest.raises(ValueError, match="opcode"):  # protocols of text
            torch_load(zipped(pickle.dumps({"x": Runs(*call)}, 0)))
    assert not trap.exists()


def test_a_pickle_changes_nothing_here():
    before = dict(vars(dict)), Tensor.shape
    for text in (b"ctorch._utils\n_rebuild_tensor_v2\n}X\x01\0\0\0xK\x01sb.", b"ccollections\nOrderedDict\nN}X\x01\0\0\0xK\x01s\x86b.",
                 b"cweft\nTensor\n}X\x05\0\0\0shapeK\x01sb.", b"cbuiltins\nexec\nX\x04\0\0\0pass\x85R."):
        try:
            torch_load(zipped(b"\x80\x02" + text))
        except ValueError:
            pass
    assert (dict(vars(dict)), Tensor.shape) == before
    import collections
    assert not hasattr(collections.OrderedDict, "x")


DATA = np.arange(4, dtype=np.float32).tobytes()


def test_tensors_stay_inside_of_their_storage():
    assert torch_load(zipped(tensor_pickle((2, 2), (2, 1)), _0=DATA)).tolist() == [[0, 1], [2, 3]]
    assert torch_load(zipped(tensor_pickle((2, 2), (1, 2)), _0=DATA)).tolist() == [[0, 2], [1, 3]]
    assert torch_load(zipped(tensor_pickle((2,), (0,), 3), _0=DATA)).tolist() == [3, 3]
    assert torch_load(zipped(tensor_pickle((0, 2**40), (1, 1)), _0=DATA)).shape == (0, 2**40)
    for size, stride, offset in (((5,), (1,), 0), ((4,), (1,), 1), ((1,), (1,), -1), ((2,), (-1,), 1), ((-1,), (1,), 0),
                                 ((2,), (2**62,), 0), ((2**40, 2**40), (0, 0), 0), ((2,), (4,), 0), ((2,), (1, 1), 0),
                                 ((2**62,), (4,), 0), ((1,), (1,), 2**62), ((2**40,), (0,), 0)):
        with pytest.raises((ValueError, MemoryError)):
            torch_load(zipped(tensor_pickle(size, stride, offset), _0=DATA))
    for bad in (tensor_pickle((1,), (1,), key="7"), tensor_pickle((1,), (1,), storage="NoStorage")):
        with pytest.raises(ValueError):
            torch_load(zipped(bad, _0=DATA))


def test_bombs_of_pickles():
    for bomb in (b"\x80\x02Nr\xff\xff\xff\xff.",            # a memo with four thousand million places
                 b"\x80\x04\x8e" + struct.pack("<Q", 2**62),  # a text longer than memory
                 b"(" * 100000 + b"t" * 100000 + b".", b"\x80\x02" + b"]" * 1000, b""):
        try:
            torch_load(zipped(bomb))
        except (ValueError, MemoryError):
            pass


@needs_torch
def test_damaged_files_of_torch(tmp_path):
    rng = np.random.default_rng(0)
    for use_zip in (True, False):
        path = tmp_path / "model.pt"
        torch.save({"a": torch.arange(6.0), "b": torch.ones(2, 3)}, path, _use_new_zipfile_serialization=use_zip)
        whole = path.read_bytes()
        for _ in range(150):
            data = bytearray(whole)
            for at in rng.integers(0, len(data), 3):
                data[at] = rng.integers(0, 256)
            cut = bytes(data[:rng.integers(1, len(data))] if rng.random() < 0.5 else data)
            try:
                torch_load(Tensor(cut))
            except (ValueError, MemoryError):
                pass


@needs_torch
def test_torch_reads_what_we_write(tmp_path):
    path = tmp_path / "model.pt"
    wanted = {"float32": [1.5, -2.0], "float16": [1.5], "bfloat16": [1.5], "float64": [0.1], "int8": [-1], "uint8": [255],
              "int16": [-2], "int32": [7], "int64": [2**40], "bool": [True, False], "uint16": [65535]}
    torch_save({name: Tensor(values, dtype=name) for name, values in wanted.items()}, path)
    for name, t in torch.load(path, weights_only=True).items():
        assert str(t.dtype) == f"torch.{name}" and t.tolist() == wanted[name]
    assert {name: t.tolist() for name, t in torch_load(path).items()} == wanted


# ---- NumPy's files, compressed ones

@pytest.mark.parametrize("dtype", ("?", "i1", "u2", "<i4", ">i4", "i8", "u8", "f2", "f4", ">f8"))
def test_numpys_files(tmp_path, dtype):
    x = np.arange(24).reshape(2, 3, 4).astype(dtype)
    arrays = {"c": x, "fortran": np.asfortranarray(x), "none": x[:0], "scalar": x[0, 0, 1], "part": x[:, 1]}
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "x.npz", **arrays)
        for source in (tmp_path / "x.npz", Tensor((tmp_path / "x.npz").read_bytes())):
            got = npz_load(source)
            assert list(got) == list(arrays)
            for name, wanted in arrays.items():
                assert got[name].shape == wanted.shape
                np.testing.assert_array_equal(got[name].numpy(), wanted)
    for version in ((1, 0), (2, 0), (3, 0)):
        with open(tmp_path / "x.npy", "wb") as file:
            np.lib.format.write_array(file, np.asfortranarray(x), version=version)
        np.testing.assert_array_equal(npy_load(tmp_path / "x.npy").numpy(), x)
    npz_save(got, tmp_path / "y.npz")
    with np.load(tmp_path / "y.npz") as file:
        for name, wanted in arrays.items():
            np.testing.assert_array_equal(file[name], wanted)


def test_numpys_objects_are_not_loaded(tmp_path):
    np.save(tmp_path / "x.npy", np.array([{"a": 1}], dtype=object))
    with pytest.raises(ValueError, match="objects are never loaded"):
        npy_load(tmp_path / "x.npy")


def test_decompress(files):
    import gzip
    folder, contents = files
    data = contents["folder/b.bin"] * 100
    (folder / "x.gz").write_bytes(gzip.compress(data[:1000]) + gzip.compress(data[1000:]))
    assert bytes(decompress(folder / "x.gz").data()) == data
    assert bytes(decompress(Tensor(b"plain")).data()) == b"plain"
    with pytest.raises(ValueError, match="more than 1000"):
        decompress(folder / "x.gz", max_bytes=1000)


def test_files_that_shrink_are_errors(tmp_path):
    path = tmp_path / "x.safetensors"
    safe_save({"a": Tensor.ones(100000)}, path)
    for t in (safe_load(path)["a"], safe_load(Tensor(path))["a"], Tensor(path)):
        whole = path.read_bytes()
        os.truncate(path, 5000)
        for use in (lambda: t.sum().item(), t.numpy, t.tolist, t.data, lambda: (t + 1).realize()):
            with pytest.raises((RuntimeError, BufferError), match="cut it short"):
                use()
        with open(path, "r+b") as file:  # the same file as before
            file.write(whole)
        assert t.sum().item() > 0


# ---- safetensors from memory, contents by hash, CIFAR

def test_safetensors_in_memory(tmp_path):
    path = tmp_path / "x.safetensors"
    safe_save({"a": Tensor([[1.0, 2.0], [3.0, 4.0]]), "b": Tensor([1, 2], dtype=dtypes.int8)}, path, {"by": "me"})
    for source in (path, Tensor(path), Tensor(path.read_bytes())):
        got = safe_load(source)
        assert got["a"].tolist() == [[1, 2], [3, 4]] and got["b"].dtype == dtypes.int8
        t, start, header = safe_load_metadata(source)
        assert header["__metadata__"] == {"by": "me"} and header["a"]["shape"] == [2, 2] and start < t.numel()
    header = b'{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,800]}}'
    for bad in (b"\xff" * 8, struct.pack("<Q", 3) + b"{]}", struct.pack("<Q", len(header)) + header + bytes(8)):
        with pytest.raises(ValueError, match="safe_load"):
            safe_load(Tensor(bad))


def test_contents_by_hash(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    t = Tensor([1.0, 2.0, 3.0])
    digest = t.fs_store()
    assert digest.shape == (16,) and fs_store(t).tolist() == digest.tolist()
    assert digest.fs_load(12).bitcast(dtypes.float32).tolist() == [1, 2, 3]
    with pytest.raises(ValueError):
        fs_load(digest, 13)
    with pytest.raises(FileNotFoundError):
        fs_load(digest ^ 1, 4)


def test_cifar(tmp_path):
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 256, (6, 2, 3073), dtype=np.uint8)
    for name, part in zip([f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"], rows):
        (tmp_path / f"{name}.bin").write_bytes(part.tobytes())
    x, y, test_x, test_y = cifar(folder=tmp_path)
    assert x.shape == (10, 3, 32, 32) and test_x.shape == (2, 3, 32, 32)
    np.testing.assert_array_equal(y.numpy(), rows[:5, :, 0].reshape(-1))
    np.testing.assert_array_equal(test_x.numpy().reshape(2, -1), rows[5, :, 1:])
    (tmp_path / "test_batch.bin").write_bytes(b"short")
    with pytest.raises(ValueError):
        cifar(folder=tmp_path)


def test_safetensors_as_the_formats_own_library_writes_them(tmp_path):
    safe_save({"tmp": Tensor.rand(10, 10), "a": Tensor([1, 2], dtype="uint8")}, str(tmp_path / "m"))
    data = (tmp_path / "m").read_bytes()
    header = (b'{"tmp":{"dtype":"F32","shape":[10,10],"data_offsets":[0,400]},'
              b'"a":{"dtype":"U8","shape":[2],"data_offsets":[400,402]}}')
    size = (len(header) + 7) // 8 * 8
    assert data[:8] == size.to_bytes(8, "little") and data[8:8 + size] == header.ljust(size)
    assert len(data) == 8 + size + 402
