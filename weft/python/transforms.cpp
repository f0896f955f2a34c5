// Transforms of functions: lists of tensors in, lists out. weft/transforms.py gives them Python's
// face.
#include "weft/tensor/transforms.h"

#include <nanobind/stl/function.h>

#include "weft/python/bindings.h"

namespace weft::python {

void bind_transforms(nb::module_& m) {
  method(
      m, "vmap",
      [](const TensorFunction& f, const Tensors& inputs,
         const std::vector<std::optional<int64_t>>& in_axes,
         int64_t out_axis) { return vmap(f, inputs, in_axes, out_axis, CallSite()); },
      "f"_a, "inputs"_a, "in_axes"_a, "out_axis"_a);
  method(
      m, "vjp",
      [](const TensorFunction& f, const Tensors& inputs) { return vjp(f, inputs, CallSite()); },
      "f"_a, "inputs"_a);
  method(
      m, "jvp",
      [](const TensorFunction& f, const Tensors& inputs, const Tensors& tangents) {
        return jvp(f, inputs, tangents, CallSite());
      },
      "f"_a, "inputs"_a, "tangents"_a);
  method(
      m, "value_and_grad",
      [](const TensorFunction& f, const Tensors& inputs) {
        return value_and_grad(f, inputs, CallSite());
      },
      "f"_a, "inputs"_a);
  method(
      m, "jacobian",
      [](const TensorFunction& f, const Tensor& x) { return jacobian(f, x, CallSite()); }, "f"_a,
      "x"_a);
  method(
      m, "hessian",
      [](const TensorFunction& f, const Tensor& x) { return hessian(f, x, CallSite()); }, "f"_a,
      "x"_a);
}

}  // namespace weft::python
