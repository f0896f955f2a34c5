// A model's tensors by name: what optimizers train and files keep.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/function_ref.h"
#include "weft/io/tensors.h"

namespace weft {

class StateVisitor;

// A struct whose tensors have names: it lists its members once, in
//
//   void visit(StateVisitor& v) { v("conv1", conv1); v("norm", norm); v("scale", scale); }
//
// and everything here works on it. Names join with dots, as PyTorch's do: "conv1.weight".
template <class M>
concept Module = requires(M& module, StateVisitor& visitor) { module.visit(visitor); };

class StateVisitor {
 public:
  explicit StateVisitor(FunctionRef<void(const std::string& name, Tensor& tensor)> leaf)
      : leaf_(leaf) {}

  // A layer without bias has an empty Tensor there, which is not visited.
  void operator()(std::string_view name, Tensor& tensor);
  template <Module M>
  void operator()(std::string_view name, M& module) {
    const size_t length = enter(name);
    module.visit(*this);
    prefix_.resize(length);
  }
  // "name.0", "name.1", ...
  template <class T>
  void operator()(std::string_view name, std::vector<T>& list) {
    const size_t length = enter(name);
    for (size_t i = 0; i < list.size(); ++i) (*this)(std::to_string(i), list[i]);
    prefix_.resize(length);
  }
  template <class T>
  void operator()(std::string_view name, std::unique_ptr<T>& owned) {
    if (owned) (*this)(name, *owned);
  }

 private:
  size_t enter(std::string_view name);

  FunctionRef<void(const std::string&, Tensor&)> leaf_;
  std::string prefix_;
};

// A realized tensor of one value in memory of its own. Equal constants are one node of the graph
// and would share a buffer until the first write, which makes the first step another program than
// the rest.
Tensor own_constant(const Dims& shape, double value, DType dtype = kDefaultFloat,
                    CallSite at = CallSite::here());

// Every tensor of a module in the order of its visits, sharing storage with it.
using StateDict = std::vector<NamedTensor>;

template <Module M>
StateDict state_dict(M& module) {
  StateDict state;
  const auto leaf = [&](const std::string& name, Tensor& t) { state.push_back({name, t}); };
  StateVisitor visitor(leaf);
  module.visit(visitor);
  return state;
}

// Of those whose names begin with it, without that beginning.
StateDict with_prefix(const StateDict& state, std::string_view prefix);

// Those that are trained: requires_grad() is on.
template <Module M>
std::vector<Tensor> parameters(M& module) {
  std::vector<Tensor> found;
  for (const NamedTensor& named : state_dict(module)) {
    if (named.tensor.requires_grad()) found.push_back(named.tensor);
  }
  return found;
}

// Writes the values of `from` into the tensors of `into` by name. Everything is compared first:
// names that are missing or unexpected and shapes that differ are one Error that lists them, and
// nothing is written. dtypes are converted. Not strict: only names on both sides count.
//
//   load_state_dict(net, load_tensors("net.safetensors").tensors);
void load_state_dict(const StateDict& into, const StateDict& from, bool strict = true,
                     CallSite at = CallSite::here());

template <Module M>
void load_state_dict(M& module, const StateDict& from, bool strict = true,
                     CallSite at = CallSite::here()) {
  load_state_dict(state_dict(module), from, strict, at);
}

}  // namespace weft
