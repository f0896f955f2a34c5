"""What programs show: times, bars, colours; and where they run."""
import contextlib
import os
import re
import sys
import time
from typing import Any

__all__ = ["CI", "OSX", "Profiling", "Timing", "WIN", "ansilen", "ansipad", "ansistrip", "colored", "colorize_float",
           "pluralize", "size_to_str", "stderr_log", "temp", "time_to_str", "tqdm", "trange"]

OSX, WIN = sys.platform == "darwin", sys.platform == "win32"
CI = os.getenv("CI", "") != ""

_COLORS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")


def colored(st: Any, color: str | None, background: bool = False) -> str:
    """Text for a terminal (ECMA-48: 30 to 37, and 90 to 97 for bright ones, which are in capitals)."""
    if color is None or os.getenv("NO_COLOR"):
        return str(st)
    code = 30 + _COLORS.index(color.lower()) + (60 if color.isupper() else 0) + (10 if background else 0)
    return f"\x1b[{code}m{st}\x1b[0m"


def ansistrip(s: str) -> str:
    """Without colours."""
    return re.sub(r"\x1b\[(K|[^mK]*m)", "", s)


def ansilen(s: str) -> int:
    return len(ansistrip(s))


def ansipad(s: str, w: int) -> str:
    """To a width of w, without counting colours."""
    return s + " " * max(w - ansilen(s), 0)


def colorize_float(x: float) -> str:
    """A ratio, green where it is good and red where it is bad."""
    return colored(f"{x:7.2f}x", "green" if x < 0.75 else "red" if x > 1.15 else "yellow")


def time_to_str(t: float, w: int = 8) -> str:
    """Seconds in s, ms or us."""
    factor, unit = (1, "s ") if t > 10 else (1e3, "ms") if t > 0.01 else (1e6, "us")
    return f"{t * factor:{w}.2f}{unit}"


def size_to_str(s: int) -> str:
    """Bytes in GB, MB, KB or B."""
    for shift, unit in ((30, "GB"), (20, "MB"), (10, "KB")):
        if s >= 1 << shift:
            return f"{s / (1 << shift):.2f} {unit}"
    return f"{s} B"


def pluralize(st: str, cnt: int) -> str:
    return f"{cnt} {st}" + ("" if cnt == 1 else "s")


def stderr_log(msg: str) -> None:
    print(msg, end="", file=sys.stderr, flush=True)


def temp(x: str, append_user: bool = False) -> str:
    """A path in the folder for temporary files."""
    import getpass
    import tempfile
    return os.path.join(tempfile.gettempdir(), f"{x}.{getpass.getuser()}" if append_user else x)


class Timing(contextlib.ContextDecorator):
    """with Timing("load: "): prints how long the block took; on_exit makes more text of the nanoseconds."""

    def __init__(self, prefix: str = "", on_exit: Any = None, enabled: bool = True) -> None:
        self.prefix, self.on_exit, self.enabled = prefix, on_exit, enabled

    def __enter__(self) -> Any:
        self.st = time.perf_counter_ns()
        return self

    def __exit__(self, *exception: Any) -> None:
        self.et = time.perf_counter_ns() - self.st
        if self.enabled:
            print(f"{self.prefix}{self.et / 1e6:6.2f} ms{self.on_exit(self.et) if self.on_exit else ''}")


class Profiling(contextlib.ContextDecorator):
    """with Profiling(): prints the functions of Python that took longest, at least frac of the whole."""

    def __init__(self, enabled: bool = True, sort: str = "cumtime", frac: float = 0.2, fn: Any = None,
                 ts: int = 1) -> None:
        import cProfile
        self.enabled, self.sort, self.frac, self.fn, self.ts = enabled, sort, frac, fn, ts
        self.profile = cProfile.Profile()

    def __enter__(self) -> Any:
        if self.enabled:
            self.profile.enable()
        return self

    def __exit__(self, *exception: Any) -> None:
        import pstats
        if not self.enabled:
            return
        self.profile.disable()
        if self.fn:
            self.profile.dump_stats(self.fn)
        pstats.Stats(self.profile).strip_dirs().sort_stats(self.sort).print_stats(self.frac)


class tqdm:
    """A bar on stderr while an iterable is gone through, or while update() is called."""

    def __init__(self, iterable: Any = None, desc: str = "", disable: bool | None = False, unit: str = "it",
                 unit_scale: bool = False, total: int | None = None, rate: int = 100) -> None:
        self.iterable, self.unit, self.unit_scale = iterable, unit, unit_scale
        self.disable = not sys.stderr.isatty() if disable is None else disable
        self.t = total if total is not None else len(iterable) if hasattr(iterable, "__len__") else 0
        self.n, self.interval, self.start, self.shown = 0, 1 / rate, time.perf_counter(), 0.0
        self.set_description(desc)

    def __iter__(self) -> Any:
        for item in self.iterable:
            yield item
            self.update(1)
        self.update(0, close=True)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.update(0, close=True)

    def set_description(self, desc: str) -> None:
        self.desc = f"{desc}: " if desc else ""

    def update(self, n: int = 0, close: bool = False) -> None:
        self.n += n
        now = time.perf_counter()
        if not self.disable and (close or now - self.shown > self.interval):
            self.shown = now
            print(f"\r\x1b[K{self._text(now - self.start)}", end="\n" if close else "", flush=True, file=sys.stderr)

    def write(self, s: str) -> None:
        print(f"\r\x1b[K{self.desc}{s}", flush=True, file=sys.stderr)

    def _scaled(self, x: float) -> str:
        if not self.unit_scale:
            return f"{x:.0f}"
        for factor, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
            if x >= factor:
                return f"{x / factor:.2f}{letter}"
        return f"{x:.2f}"

    def _text(self, seconds: float) -> str:
        rate = self.n / seconds if seconds > 0 else 0.0
        speed = f"{self._scaled(rate) if self.unit_scale else f'{rate:.2f}'}{self.unit}/s"
        if not self.t:
            return f"{self.desc}{self._scaled(self.n)}{self.unit} [{seconds:.0f}s, {speed}]"
        done = min(self.n / self.t, 1.0)
        bar = ("#" * round(20 * done)).ljust(20)
        return (f"{self.desc}{100 * done:3.0f}%|{bar}| {self._scaled(self.n)}/{self._scaled(self.t)} "
                f"[{seconds:.0f}s, {speed}]")


class trange(tqdm):
    """tqdm(range(n))."""

    def __init__(self, n: int, **kwargs: Any) -> None:
        super().__init__(range(n), total=n, **kwargs)
