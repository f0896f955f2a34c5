"""Optimizers: zero_grad(), step(), and lr, a Tensor that captured steps read anew."""
from weft import Tensor, _core, dtypes

__all__ = ["Adagrad", "Adam", "AdamW", "LAMB", "LARS", "Muon", "Optimizer", "OptimizerGroup", "RMSprop", "SGD"]


def _trained(params) -> list[Tensor]:
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
    """What all optimizers share. step() updates every parameter that has a gradient and runs it."""

    def __init__(self, params, make, **options):
        params = list(params)
        self.params = _trained(params)
        self.buffers = [x for x in params if not x.is_param]
        self._core = make(self.params, **options)
        # Shared with the optimizer: what state.get_state_dict() finds and saves.
        self.state = dict(self._core.state)
        self._lr = self.state.pop("lr")

    @property
    def lr(self) -> Tensor:
        return self._lr

    @lr.setter
    def lr(self, value):
        self._lr.assign(value)

    def _slot(self, name: str) -> list[Tensor]:
        return [self.state[f"{name}.{i}"] for i in range(len(self.params)) if f"{name}.{i}" in self.state]

    def zero_grad(self):
        """Forgets the gradients; backward() adds to them."""
        self._core.zero_grad()

    def step(self):
        if not _core.is_training():
            raise RuntimeError("step() outside of training: put it inside `with Tensor.train():` or "
                               "Context(TRAINING=1), which batch norm and dropout look at, too")
        self._core.step()

    def schedule_step(self) -> list[Tensor]:
        """step() without running: realize these, together with the loss."""
        return self._core.schedule_step()


class OptimizerGroup(Optimizer):
    """Several optimizers as one."""

    def __init__(self, *optimizers: Optimizer):
        self.optimizers = optimizers
        self.params = [p for o in optimizers for p in o.params]

    def __getitem__(self, i: int) -> Optimizer:
        return self.optimizers[i]

    def zero_grad(self):
        for o in self.optimizers:
            o.zero_grad()

    def step(self):
        for o in self.optimizers:
            o.step()

    def schedule_step(self) -> list[Tensor]:
        return [x for o in self.optimizers for x in o.schedule_step()]


class _WithMomentum(Optimizer):
    @property
    def b(self) -> list[Tensor]:
        """The momenta, in the order of params."""
        return self._slot("velocity")


class _WithMoments(Optimizer):
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

    def __init__(self, params, lr=0.001, momentum=0.0, weight_decay=0.0, nesterov=False, classic=False,
                 device=None, fused=False):
        super().__init__(params, _core.SGD, lr=lr, momentum=momentum, weight_decay=weight_decay,
                         nesterov=nesterov, classic=classic)


class LARS(_WithMomentum):
    """SGD whose every layer moves in proportion to its own norm. You, Gitman and Ginsburg 2017."""

    def __init__(self, params, lr=0.001, momentum=0.9, weight_decay=1e-4, ns_steps=0, ns_coefficients=None,
                 nesterov=False, classic=True, pre_wd=True, tcoef=0.001, device=None, fused=False):
        if ns_steps:
            raise ValueError(f"ns_steps={ns_steps}: LARS does not orthogonalise; use Muon")
        super().__init__(params, _core.SGD, lr=lr, momentum=momentum, weight_decay=weight_decay,
                         nesterov=nesterov, classic=classic, decoupled=not pre_wd, trust=tcoef)


class Muon(_WithMomentum):
    """The momentum, orthogonalised by newton_schulz(): for the weights of hidden layers. Jordan et al. 2024."""

    def __init__(self, params, lr=0.001, momentum=0.95, weight_decay=0.1, ns_steps=5,
                 ns_coefficients=(3.4445, -4.775, 2.0315), nesterov=True, device=None, fused=False):
        super().__init__(params, _core.Muon, lr=lr, momentum=momentum, weight_decay=weight_decay,
                         nesterov=nesterov, ns_steps=ns_steps, ns_coefficients=tuple(ns_coefficients))


class RMSprop(Optimizer):
    """Divides by a running root of squared gradients. Tieleman and Hinton 2012."""

    def __init__(self, params, lr=0.01, alpha=0.99, eps=1e-8, weight_decay=0.0, momentum=0.0,
                 centered=False):
        super().__init__(params, _core.RMSprop, lr=lr, alpha=alpha, eps=eps, weight_decay=weight_decay,
                         momentum=momentum, centered=centered)


class Adagrad(Optimizer):
    """Divides by the root of all squared gradients so far. Duchi, Hazan and Singer 2011."""

    def __init__(self, params, lr=0.01, lr_decay=0.0, weight_decay=0.0, eps=1e-10):
        super().__init__(params, _core.Adagrad, lr=lr, lr_decay=lr_decay, eps=eps,
                         weight_decay=weight_decay)


class AdamW(_WithMoments):
    """Adam with decay of the parameter itself. Loshchilov and Hutter 2019."""

    def __init__(self, params, lr=0.001, b1=0.9, b2=0.999, eps=1e-8, weight_decay=0.01, device=None,
                 fused=False):
        super().__init__(params, _core.Adam, lr=lr, b1=b1, b2=b2, eps=eps, weight_decay=weight_decay,
                         decoupled=True)


class Adam(_WithMoments):
    """Kingma and Ba 2015."""

    def __init__(self, params, lr=0.001, b1=0.9, b2=0.999, eps=1e-8, device=None, fused=False):
        super().__init__(params, _core.Adam, lr=lr, b1=b1, b2=b2, eps=eps, weight_decay=0.0,
                         decoupled=False)


class LAMB(_WithMoments):
    """AdamW whose every layer moves in proportion to its own norm (adam=True: plain AdamW). You et al. 2020."""

    def __init__(self, params, lr=0.001, b1=0.9, b2=0.999, eps=1e-6, weight_decay=0.0, adam=False,
                 device=None, fused=False):
        super().__init__(params, _core.Adam, lr=lr, b1=b1, b2=b2, eps=eps, weight_decay=weight_decay,
                         decoupled=True, layerwise=not adam)
