// RNN, GRU and LSTM, and one with weights in bytes. Semantics: the ONNX operator specification, and
// ONNX Runtime's documentation of its own operators.
#include <array>

#include "weft/onnx/activations.h"
#include "weft/onnx/axes.h"
#include "weft/onnx/contrib.h"
#include "weft/onnx/operators.h"
#include "weft/tensor/transforms.h"

namespace weft::onnx {

namespace {

/// How products take their left factor.
using Factor = Tensor (*)(const NodeCall& call, const Tensor& x);

struct Weights {
  Tensor input, recurrent;  ///< (directions, in, gates * hidden), (directions, hidden, ...)
  Factor factor = [](const NodeCall&, const Tensor& x) { return x; };
};

/// What all directions have in common. Tensors are (steps, batch, ...) whatever the layout is.
struct Layer {
  const NodeCall& call;
  Weights weights;
  Tensor x;
  int64_t hidden, directions;
  bool batch_first, reversed;  ///< reversed: the only direction is
  Activations activations;     ///< direction after direction
  Tensor running;              ///< bool (steps, batch, 1), where sequences have lengths
};

/// The states, h and perhaps c, before the first step; what they are after each.
struct Direction {
  Tensor weight, recurrence;  ///< (in, gates * hidden), (hidden, gates * hidden)
  Tensor bias, inner_bias;    ///< (gates * hidden) each, of inputs and of states, or none
  Tensor peephole;            ///< (3 * hidden), or none
  Factor factor;
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

Tensors rnn_step(const NodeCall& call, const Direction& d, const Tensor& gates,
                 const Tensors& before) {
  const Tensor from_h = d.factor(call, before[0]).matmul(d.recurrence);
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
    const Tensor y = d.factor(call, state).matmul(d.recurrence.index({Slice(), Slice(begin, end)}));
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
  const Tensor all = gates + plus(d.factor(call, h).matmul(d.recurrence), d.inner_bias);
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
  d.weight = part(l.weights.input, i);
  d.recurrence = part(l.weights.recurrent, i);
  d.factor = l.weights.factor;
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
  Tensors slices{d.factor(l.call, l.x).linear(d.weight, d.bias)};
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

Layer layer_of(const NodeCall& call, const Weights& w, int64_t gates, size_t activations,
               std::initializer_list<std::string_view> usual) {
  const std::string way = call.text("direction", "forward");
  if (way != "forward" && way != "reverse" && way != "bidirectional")
    call.refuse("direction is '{}': give forward, reverse or bidirectional", way);
  const bool batch_first = call.integer("layout", 0) != 0;
  const Tensor& given = call.tensor(0);
  const int64_t directions = way == "bidirectional" ? 2 : 1;
  if (given.ndim() != 3 || w.input.ndim() != 3 || w.recurrent.ndim() != 3 ||
      w.input.size(0) != directions || w.recurrent.size(0) != directions ||
      w.input.size(2) != gates * w.recurrent.size(1))
    call.refuse(
        "input {}, W {} and R {}: give three axes each, of which W and R start with {} "
        "direction(s) and {} gates of R's last size",
        given.dims().text(), call.tensor(1).dims().text(), call.tensor(2).dims().text(), directions,
        gates);
  const auto all = activations * static_cast<size_t>(directions);
  Layer l{call,
          w,
          batch_first ? given.transpose(0, 1) : given,
          w.recurrent.size(1),
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

Values recurrent(const NodeCall& call, const Weights& weights, int64_t gates, size_t states,
                 Step step, std::initializer_list<std::string_view> usual) {
  const size_t activations = usual.size();
  const Layer l = layer_of(call, weights, gates, activations, usual);
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

/// W (directions, gates * hidden, in) and R (directions, gates * hidden, hidden).
Weights weights_of(const NodeCall& call) {
  const auto turned = [&](size_t input) {
    const Tensor& w = call.tensor(input);
    return w.ndim() == 3 ? w.transpose(1, 2) : w;  // else refused
  };
  return {turned(1), turned(2)};
}

Values rnn(const NodeCall& call) {
  return recurrent(call, weights_of(call), 1, 1, rnn_step, {"Tanh"});
}
Values gru(const NodeCall& call) {
  return recurrent(call, weights_of(call), 3, 1, gru_step, {"Sigmoid", "Tanh"});
}

Values lstm_by(const NodeCall& call, const Weights& weights) {
  return recurrent(call, weights, 4, 2, lstm_step, {"Sigmoid", "Tanh", "Tanh"});
}
Values lstm(const NodeCall& call) { return lstm_by(call, weights_of(call)); }

/// As bytes say it: the operator's left factors are quantised where they are multiplied.
Tensor in_bytes(const NodeCall& call, const Tensor& x) {
  const Values q = standard(call, "DynamicQuantizeLinear", 11, {x});
  return (q[0].tensor().cast(DType::I32) - q[2].tensor().cast(DType::I32)).cast(DType::F32) *
         q[1].tensor();
}

/// W (directions, in, 4 * hidden) and R (directions, hidden, 4 * hidden) in bytes, with scales and
/// zeros (directions) or (directions, 4 * hidden) from input 8 on.
Values dynamic_quantize_lstm(const NodeCall& call) {
  const auto numbers = [&](size_t bytes, size_t scale) {
    const auto along = [&](const Tensor& t) {
      if (t.ndim() != 1 && t.ndim() != 2)
        call.refuse("scales or zeros {}: give (directions) or (directions, 4 * hidden)",
                    t.dims().text());
      return t.ndim() == 1 ? t.reshape({t.dim(0), 1, 1}) : t.unsqueeze(1);
    };
    Tensor w = call.tensor(bytes).cast(DType::I32);
    if (call.has(scale + 1)) w = w - along(call.tensor(scale + 1)).cast(DType::I32);
    return w.cast(DType::F32) * along(call.tensor(scale));
  };
  return lstm_by(call, {numbers(1, 8), numbers(2, 10), in_bytes});
}

}  // namespace

std::span<const Operator> recurrent_operators() {
  static constexpr std::array kRows = {
      Operator{kMicrosoft, "DynamicQuantizeLSTM", 1, dynamic_quantize_lstm},
      Operator{kOnnx, "GRU", 1, gru},
      Operator{kOnnx, "LSTM", 1, lstm},
      Operator{kOnnx, "RNN", 1, rnn},
  };
  return kRows;
}

}  // namespace weft::onnx
