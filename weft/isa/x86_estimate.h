// What instructions take, estimated from the tables of cores: for people who read listings.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/isa/x86.h"
#include "weft/target/core.h"

namespace weft::x86 {

/// Cycles from operands to result, with what loading an operand adds. Of an unknown core Zen 5's.
int latency(const Instruction& i, Core core);

/// Whose the numbers are and where they are from, for whoever reads estimates.
std::string estimate_source(Core core);

/// What an instruction does with the memory that it names.
struct MemoryUse {
  bool loads = false, stores = false;
};
MemoryUse memory_use(const Instruction& i);

/// What a stretch of code takes when it is repeated many times. Jumps are taken to be foreseen,
/// memory to be in the L1 cache, and what is stored not to be loaded again.
struct Estimate {
  struct Taken {
    std::string_view resource;
    double cycles;
  };
  int instructions = 0;
  double ports = 0;                ///< cycles of the busiest resource
  std::string_view busiest;        ///< which one that is
  double chain = 0;                ///< cycles that one repetition waits for the one before
  int64_t loaded = 0, stored = 0;  ///< bytes, the frame's included
  std::vector<Taken> taken;        ///< of every resource that is, the busiest first

  double cycles() const { return ports > chain ? ports : chain; }
};
Estimate estimate_loop(std::span<const Instruction> body, Core core);
/// "30 instructions, 12.0 cycles (fmul 6.0, chain 12.0), 64 bytes in, 0 out".
std::string text_of(const Estimate& estimate);

/// The resource an instruction takes, as the table calls it; "load" for what does nothing else.
std::string_view port_name(const Instruction& i);

}  // namespace weft::x86
