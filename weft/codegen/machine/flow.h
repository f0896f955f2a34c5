// Control flow of machine code, and where its registers hold values that are still needed: for
// people who look at it. Nothing is compiled by it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "weft/codegen/code_line.h"

namespace weft::codegen {

constexpr uint32_t kNoLoop = UINT32_MAX;

/// Lines that run one after the other.
struct CodeBlock {
  uint32_t begin = 0, end = 0;      ///< lines, the marks before its first instruction included
  std::vector<uint32_t> next = {};  ///< blocks that may follow; the one below first
  uint32_t loop = kNoLoop;          ///< the innermost that it is part of
};
struct CodeLoop {
  uint32_t begin = 0, end = 0;  ///< lines, from its first mark to its last
  uint32_t parent = kNoLoop;
  int depth = 1;
};
struct ControlFlow {
  std::vector<CodeBlock> blocks;
  std::vector<CodeLoop> loops;  ///< in the order in which they begin
};
/// Loops must be balanced, jumps may go to labels that are not there.
ControlFlow control_flow(std::span<const CodeLine> lines);
/// Of each loop its instructions without those of the loops in it.
std::vector<std::vector<Instruction>> loop_bodies(std::span<const CodeLine> lines,
                                                  const ControlFlow& flow);

/// A register as one of those that the lines name.
struct NamedRegister {
  RegClass kind;
  Reg number;
  uint16_t bits;  ///< of the widest instruction that names it
  bool operator==(const NamedRegister&) const = default;
};
/// From the line that writes a value, or the first one, to the last that reads it, in the order of
/// the text: a value that goes round a loop lives in all of it.
struct RegisterLife {
  uint32_t reg;          ///< into `registers`
  uint32_t first, last;  ///< lines
};
struct RegisterLives {
  std::vector<NamedRegister> registers;  ///< by class, then by number
  std::vector<RegisterLife> lives;       ///< by first line
  /// Of each line, a character for each register: ' ' free, '|' holds what is needed later, 'v'
  /// written, '^' read for the last time, 'o' read or changed, 'x' read for the last time and
  /// written, or written for nobody.
  std::vector<std::string> uses;
};
/// Backward data flow over the blocks (Aho, Lam, Sethi, Ullman, "Compilers", 9.2.5). Registers are
/// the machine's.
RegisterLives register_lives(std::span<const CodeLine> lines, const ControlFlow& flow,
                             const InstructionSet& set);

}  // namespace weft::codegen
