"""Flags, counters, downloads, and small functions on numbers and lists that programs of tinygrad import."""
import contextlib
import functools
import os
import warnings
from typing import Any

from weft import _core
from weft.containers import (all_int, all_same, argfix, argsort, cdiv, ceildiv, cmod, data64, data64_le, dedup,
                             flat_to_grouped, flatten, floordiv, floormod, fully_flatten, get_child, get_shape,
                             get_single_element, getbits, hi32, i2u, lo32, make_tuple, merge_dicts, next_power2,
                             pad_bytes, partition, polyN, prod, round_down, round_up, strides_for_shape, to_tuple,
                             unwrap)
from weft.downloads import fetch
from weft.progress import (CI, OSX, WIN, Profiling, Timing, ansilen, ansipad, ansistrip, colored, colorize_float,
                           pluralize, size_to_str, stderr_log, temp, time_to_str, tqdm, trange)

__all__ = ["CI", "Context", "ContextVar", "GlobalCounters", "OSX", "Profiling", "Timing", "WIN", "all_int",
           "all_same", "ansilen", "ansipad", "ansistrip", "argfix", "argsort", "cdiv", "ceildiv", "cmod", "colored",
           "colorize_float", "data64", "data64_le", "dedup", "fetch", "floordiv", "floormod", "getbits", "hi32",
           "i2u", "lo32", "pad_bytes", "pluralize", "size_to_str", "stderr_log", "time_to_str", "flat_to_grouped",
           "flatten", "from_mv", "fully_flatten", "get_child", "get_shape", "get_single_element", "getenv",
           "make_tuple", "merge_dicts", "mv_address", "next_power2", "partition", "polyN", "prod", "profile_marker",
           "round_down", "round_up", "strides_for_shape", "temp", "to_mv", "to_tuple", "tqdm", "trange", "unwrap"]


@functools.cache
def getenv(key: str, default: Any = 0) -> Any:
    """An environment variable, as the type of the default."""
    return type(default)(os.environ.get(key, default))


class ContextVar:
    """A named number or text that Context() sets for a block; at first what the environment says."""
    _all: dict[str, "ContextVar"] = {}

    def __init__(self, key: str, default_value: Any) -> None:
        if key in ContextVar._all:
            raise RuntimeError(f"there is a ContextVar {key} already")
        ContextVar._all[key] = self
        self.key = key
        self._given = getenv(key, default_value)

    @property
    def value(self) -> Any:
        return self._given

    @value.setter
    def value(self, value: Any) -> None:
        self._given = value

    def __bool__(self) -> Any:
        return bool(self.value)

    def __eq__(self, other: Any) -> Any:
        return self.value == other

    def __lt__(self, other: Any) -> Any:
        return self.value < other

    def __le__(self, other: Any) -> Any:
        return self.value <= other

    def __gt__(self, other: Any) -> Any:
        return self.value > other

    def __ge__(self, other: Any) -> Any:
        return self.value >= other

    def __hash__(self) -> Any:
        return hash(self.key)

    def __int__(self) -> Any:
        return int(self.value)

    def __repr__(self) -> Any:
        return f"ContextVar({self.key}={self.value})"

    def __reduce__(self) -> Any:
        return _context_var, (self.key, self.value)


def _context_var(key: str, value: Any) -> ContextVar:
    """A pickled one: the one of that name here."""
    return ContextVar._all[key] if key in ContextVar._all else ContextVar(key, value)


class _WithoutEffect(ContextVar):
    """A flag of tinygrad's about its own compiler: taken, and said once to do nothing here."""

    def __init__(self, key: str, default_value: Any) -> None:
        super().__init__(key, default_value)
        self._said = False
        self._say(self._given)

    @property
    def value(self) -> Any:
        return self._given

    @value.setter
    def value(self, value: Any) -> None:
        self._say(value)
        self._given = value

    def _say(self, value: Any) -> None:
        if value and not self._said:
            self._said = True
            warnings.warn(f"{self.key}={value} has no effect: it is about tinygrad's compiler, and weft has its own",
                          stacklevel=4)


class _Bound(ContextVar):
    """One that weft itself reads."""

    def __init__(self, key: str, get: Any, set: Any) -> None:
        ContextVar._all[key] = self
        self.key, self.get, self.set = key, get, set

    @property
    def value(self) -> Any:
        return self.get()

    @value.setter
    def value(self, value: Any) -> None:
        self.set(value)


def _option(name: str, kind: Any = int) -> Any:
    return _Bound(name, lambda: kind(_core.option(name)),
                  lambda value: _core.set_option(name, str(kind(value))))


def _default_dtype(name: str, get: Any, set: Any) -> Any:
    def read(value: Any) -> None:
        set(value if isinstance(value, _core.DType) else str(value).lower())
    return _Bound(name, get, read)


# Names of tinygrad's that weft has a meaning for, and weft's own options.
_Bound("TRAINING", lambda: int(_core.is_training()), lambda value: _core.set_training(bool(value)))
_Bound("JIT", lambda: int(_core.option("JIT")), lambda value: _core.set_option("JIT", str(int(bool(value)))))
_Bound("DEV", _core.default_device, _core.set_default_device)
_option("DEBUG")
_option("BEAM")
_option("THREADS")  # counts until the first kernel runs
_option("DETERMINISTIC")
_default_dtype("DEFAULT_FLOAT", _core.default_float, _core.set_default_float)
_default_dtype("DEFAULT_INT", _core.default_int, _core.set_default_int)
_Bound("NO_COLOR", lambda: int(bool(os.environ.get("NO_COLOR"))),
       lambda value: os.environ.__setitem__("NO_COLOR", str(value) if value else ""))
# Names of tinygrad's that say how its compiler should work: taken, and without effect here.
for _name in """
    TRACEMETA PROFILE VIZ TRACK_MATCH_STATS DEBUG_RANGEIFY SPEC CHECK_OOB IGNORE_OOB VALIDATE_WITH_CPU
    NOOPT IGNORE_BEAM_CACHE TC USE_TC TC_SELECT TC_OPT NOLOCALS SPLIT_REDUCEOP WINO TRANSCENDENTAL DISABLE_FAST_IDIV
    PCONTIG FUSE_OPTIM USE_ATOMICS MAX_KERNEL_BUFFERS ALLOW_TF32 TUPLE_ORDER IMAGE FLOAT16 OPENPILOT_HACKS
    DISALLOW_BROADCAST JIT_BATCH_SIZE CAPTURING NO_MEMORY_PLANNER LRU RING ALL2ALL ALLREDUCE_CAST ALLOW_DEVICE_USAGE
    MAX_BUFFER_SIZE NUM_CPU_THREADS NULL_ALLOW_COPYOUT CACHELEVEL CCACHE SCACHE PARALLEL REWRITE_STACK_LIMIT
    CAPTURE_PROCESS_REPLAY FUSE_ARANGE
    """.split():
    _WithoutEffect(_name, 0)
_WithoutEffect("EMULATED_DTYPES", "")


def __getattr__(name: str) -> Any:
    """weft.helpers.DEBUG and the like."""
    if name in ContextVar._all:
        return ContextVar._all[name]
    raise AttributeError(f"module 'weft.helpers' has no attribute '{name}'")


class Context(contextlib.ContextDecorator):
    """with Context(DEBUG=2, TRAINING=1): flags that hold inside; also a decorator."""

    def __init__(self, **kwargs: Any) -> None:
        unknown = sorted(kwargs.keys() - ContextVar._all.keys())
        if unknown:
            raise KeyError(f"Context() knows no {', '.join(unknown)}; make it with ContextVar(name, default)")
        self.flags = kwargs
        self.outer: list[dict[str, Any]] = []

    def __enter__(self) -> Any:
        outer: dict[str, Any] = {}
        self.outer.append(outer)
        try:
            for name, value in self.flags.items():
                before = ContextVar._all[name].value
                ContextVar._all[name].value = value
                outer[name] = before
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exception: Any) -> None:
        for name, value in self.outer.pop().items():
            ContextVar._all[name].value = value


def profile_marker(name: str, color: str = "gray") -> None:
    """A mark on tinygrad's time line, which weft has not: nothing."""


class _Counters:
    """What ran since the process started or since reset()."""
    _NAMES = {"global_ops": "flops", "global_mem": "bytes", "kernel_count": "kernels",
              "time_sum_s": "seconds", "mem_used": "memory_live", "mem_peak": "memory_peak",
              "compile_time_s": "compile_seconds"}

    @property
    def mem_used_per_device(self) -> dict[str, int]:
        return {_core.default_device(): self.mem_used}

    def __getattr__(self, name: str) -> Any:
        if name not in self._NAMES:
            raise AttributeError(f"GlobalCounters has no {name}; it has {', '.join(self._NAMES)}")
        return _core.stats()[self._NAMES[name]]

    def reset(self) -> None:
        _core.reset_stats()

    def __repr__(self) -> Any:
        return f"GlobalCounters({', '.join(f'{n}={getattr(self, n)}' for n in self._NAMES)})"


GlobalCounters = _Counters()


# ---- memory of Python's objects, for Tensor.from_blob() and foreign functions

def mv_address(mv: memoryview) -> int:
    """Where a writable buffer's bytes are."""
    import ctypes
    return ctypes.addressof(ctypes.c_char.from_buffer(mv))


def to_mv(ptr: int, sz: int) -> memoryview:
    """The sz bytes at an address."""
    import ctypes
    return memoryview((ctypes.c_char * sz).from_address(ptr)).cast("B")


def from_mv(mv: memoryview, to_type: Any = None) -> Any:
    """A ctypes array over a writable buffer."""
    import ctypes
    kind = to_type or ctypes.c_char
    return (kind * (mv.nbytes // ctypes.sizeof(kind))).from_buffer(mv)
