// The roofline of a kernel (Williams, Waterman and Patterson, "Roofline", 2009): what it does to
// each byte, what the machine can do at most, what the cost model expected and what was measured.
#include <algorithm>
#include <cmath>
#include <optional>

#include "weft/base/calibrated_clock.h"
#include "weft/base/context.h"
#include "weft/base/format.h"
#include "weft/base/thread_pool.h"
#include "weft/target/core.h"
#include "weft/target/machine.h"
#include "weft/target/machine_limits.h"
#include "weft/viz/plan_choices.h"
#include "weft/viz/view_parts.h"

namespace weft::viz {
namespace {

constexpr const char* kSource =
    "measured now, by this program with all its threads: multiply-adds of f32 in registers, and "
    "reading 256 MiB; caches: bytes a cycle that the machine's description has, times the clock "
    "and the threads that have one each";

// Kernels that the model gives more are shared by the threads.
constexpr double kSharedCycles = 5e4;

/// What holds data, the nearest first.
struct Level {
  const char* name;
  double bytes;  // that fit; of the last one any number
  double bytes_per_second;
};

/// A slot of the Context: measuring takes some tenths of a second, once.
struct Roof {
  explicit Roof(Context& context) : threads(std::max(1, context.thread_pool().size())) {
    CalibratedClock clock;
    clock.time([] {});
    // The best of a few: others may use the machine, too. Short ones: somebody waits for them.
    for (int round = 0; round < 3; ++round)
      flops_per_second = std::max(flops_per_second, measured_f32_flops(context, 1 << 20));
    clock.time([] {});
    cycles_per_second = clock.cycles_per_second();
    const Machine& machine = Machine::of(context);
    constexpr const char* kNames[] = {"L1", "L2", "L3"};
    for (size_t i = 0; i < machine.caches.size(); ++i) {
      const CacheLevel& c = machine.caches[i];
      const double shares = i + 1 < machine.caches.size() ? threads : 1;
      levels.push_back({kNames[i], static_cast<double>(c.bytes) * shares,
                        c.bytes_per_cycle * cycles_per_second * threads});
    }
    levels.push_back({"memory", INFINITY, measured_read_bandwidth(context)});
  }

  int threads;
  double cycles_per_second, flops_per_second = 0;
  std::vector<Level> levels;

  const Level& level_of(double bytes) const {
    size_t i = 0;  // of a damaged recording it may be no number
    while (i + 1 < levels.size() && bytes > levels[i].bytes) ++i;
    return levels[i];
  }
};

/// What is known of one kernel.
struct Roofline {
  const KernelRow& kernel;
  const Roof* roof = nullptr;  // null where it was recorded on another machine
  std::optional<double> predicted_cycles = {}, predicted_seconds = {}, measured_seconds = {};
  double roof_seconds = 0;  // no kernel of so much work takes less
  bool computes = false;    // rather than waits for memory
};

Roofline roofline_of(const Session::Data& data, uint32_t number) {
  const KernelRow& k = data.kernels[number];
  Roofline out{k};
  if (k.runs != 0) out.measured_seconds = static_cast<double>(k.median_ns()) * 1e-9;
  for (const PlanChoice& p : plan_choices(data, k))
    if (p.chosen && p.cycles > 0) out.predicted_cycles = p.cycles;
  Context& context = Context::current();
  const bool on_cpu = k.target == "x86" || k.target == "c";
  if (!on_cpu || data.processes[k.process].machine != text_with_core(Machine::of(context)))
    return out;
  const Roof& roof = context.get<Roof>();
  out.roof = &roof;
  const double compute = k.flops / roof.flops_per_second,
               memory = k.bytes / roof.level_of(k.bytes).bytes_per_second;
  out.roof_seconds = std::max(compute, memory);
  out.computes = compute >= memory;
  if (out.predicted_cycles)
    out.predicted_seconds = *out.predicted_cycles / roof.cycles_per_second /
                            (*out.predicted_cycles > kSharedCycles ? roof.threads : 1);
  return out;
}

void optional_field(JsonWriter& json, const char* name, const std::optional<double>& value) {
  json.key(name);
  value ? json.value(*value) : json.null();
}

void write_limits(JsonWriter& json, const Roofline& r) {
  json.key("limits");
  if (!r.roof) return static_cast<void>(json.null());
  json.begin_object().field("threads", r.roof->threads);
  json.field("cycles_per_second", r.roof->cycles_per_second);
  json.field("flops_per_second", r.roof->flops_per_second).key("levels").begin_array();
  for (const Level& l : r.roof->levels)
    json.begin_object()
        .field("name", l.name)
        .field("bytes", l.bytes)
        .field("bytes_per_second", l.bytes_per_second)
        .end_object();
  json.end_array().field("source", kSource).end_object();
}

uint32_t wanted_kernel(const Session::Data& data, const Parameters& parameters) {
  return static_cast<uint32_t>(parameters.position("kernel", data.kernels.size(), "kernels"));
}

}  // namespace

std::string view_roofline(const Session& session, const Parameters& parameters) {
  const Session::Data& data = session.data();
  const uint32_t number = wanted_kernel(data, parameters);
  const Roofline r = roofline_of(data, number);
  const KernelRow& k = r.kernel;
  JsonWriter json;
  json.begin_object().field("kernel", number).field("flops", k.flops).field("bytes", k.bytes);
  json.field("intensity", k.bytes > 0 ? k.flops / k.bytes : 0);
  optional_field(json, "predicted_cycles", r.predicted_cycles);
  optional_field(json, "predicted_seconds", r.predicted_seconds);
  optional_field(json, "measured_seconds", r.measured_seconds);
  write_limits(json, r);
  json.key("roof_seconds");
  r.roof ? json.value(r.roof_seconds) : json.null();
  json.key("bound");
  r.roof ? json.value(r.computes ? "compute" : r.roof->level_of(k.bytes).name) : json.null();
  return json.end_object().take();
}

std::string text_roofline(const Session& session, const Parameters& parameters, bool colour) {
  const Session::Data& data = session.data();
  const Roofline r = roofline_of(data, wanted_kernel(data, parameters));
  const KernelRow& k = r.kernel;
  const auto line = [&](const char* name, double seconds) {
    return strformat("{:<10} {:>11} {:>10.2f} GFLOPS {:>10.2f} GB/s\n", name,
                     duration_text(seconds * 1e9), k.flops / seconds * 1e-9,
                     k.bytes / seconds * 1e-9);
  };
  std::string out = strformat("{}: {:.0f} FLOP, {}, {:.3g} FLOP per byte\n",
                              styled(colour, "1", printable(k.name)), k.flops, bytes_text(k.bytes),
                              k.bytes > 0 ? k.flops / k.bytes : 0);
  if (r.measured_seconds && *r.measured_seconds > 0) out += line("measured", *r.measured_seconds);
  if (r.predicted_seconds) out += line("predicted", *r.predicted_seconds);
  if (!r.roof) return out + "the limits of the machine are not known: it is another one\n";
  if (r.roof_seconds > 0) out += line("roof", r.roof_seconds);
  if (r.measured_seconds && *r.measured_seconds < r.roof_seconds)
    out +=
        "it ran faster than the limits allow: the machine is busy now, or was at a higher clock\n";
  append_format(out, "bound by {}; limits, {}:\n  {:.1f} GFLOPS\n",
                r.computes ? "compute" : r.roof->level_of(k.bytes).name, kSource,
                r.roof->flops_per_second * 1e-9);
  for (const Level& l : r.roof->levels)
    append_format(out, "  {:<7}{:>8.1f} GB/s\n", l.name, l.bytes_per_second * 1e-9);
  return out;
}

}  // namespace weft::viz
