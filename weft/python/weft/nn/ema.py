"""Ema: an exponential moving average of a model's tensors, which often tests better than the model."""
from functools import partial
from typing import Any

from weft import Tensor, _core
from weft.nn.state import get_state_dict

__all__ = ["Ema"]


class Ema:
    """
        ema = nn.Ema(net, decay=0.999)
        opt.step()
        ema.update()
        ...
        ema.swap()   # test the average
        ema.swap()   # train on

    Floating-point tensors are averaged, in float32 at least; of others it has the last values. With warm_up the decay
    is at most (1 + updates) / (10 + updates). `state` holds the average by the model's names, and "updates". Polyak
    and Juditsky 1992."""

    def __init__(self, model: Any, decay: float = 0.999, warm_up: bool = False) -> None:
        # A partial: get_state_dict() does not look into it, so that the model is not saved twice.
        self._make = partial(_core.Ema, get_state_dict(model), decay, warm_up)
        self._core = self._make()
        self.state = dict(self._core.state)

    def __getstate__(self) -> Any:
        """With the model's tensors: pickled together with the model they stay the model's own."""
        return self._make, self.state

    def __setstate__(self, members: Any) -> None:
        self._make, kept = members
        self._core = self._make()
        self.state = dict(self._core.state)
        for name, value in kept.items():
            self.state[name].assign(value).realize()

    def update(self) -> None:
        self._core.update()

    def schedule_update(self) -> list[Tensor]:
        """update() without running: realize these."""
        return self._core.schedule_update()

    def swap(self) -> None:
        """Exchanges the values of the model and the average."""
        self._core.swap()
