// All optimizers.
//
//   nn::Adam adam(parameters(net), {.lr = 0.001});
//   adam.zero_grad();
//   loss.backward();
//   adam.step();
#pragma once

#include "weft/nn/adam.h"      // IWYU pragma: export
#include "weft/nn/adaptive.h"  // IWYU pragma: export
#include "weft/nn/sgd.h"       // IWYU pragma: export
