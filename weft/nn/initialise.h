// What layers are made of: starting values, and checks of sizes.
#pragma once

#include <cstdint>

#include "weft/nn/state.h"

namespace weft::nn {

// With requires_grad() on.
Tensor trained(Tensor t);
// Uniform in +-1/sqrt(fan_in), as torch.nn starts the weights and biases of most layers.
Tensor uniform_for(const Dims& shape, int64_t fan_in);
// Trained ones or zeros where wanted, else an empty Tensor.
Tensor ones_if(bool wanted, const Dims& shape);
Tensor zeros_if(bool wanted, const Dims& shape);

Dims dims_of(const Ints& sizes);
// An Error of `layer` below 1.
void check_positive(const char* layer, const char* what, int64_t value);
// One number for all axes, or as many as there are axes.
Ints for_axes(const char* layer, const char* what, const Ints& sizes, size_t axes);
// (1, c, 1, ...): a per-channel tensor beside one of this rank.
Tensor channelwise(const Tensor& t, size_t rank);
// y * weight + bias per channel, where they are not empty.
Tensor scaled_channels(const Tensor& y, const Tensor& weight, const Tensor& bias);

}  // namespace weft::nn
