// Vectors and memory: loads and stores, and what takes vectors apart lane by lane.
#include <algorithm>
#include <bit>
#include <optional>

#include "weft/base/error.h"
#include "weft/codegen/x86/selector.h"
#include "weft/dtype/value.h"
#include "weft/graph/node.h"

namespace weft::codegen {

using namespace x86;

namespace {

Address moved(Address a, int bytes) {
  a.displacement += bytes;
  return a;
}

/// A general register into all lanes: at once, or from a vector register.
constexpr std::pair<int, Form> kSplats[] = {{8, Form::VPbroadcastRb},
                                            {16, Form::VPbroadcastRw},
                                            {32, Form::VPbroadcastRd},
                                            {64, Form::VPbroadcastRq}};
constexpr std::pair<int, Form> kVectorSplats[] = {{8, Form::VPbroadcastB},
                                                  {16, Form::VPbroadcastW},
                                                  {32, Form::VPbroadcastD},
                                                  {64, Form::VPbroadcastQ}};
/// One of the lanes of 128 bits from a general register.
constexpr std::pair<int, Form> kInsertions[] = {
    {8, Form::VPinsrB}, {16, Form::VPinsrW}, {32, Form::VPinsrD}, {64, Form::VPinsrQ}};

}  // namespace

// ---- memory

/// Loads exactly the elements' bytes: nothing beyond a buffer is touched.
Vector X86Selector::load_vector(DType dtype, int lanes, const Address& from) {
  if (is_bool(dtype))
    return numbers_to_mask(load_vector(DType::U8, lanes, from).parts, DType::U8, lanes);
  const Layout l = layout(bits(dtype), lanes);
  const int bytes = l.per_part * bits(dtype) / 8;
  Vector out{{}, bits(dtype), lanes};
  for (int p = 0; p < l.parts; ++p) {
    const Address at = moved(from, p * bytes);
    out.parts.push_back(vector_of(l.width));
    if (bytes >= 16)
      emit(make(Form::VMovups, l.width, {out.parts.back()}, at));
    else if (bytes == 8)
      emit(make(Form::VMovsd, 128, {out.parts.back()}, at));
    else if (bytes == 4)
      emit(make(Form::VMovss, 128, {out.parts.back()}, at));
    else
      emit(Form::VMovdTo, 128, {out.parts.back(), load_scalar(DType::U16, at)});
  }
  return out;
}

void X86Selector::store_vector(DType dtype, const Vector& v, const Address& to) {
  const Layout l = layout(bits(dtype), v.lanes);
  const int bytes = l.per_part * bits(dtype) / 8;
  for (int p = 0; p < l.parts; ++p) {
    const Address at = moved(to, p * bytes);
    const Reg x = v.parts[static_cast<size_t>(p)];
    if (bytes >= 16)
      emit(make(Form::VMovupsStore, l.width, {kNoReg, x}, at));
    else if (bytes == 8)
      emit(make(Form::VMovsdStore, 128, {kNoReg, x}, at));
    else if (bytes == 4)
      emit(make(Form::VMovssStore, 128, {kNoReg, x}, at));
    else
      store_scalar(DType::U16, vector_to_bits(x, DType::F32), at);
  }
}

/// Bools as the bytes that memory holds.
Vector X86Selector::as_stored(NodeRef n) {
  if (!is_bool(n->dtype)) return vector(n);
  return {mask_to_numbers(mask_beside(n, 8), DType::U8), 8, n->lanes};
}

Vector X86Selector::vector_load(NodeRef n) {
  const Address from = address_of(n->src(0), n->src(1));
  if (n->nsrc < 3) return load_vector(n->dtype, n->lanes, from);
  // Zeros, replaced where the mask holds.
  const bool bools = is_bool(n->dtype);
  const Layout l = layout(bits(n->dtype), n->lanes);
  const Vector none = bools ? mask_of_bits(integer(0), n->lanes)
                            : Vector{Parts(static_cast<size_t>(l.parts), all_lanes(0, 64, l.width)),
                                     bits(n->dtype), n->lanes};
  const Vector out = copy_of(none);
  const int32_t end = skip_unless(n->src(2));
  copy_parts(out, load_vector(n->dtype, n->lanes, from));
  place(end);
  return out;
}

void X86Selector::vector_store(NodeRef n) {
  const int32_t end = n->nsrc > 3 ? skip_unless(n->src(3)) : -1;
  const NodeRef from = n->src(2);
  store_vector(from->dtype, as_stored(from), address_of(n->src(0), n->src(1)));
  if (end >= 0) place(end);
}

// ---- lanes

/// All parts are one register.
Vector X86Selector::splat(NodeRef n) {
  const DType d = n->dtype;
  const Reg from = value(n->src(0));
  if (is_bool(d)) return mask_of_bits(with_immediate(Form::Neg, from, 0), n->lanes);
  const int size = bits(d);
  const Layout l = layout(size, n->lanes);
  if (n->src(0)->op == Op::Const) {
    uint64_t raw = 0;
    const_value(n->src(0)).store(&raw);
    return {Parts(static_cast<size_t>(l.parts), all_lanes(raw, size, l.width)), size, n->lanes};
  }
  const int width = d == DType::F64 ? std::max(l.width, 256) : l.width;
  const Reg r = vector_of(width);
  const Form from_vector = in_vector(d) ? of(d, Form::VBroadcastss, Form::VBroadcastsd)
                                        : usable_form(kVectorSplats, size);
  if (may_read_again(n->src(0)))
    emit(make(from_vector, width, {r}, address_of(n->src(0)->src(0), n->src(0)->src(1))));
  else if (in_vector(d))
    emit(from_vector, width, {r, from});
  else if (usable(Form::VPbroadcastRb))
    emit(usable_form(kSplats, size), width, {r, from});
  else
    emit(from_vector, width, {r, bits_to_vector(from, DType::F64)});
  return {Parts(static_cast<size_t>(l.parts), r), size, n->lanes};
}

namespace {

constexpr int kBlock = 16;  // bytes: what vpshufb stays in

/// Orders of a register's words and then of the bytes in each block, as vpermd and vpshufb read
/// them; one that changes nothing is empty.
struct ByteOrder {
  std::vector<uint8_t> words, bytes;
};

void add_word(std::vector<uint8_t>& words, int from) {
  words.insert(words.end(), {static_cast<uint8_t>(from), 0, 0, 0});
}

bool are_words(std::span<const int> from) {
  for (size_t i = 0; i < from.size(); ++i)
    if (from[i] != from[i / 4 * 4] + static_cast<int>(i % 4) || from[i / 4 * 4] % 4 != 0)
      return false;
  return true;
}

/// That takes each byte from these; none where a block takes them from several.
std::optional<ByteOrder> byte_order(std::span<const int> from, int width) {
  ByteOrder out;
  if (width >= 256 && are_words(from)) {
    for (size_t i = 0; i < from.size(); i += 4) add_word(out.words, from[i] / 4);
    return out;
  }
  for (size_t i = 0; i < from.size(); ++i) {
    const int block = from[i / kBlock * kBlock] / kBlock;
    if (from[i] / kBlock != block) return std::nullopt;
    out.bytes.push_back(static_cast<uint8_t>(from[i] % kBlock));
    if (width >= 256 && i % 4 == 0)
      add_word(out.words, block * kBlock / 4 + static_cast<int>(i) % kBlock / 4);
  }
  return out;
}

}  // namespace

/// Lanes of one vector in another order, where each register takes them from one register; without
/// parts where they are anything else.
Vector X86Selector::permuted(NodeRef n) {
  const int size = is_bool(n->dtype) ? 8 : bits(n->dtype), bytes = size / 8;
  const Layout l = layout(size, n->lanes);
  Vector out{{}, size, n->lanes};
  if (!usable(Form::VPermD) || !usable(Form::VPshufB)) return out;
  for (NodeRef s : n->src())
    if (s->op != Op::Lane || s->src(0) != n->src(0)->src(0) || s->src(0)->lanes != n->lanes)
      return out;
  std::vector<std::pair<size_t, ByteOrder>> parts;  // which register, and how
  for (int first = 0; first < n->lanes; first += l.per_part) {
    const auto lanes =
        n->src().subspan(static_cast<size_t>(first), static_cast<size_t>(l.per_part));
    const auto part = lanes[0]->int_arg(0) / l.per_part;
    std::vector<int> from;
    for (NodeRef s : lanes) {
      if (s->int_arg(0) / l.per_part != part) return out;
      for (int b = 0; b < bytes; ++b)
        from.push_back(static_cast<int>(s->int_arg(0)) % l.per_part * bytes + b);
    }
    for (int b = static_cast<int>(from.size()); b < l.width / 8; ++b) from.push_back(b);
    std::optional<ByteOrder> order = byte_order(from, l.width);
    if (!order) return out;
    parts.emplace_back(static_cast<size_t>(part), std::move(*order));
  }
  const Vector from = as_stored(n->src(0)->src(0));
  for (auto& [part, order] : parts) {
    Reg x = from.parts[part];
    if (!order.words.empty())
      x = vector_op(Form::VPermD, l.width, all_bytes(std::move(order.words), l.width), x);
    if (!order.bytes.empty())
      x = vector_op(Form::VPshufB, l.width, x, all_bytes(std::move(order.bytes), l.width));
    out.parts.push_back(x);
  }
  return is_bool(n->dtype) ? numbers_to_mask(out.parts, DType::U8, n->lanes) : out;
}

/// Lanes of one vector that lie one after the other in one of its registers; without parts where
/// they are anything else.
Vector X86Selector::consecutive(NodeRef n) {
  const int size = bits(n->dtype);
  NodeRef first = n->src(0);
  Vector out{{}, size, n->lanes};
  if (is_bool(n->dtype) || first->op != Op::Lane) return out;
  NodeRef of = first->src(0);
  for (size_t k = 0; k < n->nsrc; ++k) {
    NodeRef s = n->src(k);
    if (s->op != Op::Lane || s->src(0) != of ||
        s->int_arg(0) != first->int_arg(0) + static_cast<int64_t>(k))
      return out;
  }
  const int at = static_cast<int>(first->int_arg(0)), each = layout(size, of->lanes).per_part;
  if (at % n->lanes != 0 || (n->lanes > each && at % each != 0)) return out;
  const Parts& from = vector(of).parts;
  if (n->lanes >= each)
    out.parts = Parts(std::span(from).subspan(static_cast<size_t>(at / each),
                                              static_cast<size_t>(n->lanes / each)));
  else
    out.parts.push_back(piece(from, size, of->lanes, at, n->lanes));
  return out;
}

/// Vectors of a register each, one after the other; without parts where they are anything else.
Vector X86Selector::concatenated(NodeRef n) {
  const int size = bits(n->dtype);
  Vector out{{}, size, n->lanes};
  const NodeRef first = n->src(0);
  if (is_bool(n->dtype) || first->op != Op::Lane || layout(size, n->lanes).parts != 1) return out;
  const size_t each = first->src(0)->lanes;
  const bool whole = each * static_cast<size_t>(size) >= 128 && n->lanes % each == 0 &&
                     std::has_single_bit(n->lanes / each);
  for (size_t k = 0; k < n->nsrc; ++k) {
    NodeRef s = n->src(k);
    if (!whole || s->op != Op::Lane || s->src(0) != n->src(k / each * each)->src(0) ||
        s->src(0)->lanes != each || s->int_arg(0) != static_cast<int64_t>(k % each))
      return out;
  }
  const int bits_of_each = static_cast<int>(each) * size;
  const NodeRef repeats = first->src(0);
  if (std::ranges::all_of(n->src(), [&](NodeRef s) { return s->src(0) == repeats; })) {
    const Reg all = repeated(repeats, bits_of_each, n->lanes * size);
    if (all != kNoReg) return out.parts.push_back(all), out;
  }
  Parts pieces;
  for (size_t k = 0; k < n->nsrc; k += 2 * each)
    pieces.push_back(joined_pair(n->src(k)->src(0), n->src(k + each)->src(0), bits_of_each));
  out.parts.push_back(joined(std::move(pieces), 2 * bits_of_each));
  return out;
}

/// Integers of `size` bits in the lowest lanes of a register of this width.
Reg X86Selector::side_by_side(std::span<const NodeRef> scalars, int size, int width) {
  Reg made = vector_of(width);
  emit(size == 64 ? Form::VMovqTo : Form::VMovdTo, 128, {made, value(scalars[0])});
  for (size_t k = 1; k < scalars.size(); ++k) {
    const Reg more = vector_of(width);
    emit(usable_form(kInsertions, size), 128, {more, made, value(scalars[k])},
         static_cast<int64_t>(k));
    made = more;
  }
  return made;
}

/// Floats in the lowest lanes of a register; what is missing to a power of two repeats the last.
Reg X86Selector::floats_side_by_side(std::span<const NodeRef> scalars, int size) {
  Parts pieces;
  for (NodeRef s : scalars) pieces.push_back(value(s));
  while (!std::has_single_bit(pieces.size())) pieces.push_back(pieces.back());
  return joined(std::move(pieces), size);
}

/// Few values, each in several lanes: lanes of a vector that one register holds, or else put side
/// by side, and spread from there; without parts where they are many, or all lanes are bits.
Vector X86Selector::spread(NodeRef n) {
  const int size = bits(n->dtype);
  const Layout l = layout(size, n->lanes);
  Vector out{{}, size, n->lanes};
  const bool by_bytes = l.width == 128;
  if (is_bool(n->dtype) || (!by_bytes && size < 32) ||
      !usable(by_bytes ? Form::VPshufB : Form::VPermD))
    return out;
  NodeRef of = n->src(0)->op == Op::Lane ? n->src(0)->src(0) : nullptr;
  const bool of_one =
      of && of->lanes <= l.per_part && std::ranges::all_of(n->src(), [&](NodeRef s) {
        return s->op == Op::Lane && s->src(0) == of;
      });
  const size_t most = std::min(n->nsrc / size_t{2}, static_cast<size_t>(std::min(4, 128 / size)));
  SmallVector<NodeRef, 4> few;
  SmallVector<size_t, 16> which;
  for (NodeRef s : n->src()) {
    if (of_one) which.push_back(static_cast<size_t>(s->int_arg(0)));
    if (of_one) continue;
    which.push_back(static_cast<size_t>(std::ranges::find(few, s) - few.begin()));
    if (which.back() < few.size()) continue;
    if (few.size() == most) return out;
    few.push_back(s);
  }
  const Reg from = of_one                ? vector(of).parts[0]
                   : in_vector(n->dtype) ? floats_side_by_side(few, size)
                                         : side_by_side(few, size, l.width);
  const int unit = by_bytes ? 8 : 32, each = size / unit;  // of what is moved
  for (int first = 0; first < n->lanes; first += l.per_part) {
    std::vector<uint8_t> order;
    for (int i = first * each; i < (first + l.per_part) * each; ++i) {
      const auto lane = static_cast<int>(which[static_cast<size_t>(i / each)]);
      order.push_back(static_cast<uint8_t>(lane * each + i % each));
      order.resize(order.size() + static_cast<size_t>(unit / 8 - 1));
    }
    order.resize(static_cast<size_t>(l.width / 8), by_bytes ? 0x80 : 0);
    const Reg by = all_bytes(std::move(order), l.width);
    out.parts.push_back(vector_of(l.width));
    if (by_bytes)
      emit(Form::VPshufB, 128, {out.parts.back(), from, by});
    else
      emit(Form::VPermD, l.width, {out.parts.back(), by, from});
  }
  return out;
}

/// Words whose places in memory are the lanes of a vector; without parts where they are anything
/// else.
Vector X86Selector::gathered(NodeRef n) {
  Vector out{{}, bits(n->dtype), n->lanes};
  NodeRef first = n->src(0);
  if (out.bits != 32 || !usable(Form::VPgatherDd) || first->op != Op::Load ||
      first->src(1)->op != Op::Lane)
    return out;
  NodeRef param = first->src(0), at = first->src(1)->src(0);
  if (param->op != Op::Param || bits(param->dtype) != 32 || at->lanes != n->lanes ||
      bits(at->dtype) != 32)
    return out;
  for (size_t k = 0; k < n->nsrc; ++k) {
    NodeRef s = n->src(k), index = s->op == Op::Load ? s->src(1) : s;
    if (index->op != Op::Lane || index->src(0) != at || s->src(0) != param || !may_read_again(s) ||
        index->int_arg(0) != static_cast<int64_t>(k))
      return out;
  }
  const Layout l = layout(32, n->lanes);
  const int64_t all = (int64_t{1} << l.per_part) - 1;  // no lane beyond the vector's reads anything
  for (const Reg places : Parts(vector(at).parts)) {
    const Reg r = vector_of(l.width);
    emit(Form::VMovaps, l.width, {r, all_lanes(0, 64, l.width)});
    Instruction gather = make(Form::VPgatherDd, l.width, {r},
                              Address{.base = value(param), .index = places, .scale = 4});
    gather.mask = mask_of_bits(integer(all), l.per_part).parts[0];
    emit(gather);
    out.parts.push_back(r);
  }
  return out;
}

namespace {

/// A sum's constant, and the rest.
std::pair<NodeRef, int64_t> split_offset(NodeRef index) {
  if (index->op == Op::Const) return {nullptr, index->vmin};
  if (index->op != Op::Add || index->src(1)->op != Op::Const) return {index, 0};
  return {index->src(0), index->src(1)->vmin};
}

/// Places in memory that are this far from each other; 0 where they are not.
int64_t distance_between(std::span<const NodeRef> loads) {
  const auto [base, begin] = split_offset(loads[0]->src(1));
  const int64_t distance = split_offset(loads[1]->src(1)).second - begin;
  for (size_t k = 1; k < loads.size(); ++k) {
    const auto [other, at] = split_offset(loads[k]->src(1));
    if (other != base || at != begin + static_cast<int64_t>(k) * distance) return 0;
  }
  return distance;
}

/// Places of lanes in what registers 0 to r - 1 gave, side by side but after the first one, and
/// behind that in register r, which begins with element `begin`.
std::vector<int> places_of_strided(int64_t r, int64_t begin, int64_t each, int64_t distance) {
  std::vector<int> from;
  for (int64_t k = 0; k < each; ++k) {
    const int64_t place = k * distance, before = r == 1 ? place : k;
    const bool here = place >= r * each && place < begin + each;
    from.push_back(static_cast<int>(here ? each + place - begin : before % each));
  }
  return from;
}

}  // namespace

/// Elements that lie in memory at equal distances: whole registers are loaded from the first of
/// them to the last, and hold nothing beyond; their lanes are put side by side. Without parts where
/// they are anything else, or far from each other.
Vector X86Selector::strided(NodeRef n) {
  const int size = bits(n->dtype);
  Vector out{{}, size, n->lanes};
  NodeRef first = n->src(0);
  if (is_bool(n->dtype) || !permutes_pairs(size)) return out;
  for (NodeRef s : n->src())
    if (s->op != Op::Load || s->src(0) != first->src(0) || !may_read_again(s)) return out;
  // Words in a buffer of bytes are as far apart as those say.
  const int64_t apart = distance_between(n->src()) * bits(first->src(0)->dtype);
  const int64_t distance = apart / size;
  if (distance < 2 || apart % size != 0) return out;
  const Layout l = layout(size, n->lanes);
  const int64_t span = distance * (l.per_part - 1) + 1;
  int width = l.width;  // the most that is not longer than that: fewer registers
  while (width < register_bits_ && 2 * width / size <= span) width *= 2;
  const int64_t each = width / size, count = (span + each - 1) / each;
  if (each > span || count < 2 || 2 * count > l.per_part) return out;
  for (int part = 0; part < n->lanes; part += l.per_part) {
    const Address at = address_of(first->src(0), n->src(static_cast<size_t>(part))->src(1));
    Reg made = kNoReg;
    for (int64_t r = 0; r < count; ++r) {
      const int64_t begin = std::min(r * each, span - each);
      const Reg x = vector_of(width);
      emit(make(Form::VMovups, width, {x}, moved(at, static_cast<int>(begin) * size / 8)));
      made = r == 0
                 ? x
                 : pair_permuted(made, x, places_of_strided(r, begin, each, distance), size, width);
    }
    out.parts.push_back(made);
  }
  return out;
}

/// As the lowest lane, whatever it is a number of.
Reg X86Selector::load_word(NodeRef load) {
  const Reg r = vector_of(128);
  emit(make(Form::VMovss, 128, {r}, address_of(load->src(0), load->src(1))));
  return r;
}

Vector X86Selector::vec(NodeRef n) {
  const int size = bits(n->dtype), bytes = size / 8;
  if (Vector v = consecutive(n); !v.parts.empty()) return v;
  if (Vector v = concatenated(n); !v.parts.empty()) return v;
  if (Vector v = permuted(n); !v.parts.empty()) return v;
  if (Vector v = chosen(n); !v.parts.empty()) return v;
  if (Vector v = gathered(n); !v.parts.empty()) return v;
  if (Vector v = strided(n); !v.parts.empty()) return v;
  const bool constant = std::ranges::all_of(n->src(), [](NodeRef s) { return s->op == Op::Const; });
  if (Vector v = constant ? Vector() : spread(n); !v.parts.empty()) return v;
  if (constant) {
    std::vector<uint8_t> all(static_cast<size_t>(std::max(16, n->lanes * bytes)));
    for (int k = 0; k < n->lanes; ++k)
      const_value(n->src(static_cast<size_t>(k))).store(all.data() + k * bytes);
    return load_vector(n->dtype, n->lanes, data_constant(std::move(all)));
  }
  const bool words = size == 32 && std::ranges::all_of(n->src(), [&](NodeRef s) {
                       return s->op == Op::Load && may_read_again(s);
                     });
  if (in_vector(n->dtype) || words) {
    const Layout l = layout(size, n->lanes);
    Vector out{{}, size, n->lanes};
    for (int first = 0; first < n->lanes; first += l.per_part) {
      Parts pieces;
      for (int k = first; k < first + l.per_part; ++k)
        pieces.push_back(words ? load_word(n->src(static_cast<size_t>(k)))
                               : value(n->src(static_cast<size_t>(k))));
      out.parts.push_back(joined(std::move(pieces), size));
    }
    return out;
  }
  const Address at = scratch(n->lanes * bytes);
  for (int k = 0; k < n->lanes; ++k)
    store_scalar(n->dtype, value(n->src(static_cast<size_t>(k))), moved(at, k * bytes));
  return load_vector(n->dtype, n->lanes, at);
}

/// Lanes of a few vectors as long as the result, in any order; without parts where they are
/// anything else, or no register.
Vector X86Selector::chosen(NodeRef n) {
  constexpr size_t kMost = 4;
  const int size = bits(n->dtype), lanes = n->lanes;
  const Layout l = layout(size, lanes);
  Vector out{{}, size, lanes};
  const bool whole = l.parts == 1 && l.width == lanes * size;
  if (is_bool(n->dtype) || !whole || !permutes_pairs(size)) return out;
  SmallVector<NodeRef, kMost> vectors;
  for (NodeRef s : n->src()) {
    if (s->op != Op::Lane || s->src(0)->lanes != lanes) return out;
    if (!contains(vectors, s->src(0))) vectors.push_back(s->src(0));
  }
  if (vectors.size() > kMost) return out;
  out.parts.push_back(vector(vectors[0]).parts[0]);
  for (size_t v = std::min<size_t>(1, vectors.size() - 1); v < vectors.size(); ++v) {
    std::vector<int> from;
    for (int k = 0; k < lanes; ++k) {
      NodeRef s = n->src(static_cast<size_t>(k));
      const auto at = static_cast<int>(s->int_arg(0));
      const bool first = v <= 1 && s->src(0) == vectors[0];
      from.push_back(first ? at : s->src(0) == vectors[v] ? lanes + at : k);
    }
    const Reg more = vector(vectors[v]).parts[0];
    out.parts[0] = pair_permuted(out.parts[0], more, from, size, l.width);
  }
  return out;
}

Reg X86Selector::lane(NodeRef vector_node, int k) {
  const Vector& v = vector(vector_node);
  const DType d = vector_node->dtype;
  if (is_bool(d)) return bit_of_mask(v, k);
  const Reg x = piece(v.parts, v.bits, v.lanes, k, 1);
  if (in_vector(d)) return x;
  const Reg r = vector_to_bits(x, v.bits == 64 ? DType::F64 : DType::F32);
  return extended(r, is_half(d) ? DType::U16 : d);
}

/// The last resort, for what there is no vector instruction for.
Vector X86Selector::lane_by_lane(NodeRef n) {
  SmallVector<Address, 4> stored;
  for (NodeRef s : n->src()) {
    stored.push_back(scratch(s->lanes * bits(s->dtype) / 8));
    store_vector(s->dtype, as_stored(s), stored.back());
  }
  const int bytes = bits(n->dtype) / 8;
  const Address results = scratch(n->lanes * bytes);
  for (int k = 0; k < n->lanes; ++k) {
    for (size_t s = 0; s < n->nsrc; ++s) {
      const DType d = n->src(s)->dtype;
      values_.set(n->src(s), load_scalar(d, moved(stored[s], k * bits(d) / 8)));
    }
    store_scalar(n->dtype, compute(n), moved(results, k * bytes));
  }
  return load_vector(n->dtype, n->lanes, results);
}

}  // namespace weft::codegen
