// Tensors from nothing: constants, sequences, masks.
#include <algorithm>
#include <cmath>

#include "weft/base/context.h"
#include "weft/tensor/access.h"

namespace weft {

namespace {

NodeRef filled(Graph& g, const char* tag, const Dims& shape, Value value) {
  require_sizes(tag, shape);
  return build::broadcast_to(g, g.constant(value), nodes_of(shape));
}

void require_data(const char* tag, DType dtype) {
  if (!is_data(dtype))
    fail_type(tag, "{} is not a dtype of elements: choose bool, an integer or a float",
              name(dtype));
}

}  // namespace

Tensor::Tensor(Scalar value) {
  Context& context = Context::current();
  Graph& g = tensor_graph(context);
  const Graph::Building building(g);
  cell_ = TensorAccess::ref(
      std::make_shared<TensorCell>(context, g.constant(value.as(value.default_dtype()))));
}

Tensor Tensor::full(const Dims& shape, Scalar value, DType dtype, CallSite at) {
  const OpScope scope(Context::current(), at);
  require_data("full", dtype);
  return scope.result(filled(scope.g, "full", shape, value.as(dtype)));
}

Tensor Tensor::full(const Dims& shape, Scalar value, CallSite at) {
  return full(shape, value, value.default_dtype(), at);
}
Tensor Tensor::zeros(const Dims& shape, DType dtype, CallSite at) {
  return full(shape, 0, dtype, at);
}
Tensor Tensor::ones(const Dims& shape, DType dtype, CallSite at) {
  return full(shape, 1, dtype, at);
}
Tensor Tensor::empty(const Dims& shape, DType dtype, CallSite at) {
  return full(shape, 0, dtype, at);
}

Tensor Tensor::full_like(Scalar value, CallSite at) const {
  const OpScope scope(*this, at);
  return scope.result(filled(scope.g, "full_like", dims(), value.as(dtype())));
}

// ---- sequences

Tensor Tensor::arange(const Dim& stop, DType dtype, CallSite at) {
  const OpScope scope(Context::current(), at);
  require_data("arange", dtype);
  NodeRef n = weft::max(stop, 0).node();
  return scope.result(build::iota(scope.g, {&n, 1}, 0, dtype));
}

Tensor Tensor::arange(Scalar start, Scalar stop, Scalar step, CallSite at) {
  const CallSiteScope site(at);
  const double a = start.as(DType::F64).as_double(), b = stop.as(DType::F64).as_double();
  const double s = step.as(DType::F64).as_double();
  if (!(s != 0) || !std::isfinite(a) || !std::isfinite(b) || !std::isfinite(s))
    fail("arange", "from {} to {} by {} never ends: give finite numbers and a step that is not 0",
         a, b, s);
  const double count = std::ceil((b - a) / s);
  if (count > 0x1p56)
    fail("arange", "from {} to {} by {} are {} elements, more than any machine holds", a, b, s,
         count);
  const bool whole = !start.is_float() && !stop.is_float() && !step.is_float();
  const bool wide = std::max(std::fabs(a), std::fabs(b)) > INT32_MAX;
  const DType dtype = !whole ? kDefaultFloat : wide ? DType::I64 : kDefaultInt;
  const Tensor positions = arange(Dim(count > 0 ? static_cast<int64_t>(count) : 0), dtype);
  const Tensor scaled =
      s == 1 ? positions
             : positions * Operand(whole ? Tensor(step.as(DType::I64).as_int()) : Tensor(s));
  return a == 0 ? scaled : scaled + (whole ? Tensor(start.as(DType::I64).as_int()) : Tensor(a));
}

Tensor Tensor::linspace(double start, double stop, int64_t steps, DType dtype, CallSite at) {
  const CallSiteScope site(at);
  if (steps < 0) fail("linspace", "{} steps: give at least 0", steps);
  if (is_bool(dtype)) fail("linspace", "of bools makes no sense: choose a dtype of numbers");
  if (steps == 1) return full({1}, start, dtype);
  const DType wide = dtype == DType::F64 ? DType::F64 : DType::F32;
  const Tensor t = arange(Dim(steps), wide);
  return (t * ((stop - start) / static_cast<double>(steps - 1)) + start).cast(dtype);
}

Tensor Tensor::eye(const Dim& rows, DType dtype, CallSite at) { return eye(rows, rows, dtype, at); }

namespace {

Tensor positions(const Dims& shape, int64_t axis) {
  const OpScope scope(Context::current(), CallSite::here());
  return scope.result(build::positions(scope.g, nodes_of(shape), axis));
}

}  // namespace

Tensor Tensor::eye(const Dim& rows, const Dim& columns, DType dtype, CallSite at) {
  const CallSiteScope site(at);
  const Dims shape{rows, columns};
  require_sizes("eye", shape);
  return (positions(shape, 0) == positions(shape, 1)).cast(dtype);
}

// ---- masks

namespace {

Tensor keep_triangle(const char* tag, const Tensor& x, const Dim& diagonal, bool lower) {
  if (x.ndim() < 2)
    fail(tag, "takes matrices: got shape {}; give at least 2 axes", x.dims().text());
  const Dims shape = x.dims();
  const auto last = static_cast<int64_t>(shape.size()) - 1;
  const OpScope scope(x, CallSite::here());
  const Tensor row = positions(shape, last - 1), column = positions(shape, last);
  // row + diagonal has to fit too.
  const int64_t most = std::max({shape[shape.size() - 2].max(), std::abs(diagonal.max()),
                                 std::abs(diagonal.min()), int64_t{1}});
  const DType wide = build::position_dtype(2 * std::min(most, int64_t{INT32_MAX}));
  const Tensor edge = row.cast(wide) + scope.result(scope.g.cast(diagonal.node(), wide));
  const Tensor mask = lower ? column <= edge : column >= edge;
  return mask.where(x, x.zeros_like());
}

}  // namespace

Tensor Tensor::tril(const Dim& diagonal, CallSite at) const {
  const CallSiteScope site(at);
  return keep_triangle("tril", *this, diagonal, true);
}

Tensor Tensor::triu(const Dim& diagonal, CallSite at) const {
  const CallSiteScope site(at);
  return keep_triangle("triu", *this, diagonal, false);
}

Tensor Tensor::one_hot(int64_t classes, CallSite at) const {
  const CallSiteScope site(at);
  if (is_float(dtype()))
    fail_type("one_hot",
              "takes class numbers: got {} of shape {}; cast it to an integer dtype first",
              name(dtype()), dims().text());
  if (classes < 1) fail("one_hot", "{} classes: give at least 1", classes);
  Dims shape = dims();
  shape.push_back(classes);
  // Wide enough for every class number, also for those that are none.
  const DType wide = bits(dtype()) < 32 || dtype() == DType::I32 ? DType::I32 : DType::I64;
  return (unsqueeze(-1).cast(wide) == positions(shape, static_cast<int64_t>(ndim())))
      .cast(DType::I32);
}

}  // namespace weft
