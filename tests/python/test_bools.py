"""Bools of other bytes than 0 and 1 are bools, wherever they come from; numbers beyond 64 bits are errors."""
import numpy as np
import pytest

import weft
from conftest import needs_torch, torch
from weft import Tensor, dtypes, nn

BYTES = bytes([0, 1, 2, 255, 0, 128])


def of_file(path):
    path.write_bytes(BYTES)
    return Tensor(path, dtype=dtypes.bool)


def of_safetensors(path):
    header = b'{"x":{"dtype":"BOOL","shape":[6],"data_offsets":[0,6]}}'
    path.write_bytes(len(header).to_bytes(8, "little") + header + BYTES)
    return nn.state.safe_load(str(path))["x"]


def of_npy(path):
    np.save(path, np.frombuffer(BYTES, np.bool_))
    return Tensor(np.load(str(path) + ".npy"))


SOURCES = {
    "array": lambda path: Tensor(np.frombuffer(BYTES, np.bool_)),
    "strided": lambda path: Tensor(np.frombuffer(bytes(b for x in BYTES for b in (x, 9)), np.bool_)[::2]),
    "dlpack": lambda path: weft.from_dlpack(np.frombuffer(bytearray(BYTES), np.bool_)),
    "bitcast": lambda path: Tensor(BYTES).bitcast(dtypes.bool), "bytes": lambda path: Tensor(BYTES, dtype=dtypes.bool),
    "disk": lambda path: (path.write_bytes(BYTES), Tensor.empty(6, dtype="bool", device=f"disk:{path}"))[1],
    "file": of_file, "npy": of_npy, "safetensors": of_safetensors,
}


@pytest.mark.parametrize("source", SOURCES)
def test_bools(source, tmp_path):
    x = SOURCES[source](tmp_path / "bools")
    wanted = [False, True, True, True, False, True]
    assert x.dtype == dtypes.bool and x.tolist() == wanted and x.numpy().view(np.uint8).tolist() == [int(b) for b in wanted]
    assert x.sort()[0].tolist() == sorted(wanted) and x.cast(dtypes.int32).sum().item() == 4
    assert (x == True).tolist() == wanted and x.argmax().item() == 1 and (~x).tolist() == [not b for b in wanted]
    assert (x ^ Tensor(True)).tolist() == [not b for b in wanted]
    assert x.max().item() is True and bytes(x.data()) == bytes(map(int, wanted))


@needs_torch
def test_bools_of_torch():
    x = torch.frombuffer(bytearray(BYTES), dtype=torch.bool)
    assert weft.from_dlpack(x).sort()[0].tolist() == [False, False, True, True, True, True]


def test_numbers_that_fit_no_dtype():
    assert Tensor([2**63]).dtype == dtypes.uint64 and Tensor([2**63, 1]).tolist() == [2**63, 1]
    assert Tensor(2**64 - 1).item() == 2**64 - 1 and Tensor([-2**63]).tolist() == [-2**63]
    assert Tensor([2**31]).dtype == dtypes.int64 and Tensor([2**31 - 1]).dtype == dtypes.int32
    for numbers in ([2**64], [2**70, 1], 2**70, [-2**63 - 1], [2**63, -1], [[1], [2**100]]):
        with pytest.raises(ValueError, match="no integer dtype"):
            Tensor(numbers)
    assert Tensor([2**70], dtype=dtypes.float64).tolist() == [2.0**70] and Tensor([2**70, 1.0]).tolist() == [2.0**70, 1]


def test_ranges_beyond_32_bits():
    for a, b, step in ((2**31 - 2, 2**31 + 2, 1), (-2**40, -2**40 + 9, 4), (2**63 - 3, 2**63, 1), (0, 2**33, 2**32), (5, -2**40, -2**39),
                       (-2**63, -2**63 + 2, 1), (2**31, 2**31 - 4, -1)):
        assert Tensor.arange(a, b, step).tolist() == list(range(a, b, step))
    assert Tensor.arange(2**63, 2**63 + 2, dtype=dtypes.uint64).tolist() == [2**63, 2**63 + 1]
    with pytest.raises(ValueError):
        Tensor.arange(2**31 - 2, 2**31 + 2, dtype=dtypes.int32)


def test_close_to_numbers():
    x = Tensor([1.0, float("inf"), float("nan")])
    assert x.isclose(1).tolist() == [True, False, False] and x.isclose(float("inf")).tolist() == [False, True, False]
    assert x.isclose(float("nan"), equal_nan=True).tolist() == [False, False, True]
    assert Tensor([1, 2]).isclose(2.0).tolist() == [False, True] and Tensor([True, False]).isclose(True).tolist() == [True, False]
    assert Tensor([.1], dtype=dtypes.float64).isclose(.1, rtol=0, atol=0).tolist() == [True]
    assert Tensor([1.0, 1.0]).allclose(1.0) is True and not Tensor([1, 2]).allclose(1)


@needs_torch
@pytest.mark.parametrize("p", (-2, -1, -.5, 0, .5, 1, 3, float("inf"), float("-inf")))
def test_norms_of_any_order(p):
    x = np.array([[3.0, -4, 0], [1, 2, 2], [-1, 5, 7]], "f4")
    wanted = torch.nn.functional.normalize(torch.tensor(x), p=p, dim=1)
    np.testing.assert_allclose(Tensor(x).normalize(p, 1).numpy(), wanted.numpy(), rtol=1e-5)


def test_positions_of_what_is_not_zero():
    x = Tensor([[0, 3], [4, 0]])
    assert x.nonzero().tolist() == [[0, 1], [1, 0]] and x.nonzero(size=1).tolist() == [[0, 1]]
    assert x.nonzero(size=3, fill_value=-1).tolist() == [[0, 1], [1, 0], [-1, -1]]
    assert x.nonzero(size=0).shape == (0, 2) and Tensor([True, False]).nonzero(size=2, fill_value=9).tolist() == [[0], [9]]
    assert Tensor.zeros(0, 3).nonzero(size=1, fill_value=7).tolist() == [[7, 7]] and Tensor(3).nonzero(size=2).shape == (2, 0)


@needs_torch
@pytest.mark.parametrize("name", ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"))
def test_overflow_of_8_bit_floats(name):
    ours = {"float8_e4m3fn": "fp8e4m3", "float8_e5m2": "fp8e5m2", "float8_e4m3fnuz": "fp8e4m3fnuz", "float8_e5m2fnuz": "fp8e5m2fnuz"}[name]
    inf = float("inf")
    x = np.array([1, 240, 247, 249, 448, 463, 464, 465, 500, 57344, 61439, 61440, 1e9, 3e38, inf, float("nan")], "f4")
    for values in (x, -x):
        wanted = torch.tensor(values).to(getattr(torch, name)).float().numpy()
        for from_ in (Tensor(values), Tensor(values.astype("f8")), Tensor(values) * 1):
            np.testing.assert_array_equal(from_.cast(ours).cast(dtypes.float32).numpy(), wanted)
        np.testing.assert_array_equal(Tensor(values.tolist(), dtype=ours).float().numpy(), wanted)  # on the host
    t = Tensor([240.0, 448.0, 57344.0]).cast(ours)
    half = torch.tensor([240.0, 448.0, 57344.0]).to(getattr(torch, name)).float()
    for f in (lambda v: v + v, lambda v: v * v, lambda v: v * -8):
        np.testing.assert_array_equal(f(t).float().numpy(), f(half).to(getattr(torch, name)).float().numpy())
