"""Flags, counters, downloads."""
import contextlib
import functools
import os

from weft import _core

__all__ = ["Context", "GlobalCounters", "fetch", "getenv"]


@functools.cache
def getenv(key: str, default=0):
    """An environment variable, as the type of the default."""
    return type(default)(os.environ.get(key, default))


class _Flag:
    """How one name of Context() is read and written."""

    def __init__(self, get, set):
        self.get, self.set = get, set


def _option(name: str, kind=int):
    return _Flag(lambda: kind(_core.option(name)),
                 lambda value: _core.set_option(name, str(kind(value))))


def _default_float():
    def set(value):
        _core.set_default_float(value if isinstance(value, _core.DType) else str(value).lower())
    return _Flag(lambda: _core.default_float(), set)


# Names of tinygrad's that weft has a meaning for, and weft's own options.
_FLAGS = {
    "TRAINING": _Flag(lambda: int(_core.is_training()), lambda value: _core.set_training(bool(value))),
    "DEBUG": _option("DEBUG"),
    "JIT": _Flag(lambda: int(_core.option("JIT")), lambda value: _core.set_option("JIT", str(int(bool(value))))),
    "DEV": _Flag(_core.default_device, _core.set_default_device),
    "DETERMINISTIC": _option("DETERMINISTIC"),
    "DEFAULT_FLOAT": _default_float(),
}
# Names of tinygrad's that say how its compiler should work: taken, and without effect here.
_IGNORED = frozenset("""
    NO_COLOR TRACEMETA PROFILE VIZ TRACK_MATCH_STATS DEBUG_RANGEIFY SPEC CHECK_OOB VALIDATE_WITH_CPU BEAM NOOPT
    IGNORE_BEAM_CACHE TC TC_SELECT TC_OPT NOLOCALS SPLIT_REDUCEOP WINO TRANSCENDENTAL DISABLE_FAST_IDIV PCONTIG
    FUSE_OPTIM USE_ATOMICS MAX_KERNEL_BUFFERS ALLOW_TF32 TUPLE_ORDER IMAGE FLOAT16 OPENPILOT_HACKS DEFAULT_INT
    EMULATED_DTYPES DISALLOW_BROADCAST JIT_BATCH_SIZE CAPTURING NO_MEMORY_PLANNER LRU RING ALL2ALL ALLREDUCE_CAST
    ALLOW_DEVICE_USAGE MAX_BUFFER_SIZE NUM_CPU_THREADS NULL_ALLOW_COPYOUT CACHELEVEL CCACHE SCACHE PARALLEL
    """.split())


class Context(contextlib.ContextDecorator):
    """with Context(DEBUG=2, TRAINING=1): flags that hold inside; also a decorator."""

    def __init__(self, **flags):
        unknown = sorted(flags.keys() - _FLAGS.keys() - _IGNORED)
        if unknown:
            raise KeyError(f"Context() knows no {', '.join(unknown)}; it has {', '.join(sorted(_FLAGS))}")
        self.flags = {name: value for name, value in flags.items() if name in _FLAGS}
        self.outer = []

    def __enter__(self):
        outer = {}
        self.outer.append(outer)
        try:
            for name, value in self.flags.items():
                before = _FLAGS[name].get()
                _FLAGS[name].set(value)
                outer[name] = before
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exception):
        for name, value in self.outer.pop().items():
            _FLAGS[name].set(value)


class _Counters:
    """What ran since the process started or since reset()."""
    _NAMES = {"global_ops": "flops", "global_mem": "bytes", "kernel_count": "kernels",
              "time_sum_s": "seconds", "mem_used": "memory_live", "mem_peak": "memory_peak",
              "compile_time_s": "compile_seconds"}

    def __getattr__(self, name: str):
        if name not in self._NAMES:
            raise AttributeError(f"GlobalCounters has no {name}; it has {', '.join(self._NAMES)}")
        return _core.stats()[self._NAMES[name]]

    def reset(self):
        _core.reset_stats()

    def __repr__(self):
        return f"GlobalCounters({', '.join(f'{n}={getattr(self, n)}' for n in self._NAMES)})"


GlobalCounters = _Counters()


def _download_folder(subdir: str | None):
    import pathlib
    base = _core.option("CACHE_DIR")
    root = pathlib.Path(base) if base else pathlib.Path(
        os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "weft"
    return root / "downloads" / (subdir or "")


def fetch(url: str, name=None, subdir: str | None = None, gunzip: bool = False, headers=None,
          allow_caching: bool = True):
    """The path of a downloaded file; downloaded once. A path or file:// URL is itself."""
    import hashlib
    import pathlib
    if url.startswith(("/", ".")):
        return pathlib.Path(url)
    if name is not None and "/" in str(name):
        target = pathlib.Path(name)
    else:
        digest = hashlib.sha256(url.encode()).hexdigest()[:32]
        target = _download_folder(subdir) / (name or digest + ("-gunzip" if gunzip else ""))
    if not target.is_file() or not allow_caching:
        _download(url, target, gunzip, headers or {})
    return target


def _download(url: str, target, gunzip: bool, headers: dict):
    import gzip
    import shutil
    import tempfile
    import urllib.request
    target.parent.mkdir(parents=True, exist_ok=True)
    request = urllib.request.Request(url, headers={"User-Agent": "weft", **headers})
    with urllib.request.urlopen(request, timeout=30) as response:
        content = gzip.GzipFile(fileobj=response) if gunzip else response
        # Renamed only when whole: an interrupted download leaves nothing behind that looks complete.
        with tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as part:
            try:
                shutil.copyfileobj(content, part)
                part.close()
                if not gunzip and response.length not in (None, 0):
                    raise RuntimeError(f"{url} ended {response.length} bytes early")
                os.replace(part.name, target)
            except BaseException:
                os.unlink(part.name)
                raise
