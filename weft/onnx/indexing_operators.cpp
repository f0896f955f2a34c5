// Operators that choose elements: gathers, scatters, and those whose sizes depend on data.
#include "weft/onnx/host.h"
#include "weft/onnx/operators.h"
#include "weft/tensor/known.h"
#include "weft/tensor/selection.h"

namespace weft::onnx {
namespace {

Index place_of(const NodeCall& call, size_t i) {
  const Value& at = call.input(i);
  const auto known = at.ndim() == 0 ? at.integers() : std::nullopt;
  return known && (*known)[0].is_static() ? Index((*known)[0]) : Index(call.tensor(i));
}

Values gather(const NodeCall& call) {
  const Value& x = call.input(0);
  const int64_t axis = call.axis(call.integer("axis", 0), x.ndim());
  std::vector<Index> at(static_cast<size_t>(axis), Index(Slice()));
  at.push_back(place_of(call, 1));  // a number gives a view
  return {moved(x, [&](const Tensor& data) { return data.index(at); })};
}

void require_same_rank(const NodeCall& call) {
  if (call.input(0).ndim() != call.tensor(1).ndim())
    call.refuse("data {} and indices {} have as many axes as each other",
                call.input(0).dims().text(), call.tensor(1).dims().text());
}

Values gather_elements(const NodeCall& call) {
  require_same_rank(call);
  const int64_t axis = call.axis(call.integer("axis", 0), call.input(0).ndim());
  return {moved(call.input(0), [&](const Tensor& x) { return x.gather(axis, call.tensor(1)); })};
}

// How long the index tuples are that the last axis of indices holds.
int64_t tuple_length(const NodeCall& call, int64_t batch) {
  const Dims x = call.input(0).dims(), at = call.tensor(1).dims();
  const auto rank = static_cast<int64_t>(x.size());
  if (batch < 0 || batch >= static_cast<int64_t>(at.size()) || batch >= rank)
    call.refuse("batch_dims {}: 0 to below the ranks of data {} and indices {}", batch, x.text(),
                at.text());
  if (!at.back().is_static() || at.back().value() < 1 || at.back().value() > rank - batch)
    call.refuse("indices {} for data {}: the last axis holds 1 to {} positions", at.text(),
                x.text(), rank - batch);
  return at.back().value();
}

Values gather_nd(const NodeCall& call) {
  const int64_t batch = call.integer("batch_dims", 0), length = tuple_length(call, batch);
  const Tensor& places = call.tensor(1);
  std::vector<Index> at;
  for (int64_t d = 0; d < batch; ++d) {
    Dims shape(std::vector<Dim>(places.ndim() - 1, Dim(1)));
    shape[static_cast<size_t>(d)] = places.dim(d);
    at.emplace_back(Tensor::arange(places.dim(d)).reshape(shape));
  }
  for (int64_t j = 0; j < length; ++j) at.emplace_back(places.index({kEllipsis, j}));
  return {moved(call.input(0), [&](const Tensor& x) { return x.index(at); })};
}

Fold fold_named(const NodeCall& call) {
  const std::string name = call.text("reduction", "none");
  if (name == "none") return Fold::Set;
  if (name == "add") return Fold::Add;
  if (name == "mul") return Fold::Mul;
  if (name == "min") return Fold::Min;
  if (name == "max") return Fold::Max;
  call.refuse("reduction {}: none, add, mul, min or max", quoted_name(name));
}

Values scatter_elements(const NodeCall& call) {
  require_same_rank(call);
  const Tensor &x = call.tensor(0), &updates = call.tensor(2);
  if (!(updates.dims() == call.tensor(1).dims()))
    call.refuse("indices {} and updates {} have the same shape", call.tensor(1).dims().text(),
                updates.dims().text());
  const int64_t axis = call.axis(call.integer("axis", 0), x.ndim());
  return {Value(x.scatter(axis, call.tensor(1), updates, fold_named(call)), call.input(0).type())};
}

// A size as a number that kernels compute with.
Tensor size_tensor(const Dim& size) {
  return Tensor::arange(size + Dim(1), DType::I64).index({Index(size)});
}

// Where the tuples point to in x's first axes made one; what is outside of any axis is behind them.
Tensor flat_places(const Tensor& x, const Tensor& tuples, int64_t length) {
  Tensor places = Tensor::zeros({1}, DType::I64), inside;
  Dim total(1);
  for (int64_t j = 0; j < length; ++j) {
    Tensor at = tuples.index({kEllipsis, j}).cast(DType::I64).reshape({-1});
    require_known_inside("onnx.node", at, j, x);
    const Tensor size = size_tensor(x.dim(j));
    at = (at < 0).where(at + size, at);
    const Tensor valid = (at >= 0) & (at < size);
    inside = inside.defined() ? inside & valid : valid;
    places = places * size + at;
    total = total * x.dim(j);
  }
  return inside.where(places, size_tensor(total));
}

Values scatter_nd(const NodeCall& call) {
  const Tensor &x = call.tensor(0), &tuples = call.tensor(1), &updates = call.tensor(2);
  const int64_t length = tuple_length(call, 0);
  Dims expected, rows, rest;
  for (size_t d = 0; d + 1 < tuples.ndim(); ++d) expected.push_back(tuples.dims()[d]);
  for (size_t d = static_cast<size_t>(length); d < x.ndim(); ++d) rest.push_back(x.dims()[d]);
  const Dim count = expected.product(), width = rest.product();
  for (const Dim& d : rest) expected.push_back(d);
  if (!(updates.dims() == expected))
    call.refuse("updates {} for data {} and indices {}: they have shape {}", updates.dims().text(),
                x.dims().text(), tuples.dims().text(), expected.text());
  for (int64_t d = 0; d < length; ++d) rows.push_back(x.dim(d));
  const Tensor places = flat_places(x, tuples, length).unsqueeze(1).expand({count, width});
  const Tensor result = x.reshape({rows.product(), width})
                            .scatter(0, places, updates.reshape({count, width}), fold_named(call));
  return {Value(result.reshape(x.dims()), call.input(0).type())};
}

// Positions of what is not 0, (count) each, by axis; of constants at once.
Values non_zero(const NodeCall& call) {
  const auto rank = static_cast<int64_t>(call.input(0).ndim());
  const std::optional<HostArray> known = call.input(0).constant();
  if (!known) return {nonzero(call.tensor(0)).cast(DType::I64).transpose(0, 1)};
  std::vector<int64_t> flat, at;
  for (int64_t i = 0; i < known->numel(); ++i)
    if (!element(*known, i).is_zero()) flat.push_back(i);
  int64_t inner = known->numel();
  for (const int64_t size : known->shape) {
    inner /= std::max<int64_t>(size, 1);
    for (const int64_t i : flat) at.push_back(i / inner % size);
  }
  return {host_value(at, {rank, static_cast<int64_t>(flat.size())})};
}

Values compress(const NodeCall& call) {
  const Dims dims = call.input(0).dims();
  const bool flat = !call.has("axis");
  const int64_t axis = flat ? 0 : call.axis(call.integer("axis"), dims.size());
  const Dim size = flat ? dims.product() : dims[static_cast<size_t>(axis)];
  const Tensor& condition = call.tensor(1);
  if (condition.ndim() != 1 || condition.dim(0).min() > size.max())
    call.refuse("condition {} for an axis of {}: 1-D and not longer", condition.dims().text(),
                size.text());
  const Tensor places = nonzero(condition).reshape({-1});
  return {moved(call.input(0), [&](const Tensor& x) {
    return (flat ? x.reshape({-1}) : x).index_select(axis, places);
  })};
}

Values top_k(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  const int64_t axis = call.axis(call.integer("axis", -1), x.ndim());
  const int64_t k = call.opset() < 10 ? call.integer("k") : call.integer(1);
  if (k < 0 || k > x.dim(axis).max())
    call.refuse("k {} of an axis of {}: 0 to its size", k, x.dim(axis).text());
  const auto [values, places] = x.topk(k, axis, call.integer("largest", 1) != 0);
  return {values, places.cast(DType::I64)};
}

Values one_hot(const NodeCall& call) {
  const Tensor& values = call.tensor(2);
  const int64_t depth = call.integer(1);
  if (depth < 1) call.refuse("depth {}: at least 1", depth);
  if (values.ndim() != 1 || !(values.dim(0) == Dim(2)))
    call.refuse("values {}: two, for off and on", values.dims().text());
  Tensor at = call.tensor(0).cast(DType::I64);
  const int64_t axis = call.axis(call.integer("axis", -1), at.ndim() + 1);
  at = (at < 0).where(at + depth, at).unsqueeze(axis);
  Dims along(std::vector<Dim>(at.ndim(), Dim(1)));
  along[static_cast<size_t>(axis)] = Dim(depth);
  const Tensor here = at == Tensor::arange(Dim(depth), DType::I64).reshape(along);
  return {Value(here.where(values[1], values[0]), call.input(2).type())};
}

}  // namespace

Values unique(const NodeCall& call);  // unique_operator.cpp

std::span<const Operator> indexing_operators() {
  static constexpr Operator kRows[] = {
      {kOnnx, "Compress", 9, compress},
      {kOnnx, "Gather", 1, gather},
      {kOnnx, "GatherElements", 11, gather_elements},
      {kOnnx, "GatherND", 11, gather_nd},
      {kOnnx, "NonZero", 9, non_zero},
      {kOnnx, "OneHot", 9, one_hot},
      {kOnnx, "Scatter", 9, scatter_elements},
      {kOnnx, "ScatterElements", 11, scatter_elements},
      {kOnnx, "ScatterND", 11, scatter_nd},
      {kOnnx, "TopK", 1, top_k},
      {kOnnx, "Unique", 11, unique},
  };
  return kRows;
}

}  // namespace weft::onnx
