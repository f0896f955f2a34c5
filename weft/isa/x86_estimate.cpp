#include "weft/isa/x86_estimate.h"

#include <algorithm>
#include <array>
#include <map>

#include "weft/base/format.h"

namespace weft::x86 {
namespace {

/// Instructions that begin in a cycle: up to 256 bits, and wider.
struct Rate {
  double narrow, wide;
  double operator()(bool is_wide) const { return is_wide ? wide : narrow; }
};

constexpr size_t kPorts = static_cast<size_t>(Port::TileDot) + 1;
constexpr std::string_view kPortNames[kPorts] = {
    "none", "alu",  "mul",  "div",    "branch",  "store",     "fadd",    "fmul",
    "fdiv", "valu", "vmul", "vshift", "shuffle", "tile load", "tile dot"};

/// What a core takes instructions with. Memory is the L1 cache. Good for finding what a loop waits
/// for, not for predicting its time.
struct CoreRow {
  Core core;
  std::string_view name, source;
  double dispatched;  // instructions in a cycle
  Rate loads;
  int load_latency, vector_load_latency;
  Rate vector_pipes;  // of all that is vectors' together
  Rate divider;       // part of its latency that a division keeps the divider
  Rate ports[kPorts];
};

// Tiles are of cores that have them: Intel, "64 and IA-32 Architectures Optimization Reference
// Manual", "Intel AMX": a load in 8 cycles, a product in 16.
constexpr Rate kTileLoad = {1.0 / 8, 1.0 / 8}, kTileDot = {1.0 / 16, 1.0 / 16};

// The first is taken for what is not known.
constexpr CoreRow kCores[] = {
    // Six integer pipes, four vector pipes of which two multiply and two add, two 512-bit loads or
    // four smaller ones and one 512-bit store or two smaller ones per cycle, eight instructions
    // dispatched. Entered from memory of that guide and not compared with it since.
    {Core::Zen5,
     "Zen 5",
     "AMD, Software Optimization Guide for the AMD Zen5 Microarchitecture, 58455",
     8,
     {4, 2},
     4,
     7,
     {4, 4},
     {0.5, 0.5},
     {{8, 8},
      {6, 6},
      {3, 3},
      {1, 1},
      {2, 2},
      {2, 1},
      {2, 2},
      {2, 2},
      {1, 1},
      {4, 4},
      {2, 2},
      {2, 2},
      {2, 2},
      kTileLoad,
      kTileDot}},
    // Four integer and four vector pipes of 256 bits, which take 512 in two turns; two loads of 256
    // bits and one store.
    {Core::Zen4,
     "Zen 4",
     "AMD, Software Optimization Guide for the AMD Zen4 Microarchitecture, 57647, as LLVM 19 has "
     "it",
     6,
     {2, 1},
     4,
     7,
     {4, 2},
     {0.27, 0.5},
     {{6, 6},
      {4, 4},
      {1, 1},
      {1, 1},
      {2, 2},
      {1, 0.5},
      {2, 1},
      {2, 1},
      {1, 1},
      {4, 2},
      {2, 1},
      {2, 1},
      {2, 1},
      kTileLoad,
      kTileDot}},
    // Ports 0, 1 and 5 take vectors, of 512 bits 0 with 1 and 5; five take integers. Two products
    // of
    // 512 bits in a cycle are the servers'; the others have one.
    {Core::GoldenCove,
     "Golden Cove",
     "Intel, 64 and IA-32 Architectures Optimization Reference Manual, 248966, as LLVM 19 has it",
     6,
     {3, 2},
     5,
     7,
     {3, 2},
     {0.5, 0.6},
     {{6, 6},
      {5, 5},
      {1, 1},
      {1.5, 1.5},
      {2, 2},
      {2, 1},
      {2, 2},
      {2, 2},
      {1, 1},
      {3, 2},
      {2, 1},
      {2, 1},
      {1, 1},
      kTileLoad,
      kTileDot}}};

const CoreRow& row_of(Core core) {
  for (const CoreRow& row : kCores)
    if (row.core == core) return row;
  return kCores[0];
}

/// Of the cores that x86.def is not about; 0: as there.
struct OtherLatencies {
  uint8_t zen4 = 0, golden_cove = 0;
};
constexpr std::array<OtherLatencies, kForms> kOtherLatencies = [] {
  std::array<OtherLatencies, kForms> out{};
#define X86_LATENCY(form, zen4, golden_cove) \
  out[static_cast<size_t>(Form::form)] = {zen4, golden_cove};
#include "weft/isa/x86_cores.def"
#undef X86_LATENCY
  return out;
}();

int form_latency(const Instruction& i, Core core) {
  const OtherLatencies& other = kOtherLatencies[i.form];
  const int own = core == Core::Zen4         ? other.zen4
                  : core == Core::GoldenCove ? other.golden_cove
                                             : 0;
  return own ? own : describe(i).latency;
}

bool is_wide(const Instruction& i) { return i.width > 256; }

bool is_vector(Port p) { return p >= Port::FAdd && p <= Port::Shuffle; }

/// Loads have the latency of a move in the table; broadcasts from memory are made by loading.
bool only_loads(const Instruction& i) {
  const Description& d = describe(i);
  return memory_use(i).loads && d.operand_count == 2 && d.latency <= 2;
}

class Estimator {
 public:
  explicit Estimator(Core core) : core_(row_of(core)) {}

  Estimate run(std::span<const Instruction> body) {
    for (const Instruction& i : body)
      if (i.form < kForms) count(i);
    Estimate& e = estimate_;
    taken_["dispatch"] = e.instructions / core_.dispatched;
    for (const auto& [name, cycles] : taken_) e.taken.push_back({name, cycles});
    std::ranges::sort(e.taken, {},
                      [](const Estimate::Taken& t) { return std::pair(-t.cycles, t.resource); });
    e.ports = e.taken[0].cycles, e.busiest = e.taken[0].resource;
    constexpr int kWarm = 4, kMeasured = 8;
    for (int k = 0; k < kWarm; ++k) step_all(body);
    const double before = latest();
    for (int k = 0; k < kMeasured; ++k) step_all(body);
    e.chain = (latest() - before) / kMeasured;
    return e;
  }

 private:
  void count(const Instruction& i) {
    const Description& d = describe(i);
    ++estimate_.instructions;
    const auto [loads, stores] = memory_use(i);
    const int bytes = loads || stores ? memory_bytes(i) : 0;
    if (loads) estimate_.loaded += bytes, taken_["load"] += 1 / core_.loads(bytes > 32);
    if (stores) estimate_.stored += bytes, taken_["store"] += 1 / rate(Port::Store)(bytes > 32);
    if (d.port == Port::Store || only_loads(i)) return;
    taken_[kPortNames[static_cast<size_t>(d.port)]] += occupancy(i);
    if (is_vector(d.port)) taken_["vector pipes"] += 1 / core_.vector_pipes(is_wide(i));
  }

  const Rate& rate(Port port) const { return core_.ports[static_cast<size_t>(port)]; }

  /// Cycles that an instruction keeps its resource; a divider takes the next operands before the
  /// result is there.
  double occupancy(const Instruction& i) const {
    const Port port = describe(i).port;
    if (port == Port::FDiv) return form_latency(i, core_.core) * core_.divider(is_wide(i));
    if (port == Port::Div) return form_latency(i, core_.core) / (2 * rate(port).narrow);
    return 1 / rate(port)(is_wide(i));
  }

  /// The instructions once more, each as soon as its operands are there.
  void step_all(std::span<const Instruction> body) {
    for (Instruction i : body) {
      if (i.form >= kForms) continue;
      const RegisterUses operands = instruction_set().operands(i);
      double start = 0;
      for (const RegisterUse& o : operands)
        if (reads(o.access)) start = std::max(start, ready_[{o.kind, *o.reg}]);
      for (const RegisterUse& o : operands)
        if (writes(o.access)) ready_[{o.kind, *o.reg}] = start + latency(i, core_.core);
    }
  }

  double latest() const {
    double last = 0;
    for (const auto& [reg, at] : ready_) last = std::max(last, at);
    return last;
  }

  const CoreRow& core_;
  Estimate estimate_;
  std::map<std::string_view, double> taken_;  // cycles by resource
  std::map<std::pair<RegClass, Reg>, double> ready_;
};

}  // namespace

std::string estimate_source(Core core) {
  const CoreRow& row = row_of(core);
  return strformat(
      "an estimate, not a measurement: latencies and pipes of {} ({}), rounded{}; loads come from "
      "the L1 cache, jumps are foreseen",
      row.name, row.source, row.core == core ? "" : "; the machine's own core is not known here");
}

MemoryUse memory_use(const Instruction& i) {
  if (i.form >= kForms || !i.has_memory || static_cast<Form>(i.form) == Form::Lea) return {};
  const Description& d = describe(i);
  for (size_t k = 0; k < d.operand_count; ++k)
    if (d.operands[k].role == Role::RegOrMemory)
      return {reads(d.operands[k].access), writes(d.operands[k].access)};
  return {};
}

int latency(const Instruction& i, Core core) {
  if (!memory_use(i).loads) return form_latency(i, core);
  const CoreRow& row = row_of(core);
  const bool to_vector = describe(i).operands[0].kind == RegClass::Vector;
  const int load = to_vector ? row.vector_load_latency : row.load_latency;
  return only_loads(i) ? load : load + form_latency(i, core);
}

std::string_view port_name(const Instruction& i) {
  return only_loads(i) ? "load" : kPortNames[static_cast<size_t>(describe(i).port)];
}

Estimate estimate_loop(std::span<const Instruction> body, Core core) {
  return Estimator(core).run(body);
}

std::string text_of(const Estimate& e) {
  return strformat("{} instructions, {:.1f} cycles ({} {:.1f}, chain {:.1f}), {} bytes in, {} out",
                   e.instructions, e.cycles(), e.busiest, e.ports, e.chain, e.loaded, e.stored);
}

}  // namespace weft::x86
