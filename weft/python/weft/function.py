"""@function: tinygrad's call boundary."""
import functools
import types
from typing import Any

from weft._core import Tensor
from weft.transforms import custom_gradient

__all__ = ["function"]


def _with_rule(fxn: Any, grad_fxn: Any) -> Any:
    def rule(inputs: Any, results: Any, upstream: Any) -> Any:
        call = types.SimpleNamespace(src=(None, *inputs))
        return grad_fxn(upstream[0] if len(upstream) == 1 else upstream, call)

    def call(*args: Any, **kwargs: Any) -> Any:
        def of_tensors(*given: Any) -> Any:
            left = iter(given)
            return fxn(*(next(left) if isinstance(a, Tensor) else a for a in args), **kwargs)
        return custom_gradient(rule)(of_tensors)(*(a for a in args if isinstance(a, Tensor)))
    return call


def function(fxn: Any = None, *, precompile: bool = False, precompile_backward: bool = False,
             allow_implicit: bool = False, grad_fxn: Any = None) -> Any:
    """Calls fxn: graphs of weft need no boundary, and TinyJit captures what should run as one.

    (weft.checkpoint makes a function a step of its own.) With grad_fxn, grad_fxn(gradient, call) gives a
    gradient, or None, for each tensor among the arguments; they are call.src[1:].
    """
    if fxn is None:
        return functools.partial(function, precompile=precompile,
                                 precompile_backward=precompile_backward,
                                 allow_implicit=allow_implicit, grad_fxn=grad_fxn)
    if grad_fxn is not None:
        return functools.wraps(fxn)(_with_rule(fxn, grad_fxn))

    @functools.wraps(fxn)
    def call(*args: Any, **kwargs: Any) -> Any:
        return fxn(*args, **kwargs)
    return call
