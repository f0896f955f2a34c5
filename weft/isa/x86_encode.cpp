// Bytes of instructions: legacy, VEX and EVEX forms (Intel's manual, volume 2, chapter 2).
#include <cstring>
#include <utility>

#include "weft/base/error.h"
#include "weft/isa/x86.h"

namespace weft::x86 {
namespace {

bool fits_i8(int64_t v) { return v >= -128 && v <= 127; }

int vector_width(const Description& d, const Instruction& i) {
  return d.vector_width != 0 ? d.vector_width : i.width;
}

bool needs_evex(const Description& d, const Instruction& i) {
  if (!d.has_evex) return false;
  if (!d.has_vex || i.mask != kNoReg || i.broadcast || vector_width(d, i) == 512) return true;
  for (size_t k = 0; k < d.operand_count; ++k)
    if (d.operands[k].kind == RegClass::Vector && i.regs[k] != kNoReg && i.regs[k] >= 16)
      return true;
  return false;
}

}  // namespace

int memory_bytes(const Instruction& i) {
  const Description& d = describe(i);
  const int vector = vector_width(d, i) / 8, one = (d.bits != 0 ? d.bits : i.width) / 8;
  if (i.broadcast) return one;
  switch (d.memory) {
    case Memory::None:
    case Memory::Tile: return 0;
    case Memory::Full:
    case Memory::FullB: return vector;
    case Memory::Half:
    case Memory::HalfB: return vector / 2;
    case Memory::Quarter: return vector / 4;
    case Memory::Eighth: return vector / 8;
    case Memory::One:
    case Memory::Lanes: return one;
    case Memory::B16: return 16;
    case Memory::B32: return 32;
  }
  return 0;
}

CpuFeatures required_features(const Instruction& i) {
  CpuFeatures needed;
  const Description& d = describe(i);
  if (!needs_evex(d, i)) {
    if (d.has_vex) needed.set(d.vex, true);
    return needed;
  }
  needed.set(d.evex, true);
  const bool lanes = d.operands[0].letter != 'x' && vector_width(d, i) < 512;
  if (lanes) needed.set(CpuFeature::Avx512vl, true);  // shorter vectors; scalars do without
  return needed;
}

/// One instruction on its way into bytes.
class Writer {
 public:
  Writer(Encoder& to, const Instruction& i) : to_(to), i_(i), d_(describe(i)) { gather(); }

  void write() {
    shorten();
    if (jump_ >= 0) return write_jump();
    if (d_.legacy())
      write_legacy_prefix();
    else if (needs_evex(d_, i_))
      write_evex();
    else
      write_vex();
    byte(opcode_);
    if (modrm_) write_modrm();
    write_immediate();
    for (size_t f = first_fixup_; f < to_.fixups_.size(); ++f)
      to_.fixups_[f].addend -= static_cast<int32_t>(position() - to_.fixups_[f].at);
    flush();
  }

 private:
  static constexpr size_t kLongest = 15;  // bytes of an instruction

  void byte(uint64_t b) { bytes_[size_++] = static_cast<uint8_t>(b); }
  void bytes(uint64_t v, int count) {
    for (int k = 0; k < count; ++k) byte(v >> (8 * k));
  }

  size_t position() const { return to_.code_.size() + size_; }
  void flush() { to_.code_.insert(to_.code_.end(), bytes_.begin(), bytes_.begin() + size_); }

  /// Puts operands into the fields that their roles name.
  void gather() {
    opcode_ = d_.opcode;
    if (d_.digit >= 0) reg_ = static_cast<Reg>(d_.digit), modrm_ = true;
    for (size_t k = 0; k < d_.operand_count; ++k) {
      const Reg r = i_.regs[k];
      switch (d_.operands[k].role) {
        case Role::None:
        case Role::Fixed: break;
        case Role::Reg: reg_ = number(r), modrm_ = true; break;
        case Role::RegOrMemory:
          modrm_ = true;
          if (!i_.has_memory) rm_ = number(r);
          break;
        case Role::Vex: vex_ = number(r); break;
        case Role::Opcode:
          rm_ = number(r), opcode_ = static_cast<uint8_t>(opcode_ + (r & 7));
          break;
        case Role::Immediate: immediate_ = d_.operands[k].letter; break;
        case Role::Jump: jump_ = i_.label; break;
        case Role::High4: immediate_ = '4', high4_ = number(r); break;
        case Role::Condition: opcode_ = static_cast<uint8_t>(opcode_ + i_.immediate); break;
      }
    }
    WEFT_CHECK(!i_.has_memory || (modrm_ && d_.memory != Memory::None) ||
                   static_cast<Form>(i_.form) == Form::Lea,
               "{} has no memory operand", d_.name);
  }

  Reg number(Reg r) const {
    WEFT_CHECK(r < 32, "{} has an operand without a register", d_.name);
    return r;
  }

  /// Shorter encodings of the same instruction.
  void shorten() {
    if (immediate_ == 'n' && (opcode_ == 0x81 || opcode_ == 0x69)) {
      if (fits_i8(i_.immediate)) {
        opcode_ += 2;
        immediate_ = 'i';
      } else if (opcode_ == 0x81 && rm_ == 0 && !i_.has_memory) {  // rax has an opcode of its own
        opcode_ = static_cast<uint8_t>(reg_ << 3 | 5);
        modrm_ = false;
      }
    }
    if (d_.legacy() && opcode_ == 0xC1 && i_.immediate == 1) {  // shifts by one
      opcode_ = 0xD1;
      immediate_ = 0;
    }
  }

  bool w(bool evex) const {
    return d_.w == '1' || (d_.w == 'e' && evex) || (d_.w == 'w' && i_.width == 64);
  }
  Reg base() const {
    if (!i_.has_memory) return rm_;
    return i_.address.base == kNoReg ? 0 : i_.address.base;
  }
  Reg index() const { return i_.has_memory && i_.address.index != kNoReg ? i_.address.index : 0; }

  /// Registers 4 to 7 as bytes are spl to dil only after a REX prefix.
  bool is_high_byte() const {
    for (size_t k = 0; k < d_.operand_count; ++k)
      if (d_.operands[k].letter == 'b' && i_.regs[k] != kNoReg && i_.regs[k] >= 4) return true;
    return false;
  }

  void write_legacy_prefix() {
    constexpr uint8_t kPrefix[] = {0, 0x66, 0xF3, 0xF2};
    if (d_.prefix != 0) byte(kPrefix[d_.prefix]);
    const auto rex =
        (w(false) ? 8 : 0) | (reg_ >> 3 & 1) << 2 | (index() >> 3 & 1) << 1 | (base() >> 3 & 1);
    if (rex != 0 || is_high_byte()) byte(0x40 | rex);
    if (d_.map != 0) byte(0x0F);
    if (d_.map == 2) byte(0x38);
    if (d_.map == 3) byte(0x3A);
  }

  void write_vex() {
    const uint32_t r = ~reg_ >> 3 & 1, x = ~index() >> 3 & 1, b = ~base() >> 3 & 1;
    const uint32_t low = (~vex_ & 15) << 3 | (vector_width(d_, i_) == 256 ? 4 : 0) | d_.prefix;
    if (x == 1 && b == 1 && !w(false) && d_.map == 1) {
      byte(0xC5);
      return byte(r << 7 | low);
    }
    byte(0xC4);
    byte(r << 7 | x << 6 | b << 5 | d_.map);
    byte((w(false) ? 0x80U : 0U) | low);
  }

  void write_evex() {
    evex_ = true;
    // A register in rm has its fifth bit where memory has its index's fourth.
    const uint32_t x = i_.has_memory ? index() >> 3 & 1 : rm_ >> 4 & 1;
    // Where it is a vector, the index's fifth is that of vvvv, which is not used then.
    const uint32_t fifth = (d_.memory == Memory::Lanes ? index() : vex_) >> 4 & 1;
    const int width = vector_width(d_, i_);
    const uint32_t length = width == 512 ? 2 : width == 256 ? 1 : 0;
    byte(0x62);
    byte((~reg_ >> 3 & 1) << 7 | (~x & 1) << 6 | (~base() >> 3 & 1) << 5 | (~reg_ >> 4 & 1) << 4 |
         d_.map);
    byte((w(true) ? 0x80U : 0U) | (~vex_ & 15) << 3 | 4 | d_.prefix);
    byte((i_.zeroing ? 0x80U : 0U) | length << 5 | (i_.broadcast ? 16U : 0U) | (~fifth & 1) << 3 |
         (i_.mask == kNoReg ? 0 : i_.mask & 7));
  }

  void write_modrm() {
    const uint32_t reg = (reg_ & 7) << 3;
    if (!i_.has_memory) return byte(0xC0 | reg | (rm_ & 7));
    const Address& a = i_.address;
    if (a.label >= 0) {
      byte(reg | 5);
      return distance(a.label, a.displacement);
    }
    WEFT_CHECK(a.index != kRsp || d_.memory == Memory::Lanes, "{} indexes with the stack pointer",
               d_.name);
    if (a.base == kNoReg) {
      byte(reg | 4);
      write_sib(5);
      return bytes(static_cast<uint32_t>(a.displacement), 4);
    }
    const int step = evex_ ? memory_bytes(i_) : 1;  // EVEX counts short displacements in operands
    const bool small = a.displacement % step == 0 && fits_i8(a.displacement / step);
    const bool none = a.displacement == 0 && (a.base & 7) != kRbp;
    const bool sib = a.index != kNoReg || (a.base & 7) == kRsp;
    byte((none ? 0U : small ? 0x40U : 0x80U) | reg | (sib ? 4 : a.base & 7));
    if (sib) write_sib(a.base & 7);
    if (!none)
      bytes(static_cast<uint64_t>(small ? a.displacement / step : a.displacement), small ? 1 : 4);
  }

  void write_sib(uint32_t base) {
    const Address& a = i_.address;
    const uint32_t log = a.scale == 8 ? 3 : a.scale == 4 ? 2 : a.scale == 2 ? 1 : 0;
    byte(log << 6 | (a.index == kNoReg ? 4 : a.index & 7) << 3 | base);
  }

  void distance(int32_t label, int32_t addend) {
    to_.fixups_.push_back({position(), label, addend});
    bytes(0, 4);
  }

  void write_immediate() {
    switch (immediate_) {
      case 'i': return bytes(static_cast<uint64_t>(i_.immediate), 1);
      case 'n': return bytes(static_cast<uint64_t>(i_.immediate), 4);
      case 'N': return bytes(static_cast<uint64_t>(i_.immediate), 8);
      case '4': return byte((high4_ & 15) << 4);
      default: return;
    }
  }

  /// Backward jumps know how far they go; forward ones leave room for any distance.
  void write_jump() {
    const bool conditional = static_cast<Form>(i_.form) == Form::Jcc;
    const auto label = static_cast<size_t>(jump_);
    if (label < to_.labels_.size() && to_.labels_[label] >= 0) {
      const int64_t distance = to_.labels_[label] - static_cast<int64_t>(to_.code_.size()) - 2;
      if (fits_i8(distance)) {
        byte(conditional ? opcode_ - 0x10U : 0xEBU);
        byte(static_cast<uint64_t>(distance));
        return flush();
      }
    }
    if (conditional) byte(0x0F);
    byte(opcode_);
    distance(jump_, -4);
    flush();
  }

  Encoder& to_;
  const Instruction& i_;
  const Description& d_;
  std::array<uint8_t, kLongest + 1> bytes_;
  uint8_t size_ = 0;
  const size_t first_fixup_ = to_.fixups_.size();
  uint8_t opcode_ = 0;
  bool modrm_ = false, evex_ = false;
  Reg reg_ = 0, rm_ = 0, vex_ = 0, high4_ = 0;
  char immediate_ = 0;  // the operand's letter; '4' for a register; 0 for none
  int32_t jump_ = -1;
};

void Encoder::emit(const Instruction& i) {
  if (i.form == kLabel) bind(i.label);
  if (i.form < kForms) Writer(*this, i).write();
}

void Encoder::bind(int32_t label) {
  if (static_cast<size_t>(label) >= labels_.size())
    labels_.resize(static_cast<size_t>(label) + 1, -1);
  labels_[static_cast<size_t>(label)] = static_cast<int64_t>(code_.size());
}

// The recommended sequences for 1 to 9 bytes (Intel's manual, volume 2, NOP).
void Encoder::align(size_t bytes) {
  static constexpr uint8_t kNops[9][9] = {{0x90},
                                          {0x66, 0x90},
                                          {0x0F, 0x1F, 0x00},
                                          {0x0F, 0x1F, 0x40, 0x00},
                                          {0x0F, 0x1F, 0x44, 0x00, 0x00},
                                          {0x66, 0x0F, 0x1F, 0x44, 0x00, 0x00},
                                          {0x0F, 0x1F, 0x80, 0x00, 0x00, 0x00, 0x00},
                                          {0x0F, 0x1F, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00},
                                          {0x66, 0x0F, 0x1F, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00}};
  for (size_t left = (bytes - code_.size() % bytes) % bytes; left != 0;) {
    const size_t n = left < 9 ? left : 9;
    data({kNops[n - 1], n});
    left -= n;
  }
}

void Encoder::data(std::span<const uint8_t> bytes) {
  code_.insert(code_.end(), bytes.begin(), bytes.end());
}

std::vector<uint8_t> Encoder::finish() {
  for (const Fixup& f : fixups_) {
    const auto label = static_cast<size_t>(f.label);
    WEFT_CHECK(label < labels_.size() && labels_[label] >= 0, "label {} is not bound", f.label);
    const auto distance =
        static_cast<int32_t>(labels_[label] - static_cast<int64_t>(f.at)) + f.addend;
    std::memcpy(code_.data() + f.at, &distance, 4);
  }
  labels_.clear();
  fixups_.clear();
  return std::exchange(code_, {});
}

}  // namespace weft::x86
