"""@function: tinygrad's call boundary."""
import functools
import types

from weft._core import Tensor
from weft.transforms import custom_gradient

__all__ = ["function"]


def _with_rule(fxn, grad_fxn):
    def rule(inputs, results, upstream):
        call = types.SimpleNamespace(src=(None, *inputs))
        return grad_fxn(upstream[0] if len(upstream) == 1 else upstream, call)

    def call(*args, **kwargs):
        def of_tensors(*given):
            left = iter(given)
            return fxn(*(next(left) if isinstance(a, Tensor) else a for a in args), **kwargs)
        return custom_gradient(rule)(of_tensors)(*(a for a in args if isinstance(a, Tensor)))
    return call


def function(fxn=None, *, precompile=False, precompile_backward=False, allow_implicit=False,
             grad_fxn=None):
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
    def call(*args, **kwargs):
        return fxn(*args, **kwargs)
    return call
