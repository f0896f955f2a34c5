// x86-64 as allocation sees it: which registers an instruction names, and the moves it may insert.
#include "weft/base/error.h"
#include "weft/isa/x86.h"

namespace weft::x86 {
namespace {

Form move_form(RegClass kind) {
  switch (kind) {
    case RegClass::General: return Form::Mov;
    case RegClass::Mask: return Form::KmovQ;
    default: return Form::VMovaps;
  }
}
Form reload_form(RegClass kind) {
  switch (kind) {
    case RegClass::General: return Form::MovLoad;
    case RegClass::Mask: return Form::KmovQ;
    default: return Form::VMovups;
  }
}
Form spill_form(RegClass kind) {
  switch (kind) {
    case RegClass::General: return Form::MovStore;
    case RegClass::Mask: return Form::KmovQStore;
    default: return Form::VMovupsStore;
  }
}
int width_of(RegClass kind, int bits) {
  return kind == RegClass::Vector ? std::max(bits, 128) : 64;
}

/// These write one register and read only their address and memory; flags stay.
bool only_loads(Form form) {
  switch (form) {
    case Form::Lea:
    case Form::MovLoad:
    case Form::MovzxB:
    case Form::MovzxW:
    case Form::MovsxB:
    case Form::MovsxW:
    case Form::Movsxd:
    case Form::VMovups:
    case Form::VMovss:
    case Form::VMovsd:
    case Form::VBroadcastss:
    case Form::VBroadcastsd:
    case Form::VPbroadcastB:
    case Form::VPbroadcastW:
    case Form::VPbroadcastD:
    case Form::VPbroadcastQ:
    case Form::VBroadcastI128:
    case Form::VBroadcastI32x4:
    case Form::VBroadcastI64x4: return true;
    default: return false;
  }
}

/// Tiles have no moves, and go to memory and back by a register that holds the distance of rows.
void refuse_tiles(RegClass kind) {
  WEFT_CHECK(kind != RegClass::Tile, "more tiles than there are registers");
}

class X86Set final : public InstructionSet {
 public:
  explicit X86Set(size_t vectors) : vectors_(vectors) {}

  RegisterUses operands(Instruction& i) const override {
    RegisterUses out;
    if (i.form >= kForms) return out;
    const Description& d = describe(i);
    const bool gathers = d.memory == Memory::Lanes;
    if (i.has_memory) {
      const auto address = [&](Reg& r, RegClass kind) {
        if (r != kNoReg) out.push_back({&r, kind, OperandAccess::Read});
      };
      address(i.address.base, RegClass::General);
      address(i.address.index, gathers ? RegClass::Vector : RegClass::General);
    }
    if (i.mask != kNoReg)
      out.push_back(
          {&i.mask, RegClass::Mask, gathers ? OperandAccess::Modify : OperandAccess::Read});
    const bool merges = i.mask != kNoReg && !i.zeroing && !d.mask_selects;
    for (size_t k = 0; k < d.operand_count; ++k) {
      const Description::Operand& o = d.operands[k];
      if (o.access == OperandAccess::None || i.regs[k] == kNoReg) continue;
      const bool merged = merges && o.access == OperandAccess::Write && o.kind == RegClass::Vector;
      out.push_back({&i.regs[k], o.kind, merged ? OperandAccess::Modify : o.access, o.fixed});
    }
    return out;
  }

  // Registers that calls preserve come last: a kernel that needs none of them saves none.
  std::span<const Reg> allocatable(RegClass kind) const override {
    static constexpr Reg kGeneral[] = {0, 1, 2, 6, 7, 8, 9, 10, 11, 3, 5, 12, 13, 14, 15};
    static constexpr Reg kVector[] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
                                      11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                                      22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
    static constexpr Reg kMask[] = {1, 2, 3, 4, 5, 6, 7};
    static constexpr Reg kTile[] = {0, 1, 2, 3, 4, 5, 6, 7};
    if (kind == RegClass::Mask) return kMask;
    if (kind == RegClass::Tile) return kTile;
    if (kind == RegClass::Vector) return std::span(kVector).first(vectors_);
    return kGeneral;
  }

  Instruction move(RegClass kind, int bits, Reg to, Reg from) const override {
    refuse_tiles(kind);
    return make(move_form(kind), width_of(kind, bits), {to, from});
  }
  Instruction reload(RegClass kind, int bits, Reg to, int32_t offset) const override {
    refuse_tiles(kind);
    return make(reload_form(kind), width_of(kind, bits), {to}, frame(offset));
  }
  Instruction spill(RegClass kind, int bits, Reg from, int32_t offset) const override {
    refuse_tiles(kind);
    return make(spill_form(kind), width_of(kind, bits), {kNoReg, from}, frame(offset));
  }

  Repeat repeat(const Instruction& i) const override {
    if (i.form >= kForms || i.mask != kNoReg) return Repeat::Never;
    const auto form = static_cast<Form>(i.form);
    if (form == Form::MovI || form == Form::MovI32 || form == Form::MovI64)
      return i.has_memory ? Repeat::Never : Repeat::Anywhere;
    if (!i.has_memory || !only_loads(form)) return Repeat::Never;
    if (i.address.label >= 0) return Repeat::Anywhere;
    // The frame's contents change without a store in `stores`.
    return i.address.base == kRsp ? Repeat::Never : Repeat::WhileInputsStay;
  }

  bool stores(const Instruction& i) const override {
    if (i.form >= kForms || !i.has_memory || i.address.base == kRsp) return false;
    const Description& d = describe(i);
    for (size_t k = 0; k < d.operand_count; ++k)
      if (d.operands[k].role == Role::RegOrMemory) return writes(d.operands[k].access);
    return false;
  }

  bool is_move(const Instruction& i) const override {
    if (i.form >= kForms || i.has_memory || i.mask != kNoReg) return false;
    const auto form = static_cast<Form>(i.form);
    return (form == Form::Mov && i.width == 64) || form == Form::VMovaps || form == Form::KmovQ;
  }

  std::string print(const Instruction& i) const override { return x86::print(i); }

 private:
  static Address frame(int32_t offset) { return {.base = kRsp, .displacement = offset}; }
  size_t vectors_;
};

}  // namespace

Instruction make(Form form, int width, std::initializer_list<Reg> regs, int64_t immediate) {
  Instruction i;
  i.form = static_cast<uint16_t>(form);
  i.width = static_cast<uint16_t>(width);
  WEFT_CHECK(regs.size() <= kMaxOperands, "{} operands", regs.size());
  std::copy(regs.begin(), regs.end(), i.regs.begin());
  i.immediate = immediate;
  return i;
}

Instruction make(Form form, int width, std::initializer_list<Reg> regs, const Address& address,
                 int64_t immediate) {
  Instruction i = make(form, width, regs, immediate);
  i.has_memory = true;
  i.address = address;
  return i;
}

const InstructionSet& instruction_set(bool wide) {
  static const X86Set all(32), few(16);
  return wide ? all : few;
}

}  // namespace weft::x86
