"""weft.helpers, weft.dtype, weft.device: the small things that programs of tinygrad import."""
import hashlib
import http.server
import pickle
import subprocess
import sys
import tarfile
import threading

import numpy as np
import pytest

import weft
from conftest import needs_torch
from weft import Context, Tensor, dtypes
from weft.device import Device, canonicalize_device, is_dtype_supported
from weft.dtype import (DTYPES_DICT, _from_np_dtype, _to_np_dtype, from_storage_scalar, least_upper_dtype, strong_dtype,
                        to_dtype, to_storage_scalar, truncate, weak_dtype)
from weft.helpers import (ContextVar, GlobalCounters, Timing, all_int, ansilen, argfix, argsort, cdiv, ceildiv, cmod,
                          colored, dedup, fetch, flat_to_grouped, flatten, from_mv, fully_flatten, get_child, get_shape,
                          get_single_element, make_tuple, merge_dicts, mv_address, next_power2, partition, polyN, prod,
                          round_down, round_up, strides_for_shape, to_mv, tqdm, trange, unwrap)


@pytest.mark.parametrize("got, wanted", (
    (prod(()), 1), (prod([2, 3, 4]), 24), (argfix(1, 2), (1, 2)), (argfix([1, 2]), (1, 2)), (argfix(), ()),
    (argsort([30, 10, 20]), [1, 2, 0]), (argsort((2, 1)), (1, 0)), (dedup([3, 1, 3, 2, 1]), [3, 1, 2]),
    (all_int((1, 2)), True), (all_int((1, 2.0)), False), (flatten([[1], [2, 3]]), [1, 2, 3]),
    (fully_flatten([1, [2, [3, "ab"]]]), [1, 2, 3, "ab"]), (fully_flatten(np.array([[1, 2]])), [1, 2]),
    (get_shape([[1, 2], [3, 4], [5, 6]]), (3, 2)), (partition([1, 2, 3], lambda x: x > 1), ([2, 3], [1])),
    (merge_dicts([{1: 2}, {3: 4}]), {1: 2, 3: 4}), (make_tuple(3, 2), (3, 3)), (make_tuple([1, 2], 2), (1, 2)),
    (flat_to_grouped((1, 2, 3, 4)), ((3, 4), (1, 2))), (strides_for_shape((2, 3, 4)), (12, 4, 1)),
    (strides_for_shape((2, 1)), (1, 0)), (ceildiv(7, 2), 4), (ceildiv(-7, 2), -3), (round_up(7, 4), 8),
    (round_down(7, 4), 4), (next_power2(0), 1), (next_power2(5), 8), (next_power2(8), 8), (cdiv(-7, 2), -3),
    (cdiv(1, 0), 0), (cmod(-7, 2), -1), (polyN(2.0, [1.0, 2.0, 3.0]), 11.0), (unwrap(3), 3),
    (get_single_element([4]), 4), (get_child({"a": [1, 2]}, "a.1"), 2), (ansilen(colored("abc", "RED")), 3)))
def test_functions(got, wanted):
    assert got == wanted


def test_functions_refuse():
    for call, kind in ((lambda: argfix((1,), 2), ValueError), (lambda: get_shape([[1], [2, 3]]), ValueError),
                       (lambda: merge_dicts([{1: 2}, {1: 3}]), RuntimeError), (lambda: unwrap(None), AssertionError),
                       (lambda: get_single_element([]), AssertionError)):
        with pytest.raises(kind):
            call()


def test_context_vars():
    var = ContextVar("WEFTS_TEST_VAR", 3)
    assert var == 3 and var > 2 and var >= 3 and var < 4 and var and int(var) == 3
    with Context(WEFTS_TEST_VAR=5, BEAM=2):
        assert var.value == 5 and weft.helpers.BEAM == 2
        with Context(WEFTS_TEST_VAR=0):
            assert not var
        assert pickle.loads(pickle.dumps(var)) is var
    assert var.value == 3 and weft.helpers.BEAM == 0

    @Context(WEFTS_TEST_VAR=7)
    def decorated():
        return var.value
    assert decorated() == 7 and var == 3
    with pytest.raises(RuntimeError):
        ContextVar("WEFTS_TEST_VAR", 0)
    with pytest.raises(KeyError):
        Context(NO_SUCH_FLAG=1)
    with Context(DEFAULT_FLOAT="HALF"):
        assert Tensor([1.0]).dtype == dtypes.half
    assert weft.helpers.DEBUG.value == 0
    with pytest.raises(ImportError):
        from weft.helpers import NO_SUCH_NAME  # noqa: F401


def test_threads_before_the_first_kernel():
    program = ("import os, weft; weft.helpers.THREADS.value = {}; x = weft.Tensor.rand(512, 512); "
               "(x @ x).realize(); print(len(os.listdir('/proc/self/task')))")
    one, three = (int(subprocess.run([sys.executable, "-c", program.format(n)], capture_output=True, text=True,
                                     check=True).stdout) for n in (1, 3))
    assert three == one + 2


def test_what_is_shown(capsys):
    with Timing("took: ", lambda ns: " so long"):
        pass
    assert capsys.readouterr().out.startswith("took: ")
    assert list(tqdm([1, 2], desc="d")) == [1, 2] and list(trange(3)) == [0, 1, 2]
    assert "d: 100%" in capsys.readouterr().err
    with tqdm(total=2e6, unit="B", unit_scale=True, disable=True) as bar:
        bar.update(1000)
    assert capsys.readouterr().err == ""
    assert set(GlobalCounters.mem_used_per_device) == {Device.DEFAULT}


def test_memory_of_buffers():
    data = bytearray(np.arange(4, dtype=np.int32).tobytes())
    t = Tensor.from_blob(mv_address(memoryview(data)), (4,), dtype=dtypes.int32, device="CPU")
    assert t.tolist() == [0, 1, 2, 3]
    assert bytes(to_mv(mv_address(memoryview(data)), 4)) == b"\0\0\0\0" and len(from_mv(memoryview(data))) == 16


# ---- files from elsewhere

@pytest.fixture
def served(tmp_path, monkeypatch):
    folder = tmp_path / "served"
    folder.mkdir()
    (folder / "a.bin").write_bytes(b"abcd")
    with tarfile.open(folder / "b.tar", "w") as tar:
        tar.add(folder / "a.bin", "inside/a.bin")
    hits = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=str(folder))

        def log_message(self, *args):
            hits.append(args)

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", folder, hits
        server.shutdown()


def test_fetch(served):
    url, folder, hits = served
    digest = hashlib.sha256(b"abcd").hexdigest()
    path = fetch(url + "/a.bin", sha256=digest)
    assert path.read_bytes() == b"abcd" and fetch(url + "/a.bin") == path and len(hits) == 1
    path.write_bytes(b"changed")
    assert fetch(url + "/a.bin", sha256=digest).read_bytes() == b"abcd" and len(hits) == 2
    with pytest.raises(RuntimeError, match="SHA-256"):
        fetch(url + "/a.bin", name="other", sha256="0" * 64)
    unpacked = fetch(url + "/b.tar", extract=True)
    assert (unpacked / "inside" / "a.bin").read_bytes() == b"abcd"
    assert Tensor.from_url(url + "/a.bin").tolist() == list(b"abcd")
    assert Tensor.from_url((folder / "a.bin").as_uri()).tolist() == list(b"abcd")


# ---- dtypes

def test_dtypes_of_pythons_numbers():
    assert [dtypes.from_py(x) for x in (1, 1.5, True)] == [dtypes.weakint, dtypes.weakfloat, dtypes.bool]
    assert dtypes.from_py([1, 2.5]) == dtypes.float32
    assert strong_dtype(dtypes.weakint) == dtypes.int32 and strong_dtype(dtypes.half) == dtypes.half
    assert weak_dtype(dtypes.int8) is dtypes.weakint and weak_dtype(dtypes.bool) == dtypes.bool
    assert pickle.loads(pickle.dumps(dtypes.weakfloat)) is dtypes.weakfloat
    for given, wanted in (((dtypes.int8, dtypes.weakint), dtypes.int8), ((dtypes.bool, dtypes.weakint), dtypes.weakint),
                          ((dtypes.int8, dtypes.weakfloat), dtypes.weakfloat),
                          ((dtypes.half, dtypes.weakfloat), dtypes.half), ((dtypes.int8, dtypes.uint8), dtypes.int16)):
        assert least_upper_dtype(*given) == wanted
    assert Tensor([1.5], dtype=dtypes.weakint).dtype == dtypes.int32
    assert dtypes.is_int(dtypes.weakint) and not dtypes.is_float(dtypes.weakint)


def test_names_of_dtypes():
    assert to_dtype("HALF") == dtypes.half and DTYPES_DICT["float"] == dtypes.float32
    with pytest.raises(AttributeError):
        to_dtype("typo")
    for dtype in dtypes.all:
        assert is_dtype_supported(dtype) and pickle.loads(pickle.dumps(dtype)) == dtype
    assert _to_np_dtype(dtypes.bfloat16) == np.float32 and _to_np_dtype(dtypes.int8) == np.int8
    assert _from_np_dtype(np.dtype(np.uint16)) == dtypes.uint16
    assert sorted([dtypes.half, dtypes.bool, dtypes.int8]) == [dtypes.bool, dtypes.int8, dtypes.half]


@needs_torch
def test_names_of_dtypes_in_torch():
    import torch
    from weft.dtype import _from_torch_dtype, _to_torch_dtype
    for dtype in dtypes.all:
        if dtype not in dtypes.fp8s:
            assert _from_torch_dtype(_to_torch_dtype(dtype)) == dtype
    assert _to_torch_dtype(dtypes.fp8e4m3) == torch.uint8


def test_single_numbers():
    for dtype in dtypes.ints:
        for x in (0, 1, -1, 127, 128, 255, 256, 2**31, -2**31 - 1, 2**63, 2**64 - 1):
            wanted = int(np.array([x % 2**64], dtype=np.uint64).astype(dtype.name)[0])
            assert truncate[dtype](x) == wanted
    assert truncate[dtypes.half](70000.0) == float("inf") and truncate[dtypes.bool](0.5) is True
    for dtype in (dtypes.bfloat16, *dtypes.fp8s):
        assert from_storage_scalar(to_storage_scalar(1.5, dtype), dtype) == 1.5
    assert to_storage_scalar(1.0, dtypes.bfloat16) == 0x3F80
    assert dtypes.int8.const(3.7) == 3 and dtypes.float32.const(3) == 3.0


def test_devices():
    assert canonicalize_device(None) == Device.DEFAULT == Device.default.device
    assert canonicalize_device(("CPU", "CPU:1")) == ("CPU", "CPU:1") and canonicalize_device(["CPU"]) == "CPU"
    assert "CPU" in list(Device.get_available_devices())


def test_paths_of_modules():
    import weft.engine.jit
    assert weft.engine.jit.TinyJit is weft.TinyJit and weft.engine.jit.JitError is weft.JitError
