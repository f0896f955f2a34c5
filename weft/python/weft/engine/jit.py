"""TinyJit under the path that programs of tinygrad import it from."""
from weft._core import JitError, TinyJit

__all__ = ["JitError", "TinyJit"]
