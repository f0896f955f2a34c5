"""Tensors that are files: DISK:path."""
import numpy as np
import pytest

from weft import Tensor, dtypes


@pytest.fixture
def path(tmp_path):
    return tmp_path / "data"


def test_to_writes_the_file(path):
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    t = Tensor(x).to(f"disk:{path}")
    assert path.read_bytes() == x.tobytes() and t.device == f"DISK:{path}"
    np.testing.assert_array_equal(t.numpy(), x)
    assert t[1].device == t.device and t[1, :2].tolist() == [3, 4]
    there = t.to("CPU")
    assert there.device == "CPU" and (there + 1).tolist() == (x + 1).tolist()


def test_empty_is_what_the_file_holds(path):
    path.write_bytes(bytes(range(16)))
    t = Tensor.empty(4, dtype=dtypes.uint8, device=f"DISK:{path}")
    assert t.tolist() == [0, 1, 2, 3] and t.nbytes() == 4
    assert Tensor.empty(2, 2, dtype="uint16", device=f"DISK:{path}").tolist() == [[256, 770], [1284, 1798]]
    assert t[2:4].bitcast("uint16").tolist() == [770]
    assert path.stat().st_size == 16


def test_empty_grows_the_file(path):
    t = Tensor.empty(3, device=f"disk:{path}")
    assert path.stat().st_size == 12 and t.tolist() == [0, 0, 0]


def test_writes_go_to_the_file(path):
    t = Tensor.empty(5, dtype="int16", device=f"disk:{path}").assign(Tensor([1, 2, 3, 4, 5], dtype="int16"))
    t[1:3] = [20, 30]
    t[4] = -1
    t.reshape(5, 1)[0] = 7
    wanted = np.array([7, 20, 30, 4, -1], dtype=np.int16)
    assert path.read_bytes() == wanted.tobytes() and t.tolist() == wanted.tolist()


def test_copies_are_in_memory(path):
    t = Tensor([1, 2, 3]).to(f"disk:{path}")
    for copy in (t.clone(), t.to("CPU"), t + 0):
        copy.assign(Tensor([9, 9, 9]))
        assert copy.device == "CPU" and t.tolist() == [1, 2, 3]
    assert np.fromfile(path, dtype=np.int32).tolist() == [1, 2, 3]


def test_a_file_that_cannot_be(tmp_path):
    with pytest.raises(OSError):
        Tensor([1]).to(f"disk:{tmp_path}/no/such/folder")
