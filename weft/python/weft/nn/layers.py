"""Layers with weights: Linear, Embedding, convolutions, norms. Weights start as in torch.nn unless said otherwise."""
import math
from typing import Any

from weft import Tensor, _core, dtypes

__all__ = ["BatchNorm", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d",
           "ConvTranspose2d", "ConvTranspose3d", "Embedding", "GroupNorm", "InstanceNorm", "InstanceNorm1d",
           "InstanceNorm2d", "InstanceNorm3d", "LayerNorm", "LayerNorm2d", "Linear", "RMSNorm"]


def _pair(x: Any, count: int = 2) -> tuple:
    return (x,) * count if isinstance(x, int) else tuple(x)


def _uniform(bound: float, *shape: Any) -> Tensor:
    return Tensor.uniform(*shape, low=-bound, high=bound)


def _along_channels(x: Tensor, weight: Any, bias: Any) -> Tensor:
    """x * weight + bias for vectors of axis 1."""
    shape = (1, -1) + (1,) * (x.ndim - 2)
    if weight is not None:
        x = x * weight.reshape(shape)
    return x if bias is None else x + bias.reshape(shape)


class BatchNorm:
    """Normalises the channels (axis 1) of (n, sz, ...). While training by the batch's own mean and
    variance, which also move the running ones by `momentum` (None: they are the means of all
    batches so far); else by the running ones. Ioffe and Szegedy 2015."""

    def __init__(self, sz: int, eps: float = 1e-5, affine: bool = True, track_running_stats: bool = True,
                 momentum: float | None = 0.1) -> None:
        self.eps, self.momentum, self.track_running_stats = eps, momentum, track_running_stats
        self.weight = Tensor.ones(sz) if affine else None
        self.bias = Tensor.zeros(sz) if affine else None
        if track_running_stats:
            self.num_batches_tracked = Tensor(0, dtype=dtypes.int64, requires_grad=False)
            self.running_mean = Tensor.zeros(sz, requires_grad=False)
            self.running_var = Tensor.ones(sz, requires_grad=False)

    def calc_stats(self, x: Tensor) -> Any:
        if self.track_running_stats and not _core.is_training():
            return self.running_mean, self.running_var
        axes = tuple(a for a in range(x.ndim) if a != 1)
        mean = x.mean(axis=axes)
        shape = (1, -1) + (1,) * (x.ndim - 2)
        return mean, (x - mean.detach().reshape(shape)).square().mean(axis=axes)

    def __call__(self, x: Tensor) -> Tensor:
        mean, var = self.calc_stats(x)
        if self.track_running_stats and _core.is_training():
            self._track(mean.detach(), var.detach(), x.numel() // x.shape[1])
        return x.batchnorm(self.weight, self.bias, mean, (var + self.eps).rsqrt())

    def _track(self, mean: Tensor, var: Tensor, count: Any) -> None:
        self.num_batches_tracked += 1
        momentum = 1 / self.num_batches_tracked.float() if self.momentum is None else self.momentum
        keep, unbiased = 1 - momentum, count / max(count - 1, 1)
        self.running_mean.assign(keep * self.running_mean + momentum * mean)
        self.running_var.assign(keep * self.running_var + (momentum * unbiased) * var)


BatchNorm1d = BatchNorm2d = BatchNorm3d = BatchNorm


class Conv2d:
    """Convolution with a weight (out, in / groups, *kernel_size). padding may be "same" or "valid", padding_mode
    "zeros", "reflect", "replicate" or "circular". Weights start uniform in +-1/sqrt(in / groups * kernel
    elements)."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
                 dilation: Any = 1, groups: int = 1, bias: bool = True, padding_mode: str = "zeros") -> None:
        self.kernel_size = _pair(kernel_size)
        self.stride, self.dilation, self.groups = stride, dilation, groups
        if isinstance(padding, str) and padding.lower() not in ("same", "valid"):
            raise ValueError(f"padding={padding!r}: use numbers, \"same\" or \"valid\"")
        if padding_mode not in ("zeros", "reflect", "replicate", "circular"):
            raise ValueError(f"padding_mode={padding_mode!r}: use \"zeros\", \"reflect\", \"replicate\" or \"circular\"")
        if isinstance(padding, str):
            padding = self._same(stride, dilation) if padding.lower() == "same" else 0
        self.padding, self.padding_mode = padding, padding_mode
        bound = 1 / math.sqrt(in_channels // groups * math.prod(self.kernel_size))
        self.weight = _uniform(bound, out_channels, in_channels // groups, *self.kernel_size)
        self.bias = _uniform(bound, out_channels) if bias else None

    def _same(self, stride: Any, dilation: Any) -> list[int]:
        if any(s != 1 for s in _pair(stride, len(self.kernel_size))):
            raise ValueError('padding="same" needs stride 1')
        amounts: list[int] = []
        for d, k in zip(_pair(dilation, len(self.kernel_size)), self.kernel_size):
            amounts = [d * (k - 1) // 2, d * (k - 1) - d * (k - 1) // 2] + amounts
        return amounts

    def _pads(self) -> list[int]:
        """Before and after each axis, from the last one."""
        axes = len(self.kernel_size)
        amounts = list(_pair(self.padding, axes))
        return amounts if len(amounts) > axes else [p for p in reversed(amounts) for _ in range(2)]

    def __call__(self, x: Tensor) -> Tensor:
        padding = self.padding
        if self.padding_mode != "zeros":
            x, padding = x.pad(self._pads(), mode=self.padding_mode), 0
        return x.conv2d(self.weight, self.bias, self.groups, self.stride, self.dilation, padding)


def Conv1d(in_channels: Any, out_channels: Any, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
           groups: int = 1, bias: bool = True, padding_mode: str = "zeros") -> Conv2d:
    return Conv2d(in_channels, out_channels, _pair(kernel_size, 1), stride, padding, dilation, groups, bias, padding_mode)


def Conv3d(in_channels: Any, out_channels: Any, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
           groups: int = 1, bias: bool = True, padding_mode: str = "zeros") -> Conv2d:
    return Conv2d(in_channels, out_channels, _pair(kernel_size, 3), stride, padding, dilation, groups, bias, padding_mode)


class ConvTranspose2d(Conv2d):
    """The adjoint of a convolution, with a weight (in, out / groups, *kernel_size)."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
                 output_padding: Any = 0, dilation: Any = 1, groups: int = 1, bias: bool = True) -> None:
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias)
        self.output_padding = output_padding
        bound = 1 / math.sqrt(out_channels // groups * math.prod(self.kernel_size))
        self.weight = _uniform(bound, in_channels, out_channels // groups, *self.kernel_size)
        self.bias = _uniform(bound, out_channels) if bias else None

    def __call__(self, x: Tensor) -> Tensor:
        return x.conv_transpose2d(self.weight, self.bias, self.groups, self.stride, self.dilation,
                                  self.padding, self.output_padding)


def ConvTranspose1d(in_channels: Any, out_channels: Any, kernel_size: Any, stride: Any = 1, padding: Any = 0,
                    output_padding: Any = 0, dilation: Any = 1, groups: int = 1, bias: bool = True) -> ConvTranspose2d:
    return ConvTranspose2d(in_channels, out_channels, _pair(kernel_size, 1), stride, padding,
                           output_padding, dilation, groups, bias)


def ConvTranspose3d(in_channels: Any, out_channels: Any, kernel_size: Any, stride: Any = 1, padding: Any = 0,
                    output_padding: Any = 0, dilation: Any = 1, groups: int = 1, bias: bool = True) -> ConvTranspose2d:
    return ConvTranspose2d(in_channels, out_channels, _pair(kernel_size, 3), stride, padding,
                           output_padding, dilation, groups, bias)


class Linear:
    """x (..., in) to (..., out): x @ weight.T + bias for a weight (out, in), uniform in +-1/sqrt(in)."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        bound = 1 / math.sqrt(in_features)
        self.weight = _uniform(bound, out_features, in_features)
        self.bias = _uniform(bound, out_features) if bias else None

    def __call__(self, x: Tensor) -> Tensor:
        return x.linear(self.weight.transpose(), self.bias)


class GroupNorm:
    """Normalises num_groups groups of the channels (axis 1). Wu and He 2018."""

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True) -> None:
        self.num_groups, self.num_channels, self.eps = num_groups, num_channels, eps
        self.weight = Tensor.ones(num_channels) if affine else None
        self.bias = Tensor.zeros(num_channels) if affine else None

    def __call__(self, x: Tensor) -> Tensor:
        y = x.reshape(x.shape[0], self.num_groups, -1).layernorm(eps=self.eps).reshape(x.shape)
        return _along_channels(y, self.weight, self.bias)


class InstanceNorm:
    """Normalises every channel of every sample by itself."""

    def __init__(self, num_features: int, eps: float = 1e-5, affine: bool = True) -> None:
        self.num_features, self.eps = num_features, eps
        self.weight = Tensor.ones(num_features) if affine else None
        self.bias = Tensor.zeros(num_features) if affine else None

    def __call__(self, x: Tensor) -> Tensor:
        y = x.reshape(x.shape[0], self.num_features, -1).layernorm(eps=self.eps).reshape(x.shape)
        return _along_channels(y, self.weight, self.bias)


InstanceNorm1d = InstanceNorm2d = InstanceNorm3d = InstanceNorm


class LayerNorm:
    """Normalises the last axes, as many as normalized_shape has. Ba, Kiros and Hinton 2016."""

    def __init__(self, normalized_shape: Any, eps: float = 1e-5, elementwise_affine: bool = True,
                 bias: bool = True) -> None:
        self.normalized_shape = _pair(normalized_shape, 1)
        self.axis, self.eps = tuple(range(-len(self.normalized_shape), 0)), eps
        self.elementwise_affine = elementwise_affine
        self.weight = Tensor.ones(*self.normalized_shape) if elementwise_affine else None
        self.bias = Tensor.zeros(*self.normalized_shape) if elementwise_affine and bias else None

    def __call__(self, x: Tensor) -> Tensor:
        if tuple(x.shape[-len(self.normalized_shape):]) != self.normalized_shape:
            raise ValueError(f"the last axes of {x.shape} are not {self.normalized_shape}")
        y = x.layernorm(axis=self.axis, eps=self.eps)
        y = y if self.weight is None else y * self.weight
        return y if self.bias is None else y + self.bias


class LayerNorm2d(LayerNorm):
    """LayerNorm of the channels (axis 1) of (n, channels, h, w)."""

    def __call__(self, x: Tensor) -> Tensor:
        return super().__call__(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class RMSNorm:
    """x / sqrt(mean(x^2) + eps) * weight over the last axis. Zhang and Sennrich 2019."""

    def __init__(self, dim: int, eps: float = 1e-6, elementwise_affine: bool = True) -> None:
        self.eps = eps
        self.weight = Tensor.ones(dim) if elementwise_affine else None

    def __call__(self, x: Tensor) -> Tensor:
        y = x.float()
        y = (y * (y.square().mean(-1, keepdim=True) + self.eps).rsqrt()).cast(x.dtype)
        return y if self.weight is None else y * self.weight


class Embedding:
    """Integers (...) to rows of a table (..., embed_size); Glorot uniform at the start, 0 in the row of padding_idx,
    which gets no gradient."""

    def __init__(self, vocab_size: int, embed_size: int, padding_idx: int | None = None) -> None:
        if padding_idx is not None and not -vocab_size <= padding_idx < vocab_size:
            raise ValueError(f"padding_idx is {padding_idx}, of a table of {vocab_size} rows")
        self.vocab_sz, self.embed_sz = vocab_size, embed_size
        self.padding_idx = None if padding_idx is None else padding_idx % vocab_size
        self.weight = Tensor.glorot_uniform(vocab_size, embed_size)
        if self.padding_idx is not None:
            self.weight[self.padding_idx] = 0
            self.weight.realize()

    def __call__(self, idx: Tensor) -> Tensor:
        if not dtypes.is_int(idx.dtype):
            raise TypeError(f"Embedding takes integers, not {idx.dtype}")
        rows = self.weight[idx]
        return rows if self.padding_idx is None else (idx == self.padding_idx).unsqueeze(-1).where(rows.detach(), rows)
