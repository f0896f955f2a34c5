// Normalisations and dropout. Semantics: the ONNX operator specification.
#include <array>
#include <cmath>

#include "weft/onnx/axes.h"
#include "weft/onnx/operators.h"
#include "weft/onnx/seeded.h"
#include "weft/tensor/reductions.h"

namespace weft::onnx {

namespace {

// ---- over the batch

/// A vector of channels beside x; where the statistics are of every place (opsets below 9 with
/// spatial = 0), one number for each of all axes but the batch's.
Tensor beside(const Tensor& v, const Tensor& x, bool of_places) {
  if (!of_places) return along_axis(v, x.ndim(), 1);
  Dims shape = x.dims();
  shape[0] = 1;
  return v.reshape(shape);
}

struct BatchStatistics {
  Tensor mean, var;  ///< vectors
};

BatchStatistics statistics_of(const Tensor& x, bool of_places) {
  Axes axes = of_places ? Axes(0) : axes_from(2, x.ndim());
  if (!of_places) axes.push_back(0);
  const auto [var, mean] = var_mean(x, axes, false, 0);
  return {mean.flatten(), var.flatten()};
}

/// x * factor + offset with vectors that do not depend on x: with constants one product and one sum
/// an element.
Tensor normalised(const NodeCall& call, const Tensor& x, const BatchStatistics& by,
                  bool of_places) {
  const DType run = wide(x.dtype());
  const Tensor factor =
      call.tensor(1).cast(run) * (by.var.cast(run) + call.number("epsilon", 1e-5)).rsqrt();
  const Tensor offset = call.tensor(2).cast(run) - by.mean.cast(run) * factor;
  return (x.cast(run) * beside(factor, x, of_places) + beside(offset, x, of_places))
      .cast(x.dtype());
}

bool trains(const NodeCall& call) {
  if (call.opset() >= 14) return call.integer("training_mode", 0) != 0;
  if (call.opset() < 7) return call.integer("is_test", 0) == 0 && call.wants(1);
  return call.wants(1);
}

Values batch_normalisation(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  if (x.ndim() < 2) call.refuse("input of shape {} has no channel axis 1", x.dims().text());
  const bool of_places = call.opset() < 9 && call.integer("spatial", 1) == 0;
  const BatchStatistics kept{call.tensor(3), call.tensor(4)};
  if (!trains(call)) return {normalised(call, x, kept, of_places)};
  const BatchStatistics now = statistics_of(x.cast(wide(x.dtype())), of_places);
  const double keep = call.number("momentum", 0.9);
  const auto moved = [&](const Tensor& old, const Tensor& fresh) {
    return (old.cast(fresh.dtype()) * keep + fresh * (1 - keep)).cast(old.dtype());
  };
  Values results{normalised(call, x, now, of_places), moved(kept.mean, now.mean),
                 moved(kept.var, now.var)};
  if (call.opset() < 14) {  // what a gradient would need
    results.push_back(now.mean);
    results.push_back(now.var);
  }
  return results;
}

// ---- over the axes of a sample

Values instance_normalisation(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  if (x.ndim() < 3) call.refuse("input of shape {}: give (n, c, spatial...)", x.dims().text());
  const Tensor y = x.layernorm(axes_from(2, x.ndim()), call.number("epsilon", 1e-5));
  return {y * along_axis(call.tensor(1), x.ndim(), 1) + along_axis(call.tensor(2), x.ndim(), 1)};
}

/// What statistics are given in: f32 if nothing else is asked for.
DType stash_dtype(const NodeCall& call) {
  const auto type = static_cast<ElementType>(call.integer("stash_type", 1));
  if (!is_float(dtype_of(type))) call.refuse("stash_type {} is no type of floats", name(type));
  return dtype_of(type);
}

Values layer_normalisation(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  const Axes axes = axes_from(call.axis(call.integer("axis", -1), x.ndim()), x.ndim());
  const double eps = call.number("epsilon", 1e-5);
  const DType stash = stash_dtype(call);
  Tensor y = x.layernorm(axes, eps) * call.tensor(1);
  if (call.has(2)) y = y + call.tensor(2);
  if (!call.wants(1) && !call.wants(2)) return {y};
  const auto [var, mean] = var_mean(x.cast(wide(x.dtype())), axes, true, 0);
  return {y, mean.cast(stash), (var + eps).rsqrt().cast(stash)};
}

/// scale and bias are of the groups before opset 21, of the channels from then on.
Values group_normalisation(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  const int64_t groups = call.integer("num_groups");
  if (x.ndim() < 2 || groups < 1 || x.size(1) % groups != 0)
    call.refuse("{} groups of the channels of shape {}: give a divisor of their number", groups,
                x.dims().text());
  const Tensor split = x.reshape({x.dim(0), groups, -1});
  const Tensor y = split.layernorm(-1, call.number("epsilon", 1e-5)).reshape(x.dims());
  const auto of_channels = [&](size_t i) {
    const Tensor& v = call.tensor(i);
    const int64_t each = call.opset() < 21 ? x.size(1) / groups : 1;
    return along_axis(each == 1 ? v : v.repeat_interleave(each, 0), x.ndim(), 1);
  };
  return {y * of_channels(1) + of_channels(2)};
}

Values rms_normalisation(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  const Axes axes = axes_from(call.axis(call.integer("axis", -1), x.ndim()), x.ndim());
  stash_dtype(call);
  const Tensor y = x.cast(wide(x.dtype()));
  const Tensor scaled = y * (y.square().mean(axes, true) + call.number("epsilon", 1e-5)).rsqrt();
  return {scaled.cast(x.dtype()) * call.tensor(1)};
}

/// By the squares of neighbouring channels (Krizhevsky, Sutskever and Hinton 2012).
Values local_response_normalisation(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  const int64_t size = call.integer("size");
  if (size < 1) call.refuse("size {}: give at least 1", size);
  std::vector<DimPair> around(x.ndim(), DimPair(0, 0));
  around[1] = {(size - 1) / 2, size / 2};
  const Tensor y = x.cast(wide(x.dtype()));
  const Tensor sums = y.square().pad(around).window(1, size).sum(-1);
  const double share = call.number("alpha", 1e-4) / static_cast<double>(size);
  const Tensor divisor = (sums * share + call.number("bias", 1)).pow(call.number("beta", 0.75));
  return {(y / divisor).cast(x.dtype())};
}

/// x / |x|_p, and 0 where that is 0.
Values lp_normalisation(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  const auto p = static_cast<double>(call.integer("p", 2));
  if (p != 1 && p != 2) call.refuse("p is {}: give 1 or 2", p);
  const Tensor y = x.cast(wide(x.dtype()));
  const Tensor norm = vector_norm(y, p, call.axis(call.integer("axis", -1), x.ndim()), true);
  return {(y / (norm == 0).where(1, norm)).cast(x.dtype())};
}

Values mean_variance_normalisation(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  // Before opset 9 attributes say whether channels count together, and whether to divide.
  const bool old = call.opset() < 9;
  const bool together = old && call.integer("across_channels", 0) != 0;
  const std::vector<int64_t> usual =
      together ? std::vector<int64_t>{0, 1, 2, 3} : std::vector<int64_t>{0, 2, 3};
  Axes axes;
  for (const int64_t a : call.ints("axes", usual)) axes.push_back(call.axis(a, x.ndim()));
  const auto [var, mean] = var_mean(x.cast(wide(x.dtype())), axes, true, 0);
  const Tensor centred = x - mean;
  if (old && call.integer("normalize_variance", 1) == 0) return {centred.cast(x.dtype())};
  return {(centred / (var.sqrt() + 1e-9)).cast(x.dtype())};
}

// ---- dropout

bool drops(const NodeCall& call) {
  if (call.opset() >= 12) return call.has(2) && call.integer(2) != 0;
  return call.opset() < 7 && call.integer("is_test", 0) == 0;
}

Values dropout(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  // The mask was of x's type at first.
  const DType mask_dtype = call.opset() < 10 ? x.dtype() : DType::Bool;
  double ratio = call.opset() < 12 ? call.number("ratio", 0.5) : 0.5;
  if (!drops(call))  // in which case masks said nothing before opset 12
    return {x, Tensor::full(x.dims(), call.opset() < 12 ? 0 : 1, mask_dtype)};
  if (call.opset() >= 12 && call.has(1)) ratio = call.number(1);
  if (!(ratio >= 0 && ratio < 1)) call.refuse("ratio is {}: give a number in [0, 1)", ratio);
  return with_seed(call, [&]() -> Values {
    const Tensor kept = Tensor::rand(x.dims()) >= ratio;
    return {kept.where((x * (1 / (1 - ratio))).cast(x.dtype()), 0).cast(x.dtype()),
            kept.cast(mask_dtype)};
  });
}

}  // namespace

std::span<const Operator> normalisation_operators() {
  static constexpr std::array kRows = {
      Operator{kOnnx, "BatchNormalization", 1, batch_normalisation},
      Operator{kOnnx, "Dropout", 1, dropout},
      Operator{kOnnx, "GroupNormalization", 18, group_normalisation},
      Operator{kOnnx, "InstanceNormalization", 1, instance_normalisation},
      Operator{kOnnx, "LRN", 1, local_response_normalisation},
      // In ONNX from opset 17 on; ONNX Runtime's optimizer puts it into models of any opset.
      Operator{kOnnx, "LayerNormalization", 1, layer_normalisation},
      Operator{kOnnx, "LpNormalization", 1, lp_normalisation},
      Operator{kOnnx, "MeanVarianceNormalization", 1, mean_variance_normalisation},
      Operator{kOnnx, "RMSNormalization", 23, rms_normalisation},
  };
  return kRows;
}

}  // namespace weft::onnx
