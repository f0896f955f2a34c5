"""Kernels of your own, written as loops, loads, folds and stores."""
from typing import Any

from weft import _core, dtypes

__all__ = ["custom_kernel"]


def custom_kernel(name: Any, inputs: Any, outputs: Any, write: Any, gradient: Any = None) -> Any:
    """The outputs of a kernel: a list of tensors.

        def write(k):
            i, j = k.range(8), k.range(6)
            k.store(0, i, k.sum(k.load(0, (i, j)) * k.load(1, j), [j]))
        y, = custom_kernel("times", [matrix, vector], [(8,)], write)

    outputs are shapes (of float32), or (shape, dtype). What is never stored is 0; a load outside of its tensor
    gives 0. gradient(inputs, results, upstream) gives a gradient, or None, for each input.
    """
    made = []
    for out in outputs:
        typed = isinstance(out, (tuple, list)) and len(out) == 2 and isinstance(out[0], (tuple, list))
        made.append((tuple(out[0]), out[1]) if typed else (tuple(out), dtypes.float32))
    rule = None
    if gradient is not None:
        def rule(x: Any, y: Any, up: Any) -> Any:
            given = gradient(x, y, up)
            return list(given) if isinstance(given, (tuple, list)) else [given]
    return _core.custom_kernel(name, list(inputs), made, write, rule)
