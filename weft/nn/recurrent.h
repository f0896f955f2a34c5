// Recurrent layers: cells of one step, and layers over sequences. layers.h says what holds for all.
#pragma once

#include <string>
#include <vector>

#include "weft/nn/initialise.h"

namespace weft::nn {

enum class Recurrence : uint8_t { Tanh, Relu, Gru, Lstm };

// What a step leaves for the next. A missing tensor is zeros; only LSTMs have a c.
struct RecurrentState {
  Tensor h, c;
};

// x (batch, in) and h, c (batch, hidden) to the next of them. With gates from
// x @ weight_ih^T + bias_ih and h @ weight_hh^T + bias_hh, in PyTorch's order:
//   Tanh, Relu: h' = f(both)
//   Gru:        r, z = sigmoid(both); n = tanh(x's + r * h's); h' = (1 - z) n + z h (Cho et al.
//   2014) Lstm:       i, f, o = sigmoid(both), g = tanh(both); c' = f c + i g; h' = o tanh(c')
//   (Gers,
//               Schmidhuber and Cummins 2000)
struct RecurrentCell {
  RecurrentCell(Recurrence kind, int64_t in, int64_t hidden, bool with_bias = true,
                CallSite at = CallSite::here());
  RecurrentState operator()(const Tensor& x, const RecurrentState& before = {},
                            CallSite = CallSite::here()) const;
  void visit(StateVisitor& v);

  // The same in two parts: x (..., in) to its share of the gates, and a step from that.
  Tensor gates_of(const Tensor& x) const;
  RecurrentState advance(const Tensor& gates, const RecurrentState& before) const;

  // (gates * hidden, in), (gates * hidden, hidden), and (gates * hidden,) twice: uniform in
  // +-1/sqrt(hidden)
  Tensor weight_ih, weight_hh, bias_ih, bias_hh;
  Recurrence kind;
  int64_t hidden;
};

struct RNNCell : RecurrentCell {
  RNNCell(int64_t in, int64_t hidden_size, bool with_bias = true, CallSite at = CallSite::here())
      : RecurrentCell(Recurrence::Tanh, in, hidden_size, with_bias, at) {}
};
struct GRUCell : RecurrentCell {
  GRUCell(int64_t in, int64_t hidden_size, bool with_bias = true, CallSite at = CallSite::here())
      : RecurrentCell(Recurrence::Gru, in, hidden_size, with_bias, at) {}
};
struct LSTMCell : RecurrentCell {
  LSTMCell(int64_t in, int64_t hidden_size, bool with_bias = true, CallSite at = CallSite::here())
      : RecurrentCell(Recurrence::Lstm, in, hidden_size, with_bias, at) {}
};

struct RecurrentOptions {
  int64_t layers = 1;
  bool bias = true;
  bool batch_first = false;  // x and output are (batch, steps, ...), not (steps, batch, ...)
  double dropout = 0;        // while training, between layers
  bool bidirectional = false;
};

// x (steps, batch, in) to output (steps, batch, directions * hidden), the last layer's h of every
// step, and the state after the last step: h, c (layers * directions, batch, hidden), which is also
// what it may start from. The number of steps must be known; they share their kernels.
struct Recurrent {
  struct Result {
    Tensor output;
    RecurrentState state;
  };

  Recurrent(Recurrence kind, int64_t in, int64_t hidden, const RecurrentOptions& options = {},
            CallSite at = CallSite::here());
  Result operator()(const Tensor& x, const RecurrentState& start = {},
                    CallSite = CallSite::here()) const;
  void visit(StateVisitor& v);  // "weight_ih_l0", "weight_hh_l1_reverse"

  std::vector<RecurrentCell> cells;  // layer by layer, forward before reverse
  RecurrentOptions options;

 private:
  int64_t directions() const { return options.bidirectional ? 2 : 1; }
};

struct RNN : Recurrent {
  RNN(int64_t in, int64_t hidden, const RecurrentOptions& recurrent = {},
      CallSite at = CallSite::here())
      : Recurrent(Recurrence::Tanh, in, hidden, recurrent, at) {}
};
struct GRU : Recurrent {
  GRU(int64_t in, int64_t hidden, const RecurrentOptions& recurrent = {},
      CallSite at = CallSite::here())
      : Recurrent(Recurrence::Gru, in, hidden, recurrent, at) {}
};
struct LSTM : Recurrent {
  LSTM(int64_t in, int64_t hidden, const RecurrentOptions& recurrent = {},
       CallSite at = CallSite::here())
      : Recurrent(Recurrence::Lstm, in, hidden, recurrent, at) {}
};

}  // namespace weft::nn
