"""The standard's Fourier transforms, as far as they are real: frequencies and shifts. There are no complex dtypes, and
the transforms say so: weft.fft has them, with complex numbers as a last axis of 2."""
import builtins

from weft.array_api.manipulation import axes_of, roll
from weft.dtype import dtypes
from weft.tensor import Tensor

__all__ = ["fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft", "irfftn", "rfft",
           "rfftfreq", "rfftn"]


def _named(function, name: str):
    function.__name__ = function.__qualname__ = name
    function.__doc__ = "Its numbers are complex, which no dtype is: a NotImplementedError that names weft.fft."
    return function


def _refusal(name: str) -> NotImplementedError:
    return NotImplementedError(f"{name}: weft.array_api has no complex dtypes; weft.fft has transforms of complex numbers "
                               "as a last axis of 2")


def _transform(name: str):
    def function(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
        raise _refusal(name)
    return _named(function, name)


def _transform_of_axes(name: str):
    def function(x: Tensor, /, *, s=None, axes=None, norm: str = "backward") -> Tensor:
        raise _refusal(name)
    return _named(function, name)


fft = _transform("fft")
fftn = _transform_of_axes("fftn")
hfft = _transform("hfft")
ifft = _transform("ifft")
ifftn = _transform_of_axes("ifftn")
ihfft = _transform("ihfft")
irfft = _transform("irfft")
irfftn = _transform_of_axes("irfftn")
rfft = _transform("rfft")
rfftn = _transform_of_axes("rfftn")


def fftfreq(n: int, /, *, d: float = 1.0, dtype=None, device=None) -> Tensor:
    """The frequencies of fft()'s values, for samples d apart."""
    places = Tensor.arange(n, dtype="float64")
    return ((places < (n + 1) // 2).where(places, places - n) / (n * d)).cast(dtype or dtypes.default_float).to(device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype=None, device=None) -> Tensor:
    """The frequencies of rfft()'s values, for samples d apart."""
    return (Tensor.arange(n // 2 + 1, dtype="float64") / (n * d)).cast(dtype or dtypes.default_float).to(device)


def _shifted(x: Tensor, axes, back: builtins.bool) -> Tensor:
    chosen = tuple(range(x.ndim)) if axes is None else axes_of(x, axes)
    halves = tuple(int(x.shape[a]) // 2 for a in chosen)
    return roll(x, tuple(-h if back else h for h in halves), axis=chosen)


def fftshift(x: Tensor, /, *, axes=None) -> Tensor:
    """Frequency 0 in the middle of the axes, all where none is given."""
    return _shifted(x, axes, False)


def ifftshift(x: Tensor, /, *, axes=None) -> Tensor:
    """fftshift() undone."""
    return _shifted(x, axes, True)
