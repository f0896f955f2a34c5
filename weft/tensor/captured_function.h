// CapturedFunction: what a jitted function does, as data that outlives its process.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "weft/tensor/tensor.h"

namespace weft {

struct ReplayVariable;
class ArgumentSizes;
class Replay;

/// Realizations of graphs over numbered memory, in order: that of the arguments, of the state (the
/// tensors the function uses besides, parameters and the like) and of what it makes. Kernels are
/// not part of it: they are compiled again for the machine it runs on. io/functions.h saves and
/// loads it; jit.h runs a loaded one.
struct CapturedFunction {
  /// A value after a call: what was in a place when its computations had ended, or memory.
  struct Ending {
    int place = -1, memory = -1;
    bool none() const { return place < 0 && memory < 0; }
  };
  /// Arguments come first. An argument's form is a Param of its dtype and dims, its view the chain
  /// that leads from its storage to it (null: the whole storage).
  struct Place {
    std::string name;
    int memory = -1;  ///< -1: neither read nor written in place
    Ending ending;    ///< none: what is in its memory
    RootedNode form, view;
    Tensor state;
  };
  /// Param k of the values stands for memory inputs[k] (-1: its elements do not matter).
  struct Computation {
    std::vector<RootedNode> values;
    std::vector<int> inputs, results;
  };
  struct Result {
    Ending ending;
    int itself = -1;  ///< the place that is returned as it is
  };

  std::string name;
  size_t arguments = 0, memories = 0;
  std::vector<Place> places;
  std::vector<Computation> computations;
  std::vector<Result> results;
  std::vector<std::pair<std::string, std::string>> constants;  ///< arguments that are no tensors
  std::vector<std::pair<std::string, RootedNode>> sizes;       ///< and those that are bound sizes

  /// Those of `sizes`, then of the tensors. Sizes are bound to the values they had when
  /// captured. Within a Graph::Building scope.
  ArgumentSizes argument_sizes(Graph& g) const;
  /// What a replay is made from. The state is the tensors themselves, not copies.
  static CapturedFunction of(const Replay& replay);

  /// Does it once, step by step, with other values of argument_sizes().variables(). An Error where
  /// an argument differs in dtype or shape. Writes to arguments and state as the function did.
  std::vector<Tensor> run(const std::vector<Tensor>& arguments,
                          const std::vector<ReplayVariable>& variables) const;
};

}  // namespace weft
