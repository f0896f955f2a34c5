"""@function: tinygrad's call boundary."""
import functools

__all__ = ["function"]


def function(fxn=None, *, precompile=False, precompile_backward=False, allow_implicit=False,
             grad_fxn=None):
    """Calls fxn: graphs of weft need no boundary, and TinyJit captures what should run as one.

    A gradient of one's own (grad_fxn) is not offered.
    """
    if grad_fxn is not None:
        raise NotImplementedError("function(grad_fxn=...) is not offered: write the function so that "
                                  "its gradient follows, or call gradient() yourself")
    if fxn is None:
        return functools.partial(function, precompile=precompile,
                                 precompile_backward=precompile_backward,
                                 allow_implicit=allow_implicit)

    @functools.wraps(fxn)
    def call(*args, **kwargs):
        return fxn(*args, **kwargs)
    return call
