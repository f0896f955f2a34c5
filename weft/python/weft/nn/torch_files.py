"""torch_load(): files of torch.save. They are pickles, which are programs; here nothing of what they name is run."""
import io
import pickle
import struct
from collections import OrderedDict
from collections.abc import Callable

from weft import Tensor, _core, dtypes
from weft.nn.archives import TensorIO, accept_filename, zip_members

__all__ = ["torch_load"]

# The first pickle of a file of before PyTorch 1.6 (torch/serialization.py, MAGIC_NUMBER).
_MAGIC = 0x1950A86A20F9469CFC6C

_STORAGES = {"FloatStorage": dtypes.float32, "DoubleStorage": dtypes.float64, "HalfStorage": dtypes.float16,
             "BFloat16Storage": dtypes.bfloat16, "ByteStorage": dtypes.uint8, "CharStorage": dtypes.int8,
             "ShortStorage": dtypes.int16, "IntStorage": dtypes.int32, "LongStorage": dtypes.int64,
             "BoolStorage": dtypes.bool, "UntypedStorage": dtypes.uint8}


class _Storage:
    """Elements that tensors of a file share: bytes begin to end of `data`, None until it is known where they are."""
    __slots__ = ("dtype", "data", "begin", "end")

    def __init__(self, dtype, data=None, begin=0, end=0):
        self.dtype, self.data, self.begin, self.end = dtype, data, begin, end


class _Function:
    """What a pickle may call. It has no attributes that a pickle could set."""
    __slots__ = ("_call",)

    def __init__(self, call: Callable):
        object.__setattr__(self, "_call", call)

    def __call__(self, *args):
        return self._call(*args)

    def __setattr__(self, name, value):
        raise pickle.UnpicklingError("a pickle sets attributes of a function")


def _tensor(storage, storage_offset, size, stride, dtype=None):
    if not isinstance(storage, _Storage):
        raise pickle.UnpicklingError("a tensor without a storage")
    if storage.data is None:
        return None
    kind = dtype or storage.dtype
    if not isinstance(kind, _core.DType):
        raise pickle.UnpicklingError(f"a tensor of {kind!r}")
    if storage_offset < 0:
        raise pickle.UnpicklingError("a tensor begins before its storage")
    begin = storage.begin + storage_offset * kind.itemsize
    return _core.elements_in(storage.data, begin, storage.end, kind, list(size), list(stride))


def _rebuild_v2(storage, storage_offset, size, stride, *rest):
    return _tensor(storage, storage_offset, size, stride)


def _rebuild_v3(storage, storage_offset, size, stride, requires_grad, hooks, dtype, *rest):
    return _tensor(storage, storage_offset, size, stride, dtype)


def _named(module: str, name: str):
    """What a file may name; None for all else."""
    functions: dict[tuple[str, str], Callable] = {
        ("torch._utils", "_rebuild_tensor"): _rebuild_v2, ("torch._utils", "_rebuild_tensor_v2"): _rebuild_v2,
        ("torch._utils", "_rebuild_tensor_v3"): _rebuild_v3,
        ("torch._utils", "_rebuild_parameter"): lambda data, *rest: data,
        ("torch._utils", "_rebuild_parameter_with_state"): lambda data, *rest: data, ("torch", "Size"): tuple}
    if (module, name) in functions:
        return _Function(functions[module, name])
    if (module, name) == ("collections", "OrderedDict"):
        return OrderedDict
    if module in ("torch", "torch.storage") and name in _STORAGES:
        return _STORAGES[name]
    if module == "torch":
        return _dtype_named(name)
    return None


def _dtype_named(name: str):
    try:
        return _core.dtype_of(name)
    except TypeError:
        return None


# The interpreter of Python's, not C's, whose memo is as large as the largest number in a file.
class _Unpickler(pickle._Unpickler):  # type: ignore[name-defined, misc]
    def __init__(self, file, storage_of):
        super().__init__(file)
        self.storage_of = storage_of

        class Opaque:
            """An object of a class that is not known here: it holds nothing."""

            def __init__(self, *args, **kwargs):
                pass

            def __setstate__(self, state):
                pass
        self.opaque = Opaque

    def find_class(self, module, name):
        found = _named(module, name)
        return self.opaque if found is None else found

    def persistent_load(self, pid):
        if pid[0] == "module":  # a class with its source text, in old files
            return pid[1]
        kind, dtype, key, *_ = pid
        if kind != "storage" or not isinstance(dtype, _core.DType):
            raise pickle.UnpicklingError(f"a persistent object {kind!r}")
        return self.storage_of(str(key), dtype)


def _unpickled(file, storage_of=lambda key, dtype: _Storage(dtype)):
    try:
        return _Unpickler(file, storage_of).load()
    except MemoryError:
        raise
    except Exception as error:
        raise ValueError(f"torch_load: this is no file of torch.save that weft can read: {error}") from error


@accept_filename
def torch_load(t: Tensor):
    """What torch.save() wrote, of all versions: a state dict with Tensors that stay in the file until they are
    used. Objects other than tensors, numbers, texts and containers come back empty: a file cannot run anything.
    Needs no PyTorch. A ValueError for what is no such file."""
    with TensorIO(t) as file:
        start = file.read(4)
    if start == b"PK\x03\x04":
        return _of_zip(t)
    return _of_pickles(t)


def _of_zip(t: Tensor):
    try:
        members = zip_members(t)
    except Exception as error:
        raise ValueError(f"torch_load: the archive is damaged: {error}") from error
    names = [name for name in members if name.rpartition("/")[2] == "data.pkl"]
    if len(names) != 1:
        raise ValueError(f"torch_load: {len(names)} files data.pkl in the archive, where there should be one")
    folder = names[0].removesuffix("data.pkl")

    def contents(name: str) -> io.BytesIO:
        data, begin, end = members[name]
        return io.BytesIO(data.data()[begin:end])
    if f"{folder}byteorder" in members and contents(f"{folder}byteorder").read() != b"little":
        raise ValueError("torch_load: the file has the byte order of another machine")

    def storage_of(key: str, dtype) -> _Storage:
        if f"{folder}data/{key}" not in members:
            raise pickle.UnpicklingError(f"there is no storage {key}")
        return _Storage(dtype, *members[f"{folder}data/{key}"])
    return _unpickled(contents(names[0]), storage_of)


def _of_pickles(t: Tensor):
    """Four pickles (the magic number, a version, facts about the machine, the object), the names of storages, then
    each storage: eight bytes with its number of elements, and those."""
    file = TensorIO(t)
    if _unpickled(file) != _MAGIC:
        raise ValueError("torch_load: neither a zip archive nor a file of PyTorch before 1.6")
    for _ in range(2):
        _unpickled(file)
    at = file.tell()
    found: dict[str, _Storage] = {}

    def storage_of(key: str, dtype) -> _Storage:
        return found.setdefault(key, _Storage(dtype))
    _unpickled(file, storage_of)  # which storages there are
    for key in _unpickled(file):
        if key not in found:
            raise ValueError(f"torch_load: storage {key!r} belongs to nothing")
        count = struct.unpack("<q", file.read(8).ljust(8, b"\0"))[0]
        storage = found[key]
        size = count * storage.dtype.itemsize
        storage.data, storage.begin, storage.end = t, file.tell(), file.tell() + size
        if count < 0 or storage.end > t.numel():
            raise ValueError("torch_load: the file is cut off")
        file.seek(size, 1)
    file.seek(at)
    return _unpickled(file, storage_of)
