// Products and convolutions of integers with zero points. Semantics: the ONNX operator
// specification.
#include <algorithm>

#include "weft/onnx/axes.h"
#include "weft/onnx/quantised_operators.h"
#include "weft/onnx/quantised_types.h"
#include "weft/onnx/spatial.h"

namespace weft::onnx {

namespace {

/// A zero point that is given and not known to be 0.
bool shifts(const NodeCall& call, size_t input) {
  if (!call.has(input)) return false;
  const auto known = call.input(input).integers();
  if (!known) return true;
  for (const Dim& z : *known)
    if (!(z == Dim(0))) return true;
  return false;
}

/// A vector of rows or columns beside a matrix: (m) as (m, 1), (n) as (n); one number as it is.
Tensor of_rows(const Tensor& v) {
  if (v.dims().product() == Dim(1)) return v.reshape({});
  return v.ndim() == 1 ? v.unsqueeze(-1) : v;
}
Tensor of_columns(const Tensor& v) { return v.dims().product() == Dim(1) ? v.reshape({}) : v; }

struct Factor {
  size_t input, zero;  ///< of the node; zero point
};

/// (a - za) (b - zb) = a b - za sum(b) - sum(a) zb + k za zb, so that a b is a product of bytes,
/// which machines have instructions for.
Tensor sum_of_products(const NodeCall& call, Factor left, Factor right) {
  const Tensor a = call.tensor(left.input).cast(DType::I32);
  const Tensor b = call.tensor(right.input).cast(DType::I32);
  if (a.ndim() == 1 || b.ndim() == 1) {
    const auto centred = [&](const Tensor& x, Factor f, bool rows) {
      if (!call.has(f.zero)) return x;
      const Tensor zero = call.tensor(f.zero).cast(DType::I32);
      return x - (x.ndim() == 1 || !rows ? of_columns(zero) : of_rows(zero));
    };
    return centred(a, left, true).matmul(centred(b, right, false));
  }
  Tensor y = a.matmul(b);
  const bool of_a = shifts(call, left.zero), of_b = shifts(call, right.zero);
  const Tensor za = of_a ? of_rows(call.tensor(left.zero).cast(DType::I32)) : Tensor();
  const Tensor zb = of_b ? of_columns(call.tensor(right.zero).cast(DType::I32)) : Tensor();
  // Of b alone where it is a constant: kept from call to call.
  if (of_a) {
    const Tensor sums = b.sum(-2, true);
    y = y - za * (of_b ? sums - zb * Tensor::ones({b.dim(-2), 1}, DType::I32).sum(0) : sums);
  }
  // In a kernel of their own: one that reads a as words can not read it as bytes too.
  return of_b ? y - a.sum(-1, true).contiguous() * zb : y;
}

/// A sum in i32 in the steps of the result: as many as scale says, from a zero point on.
Value requantised(const NodeCall& call, const Tensor& sum, const Tensor& scale, size_t zero) {
  const DType run = DType::F32;
  const Tensor whole = (sum.cast(run) * scale).round();
  return clamped_to(whole + call.tensor(zero).cast(run), call.input(zero).type());
}

/// With scales of the sums in that of the result.
Tensor ratio(const Tensor& a, const Tensor& b, const Tensor& y) {
  return a.cast(DType::F32) * b.cast(DType::F32) / y.cast(DType::F32);
}

// ---- convolutions

Tensor centred(const NodeCall& call, size_t input, size_t zero, bool of_outputs) {
  const Tensor x = call.tensor(input).cast(DType::I32);
  if (!shifts(call, zero)) return x;
  const Tensor z = call.tensor(zero).cast(DType::I32);
  const bool one = z.dims().product() == Dim(1);
  return x - (one || !of_outputs ? z.reshape({}) : along_axis(z, x.ndim(), 0));
}

/// What is padded counts as the zero point. In the dtype of x.
Tensor sums_of_windows(const NodeCall& call, const Tensor& x, const Tensor& weight,
                       const Tensor& bias) {
  const Spatial s = Spatial::of(call, x, kernel_of(call, weight));
  return x.conv2d(weight, bias,
                  {.groups = call.integer("group", 1),
                   .stride = s.stride,
                   .dilation = s.dilation,
                   .padding = s.padding()});
}

/// So many products of differences of bytes have a sum that is exact in f32, whose products are
/// faster than those of i32.
constexpr int64_t kExact = (int64_t{1} << 24) / (255 * 255);

/// In i32: sums over as many channels as are exact, added.
Tensor exact_sums_of_windows(const NodeCall& call, const Tensor& x, const Tensor& weight) {
  const int64_t channels = weight.size(1);
  int64_t taps = 1;
  for (const int64_t k : kernel_of(call, weight)) taps *= k;
  const bool splits = call.integer("group", 1) == 1 && taps <= kExact;
  if (taps * channels > kExact && !splits) return sums_of_windows(call, x, weight, {});
  const int64_t each = std::max<int64_t>(1, std::min(channels, kExact / taps));
  const std::vector<Tensor> weights = weight.cast(DType::F32).split(each, 1);
  const std::vector<Tensor> inputs = weights.size() == 1 ? std::vector{x} : x.split(each, 1);
  Tensor sum;
  for (size_t i = 0; i < weights.size(); ++i) {
    const Tensor part =
        sums_of_windows(call, inputs[i].cast(DType::F32), weights[i], {}).cast(DType::I32);
    sum = sum.defined() ? sum + part : part;
  }
  return sum;
}

}  // namespace

Values product_of_integers(const NodeCall& call) { return {sum_of_products(call, {0, 2}, {1, 3})}; }

Values quantised_product(const NodeCall& call) {
  const Tensor scale =
      ratio(of_rows(call.tensor(1)), of_columns(call.tensor(4)), of_columns(call.tensor(6)));
  return {requantised(call, sum_of_products(call, {0, 2}, {3, 5}), scale, 7)};
}

Values convolution_of_integers(const NodeCall& call) {
  return {exact_sums_of_windows(call, centred(call, 0, 2, false), centred(call, 1, 3, true))};
}

Values quantised_convolution(const NodeCall& call) {
  // The result has 8 bits: sums in f32, which are off by 2^-24 of themselves, are as good.
  const auto in_f32 = [](const Tensor& t) { return t.defined() ? t.cast(DType::F32) : t; };
  const Tensor sum =
      sums_of_windows(call, in_f32(centred(call, 0, 2, false)), in_f32(centred(call, 3, 5, true)),
                      in_f32(call.tensor_or(8, {})));
  const Tensor& of_weight = call.tensor(4);
  const Tensor scale =
      ratio(call.tensor(1).reshape({}),
            of_weight.dims().product() == Dim(1) ? of_weight.reshape({})
                                                 : along_axis(of_weight, sum.ndim(), 1),
            call.tensor(6).reshape({}));
  return {requantised(call, sum, scale, 7)};
}

}  // namespace weft::onnx
