"""DLPack and borrowed memory: values, strides, lifetimes, what is read-only."""
import gc
import weakref

import numpy as np
import pytest

import weft
from weft import Tensor, TinyJit, dtypes

from conftest import assert_equal, needs_torch, torch

DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (5,), (2, 3), (2, 0, 3), (1, 3, 1)])
def test_matrix_of_dtypes_and_shapes(dtype, shape):
    a = (np.arange(np.prod(shape, dtype=int)) % 2).reshape(shape).astype(dtype)
    t = weft.from_dlpack(a)
    assert t.dtype.name == dtype
    assert_equal(t, a)
    assert_equal(np.from_dlpack(t), a)


STRIDED = {
    "reversed": lambda a: a[::-1], "steps": lambda a: a[:, ::2], "transposed": lambda a: a.T, "offset": lambda a: a[1:, 2:],
    "repeated": lambda a: np.broadcast_to(a[:1], (3, 6)), "reversed both": lambda a: a[::-1, ::-1], "rows": lambda a: a[1:3],
    "size 1": lambda a: a[:, :1], "fortran": np.asfortranarray,
}


@pytest.mark.parametrize("name", STRIDED)
@pytest.mark.parametrize("dtype", ["bool", "int16", "float64"])
def test_strides(name, dtype):
    a = STRIDED[name]((np.arange(24) % 5).reshape(4, 6).astype(dtype))
    assert_equal(weft.from_dlpack(a), np.ascontiguousarray(a))


def test_misaligned_memory_is_copied():
    raw = np.frombuffer(b"x" + np.arange(4.0).tobytes(), dtype=np.uint8)[1:]
    a = raw.view(np.float64)
    assert Tensor(a).tolist() == weft.from_dlpack(a).tolist() == [0, 1, 2, 3]


def test_memory_is_shared_and_never_written_by_us():
    a = np.zeros(1000)
    t = weft.from_dlpack(a)
    a[0] = 7
    assert t[0].item() == 7  # no copy
    t += 1
    t.realize()
    assert a[1] == 0 and t[1].item() == 1
    copied = weft.from_dlpack(a, copy=True)
    a[0] = 9
    assert copied[0].item() == 7


def test_borrowed_memory_as_state_of_a_jit():
    a = np.zeros(3)
    t = weft.from_dlpack(a)
    f = TinyJit(lambda x: t.assign(t + x).realize())
    for i in range(5):
        f(Tensor([1.0, 2, 3], dtype="float64"))
    assert t.tolist() == [5, 10, 15] and a.tolist() == [0, 0, 0]


def test_borrowed_memory_as_an_argument_of_a_jit_that_writes_it():
    arrays = [np.full(3, float(i)) for i in range(5)]

    @TinyJit
    def f(x):
        x += 1
        return x.sum()
    for i, a in enumerate(arrays):
        assert f(weft.from_dlpack(a)).item() == 3 * (i + 1)
        assert a.tolist() == [i] * 3


def test_exports_are_snapshots():
    t = Tensor([1.0, 2.0])
    seen = np.from_dlpack(t)
    assert not seen.flags.writeable
    t += 1
    t.realize()
    assert seen.tolist() == [1, 2]
    with pytest.raises((BufferError, ValueError)):
        t.__dlpack__(dl_device=(2, 0))
    assert t.__dlpack_device__() == (1, 0)


def test_exports_survive_a_jit_that_writes_in_place():
    w = Tensor([1.0, 2.0])
    f = TinyJit(lambda x: w.assign(w * x).realize())
    for _ in range(3):
        f(Tensor([2.0, 2.0]))
    seen = np.asarray(w)
    before = seen.tolist()
    f(Tensor([2.0, 2.0]))
    assert seen.tolist() == before and w.tolist() == [2 * v for v in before]


def test_a_copy_is_the_importers():
    t = Tensor([1.0, 2.0])
    a = np.from_dlpack(t, copy=True)
    a[0] = 5
    assert t.tolist() == [1, 2] and a.flags.writeable


class Owner:
    """A producer that counts how its capsules end."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **kwargs):
        return self.array.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_lifetime_of_what_is_borrowed():
    class Array(np.ndarray):
        pass

    a = np.arange(1000.0).view(Array)
    gone = weakref.ref(a)
    t = weft.from_dlpack(Owner(a))
    del a
    gc.collect()
    assert gone() is not None and t.sum().item() == 499500
    u = t + 1
    del t
    gc.collect()
    assert u[0].item() == 1  # the graph still read it
    del u
    weft._core.collect_garbage()
    gc.collect()
    assert gone() is None


def test_lifetime_of_what_is_exported():
    t = Tensor(np.arange(1000.0))
    a = np.from_dlpack(t)
    del t
    weft._core.collect_garbage()
    Tensor(np.zeros(1000)).realize()
    assert a.sum() == 499500


def test_from_blob():
    a = np.arange(6, dtype="float32")
    t = Tensor.from_blob(a.ctypes.data, (2, 3))
    a[0] = 9
    assert t.tolist() == [[9, 1, 2], [3, 4, 5]]


def test_capsules():
    t = Tensor([1.0, 2.0])
    for arguments in ({}, {"max_version": (1, 0)}):
        capsule = t.__dlpack__(**arguments)
        assert weft.from_dlpack(capsule).tolist() == [1, 2]
        with pytest.raises(ValueError, match="used before"):
            weft.from_dlpack(capsule)
        t.__dlpack__(**arguments)  # nobody takes it
    with pytest.raises(TypeError):
        weft.from_dlpack([1, 2])
    with pytest.raises(TypeError):
        weft.from_dlpack(np.zeros(2, dtype=complex))


def test_own_memory_round_trip():
    t = Tensor([[1, 2], [3, 4]], dtype="bfloat16")
    u = weft.from_dlpack(t)
    assert u.dtype == dtypes.bfloat16 and u.tolist() == [[1, 2], [3, 4]]


@needs_torch
@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "uint8", "float16", "bfloat16", "float32", "float64"])
def test_torch_both_ways(dtype):
    a = (torch.arange(6) % 2).reshape(2, 3).to(getattr(torch, dtype))
    t = weft.from_dlpack(a)
    assert t.dtype.name == dtype and t.tolist() == a.tolist()
    back = torch.from_dlpack(t)
    assert back.dtype == a.dtype and back.tolist() == a.tolist()
    assert weft.from_dlpack(a.T).tolist() == a.T.tolist()
    assert weft.from_dlpack(a[:, 1:2].expand(2, 4)).tolist() == a[:, 1:2].expand(2, 4).tolist()


@needs_torch
def test_torch_writes_to_a_copy():
    t = Tensor([1.0, 2.0, 3.0]).realize()
    for taken in (torch.from_dlpack(t), torch.utils.dlpack.from_dlpack(t.__dlpack__())):
        taken[0] = 5
        assert taken.tolist() == [5, 2, 3] and t.tolist() == [1, 2, 3]
    lent = np.from_dlpack(t)
    assert not lent.flags.writeable and np.shares_memory(lent, np.from_dlpack(t))


@needs_torch
@pytest.mark.parametrize("take", [torch.asarray, torch.as_tensor, torch.tensor, torch.from_dlpack,
                                  lambda t: torch.frombuffer(t, dtype=torch.float32)] if torch else [])
def test_torch_never_writes_to_a_tensor(take):
    for t in (Tensor([1.0, 2.0]).realize(), Tensor.full((2,), 7.0).contiguous().realize(), Tensor([0.0, 1.0, 2.0]).realize()[1:]):
        twin, wanted = t.clone(), t.tolist()
        taken = take(t)
        taken += 1
        assert taken.tolist() == [x + 1 for x in wanted] and t.tolist() == twin.tolist() == wanted


@pytest.mark.parametrize("take", [np.asarray, np.from_dlpack, lambda t: np.frombuffer(t.data(), np.float32),
                                  lambda t: np.asarray(t).view(), lambda t: np.array(t, copy=False)])
def test_numpy_cannot_write_to_a_tensor(take):
    for t in (Tensor([1.0, 2.0]).realize(), Tensor.full((2,), 7.0).contiguous().realize()):
        taken = take(t)
        with pytest.raises(ValueError, match="read-only"):
            taken[0] = 9
        with pytest.raises(ValueError, match="WRITEABLE"):
            taken.flags.writeable = True


def test_read_only_memory_is_said_to_be():
    t = Tensor([1.0])
    with pytest.raises(BufferError, match="read-only"):
        t.__dlpack__(copy=False)
    assert weft.from_dlpack(t.__dlpack__(copy=False, max_version=(1, 0))).tolist() == [1]
