// The activation functions of recurrent layers, which are named by attributes.
#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

#include "weft/onnx/call.h"

namespace weft::onnx {

struct Activation {
  Tensor (*function)(const Tensor& x, double alpha, double beta) = nullptr;
  double alpha = 0, beta = 0;

  Tensor operator()(const Tensor& x) const { return function(x, alpha, beta); }
};
using Activations = std::vector<Activation>;

/// `count` of the attribute `activations`, with what activation_alpha and activation_beta list, in
/// order, for those that have such a number; `usual`, again and again, where it is not given.
Activations activations_of(const NodeCall& call, size_t count,
                           std::initializer_list<std::string_view> usual);

}  // namespace weft::onnx
