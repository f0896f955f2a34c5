#include "weft/nn/recurrent.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/tensor/transforms.h"

namespace weft::nn {

namespace {

int64_t gate_count(Recurrence kind) {
  constexpr int64_t kGates[] = {1, 1, 3, 4};
  return kGates[static_cast<size_t>(kind)];
}

Tensor gru_step(const Tensor& from_x, const Tensor& from_h, const Tensor& h) {
  const std::vector<Tensor> x = from_x.chunk(3, -1), s = from_h.chunk(3, -1);
  const Tensor reset = (x[0] + s[0]).sigmoid(), keep = (x[1] + s[1]).sigmoid();
  const Tensor fresh = (x[2] + reset * s[2]).tanh();
  return fresh + keep * (h - fresh);
}

RecurrentState lstm_step(const Tensor& gates, const Tensor& c) {
  const std::vector<Tensor> part = gates.chunk(4, -1);
  const Tensor next = part[1].sigmoid() * c + part[0].sigmoid() * part[2].tanh();
  return {part[3].sigmoid() * next.tanh(), next};
}

Tensor or_zeros(const Tensor& t, const Dims& shape, DType dtype) {
  return t.defined() ? t : Tensor::zeros(shape, dtype);
}

struct Pass {
  Tensor h;  // of every step, in the order of the input
  RecurrentState last;
};

// Over x (steps, batch, in), from the end where reversed. x's share of all gates is one product;
// the rest of a step is compiled once for all of them.
Pass run(const RecurrentCell& cell, const Tensor& x, const RecurrentState& start, bool reversed) {
  const Tensor gates = cell.gates_of(x);
  const Dims shape = {x.dim(1), cell.hidden};
  Tensors states = {or_zeros(start.h, shape, gates.dtype())};
  if (cell.kind == Recurrence::Lstm) states.push_back(or_zeros(start.c, shape, gates.dtype()));
  const ScanFunction step = [&cell](const Tensors& before, const Tensors& from_x) {
    const RecurrentState next =
        cell.advance(from_x[0], {before[0], before.size() > 1 ? before[1] : Tensor()});
    return ScanResult{before.size() > 1 ? Tensors{next.h, next.c} : Tensors{next.h}, {next.h}};
  };
  const ScanResult done = scan(step, states, {gates}, {.reversed = reversed});
  return {done.stacked[0], {done.carried[0], done.carried.size() > 1 ? done.carried[1] : Tensor()}};
}

// The i-th layer's part of a state (layers * directions, batch, hidden).
Tensor part_of(const Tensor& state, size_t i) {
  return state.defined() ? state[static_cast<int64_t>(i)] : Tensor();
}

}  // namespace

RecurrentCell::RecurrentCell(Recurrence recurrence, int64_t in, int64_t hidden_size, bool with_bias,
                             CallSite at)
    : kind(recurrence), hidden(hidden_size) {
  const CallSiteScope site(at);
  check_positive("recurrent cell", "in", in);
  check_positive("recurrent cell", "hidden", hidden);
  const int64_t gates = gate_count(kind) * hidden;
  weight_ih = uniform_for({gates, in}, hidden);
  weight_hh = uniform_for({gates, hidden}, hidden);
  if (!with_bias) return;
  bias_ih = uniform_for({gates}, hidden);
  bias_hh = uniform_for({gates}, hidden);
}

Tensor RecurrentCell::gates_of(const Tensor& x) const { return x.linear(weight_ih.T(), bias_ih); }

RecurrentState RecurrentCell::advance(const Tensor& gates, const RecurrentState& before) const {
  const Dims shape = {gates.dim(0), hidden};
  const Tensor h = or_zeros(before.h, shape, gates.dtype());
  const Tensor from_h = h.linear(weight_hh.T(), bias_hh);
  switch (kind) {
    case Recurrence::Tanh: return {(gates + from_h).tanh(), {}};
    case Recurrence::Relu: return {(gates + from_h).relu(), {}};
    case Recurrence::Gru: return {gru_step(gates, from_h, h), {}};
    case Recurrence::Lstm:
      return lstm_step(gates + from_h, or_zeros(before.c, shape, gates.dtype()));
  }
  internal_error("recurrent", "no recurrence {}", static_cast<int>(kind));
}

RecurrentState RecurrentCell::operator()(const Tensor& x, const RecurrentState& before,
                                         CallSite at) const {
  const CallSiteScope site(at);
  if (x.ndim() != 2) {
    fail("recurrent cell", "needs an input (batch, in), got shape {}", x.dims().text());
  }
  return advance(gates_of(x), before);
}

void RecurrentCell::visit(StateVisitor& v) {
  v("weight_ih", weight_ih);
  v("weight_hh", weight_hh);
  v("bias_ih", bias_ih);
  v("bias_hh", bias_hh);
}

Recurrent::Recurrent(Recurrence kind, int64_t in, int64_t hidden, const RecurrentOptions& recurrent,
                     CallSite at)
    : options(recurrent) {
  const CallSiteScope site(at);
  check_positive("recurrent layer", "layers", options.layers);
  for (int64_t layer = 0; layer < options.layers; ++layer) {
    for (int64_t direction = 0; direction < directions(); ++direction) {
      cells.emplace_back(kind, layer == 0 ? in : hidden * directions(), hidden, options.bias);
    }
  }
}

Recurrent::Result Recurrent::operator()(const Tensor& x, const RecurrentState& start,
                                        CallSite at) const {
  const CallSiteScope site(at);
  if (x.ndim() != 3) {
    fail("recurrent layer", "needs an input of three axes (steps, batch, in), got shape {}",
         x.dims().text());
  }
  Tensor y = options.batch_first ? x.transpose(0, 1) : x;
  check_positive("recurrent layer", "the number of steps", y.size(0));
  std::vector<Tensor> last_h, last_c;
  for (size_t i = 0; i < cells.size(); i += static_cast<size_t>(directions())) {
    if (i > 0) y = y.dropout(options.dropout);
    std::vector<Tensor> outputs;
    for (size_t at_cell = i; at_cell < i + static_cast<size_t>(directions()); ++at_cell) {
      const RecurrentState before = {part_of(start.h, at_cell), part_of(start.c, at_cell)};
      Pass pass = run(cells[at_cell], y, before, at_cell > i);
      outputs.push_back(pass.h);
      last_h.push_back(pass.last.h);
      if (pass.last.c.defined()) last_c.push_back(pass.last.c);
    }
    y = outputs.size() == 1 ? outputs[0] : Tensor::cat(outputs, -1);
  }
  const Tensor c = last_c.empty() ? Tensor() : Tensor::stack(last_c);
  return {options.batch_first ? y.transpose(0, 1) : y, {Tensor::stack(last_h), c}};
}

void Recurrent::visit(StateVisitor& v) {
  for (size_t i = 0; i < cells.size(); ++i) {
    const auto direction = static_cast<int64_t>(i) % directions();
    std::string suffix = "_l" + std::to_string(static_cast<int64_t>(i) / directions());
    if (direction == 1) suffix += "_reverse";
    v("weight_ih" + suffix, cells[i].weight_ih);
    v("weight_hh" + suffix, cells[i].weight_hh);
    v("bias_ih" + suffix, cells[i].bias_ih);
    v("bias_hh" + suffix, cells[i].bias_hh);
  }
}

}  // namespace weft::nn
