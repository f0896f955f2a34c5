// 8-bit floats: kept in memory as bytes, computed with in f32 and rounded after every op. Nothing
// after this step has to know them.
#include <algorithm>
#include <cmath>
#include <limits>

#include "weft/base/small_vector.h"
#include "weft/lower/legaliser.h"
#include "weft/lower/steps.h"
#include "weft/rewrite/op_rules.h"

namespace weft::lower {
namespace {

/// The byte of x, an f32 or f64, rounded once to nearest even (convert.h says what becomes of
/// large values and NaN). Below the least normal number the FPU rounds, by a sum whose last bit is
/// the least step.
Expr encode(Expr x, const FloatFormat& f) {
  const FloatFormat& from = float_format(x.dtype());
  const DType pattern = bits(x.dtype()) == 64 ? DType::I64 : DType::I32;
  const int shift = from.mantissa_bits - f.mantissa_bits, bias = from.bias - f.bias;
  const auto most = static_cast<int64_t>(float_max_bits(f.dtype));
  Expr u = x.bits_as(pattern), magnitude = u & static_cast<int64_t>(int_max(pattern));

  Expr even = magnitude + ((magnitude >> shift) & 1) + ((int64_t{1} << (shift - 1)) - 1);
  Expr normal = (even >> shift) - (int64_t{bias} << f.mantissa_bits);
  const int64_t large = int64_t{bias + 1 + shift} << from.mantissa_bits;
  Expr sum = magnitude.bits_as(x.dtype()) + u.integer(large).bits_as(x.dtype());
  Expr least = u.integer(int64_t{bias + 1} << from.mantissa_bits);
  Expr code = where(magnitude < least, sum.bits_as(pattern) - large, normal);

  const int64_t nan = f.specials == Specials::Fnuz ? 0x80 : 0x7f;
  const auto beyond = static_cast<int64_t>(float_overflow_bits(f.dtype));
  code = where(code > code.integer(most), code.integer(beyond), code);
  code = where(is_nan(x), code.integer(nan), code);
  Expr sign = (u >> (bits(x.dtype()) - 8)) & int64_t{0x80};
  if (f.specials == Specials::Fnuz) sign = where(eq(code, code.integer(0)), code.integer(0), sign);
  return (code | sign).converted(DType::U8);
}

/// The f32 of a byte, exactly: its exponent and mantissa where those of an f32 lie, times what the
/// biases differ by.
Expr decode(Expr byte, const FloatFormat& f) {
  const auto most = static_cast<int64_t>(float_max_bits(f.dtype));
  Expr w = byte.converted(DType::I32), magnitude = w & int64_t{0x7f};
  Expr x =
      (magnitude << (23 - f.mantissa_bits)).bits_as(DType::F32) * std::ldexp(1.0, 127 - f.bias);
  Expr nan = x.number(std::numeric_limits<double>::quiet_NaN());
  if (f.specials == Specials::Fnuz) {
    x = where(eq(w, w.integer(0x80)), nan, x);
  } else {
    x = where(magnitude > magnitude.integer(most), nan, x);
    if (f.specials == Specials::Ieee)
      x = where(eq(magnitude, magnitude.integer(most + 1)), x.number(INFINITY), x);
  }
  Expr sign = (w & int64_t{0x80}) << 24;
  return (x.bits_as(DType::I32) | sign).bits_as(DType::F32);
}

/// Of an 8-bit float its value as f32 and its byte, of which the program keeps what it uses; of
/// anything else the node that takes its place.
struct Image {
  NodeRef node = nullptr;
  NodeRef byte = nullptr;
};

class SmallFloats {
 public:
  SmallFloats(Graph& g, const NumberedOrder& order, const Target& target)
      : g_(g), legal_(g, target), order_(order) {
    images_.resize(order_.size());
  }

  /// The image of an 8-bit float, given those of its sources.
  using Make = Image (SmallFloats::*)(NodeRef, std::span<const NodeRef>);
  NodeRef run(const OpRules<Make>& rules) {
    translate(rules, order_.nodes(), [this](Make make, NodeRef n) {
      Image& image = images_[order_.index(n)];
      SmallVector<NodeRef, 8> src = sources(n);
      image = is_float8(n->dtype) ? (this->*make)(n, src) : Image{unchanged(n, src)};
      return image.node;
    });
    return images_.back().node;
  }

  Image constant(NodeRef n, std::span<const NodeRef>) {
    const Value v = const_value(n);
    uint8_t byte = 0;
    v.store(&byte);
    return {g_.constant(Value::of(DType::F32, v.as_double())),
            g_.constant(Value::of(DType::U8, uint64_t{byte}))};
  }
  Image param(NodeRef n, std::span<const NodeRef> src) { return {with(n, DType::U8, src)}; }
  Image load(NodeRef n, std::span<const NodeRef> src) {
    return from_byte(with(n, DType::U8, src), n->dtype);
  }
  Image bitcast(NodeRef n, std::span<const NodeRef>) {
    return from_byte(byte_of(n->src(0)), n->dtype);
  }
  Image cast(NodeRef n, std::span<const NodeRef> src) { return rounded(src[0], n->dtype); }
  Image select(NodeRef n, std::span<const NodeRef> src) {
    const NodeRef bytes[] = {src[0], of(n->src(1)).byte, of(n->src(2)).byte};
    return {with(n, DType::F32, src), g_.make({Op::Where, DType::U8, bytes})};
  }
  /// Every step of a loop rounds what it carries; folds round their result.
  Image carried(NodeRef n, std::span<const NodeRef> src) {
    NodeRef x = with(n, DType::F32, src);
    return {x, encode(expr(x), float_format(n->dtype))};
  }
  Image loop(NodeRef n, std::span<const NodeRef> src) { return {with(n, DType::F32, src)}; }
  Image other(NodeRef n, std::span<const NodeRef> src) {
    return rounded(with(n, DType::F32, src), n->dtype);
  }

 private:
  const Image& of(NodeRef n) const { return images_[order_.index(n)]; }
  Expr expr(NodeRef n) { return {legal_, n}; }

  Image from_byte(NodeRef byte, DType dtype) {
    return {decode(expr(byte), float_format(dtype)), byte};
  }
  /// x rounded to an 8-bit float.
  Image rounded(NodeRef x, DType dtype) {
    if (x->dtype != DType::F64) x = legal_.cast(x, DType::F32);
    return from_byte(encode(expr(x), float_format(dtype)), dtype);
  }

  SmallVector<NodeRef, 8> sources(NodeRef n) const {
    SmallVector<NodeRef, 8> src;
    for (NodeRef s : n->src()) src.push_back(of(s).node);
    return src;
  }
  NodeRef with(NodeRef n, DType dtype, std::span<const NodeRef> src) {
    if (dtype == n->dtype) return g_.with_sources(n, src);
    return g_.make({n->op, dtype, src, n->ints(), n->text(), n->lanes});
  }

  NodeRef byte_of(NodeRef n) {
    const Image& x = of(n);
    if (x.byte) return x.byte;
    return n->dtype == DType::U8 ? x.node : legal_.raw(Op::Bitcast, DType::U8, {x.node});
  }

  /// A node that is no 8-bit float, with sources that may be.
  NodeRef unchanged(NodeRef n, SmallVector<NodeRef, 8>& src) {
    if (n->op == Op::Bitcast && is_float8(n->src(0)->dtype))
      return n->dtype == DType::U8 ? byte_of(n->src(0))
                                   : legal_.raw(Op::Bitcast, n->dtype, {byte_of(n->src(0))});
    if (n->op == Op::Store && is_float8(n->src(2)->dtype)) src[2] = of(n->src(2)).byte;
    return g_.with_sources(n, src);
  }

  Graph& g_;
  Legaliser legal_;
  const NumberedOrder& order_;
  std::vector<Image> images_;
};

constexpr OpRule<SmallFloats::Make> kRules[] = {
    on(Op::Const, "const.float8", &SmallFloats::constant),
    on(Op::Param, "param.float8", &SmallFloats::param),
    on(Op::Load, "load.float8", &SmallFloats::load),
    on(Op::Bitcast, "bitcast.float8", &SmallFloats::bitcast),
    on(Op::Cast, "cast.float8", &SmallFloats::cast),
    on(Op::Where, "where.float8", &SmallFloats::select),
    on(Op::Carry, "carry.float8", &SmallFloats::carried),
    on(Op::Get, "get.float8", &SmallFloats::carried),
    on(Op::Loop, "loop.float8", &SmallFloats::loop),
    otherwise("any.float8", &SmallFloats::other),
};
constexpr OpRules kFloat8Rules("small floats",
                               "Lowering: 8-bit floats are bytes in memory and f32 in between.",
                               kRules);

}  // namespace

NodeRef small_floats(Graph& g, Analysis& of, const Target& target) {
  const bool some =
      std::ranges::any_of(of.order().nodes(), [](NodeRef n) { return is_float8(n->dtype); });
  return some ? SmallFloats(g, of.order(), target).run(kFloat8Rules) : of.sink();
}

RuleSetRow float8_rules() { return kFloat8Rules.row(); }

}  // namespace weft::lower
