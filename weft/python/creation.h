// Where a new tensor goes, and whether backward() fills its gradient.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>

#include "weft/python/casters.h"

namespace weft::python {

struct Placement {
  std::optional<DeviceName> device;
  std::optional<bool> requires_grad;  ///< none: where a loss depends on no tensor that asked for it
  bool distinct = true;               ///< no other tensor can be the same expression
};
Tensor placed(Tensor t, const Placement& where);

/// f(2, 3) and f((2, 3)).
Dims dims_of_args(const nanobind::args& args);

}  // namespace weft::python
