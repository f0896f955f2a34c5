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

// ---- functions as one node

/// f(inputs), whose gradients are what `gradient` makes of the inputs, of the results and of the
/// results' gradients: one for each input, an empty Tensor where there is none. It is traced here,
/// once, as graph; so it has derivatives itself and may be batched. Tensors that f uses besides
/// its inputs get nothing. Example, a sign whose gradient passes straight through:
///   with_gradient(of_one([](Tensor x) { return x.sign(); }),
///                 [](auto& x, auto& y, auto& up) { return up; }, {x})[0]
/// Errors: another number of gradients than inputs, or other shapes.
using GradientFunction =
    std::function<Tensors(const Tensors& inputs, const Tensors& results, const Tensors& upstream)>;
Tensors with_gradient(const TensorFunction& f, const GradientFunction& gradient,
                      const Tensors& inputs, CallSite = CallSite::here());

/// x, whose gradient has a buffer of its own.
Tensor contiguous_backward(const Tensor& x, CallSite = CallSite::here());

/// f(inputs), of which nothing but the results is kept for gradients: they compute f again (Chen
/// et al. 2016). f's kernels are its own: none is shared with what is around it. Random numbers are
/// drawn once, and are the same both times.
Tensors checkpoint(const TensorFunction& f, const Tensors& inputs, CallSite = CallSite::here());

/// A function that is traced once for every shape, dtype and device of its arguments; later calls
/// put their arguments into the trace. Equal to f where f depends on nothing else.
TensorFunction traced(TensorFunction f);

/// What carried becomes when f goes over the slices of xs along their first axis, and what f gave
/// besides at every slice, stacked.
struct ScanResult {
  Tensors carried, stacked;
};
using ScanFunction = std::function<ScanResult(const Tensors& carried, const Tensors& slices)>;
struct ScanOptions {
  bool reversed = false;  ///< from the last slice to the first; stacks keep the order of xs
  int64_t count = 0;      ///< how often, where there are no xs
  /// Every slice computes all of its own, in the memory of one slice. Otherwise what depends on
  /// nothing that is carried is computed for all slices at once.
  bool apart = false;
  /// Which of `carried`, in i32, says when it is done: once none of its elements is 0, further
  /// slices change nothing that you look at (that is yours to see to; while_loop() does), and a
  /// device whose memory the host can look into leaves them out. Nothing is stacked then.
  int64_t until = -1;
};
/// The body is traced, scheduled and compiled once, however many slices there are: a model of 126
/// equal layers, their weights stacked, is one layer. Gradients run the body again, from the last
/// slice to the first; between slices only `carried` is kept. Random numbers in the body are drawn
/// once for all slices. Errors: xs of different lengths, a symbolic length, a carried tensor that
/// changes its shape or dtype.
ScanResult scan(const ScanFunction& f, const Tensors& carried, const Tensors& xs,
                const ScanOptions& options = {}, CallSite = CallSite::here());

/// `carried` after body(carried) again and again, while condition(carried), one number or bool for
/// all, is not 0: at most `most` times, since everything is planned ahead. Where the host can look
/// into the device's memory, no more rounds run than are needed, or one or two; elsewhere all
/// `most` do, the rest without effect. Gradients always run all of them. In vmap every slice ends
/// by itself.
///
///     Tensor root = while_loop(
///         [&](const Tensors& c) { return (c[0] * c[0] - x).abs().max() > 1e-6; },
///         [&](const Tensors& c) { return Tensors{(c[0] + x / c[0]) / 2}; }, {x}, 50)[0];
Tensors while_loop(const std::function<Tensor(const Tensors&)>& condition,
                   const TensorFunction& body, const Tensors& carried, int64_t most,
                   CallSite = CallSite::here());

/// loss(x, ...).backward() for a batch that is computed in `parts` micro-batches, one after the
/// other: equal to it within the rounding of a sum of `parts` terms, with the memory of one
/// micro-batch however many there are, compiled once. `batch`: tensors whose first axes are the
/// batch's, each cut in `parts` pieces of equal size; pass what selects data (places, keys) rather
/// than data, which would be in memory as a whole. loss gives one number of the pieces it is given.
/// Returns the mean of these (Reduction::Sum: their sum), lazily and without a history, and adds
/// its gradients to those of the leaves, as backward() does; sums are f32 at least. What the loss
/// assigns to (batch norm's averages) is carried from piece to piece, and what it draws (dropout)
/// has the numbers that a loop over the pieces would draw: both are as in that loop, so that batch
/// norm sees one micro-batch at a time. While it is traced nothing has a value; it is traced twice
/// where it assigns.
///   accumulate_gradients(
///       [&](const Tensors& x) { return net(x[0]).sparse_categorical_crossentropy(x[1]); },
///       {images, labels}, 8);
///   adam.step();
/// Errors: a batch that is no multiple of `parts`, tensors of different lengths, a loss that is not
/// one float or depends on no tensor with requires_grad_().
Tensor accumulate_gradients(const std::function<Tensor(const Tensors&)>& loss, const Tensors& batch,
                            int64_t parts, Reduction reduction = Reduction::Mean,
                            CallSite = CallSite::here());

}  // namespace weft
