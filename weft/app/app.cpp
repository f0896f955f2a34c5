#include "weft/app/app.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <new>

#include "weft/app/command_line.h"
#include "weft/app/completion.h"
#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/names.h"

namespace weft {

CLI::App* subcommand(CLI::App& app, CommandLine& line, const char* name, const char* what) {
  CLI::App* sub = app.add_subcommand(name, what);
  sub->add_flag("--json", line.json, "machine-readable output, one JSON value per line");
  return sub;
}

void add_machine_options(CLI::App* sub, CommandLine& line) {
  sub->add_option("--device", line.device, "where to run, as listed by `weft devices`");
  sub->add_option("--threads", line.threads, "worker threads (default: the CPUs this process has)")
      ->check(in_range<int64_t>(1, 1024));
}

namespace {

// Below the subcommands: the environment, and what the exit codes mean.
std::string footer() {
  std::string text = "Environment:\n";
  size_t count = 0;
  const OptionRow* rows = option_rows(count);
  for (size_t i = 0; i < count; ++i) {
    append_format(text, "  {:<20} {}\n", rows[i].name, rows[i].doc);
  }
  return text +
         "\nExit codes: 0 done, 1 failed, 2 wrong command line, 130 interrupted. `weft explain` "
         "lists\n"
         "every error code.";
}

void add_train(CLI::App& app, CommandLine& line) {
  CLI::App* sub = subcommand(app, line, "train", "train a network on real data");
  TrainOptions& o = line.train;
  sub->add_option("task", o.task, "what to train")
      ->required()
      ->check(CLI::IsMember({"fashion-mnist"}));
  sub->add_option("--epochs", o.epochs, "passes over the training images")
      ->check(in_range<int64_t>(1, 1000000))
      ->capture_default_str();
  sub->add_option("--batch", o.batch, "images per step")
      ->check(in_range<int64_t>(1, 60000))
      ->capture_default_str();
  sub->add_option("--accumulate", o.accumulate,
                  "compute each batch in N micro-batches, in the memory of one")
      ->type_name("N")
      ->check(in_range<int64_t>(1, 60000))
      ->capture_default_str();
  sub->add_option("--lr", o.lr, "Adam's learning rate")
      ->check(in_range<double>(0, 1000))
      ->capture_default_str();
  sub->add_option("--schedule", o.schedule,
                  "of the learning rate: cosine falls to 0 at the end of the last epoch")
      ->check(CLI::IsMember({"cosine", "constant"}))
      ->capture_default_str();
  sub->add_option("--seed", o.seed, "of weights and of the order of images")
      ->check(in_range<int64_t>(0))
      ->capture_default_str();
  sub->add_option("--limit", o.limit, "use only the first N training and test images")
      ->check(in_range<int64_t>(0));
  sub->add_option("--data", o.data, "directory with the four IDX files, gzipped or not")
      ->capture_default_str();
  sub->add_option("--save", o.save, "checkpoint (.safetensors), replaced after every epoch");
  sub->add_flag("--resume", o.resume, "go on from the checkpoint named by --save");
  sub->add_option("--plot", o.plot, "write the curves of loss and accuracy to this SVG file");
  sub->add_option("--tensorboard", o.tensorboard,
                  "write loss, accuracy and speed to this folder, for `tensorboard --logdir`")
      ->type_name("DIR");
  add_machine_options(sub, line);
}

void add_bench(CLI::App& app, CommandLine& line) {
  CLI::App* sub = subcommand(app, line, "bench", "measure weft on this machine");
  sub->add_option("what", line.bench.what, "what to measure")
      ->capture_default_str()
      ->check(CLI::IsMember({"all", "schedule", "compile", "dispatch", "elementwise", "reduce",
                             "gemm", "lengths", "cases", "sweep", "explain"}));
  sub->add_option("--model", line.bench.model, "for schedule and compile")
      ->check(CLI::IsMember({"mnist", "gpt2"}))
      ->capture_default_str();
  sub->add_option("--repeats", line.bench.repeats, "measurements; the median counts")
      ->check(in_range<int64_t>(1, 10000))
      ->capture_default_str();
  sub->add_option("--against", line.bench.against,
                  "cases, sweep: peers measured in turns with weft: torch, torch.cuda (on a GPU), "
                  "onednn, openblas, numpy, ort")
      ->delimiter(',');
  sub->add_option("case,--case", line.bench.which,
                  "of cases, sweep, explain and lengths, only those with this in their name");
  sub->add_option("--size", line.bench.size, "of cases and lengths, instead of their own")
      ->check(in_range<int64_t>(1, 1 << 30));
  sub->add_option(
         "--busy", line.bench.busy,
         "cases, sweep: measure also beside a process that computes on this CPU, and print "
         "how many times as long everybody takes then")
      ->type_name("CPU")
      ->check(in_range<int64_t>(0, 4095));
  sub->add_flag("--quick", line.bench.quick, "lengths: four of them, in a quarter of the turns");
  sub->add_option("--python", line.bench.python, "the Python that has the peers")
      ->capture_default_str();
  add_machine_options(sub, line);
}

void add_explain(CLI::App& app, CommandLine& line) {
  CLI::App* explain = subcommand(app, line, "explain",
                                 "what an error code or option means, or a model's kernels are");
  ExplainOptions& o = line.explain;
  explain->add_option("code", o.code,
                      "as in `safetensors.size` or WEFT_DEBUG; mnist, gpt2; none lists all");
  CLI::Option* passes =
      explain->add_flag("--passes", o.passes,
                        "what every pass of the compiler did to mnist, to gpt2, or "
                        "to the graph in a file; alone: the passes there are");
  explain->add_option("--kernel", o.kernel, "only kernels whose name has this in it, with texts")
      ->needs(passes);
  explain->add_option("--pass", o.pass, "only passes whose name has this in it, with texts")
      ->needs(passes);
  explain->add_option("--dump", o.dump, "folder for the graphs before and after every pass")
      ->needs(passes);
  add_machine_options(explain, line);
}

void add_viz(CLI::App& app, CommandLine& line) {
  CLI::App* sub = subcommand(app, line, "viz", "see what a program computed, how and why");
  VizOptions& o = line.viz;
  sub->add_option("file", o.file, "a recording, as programs write with WEFT_VIZ=1");
  sub->add_option("--port", o.port, "of the page (any that is free)")
      ->check(in_range<int64_t>(0, 65535));
  sub->add_flag("--no-browser", o.no_browser, "only print the page's address");
  sub->add_option("--text", o.view, "print this view in place of serving the page")->expected(0, 1);
  sub->add_option("--perfetto", o.perfetto, "write a file for ui.perfetto.dev, likewise");
  sub->add_option("--history", o.history, "benchmarks by commit, as bench/history.jsonl");
  sub->add_option("--param", o.parameters, "of the view: NAME=VALUE")->allow_extra_args(false);
  sub->footer(
      "weft viz FILE -- PROGRAM WORDS... shows what a program writes to FILE while it runs.");
}

void add_tokenize(CLI::App& app, CommandLine& line) {
  CLI::App* sub = subcommand(app, line, "tokenize", "the tokens and ids of a text");
  TokenizeOptions& o = line.tokenize;
  sub->add_option("model", o.model, "a tokenizer.json, a folder with one, or a GGUF file")
      ->required();
  sub->add_option("text", o.text, "the text; - is standard input")->capture_default_str();
  CLI::Option* decode = sub->add_flag("--decode", o.decode, "the text is ids: print what they say");
  sub->add_option(
         "--chat", o.chat,
         "a JSON file of messages ([{\"role\": \"user\", \"content\": ...}]), which the model's "
         "chat template makes the text of")
      ->type_name("FILE.json")
      ->excludes(decode);
  CLI::Option* from =
      sub->add_option("--from", o.files, "text files to learn from")->expected(1, -1);
  CLI::Option* train =
      sub->add_option("--train", o.train,
                      "learn a tokenizer of so many tokens from the files of --from; it is written "
                      "to the model's path")
          ->excludes(decode)
          ->needs(from);
  from->needs(train);
  sub->add_option("--special", o.special_tokens, "special tokens of a tokenizer that is learnt")
      ->needs(train)
      ->expected(0, -1)
      ->capture_default_str();
}

/// What follows is another program's (trust.cpp), --help included.
void add_trust(CLI::App& app) {
  constexpr std::pair<const char*, const char*> kCommands[] = {
      {"repro", "run a file of a failure again, and compare with the reference"},
      {"bisect", "find the rule, pass or option behind a wrong result"},
      {"fuzz", "compare random programs with the reference"}};
  for (const auto& [name, what] : kCommands) {
    CLI::App* sub = app.add_subcommand(name, what);
    sub->set_help_flag();
  }
}

bool is_trust(std::string_view name) {
  return name == "repro" || name == "bisect" || name == "fuzz";
}

void add_commands(CLI::App& app, CommandLine& line) {
  add_train(app, line);
  add_onnx(app, line);
  add_llm(app, line);
  add_tokenize(app, line);
  add_viz(app, line);
  subcommand(app, line, "devices", "what weft can compute on here, and what is missing");
  add_bench(app, line);
  subcommand(app, line, "rules", "the rewrite rules")
      ->add_option("name", line.rule, "only rules and sets whose name contains this");
  add_explain(app, line);
  add_trust(app);
  subcommand(app, line, "inspect", "what a file of tensors holds: GGUF, safetensors, npy")
      ->add_option("file", line.file, "the file, or a folder with a safetensors model")
      ->required();
  app.add_subcommand("completion", "print a script that completes this command line")
      ->footer(
          "bash: eval \"$(weft completion bash)\" in ~/.bashrc; zsh: the same in ~/.zshrc after "
          "compinit;\n"
          "fish: weft completion fish > ~/.config/fish/completions/weft.fish")
      ->add_option("shell", line.shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  subcommand(app, line, "version", "which weft this is");
}

int dispatch(const CLI::App& app, CommandLine& line, const Session& session) {
  const CLI::App& sub = *app.get_subcommands().front();
  const std::string name = sub.get_name();
  if (name == "onnx") {
    line.onnx.action = sub.get_subcommands().front()->get_name();
    return run_onnx(session, line.onnx);
  }
  if (name == "llm") {
    line.llm.action = sub.get_subcommands().front()->get_name();
    return run_llm(session, line.llm);
  }
  if (is_trust(name)) return run_trust(session, line.words);
  if (name == "viz") return run_viz(session, line.viz);
  if (name == "tokenize") return run_tokenize(session, line.tokenize);
  if (name == "train") return run_train(session, line.train);
  if (name == "devices") return run_devices(session);
  if (name == "bench") return run_bench(session, line.bench);
  if (name == "rules") return run_rules(session, line.rule);
  if (name == "explain") return run_explain(session, line.explain);
  if (name == "inspect") return run_inspect(session, line.file);
  if (name == "completion") {
    session.write(completion_script(app, line.shell));
    return kExitOk;
  }
  return run_version(session);
}

/// Whether a crash leaves a program (CrashNote). Not of benchmarks: two writes to a file are as
/// much as half of a small call, and programs that use the library have none unless they ask for
/// it.
bool leaves_repro(const CLI::App& app) { return !app.got_subcommand("bench"); }

Options options_of(const CLI::App& app, const CommandLine& line) {
  Options options = Options::from_environment();
  if (!line.device.empty()) options.dev = line.device;
  if (line.threads != 0) options.threads = line.threads;
  const std::string state = options.state_directory();
  if (options.repro.empty() && !state.empty() && leaves_repro(app))
    options.repro = state + "/repro";
  return options;
}

int run_command(const CLI::App& app, CommandLine& line, std::FILE* out, std::FILE* err) {
  Context context(options_of(app, line));
  const ContextScope scope(context);
  const bool terminal = ::isatty(::fileno(out)) == 1;
  Session session{context, out, err, line.json, terminal && !context.options().plain()};
  return dispatch(app, line, session);
}

void print_error(std::FILE* err, const Error& error) {
  // Without the call site: it would be a line of this program, not of its user's.
  std::fprintf(err, "weft: [%s] %s\n", std::string(error.tag()).c_str(), error.message().c_str());
  if (find_error_code(error.code()) != nullptr) {
    std::fprintf(err, "      more: weft explain %s\n", error.code().c_str());
  }
}

std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(sub->get_name());
  return names;
}

std::vector<std::string> options_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

// What was typed and is unknown: a command, an option of the command that was meant, or a word.
std::string wrong_word(const CLI::App& app, const CLI::App& about,
                       std::span<const char* const> arguments) {
  const std::vector<std::string> before = app.remaining(), left = about.remaining();
  if (!before.empty() && before.front()[0] == '-')
    return strformat("'{}' stands before the command; its options stand behind it", before.front());
  std::string wrong = left.empty() ? "" : left.front().substr(0, left.front().find('='));
  if (&about == &app) wrong = arguments.size() > 1 ? arguments[1] : "";
  if (wrong.empty()) return "";
  const bool option = wrong[0] == '-';
  const std::vector<std::string> known = option ? options_of(about) : commands_of(about);
  if (!option && known.empty())
    return strformat("'{}' is a word too many; a text of several words stands in quotes", wrong);
  if (std::find(known.begin(), known.end(), wrong) != known.end()) return "";
  const std::vector<std::string_view> names(known.begin(), known.end());
  return strformat("there is no {} '{}'{}", option ? "option" : "command", wrong,
                   did_you_mean(wrong, names));
}

// CLI11 says "--tokens: At Most 1 required but received 2" and "--tokens: 1 required INT missing".
std::string wrong_count(const CLI::ParseError& why) {
  const std::string what = why.what();
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&why) == nullptr) return what;
  const std::string name = what.substr(0, what.find(':'));
  if (what.find("At Most 1 required") != std::string::npos)
    return name + " is given more than once";
  return what.ends_with(" missing") ? name + " takes a value, and there is none" : what;
}

// What stands behind "--" of `weft viz` is another program's. Returns what stands before.
std::span<const char* const> without_program(std::span<const char* const> arguments,
                                             VizOptions& options) {
  if (arguments.size() < 2 || std::string_view(arguments[1]) != "viz") return arguments;
  const auto end = std::find(arguments.begin(), arguments.end(), std::string_view("--"));
  if (end != arguments.end()) options.command.assign(end + 1, arguments.end());
  return arguments.first(static_cast<size_t>(end - arguments.begin()));
}

// CLI11 prints help and version requests as exceptions too.
int usage_result(const CLI::App& app, const CLI::ParseError& why,
                 std::span<const char* const> arguments, std::FILE* out, std::FILE* err) {
  const CLI::App* about = &app;
  std::string before = "weft";  // of the command that is meant
  while (!about->get_subcommands().empty()) {
    if (about != &app) before += " " + about->get_name();
    about = about->get_subcommands().front();
  }
  if (why.get_exit_code() == 0) {
    const bool version = dynamic_cast<const CLI::CallForVersion*>(&why) != nullptr;
    std::fputs(version ? strformat("{}\n", why.what()).c_str()
                       : about->help(about == &app ? "" : before).c_str(),
               out);
    return kExitOk;
  }
  std::string what = wrong_word(app, *about, arguments);
  if (what.empty()) what = wrong_count(why);
  if (about != &app) before += " " + about->get_name();
  std::fprintf(err, "weft: %s\n      `%s --help` shows what is possible\n", what.c_str(),
               before.c_str());
  return kExitUsage;
}

int run(std::span<const char* const> all, std::FILE* out, std::FILE* err) {
  CLI::App app("weft: a deep-learning stack. Tensors, graphs, a compiler, and networks to train.",
               "weft");
  CommandLine line;
  const auto arguments = without_program(all, line.viz);
  if (!all.empty()) line.words.assign(all.begin() + 1, all.end());
  app.require_subcommand(1);
  app.set_version_flag("--version", version_text(), "which weft this is");
  add_commands(app, line);
  app.footer(footer());  // after the subcommands, which would inherit it
  try {
    // What follows these is not for this program, whatever it looks like.
    const bool other = arguments.size() > 2 && is_trust(arguments[1]);
    app.parse(static_cast<int>(other ? 2 : arguments.size()), arguments.data());
    return run_command(app, line, out, err);
  } catch (const CLI::ParseError& why) {
    return usage_result(app, why, arguments, out, err);
  } catch (const Error& error) {
    print_error(err, error);
  } catch (const std::filesystem::filesystem_error& error) {
    std::fprintf(err, "weft: [file] %s\n", error.what());
  } catch (const std::bad_alloc&) {
    std::fputs("weft: [memory] the system has no more memory to give\n", err);
  } catch (const std::exception& error) {
    std::fprintf(err, "weft: [internal] %s; please report this\n", error.what());
  }
  return kExitFailure;
}

}  // namespace

void open_standard_files() {
  int fd;
  do {
    fd = ::open("/dev/null", O_RDWR);
  } while (fd >= 0 && fd <= STDERR_FILENO);
  if (fd >= 0) ::close(fd);
}

int run_app(std::span<const char* const> all, std::FILE* out, std::FILE* err) {
  const int code = run(all, out, err);
  // A full disk shows here at the latest.
  if ((std::fflush(out) == 0 && std::ferror(out) == 0) || code != kExitOk) return code;
  std::fprintf(err, "weft: [file] cannot write what is printed: %s\n", std::strerror(errno));
  return kExitFailure;
}

}  // namespace weft
