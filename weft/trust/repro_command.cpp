// `weft repro`: a file of a failure, run again.
#include "weft/base/error.h"
#include "weft/base/json_writer.h"
#include "weft/graph/print.h"
#include "weft/target/cpu_features.h"
#include "weft/trust/small.h"
#include "weft/trust/source_text.h"

namespace weft::trust {
namespace {

Settings settings_of(const std::vector<std::string>& words) {
  Settings settings;
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    if (!word.starts_with("WEFT_") || equals == word.npos)
      fail("repro.option", "'{}' is no option; --set takes WEFT_NAME=VALUE", word);
    settings.emplace_back(word.substr(0, equals), word.substr(equals + 1));
  }
  return settings;
}

void print_outcome(const Printer& printer, const ReproCommand& asked, const Repro& repro,
                   const Outcome& outcome) {
  const std::string_view here = CpuFeatures::detect().newest_level();
  if (printer.json) {
    JsonWriter json;
    json.begin_object().field("kind", "repro").field("file", asked.file);
    json.field("passed", outcome.passed()).field("outcome", outcome.text());
    json.field("recorded", repro.failed).field("isa", here);
    printer.print("{}\n", json.field("recorded_isa", repro.isa).end_object().text());
    return;
  }
  printer.print("{}: {}\n", outcome.passed() ? "passes" : "FAILS", outcome.text());
  if (!repro.failed.empty()) printer.print("  recorded: {}\n", repro.failed);
  if (!repro.isa.empty() && repro.isa != here)
    printer.print("  recorded on a CPU with {}; this one has {}\n", repro.isa, here);
}

}  // namespace

int run_repro(const Printer& printer, const Options& base, const ReproCommand& asked) {
  const Repro repro = read_repro(asked.file);
  Graph graph;
  Case c{program_of(graph, repro),
         with_settings(options_of(repro, base), settings_of(asked.options)),
         {}};
  c.options.cache = false;
  if (!asked.show.empty()) {
    printer.write(asked.show == "graph"    ? print_graph(c.program.roots)
                  : asked.show == "python" ? python_text(c.program)
                                           : cpp_text(c.program));
    return 0;
  }
  const Isolation isolation = isolation_of(asked.limit);
  c.outcome = run_program(c.program, c.options, isolation);
  print_outcome(printer, asked, repro, c.outcome);
  if (asked.reduce && !c.outcome.passed())
    keep(printer, reduced(graph, c, isolation),
         asked.output.empty() ? small_path(asked.file) : asked.output);
  return c.outcome.passed() ? 0 : 1;
}

}  // namespace weft::trust
