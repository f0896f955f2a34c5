#include "weft/tensor/transforms.h"

#include "weft/tensor/batching.h"
#include "weft/tensor/traced_writes.h"
#include "weft/tensor/tracing.h"

namespace weft {

namespace {

void require_inputs(const char* tag, const Tensors& inputs, bool floats) {
  if (inputs.empty()) fail(tag, "needs at least one input");
  if (!floats) return;
  for (const Tensor& x : inputs) require_float(tag, x);
}

/// Gradients of the results, weighted by `upstream`, with respect to the inputs.
Tensors pulled_back(const Tensors& results, const Tensors& inputs, const Tensors& upstream) {
  Tensors sums;
  for (const Tensor& x : inputs) sums.push_back(x.zeros_like());
  for (size_t j = 0; j < results.size(); ++j) {
    if (!is_float(results[j].dtype())) continue;
    const Tensors grads = results[j].gradient(inputs, upstream[j]);
    for (size_t i = 0; i < inputs.size(); ++i) sums[i] = sums[i] + grads[i];
  }
  return sums;
}

void require_like(const char* tag, const char* what, const Tensors& given, const Tensors& wanted) {
  if (given.size() != wanted.size())
    fail(tag, "{} {} for {} tensors: give one for each", given.size(), what, wanted.size());
  for (size_t i = 0; i < given.size(); ++i)
    if (!(given[i].dims() == wanted[i].dims()))
      fail(tag, "{} {} has shape {}, but the tensor it belongs to {}: they must be equal", what, i,
           given[i].dims().text(), wanted[i].dims().text());
}

Tensor only(const char* tag, const Tensors& results) {
  if (results.size() != 1) fail(tag, "the function must give one Tensor, not {}", results.size());
  return results[0];
}

/// f(holes), which stand for `inputs`.
Tensors run_once(const char* tag, const TensorFunction& f, const Tensors& holes,
                 const Tensors& inputs) {
  TracedWrites writes(tag, holes);
  Tensors results = f(holes);
  writes.bind(inputs);
  return results;
}

// ---- vmap

struct Batch {
  Dim size = 0;
  Tensors moved, holes;  // inputs with the axis in front; what f is traced on
};

Batch batch_of(const Tensors& inputs, const std::vector<std::optional<int64_t>>& in_axes) {
  if (!in_axes.empty() && in_axes.size() != inputs.size())
    fail("vmap", "{} axes for {} inputs: give one for each, or none", in_axes.size(),
         inputs.size());
  Batch b;
  bool known = false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& x = inputs[i];
    const std::optional<int64_t> axis = in_axes.empty() ? 0 : in_axes[i];
    if (!axis) continue;
    const int64_t a = checked_axis("vmap", *axis, x);
    if (known && !(x.dim(a) == b.size))
      fail("vmap", "input {} of shape {} has {} slices along axis {}, the ones before it {}", i,
           x.dims().text(), x.dim(a).text(), a, b.size.text());
    b.size = x.dim(a);
    known = true;
    Ints order{a};
    Dims rest;
    for (int64_t k = 0; k < static_cast<int64_t>(x.ndim()); ++k) {
      if (k == a) continue;
      order.push_back(k);
      rest.push_back(x.dim(k));
    }
    b.moved.push_back(x.permute(order));
    b.holes.push_back(placeholder(x, rest));
  }
  if (!known) fail("vmap", "no input has an axis to go along: give at least one in in_axes");
  return b;
}

/// The batch axis, in front, put where it is asked for.
Tensor placed(const Tensor& x, int64_t axis) {
  const int64_t a = checked_axis("vmap", axis, x);
  Ints order;
  for (int64_t k = 1; k < static_cast<int64_t>(x.ndim()); ++k) order.push_back(k);
  order.insert(static_cast<size_t>(a), 0);
  return x.permute(order);
}

}  // namespace

TensorFunction of_one(std::function<Tensor(const Tensor&)> f) {
  return [f = std::move(f)](const Tensors& x) { return Tensors{f(x.at(0))}; };
}
TensorFunction of_two(std::function<Tensor(const Tensor&, const Tensor&)> f) {
  return [f = std::move(f)](const Tensors& x) { return Tensors{f(x.at(0), x.at(1))}; };
}

Tensors vmap(const TensorFunction& f, const Tensors& inputs,
             const std::vector<std::optional<int64_t>>& in_axes, int64_t out_axis, CallSite at) {
  const CallSiteScope site(at);
  require_inputs("vmap", inputs, false);
  const Batch b = batch_of(inputs, in_axes);
  Tensors arguments;
  for (size_t i = 0, hole = 0; i < inputs.size(); ++i)
    arguments.push_back(in_axes.empty() || in_axes[i] ? b.holes[hole++] : inputs[i]);
  TracedWrites writes("vmap", b.holes);
  const Tensors results = f(arguments);
  writes.refuse_per_slice();

  Context& context = inputs[0].context();
  Graph& g = tensor_graph(context);
  const Graph::Building building(g);
  NodeMap<NodeRef> images;
  for (size_t i = 0; i < b.holes.size(); ++i) images.set(b.holes[i].node(), b.moved[i].node());
  Batching batching(g, nodes_of({b.size})[0], std::move(images));
  Tensors out;
  for (const Tensor& r : results)
    out.push_back(placed(TensorAccess::make(context, batching.batched(r.node())), out_axis));
  return out;
}

std::pair<Tensors, TensorFunction> vjp(const TensorFunction& f, const Tensors& inputs,
                                       CallSite at) {
  const CallSiteScope site(at);
  require_inputs("vjp", inputs, true);
  const Tensors holes = placeholders(inputs), results = run_once("vjp", f, holes, inputs);
  TensorFunction pullback = [holes, results, inputs](const Tensors& upstream) {
    require_like("vjp", "upstream gradients", upstream, results);
    return bound(pulled_back(results, holes, upstream), holes, inputs);
  };
  return {bound(results, holes, inputs), std::move(pullback)};
}

std::pair<Tensors, Tensors> jvp(const TensorFunction& f, const Tensors& inputs,
                                const Tensors& tangents, CallSite at) {
  const CallSiteScope site(at);
  require_inputs("jvp", inputs, true);
  require_like("jvp", "tangents", tangents, inputs);
  Tensors holes = placeholders(inputs), values = inputs;
  const Tensors results = run_once("jvp", f, holes, inputs);
  // The gradients of the inputs are linear in u; what multiplies u is the derivative wanted.
  const Tensors u = placeholders(results), grads = pulled_back(results, holes, u);
  Tensors moved;
  for (size_t j = 0; j < results.size(); ++j) {
    Tensor sum = results[j].zeros_like();
    if (is_float(results[j].dtype()))
      for (size_t i = 0; i < inputs.size(); ++i)
        sum = sum + grads[i].gradient({u[j]}, tangents[i].cast(grads[i].dtype()))[0];
    moved.push_back(sum);
    holes.push_back(u[j]);
    values.push_back(results[j].zeros_like());
  }
  return {bound(results, holes, values), bound(moved, holes, values)};
}

std::pair<Tensor, Tensors> value_and_grad(const TensorFunction& f, const Tensors& inputs,
                                          CallSite at) {
  const CallSiteScope site(at);
  require_inputs("value_and_grad", inputs, true);
  const Tensors holes = placeholders(inputs),
                results = run_once("value_and_grad", f, holes, inputs);
  const Tensor y = only("value_and_grad", results);
  const Tensors grads = y.gradient(holes);
  return {bound({y}, holes, inputs)[0], bound(grads, holes, inputs)};
}

Tensor jacobian(const TensorFunction& f, const Tensor& x, CallSite at) {
  const CallSiteScope site(at);
  const auto [results, pullback] = vjp(f, {x});
  const Tensor y = only("jacobian", results);
  require_float("jacobian", y);
  const Dim count = y.dims().product();
  Dims rows{count}, shape = y.dims();
  for (const Dim& d : y.dims()) rows.push_back(d);
  for (const Dim& d : x.dims()) shape.push_back(d);
  const Tensor basis = Tensor::eye(count, y.dtype()).reshape(rows);
  return vmap(pullback, {basis})[0].reshape(shape);
}

Tensor hessian(const TensorFunction& f, const Tensor& x, CallSite at) {
  const CallSiteScope site(at);
  return jacobian([&f](const Tensors& v) { return value_and_grad(f, v).second; }, x);
}

}  // namespace weft
