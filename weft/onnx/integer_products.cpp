#include "weft/onnx/integer_products.h"

#include <algorithm>
#include <bit>

#include "weft/base/context.h"
#include "weft/device/device.h"
#include "weft/onnx/axes.h"
#include "weft/onnx/constant_sums.h"
#include "weft/onnx/image_order.h"

namespace weft::onnx {

namespace {

bool is_byte(DType d) { return is_int(d) && bits(d) == 8; }
bool is_one(const Tensor& x) { return x.dims().product() == Dim(1); }

/// A vector of rows or columns beside a matrix: (m) as (m, 1), (n) as (n); one number as it is.
Tensor of_rows(const Tensor& v) {
  if (is_one(v)) return v.reshape({});
  return v.ndim() == 1 ? v.unsqueeze(-1) : v;
}
Tensor of_columns(const Tensor& v) { return is_one(v) ? v.reshape({}) : v; }

/// Bytes that are computed are stored as such: what reads them reads them often.
Tensor in_memory(const Tensor& x) {
  NodeRef n = x.node();
  while (is_movement(n->op) && n->op != Op::Gather) n = n->src(0);
  return n->op == Op::Contiguous || n->op == Op::Buffer ? x : x.contiguous();
}

/// Of unsigned bytes the same numbers less 128, as signed ones: with unsigned ones on the other
/// side they are what dot products of bytes take.
Centred signed_bytes(const Centred& c) {
  Centred moved = c;
  moved.x = (c.x ^ 128).bitcast(DType::I8);
  if (c.known) moved.known = *c.known - 128;
  if (c.known)
    moved.zero = *moved.known == 0 ? Tensor() : Tensor::full({}, *moved.known, DType::I32);
  else
    moved.zero = c.zero.cast(DType::I32) - 128;
  return moved;
}

/// Weights for these inputs.
Centred beside(const Centred& x, const Centred& weight) {
  return x.x.dtype() == DType::U8 && weight.x.dtype() == DType::U8 ? signed_bytes(weight) : weight;
}

}  // namespace

Centred Centred::of(const Value& x, const Value& zero) {
  Centred c{x.tensor(), {}, 0};
  if (!zero) return c;
  c.known.reset();
  if (const auto known = zero.integers()) {
    const bool same = std::ranges::all_of(*known, [&](const Dim& z) { return z == (*known)[0]; });
    if (same && !known->empty() && (*known)[0].is_static()) c.known = (*known)[0].value();
  }
  if (c.known == 0) return c;
  c.zero = c.known ? Tensor::full({}, *c.known, DType::I32) : zero.tensor().cast(DType::I32);
  return c;
}

Centred Centred::of_weight(const Value& x, const Value& zero, int64_t channels) {
  Centred c = of(x, zero);
  // Of a stack of matrices each has sums of its own.
  if (channels < 0 && x.ndim() != 2) return c;
  c.sums = constant_sums(x, zero, channels < 0 ? 1 : channels);
  return c;
}

namespace {

/// Of vectors, whose sums a matrix unit would not pay for.
Tensor product_of_vectors(const Centred& a, const Centred& b) {
  const auto centred = [](const Centred& c, bool rows) {
    const Tensor x = c.x.cast(DType::I32);
    if (!c.zero.defined()) return x;
    return x - (x.ndim() == 1 || !rows ? of_columns(c.zero) : of_rows(c.zero));
  };
  return centred(a, true).matmul(centred(b, false));
}

/// The zero point of rows times the sums of columns, as they lie beside y: (groups, 1, columns).
Tensor times_sums(const Centred& rows, const Centred& columns) {
  std::vector<int32_t> sums = *columns.sums;
  if (rows.known)
    for (int32_t& s : sums) s = static_cast<int32_t>(s * *rows.known);
  const Dims last{columns.x.dim(-1)};
  const auto groups = static_cast<int64_t>(sums.size()) / last[0].value();
  const Tensor each = Tensor::from(sums, groups == 1 ? last : Dims{groups, 1, last[0]});
  return rows.known ? each : of_rows(rows.zero) * each;
}

/// Whether the machine multiplies bytes and adds them up as i32.
bool has_byte_products(const Tensor& x) {
  const Target& target = x.context().get<DeviceTable>().default_device().target();
  return std::ranges::any_of(target.matrix_units, [](const MatrixUnit& u) {
    return u.op == Op::Dot4 && u.left == DType::U8;
  });
}

/// [begin, end) of an axis, the last being -1.
Tensor part_of(const Tensor& x, int64_t axis, int64_t begin, int64_t end) {
  std::vector<DimPair> ranges;
  for (const Dim& d : x.dims()) ranges.emplace_back(0, d);
  ranges[static_cast<size_t>(axis + static_cast<int64_t>(x.ndim()))] = {begin, end};
  return x.shrink(ranges);
}

/// Bytes (..., m, k) times bytes (..., k, n) in i32. Without products of bytes by those of f32,
/// which are faster than those of i32: as many at a time as have an exact sum, 255 * 128 each.
Tensor product_of_bytes(const Tensor& a, const Tensor& b) {
  constexpr int64_t kExact = 512;
  if (has_byte_products(a) || !a.dim(-1).is_static())
    return a.cast(DType::I32).matmul(b.cast(DType::I32));
  const Tensor left = a.cast(DType::F32), right = b.cast(DType::F32);
  const int64_t k = a.size(-1);
  Tensor sum;
  for (int64_t at = 0; at == 0 || at < k; at += kExact) {
    const int64_t end = std::min(k, at + kExact);
    const Tensor y = part_of(left, -1, at, end).matmul(part_of(right, -2, at, end));
    sum = sum.defined() ? sum + y.cast(DType::I32) : y.cast(DType::I32);
  }
  return sum;
}

}  // namespace

Tensor product_of(const Centred& a, const Centred& given) {
  if (a.x.ndim() == 1 || given.x.ndim() == 1) return product_of_vectors(a, given);
  const Centred b = beside(a, given);
  const Tensor rows = in_memory(a.x), columns = in_memory(b.x);
  const Tensor left = rows.cast(DType::I32), right = columns.cast(DType::I32);
  Tensor y = product_of_bytes(rows, columns);
  // Of b alone: where it is a constant, kept from call to call.
  if (a.zero.defined() && b.sums) {
    y = y - times_sums(a, b);
  } else if (a.zero.defined()) {
    Tensor sums = right.sum(-2, true).contiguous();
    if (b.zero.defined())
      sums = sums - of_columns(b.zero) * Tensor::ones({b.x.dim(-2), 1}, DType::I32).sum(0);
    y = y - of_rows(a.zero) * sums;
  }
  // In a kernel of their own: one that reads a as words can not read it as bytes too.
  return b.zero.defined() ? y - left.sum(-1, true).contiguous() * of_columns(b.zero) : y;
}

namespace {

/// (n, spatial..., channels) with a border of zero points, and more channels of 0. Where the border
/// is 0, too, reads outside of the image are.
Tensor padded(const Tensor& x, const Centred& of, const Spatial& s, int64_t more) {
  if (!s.is_padded() && more == 0) return in_memory(x);
  std::vector<DimPair> amounts(x.ndim(), DimPair(0, 0));
  for (size_t i = 0; i < s.axes(); ++i) amounts[1 + i] = {s.before[i], s.after[i]};
  Tensor y;
  if (of.known == 0 && more == 0) return in_memory(x).pad(amounts);
  if (of.known) {
    y = x.pad(amounts, *of.known);
  } else {
    const Tensor inside = x.ones_like().cast(DType::Bool).pad(amounts);
    y = inside.where(x.pad(amounts), of.zero.cast(x.dtype()));
  }
  std::vector<DimPair> channels(x.ndim(), DimPair(0, 0));
  channels.back().second = more;
  return y.pad(channels).contiguous();
}

/// Of (n, channels, spatial...): (n, outputs..., channels and `more`, kernel...).
Tensor windows_of(const Centred& x, const Spatial& s, int64_t more) {
  Tensor y = padded(channels_last(x.x), x, s, more);
  for (size_t i = 0; i < s.axes(); ++i)
    y = y.window(static_cast<int64_t>(1 + i), s.kernel[i], s.stride[i], s.dilation[i]);
  return y;
}

/// Each channel with kernels of its own: (n, outputs..., out), whole numbers in f32 where there are
/// so few products that they are exact: those are faster than products of i32.
Tensor sums_by_channel(const Centred& x, const Centred& w, const Spatial& s) {
  const Tensor windows = windows_of(x, s, 0);
  const int64_t channels = windows.size(static_cast<int64_t>(1 + s.axes()));
  int64_t taps = 1;
  for (const int64_t k : s.kernel) taps *= k;
  constexpr int64_t kExact = (int64_t{1} << 24) / (255 * 255);
  const DType run = taps <= kExact ? DType::F32 : DType::I32;
  Tensor weight = w.x.cast(DType::I32);
  if (w.zero.defined())
    weight = weight - (is_one(w.zero) ? w.zero.reshape({}) : along_axis(w.zero, w.x.ndim(), 0));
  Dims wide(windows.dims()), filter{channels, weight.size(0) / channels};
  wide.insert(2 + s.axes(), 1);
  for (const int64_t k : s.kernel) filter.push_back(k);
  const Axes kernel = axes_from(-static_cast<int64_t>(s.axes()), 0);
  const Tensor products = windows.cast(run).reshape(wide) * weight.cast(run).reshape(filter);
  const Tensor y = products.sum(kernel).flatten(-2, -1);
  if (!x.zero.defined()) return y;
  const Tensor sums =
      w.sums ? Tensor::from(*w.sums, Dims{weight.dim(0)}) : weight.flatten(1, -1).sum(-1);
  return y - (x.zero * sums).cast(run);
}

/// Windows as the rows of a matrix for each group: (groups, n * outputs, kernel... * channels).
Tensor rows_of(const Tensor& windows, const Spatial& s, int64_t groups) {
  const size_t channels = 1 + s.axes();
  Dims split(windows.dims());
  split[channels] = windows.dim(static_cast<int64_t>(channels)).value() / groups;
  split.insert(channels, groups);
  Ints order{static_cast<int64_t>(channels)};
  for (size_t i = 0; i < channels; ++i) order.push_back(static_cast<int64_t>(i));
  for (size_t i = 0; i < s.axes(); ++i) order.push_back(static_cast<int64_t>(channels + 2 + i));
  order.push_back(static_cast<int64_t>(channels + 1));
  const Tensor y = windows.reshape(split).permute(order);
  Dim rows = 1, columns = 1;
  for (size_t i = 0; i < channels; ++i) rows = rows * y.dim(static_cast<int64_t>(1 + i));
  for (size_t i = 1 + channels; i < y.ndim(); ++i)
    columns = columns * y.dim(static_cast<int64_t>(i));
  return y.reshape({groups, rows, columns});
}

/// (out, in, kernel...) as (groups, kernel... * in, out / groups).
Tensor columns_of(const Tensor& weight, int64_t groups) {
  const Dim each = weight.size(0) / groups;
  const Tensor last = channels_last(weight).flatten(1, -1);
  return last.reshape({groups, each, last.dim(1)}).transpose(1, 2);
}

/// (groups, n * outputs, out / groups) as (n, outputs..., out).
Tensor images_of(const Tensor& rows, const Tensor& windows, const Spatial& s) {
  Dims split{rows.dim(0)}, all;
  Ints order;
  for (size_t i = 0; i < 1 + s.axes(); ++i) {
    split.push_back(windows.dim(static_cast<int64_t>(i)));
    all.push_back(windows.dim(static_cast<int64_t>(i)));
    order.push_back(static_cast<int64_t>(1 + i));
  }
  split.push_back(rows.dim(2));
  order.push_back(0);
  order.push_back(static_cast<int64_t>(2 + s.axes()));
  all.push_back(rows.dim(0) * rows.dim(2));
  return rows.reshape(split).permute(order).reshape(all);
}

/// A weight with more channels and a larger kernel, where these are zero points.
struct Filled {
  Tensor weight;
  Spatial spatial;
  int64_t channels = 0;  // more
};

/// Channels in whole words, and kernels of one word in rows that are powers of two and together a
/// multiple of 16, which is what tiles take: rows of windows are copied by vectors then.
Filled filled(const Centred& weight, const Spatial& s) {
  Filled f{weight.x, s, 0};
  const int64_t channels = weight.x.size(1);
  if (!weight.known) return f;
  f.channels = (4 - channels % 4) % 4;
  std::vector<DimPair> amounts(weight.x.ndim(), DimPair(0, 0));
  amounts[1].second = f.channels;
  if (channels <= 4 && s.axes() == 2 && s.kernel[0] * s.kernel[1] > 1) {
    const auto row = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(s.kernel[1])));
    const int64_t rows = std::max<int64_t>(1, 16 / row);
    const Ints kernel{(s.kernel[0] + rows - 1) / rows * rows, row};
    for (size_t i = 0; i < 2; ++i) {
      const int64_t more = kernel[i] - s.kernel[i];
      amounts[2 + i].second = more;
      f.spatial.after[i] += more * s.dilation[i];
    }
    f.spatial.kernel = kernel;
  }
  f.weight = weight.x.pad(amounts, *weight.known);
  return f;
}

}  // namespace

Tensor convolution_of(const NodeCall& call, const Centred& x, const Centred& weight,
                      const Spatial& given) {
  const int64_t groups = call.integer("group", 1), out = weight.x.size(0);
  if (groups < 1 || out % groups != 0 || !(x.x.dim(1) == weight.x.dim(1) * groups))
    call.refuse("input {} and weight {} in {} groups: channels must be groups * weight's axis 1",
                x.x.dims().text(), weight.x.dims().text(), groups);
  if (groups > 1 && weight.x.dim(1) == Dim(1)) return sums_by_channel(x, weight, given);
  const Filled whole = groups == 1 ? filled(weight, given) : Filled{weight.x, given, 0};
  const Spatial& s = whole.spatial;
  const Tensor windows = windows_of(x, s, whole.channels);
  Centred columns{columns_of(whole.weight, groups), weight.zero, weight.known, weight.sums};
  if (weight.zero.defined() && !is_one(weight.zero))
    columns.zero = weight.zero.reshape({groups, 1, out / groups});
  const Tensor y = product_of({rows_of(windows, s, groups), x.zero, x.known}, columns);
  return images_of(y, windows, s);
}

namespace {

/// Scales beside a product's result: one, or those of the right operand's columns.
std::optional<Tensor> scale_of(const Dequantised& a, const Dequantised& b, int64_t axis) {
  const bool one = is_one(b.scale.tensor());
  if (!is_one(a.scale.tensor()) || (!one && b.axis != axis)) return std::nullopt;
  if (auto known = constant_scale(a.scale, b.scale, {})) return known;
  const Tensor each = b.scale.tensor();
  return a.scale.tensor().cast(DType::F32).reshape({}) *
         (one ? each.reshape({}) : each).cast(DType::F32);
}

bool are_bytes(const Dequantised* a, const Dequantised* b) {
  return a && b && is_byte(a->x.dtype()) && is_byte(b->x.dtype());
}

}  // namespace

std::optional<Tensor> product_of_dequantised(const NodeCall& call, bool transposed) {
  const Dequantised *a = call.input(0).dequantised_from(), *b = call.input(1).dequantised_from();
  if (!are_bytes(a, b) || call.tensor(0).ndim() < 2 || call.tensor(1).ndim() < 2)
    return std::nullopt;
  const auto rank = static_cast<int64_t>(call.tensor(1).ndim());
  const auto scale = scale_of(*a, *b, transposed ? rank - 2 : rank - 1);
  if (!scale) return std::nullopt;
  Centred right = Centred::of_weight(b->x, b->zero, transposed && rank == 2 ? 0 : -1);
  if (transposed) right.x = right.x.transpose(-2, -1);
  const Tensor sum = product_of(Centred::of(a->x, a->zero), right);
  return (sum.cast(DType::F32) * *scale).cast(call.tensor(0).dtype());
}

std::optional<Tensor> convolution_of_dequantised(const NodeCall& call, const Spatial& s) {
  const Dequantised *x = call.input(0).dequantised_from(), *w = call.input(1).dequantised_from();
  if (!are_bytes(x, w)) return std::nullopt;
  const auto scale = scale_of(*x, *w, 0);
  if (!scale) return std::nullopt;
  const Tensor sum =
      convolution_of(call, Centred::of(x->x, x->zero), Centred::of_weight(w->x, w->zero, 0), s);
  Tensor y = sum.cast(DType::F32) * *scale;
  if (call.has(2)) y = y + call.tensor(2);
  return channels_first(y.cast(call.tensor(0).dtype()));
}

}  // namespace weft::onnx
