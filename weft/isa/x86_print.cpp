// Intel syntax.
#include <algorithm>

#include "weft/base/format.h"
#include "weft/isa/x86.h"

namespace weft::x86 {
namespace {

constexpr std::string_view kGeneral[] = {"ax", "cx", "dx", "bx", "sp", "bp", "si", "di"};
constexpr std::string_view kConditions[] = {"o", "no", "b", "ae", "e", "ne", "be", "a",
                                            "s", "ns", "p", "np", "l", "ge", "le", "g"};

std::string general_name(Reg r, int bits) {
  if (r >= 8)
    return strformat("r{}{}", r, bits == 64 ? "" : bits == 32 ? "d" : bits == 16 ? "w" : "b");
  const std::string_view name = kGeneral[r];
  if (bits == 8) return r < 4 ? strformat("{}l", name[0]) : strformat("{}l", name);
  return strformat("{}{}", bits == 64 ? "r" : bits == 32 ? "e" : "", name);
}

std::string operand_register(const Instruction& i, char letter, Reg r) {
  switch (letter) {
    case 'v':
    case 'V':
    case 'Z': return register_name(RegClass::Vector, r, i.width);
    case 'h': return register_name(RegClass::Vector, r, i.width / 2);
    case 'q': return register_name(RegClass::Vector, r, i.width / 4);
    case 'e':
    case 'x': return register_name(RegClass::Vector, r, 128);
    case 'y': return register_name(RegClass::Vector, r, 256);
    case 'k': return register_name(RegClass::Mask, r, 64);
    case 'T': return register_name(RegClass::Tile, r, 0);
    case 'r': return register_name(RegClass::General, r, i.width);
    case 'd': return register_name(RegClass::General, r, 32);
    case 'w': return register_name(RegClass::General, r, 16);
    case 'b': return register_name(RegClass::General, r, 8);
    default: return register_name(RegClass::General, r, 64);
  }
}

std::string_view size_name(int bytes) {
  switch (bytes) {
    case 1: return "byte ptr ";
    case 2: return "word ptr ";
    case 4: return "dword ptr ";
    case 8: return "qword ptr ";
    case 16: return "xmmword ptr ";
    case 32: return "ymmword ptr ";
    case 64: return "zmmword ptr ";
    default: return "";
  }
}

std::string memory_text(const Instruction& i) {
  const Address& a = i.address;
  std::string inside;
  auto term = [&](const std::string& text) { inside += (inside.empty() ? "" : " + ") + text; };
  if (a.label >= 0) term(strformat("rip + .L{}", a.label));
  if (a.base != kNoReg) term(register_name(RegClass::General, a.base, 64));
  const bool lanes = describe(i).memory == Memory::Lanes;
  if (a.index != kNoReg)
    term(strformat("{}*{}", static_cast<int>(a.scale),
                   lanes ? register_name(RegClass::Vector, a.index, i.width)
                         : register_name(RegClass::General, a.index, 64)));
  if (a.displacement != 0 || inside.empty()) {
    const int64_t d = a.displacement;
    inside += inside.empty() ? strformat("{}", d)
                             : strformat(" {} {}", d < 0 ? '-' : '+', d < 0 ? -d : d);
  }
  return strformat("{}[{}]", size_name(lanes ? i.width / 8 : memory_bytes(i)), inside);
}

/// How many elements a broadcast fills.
int broadcast_count(const Instruction& i) {
  Instruction whole = i;
  whole.broadcast = false;
  return memory_bytes(whole) / std::max(1, memory_bytes(i));
}

}  // namespace

std::string register_name(RegClass kind, Reg number, int bits) {
  if (kind == RegClass::Mask) return strformat("k{}", number);
  if (kind == RegClass::Tile) return strformat("tmm{}", number);
  if (kind == RegClass::Vector)
    return strformat("{}mm{}", bits > 256 ? 'z' : bits > 128 ? 'y' : 'x', number);
  return general_name(number, bits);
}

std::string print(const Instruction& i) {
  if (i.form == kLabel) return strformat(".L{}:", i.label);
  if (i.form >= kForms) return i.form == kLoopBegin ? "# loop" : "# end of loop";
  const Description& d = describe(i);
  std::string out(d.mnemonic), separator = " ";
  for (size_t k = 0; k < d.operand_count; ++k) {
    const auto [role, letter, access, kind, fixed] = d.operands[k];
    if (role == Role::Fixed) continue;
    if (role == Role::Condition) {
      out += kConditions[i.immediate & 15];
      continue;
    }
    out += separator;
    separator = ", ";
    if (role == Role::Immediate)
      out += strformat("{}", i.immediate);
    else if (role == Role::Jump)
      out += strformat(".L{}", i.label);
    else if (role == Role::RegOrMemory && i.has_memory)
      out += memory_text(i) + (i.broadcast ? strformat("{{1to{}}}", broadcast_count(i)) : "");
    else
      out += operand_register(i, letter, i.regs[k]);
    if (k == 0 && i.mask != kNoReg) out += strformat(" {{k{}}}{}", i.mask, i.zeroing ? " {z}" : "");
  }
  return out;
}

}  // namespace weft::x86
