// Parts of vector registers: taken out, put together.
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

/// Vectors of `bits` in one register; the second one is inserted from memory where it was loaded.
Reg X86Selector::joined_pair(NodeRef low, NodeRef high, int bits) {
  if (high->op != Op::Load || !may_read_again(high))
    return joined({vector(low).parts[0], vector(high).parts[0]}, bits);
  const Reg r = vector_of(2 * bits);
  emit(make(usable_form(kJoins, bits), 2 * bits, {r, vector(low).parts[0]},
            address_of(high->src(0), high->src(1)), 1));
  return r;
}

}  // namespace weft::codegen
