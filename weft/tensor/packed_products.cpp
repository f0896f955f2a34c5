// Products with packed weights by what their factors are rounded to.
#include <algorithm>
#include <optional>

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/device/device.h"
#include "weft/tensor/access.h"
#include "weft/tensor/elementwise.h"
#include "weft/tensor/packed.h"
#include "weft/tensor/packed_block.h"
#include "weft/tensor/transforms.h"

namespace weft {

namespace {

// So many rows are multiplied as they are decoded, in registers, where rounding only takes time.
constexpr int64_t kFewRows = 6;
// More are multiplied as bf16, which is no less precise and, by tiles, no slower.
constexpr int64_t kMostRows = 32;
// Numbers of x that share a scale, and of a word.
constexpr int64_t kBlock = 32, kWord = 4;
constexpr float kLargest = 127;

/// Bytes that a weight is decoded from.
struct PackedWeight {
  Tensor bytes;
  Codec codec;
};

/// (blocks, bytes of one).
Tensor blocks_of(const PackedWeight& w) {
  const int64_t bytes = row(w.codec).bytes;
  return w.bytes.detach().reshape({w.bytes.numel() / bytes, bytes});
}

/// What decode() has made `weight` of, if it has: of the formats that so many bytes may be, the one
/// that gives the same expression.
std::optional<PackedWeight> packed_weight(const Tensor& weight) {
  const OpScope scope(weight, CallSite::here());
  for (NodeRef n : Toposort(weight.node())) {
    if (n->op != Op::Detach || n->dtype != DType::U8) continue;
    const Tensor bytes = TensorAccess::make(scope.context, n->src(0));
    for (const CodecRow& r : kCodecs) {
      const auto size = packed_bytes(r.codec, weight.shape());
      if (is_plain(r.codec) || size != bytes.numel()) continue;
      if (decode(bytes, r.codec, weight.dims()).node() == weight.node())
        return PackedWeight{bytes, r.codec};
    }
  }
  return std::nullopt;
}

/// (rows, sum) rounded to bytes.
struct RoundedRows {
  Tensor codes;  ///< (rows, sum) i8
  Tensor scale;  ///< (rows, blocks) f32
};

RoundedRows rounded(const Tensor& x) {
  constexpr float kNothing = 0x1p-119f;  // what 127 divided by may be infinite
  const Tensor blocks = x.unflatten(1, {x.size(1) / kBlock, kBlock});
  const Tensor largest = blocks.abs().max({-1}, true);
  const Tensor inverse = (largest > kNothing).where(kLargest / largest, 0.f);
  return {(blocks * inverse).round().cast(DType::I8).flatten(1, -1).contiguous(),
          (largest * (1 / kLargest)).flatten(1, -1).contiguous()};
}

/// (.., parts) as (.., parts * times).
Tensor each_so_often(const Tensor& x, int64_t times) {
  return times == 1 ? x : x.repeat_interleave(times, -1);
}

Tensor dot4(const Tensor& words, const Tensor& with, const Tensor& sum) {
  const OpScope scope(words, CallSite::here());
  const NodeRef operands[] = {words.node(), with.node(), sum.node()};
  const build::Extents dims = broadcast("product_with", operands);
  SmallVector<NodeRef, 3> src;
  for (NodeRef n : operands) src.push_back(build::broadcast_to(scope.g, n, dims));
  return scope.result(scope.g.make({Op::Dot4, DType::I32, src}));
}

/// sum, where there is one, + a * b.
Tensor add_product(const Tensor& sum, const Tensor& a, const Tensor& b) {
  return sum.defined() ? elementwise::multiply_add(a, b, sum) : a * b;
}

/// Products of bytes: (rows, sum) by the packed rows of one matrix, or each by those of its own. A
/// block has parts, of at most as many numbers as share a scale; what a part sums is exact, so that
/// only the order of the parts counts.
class ByteProducts {
 public:
  /// `shape`: (columns, sum), or (rows, columns, sum).
  ByteProducts(const PackedWeight& w, const Dims& shape)
      : matrices_(shape.size() == 3 ? shape[0].value() : 1),
        columns_(shape[shape.size() - 2].value()),
        blocks_(shape.back().value() / row(w.codec).elements),
        coded_(packed::coded(blocks_of(w), w.codec, packed::CodesAs::Words)),
        parts_(std::max(coded_.scale.size(1), row(w.codec).elements / kBlock)),
        words_(row(w.codec).elements / parts_ / kWord) {}

  /// (rows, columns). What is summed last, by blocks, is (rows, columns, blocks).
  Tensor operator()(const Tensor& x) const {
    const RoundedRows rows = rounded(x);
    const Tensor words = by_parts(rows.codes.bitcast(DType::U32));
    const Tensor sums = by_parts(rows.codes).sum({4}, false, DType::I32),
                 with = of_rows(rows.scale);
    const Tensor first = coded_.zero != 0 ? (sums * -coded_.zero).contiguous() : Tensor();
    const Tensor less =
        coded_.min.defined() ? (-(sums.cast(DType::F32) * with)).contiguous() : Tensor();
    Tensor sum;
    for (int64_t part = 0; part < parts_; ++part) {
      Tensor dot = this->dot(words, part);
      if (first.defined()) dot = dot + one(first, part);
      sum =
          add_product(sum, dot.cast(DType::F32) * one(with, part), of_columns(coded_.scale, part));
      if (less.defined()) sum = add_product(sum, one(less, part), of_columns(coded_.min, part));
    }
    return sum.sum({2});
  }

 private:
  static Tensor one(const Tensor& x, int64_t part) { return x.index({kEllipsis, part}); }

  /// (rows, sum) as (rows, 1, blocks, parts, ..).
  Tensor by_parts(const Tensor& x) const {
    return x.unflatten(1, {1, blocks_, parts_, x.size(1) / blocks_ / parts_});
  }
  /// A number for every part of x: (rows, 1, blocks, parts).
  Tensor of_rows(const Tensor& x) const {
    const Tensor each = x.unflatten(1, {1, blocks_, x.size(1) / blocks_});
    return each_so_often(each, parts_ / each.size(-1));
  }
  /// (1 or rows, columns, blocks).
  Tensor of_columns(const Tensor& x, int64_t part) const {
    return one(x, part * x.size(1) / parts_).reshape({matrices_, columns_, blocks_});
  }

  /// i32, (rows, columns, blocks).
  Tensor dot(const Tensor& words, int64_t part) const {
    const auto of = [&](const Tensor& t) { return t.index({kEllipsis, part, Slice()}); };
    const Tensor codes = of(coded_.codes.reshape({matrices_, columns_, blocks_, parts_, words_}));
    return dot4(codes, of(words), Tensor::full({}, 0, DType::I32)).sum({3}, false, DType::I32);
  }

  const int64_t matrices_, columns_, blocks_;
  const packed::Coded coded_;
  const int64_t parts_, words_;
};

bool has_most_rows(const Tensor& x, int64_t most) {
  Dim rows = 1;
  for (size_t i = 0; i + 1 < x.ndim(); ++i) rows = rows * x.dim(static_cast<int64_t>(i));
  return rows.is_static() && rows.value() <= most;
}

/// x @ weight^T, of rounded x, where it is packed in codes; else nothing.
std::optional<Tensor> by_bytes(const Tensor& x, const Tensor& weight) {
  const bool each =
      weight.ndim() == 3 && x.ndim() == 3 && x.dim(1) == 1 && x.dim(0) == weight.dim(0);
  const bool fits = (weight.ndim() == 2 || each) && x.ndim() > 0 && is_float(x.dtype()) &&
                    x.dim(-1).is_static() && x.size(-1) == weight.size(-1);
  const auto packed = fits ? packed_weight(weight) : std::nullopt;
  if (!packed) return std::nullopt;
  const ByteProducts product(*packed, weight.dims());
  Dims shape = x.dims();
  shape.back() = weight.size(-2);
  const auto forward = [&](const Tensors& in) {
    return Tensors{product(in[0].cast(DType::F32).reshape({-1, weight.size(-1)})).reshape(shape)};
  };
  const auto backward = [&](const Tensors&, const Tensors&, const Tensors& up) {
    return Tensors{up[0].matmul(weight)};
  };
  return with_gradient(forward, backward, {x})[0];
}

/// Packed, or kept in 16 bits.
bool is_narrow(const Tensor& weight) {
  const OpScope scope(weight, CallSite::here());
  NodeRef n = weight.node();
  while (is_movement(n->op)) n = n->src(0);
  return bits((n->op == Op::Cast ? n->src(0) : n)->dtype) <= 16 || packed_weight(weight);
}

}  // namespace

std::optional<Factors> factors_named(std::string_view text) {
  if (text == "auto") return std::nullopt;
  if (text == "f32") return Factors::F32;
  if (text == "bf16") return Factors::BF16;
  if (text == "q8") return Factors::Q8;
  fail("factors", "there are no factors '{}': f32, bf16, q8, or auto", text);
}

Factors fastest_factors() {
  const Target& target = Context::current().get<DeviceTable>().default_device().target();
  const bool bytes = std::ranges::any_of(target.matrix_units,
                                         [](const MatrixUnit& u) { return u.op == Op::Dot4; });
  return bytes ? Factors::Q8 : Factors::F32;
}

Tensor product_with(const Tensor& x, const Tensor& weight, Factors factors, CallSite at) {
  const CallSiteScope scope(at);
  if (factors == Factors::Q8 && has_most_rows(x, kMostRows))
    if (const auto y = by_bytes(x, weight)) return *y;
  const bool rounds = factors == Factors::BF16 ? !has_most_rows(x, kFewRows)
                                               : factors == Factors::Q8 && is_narrow(weight) &&
                                                     !has_most_rows(x, kMostRows);
  const auto factor = [&](const Tensor& t) {
    return (rounds ? t.cast(DType::BF16) : t).cast(DType::F32);
  };
  return factor(x).matmul(factor(weight).T());
}

}  // namespace weft
