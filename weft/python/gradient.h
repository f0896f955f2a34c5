// A gradient rule written in Python.
#pragma once

#include <nanobind/stl/function.h>

#include "weft/python/bindings.h"
#include "weft/tensor/transforms.h"

namespace weft::python {

/// (inputs, results, upstream) -> a gradient or None for each input.
using PythonGradient = std::function<std::vector<std::optional<Tensor>>(
    const Tensors&, const Tensors&, const Tensors&)>;
GradientFunction gradient_of(const PythonGradient& gradient);

}  // namespace weft::python
