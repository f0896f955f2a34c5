// `weft bisect`: what is behind a wrong result, of a file or of a command.
#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "weft/base/error.h"
#include "weft/base/json_writer.h"
#include "weft/trust/guilty_pass.h"
#include "weft/trust/small.h"

namespace weft::trust {
namespace {

namespace fs = std::filesystem;

void print(const Printer& printer, const Culprit& c) {
  if (printer.json) {
    JsonWriter json;
    json.begin_object().field("kind", "culprit").field("what", kind_name(c.kind));
    json.field("name", c.name).field("value", c.value).field("text", c.text);
    return printer.print("{}\n", json.field("source", c.source).end_object().text());
  }
  if (c.kind == Culprit::Kind::Option) {
    printer.print("passes with {}={}\n  {}\n", c.name, c.value, c.text);
  } else {
    const bool left_out = c.kind == Culprit::Kind::Rule || c.source.empty();
    printer.print("{} {} {}\n  {}\n", left_out ? "passes without the" : "it is the",
                  kind_name(c.kind), c.name, c.text);
    if (!c.source.empty()) printer.print("  {}\n", c.source);
  }
}

void print(const Printer& printer, const Bisection& found) {
  for (const Culprit& c : found.culprits) print(printer, c);
  if (printer.json) {
    JsonWriter json;
    json.begin_object().field("kind", "bisect").field("found", !found.culprits.empty());
    printer.print("{}\n", json.field("runs", found.runs).end_object().text());
  } else {
    printer.print("{}after {} runs\n",
                  found.culprits.empty() ? "nothing that can be switched off is behind it; " : "",
                  found.runs);
  }
}

Verdict verdict(const Outcome& outcome, const Outcome& first) {
  if (outcome.passed()) return Verdict::Passes;
  return outcome.like(first) ? Verdict::Fails : Verdict::Unclear;
}

int bisect_case(const Printer& printer, Graph& graph, const Case& failing,
                const Isolation& isolation, const std::string& output) {
  Bisection found = bisect(failing.options, [&](const Settings& settings) {
    const Options options = with_settings(failing.options, settings);
    return verdict(run_program(failing.program, options, isolation), failing.outcome);
  });
  const bool by_option = found.culprits.empty() || found.culprits[0].kind == Culprit::Kind::Option;
  // An option may only go another way than past the culprit.
  if (const auto pass =
          by_option ? guilty_pass(failing.program, failing.options, isolation) : std::nullopt)
    found.culprits.insert(found.culprits.begin(), *pass);
  print(printer, found);
  const Settings* without = found.without.empty() ? nullptr : &found.without;
  keep(printer, reduced(graph, failing, isolation, without), output);
  return found.culprits.empty() ? 1 : 0;
}

int bisect_file(const Printer& printer, const Options& base, const BisectCommand& asked) {
  const Repro repro = read_repro(asked.file);
  Graph graph;
  Case c{program_of(graph, repro), options_of(repro, base), {}};
  c.options.cache = false;
  const Isolation isolation = isolation_of(asked.limit);
  c.outcome = run_program(c.program, c.options, isolation);
  if (c.outcome.passed())
    fail("bisect.passes", "{} passes here; there is nothing to find. It was recorded as: {}",
         asked.file, repro.failed.empty() ? "nothing" : repro.failed);
  return bisect_case(printer, graph, c, isolation,
                     asked.output.empty() ? small_path(asked.file) : asked.output);
}

// ---- a command

constexpr int kCannotTell = 125;  // as of git bisect run

Outcome run(const BisectCommand& asked, const Settings& settings) {
  return run_words(asked.command, settings, !asked.show_output, isolation_of(asked.limit));
}

/// A directory that is gone afterwards.
class Scratch {
 public:
  Scratch() : path_((fs::temp_directory_path() / "weft-bisect-XXXXXX").string()) {
    if (!::mkdtemp(path_.data())) fail_errno("bisect.folder", "cannot make " + path_, errno);
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// The smallest files first: every program that the command compiles.
std::vector<std::string> programs_of(const BisectCommand& asked, const Scratch& scratch) {
  run(asked, {{"WEFT_REPRO", scratch.path()},
              {"WEFT_REPRO_EVERY", "1"},
              {"WEFT_REPRO_DATA", "1"},
              {"WEFT_JIT", "0"}});
  std::vector<std::pair<uintmax_t, std::string>> sized;
  for (const auto& entry : fs::directory_iterator(scratch.path()))
    sized.emplace_back(entry.file_size(), entry.path().string());
  std::ranges::sort(sized);
  std::vector<std::string> files;
  for (const auto& [size, path] : sized) files.push_back(path);
  return files;
}

/// Of the programs that the command compiles the first that fails, and passes without the culprits.
void reduce_command(const Printer& printer, const Options& base, const BisectCommand& asked,
                    const Bisection& found) {
  const Scratch scratch;
  const Isolation isolation = isolation_of(asked.limit);
  for (const std::string& path : programs_of(asked, scratch)) {
    const Repro repro = read_repro(path);
    Graph graph;
    Case c{program_of(graph, repro), options_of(repro, base), {}};
    c.options.cache = false;
    c.outcome = run_program(c.program, c.options, isolation);
    if (c.outcome.passed()) continue;
    const Options without = with_settings(c.options, found.without);
    if (!run_program(c.program, without, isolation).passed()) continue;
    keep(printer, reduced(graph, c, isolation, &found.without),
         asked.output.empty() ? "weft-bisect.repro" : asked.output);
    return;
  }
  if (!printer.json) printer.print("no program that it compiles differs from the reference\n");
}

int bisect_command(const Printer& printer, const Options& base, const BisectCommand& asked) {
  const Outcome first = run(asked, {});
  if (first.passed()) fail("bisect.passes", "the command exits with 0; there is nothing to find");
  if (first.code == std::to_string(kCannotTell) || first.code == std::to_string(kCannotStart))
    fail("bisect.command", "the command exits with {}: {}", first.code,
         first.code == std::to_string(kCannotStart) ? "it could not be started" : "it cannot tell");
  const Bisection found =
      bisect(base, [&](const Settings& settings) { return verdict(run(asked, settings), first); });
  print(printer, found);
  if (!found.culprits.empty()) reduce_command(printer, base, asked, found);
  return found.culprits.empty() ? 1 : 0;
}

}  // namespace

int run_bisect(const Printer& printer, const Options& base, const BisectCommand& asked) {
  if (asked.file.empty() == asked.command.empty())
    fail("bisect.usage", "give a repro file, or -- and a command");
  return asked.command.empty() ? bisect_file(printer, base, asked)
                               : bisect_command(printer, base, asked);
}

}  // namespace weft::trust
