#include "weft/trust/small.h"

#include "weft/base/file.h"
#include "weft/base/json_writer.h"
#include "weft/graph/print.h"
#include "weft/trust/reduce.h"

namespace weft::trust {

Options with_settings(Options options, const Settings& settings) {
  for (const auto& [name, value] : settings) options.set(std::string_view(name).substr(5), value);
  return options;
}

Case reduced(Graph& graph, const Case& failing, const Isolation& isolation,
             const Settings* without) {
  const bool exact = is_exact(failing.program);
  const Options other = without ? with_settings(failing.options, *without) : failing.options;
  const auto fails = [&](const RandomGraph& program) {
    if (exact && !is_exact(program)) return false;
    if (!run_program(program, failing.options, isolation).like(failing.outcome)) return false;
    return !without || run_program(program, other, isolation).passed();
  };
  Case small{reduce(graph, failing.program, fails), failing.options, {}};
  small.outcome = run_program(small.program, small.options, isolation);
  return small;
}

void keep(const Printer& printer, const Case& small, const std::string& path) {
  const std::string text = print_repro(repro_of(small.program, small.options, small.outcome));
  atomic_write_file(path, text);
  const std::string graph = print_graph(small.program.roots);
  if (printer.json) {
    JsonWriter json;
    json.begin_object().field("kind", "reduced").field("file", path);
    json.field("outcome", small.outcome.text()).field("lines", lines_of(small.program));
    printer.print("{}\n", json.field("graph", graph).end_object().text());
    return;
  }
  printer.print("reduced to {} lines, in {}\n  {}\n", lines_of(small.program), path,
                small.outcome.text());
  std::string_view rest = graph;
  while (!rest.empty()) {
    const size_t end = rest.find('\n');
    printer.print("  {}\n", rest.substr(0, end));
    rest.remove_prefix(std::min(end, rest.size() - 1) + 1);
  }
}

std::string small_path(const std::string& path) {
  const std::string_view ending = ".repro";
  return (path.ends_with(ending) ? path.substr(0, path.size() - ending.size()) : path) +
         ".small.repro";
}

}  // namespace weft::trust
