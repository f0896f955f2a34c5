#include "weft/isa/x86_estimate.h"

#include <algorithm>
#include <map>

#include "weft/base/format.h"

namespace weft::x86 {
namespace {

// Zen 5 (AMD, "Software Optimization Guide for the AMD Zen5 Microarchitecture", 58455): six integer
// pipes, four vector pipes of which two multiply and two add, two 512-bit loads or four smaller
// ones and one 512-bit store or two smaller ones per cycle, eight instructions dispatched. Entered
// from memory of that guide and not compared with it since: good for finding what a loop waits for,
// not for predicting its time.
struct Resource {
  std::string_view name;
  double per_cycle;  // instructions
};
constexpr Resource kPorts[] = {
    {"none", 8},
    {"alu", 6},
    {"mul", 3},
    {"div", 1},
    {"branch", 2},
    {"store", 2},
    {"fadd", 2},
    {"fmul", 2},
    {"fdiv", 1},
    {"valu", 4},
    {"vmul", 2},
    {"vshift", 2},
    {"shuffle", 2},
    // Of a core that has tiles: Intel, "64 and IA-32 Architectures Optimization Reference Manual",
    // "Intel AMX": a load in 8 cycles, a product in 16.
    {"tile load", 1.0 / 8},
    {"tile dot", 1.0 / 16}};
static_assert(std::size(kPorts) == static_cast<size_t>(Port::TileDot) + 1);
constexpr double kVectorPipes = 4, kDispatched = 8;
constexpr int kLoadLatency = 4, kVectorLoadLatency = 7;

bool is_vector(Port p) { return p >= Port::FAdd && p <= Port::Shuffle; }

/// Loads have the latency of a move in the table; broadcasts from memory are made by loading.
bool only_loads(const Instruction& i) {
  const Description& d = describe(i);
  return memory_use(i).loads && d.operand_count == 2 && d.latency <= 2;
}

/// Cycles that an instruction keeps its resource. A divider, which takes the next operands about
/// half its latency after the last ones, is busy that long.
double occupancy(const Description& d) {
  if (d.port == Port::FDiv || d.port == Port::Div) return d.latency / 2.0;
  return 1 / kPorts[static_cast<size_t>(d.port)].per_cycle;
}

class Estimator {
 public:
  Estimate run(std::span<const Instruction> body) {
    for (const Instruction& i : body)
      if (i.form < kForms) count(i);
    Estimate& e = estimate_;
    taken_["dispatch"] = e.instructions / kDispatched;
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
    if (loads) estimate_.loaded += bytes, taken_["load"] += bytes > 32 ? 0.5 : 0.25;
    if (stores) estimate_.stored += bytes, taken_["store"] += bytes > 32 ? 1 : 0.5;
    if (d.port == Port::Store || only_loads(i)) return;
    taken_[kPorts[static_cast<size_t>(d.port)].name] += occupancy(d);
    if (is_vector(d.port)) taken_["vector pipes"] += 1 / kVectorPipes;
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
        if (writes(o.access)) ready_[{o.kind, *o.reg}] = start + latency(i);
    }
  }

  double latest() const {
    double last = 0;
    for (const auto& [reg, at] : ready_) last = std::max(last, at);
    return last;
  }

  Estimate estimate_;
  std::map<std::string_view, double> taken_;  // cycles by resource
  std::map<std::pair<RegClass, Reg>, double> ready_;
};

}  // namespace

const std::string_view kEstimateSource =
    "an estimate, not a measurement: latencies and pipes of Zen 5 (AMD, Software Optimization "
    "Guide 58455), rounded, whatever the machine; loads come from the L1 cache, jumps are foreseen";

MemoryUse memory_use(const Instruction& i) {
  if (i.form >= kForms || !i.has_memory || static_cast<Form>(i.form) == Form::Lea) return {};
  const Description& d = describe(i);
  for (size_t k = 0; k < d.operand_count; ++k)
    if (d.operands[k].role == Role::RegOrMemory)
      return {reads(d.operands[k].access), writes(d.operands[k].access)};
  return {};
}

int latency(const Instruction& i) {
  const Description& d = describe(i);
  if (!memory_use(i).loads) return d.latency;
  const bool to_vector = d.operands[0].kind == RegClass::Vector;
  const int load = to_vector ? kVectorLoadLatency : kLoadLatency;
  return only_loads(i) ? load : load + d.latency;
}

std::string_view port_name(const Instruction& i) {
  return only_loads(i) ? "load" : kPorts[static_cast<size_t>(describe(i).port)].name;
}

Estimate estimate_loop(std::span<const Instruction> body) { return Estimator().run(body); }

std::string text_of(const Estimate& e) {
  return strformat("{} instructions, {:.1f} cycles ({} {:.1f}, chain {:.1f}), {} bytes in, {} out",
                   e.instructions, e.cycles(), e.busiest, e.ports, e.chain, e.loaded, e.stored);
}

}  // namespace weft::x86
