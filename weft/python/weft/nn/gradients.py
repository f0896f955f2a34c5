"""Between backward() and step(): gradients limited, and summed over several backward() calls."""
from collections.abc import Iterable

from weft import Tensor, _core

__all__ = ["clip_grad_norm_", "clip_grad_value_", "clip_gradient_norm", "clip_gradient_value", "gradient_norm",
           "gradients"]


def _listed(params: Iterable[Tensor] | Tensor) -> list[Tensor]:
    return [params] if isinstance(params, Tensor) else list(params)


def gradients(params: Iterable[Tensor]) -> list[Tensor]:
    """Of the parameters that have one. Realize them between several backward() calls, which add up."""
    return [p.grad for p in params if p.grad is not None]


def gradient_norm(params: Iterable[Tensor] | Tensor, p: float = 2.0) -> Tensor:
    """The p-norm of all gradients as one vector, 0 where there are none; p is above 0, or infinity."""
    return _core.gradient_norm(_listed(params), p)


def clip_gradient_norm(params: Iterable[Tensor] | Tensor, max_norm: float, norm_type: float = 2.0) -> Tensor:
    """Scales all gradients down so that their norm is at most max_norm; gives the norm before. Lazy: runs with step().
    Pascanu, Mikolov and Bengio 2013."""
    return _core.clip_gradient_norm(_listed(params), max_norm, norm_type)


def clip_gradient_value(params: Iterable[Tensor] | Tensor, clip_value: float) -> None:
    """Every element of every gradient within [-clip_value, clip_value]. Lazy too."""
    _core.clip_gradient_value(_listed(params), clip_value)


clip_grad_norm_ = clip_gradient_norm  # PyTorch's names
clip_grad_value_ = clip_gradient_value
