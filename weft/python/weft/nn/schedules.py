"""Learning rates over time: a schedule is a function of the first rate and the steps taken so far, a LrScheduler
applies it to an optimizer.

    scheduler = LrScheduler(opt, warmup(500, cosine(10000)))
    opt.step()
    scheduler.step()
"""
import math
from collections.abc import Callable, Sequence
from typing import Any

from weft import Tensor, _core, dtypes
from weft._core import ArgumentError

__all__ = ["LrScheduler", "ReduceOnPlateau", "Schedule", "constant", "cosine", "cosine_restarts", "exponential",
           "in_sequence", "linear", "multi_step", "one_cycle", "polynomial", "step_decay", "warmup"]


Schedule = Callable[[float, int], float]  # of the first rate and the number of steps


class _Named:
    """A schedule of the library's, with what makes it anew where it was pickled or copied."""

    def __init__(self, name: str, *options: Any) -> None:
        self._options = name, *options
        self._rate = getattr(_core.schedules, name)(*options)

    def __call__(self, first: float, steps: int) -> float:
        return self._rate(first, steps)

    def __reduce__(self) -> Any:
        return _Named, self._options


def constant() -> Schedule:
    """Always the first rate."""
    return _Named("constant")


def step_decay(every: int, gamma: float = 0.1) -> Schedule:
    """Times gamma every so many steps."""
    return _Named("step_decay", every, gamma)


def multi_step(at: Sequence[int], gamma: float = 0.1) -> Schedule:
    """Times gamma at these steps, which ascend."""
    return _Named("multi_step", at, gamma)


def exponential(gamma: float) -> Schedule:
    """Times gamma at each step."""
    return _Named("exponential", gamma)


def linear(steps: int, start: float, end: float = 1.0) -> Schedule:
    """From start to end times the first rate over so many steps, then constant."""
    return _Named("linear", steps, start, end)


def polynomial(steps: int, power: float = 1.0) -> Schedule:
    """Falls to 0 as (1 - t / steps)^power."""
    return _Named("polynomial", steps, power)


def cosine(steps: int, least: float = 0.0) -> Schedule:
    """Falls to `least` as half a cosine, then stays (Loshchilov and Hutter 2017)."""
    return _Named("cosine", steps, least)


def cosine_restarts(cycle: int, factor: int = 1, least: float = 0.0) -> Schedule:
    """cosine() again and again, each cycle `factor` times as long as the one before."""
    return _Named("cosine_restarts", cycle, factor, least)


def one_cycle(peak: float, steps: int, rise: float = 0.3, start_divisor: float = 25.0, end_divisor: float = 1e4,
              cosine: bool = True) -> Schedule:
    """Up to `peak` for a share `rise` of the steps, and down again (Smith and Topin 2019); takes no notice of the
    first rate."""
    return _Named("one_cycle", peak, steps, rise, start_divisor, end_divisor, cosine)


def warmup(steps: int, then: Schedule, start: float = 0.0) -> Schedule:
    """Rises linearly from start times the first rate, after which `then` begins at its step 0."""
    return _Named("warmup", steps, then, start)


def in_sequence(schedules: Sequence[Schedule], milestones: Sequence[int]) -> Schedule:
    """Each schedule until its milestone, from its own step 0; one more schedule than milestones."""
    return _Named("in_sequence", schedules, milestones)


class _Controller:
    """Sets the rates of an optimizer, or of each in a group."""

    def __init__(self, optimizer: Any) -> None:
        self._optimizers = list(getattr(optimizer, "optimizers", [optimizer]))
        self.first = self.rates()

    def rates(self) -> list[float]:
        """The rate of each optimizer now."""
        return [float(o.lr.item()) for o in self._optimizers]

    def _set(self, rates: list[float]) -> None:
        for optimizer, rate in zip(self._optimizers, rates):
            optimizer.lr.assign(rate).realize()


class LrScheduler(_Controller):
    """schedule(first rate, steps) is a function of this module, or your own. Sets the rate of step 0."""

    def __init__(self, optimizer: Any, schedule: Schedule) -> None:
        super().__init__(optimizer)
        self._schedule = schedule
        self.steps_taken = Tensor(0, dtype=dtypes.int64, requires_grad=False)
        self._apply()

    @property
    def steps(self) -> int:
        return int(self.steps_taken.item())

    def step(self) -> None:
        """After each step of the optimizer (or each epoch, if that is what the schedule counts)."""
        self.steps_taken.assign(self.steps + 1).realize()
        self._apply()

    def _apply(self) -> None:
        steps = self.steps
        self._set([self._schedule(first, steps) for first in self.first])


class ReduceOnPlateau(_Controller):
    """Lowers the rates by `factor` when a measure has not got better for more than `patience` steps: by `threshold`
    of the best, which is the largest with larger_is_better. After a change `cooldown` steps do not count. Rates stay
    at `least` or above."""

    def __init__(self, optimizer: Any, factor: float = 0.1, patience: int = 10, threshold: float = 1e-4,
                 larger_is_better: bool = False, cooldown: int = 0, least: float = 0.0) -> None:
        super().__init__(optimizer)
        if factor < 0:
            raise ArgumentError(f"[ReduceOnPlateau] factors must not be below 0, got {factor}")
        self.factor, self.patience, self.threshold = factor, patience, threshold
        self.larger_is_better, self.cooldown, self.least = larger_is_better, cooldown, least
        worst = -math.inf if larger_is_better else math.inf
        self.progress = Tensor([worst, 0.0, 0.0], dtype=dtypes.float64, requires_grad=False)

    def step(self, measure: float | Tensor) -> None:
        measure = float(measure)
        best, idle, cooling = self.progress.tolist()
        if self._is_better(measure, best):
            best, idle = measure, 0.0
        else:
            idle += 1
        if cooling > 0:
            cooling, idle = cooling - 1, 0.0
        if idle > self.patience:
            self._set([max(rate * self.factor, self.least) for rate in self.rates()])
            cooling, idle = float(self.cooldown), 0.0
        self.progress.assign(Tensor([best, idle, cooling], dtype=dtypes.float64)).realize()

    def _is_better(self, measure: float, best: float) -> bool:
        if math.isinf(best):
            return not math.isnan(measure)
        margin = abs(best) * self.threshold
        return measure > best + margin if self.larger_is_better else measure < best - margin
