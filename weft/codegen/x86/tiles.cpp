// Tiles, and the memory of the function's own that they are read from lane by lane.
#include "weft/base/error.h"
#include "weft/codegen/x86/selector.h"

namespace weft::codegen {

using namespace x86;

namespace {

constexpr int kRows = 16, kRowBytes = 64, kTiles = 8;  // of a tile; registers
constexpr int kLine = 64;
constexpr std::pair<Op, Form> kTileDots[] = {{Op::TileDot2, Form::Tdpbf16ps},
                                             {Op::TileDot4, Form::Tdpbusd},
                                             {Op::TileDot4Signed, Form::Tdpbsud}};

/// The shapes of all tiles as ldtilecfg takes them (Intel's manual, volume 2, LDTILECFG): the
/// palette, then from byte 16 on bytes of a row, from byte 48 on rows.
std::vector<uint8_t> whole_tiles() {
  std::vector<uint8_t> bytes(64);
  bytes[0] = 1;
  for (size_t t = 0; t < kTiles; ++t) {
    bytes[16 + 2 * t] = kRowBytes;
    bytes[48 + t] = kRows;
  }
  return bytes;
}

}  // namespace

bool X86Selector::is_tile(NodeRef n) { return n->lanes * bits(n->dtype) / 8 == kRows * kRowBytes; }

/// Memory begins with a cache line, and stays where it is.
void X86Selector::reserve_local() {
  bool tiles = false;
  for (NodeRef n : program_.code) {
    tiles = tiles || n->op == Op::TileLoad;
    if (n->op != Op::Local || local_at_.contains(n->int_arg(0))) continue;
    local_at_[n->int_arg(0)] = local_bytes_;
    const auto bytes = static_cast<int32_t>(n->src(0)->vmin * bits(n->dtype) / 8);
    local_bytes_ += (bytes + kLine - 1) / kLine * kLine;
  }
  if (local_bytes_ > 0) {
    local_bytes_ += kLine;
    scratch_top_ = 0;
    const Reg end_of_line = general();
    Address at = scratch(local_bytes_);
    at.displacement += kLine - 1;
    emit(make(Form::Lea, 64, {end_of_line}, at));
    local_ = with_immediate(Form::AndI, end_of_line, -kLine);
  }
  if (!tiles) return;
  emit(make(Form::Ldtilecfg, 0, {}, data_constant(whole_tiles())));
  uses_tiles_ = true;
}

/// Rows lie `distance` words apart.
Address X86Selector::rows_at(NodeRef memory, NodeRef index, Reg distance) {
  Address first = address_of(memory, index);
  if (first.index != kNoReg) {
    const Reg base = general();
    emit(make(Form::Lea, 64, {base}, first));
    first = {.base = base};
  }
  first.index = distance;
  first.scale = 4;
  return first;
}

Reg X86Selector::tile_of_zeros(NodeRef n) {
  WEFT_CHECK(
      n->op == Op::Splat && n->src(0)->op == Op::Const && const_value(n->src(0)).raw_bits() == 0,
      "a tile begins with zeros");
  const Reg t = tile();
  emit(Form::Tilezero, 0, {t});
  return t;
}

/// A sum stays in one register: nothing else reads what it was before.
Reg X86Selector::tile_value(NodeRef n) {
  if (n->op == Op::Acc) return tile_of_zeros(n->src(0));
  if (n->op == Op::GetAcc) return value(n->src(0));
  if (n->op == Op::TileLoad) {
    const Reg t = tile();
    emit(make(Form::Tileloadd, 0, {t}, rows_at(n->src(0), n->src(1), value(n->src(2)))));
    return t;
  }
  const Reg sum = n->src(2)->op == Op::Splat ? tile_of_zeros(n->src(2)) : value(n->src(2));
  for (const auto& [op, form] : kTileDots)
    if (op == n->op) emit(form, 0, {sum, value(n->src(0)), value(n->src(1))});
  return sum;
}

void X86Selector::select_tile(NodeRef n) {
  if (n->op == Op::Splat) return;  // each sum has zeros of its own
  if (n->op == Op::SetAcc)
    WEFT_CHECK(value(n->src(0)) == value(n->src(1)), "a tile in two registers");
  else if (n->op == Op::Store)
    store_tile(n);
  else
    values_.set(n, tile_value(n));
}

void X86Selector::store_tile(NodeRef n) {
  const Reg distance = integer(kRowBytes / 4);
  const Address to = rows_at(n->src(0), n->src(1), distance);
  emit(make(Form::Tilestored, 0, {kNoReg, value(n->src(2))}, to));
}

}  // namespace weft::codegen
