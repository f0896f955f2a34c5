// Rows of x86.def, parsed at compile time.
#include "weft/isa/x86.h"

namespace weft::x86 {
namespace {

namespace feature {
using enum CpuFeature;
constexpr CpuFeature No = CpuFeature::Count;
}  // namespace feature

consteval Role role_of(char c) {
  switch (c) {
    case 'R': return Role::Reg;
    case 'M': return Role::RegOrMemory;
    case 'V': return Role::Vex;
    case 'O': return Role::Opcode;
    case 'I': return Role::Immediate;
    case 'D': return Role::Jump;
    case '4': return Role::High4;
    case 'F': return Role::Fixed;
    case 'c': return Role::Condition;
    default: throw "a role is one of RMVOID4cF";
  }
}

consteval OperandAccess access_of(char c) {
  switch (c) {
    case 'r': return OperandAccess::Read;
    case 'w':
    case 's': return OperandAccess::Write;
    case 'm': return OperandAccess::Modify;
    case '-': return OperandAccess::None;
    default: throw "access is one of rwsm-";
  }
}

consteval Reg fixed_of(char letter) { return letter == 'A' ? kRax : letter == 'D' ? kRdx : kNoReg; }

consteval bool is_one_of(char letter, std::string_view letters) {
  return letters.find(letter) != std::string_view::npos;
}

consteval RegClass class_of(char letter) {
  if (letter == 'k') return RegClass::Mask;
  if (letter == 'T') return RegClass::Tile;
  if (is_one_of(letter, "vVZhqexy")) return RegClass::Vector;
  return is_one_of(letter, "rdlbwAD") ? RegClass::General : RegClass::None;
}

/// Of the widest operand, where no operand has the instruction's width.
consteval uint16_t vector_width(std::string_view letters) {
  uint16_t fixed = 128, masks = 0;
  for (char c : letters) {
    if (is_one_of(c, "vVZhqe")) return 0;
    // Mask arithmetic of three operands has L = 1.
    if (c == 'y' || (c == 'k' && ++masks == 3)) fixed = 256;
  }
  return fixed;
}

consteval int hex(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  throw "an opcode is two hexadecimal digits";
}

/// The part of `text` up to `end`, which is consumed with it.
consteval std::string_view until(std::string_view& text, char end) {
  const size_t at = text.find(end);
  const std::string_view part = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return part;
}

template <size_t n>
consteval uint8_t place(std::string_view name, const std::string_view (&names)[n]) {
  for (uint8_t i = 0; i < n; ++i)
    if (names[i] == name) return i;
  throw "an unknown prefix or opcode map";
}

/// "66.0F38.0 B8 /2"
consteval void parse_encoding(std::string_view text, Description& d) {
  d.prefix = place(until(text, '.'), {"NP", "66", "F3", "F2"});
  d.map = place(until(text, '.'), {"00", "0F", "0F38", "0F3A"});
  d.w = until(text, ' ').at(0);
  const std::string_view opcode = until(text, ' ');
  d.opcode = static_cast<uint8_t>(hex(opcode.at(0)) * 16 + hex(opcode.at(1)));
  if (!text.empty()) d.digit = static_cast<int8_t>(hex(text.at(1)));
}

struct Row {
  std::string_view name, mnemonic, roles, operands, access, encoding;
  Memory memory;
  int bits;
  CpuFeature vex, evex;
  int latency;
  Port port;
};

consteval Description parse(const Row& row) {
  Description d;
  d.name = row.name;
  d.mnemonic = row.mnemonic;
  if (row.roles.size() != row.operands.size() || row.roles.size() != row.access.size())
    throw "roles, operands and access are parallel";
  for (size_t i = 0; i < row.roles.size(); ++i)
    d.operands[i] = {role_of(row.roles[i]), row.operands[i], access_of(row.access[i]),
                     class_of(row.operands[i]), fixed_of(row.operands[i])};
  d.vector_width = vector_width(row.operands);
  d.operand_count = static_cast<uint8_t>(row.roles.size());
  d.mask_selects = row.access.starts_with('s');
  parse_encoding(row.encoding, d);
  d.memory = row.memory;
  d.bits = static_cast<uint8_t>(row.bits);
  d.has_vex = row.vex != feature::No;
  d.has_evex = row.evex != feature::No;
  d.vex = row.vex;
  d.evex = row.evex;
  d.latency = static_cast<uint8_t>(row.latency);
  d.port = row.port;
  return d;
}

constexpr Description kDescriptions[] = {
#define X86(form, mnemonic, roles, operands, access, encoding, memory, bits, vex, evex, latency, \
            port)                                                                                \
  parse({#form, mnemonic, roles, operands, access, encoding, Memory::memory, bits, feature::vex, \
         feature::evex, latency, Port::port}),
#include "weft/isa/x86.def"
#undef X86
};

}  // namespace

const Description& describe(Form form) { return kDescriptions[static_cast<size_t>(form)]; }

}  // namespace weft::x86
