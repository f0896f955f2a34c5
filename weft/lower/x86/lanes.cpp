// Vectors and memory: loads and stores, and what takes vectors apart lane by lane.
#include <algorithm>

#include "weft/base/error.h"
#include "weft/lower/x86/selector.h"

namespace weft::lower {

using namespace x86;

namespace {

Address moved(Address a, int bytes) {
  a.displacement += bytes;
  return a;
}

}  // namespace

/// Room in the frame for one instruction's detour through memory.
Address X86Selector::scratch(int bytes) {
  in_scratch_ = nullptr;
  const int32_t at = scratch_top_;
  scratch_top_ += (bytes + 63) / 64 * 64;
  out_.frame_bytes = std::max(out_.frame_bytes, scratch_top_);
  return {.base = kRsp, .displacement = at};
}

/// Loads exactly the elements' bytes: nothing beyond a buffer is touched.
Parts X86Selector::load_parts(DType dtype, int lanes, const Address& from) {
  if (is_bool(dtype)) {
    const Layout l = layout(DType::U8, lanes);
    Parts masks;
    for (Reg x : load_parts(DType::U8, lanes, from)) {
      masks.push_back(mask());
      emit(Form::VPtestmB, l.width, {masks.back(), x, x});
    }
    return {joined_masks(masks, l.per_part)};
  }
  const Layout l = layout(dtype, lanes);
  const int bytes = l.per_part * l.bytes;
  Parts out;
  for (int p = 0; p < l.parts; ++p) {
    const Address at = moved(from, p * bytes);
    out.push_back(vector_of(l.width));
    if (bytes >= 16)
      emit(make(Form::VMovups, l.width, {out.back()}, at));
    else if (bytes == 8)
      emit(make(Form::VMovsd, 128, {out.back()}, at));
    else if (bytes == 4)
      emit(make(Form::VMovss, 128, {out.back()}, at));
    else
      emit(Form::VMovdTo, 128, {out.back(), load_scalar(DType::U16, at)});
  }
  return out;
}

void X86Selector::store_parts(DType dtype, int lanes, const Parts& from, const Address& to) {
  if (is_bool(dtype)) {
    const Layout l = layout(DType::U8, lanes);
    return store_parts(DType::U8, lanes, {mask_to_vector(from[0], DType::U8, l.lanes)}, to);
  }
  const Layout l = layout(dtype, lanes);
  const int bytes = l.per_part * l.bytes;
  for (int p = 0; p < l.parts; ++p) {
    const Address at = moved(to, p * bytes);
    const Reg x = from[static_cast<size_t>(p)];
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

Parts X86Selector::vector_load(NodeRef n) {
  const Address from = address_of(n->src(0), n->src(1));
  if (n->nsrc < 3) return load_parts(n->dtype, n->lanes, from);
  // Zeros, replaced where the mask holds.
  const Layout l = layout(n);
  Parts out;
  for (int p = 0; p < l.parts; ++p) {
    const Reg none = is_bool(n->dtype) ? mask_of_bits(integer(0))[0] : all_lanes(0, 64, l.width);
    out.push_back(is_bool(n->dtype) ? mask() : vector_of(l.width));
    copy_part(out.back(), none, n->dtype, l.width);
  }
  const int32_t end = skip_unless(value(n->src(2)));
  const Parts loaded = load_parts(n->dtype, n->lanes, from);
  for (size_t p = 0; p < out.size(); ++p) copy_part(out[p], loaded[p], n->dtype, l.width);
  place(end);
  return out;
}

void X86Selector::vector_store(NodeRef n) {
  const int32_t end = n->nsrc > 3 ? skip_unless(value(n->src(3))) : -1;
  const NodeRef from = n->src(2);
  store_parts(from->dtype, from->lanes, parts(from), address_of(n->src(0), n->src(1)));
  if (end >= 0) place(end);
}

Parts X86Selector::mask_of_bits(Reg bits) {
  const Reg m = mask();
  emit(Form::KmovQTo, 64, {m, bits});
  return {m};
}

/// All parts are one register.
Parts X86Selector::splat_of_load(NodeRef load, const Layout& l) {
  const int size = bits(load->dtype);
  const Form form = size == 8    ? Form::VPbroadcastB
                    : size == 16 ? Form::VPbroadcastW
                    : size == 32 ? Form::VBroadcastss
                                 : Form::VBroadcastsd;
  const int width = size == 64 ? std::max(l.width, 256) : l.width;
  const Reg r = vector_of(width);
  emit(make(form, width, {r}, address_of(load->src(0), load->src(1))));
  return Parts(static_cast<size_t>(l.parts), r);
}

Parts X86Selector::splat(NodeRef n) {
  const DType d = n->dtype;
  if (!is_bool(d) && may_read_again(n->src(0))) return splat_of_load(n->src(0), layout(n));
  const Reg scalar = value(n->src(0));
  if (is_bool(d)) return mask_of_bits(with_immediate(Form::Neg, scalar, 0));
  const Layout l = layout(n);
  const int width = d == DType::F64 ? std::max(l.width, 256) : l.width;
  const Reg r = vector_of(width);
  const Form from_general = bits(d) == 8    ? Form::VPbroadcastRb
                            : bits(d) == 16 ? Form::VPbroadcastRw
                            : bits(d) == 32 ? Form::VPbroadcastRd
                                            : Form::VPbroadcastRq;
  emit(in_vector(d) ? of(d, Form::VBroadcastss, Form::VBroadcastsd) : from_general, width,
       {r, scalar});
  return Parts(static_cast<size_t>(l.parts), r);
}

Parts X86Selector::vec(NodeRef n) {
  if (is_bool(n->dtype)) {
    Reg all = value(n->src(0));
    for (size_t k = 1; k < n->nsrc; ++k)
      all = two_address(Form::Or, all,
                        with_immediate(Form::ShlI, value(n->src(k)), static_cast<int64_t>(k)));
    return mask_of_bits(all);
  }
  const Layout l = layout(n);
  const Address at = scratch(l.lanes * l.bytes);
  for (int k = 0; k < l.lanes; ++k)
    store_scalar(n->dtype, value(n->src(static_cast<size_t>(k))), moved(at, k * l.bytes));
  return load_parts(n->dtype, n->lanes, at);
}

Reg X86Selector::lane(NodeRef n) {
  const NodeRef vector = n->src(0);
  const auto k = static_cast<int>(n->int_arg(0));
  if (is_bool(vector->dtype)) return one_lane(vector, {}, k);
  if (in_scratch_ == vector) return one_lane(vector, Address{.base = kRsp}, k);
  const Layout l = layout(vector);
  const Address at = scratch(l.lanes * l.bytes);
  store_parts(vector->dtype, vector->lanes, parts(vector), at);
  in_scratch_ = vector;  // at the frame's beginning, until something else is put there
  return one_lane(vector, at, k);
}

/// Lane k of a vector that lies at `stored`; of masks, out of the register.
Reg X86Selector::one_lane(NodeRef vector, const Address& stored, int k) {
  if (!is_bool(vector->dtype))
    return load_scalar(vector->dtype, moved(stored, k * bits(vector->dtype) / 8));
  const Reg bits = general();
  emit(Form::KmovQFrom, 64, {bits, parts(vector)[0]});
  const Reg low = k == 0 ? bits : with_immediate(Form::ShrI, bits, k);
  return with_immediate(Form::AndI, low, 1);
}

/// The last resort, for what there is no vector instruction for.
Parts X86Selector::lane_by_lane(NodeRef n) {
  SmallVector<Address, 4> stored;
  for (NodeRef s : n->src()) {
    const bool in_memory = !is_bool(s->dtype);
    stored.push_back(in_memory ? scratch(s->lanes * bits(s->dtype) / 8) : Address{});
    if (in_memory) store_parts(s->dtype, s->lanes, parts(s), stored.back());
  }
  const int bytes = bits(n->dtype) / 8;
  const Address results = scratch(n->lanes * bytes);
  for (int k = 0; k < n->lanes; ++k) {
    for (size_t s = 0; s < n->nsrc; ++s) values_.set(n->src(s), one_lane(n->src(s), stored[s], k));
    store_scalar(n->dtype, compute(n), moved(results, k * bytes));
  }
  return load_parts(n->dtype, n->lanes, results);
}

}  // namespace weft::lower
