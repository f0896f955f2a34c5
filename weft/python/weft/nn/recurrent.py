"""Recurrent layers by PyTorch's names: cells of one step, and layers over sequences."""
import math
from typing import Any

from weft import Tensor
from weft._core import ArgumentError
from weft.transforms import scan

__all__ = ["GRU", "GRUCell", "LSTM", "LSTMCell", "RNN", "RNNCell"]


def _tanh(from_x: Any, from_h: Any, h: Any) -> Any:
    return ((from_x + from_h).tanh(),)


def _relu(from_x: Any, from_h: Any, h: Any) -> Any:
    return ((from_x + from_h).relu(),)


def _gru(from_x: Any, from_h: Any, h: Any) -> Any:
    (xr, xz, xn), (hr, hz, hn) = from_x.chunk(3, dim=-1), from_h.chunk(3, dim=-1)
    reset, keep = (xr + hr).sigmoid(), (xz + hz).sigmoid()
    fresh = (xn + reset * hn).tanh()
    return (fresh + keep * (h[0] - fresh),)


def _lstm(from_x: Any, from_h: Any, h: Any) -> Any:
    i, f, g, o = (from_x + from_h).chunk(4, dim=-1)
    c = f.sigmoid() * h[1] + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


# What a recurrence computes from x's and h's shares of the gates and the state (h,) or (h, c): (gates, step).
_RECURRENCES = {"tanh": (1, _tanh), "relu": (1, _relu), "gru": (3, _gru), "lstm": (4, _lstm)}


def _recurrence(kind: str) -> Any:
    if kind not in _RECURRENCES:
        raise ArgumentError(f"[recurrent] nonlinearity {kind!r}: use \"tanh\" or \"relu\"")
    return _RECURRENCES[kind]


def _zeros(kind: str, like: Tensor, *shape: Any) -> tuple[Tensor, ...]:
    return (Tensor.zeros(*shape, dtype=like.dtype, buffer=False),) * (2 if kind == "lstm" else 1)


def _parameters(kind: str, in_features: int, hidden_size: int, bias: bool) -> tuple[Tensor, Tensor, Tensor | None,
                Tensor | None]:
    """weight_ih (gates * hidden, in), weight_hh, bias_ih, bias_hh: uniform in +-1/sqrt(hidden)."""
    if min(in_features, hidden_size) < 1:
        raise ArgumentError(f"[recurrent] sizes {in_features} and {hidden_size}: give at least 1")
    bound, rows = 1 / math.sqrt(hidden_size), _recurrence(kind)[0] * hidden_size
    def uniform(*shape: Any) -> Any:
        return Tensor.uniform(*shape, low=-bound, high=bound)
    return (uniform(rows, in_features), uniform(rows, hidden_size), uniform(rows) if bias else None,
            uniform(rows) if bias else None)


class _Cell:
    _kind = "tanh"

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True) -> None:
        self.input_size, self.hidden_size = input_size, hidden_size
        self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh = _parameters(self._kind, input_size, hidden_size, bias)

    def _step(self, x: Tensor, h: Any) -> tuple[Tensor, ...]:
        if x.ndim == 1:
            one = None if h is None else tuple(state.unsqueeze(0) for state in h)
            return tuple(state.squeeze(0) for state in self._step(x.unsqueeze(0), one))
        if x.ndim != 2:
            raise ArgumentError(f"[recurrent] a cell takes (batch, {self.input_size}) or ({self.input_size},), not {x.shape}")
        h = _zeros(self._kind, x, x.shape[0], self.hidden_size) if h is None else h
        from_x, from_h = x.linear(self.weight_ih.T, self.bias_ih), h[0].linear(self.weight_hh.T, self.bias_hh)
        return _recurrence(self._kind)[1](from_x, from_h, h)


class RNNCell(_Cell):
    """x (batch, in) and h (batch, hidden) to the next h: nonlinearity(W_ih x + b_ih + W_hh h + b_hh)."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh") -> None:
        self._kind = nonlinearity
        super().__init__(input_size, hidden_size, bias)

    def __call__(self, x: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._step(x, None if hx is None else (hx,))[0]


class GRUCell(_Cell):
    """x (batch, in) and h (batch, hidden) to the next h. Cho et al. 2014, with the gates in PyTorch's order: reset,
    update, new."""
    _kind = "gru"

    def __call__(self, x: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._step(x, None if hx is None else (hx,))[0]


class LSTMCell(_Cell):
    """x (batch, in) and (h, c), each (batch, hidden), to the next (h, c). Hochreiter and Schmidhuber 1997; the gates
    in PyTorch's order: input, forget, cell, output."""
    _kind = "lstm"

    def __call__(self, x: Tensor, hc: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        h, c = self._step(x, hc)
        return h, c


class _Recurrent:
    """Layers of cells over x (steps, batch, in); the tensors' names are PyTorch's: weight_ih_l0, bias_hh_l1_reverse."""
    _kind = "tanh"

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
                 batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False) -> None:
        if num_layers < 1:
            raise ArgumentError(f"[recurrent] {num_layers} layers: give at least 1")
        self.input_size, self.hidden_size, self.num_layers, self.bias = input_size, hidden_size, num_layers, bias
        self.batch_first, self.dropout, self.bidirectional = batch_first, dropout, bidirectional
        for layer, suffix in self._passes():
            width = input_size if layer == 0 else hidden_size * self._directions
            tensors = _parameters(self._kind, width, hidden_size, bias)
            for name, t in zip(("weight_ih", "weight_hh", "bias_ih", "bias_hh"), tensors):
                setattr(self, name + suffix, t)

    @property
    def _directions(self) -> int:
        return 2 if self.bidirectional else 1

    def _passes(self) -> list[tuple[int, str]]:
        """(layer, what its tensors' names end in), the forward one of a layer before the reverse one."""
        endings = ("", "_reverse")[:self._directions]
        return [(layer, f"_l{layer}{ending}") for layer in range(self.num_layers) for ending in endings]

    def _pass(self, suffix: str, x: Tensor, start: tuple[Tensor, ...]) -> Any:
        """Over (steps, batch, in): every step's h, and the last state. x's share of the gates is one product."""
        weight_ih, weight_hh, bias_ih, bias_hh = (getattr(self, name + suffix) for name in (
            "weight_ih", "weight_hh", "bias_ih", "bias_hh"))
        step = _recurrence(self._kind)[1]

        def body(state: Any, gates: Any) -> Any:
            following = step(gates, state[0].linear(weight_hh.T, bias_hh), state)
            return following, following[0]
        last, outputs = scan(body, start, x.linear(weight_ih.T, bias_ih), reverse=suffix.endswith("reverse"))
        return outputs, last

    def _run(self, x: Tensor, start: tuple[Tensor, ...] | None) -> Any:
        if x.ndim not in (2, 3):
            raise ArgumentError(f"[recurrent] a sequence is (steps, batch, {self.input_size}), not {x.shape}")
        if single := x.ndim == 2:  # one sequence without a batch, as in PyTorch
            x = x.unsqueeze(0 if self.batch_first else 1)
            start = None if start is None else tuple(s.unsqueeze(1) for s in start)
        y = x.transpose(0, 1) if self.batch_first else x
        passes, lasts, outputs = self._passes(), [], []
        start = _zeros(self._kind, x, len(passes), y.shape[1], self.hidden_size) if start is None else start
        for i, (layer, suffix) in enumerate(passes):
            if layer > 0 and i % self._directions == 0:
                y = y.dropout(self.dropout)
            out, last = self._pass(suffix, y, tuple(s[i] for s in start))
            outputs.append(out)
            lasts.append(last)
            if len(outputs) == self._directions:
                y, outputs = outputs[0] if len(outputs) == 1 else Tensor.cat(*outputs, dim=-1), []
        states = tuple(Tensor.stack(*parts) for parts in zip(*lasts))
        if single:
            return y.squeeze(1), tuple(s.squeeze(1) for s in states)
        return y.transpose(0, 1) if self.batch_first else y, states


class RNN(_Recurrent):
    """x (steps, batch, in) to the last layer's h of every step (steps, batch, directions * hidden) and every layer's
    last h (layers * directions, batch, hidden). The steps share their kernels; their number must be known."""

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, nonlinearity: str = "tanh",
                 bias: bool = True, batch_first: bool = False, dropout: float = 0.0,
                 bidirectional: bool = False) -> None:
        self._kind = nonlinearity
        super().__init__(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional)

    def __call__(self, x: Tensor, hx: Tensor | None = None) -> tuple[Tensor, Tensor]:
        y, (h,) = self._run(x, None if hx is None else (hx,))
        return y, h


class GRU(_Recurrent):
    """RNN of GRUCells."""
    _kind = "gru"

    def __call__(self, x: Tensor, hx: Tensor | None = None) -> tuple[Tensor, Tensor]:
        y, (h,) = self._run(x, None if hx is None else (hx,))
        return y, h


class LSTM(_Recurrent):
    """RNN of LSTMCells, whose state is (h, c)."""
    _kind = "lstm"

    def __call__(self, x: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        y, (h, c) = self._run(x, hx)
        return y, (h, c)
