// Transforms of functions: lists of tensors in, lists out. weft/transforms.py gives them Python's
// face.
#include "weft/tensor/transforms.h"

#include <nanobind/stl/function.h>

#include "weft/python/gradient.h"

namespace weft::python {

using PythonScan = std::function<std::pair<Tensors, Tensors>(const Tensors&, const Tensors&)>;

GradientFunction gradient_of(const PythonGradient& gradient) {
  if (!gradient) return {};
  return [gradient](const Tensors& inputs, const Tensors& results, const Tensors& upstream) {
    Tensors out;
    for (std::optional<Tensor>& g : gradient(inputs, results, upstream))
      out.push_back(g ? std::move(*g) : Tensor());
    return out;
  };
}

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
  method(
      m, "scan",
      [](const PythonScan& f, const Tensors& carried, const Tensors& xs, bool reversed,
         int64_t count) {
        const ScanFunction body = [&f](const Tensors& state, const Tensors& slices) {
          auto [next, outs] = f(state, slices);
          return ScanResult{std::move(next), std::move(outs)};
        };
        ScanResult r = scan(body, carried, xs, {reversed, count}, CallSite());
        return std::pair(std::move(r.carried), std::move(r.stacked));
      },
      "f"_a, "carried"_a, "xs"_a, "reversed"_a, "count"_a);
  method(
      m, "while_loop",
      [](const std::function<Tensor(const Tensors&)>& condition, const TensorFunction& body,
         const Tensors& carried,
         int64_t most) { return while_loop(condition, body, carried, most, CallSite()); },
      "condition"_a, "body"_a, "carried"_a, "most"_a);
  method(
      m, "accumulate_gradients",
      [](const std::function<Tensor(const Tensors&)>& loss, const Tensors& batch, int64_t parts,
         bool mean) {
        return accumulate_gradients(loss, batch, parts, mean ? Reduction::Mean : Reduction::Sum,
                                    CallSite());
      },
      "loss"_a, "batch"_a, "parts"_a, "mean"_a);
  method(
      m, "checkpoint",
      [](const TensorFunction& f, const Tensors& inputs) {
        return checkpoint(f, inputs, CallSite());
      },
      "f"_a, "inputs"_a);
  method(
      m, "contiguous_backward", [](const Tensor& x) { return contiguous_backward(x, CallSite()); },
      "x"_a);
  method(
      m, "with_gradient",
      [](const TensorFunction& f, const PythonGradient& gradient, const Tensors& inputs) {
        return with_gradient(f, gradient_of(gradient), inputs, CallSite());
      },
      "f"_a, "gradient"_a, "inputs"_a);
}

}  // namespace weft::python
