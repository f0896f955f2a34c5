// Machine code as data, the same for every instruction set: instructions over virtual registers,
// which allocation turns into the machine's.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "weft/base/small_vector.h"

namespace weft {

/// A register: the machine's number within its class (no machine has thousands), or from
/// kFirstVirtual on a virtual one.
using Reg = uint32_t;
constexpr Reg kFirstVirtual = 1 << 12, kNoReg = UINT32_MAX;
constexpr bool is_virtual(Reg r) { return r >= kFirstVirtual && r != kNoReg; }

enum class RegClass : uint8_t { None, General, Vector, Mask, Tile, Count };

/// What an instruction does with a register; Modify reads it, too.
enum class OperandAccess : uint8_t { None, Read, Write, Modify };
constexpr bool reads(OperandAccess a) {
  return a == OperandAccess::Read || a == OperandAccess::Modify;
}
constexpr bool writes(OperandAccess a) {
  return a == OperandAccess::Write || a == OperandAccess::Modify;
}

/// base + index * scale + displacement, or relative to a label.
struct Address {
  Reg base = kNoReg, index = kNoReg;
  int32_t displacement = 0;
  int32_t label = -1;  ///< >= 0: the address of a label, plus displacement; no base, no index
  uint8_t scale = 1;
};

constexpr size_t kMaxOperands = 4;

/// Forms from here on are marks that every instruction set has; they have no bytes of their own.
enum Pseudo : uint16_t {
  kLabel = 0xFF00,  ///< `label` is here
  kLoopBegin,  ///< from here to the matching kLoopEnd instructions may run repeatedly: as often
               ///< as its immediate says, where that is known and not 0
  kLoopEnd
};

struct Instruction {
  uint16_t form = kLabel;   ///< a row of the instruction set's table, or a Pseudo
  uint16_t width = 0;       ///< bits of the operands
  bool has_memory = false;  ///< the operand that may lie in memory is `address`
  bool broadcast = false;   ///< memory holds one element for all lanes
  bool zeroing = false;     ///< lanes that `mask` leaves out become zero instead of staying
  Reg mask = kNoReg;        ///< lanes to compute
  std::array<Reg, kMaxOperands> regs{kNoReg, kNoReg, kNoReg, kNoReg};  ///< in the row's order
  Address address = {};
  int64_t immediate = 0;  ///< or the condition, where the form has one
  int32_t label = -1;     ///< target of a jump, or of kLabel
};

/// A kernel as machine code. A virtual register may be written more than once; in a loop, what an
/// iteration reads before writing it was also written before the loop.
struct MachineProgram {
  struct Virtual {
    RegClass kind = RegClass::None;
    uint16_t bits = 0;   ///< of a spill slot
    Reg fixed = kNoReg;  ///< the machine's register it has to be (arguments, at entry)
  };
  /// Constants that instructions address by label.
  struct Data {
    int32_t label;
    std::vector<uint8_t> bytes;
  };
  std::vector<Instruction> code;
  std::vector<Data> data;
  std::vector<Virtual> registers;  ///< by number - kFirstVirtual
  int32_t labels = 0;
  int32_t frame_bytes = 0;     ///< of spill slots; set by allocation
  int32_t in_memory = 0;       ///< virtual registers that allocation gave a spill slot
  int32_t rematerialised = 0;  ///< and those that it computes again at every use

  Reg fresh(RegClass kind, int bits) {
    registers.push_back({kind, static_cast<uint16_t>(bits)});
    return kFirstVirtual + static_cast<Reg>(registers.size()) - 1;
  }
  Virtual& of(Reg r) { return registers[r - kFirstVirtual]; }
  const Virtual& of(Reg r) const { return registers[r - kFirstVirtual]; }
};

/// A register that an instruction names.
struct RegisterUse {
  Reg* reg;
  RegClass kind;
  OperandAccess access;
  Reg fixed = kNoReg;  ///< the machine's register that it has to be
};
using RegisterUses = SmallVector<RegisterUse, 8>;

/// Where an instruction may be repeated and gives the same value again.
enum class Repeat : uint8_t {
  Never,
  WhileInputsStay,  ///< where the registers it reads and the memory it loads have not changed
  Anywhere
};

/// What allocation has to know of an instruction set.
class InstructionSet {
 public:
  virtual ~InstructionSet() = default;
  /// All registers of `i` (none for pseudo-instructions): addresses and masks, then operands.
  virtual RegisterUses operands(Instruction& i) const = 0;
  /// The registers of a class that may be given out, preferred ones first.
  virtual std::span<const Reg> allocatable(RegClass kind) const = 0;
  virtual Instruction move(RegClass kind, int bits, Reg to, Reg from) const = 0;
  /// To and from the frame, at `offset` bytes.
  virtual Instruction reload(RegClass kind, int bits, Reg to, int32_t offset) const = 0;
  virtual Instruction spill(RegClass kind, int bits, Reg from, int32_t offset) const = 0;
  virtual Repeat repeat(const Instruction& i) const = 0;
  /// True if `i` changes memory other than the frame.
  virtual bool stores(const Instruction& i) const = 0;
  /// True if `i` copies its second operand to its first and does nothing else.
  virtual bool is_move(const Instruction& i) const = 0;
  virtual std::string print(const Instruction& i) const = 0;
};

}  // namespace weft
