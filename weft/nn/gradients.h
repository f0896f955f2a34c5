// Between backward() and step(): gradients limited, and summed over several backward() calls.
#pragma once

#include <vector>

#include "weft/tensor/tensor.h"

namespace weft::nn {

// Of the parameters that have one. backward() adds to gradients, so that several small batches make
// a large one: accumulate_gradients() of tensor/transforms.h does so in one program. Where batches
// come one by one, realize in between, or their graphs grow into one program of all:
//
//   for (const Batch& batch : parts) {
//     (loss(batch) / parts.size()).backward();
//     realize(gradients(params));
//   }
//   adam.step();
std::vector<Tensor> gradients(const std::vector<Tensor>& params);

// The p-norm of all gradients as one vector, f32 (); p may be infinity, and is above 0. 0 where
// there are none.
Tensor gradient_norm(const std::vector<Tensor>& params, double p = 2, CallSite = CallSite::here());
// Scales all gradients down so that their norm is at most `most` (Pascanu, Mikolov and Bengio
// 2013); gives the norm before. Lazy: it runs with step().
Tensor clip_gradient_norm(const std::vector<Tensor>& params, double most, double p = 2,
                          CallSite = CallSite::here());
// Every element of every gradient within [-most, most]. Lazy too.
void clip_gradient_value(const std::vector<Tensor>& params, double most,
                         CallSite = CallSite::here());

}  // namespace weft::nn
