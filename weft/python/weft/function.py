"""@function: tinygrad's call boundary."""
import functools
import types

from weft.transforms import checkpoint, custom_gradient

__all__ = ["function"]


def function(fxn=None, *, precompile=False, precompile_backward=False, allow_implicit=False,
             grad_fxn=None):
    """Calls fxn: graphs of weft need no boundary, and TinyJit captures what should run as one.

    With precompile it is a step of its own, compiled apart from what is around it, and computed again for
    gradients (weft.checkpoint). grad_fxn(gradient, call) gives a gradient, or None, for each argument, which
    are call.src[1:].
    """
    if fxn is None:
        return functools.partial(function, precompile=precompile,
                                 precompile_backward=precompile_backward,
                                 allow_implicit=allow_implicit, grad_fxn=grad_fxn)
    if grad_fxn is not None:
        def rule(inputs, results, upstream):
            call = types.SimpleNamespace(src=(None, *inputs))
            return grad_fxn(upstream[0] if len(upstream) == 1 else upstream, call)
        return functools.wraps(fxn)(custom_gradient(rule)(fxn))
    if precompile:
        return functools.wraps(fxn)(checkpoint(fxn))

    @functools.wraps(fxn)
    def call(*args, **kwargs):
        return fxn(*args, **kwargs)
    return call
