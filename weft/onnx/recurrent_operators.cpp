// RNN, GRU and LSTM. Semantics: the ONNX operator specification.
#include <array>

#include "weft/onnx/activations.h"
#include "weft/onnx/axes.h"
#include "weft/onnx/operators.h"
#include "weft/tensor/transforms.h"

namespace weft::onnx {

namespace {

/// What all directions have in common. Tensors are (steps, batch, ...) whatever the layout is.
struct Layer {
  const NodeCall& call;
  Tensor x;
  int64_t gates, hidden, directions;
  bool batch_first, reversed;  ///< reversed: the only direction is
  Activations activations;     ///< direction after direction
  Tensor running;              ///< bool (steps, batch, 1), where sequences have lengths
};

/// The states, h and perhaps c, before the first step; what they are after each.
struct Direction {
  Tensor weight, recurrence;  ///< (in, gates * hidden), (hidden, gates * hidden)
  Tensor bias, inner_bias;    ///< (gates * hidden) each, of inputs and of states, or none
  Tensor peephole;            ///< (3 * hidden), or none
  Tensors start;
  const Activation* f;  ///< the direction's first
  double clip;          ///< 0: none
  int64_t hidden;
};

/// One step: what the states become, from x's share of the gates and the states before.
using Step = Tensors (*)(const NodeCall& call, const Direction& d, const Tensor& gates,
                         const Tensors& before);

Tensor clipped(const Tensor& x, const Direction& d) {
  return d.clip > 0 ? x.clamp(-d.clip, d.clip) : x;
}

Tensor plus(const Tensor& x, const Tensor& bias) { return bias.defined() ? x + bias : x; }

// ---- steps

Tensors rnn_step(const NodeCall&, const Direction& d, const Tensor& gates, const Tensors& before) {
  const Tensor from_h = before[0].matmul(d.recurrence);
  return {d.f[0](clipped(gates + plus(from_h, d.inner_bias), d))};
}

/// Gates z, r, h. With linear_before_reset the reset is of the product, and all gates are of one
/// product; without it is of the state, whose own product comes behind the other two's.
Tensors gru_step(const NodeCall& call, const Direction& d, const Tensor& gates,
                 const Tensors& before) {
  const Tensor& h = before[0];
  const int64_t n = d.hidden, behind = 3 * n;
  const bool after = call.integer("linear_before_reset", 0) != 0;
  const auto from_state = [&](const Tensor& state, int64_t begin, int64_t end) {
    const Tensor y = state.matmul(d.recurrence.index({Slice(), Slice(begin, end)}));
    return d.inner_bias.defined() ? y + d.inner_bias.index({Slice(begin, end)}) : y;
  };
  const auto gate = [&](const Tensor& all, int64_t i) {
    return all.index({kEllipsis, Slice(i * n, (i + 1) * n)});
  };
  const Tensor from_h = from_state(h, 0, after ? behind : 2 * n);
  const Tensor keep = d.f[0](clipped(gate(gates, 0) + gate(from_h, 0), d));
  const Tensor reset = d.f[0](clipped(gate(gates, 1) + gate(from_h, 1), d));
  const Tensor inner = after ? reset * gate(from_h, 2) : from_state(reset * h, 2 * n, behind);
  const Tensor fresh = d.f[1](clipped(gate(gates, 2) + inner, d));
  return {(1 - keep) * fresh + keep * h};
}

/// Gates i, o, f, c.
Tensors lstm_step(const NodeCall& call, const Direction& d, const Tensor& gates,
                  const Tensors& before) {
  const Tensor &h = before[0], &c = before[1];
  const Tensor all = gates + plus(h.matmul(d.recurrence), d.inner_bias);
  const std::vector<Tensor> x = all.chunk(4, -1);
  const std::vector<Tensor> p =
      d.peephole.defined() ? d.peephole.chunk(3, 0) : std::vector<Tensor>();
  const auto seen = [&](size_t gate, size_t peephole, const Tensor& cell) {
    return clipped(p.empty() ? x[gate] : x[gate] + p[peephole] * cell, d);
  };
  const Tensor in = d.f[0](seen(0, 0, c));
  const Tensor forget = call.integer("input_forget", 0) != 0 ? 1 - in : d.f[0](seen(2, 2, c));
  const Tensor next = forget * c + in * d.f[1](clipped(x[3], d));
  const Tensor out = d.f[0](seen(1, 1, next));
  return {out * d.f[2](next), next};
}

// ---- directions

/// Direction i of an input (directions, ...).
Tensor part(const Tensor& all, int64_t i) { return all.index({i}); }

Tensor start_of(const Layer& l, size_t input, int64_t i) {
  const NodeCall& call = l.call;
  if (!call.has(input)) return Tensor::zeros({l.x.dim(1), l.hidden}, l.x.dtype());
  const Tensor& given = call.tensor(input);
  return l.batch_first ? given.index({Slice(), i}) : part(given, i);
}

Direction direction(const Layer& l, int64_t i, size_t states, size_t activations) {
  const NodeCall& call = l.call;
  Direction d;
  d.hidden = l.hidden;
  d.weight = part(call.tensor(1), i).T();
  d.recurrence = part(call.tensor(2), i).T();
  if (call.has(3)) {
    const std::vector<Tensor> biases = part(call.tensor(3), i).chunk(2, 0);
    d.bias = biases[0];
    d.inner_bias = biases[1];
  }
  if (states > 1 && call.has(7)) d.peephole = part(call.tensor(7), i);
  for (size_t s = 0; s < states; ++s) d.start.push_back(start_of(l, 5 + s, i));
  d.f = &l.activations[static_cast<size_t>(i) * activations];
  d.clip = call.number("clip", 0);
  return d;
}

/// h of every step, and the last states. States stay as they are behind the end of a sequence, so
/// that a reversed one starts at its own last element.
ScanResult run(const Layer& l, const Direction& d, Step step, bool reversed) {
  // x's share of all gates is one product.
  Tensors slices{l.x.linear(d.weight, d.bias)};
  if (l.running.defined()) slices.push_back(l.running);
  const auto body = [&](const Tensors& before, const Tensors& now) {
    Tensors after = step(l.call, d, now[0], before);
    Tensor h = after[0];
    if (l.running.defined()) {
      h = now[1].where(h, 0);
      for (size_t i = 0; i < after.size(); ++i) after[i] = now[1].where(after[i], before[i]);
    }
    return ScanResult{after, {h}};
  };
  if (!(l.x.dim(0) == Dim(1))) return scan(body, d.start, slices, {.reversed = reversed});
  for (Tensor& s : slices) s = s.squeeze(0);
  ScanResult only = body(d.start, slices);
  only.stacked[0] = only.stacked[0].unsqueeze(0);
  return only;
}

// ---- layers

Layer layer_of(const NodeCall& call, int64_t gates, size_t activations,
               std::initializer_list<std::string_view> usual) {
  const std::string way = call.text("direction", "forward");
  if (way != "forward" && way != "reverse" && way != "bidirectional")
    call.refuse("direction is '{}': give forward, reverse or bidirectional", way);
  const bool batch_first = call.integer("layout", 0) != 0;
  const Tensor &given = call.tensor(0), &weight = call.tensor(1), &recurrence = call.tensor(2);
  const int64_t directions = way == "bidirectional" ? 2 : 1;
  if (given.ndim() != 3 || weight.ndim() != 3 || recurrence.ndim() != 3 ||
      weight.size(0) != directions || recurrence.size(0) != directions ||
      weight.size(1) != gates * recurrence.size(2))
    call.refuse(
        "input {}, W {} and R {}: give three axes each, of which W and R start with {} "
        "direction(s) and {} gates of R's last size",
        given.dims().text(), weight.dims().text(), recurrence.dims().text(), directions, gates);
  const auto all = activations * static_cast<size_t>(directions);
  Layer l{call,
          batch_first ? given.transpose(0, 1) : given,
          gates,
          recurrence.size(2),
          directions,
          batch_first,
          way == "reverse",
          activations_of(call, all, usual),
          {}};
  if (call.has(4)) {
    const Tensor lengths = call.tensor(4).cast(DType::I32).reshape({1, -1, 1});
    l.running = counted(l.x.dim(0), 3, 0) < lengths;
  }
  return l;
}

Values recurrent(const NodeCall& call, int64_t gates, size_t states, Step step,
                 std::initializer_list<std::string_view> usual) {
  const size_t activations = usual.size();
  const Layer l = layer_of(call, gates, activations, usual);
  std::vector<Tensor> outputs;
  std::vector<std::vector<Tensor>> last(states);
  for (int64_t i = 0; i < l.directions; ++i) {
    const Direction d = direction(l, i, states, activations);
    const ScanResult done = run(l, d, step, i > 0 || l.reversed);
    outputs.push_back(done.stacked[0]);
    for (size_t s = 0; s < states; ++s) last[s].push_back(done.carried[s]);
  }
  // (steps, directions, batch, hidden), or (batch, steps, directions, hidden).
  const Tensor y = Tensor::stack(outputs, 1);
  Values results{l.batch_first ? y.permute({2, 0, 1, 3}) : y};
  for (const std::vector<Tensor>& each : last)
    results.emplace_back(Tensor::stack(each, l.batch_first ? 1 : 0));
  return results;
}

Values rnn(const NodeCall& call) { return recurrent(call, 1, 1, rnn_step, {"Tanh"}); }
Values gru(const NodeCall& call) { return recurrent(call, 3, 1, gru_step, {"Sigmoid", "Tanh"}); }
Values lstm(const NodeCall& call) {
  return recurrent(call, 4, 2, lstm_step, {"Sigmoid", "Tanh", "Tanh"});
}

}  // namespace

std::span<const Operator> recurrent_operators() {
  static constexpr std::array kRows = {
      Operator{kOnnx, "GRU", 1, gru},
      Operator{kOnnx, "LSTM", 1, lstm},
      Operator{kOnnx, "RNN", 1, rnn},
  };
  return kRows;
}

}  // namespace weft::onnx
