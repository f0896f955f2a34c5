// `weft fuzz`: looks for programs that differ from the reference, and keeps them.
#include <span>
#include <string>

#include "weft/base/context.h"
#include "weft/base/file.h"
#include "weft/base/json_writer.h"
#include "weft/device/device.h"
#include "weft/trust/fuzz.h"
#include "weft/trust/small.h"

namespace weft::trust {
namespace {

std::string text_of(const Settings& options) {
  std::string out;
  for (const auto& [name, value] : options) append_format(out, " {}={}", name, value);
  return out;
}

void print_failure(const Printer& printer, const FuzzFailure& f) {
  const Settings options = repro_options(f.options);
  if (!printer.json)
    return printer.print("seed {}{}\n  {}\n", f.seed, text_of(options), f.outcome.text());
  JsonWriter json;
  json.begin_object().field("kind", "failure").field("seed", f.seed);
  json.field("outcome", f.outcome.text()).key("options").begin_object();
  for (const auto& [name, value] : options) json.field(name, value);
  printer.print("{}\n", json.end_object().end_object().text());
}

void print_report(const Printer& printer, const FuzzReport& report) {
  if (!printer.json)
    return printer.print("{} programs in {:.1f} s, {} failed\n", report.programs, report.seconds,
                         report.failures == 0 ? "none" : std::to_string(report.failures));
  JsonWriter json;
  json.begin_object().field("kind", "fuzz").field("programs", report.programs);
  json.field("failures", report.failures).field("seconds", report.seconds);
  printer.print("{}\n", json.end_object().text());
}

/// A name that no device has would fail every program. Opens none: forks do not bear that.
void require_devices(const Options& base, std::span<const std::string> names) {
  Context context(base);
  DeviceTable& table = context.get<DeviceTable>();
  for (const std::string& name : names)
    if (!target_without_machine(context, name) && !table.has(name)) table.open(name);
}

}  // namespace

int run_fuzz(const Printer& printer, const Options& base, const FuzzCommand& asked) {
  require_devices(base, asked.devices);
  FuzzPlan plan;
  plan.seed = static_cast<uint64_t>(asked.seed);
  plan.count = asked.count;
  plan.seconds = asked.seconds;
  plan.failures = asked.failures;
  plan.devices = asked.devices;
  plan.options = base;
  const FuzzReport report = fuzz(plan, [&](const FuzzFailure& f) {
    print_failure(printer, f);
    Graph graph;
    const Case failing{fuzz_program(graph, f.seed), f.options, f.outcome};
    make_directories(asked.folder);
    keep(printer, reduced(graph, failing, {}), strformat("{}/seed-{}.repro", asked.folder, f.seed));
  });
  print_report(printer, report);
  return report.failures == 0 ? 0 : 1;
}

}  // namespace weft::trust
