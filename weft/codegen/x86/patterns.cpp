// Instructions that do what several ops say: rotations, and-not, shifts by constants, three-way
// logic, loads of numbers that are put together from bytes. The ops they stand for go when nothing
// else reads them (dead_code.cpp).
#include <algorithm>
#include <bit>

#include "weft/base/small_vector.h"
#include "weft/codegen/x86/selector.h"

namespace weft::codegen {

using namespace x86;

namespace {

NodeRef without_splat(NodeRef n) { return n->op == Op::Splat ? n->src(0) : n; }

/// The number every lane of a shift is shifted by, or -1: a constant below the width.
int64_t amount_of(NodeRef n) {
  if (n->op != Op::Shl && n->op != Op::Shr) return -1;
  NodeRef by = without_splat(n->src(1));
  if (by->op != Op::Const) return -1;
  const int64_t amount = const_value(by).as_int();
  return amount >= 0 && amount < bits(n->dtype) ? amount : -1;
}

struct Rotation {
  NodeRef x = nullptr;
  int64_t left = 0;
};

/// x << c | x >> (width - c) of unsigned words.
Rotation rotation_in(NodeRef n) {
  const bool joins = n->op == Op::Or || n->op == Op::Xor || n->op == Op::Add;
  if (!joins || !is_unsigned(n->dtype) || n->nsrc != 2) return {};
  NodeRef up = n->src(0), down = n->src(1);
  if (up->op != Op::Shl) std::swap(up, down);
  if (up->op != Op::Shl || down->op != Op::Shr || up->src(0) != down->src(0)) return {};
  const int64_t left = amount_of(up), right = amount_of(down);
  if (left < 1 || right < 1 || left + right != bits(n->dtype)) return {};
  return {up->src(0), left};
}

/// The other operand of `n` where one of them is `op`, which is put into `inner`.
NodeRef beside(NodeRef n, Op op, NodeRef& inner) {
  for (const size_t i : {size_t{0}, size_t{1}}) {
    if (n->src(i)->op != op) continue;
    inner = n->src(i);
    return n->src(1 - i);
  }
  return nullptr;
}

/// The vector of bools whose every lane is once among what `n` joins by or; null where there is
/// none.
NodeRef any_lane_in(NodeRef n) {
  const auto joins = [](NodeRef x) {
    return x->op == Op::Or || x->op == Op::Max || x->op == Op::Add;
  };
  if (!joins(n)) return nullptr;
  NodeRef of = nullptr;
  uint64_t met = 0;
  SmallVector<NodeRef, 16> open{n};
  while (!open.empty()) {
    NodeRef x = open.back();
    open.pop_back();
    if (x->op == Op::Lane && (!of || of == x->src(0))) {
      of = x->src(0);
      const uint64_t lane = uint64_t{1} << x->int_arg(0);
      if ((met & lane) != 0) return nullptr;  // what is joined twice may be joined 2^n times
      met |= lane;
    } else if (joins(x)) {
      open.append(x->src());
    } else {
      return nullptr;
    }
  }
  return std::popcount(met) == of->lanes ? of : nullptr;
}

/// A byte that is loaded and moved up in a number: `load` is null where it is anything else.
struct BytePiece {
  NodeRef load = nullptr;
  int64_t place = 0;
};

BytePiece byte_in(NodeRef n) {
  BytePiece p;
  if (n->op == Op::Shl) {
    const int64_t up = amount_of(n);
    if (up < 0 || up % 8 != 0) return p;
    p.place = up / 8;
    n = n->src(0);
  }
  const bool byte = n->op == Op::Cast && n->src(0)->op == Op::Load && n->src(0)->dtype == DType::U8;
  if (byte && n->src(0)->nsrc == 2) p.load = n->src(0);
  return p;
}

/// The load of the lowest of the bytes that `n` puts together by or, where they lie as in memory
/// that has the lowest byte first; null where they do not.
NodeRef lowest_byte_in(NodeRef n, FunctionRef<bool(NodeRef)> may_read_again) {
  if (n->op != Op::Or || (n->dtype != DType::U16 && n->dtype != DType::U32)) return nullptr;
  const auto size = static_cast<size_t>(bits(n->dtype) / 8);
  SmallVector<BytePiece, 4> pieces;
  SmallVector<NodeRef, 4> open{n};
  while (!open.empty()) {
    NodeRef x = open.back();
    open.pop_back();
    if (x->op == Op::Or) {
      if (open.size() + pieces.size() + 2 > size) return nullptr;
      open.append(x->src());
      continue;
    }
    pieces.push_back(byte_in(x));
    if (!pieces.back().load || !may_read_again(pieces.back().load)) return nullptr;
  }
  const auto at = [](NodeRef load) {
    NodeRef i = load->src(1);
    const bool moved = i->op == Op::Add && i->src(1)->op == Op::Const;
    return moved ? std::pair(i->src(0), i->src(1)->vmin) : std::pair(i, int64_t{0});
  };
  std::ranges::sort(pieces, {}, &BytePiece::place);
  const auto [base, first] = at(pieces[0].load);
  for (size_t i = 0; i < pieces.size(); ++i) {
    const auto [other, offset] = at(pieces[i].load);
    if (pieces.size() != size || pieces[i].place != static_cast<int64_t>(i) || other != base ||
        offset != first + static_cast<int64_t>(i) ||
        pieces[i].load->src(0) != pieces[0].load->src(0))
      return nullptr;
  }
  return pieces[0].load;
}

// Truth tables of vpternlog: bit 4a + 2b + c is the result.
constexpr int64_t kXorOfThree = 0x96;     // a ^ b ^ c
constexpr int64_t kXorWithAnd = 0x78;     // a ^ (b & c)
constexpr int64_t kXorWithAndNot = 0xD2;  // a ^ (~b & c)
constexpr int64_t kOrWithAnd = 0xF8;      // a | (b & c)
constexpr int64_t kAndWithOr = 0xE0;      // a & (b | c)

}  // namespace

Reg X86Selector::integer_pattern(NodeRef n) {
  const int width = bits(n->dtype);
  if (const Rotation r = rotation_in(n); r.x && width >= 32 && usable(Form::Rorx)) {
    const Reg to = general();
    emit(Form::Rorx, width, {to, value(r.x)}, width - r.left);
    return to;
  }
  if (const int64_t by = amount_of(n); by >= 0) {
    if (n->op == Op::Shl)
      return extended(with_immediate(Form::ShlI, value(n->src(0)), by), n->dtype);
    return with_immediate(is_signed_int(n->dtype) ? Form::SarI : Form::ShrI, value(n->src(0)), by);
  }
  const auto again = [this](NodeRef load) { return may_read_again(load); };
  if (NodeRef lowest = lowest_byte_in(n, again))
    return load_scalar(n->dtype, address_of(lowest->src(0), lowest->src(1)));
  NodeRef inverse = nullptr;
  if (n->op != Op::And || !usable(Form::Andn)) return kNoReg;
  NodeRef other = beside(n, Op::Not, inverse);
  if (!other) return kNoReg;
  const Reg to = general();
  emit(Form::Andn, 64, {to, value(inverse->src(0)), value(other)});
  return to;
}

Reg X86Selector::bool_pattern(NodeRef n) {
  NodeRef lanes = any_lane_in(n);
  return lanes ? any_of_mask(vector(lanes)) : kNoReg;
}

Vector X86Selector::part_by_part(NodeRef n, FunctionRef<Reg(size_t part, int width)> make) {
  Vector out{{}, bits(n->dtype), n->lanes};
  const Layout l = layout(out.bits, out.lanes);
  for (size_t p = 0; p < static_cast<size_t>(l.parts); ++p) out.parts.push_back(make(p, l.width));
  return out;
}

Reg X86Selector::looked_up(NodeRef n, Reg x, int width) {
  std::vector<uint8_t> table(16);
  for (size_t i = 0; i < 4; ++i) const_value(without_splat(n->src(1 + i))).store(&table[4 * i]);
  // vpshufb gives 0 where a byte's highest bit is set.
  constexpr uint64_t kLowFour = 0x0f0f0f0f, kHighest = 0x80808080;
  NodeRef mask = n->src(0)->op == Op::And ? without_splat(n->src(0)->src(1)) : n;
  const bool fits = mask->op == Op::Const && (const_value(mask).as_uint() & kHighest) == 0;
  if (!fits) x = bitwise(Op::And, x, all_lanes(kLowFour, 32, width), width);
  return vector_op(Form::VPshufB, width, all_blocks(std::move(table), width), x);
}

/// Empty where there is none.
Vector X86Selector::vector_pattern(NodeRef n) {
  if (n->op == Op::Lookup4)
    return part_by_part(
        n, [&](size_t p, int w) { return looked_up(n, vector(n->src(0)).parts[p], w); });
  const int width = bits(n->dtype);
  if (is_float(n->dtype) || is_bool(n->dtype)) return {};
  const bool quad = width == 64;
  if (width == 32 || quad) {
    const Form rotate = quad ? Form::VProlQ : Form::VProlD;
    if (const Rotation r = rotation_in(n); r.x && usable(rotate))
      return part_by_part(n, [&](size_t p, int w) {
        return shifted_by(rotate, w, vector(r.x).parts[p], static_cast<int>(r.left));
      });
    const int64_t by = amount_of(n);
    if (by == 0) return vector(n->src(0));
    const Form form = n->op == Op::Shl        ? (quad ? Form::VPsllQi : Form::VPsllDi)
                      : is_unsigned(n->dtype) ? (quad ? Form::VPsrlQi : Form::VPsrlDi)
                                              : (quad ? Form::VPsraQi : Form::VPsraDi);
    if (by > 0 && usable(form)) {
      return part_by_part(n, [&](size_t p, int w) {
        return shifted_by(form, w, vector(n->src(0)).parts[p], static_cast<int>(by));
      });
    }
  }
  return usable(Form::VPternlogQ) ? logic_of_three(n) : Vector{};
}

Vector X86Selector::logic_of_three(NodeRef n) {
  NodeRef inner = nullptr, inverse = nullptr;
  const auto ternary = [&](NodeRef a, NodeRef b, NodeRef c, int64_t table) {
    return part_by_part(n, [&](size_t p, int w) {
      const Reg to = vector_of(w);
      emit(Form::VMovaps, w, {to, vector(a).parts[p]});
      emit(Form::VPternlogQ, w, {to, vector(b).parts[p], vector(c).parts[p]}, table);
      return to;
    });
  };
  if (n->op == Op::Or || n->op == Op::And) {
    const bool is_or = n->op == Op::Or;
    NodeRef a = beside(n, is_or ? Op::And : Op::Or, inner);
    return a ? ternary(a, inner->src(0), inner->src(1), is_or ? kOrWithAnd : kAndWithOr) : Vector{};
  }
  if (n->op != Op::Xor) return {};
  if (NodeRef a = beside(n, Op::And, inner)) {
    if (NodeRef c = beside(inner, Op::Not, inverse))
      return ternary(a, inverse->src(0), c, kXorWithAndNot);
    return ternary(a, inner->src(0), inner->src(1), kXorWithAnd);
  }
  if (NodeRef a = beside(n, Op::Xor, inner))
    return ternary(a, inner->src(0), inner->src(1), kXorOfThree);
  return {};
}

}  // namespace weft::codegen
