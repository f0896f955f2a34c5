"""Tensor itself: making one, what it is, Python's protocols, errors."""
import array
import copy
import pathlib
import pickle
import subprocess
import sys

import numpy as np
import pytest

import weft
from weft import Device, Tensor, dtypes

from conftest import assert_close, assert_equal


# ---- making

@pytest.mark.parametrize("data, dtype, wanted", [
    (3, "int32", 3), (2.5, "float32", 2.5), (True, "bool", True), ([1, 2], "int32", [1, 2]),
    ([[1.0, 2], [3, 4]], "float32", [[1, 2], [3, 4]]), ((1, 2.5), "float32", [1, 2.5]),
    ([True, False], "bool", [True, False]), ([True, 2], "int32", [1, 2]), ([], "float32", []),
    ([[], []], "float32", [[], []]), (2**40, "int64", 2**40), ([2**40, 1], "int64", [2**40, 1]),
    (b"ab", "uint8", [97, 98]), (bytearray(b"ab"), "uint8", [97, 98]), (None, "float32", []),
    (array.array("h", [1, -2]), "int16", [1, -2]), (memoryview(b"xy"), "uint8", [120, 121]),
    (np.float32(1.5), "float32", 1.5), (np.int8(3), "int8", 3), ([np.int64(3), 4], "int64", [3, 4]),
    ([np.ones(2), np.zeros(2)], "float64", [[1, 1], [0, 0]]), ([np.float32(1.5)], "float32", [1.5]),
])
def test_from_data(data, dtype, wanted):
    t = Tensor(data)
    assert t.dtype == dtypes.__dict__[dtype]
    assert t.tolist() == wanted


@pytest.mark.parametrize("dtype", ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
                                   "float16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (2, 0, 4)])
def test_numpy_both_ways(dtype, shape):
    a = (np.arange(np.prod(shape, dtype=int)) % 2).reshape(shape).astype(dtype)
    t = Tensor(a)
    assert t.dtype.name == dtype and t.shape == shape
    assert_equal(t, a)
    assert_equal(np.asarray(t), a)
    assert t.tolist() == a.tolist()


@pytest.mark.parametrize("change", [lambda a: a[::-1], lambda a: a[:, ::2], lambda a: a.T, lambda a: np.broadcast_to(a[0], (5, 6)),
                                    lambda a: a[1:3, 2:5], lambda a: np.asfortranarray(a), lambda a: a[:0]])
def test_numpy_arrays_with_any_strides(change):
    a = change(np.arange(24.0).reshape(4, 6))
    assert_equal(Tensor(a), np.ascontiguousarray(a))


def test_data_is_copied():
    a = np.zeros(3)
    t = Tensor(a)
    a[0] = 7
    assert t.tolist() == [0, 0, 0]
    out = t.numpy()
    out[1] = 5
    assert t.tolist() == [0, 0, 0]


@pytest.mark.parametrize("data", [[[1], [2, 3]], [[1, 2], 3], [1, [2]], [[[1]], [[1, 2]]]])
def test_ragged_lists_are_refused(data):
    with pytest.raises(ValueError, match="rectangular"):
        Tensor(data)


@pytest.mark.parametrize("data", [object(), "text", [None], [1, "a"], {"a": 1}, [[object()]], 1j])
def test_what_is_no_number_is_refused(data):
    with pytest.raises(TypeError):
        Tensor(data)


def test_arrays_that_no_dtype_holds_are_refused():
    for a in [np.zeros(2, dtype=complex), np.array(["a"]), np.zeros(2, dtype=">f4"), np.zeros(2, dtype="M8[s]")]:
        with pytest.raises((TypeError, BufferError, ValueError)):
            Tensor(a)


def test_a_list_in_itself_is_refused():
    loop = []
    loop.append(loop)
    with pytest.raises(ValueError):
        Tensor(loop)


def test_dtype_and_raw_bytes():
    assert Tensor([1.7, 2], dtype="int8").tolist() == [1, 2]
    assert Tensor(np.arange(3), dtype=dtypes.half).dtype == dtypes.float16
    assert Tensor(np.array([1.5], "float32").tobytes(), dtype=dtypes.float32).tolist() == [1.5]
    with pytest.raises(ValueError, match="whole number"):
        Tensor(b"abc", dtype=dtypes.float32)


def test_path(tmp_path):
    path = tmp_path / "data.bin"
    path.write_bytes(bytes(range(8)))
    assert Tensor(pathlib.Path(path)).tolist() == list(range(8))
    assert Tensor(path, dtype="uint32").tolist() == [0x03020100, 0x07060504]
    with pytest.raises(FileNotFoundError):
        Tensor(tmp_path / "missing")


def test_constants_and_sequences():
    assert_equal(Tensor.zeros(2, 3), np.zeros((2, 3), "float32"))
    assert_equal(Tensor.ones((2, 3), dtype="int8"), np.ones((2, 3), "int8"))
    assert_equal(Tensor.full((2,), 7), np.full(2, 7, "int32"))
    assert_equal(Tensor.full((2,), 7.5, buffer=False), np.full(2, 7.5, "float32"))
    assert Tensor.full((), True).item() is True
    assert_equal(Tensor.arange(5), np.arange(5, dtype="int32"))
    assert_equal(Tensor.arange(2, 9, 3), np.arange(2, 9, 3, dtype="int32"))
    assert_equal(Tensor.arange(5, 0, -2), np.arange(5, 0, -2, dtype="int32"))
    assert_close(Tensor.arange(0, 1, .25), np.arange(0, 1, .25))
    assert_close(Tensor.linspace(0, 1, 5), np.linspace(0, 1, 5))
    assert_equal(Tensor.eye(2, 3), np.eye(2, 3, dtype="float32"))
    x = Tensor([[1, 2]], dtype="int16")
    for like in (x.zeros_like(), x.ones_like(), x.full_like(3), x.empty_like()):
        assert like.dtype == dtypes.int16 and like.shape == (1, 2)
    with pytest.raises(ValueError):
        Tensor.zeros(-1)


def test_random():
    Tensor.manual_seed(3)
    a = Tensor.rand(100).numpy()
    b = Tensor.rand(100).numpy()
    Tensor.manual_seed(3)
    assert_equal(Tensor.rand(100), a)
    assert (a != b).any() and (0 <= a).all() and (a < 1).all()
    assert abs(Tensor.randn(10000).numpy().std() - 1) < .05
    assert set(Tensor.randint(1000, low=2, high=5).tolist()) == {2, 3, 4}
    assert sorted(Tensor.randperm(20).tolist()) == list(range(20))
    assert Tensor.uniform(5, low=2, high=3).dtype == dtypes.float32
    assert Tensor.kaiming_uniform(3, 4).shape == (3, 4) and Tensor.glorot_uniform(3, 4).shape == (3, 4)
    assert Tensor.rand(3, dtype="half").dtype == dtypes.half


def test_defaults_of_dtypes():
    try:
        dtypes.default_float = dtypes.float64
        assert Tensor([1.0]).dtype == dtypes.float64 and Tensor.zeros(1).dtype == dtypes.float64
        assert Tensor([1]).float().dtype == dtypes.float64
    finally:
        dtypes.default_float = dtypes.float32
    with pytest.raises(TypeError):
        dtypes.default_float = dtypes.int32
    with weft.Context(DEFAULT_FLOAT="half"):
        assert Tensor([1.0]).dtype == dtypes.half
    assert Tensor([1.0]).dtype == dtypes.float32


def test_dtypes():
    assert dtypes.float is dtypes.float32 and repr(dtypes.float) == "dtypes.float32"
    assert dtypes.half.itemsize == 2 and dtypes.bool.fmt == "?"
    assert dtypes.finfo(dtypes.half) == (5, 10) and dtypes.finfo(dtypes.bfloat16) == (8, 7)
    assert dtypes.min(dtypes.int8) == -128 and dtypes.max(dtypes.uint64) == 2**64 - 1
    assert dtypes.is_float(dtypes.bfloat16) and not dtypes.is_int(dtypes.bool) and dtypes.is_unsigned(dtypes.uchar)
    assert dtypes.from_py([1, 2.0]) == dtypes.float32
    assert pickle.loads(pickle.dumps(dtypes.half)) is dtypes.half
    assert weft.dtype.least_upper_dtype(dtypes.int8, dtypes.uint8) == dtypes.int16
    assert len({dtypes.int, dtypes.int32, dtypes.long}) == 2


# ---- what it is

def test_properties():
    t = Tensor([[1.0, 2, 3]])
    assert (t.shape, t.ndim, t.numel(), t.size(), t.size(1), len(t)) == ((1, 3), 2, 3, (1, 3), 3, 1)
    assert (t.nbytes(), t.element_size(), t.is_floating_point()) == (12, 4, True)
    assert t.device == Device.DEFAULT == "CPU"
    assert Tensor.__module__ == "weft"


def test_repr_computes_nothing():
    t = Tensor([1.0, 2.0])
    assert repr(t) == "Tensor([1, 2], dtype=dtypes.float32)"
    y = t + 1
    assert "not realized" in repr(y) and not y.is_realized
    assert repr(y.realize()) == "Tensor([2, 3], dtype=dtypes.float32)"


def test_scalars():
    assert Tensor(3.5).item() == 3.5 and type(Tensor([3]).item()) is int and Tensor(True).item() is True
    assert float(Tensor(2.5)) == 2.5 and int(Tensor(7)) == 7
    assert Tensor(2**63, dtype="uint64").item() == 2**63
    with pytest.raises(ValueError, match="item"):
        Tensor([1, 2]).item()


def test_truth_is_numpys():
    assert bool(Tensor(1)) and not Tensor([0.0])
    for t in (Tensor([1, 2]), Tensor([])):
        with pytest.raises(ValueError, match="ambiguous"):
            bool(t)


def test_container_protocols():
    t = Tensor([[1, 2], [3, 4]])
    assert [row.tolist() for row in t] == [[1, 2], [3, 4]]
    a, b = t
    assert b.tolist() == [3, 4]
    assert 3 in t and 7 not in t
    with pytest.raises(TypeError):
        len(Tensor(1))
    with pytest.raises(TypeError):
        iter(Tensor(1))


def test_identity_is_the_hash():
    a, b = Tensor([1]), Tensor([1])
    assert len({a, b}) == 2 and a in {a: 1}
    assert (a == None) is False and (a != None) is True  # noqa: E711
    assert isinstance(a == b, Tensor)


def test_buffer_protocol():
    t = Tensor([[1, 2, 3], [4, 5, 6]])
    m = t.data()
    assert (m.shape, m.format, m.readonly, m.tolist()) == ((2, 3), "i", True, [[1, 2, 3], [4, 5, 6]])
    assert bytes(t[0]) == np.array([1, 2, 3], "int32").tobytes()
    with pytest.raises(TypeError):
        m[0, 0] = 1
    with pytest.raises(BufferError):
        memoryview(Tensor([1.0], dtype="bfloat16"))


def test_what_was_exported_keeps_its_contents():
    t = Tensor([1.0, 2.0])
    seen = np.asarray(t)
    t += 1
    t.realize()
    assert seen.tolist() == [1, 2] and t.tolist() == [2, 3]
    del t
    assert seen.tolist() == [1, 2]


def test_bfloat16_through_numpy():
    t = Tensor([1.5, -2], dtype="bfloat16")
    assert t.numpy().dtype == np.float32 and t.tolist() == [1.5, -2]
    assert np.asarray(t).dtype == np.float32


@pytest.mark.parametrize("name", ["fp8e4m3", "fp8e5m2", "fp8e4m3fnuz", "fp8e5m2fnuz"])
def test_eight_bit_floats(name):
    dtype = dtypes.__dict__[name]
    t = Tensor([1.5, -2, 0.25], dtype=dtype)
    assert t.dtype is dtype and dtype.itemsize == 1 and dtypes.is_float(dtype) and dtype in dtypes.fp8s
    assert t.tolist() == [1.5, -2, .25] and t.numpy().dtype == np.float32
    assert (t + 1).dtype is dtype and (t * Tensor([2.0, 2, 2])).tolist() == [3, -4, .5]
    assert weft.from_dlpack(t).tolist() == t.tolist() and pickle.loads(pickle.dumps(t)).dtype is dtype
    assert t.bitcast("uint8").bitcast(dtype).tolist() == t.tolist()


def test_pickle_and_copy():
    t = Tensor([[1.0, 2.0]], requires_grad=True)
    u = pickle.loads(pickle.dumps(t))
    assert_equal(u, t.numpy())
    assert u.requires_grad is True and u.dtype == t.dtype
    v = copy.deepcopy(t)
    v += 1
    assert t.tolist() == [[1, 2]]
    assert pickle.loads(pickle.dumps(Tensor([1.5], dtype="bfloat16"))).tolist() == [1.5]


def test_clone_assign_replace():
    t = Tensor([1.0, 2.0])
    c = t.clone()
    c.assign([5, 6])
    assert t.tolist() == [1, 2] and c.tolist() == [5, 6]
    view = t[1:]
    view.assign(9)
    assert t.tolist() == [1, 9]
    with pytest.raises(ValueError, match="assign"):
        t.assign([1, 2, 3])
    alias = t
    t.replace(Tensor([3]))
    assert alias.tolist() == [3]


def test_small_ones_of_tinygrads():
    t = Tensor([[1.0, 2.0]])
    assert t.const_like(3).tolist() == [[3, 3]] and t.usum(t, 1).tolist() == [[3, 5]] and t.uprod(t, 2).tolist() == [[2, 8]]
    assert t.max_shape == (1, 2) and t.max_numel == 2 and t.contiguous_backward().tolist() == [[1, 2]]
    assert t.to_("CPU:INTERP").device == "CPU:INTERP" and t.device == "CPU:INTERP"
    assert t.sequential([lambda x: x + 1, Tensor.sum]).item() == 5
    n = weft.Variable("n", 1, 5).bind(2)
    assert t.expand(n, 2).max_shape == (5, 2)


def test_devices():
    assert "CPU" in Device.get_available_devices()
    assert Tensor([1, 2], device="CPU:INTERP").device == "CPU:INTERP"
    assert (Tensor([1, 2]).to("CPU:INTERP") + 1).to("CPU").tolist() == [2, 3]
    assert repr(Device["cpu"]) == "<Device CPU>" and Device.canonicalize(None) == "CPU"
    with pytest.raises(ValueError, match="there is no device"):
        Device["TPU"]
    with weft.Context(DEV="CPU:INTERP"):
        assert Tensor([1]).device == "CPU:INTERP"


# ---- errors

@pytest.mark.parametrize("call, kind, text", [
    (lambda t: t.reshape(4), ValueError, "reshape"), (lambda t: t + Tensor([1, 2]), ValueError, "broadcast|shape"),
    (lambda t: t[3], IndexError, "out of bounds"), (lambda t: t.sum(axis=2), IndexError, "axis"),
    (lambda t: t["a"], IndexError, "index"), (lambda t: t[1.5], IndexError, "index"), (lambda t: t + "a", TypeError, "unsupported"),
    (lambda t: t & 1, TypeError, "integers"), (lambda t: t.matmul(Tensor.ones(2)), ValueError, "inner|matmul"),
    (lambda t: t.reshape("a"), TypeError, "sizes"), (lambda t: t.nonsense, AttributeError, "nonsense"),
    (lambda t: t.sum(axes=1), TypeError, "incompatible"), (lambda t: t.permute(0, 0), (ValueError, IndexError), "permute"),
    (lambda t: Tensor.cat([t, "a"]), TypeError, "does not take"), (lambda t: t.expand(5), ValueError, "expand"),
])
def test_errors(call, kind, text):
    with pytest.raises(kind, match=text):
        call(Tensor([1.0, 2.0, 3.0]))


def test_errors_name_the_line_and_carry_a_code():
    with pytest.raises(ValueError) as caught:
        Tensor([1.0, 2.0]).reshape(3)
    assert "test_tensor.py:" in str(caught.value) and caught.value.code == "reshape"


def test_errors_inside_the_package_name_the_users_line():
    with pytest.raises(ValueError) as caught:
        weft.nn.Linear(3, 4)(Tensor.ones(2))
    assert "test_tensor.py:" in str(caught.value)


def test_interrupt_leaves_tensors_whole():
    program = ("import os, signal, threading\nfrom weft import Tensor\nt = Tensor.zeros(1000)\n"
               # A child of a background job inherits that it is ignored.
               "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
               "threading.Timer(.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
               "try:\n  while True:\n    t += 1\n    t.realize()\n"
               "except KeyboardInterrupt:\n  a = t.tolist()\n  assert len(set(a)) == 1 and a[0] > 0\n  print('whole')\n")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "whole", done.stderr


def test_interrupt_ends_a_long_run_between_kernels():
    program = """
import os, signal, threading, time
from weft import Tensor
signal.signal(signal.SIGINT, signal.default_int_handler)
x = Tensor.eye(512).contiguous().realize()
y = x
for _ in range(5000):
    y = (y @ x).contiguous()
(x @ x).realize()
threading.Timer(1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
begin = time.monotonic()
try:
    y.realize()
    print("not interrupted after", time.monotonic() - begin)
except KeyboardInterrupt:
    assert (x @ x).sum().item() == 512 and not y.is_realized
    print("interrupted")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "interrupted", done.stdout + done.stderr


def test_interrupt_waits_for_what_is_updated_in_place():
    program = """
import os, signal, threading
from weft import Tensor
signal.signal(signal.SIGINT, signal.default_int_handler)
t = Tensor.zeros(1 << 20).contiguous().realize()
for delay in range(30):
    before = t[0].item()
    timer = threading.Timer(.01 * delay, lambda: os.kill(os.getpid(), signal.SIGINT))
    try:
        timer.start()
        while True:
            t += 1
            t.realize()
    except KeyboardInterrupt:
        pass
    timer.join()
    assert t.min().item() == t.max().item() >= before
print("whole")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "whole", done.stdout + done.stderr


def test_import_is_light():
    program = "import sys, weft\nassert 'numpy' not in sys.modules and 'torch' not in sys.modules\nprint(weft.__version__)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == weft.__version__, done.stderr


def test_every_method_has_help():
    missing = [name for name in dir(Tensor) if not name.startswith("_") and not getattr(Tensor, name).__doc__]
    assert missing == []


# ---- as tinygrad has them

def test_a_clone_of_a_constant_is_a_leaf_of_its_own():
    x, y = Tensor.eye(2).clone(), Tensor.eye(2).clone()
    (x * 2 + y * 3).sum().backward()
    assert x.grad.tolist() == [[2, 2], [2, 2]] and y.grad.tolist() == [[3, 3], [3, 3]]


def test_a_clone_takes_the_gradient_along():
    x = Tensor([1.0, 2.0])
    (x * x).sum().backward()
    y = x.clone()
    assert y.grad.tolist() == [2, 4]
    y.grad = None
    assert x.grad.tolist() == [2, 4] and x.is_param
    x.is_param = False
    assert not x.is_param and x.requires_grad is False


def test_what_is_there_already_is_itself():
    x = Tensor([1, 2])
    assert x.to("cpu") is x and x.to(None) is x and x.to(x.device) is x and Tensor([1], device="cpu").device == "CPU"


def test_quotients_of_integers_have_the_default_float():
    before = dtypes.default_float
    try:
        for dtype in (dtypes.float16, dtypes.float64):
            dtypes.default_float = dtype
            x = Tensor([1, 2])
            assert {(x / x).dtype, (x / 2).dtype, (1 / x).dtype, x.div(x).dtype, x.div(3).dtype} == {dtype}
            assert (Tensor([1], dtype="int32") / Tensor([2.0], dtype="float32")).dtype == dtypes.float32
    finally:
        dtypes.default_float = before
    assert (Tensor([7]) / 2).tolist() == [3.5] and (Tensor([7]) / 2).dtype == dtypes.float32
