#include "weft/trust/command.h"

#include <CLI/CLI.hpp>
#include <new>

#include "weft/base/error.h"
#include "weft/trust/commands.h"

namespace weft::trust {
namespace {

constexpr int kFailed = 1, kUsage = 2;

struct CommandLine {
  bool json = false;
  ReproCommand repro;
  BisectCommand bisect;
  FuzzCommand fuzz;
};

CLI::App* subcommand(CLI::App& app, CommandLine& line, const char* name, const char* what) {
  CLI::App* sub = app.add_subcommand(name, what);
  sub->add_flag("--json", line.json, "machine-readable output, one JSON value per line");
  return sub;
}

void add_limit(CLI::App* sub, double& limit, const char* what) {
  sub->add_option("--limit", limit, what)->check(CLI::Range(0.1, 86400.0))->capture_default_str();
}

void add_repro(CLI::App& app, CommandLine& line) {
  CLI::App* sub =
      subcommand(app, line, "repro", "run a repro file again, and compare with the reference");
  ReproCommand& o = line.repro;
  sub->add_option("file", o.file, "what WEFT_REPRO, `weft fuzz` or `weft bisect` wrote")
      ->required();
  sub->add_option("--set", o.options, "an option, over the file's: WEFT_ISA=avx2")
      ->type_name("WEFT_NAME=VALUE");
  CLI::Option* show = sub->add_option("--show", o.show, "print the program instead of running it")
                          ->check(CLI::IsMember({"graph", "c++", "python"}));
  sub->add_flag("--reduce", o.reduce, "make it as small as it can be while it fails the same way")
      ->excludes(show);
  sub->add_option("-o,--out", o.output, "the reduced file (default: FILE with .small.repro)");
  add_limit(sub, o.limit, "seconds after which a run hangs");
  sub->footer("Exit codes: 0 it passes here, 1 it fails, 2 wrong command line.");
}

void add_bisect(CLI::App& app, CommandLine& line) {
  CLI::App* sub =
      subcommand(app, line, "bisect", "find the rule, pass or option behind a wrong result");
  BisectCommand& o = line.bisect;
  sub->add_option("file", o.file, "a repro file that fails");
  sub->add_option("-o,--out", o.output,
                  "the reduced program (default: FILE with .small.repro; of a command "
                  "weft-bisect.repro)");
  add_limit(sub, o.limit, "seconds after which a run hangs");
  sub->add_flag("--show-output", o.show_output, "of the command");
  sub->footer(
      "weft bisect FILE.repro           compares with the reference\n"
      "weft bisect -- python check.py   runs it again and again with rules, passes and options\n"
      "                                 switched off; exit 0 is right, 125 cannot tell, else "
      "wrong\n"
      "Exit codes: 0 found, 1 nothing that can be switched off is behind it, 2 wrong command "
      "line.");
}

void add_fuzz(CLI::App& app, CommandLine& line) {
  CLI::App* sub =
      subcommand(app, line, "fuzz", "compare random programs with the reference until one differs");
  FuzzCommand& o = line.fuzz;
  sub->add_option("--seconds", o.seconds, "how long")
      ->check(CLI::Range(0.0, 1e7))
      ->capture_default_str();
  sub->add_option("--count", o.count, "so many programs, however long they take")
      ->check(CLI::PositiveNumber);
  sub->add_option("--seed", o.seed, "of the first program; the next has the next one")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  sub->add_option("--device", o.devices, "on these instead of all that this CPU has")
      ->delimiter(',');
  sub->add_option("--failures", o.failures, "stop after so many")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  sub->add_option("-o,--out", o.folder, "directory for what fails, reduced")->capture_default_str();
  sub->footer("Exit codes: 0 nothing differs, 1 something does, 2 wrong command line.");
}

/// What stands after `--` is a command of its own, whatever its words look like.
std::vector<const char*> before_dashes(std::span<const char* const> arguments,
                                       std::vector<std::string>& command) {
  const auto dashes = std::ranges::find_if(
      arguments, [](const char* word) { return std::string_view(word) == "--"; });
  if (dashes != arguments.end()) command.assign(dashes + 1, arguments.end());
  return {arguments.begin(), dashes};
}

int dispatch(const CLI::App& app, CommandLine& line, std::FILE* out) {
  const Options base = Options::from_environment();
  const Printer printer{out, line.json};
  const std::string name = app.get_subcommands().front()->get_name();
  if (name == "repro") return run_repro(printer, base, line.repro);
  if (name == "bisect") return run_bisect(printer, base, line.bisect);
  return run_fuzz(printer, base, line.fuzz);
}

int usage_result(const CLI::App& app, const CLI::ParseError& why, std::FILE* out, std::FILE* err) {
  const auto subs = app.get_subcommands();
  const CLI::App& about = subs.empty() ? app : *subs.front();
  if (why.get_exit_code() == 0) {
    std::fputs(about.help(subs.empty() ? "" : "weft").c_str(), out);
    return 0;
  }
  const std::string name = subs.empty() ? "" : " " + about.get_name();
  std::fprintf(err, "weft: %s\n      `weft%s --help` shows what is possible\n", why.what(),
               name.c_str());
  return kUsage;
}

}  // namespace

int run_trust(std::span<const char* const> arguments, std::FILE* out, std::FILE* err) {
  CLI::App app("Runs failing programs again, finds what is behind them, and looks for new ones.",
               "weft");
  CommandLine line;
  app.require_subcommand(1);
  add_repro(app, line);
  add_bisect(app, line);
  add_fuzz(app, line);
  const std::vector<const char*> words = before_dashes(arguments, line.bisect.command);
  try {
    app.parse(static_cast<int>(words.size()), words.data());
    return dispatch(app, line, out);
  } catch (const CLI::ParseError& why) {
    return usage_result(app, why, out, err);
  } catch (const Error& error) {
    std::fprintf(err, "weft: [%s] %s\n", std::string(error.tag()).c_str(), error.message().c_str());
    if (find_error_code(error.code()) != nullptr)
      std::fprintf(err, "      more: weft explain %s\n", error.code().c_str());
  } catch (const std::bad_alloc&) {
    std::fputs("weft: [memory] the system has no more memory to give\n", err);
  }
  return kFailed;
}

}  // namespace weft::trust
