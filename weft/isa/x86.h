// x86-64: what a form is, an instruction's bytes and its text.
#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/isa/machine.h"
#include "weft/target/cpu_features.h"

namespace weft::x86 {

/// A row of x86.def.
enum class Form : uint16_t {
#define X86(form, ...) form,
#include "weft/isa/x86.def"
#undef X86
};
constexpr size_t kForms = 0
#define X86(...) +1
#include "weft/isa/x86.def"
#undef X86
    ;

/// Where an operand goes in the encoding, what it may be: a letter of each string of a row.
enum class Role : uint8_t {
  None,
  Reg,
  RegOrMemory,
  Vex,
  Opcode,
  Immediate,
  Jump,
  High4,
  Condition,
  Fixed
};

/// Bytes of a memory operand as a function of the vector's width and of an element.
enum class Memory : uint8_t {
  None,
  Full,
  FullB,
  Half,
  HalfB,
  Quarter,
  Eighth,
  One,
  B16,
  B32,
  Tile,
  Lanes
};

/// What an instruction occupies, for its order and for estimates.
enum class Port : uint8_t {
  None,
  Alu,
  Mul,
  Div,
  Branch,
  Store,
  FAdd,
  FMul,
  FDiv,
  VAlu,
  VMul,
  VShift,
  Shuffle,
  TileLoad,
  TileDot
};

/// A form, decoded from its row.
struct Description {
  std::string_view name, mnemonic;
  struct Operand {
    Role role = Role::None;
    char letter = 0;  ///< of the operand's class, see x86.def
    OperandAccess access = OperandAccess::None;
    RegClass kind = RegClass::None;
    Reg fixed = kNoReg;  ///< the register that it has to be
  };
  std::array<Operand, kMaxOperands> operands;
  uint8_t operand_count = 0;
  bool mask_selects = false;  ///< a mask chooses among sources; the destination's lanes are gone
  uint8_t prefix = 0;  ///< mandatory prefix as VEX and EVEX number it: 0 none, 1 66, 2 F3, 3 F2
  uint8_t map = 0;     ///< opcode map: 0 one byte, 1 0F, 2 0F38, 3 0F3A
  char w = '0';        ///< '0', '1', 'e' (1 in EVEX only), 'w' (1 where the width is 64)
  uint8_t opcode = 0;
  int8_t digit = -1;  ///< in modrm.reg, or -1
  Memory memory = Memory::None;
  uint8_t bits = 0;           ///< of an element
  uint16_t vector_width = 0;  ///< that prefixes say; 0: the instruction's
  CpuFeature vex{}, evex{};
  bool has_vex = false, has_evex = false;
  uint8_t latency = 0;
  Port port = Port::None;

  bool legacy() const { return !has_vex && !has_evex; }
};
const Description& describe(Form form);

constexpr Reg kRax = 0, kRdx = 2, kRsp = 4, kRbp = 5;
// Of the System V AMD64 ABI, section 3.2: where the first arguments of a function arrive, rdi, rsi
// and rdx, and what it has to leave as it was, rbx, rbp and r12 to r15.
constexpr Reg kArguments[] = {7, 6, 2};
constexpr Reg kCalleeSaved[] = {3, 5, 12, 13, 14, 15};

/// The row of an instruction that is no pseudo-instruction.
inline const Description& describe(const Instruction& i) {
  return describe(static_cast<Form>(i.form));
}

/// An instruction of this form; operands in the order of its row, memory's place left empty.
Instruction make(Form form, int width, std::initializer_list<Reg> regs, int64_t immediate = 0);
Instruction make(Form form, int width, std::initializer_list<Reg> regs, const Address& address,
                 int64_t immediate = 0);

/// Condition codes as opcodes number them.
enum Condition : uint8_t {
  kBelow = 2,
  kAboveEqual = 3,
  kEqual = 4,
  kNotEqual = 5,
  kBelowEqual = 6,
  kAbove = 7,
  kParity = 10,
  kNoParity = 11,
  kLess = 12,
  kGreaterEqual = 13,
  kLessEqual = 14,
  kGreater = 15
};

/// Predicates of float comparisons, as immediates; those of order are false where an operand is
/// NaN.
enum FloatPredicate : uint8_t {
  kFloatEq = 0,
  kUnordered = 3,  ///< an operand is NaN
  kFloatNe = 4,
  kOrdered = 7,
  kFloatLt = 0x11,
  kFloatLe = 0x12,
  kFloatGe = 0x1d
};

/// Bytes of one memory operand of the instruction.
int memory_bytes(const Instruction& i);

/// The CPU features that the encoding of the instruction needs; legacy encodings need none.
CpuFeatures required_features(const Instruction& i);

/// Turns instructions into bytes. Labels stand for positions: of jumps' targets and of constants.
class Encoder {
 public:
  /// Appends the bytes of `i`. Throws InternalError where registers or widths do not fit its form.
  void emit(const Instruction& i);
  /// Binds `label` to the present position.
  void bind(int32_t label);
  /// Pads with long no-operations to a multiple of `bytes`.
  void align(size_t bytes);
  /// Appends data (constants) as it is.
  void data(std::span<const uint8_t> bytes);
  /// Fills in the distances to labels; every label used must be bound. The encoder is empty
  /// afterwards.
  std::vector<uint8_t> finish();
  size_t size() const { return code_.size(); }

 private:
  friend class Writer;
  struct Fixup {
    size_t at;  // of the four bytes, which end the distance
    int32_t label;
    int32_t addend;
  };
  std::vector<uint8_t> code_;
  std::vector<int64_t> labels_;
  std::vector<Fixup> fixups_;
};

/// Intel syntax, as LLVM's assembler reads it: `vaddps zmm1 {k2} {z}, zmm3, dword ptr [rax +
/// 4*rcx]{1to16}`.
std::string print(const Instruction& i);

/// For allocation: rsp is the frame, k0 is no mask. Without AVX-512 (`wide`) there are 16 vector
/// registers, and instructions of VEX alone reach no more.
const InstructionSet& instruction_set(bool wide = true);

/// A register's name at a width in bits; `vector` of less than 128 bits are xmm.
std::string register_name(RegClass kind, Reg number, int bits);

}  // namespace weft::x86
