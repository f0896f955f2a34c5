"""TinyJit under the path that programs of tinygrad import it from."""
from weft._core import JitError, TinyJit, unpickled_jit

__all__ = ["JitError", "TinyJit"]


def unpickled(data: bytes, skeleton) -> TinyJit:
    """What TinyJit.__reduce__ names."""
    return unpickled_jit(data, skeleton)
