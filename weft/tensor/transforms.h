// Transforms of functions of tensors: vmap, vjp, jvp, value_and_grad, jacobian, hessian. A function
// is traced once, on placeholders of its arguments' shapes; what comes out is an ordinary graph, so
// transforms nest in any order. While it is traced nothing has a value: item(), realize() and
// drawing conclusions from elements are Errors.
#pragma once

#include <functional>
#include <optional>
#include <utility>

#include "weft/tensor/tensor.h"

namespace weft {

using Tensors = std::vector<Tensor>;
using TensorFunction = std::function<Tensors(const Tensors&)>;

/// The function of one Tensor as one of lists: vmap(of_one([](Tensor x) { return x.sum(); }), {x}).
TensorFunction of_one(std::function<Tensor(const Tensor&)> f);
/// Likewise of two.
TensorFunction of_two(std::function<Tensor(const Tensor&, const Tensor&)> f);

/// f on every slice of the inputs along in_axes (0 for those not listed; nothing: the whole tensor
/// every time), at once; the results are stacked along out_axis. Equal to a loop over the slices
/// and stack(), random numbers apart: one draw serves all slices. Errors: inputs of different
/// sizes along their axes, no axis at all.
Tensors vmap(const TensorFunction& f, const Tensors& inputs,
             const std::vector<std::optional<int64_t>>& in_axes = {}, int64_t out_axis = 0,
             CallSite = CallSite::here());

/// What f gives, and the function from upstream gradients of that (one of each shape) to gradients
/// of the inputs. Inputs are floats.
std::pair<Tensors, TensorFunction> vjp(const TensorFunction& f, const Tensors& inputs,
                                       CallSite = CallSite::here());
/// What f gives, and how it changes when the inputs move along `tangents` (of their shapes): the
/// directional derivative, as the reverse of the reverse (Christianson 1992).
std::pair<Tensors, Tensors> jvp(const TensorFunction& f, const Tensors& inputs,
                                const Tensors& tangents, CallSite = CallSite::here());
/// f's one result, of one element, and its gradients of all inputs.
std::pair<Tensor, Tensors> value_and_grad(const TensorFunction& f, const Tensors& inputs,
                                          CallSite = CallSite::here());
/// d f(x) / d x for f with one input and one result: the result's axes, then x's.
Tensor jacobian(const TensorFunction& f, const Tensor& x, CallSite = CallSite::here());
/// The second derivatives of f, whose result has one element: x's axes twice.
Tensor hessian(const TensorFunction& f, const Tensor& x, CallSite = CallSite::here());

}  // namespace weft
