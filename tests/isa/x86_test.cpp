// Every row of x86.def against LLVM's assembler, and what the encoder does with labels.
#include <gtest/gtest.h>

#include <fstream>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/isa/x86.h"
#include "weft/trust/random.h"

namespace weft::x86 {
namespace {

constexpr size_t kSlot = 16;  // every instruction starts at a multiple: none is longer

/// What LLVM makes of the lines; `after` follows each and pads it to a slot.
std::vector<uint8_t> assembled(const std::vector<std::string>& lines,
                               std::string_view after = ".balign 16, 0xcc\n") {
  const std::string stem = strformat("{}/weft_x86_{}", ::testing::TempDir(), ::getpid());
  {
    std::ofstream text(stem + ".s");
    text << ".intel_syntax noprefix\n.text\n";
    for (const std::string& line : lines) text << line << "\n" << after;
  }
  const std::string command =
      strformat("clang-19 -c {0}.s -o {0}.o && objcopy -O binary -j .text {0}.o {0}.bin", stem);
  EXPECT_EQ(std::system(command.c_str()), 0) << "the assembler refused " << stem << ".s";
  std::ifstream binary(stem + ".bin", std::ios::binary);
  return {std::istreambuf_iterator<char>(binary), {}};
}

std::string hex(std::span<const uint8_t> bytes) {
  std::string out;
  for (uint8_t b : bytes) out += strformat("{:02x} ", b);
  return out;
}

/// Random instructions of one form.
class Samples {
 public:
  Samples(Form form, uint64_t seed) : d_(describe(form)), random_(seed) {
    i_.form = static_cast<uint16_t>(form);
  }

  Instruction next() {
    const uint16_t form = i_.form;
    i_ = {};
    i_.form = form;
    choose_width();
    evex_ = d_.has_evex && (!d_.has_vex || i_.width == 512 || one_in(2));
    for (size_t k = 0; k < d_.operand_count; ++k) choose_operand(k);
    if (evex_) choose_mask();
    avoid_what_llvm_rewrites();
    return i_;
  }

 private:
  bool is(Form form) const { return i_.form == static_cast<uint16_t>(form); }
  int64_t below(int64_t n) { return random_.below(n); }
  bool one_in(int64_t n) { return below(n) == 0; }
  bool has_letter(std::string_view letters) const {
    for (size_t k = 0; k < d_.operand_count; ++k)
      if (letters.find(d_.operands[k].letter) != std::string_view::npos) return true;
    return false;
  }

  void choose_width() {
    if (d_.legacy() || has_letter("r"))
      i_.width = one_in(2) ? 64 : 32;
    else if (has_letter("Z"))
      i_.width = 512;
    else if (has_letter("V"))
      i_.width = d_.has_evex && one_in(2) ? 512 : 256;
    else if (has_letter("vhqe"))
      i_.width = static_cast<uint16_t>(128 << below(d_.has_evex ? 3 : 2));
    else
      i_.width = 128;
  }

  Reg vector() { return static_cast<Reg>(below(evex_ ? 32 : 16)); }
  Reg general() { return static_cast<Reg>(below(16)); }
  /// Another one than those before.
  Reg tile(size_t k) {
    const Reg first = static_cast<Reg>(below(8));
    return k == 0 ? first : (i_.regs[0] + static_cast<Reg>(k)) % 8;
  }

  void choose_operand(size_t k) {
    const auto [role, letter, access, kind, fixed] = d_.operands[k];
    if (role == Role::RegOrMemory && d_.memory != Memory::None && (letter == 'M' || one_in(2)))
      return choose_memory();
    if (role == Role::RegOrMemory && letter == 'M') return choose_memory();
    switch (letter) {
      case 'k': i_.regs[k] = static_cast<Reg>(below(8)); break;
      case 'T': i_.regs[k] = tile(k); break;
      case 'i': i_.immediate = below(128); break;
      case 'n': i_.immediate = one_in(2) ? below(256) - 128 : below(1LL << 32) - (1LL << 31); break;
      case 'N': i_.immediate = INT64_MAX - below(1000); break;
      case 'c': i_.immediate = below(16); break;
      case 'v':
      case 'V':
      case 'Z':
      case 'h':
      case 'q':
      case 'e':
      case 'x':
      case 'y': i_.regs[k] = vector(); break;
      default: i_.regs[k] = general();
    }
  }

  void choose_memory() {
    i_.has_memory = true;
    Address& a = i_.address;
    if (!one_in(8)) a.base = general();
    if (one_in(2) || has_letter("T")) a.index = general();
    if (a.index == kRsp && has_letter("T")) a.index = 0;
    if (a.index == kRsp) a.index = kNoReg;
    if (d_.memory == Memory::Lanes) a.index = (i_.regs[0] + 1 + static_cast<Reg>(below(31))) % 32;
    a.scale = static_cast<uint8_t>(a.index == kNoReg ? 1 : 1 << below(4));
    const int64_t step = one_in(2) ? 64 : 1;
    a.displacement = static_cast<int32_t>(one_in(3)   ? 0
                                          : one_in(2) ? (below(200) - 100) * step
                                                      : below(1 << 30) - (1 << 29));
    const bool may = d_.memory == Memory::FullB || d_.memory == Memory::HalfB;
    i_.broadcast = may && evex_ && one_in(3);
  }

  /// Masks where the first operand is a vector, or a mask made by a comparison.
  void choose_mask() {
    const char first = d_.operands[0].letter;
    const bool compares = first == 'k' && d_.operand_count >= 3;
    const bool vector = std::string_view("vVZhqeM").find(first) != std::string_view::npos;
    if (is(Form::VMovntps) || d_.name.starts_with("VPmovm2") || d_.name.starts_with("VPextr"))
      return;
    if (d_.memory == Memory::One && first == 'M') return;
    const bool fixed = d_.bits == 8 && is(Form::VPalignr);
    const bool gathers = d_.memory == Memory::Lanes;
    if (!gathers && ((!compares && !vector) || fixed || one_in(2))) return;
    i_.mask = static_cast<Reg>(1 + below(7));
    i_.zeroing = !compares && !gathers &&
                 !(d_.operands[0].role == Role::RegOrMemory && i_.has_memory) && one_in(2);
  }

  /// LLVM swaps operands where that saves a byte, and knows special forms of the first register;
  /// what we emit is right too, but not the same bytes.
  void avoid_what_llvm_rewrites() {
    const std::string_view name = d_.name;
    if (name.starts_with("Movsx") && !i_.has_memory && i_.regs[0] == 0) i_.regs[0] = 1;
    if (is(Form::MovI) && !i_.has_memory) i_.width = 64;
    if (d_.legacy() || i_.has_memory || !d_.has_vex) return;
    auto high = [&](size_t k) { return i_.regs[k] != kNoReg && (i_.regs[k] & 8) != 0; };
    if (d_.operand_count >= 3 && high(2) && !high(1)) i_.regs[1] = i_.regs[1] | 8;
    if (name.starts_with("VMov") && high(1) && !high(0)) i_.regs[0] = i_.regs[0] | 8;
  }

  const Description& d_;
  Random random_;
  Instruction i_;
  bool evex_ = false;
};

TEST(X86, EveryFormHasLlvmsBytes) {
  std::vector<std::string> lines;
  std::vector<uint8_t> ours;
  for (size_t f = 0; f < kForms; ++f) {
    const auto form = static_cast<Form>(f);
    if (form == Form::Jcc || form == Form::Jmp) continue;  // see the next test
    Samples samples(form, f);
    for (int n = 0; n < 40; ++n) {
      const Instruction i = samples.next();
      Encoder encoder;
      encoder.emit(i);
      std::vector<uint8_t> bytes = encoder.finish();
      ASSERT_LE(bytes.size(), 15U) << print(i);
      bytes.resize(kSlot, 0xcc);
      ours.insert(ours.end(), bytes.begin(), bytes.end());
      lines.push_back(print(i));
    }
  }
  EXPECT_GE(lines.size(), 10'000U);
  const std::vector<uint8_t> theirs = assembled(lines);
  ASSERT_EQ(theirs.size(), ours.size());
  int wrong = 0;
  for (size_t n = 0; n < lines.size() && wrong < 20; ++n) {
    const auto a = std::span<const uint8_t>(ours).subspan(n * kSlot, kSlot);
    const auto b = std::span<const uint8_t>(theirs).subspan(n * kSlot, kSlot);
    if (std::equal(a.begin(), a.end(), b.begin())) continue;
    ++wrong;
    ADD_FAILURE() << lines[n] << "\nours  " << hex(a) << "\nLLVM  " << hex(b);
  }
}

/// A line of text beside the instruction.
struct Listing {
  Encoder encoder;
  std::vector<std::string> lines;

  void emit(const Instruction& i) {
    encoder.emit(i);
    lines.push_back(print(i));
  }
  void bind(int32_t label) {
    encoder.bind(label);
    lines.push_back(strformat(".L{}:", label));
  }
  void far_away() {
    const std::vector<uint8_t> filler(200, 0x90);
    encoder.data(filler);
    lines.push_back(".fill 200, 1, 0x90");
  }
  void jump(int32_t label) {
    Instruction i = make(Form::Jmp, 0, {});
    i.label = label;
    emit(i);
    i = make(Form::Jcc, 0, {}, kLess);
    i.label = label;
    emit(i);
  }
};

TEST(X86, LabelsGiveLlvmsDistances) {
  Listing l;
  l.jump(1);
  l.emit(make(Form::VAddPs, 512, {1, 2}, Address{.label = 2}));
  l.emit(make(Form::VPshufD, 128, {3}, Address{.displacement = 16, .label = 2}, 27));
  l.bind(0);
  l.jump(0);
  l.far_away();
  l.jump(0);
  l.bind(1);
  l.jump(1);
  l.bind(2);
  const std::vector<uint8_t> ours = l.encoder.finish();
  EXPECT_EQ(hex(ours), hex(assembled(l.lines, "")));
}

TEST(X86, AlignmentIsOneRunOfNoOperations) {
  for (size_t have = 0; have < 64; ++have) {
    Encoder encoder;
    encoder.data(std::vector<uint8_t>(have, 0xc3));
    encoder.align(64);
    EXPECT_EQ(encoder.size(), have == 0 ? 0U : 64U);
  }
}

TEST(X86, WhatNoEncodingHasIsOurError) {
  Encoder encoder;
  EXPECT_THROW(encoder.emit(make(Form::VAddPs, 512, {1, 2})), InternalError);
  EXPECT_THROW(encoder.emit(make(Form::VAddPs, 512, {1, 2, kFirstVirtual})), InternalError);
  EXPECT_THROW(encoder.emit(make(Form::MovLoad, 64, {0}, Address{.base = 0, .index = kRsp})),
               InternalError);
  Instruction jump = make(Form::Jmp, 0, {});
  jump.label = 7;
  Encoder unbound;
  unbound.emit(jump);
  EXPECT_THROW(unbound.finish(), InternalError);
}

TEST(X86, TextIsIntelSyntax) {
  Instruction i = make(Form::VFmadd231Ps, 512, {1, 30},
                       Address{.base = 0, .index = 9, .displacement = -8, .scale = 4});
  i.broadcast = i.zeroing = true;
  i.mask = 2;
  EXPECT_EQ(print(i), "vfmadd231ps zmm1 {k2} {z}, zmm30, dword ptr [rax + 4*r9 - 8]{1to16}");
}

TEST(X86, FeaturesAreThoseOfTheEncoding) {
  auto needed = [](Instruction i) { return required_features(i).text(); };
  EXPECT_EQ(needed(make(Form::VAddPs, 256, {1, 2, 3})), "avx");
  EXPECT_EQ(needed(make(Form::VAddPs, 256, {16, 2, 3})), "avx512f avx512vl");
  EXPECT_EQ(needed(make(Form::VAddPs, 512, {1, 2, 3})), "avx512f");
  EXPECT_EQ(needed(make(Form::VAddSs, 128, {1, 20, 3})), "avx512f");
  EXPECT_EQ(needed(make(Form::VPaddB, 256, {1, 2}, Address{.base = 0})), "avx2");
  EXPECT_EQ(needed(make(Form::VPmulUdq, 128, {1, 2, 31})), "avx512f avx512vl");
  EXPECT_EQ(needed(make(Form::KandQ, 64, {1, 2, 3})), "avx512bw");
  EXPECT_EQ(needed(make(Form::Shlx, 64, {1, 2, 3})), "bmi2");
  EXPECT_EQ(needed(make(Form::Add, 64, {1, 2})), "");
  Instruction masked = make(Form::VMovups, 256, {1, 2});
  masked.mask = 1;
  EXPECT_EQ(needed(masked), "avx512f avx512vl");
}

TEST(X86, OperandsAreWhatTheRowsSay) {
  const InstructionSet& set = instruction_set();
  Instruction fma = make(Form::VFmadd231Ps, 512, {65, 66}, Address{.base = 67, .index = 68});
  fma.mask = 69;
  std::string text;
  for (const RegisterUse& o : set.operands(fma))
    text += strformat("{}:{}{} ", *o.reg, static_cast<int>(o.kind), static_cast<int>(o.access));
  EXPECT_EQ(text, "67:11 68:11 69:31 65:23 66:21 ");
  Instruction merge = make(Form::VMovups, 512, {65, 66});
  merge.mask = 67;
  EXPECT_EQ(set.operands(merge)[1].access, OperandAccess::Modify);
  Instruction select = make(Form::VPblendmD, 512, {65, 66, 67});
  select.mask = 68;
  EXPECT_EQ(set.operands(select)[1].access, OperandAccess::Write);
  Instruction divide = make(Form::Idiv, 64, {65, 66, 67});
  EXPECT_EQ(set.operands(divide)[1].fixed, kRax);
  EXPECT_EQ(set.operands(divide)[2].fixed, kRdx);
}

}  // namespace
}  // namespace weft::x86
