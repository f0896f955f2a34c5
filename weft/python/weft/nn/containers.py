"""Layers without weights: pools, activations, dropout, and layers one after the other."""
from typing import Any

from weft import Tensor
from weft.nn.layers import _pair

__all__ = ["AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d",
           "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "Dropout", "ELU", "Flatten", "GELU",
           "Hardswish", "Identity", "LeakyReLU", "LogSoftmax", "MaxPool1d", "MaxPool2d", "MaxPool3d", "Mish", "ReLU",
           "ReLU6", "SiLU", "Sequential", "Sigmoid", "Softmax", "Softplus", "Tanh", "Unflatten", "Upsample"]


class Sequential:
    """Layers and functions one after the other: Sequential(Linear(2, 3), Tensor.relu). A list of them, and a number
    in a state dict's names for each, as in PyTorch."""

    def __init__(self, *layers: Any) -> None:
        if len(layers) == 1 and isinstance(layers[0], dict):
            self.__dict__.update(layers[0])
        else:
            self.__dict__.update({str(i): layer for i, layer in enumerate(layers)})

    def __call__(self, x: Tensor) -> Tensor:
        return x.sequential(self)

    def __iter__(self) -> Any:
        return iter(self.__dict__.values())

    def __len__(self) -> int:
        return len(self.__dict__)

    def __getitem__(self, i: Any) -> Any:
        found = list(self)[i]
        return Sequential(*found) if isinstance(i, slice) else found

    def append(self, layer: Any) -> "Sequential":
        self.__dict__[str(len(self))] = layer
        return self


class Identity:
    """What it is given: where a layer is left out."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __call__(self, x: Tensor) -> Tensor:
        return x


class Dropout:
    """While training 0 with probability p, the rest times 1 / (1 - p); else nothing. Srivastava et al. 2014."""

    def __init__(self, p: float = 0.5) -> None:
        self.p = p

    def __call__(self, x: Tensor) -> Tensor:
        return x.dropout(self.p)


class Flatten:
    """Axes start_dim to end_dim as one; 1 at the start leaves batches apart."""

    def __init__(self, start_dim: int = 1, end_dim: Any = -1) -> None:
        self.start_dim, self.end_dim = start_dim, end_dim

    def __call__(self, x: Tensor) -> Tensor:
        return x.flatten(self.start_dim, self.end_dim)


class Unflatten:
    """One axis split into sizes, of which one may be -1."""

    def __init__(self, dim: int, unflattened_size: Any) -> None:
        self.dim, self.unflattened_size = dim, unflattened_size

    def __call__(self, x: Tensor) -> Tensor:
        return x.unflatten(self.dim, self.unflattened_size)


class Upsample:
    """interpolate() to a size, or to scale_factor times the size."""

    def __init__(self, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
                 align_corners: bool = False) -> None:
        self.size, self.scale_factor, self.mode, self.align_corners = size, scale_factor, mode, align_corners

    def __call__(self, x: Tensor) -> Tensor:
        axes = x.ndim - 2
        factors = _pair(self.scale_factor, axes) if isinstance(self.scale_factor, (int, list, tuple)) else \
            (self.scale_factor,) * axes
        size = _pair(self.size, axes) if self.size is not None else \
            tuple(int(n * f) for n, f in zip(x.shape[2:], factors))
        return x.interpolate(size, self.mode, self.align_corners)


# ---- pools

class _Pool:
    """Windows over the last axes; the stride is the window's size where none is given."""
    _axes = 2

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
                 ceil_mode: bool = False) -> None:
        self.kernel_size, self.stride = _pair(kernel_size, self._axes), stride
        self.padding, self.dilation, self.ceil_mode = padding, dilation, ceil_mode


class MaxPool2d(_Pool):
    """The largest element of every window."""

    def __call__(self, x: Tensor) -> Tensor:
        y = x.max_pool2d(self.kernel_size, self.stride, self.dilation, self.padding, self.ceil_mode)
        assert isinstance(y, Tensor)
        return y


class MaxPool1d(MaxPool2d):
    _axes = 1


class MaxPool3d(MaxPool2d):
    _axes = 3


class AvgPool2d(_Pool):
    """The mean of every window; padding counts in it with count_include_pad."""

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
                 count_include_pad: bool = True) -> None:
        super().__init__(kernel_size, stride, padding, 1, ceil_mode)
        self.count_include_pad = count_include_pad

    def __call__(self, x: Tensor) -> Tensor:
        return x.avg_pool2d(self.kernel_size, self.stride, self.dilation, self.padding, self.ceil_mode,
                            self.count_include_pad)


class AvgPool1d(AvgPool2d):
    _axes = 1


class AvgPool3d(AvgPool2d):
    _axes = 3


class AdaptiveAvgPool2d:
    """Means to output_size places whatever the size was: place i of o takes elements floor(i n / o) to
    ceil((i + 1) n / o); None keeps a size."""
    _axes = 2

    def __init__(self, output_size: Any) -> None:
        self.output_size = (output_size,) * self._axes if output_size is None else _pair(output_size, self._axes)

    def _sizes(self, x: Tensor) -> list[int]:
        return [int(n) if size is None else size for n, size in zip(x.shape[-self._axes:], self.output_size)]

    def __call__(self, x: Tensor) -> Tensor:
        return x.adaptive_avg_pool(self._sizes(x))


class AdaptiveAvgPool1d(AdaptiveAvgPool2d):
    _axes = 1


class AdaptiveAvgPool3d(AdaptiveAvgPool2d):
    _axes = 3


class AdaptiveMaxPool2d(AdaptiveAvgPool2d):
    """Largest elements in the same way."""

    def __call__(self, x: Tensor) -> Tensor:
        return x.adaptive_max_pool(self._sizes(x))


class AdaptiveMaxPool1d(AdaptiveMaxPool2d):
    _axes = 1


class AdaptiveMaxPool3d(AdaptiveMaxPool2d):
    _axes = 3


# ---- activations as layers

def _activation(name: str, method: Any, **defaults: Any) -> Any:
    """A layer that calls a method of Tensor with what it was made with, by PyTorch's names."""
    def __init__(self, *args: Any, inplace: bool = False, **kwargs: Any) -> None:
        unknown = kwargs.keys() - defaults.keys()
        if unknown or len(args) > len(defaults):
            raise TypeError(f"{name}() takes {', '.join(defaults) or 'nothing'}")
        self.options = defaults | dict(zip(defaults, args)) | kwargs

    def __call__(self, x: Tensor) -> Tensor:
        return method(x, *self.options.values())
    return type(name, (), {"__init__": __init__, "__call__": __call__, "__module__": __name__,
                           "__doc__": f"Tensor.{getattr(method, '__name__', name.lower())} as a layer."})


ReLU = _activation("ReLU", Tensor.relu)
ReLU6 = _activation("ReLU6", Tensor.relu6)
SiLU = _activation("SiLU", Tensor.silu)
Mish = _activation("Mish", Tensor.mish)
Tanh = _activation("Tanh", Tensor.tanh)
Sigmoid = _activation("Sigmoid", Tensor.sigmoid)
Hardswish = _activation("Hardswish", Tensor.hardswish)
GELU = _activation("GELU", Tensor.gelu, approximate="none")
ELU = _activation("ELU", Tensor.elu, alpha=1.0)
LeakyReLU = _activation("LeakyReLU", Tensor.leaky_relu, negative_slope=0.01)
Softplus = _activation("Softplus", Tensor.softplus, beta=1.0)
Softmax = _activation("Softmax", Tensor.softmax, dim=-1)
LogSoftmax = _activation("LogSoftmax", Tensor.log_softmax, dim=-1)
