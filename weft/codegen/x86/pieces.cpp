// Parts of vector registers: taken out, put together, of two of them in any order.
#include <algorithm>
#include <array>
#include <optional>

#include "weft/base/error.h"
#include "weft/codegen/x86/selector.h"

namespace weft::codegen {

using namespace x86;

namespace {

constexpr std::pair<int, Form> kExtractions[] = {
    {128, Form::VExtractI32x4}, {128, Form::VExtractI128}, {256, Form::VExtractI64x4}};
/// Two pieces of so many bits, one after the other.
constexpr std::pair<int, Form> kJoins[] = {{32, Form::VUnpcklps},
                                           {64, Form::VUnpcklpd},
                                           {128, Form::VInsertI32x4},
                                           {128, Form::VInsertI128},
                                           {256, Form::VInsertI64x4}};
/// So many bits of memory as often as a register holds them.
constexpr std::pair<int, Form> kRepetitions[] = {
    {128, Form::VBroadcastI32x4}, {128, Form::VBroadcastI128}, {256, Form::VBroadcastI64x4}};
/// Pieces of two registers in any order.
constexpr std::pair<int, Form> kPairPermutations[] = {
    {8, Form::VPermT2B}, {16, Form::VPermT2W}, {32, Form::VPermT2D}};

/// Of 128 bits: 0 to 3 are the first register's words, 4 to 7 the second's.
using Block = std::array<int, 4>;
/// What all blocks of 128 bits take alike from the same block of two registers; none where they
/// take anything else.
std::optional<Block> alike_in_blocks(std::span<const int> words) {
  const auto count = static_cast<int>(words.size());
  Block block{};
  for (int i = 0; i < count; ++i) {
    const int of = words[static_cast<size_t>(i)], word = of / count * 4 + of % 4;
    int& known = block[static_cast<size_t>(i % 4)];
    if (i < 4) known = word;
    if (of % count / 4 != i / 4 || word != known) return std::nullopt;
  }
  return block;
}

}  // namespace

/// `count` lanes from `first` on, which one register holds, as the lowest of a register.
Reg X86Selector::piece(const Parts& parts, int bits, int lanes, int first, int count) {
  const Layout l = layout(bits, lanes);
  Reg x = parts[static_cast<size_t>(first / l.per_part)];
  int offset = first % l.per_part * bits;
  const int unit = count * bits > 128 ? 256 : 128;
  if (offset >= unit) {
    const Reg r = vector_of(unit);
    emit(usable_form(kExtractions, unit), l.width, {r, x}, offset / unit);
    x = r;
    offset %= unit;
  }
  if (offset == 0) return x;
  const Reg r = vector_of(128);
  emit(Form::VPalignr, 128, {r, x, x}, offset / 8);
  return r;
}

/// Pieces of `bits` in one register.
Reg X86Selector::joined(Parts pieces, int bits) {
  for (; pieces.size() > 1; bits *= 2) {
    Parts wider;
    const int width = std::max(128, 2 * bits);
    for (size_t k = 0; k < pieces.size(); k += 2) {
      const Reg r = vector_of(width);
      emit(usable_form(kJoins, bits), width, {r, pieces[k], pieces[k + 1]}, 1);
      wider.push_back(r);
    }
    pieces = std::move(wider);
  }
  return pieces[0];
}

/// A vector of `bits` as often as fills `width`; null register where it is not read from memory.
Reg X86Selector::repeated(NodeRef vector, int bits, int width) {
  if (vector->op != Op::Load || !may_read_again(vector)) return kNoReg;
  const Reg r = vector_of(width);
  emit(make(usable_form(kRepetitions, bits), width, {r},
            address_of(vector->src(0), vector->src(1))));
  return r;
}

/// Vectors of `bits` in one register; the second one is inserted from memory where it was loaded.
Reg X86Selector::joined_pair(NodeRef low, NodeRef high, int bits) {
  if (high->op != Op::Load || !may_read_again(high))
    return joined({vector(low).parts[0], vector(high).parts[0]}, bits);
  const Reg r = vector_of(2 * bits);
  emit(make(usable_form(kJoins, bits), 2 * bits, {r, vector(low).parts[0]},
            address_of(high->src(0), high->src(1)), 1));
  return r;
}

bool X86Selector::permutes_pairs(int size) const {
  return std::ranges::any_of(kPairPermutations, [&](const auto& row) {
    return row.first == std::min(size, 32) && usable(row.second);
  });
}

/// Within each 128 bits, which takes a cycle where others take five and no register of places:
/// words of both in turns, or two of one before two of the other. False where it is neither.
bool X86Selector::unpacked(Reg out, Reg a, Reg b, std::span<const int> words, int width) {
  std::optional<Block> block = alike_in_blocks(words);
  if (!block) return false;
  if ((*block)[0] >= 4) {
    std::swap(a, b);
    for (int& word : *block) word ^= 4;
  }
  const auto [i, j, k, l] = *block;
  if (*block == Block{0, 4, 1, 5} || *block == Block{2, 6, 3, 7}) {
    emit(i == 0 ? Form::VUnpcklps : Form::VUnpckhps, width, {out, a, b});
    return true;
  }
  if (j >= 4 || k / 4 != l / 4) return false;
  emit(Form::VShufps, width, {out, a, k < 4 ? a : b}, i | j << 2 | (k & 3) << 4 | (l & 3) << 6);
  return true;
}

/// Lanes of a and, from as many on as a register has, of b: the table of places counts pieces of 8,
/// 16 or 32 bits.
Reg X86Selector::pair_permuted(Reg a, Reg b, std::span<const int> from, int size, int width) {
  const int unit = std::min(size, 32), each = size / unit;
  std::vector<int> places;
  for (const int lane : from)
    for (int i = 0; i < each; ++i) places.push_back(lane * each + i);
  const Reg out = vector_of(width);
  if (unit == 32 && unpacked(out, a, b, places, width)) return out;
  std::vector<uint8_t> order;
  for (const int place : places) {
    order.push_back(static_cast<uint8_t>(place));
    order.resize(order.size() + static_cast<size_t>(unit / 8 - 1));
  }
  // Of what is turned, a copy: to load the places into a register of their own would cost more.
  emit(Form::VMovaps, width, {out, a});
  emit(usable_form(kPairPermutations, unit), width, {out, all_bytes(std::move(order), width), b});
  return out;
}

Vector X86Selector::transposed(NodeRef n) {
  const int size = bits(n->dtype), lanes = n->lanes;
  const auto block = static_cast<int>(n->int_arg(0)), odd = static_cast<int>(n->int_arg(1));
  const Layout l = layout(size, lanes);
  WEFT_CHECK(l.parts == 1 && l.width == lanes * size, "trn of {} lanes in {} registers", lanes,
             l.parts);
  std::vector<int> from;
  for (int k = 0; k < lanes; ++k) {
    const bool of_b = k / block % 2 != 0;
    from.push_back((of_b ? k - block + lanes : k) + odd * block);
  }
  const Reg a = vector(n->src(0)).parts[0], b = vector(n->src(1)).parts[0];
  return {Parts{pair_permuted(a, b, from, size, l.width)}, size, lanes};
}

}  // namespace weft::codegen
