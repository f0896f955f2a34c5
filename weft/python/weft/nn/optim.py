"""Optimizers: zero_grad(), step(), and lr, a Tensor that captured steps read anew."""
from typing import Any

from weft import Tensor, _core, dtypes

__all__ = ["Adagrad", "Adam", "AdamW", "LAMB", "LARS", "Muon", "NAdam", "Optimizer", "OptimizerGroup", "RAdam",
           "RMSprop", "SGD"]


def _trained(params: Any) -> list[Tensor]:
    """Those that may be trained, each once; they become leaves."""
    found: list[Tensor] = []
    for p in params:
        if p.requires_grad is False or not dtypes.is_float(p.dtype) or any(p.is_(q) for q in found):
            continue
        found.append(p if p.requires_grad else p.requires_grad_())
    if not found:
        raise ValueError("an optimizer needs parameters: floating-point Tensors that are not "
                         "is_param_(False)")
    return found


class Optimizer:
    """What all optimizers share. step() updates every parameter that has a gradient and runs it. lr has shape (1,).

    A class of your own gives _step(), which says what is subtracted from each parameter, and which other tensors of
    its own it has assigned to:

        class SignSGD(Optimizer):
            def _step(self, params, grads):
                return [self.lr * g.sign() for g in grads], []
    """

    def __init__(self, params: Any, lr: float = 0.001, device: Any = None, fused: bool = False) -> None:
        if lr < 0:
            raise ValueError(f"the learning rate is {lr}: give at least 0")
        self._take(params, device, fused)
        self.__dict__["lr"] = Tensor([lr], dtype=dtypes.float32, device=device, requires_grad=False)

    def _take(self, params: Any, device: Any, fused: Any) -> None:
        params = list(params)
        self.params = _trained(params)
        self.buffers = [x for x in params if not x.is_param]
        self.device = device or self.params[0].device
        self.fused = fused  # taken for tinygrad's sake: a step is few kernels either way

    @property
    def lr(self) -> Tensor:
        return self.__dict__["lr"]  # where get_state_dict() finds it

    @lr.setter
    def lr(self, value: Any) -> None:
        self.lr.assign(value)

    def zero_grad(self) -> None:
        """Forgets the gradients; backward() adds to them."""
        for p in self.params:
            p.grad = None

    def step(self) -> None:
        changed = self.schedule_step()
        changed[0].realize(*changed[1:], *_core.take_pending_losses())  # the loss, which is computed on the way

    def schedule_step(self) -> list[Tensor]:
        """step() without running: realize these, together with the loss."""
        _require_training()
        grads = [p.grad for p in self.params if p.grad is not None]
        if len(grads) < len(self.params):
            missing = [i for i, p in enumerate(self.params) if p.grad is None]
            raise RuntimeError(f"parameters {missing} have no gradient: call backward() on what depends on them")
        updates, changed = self._step(self.params, grads)
        for p, update in zip(self.params, updates, strict=True):
            p.assign((p.detach() - update).cast(p.dtype))
        return [*changed, *self.params, *self.buffers]

    def _step(self, params: list[Tensor], grads: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        raise NotImplementedError(f"{type(self).__name__} has no _step()")

    def _new_optim_param(self) -> list[Tensor]:
        """Zeros beside every parameter, float32."""
        return [Tensor.zeros(*p.shape, dtype=dtypes.float32, device=self.device, requires_grad=False).realize()
                for p in self.params]


def _require_training() -> None:
    if not _core.is_training():
        raise RuntimeError("step() outside of training: put it inside `with Tensor.train():` or "
                           "Context(TRAINING=1), which batch norm and dropout look at, too")


class _Native(Optimizer):
    """One of the library's own: `rule` is its name there. `state` is what it keeps, by name."""

    def __init__(self, params: Any, rule: str, device: Any = None, fused: bool = False, **options: Any) -> None:
        self._take(params, device, fused)
        self._rule, self._options = rule, options
        self._make()

    def _make(self) -> None:
        self._core = getattr(_core, self._rule)(self.params, **self._options)
        # Shared with the optimizer: what state.get_state_dict() finds and saves.
        self.state = dict(self._core.state)
        self.__dict__["lr"] = self.state.pop("lr").reshape(1)

    def __getstate__(self) -> Any:
        return {name: member for name, member in self.__dict__.items() if name != "_core"}

    def __setstate__(self, members: Any) -> None:
        self.__dict__.update(members)
        self._make()
        kept = {"lr": members["lr"], **members["state"]}
        mine = {"lr": self.lr, **self.state}
        for name, value in kept.items():
            mine[name].assign(value)
        self.lr.realize(*self.state.values())

    def _slot(self, name: str) -> list[Tensor]:
        return [self.state[f"{name}.{i}"] for i in range(len(self.params)) if f"{name}.{i}" in self.state]

    def zero_grad(self) -> None:
        self._core.zero_grad()

    def step(self) -> None:
        _require_training()
        self._core.step()

    def schedule_step(self) -> list[Tensor]:
        return self._core.schedule_step()


class OptimizerGroup(Optimizer):
    """Several optimizers as one."""

    def __init__(self, *optimizers: Optimizer) -> None:
        self.optimizers = optimizers
        self.params = [p for o in optimizers for p in o.params]
        self.buffers = [x for o in optimizers for x in o.buffers]

    def __getitem__(self, i: int) -> Optimizer:
        return self.optimizers[i]

    def zero_grad(self) -> None:
        for o in self.optimizers:
            o.zero_grad()

    def step(self) -> None:
        for o in self.optimizers:
            o.step()

    def schedule_step(self) -> list[Tensor]:
        return [x for o in self.optimizers for x in o.schedule_step()]


class _WithMomentum(_Native):
    @property
    def b(self) -> list[Tensor]:
        """The momenta, in the order of params."""
        return self._slot("velocity")


class _WithMoments(_Native):
    @property
    def m(self) -> list[Tensor]:
        """Running means of gradients, in the order of params."""
        return self._slot("m")

    @property
    def v(self) -> list[Tensor]:
        """Running means of their squares."""
        return self._slot("v")

    @property
    def b1_t(self) -> Tensor:
        """b1 to the power of the number of steps."""
        return self.state["beta1_power"]

    @property
    def b2_t(self) -> Tensor:
        return self.state["beta2_power"]


class SGD(_WithMomentum):
    """v = momentum * v + g; p -= lr * v, or with nesterov lr * (g + momentum * v), for g = gradient +
    weight_decay * p. classic: lr goes into v, so that a change of lr comes in slowly."""

    def __init__(self, params: Any, lr: float = 0.001, momentum: float = 0.0, weight_decay: float = 0.0,
                 nesterov: bool = False, classic: bool = False, device: Any = None, fused: bool = False) -> None:
        super().__init__(params, "SGD", device, fused, lr=lr, momentum=momentum, weight_decay=weight_decay,
                         nesterov=nesterov, classic=classic)


class LARS(_WithMomentum):
    """SGD whose every layer moves in proportion to its own norm. You, Gitman and Ginsburg 2017."""

    def __init__(self, params: Any, lr: float = 0.001, momentum: float = 0.9, weight_decay: float = 1e-4,
                 ns_steps: int = 0, ns_coefficients: Any = None, nesterov: bool = False, classic: bool = True,
                 pre_wd: bool = True, tcoef: float = 0.001, device: Any = None, fused: bool = False) -> None:
        if ns_steps:
            raise ValueError(f"ns_steps={ns_steps}: LARS does not orthogonalise; use Muon")
        super().__init__(params, "SGD", device, fused, lr=lr, momentum=momentum, weight_decay=weight_decay,
                         nesterov=nesterov, classic=classic, decoupled=not pre_wd, trust=tcoef)


class Muon(_WithMomentum):
    """The momentum, orthogonalised by newton_schulz(): for the weights of hidden layers. Jordan et al. 2024."""

    def __init__(self, params: Any, lr: float = 0.001, momentum: float = 0.95, weight_decay: float = 0.1,
                 ns_steps: int = 5, ns_coefficients: Any = (3.4445, -4.775, 2.0315), nesterov: bool = True,
                 device: Any = None, fused: bool = False) -> None:
        super().__init__(params, "Muon", device, fused, lr=lr, momentum=momentum, weight_decay=weight_decay,
                         nesterov=nesterov, ns_steps=ns_steps, ns_coefficients=tuple(ns_coefficients))


class RMSprop(_Native):
    """Divides by a running root of squared gradients. Tieleman and Hinton 2012."""

    def __init__(self, params: Any, lr: float = 0.01, alpha: float = 0.99, eps: float = 1e-8, weight_decay: float = 0.0,
                 momentum: float = 0.0, centered: bool = False, device: Any = None, fused: bool = False) -> None:
        super().__init__(params, "RMSprop", device, fused, lr=lr, alpha=alpha, eps=eps, weight_decay=weight_decay,
                         momentum=momentum, centered=centered)


class Adagrad(_Native):
    """Divides by the root of all squared gradients so far. Duchi, Hazan and Singer 2011."""

    def __init__(self, params: Any, lr: float = 0.01, lr_decay: float = 0.0, weight_decay: float = 0.0,
                 eps: float = 1e-10, device: Any = None, fused: bool = False) -> None:
        super().__init__(params, "Adagrad", device, fused, lr=lr, lr_decay=lr_decay, eps=eps,
                         weight_decay=weight_decay)


class AdamW(_WithMoments):
    """Adam with decay of the parameter itself. Loshchilov and Hutter 2019."""

    def __init__(self, params: Any, lr: float = 0.001, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8,
                 weight_decay: float = 0.01, device: Any = None, fused: bool = False, amsgrad: bool = False) -> None:
        super().__init__(params, "Adam", device, fused, lr=lr, b1=b1, b2=b2, eps=eps, weight_decay=weight_decay,
                         decoupled=True, amsgrad=amsgrad)


class Adam(_WithMoments):
    """Kingma and Ba 2015; amsgrad divides by the largest v so far (Reddi, Kale and Kumar 2018)."""

    def __init__(self, params: Any, lr: float = 0.001, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8,
                 device: Any = None, fused: bool = False, weight_decay: float = 0.0, amsgrad: bool = False) -> None:
        super().__init__(params, "Adam", device, fused, lr=lr, b1=b1, b2=b2, eps=eps, weight_decay=weight_decay,
                         decoupled=False, amsgrad=amsgrad)


class LAMB(_WithMoments):
    """AdamW whose every layer moves in proportion to its own norm (adam=True: plain AdamW). You et al. 2020."""

    def __init__(self, params: Any, lr: float = 0.001, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-6,
                 weight_decay: float = 0.0, adam: bool = False, device: Any = None, fused: bool = False) -> None:
        super().__init__(params, "Adam", device, fused, lr=lr, b1=b1, b2=b2, eps=eps, weight_decay=weight_decay,
                         decoupled=True, layerwise=not adam)


class NAdam(_WithMoments):
    """Adam with Nesterov's momentum, which grows towards b1 by momentum_decay. Dozat 2016."""

    def __init__(self, params: Any, lr: float = 0.002, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8,
                 weight_decay: float = 0.0, momentum_decay: float = 0.004, decoupled_weight_decay: bool = False,
                 device: Any = None, fused: bool = False) -> None:
        super().__init__(params, "NAdam", device, fused, lr=lr, b1=b1, b2=b2, eps=eps, weight_decay=weight_decay,
                         decoupled=decoupled_weight_decay, momentum_decay=momentum_decay)


class RAdam(_WithMoments):
    """Adam that steps by the mean alone until v is known well enough. Liu et al. 2020."""

    def __init__(self, params: Any, lr: float = 0.001, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8,
                 weight_decay: float = 0.0, decoupled_weight_decay: bool = False, device: Any = None,
                 fused: bool = False) -> None:
        super().__init__(params, "RAdam", device, fused, lr=lr, b1=b1, b2=b2, eps=eps, weight_decay=weight_decay,
                         decoupled=decoupled_weight_decay)
