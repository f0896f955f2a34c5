// What the subcommands are given: one plain struct of options each, filled by app.cpp.
#pragma once

#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/format.h"

namespace weft {

class Context;

// What every command has: where to print, how, and in which context.
struct Session {
  Context& context;
  std::FILE* out;
  std::FILE* err;
  bool json = false;
  bool colour = false;  // `out` is a terminal and NO_COLOR is not set

  template <class... Args>
  void print(fmt::format_string<Args...> pattern, Args&&... args) const {
    write(strformat(pattern, std::forward<Args>(args)...));
  }
  void write(std::string_view text) const { std::fwrite(text.data(), 1, text.size(), out); }
  // `text` in bold, green, ... where colours are wanted.
  std::string bold(std::string_view text) const { return styled("1", text); }
  std::string green(std::string_view text) const { return styled("32", text); }
  std::string yellow(std::string_view text) const { return styled("33", text); }

 private:
  std::string styled(const char* code, std::string_view text) const;
};

struct TrainOptions {
  std::string task = "fashion-mnist";
  int64_t epochs = 10;
  int64_t batch = 512;
  int64_t accumulate = 1;  // micro-batches that a batch is computed in
  double lr = 0.001;
  std::string schedule = "cosine";  // of the learning rate: cosine or constant
  int64_t seed = 42;
  int64_t limit = 0;  // training images used; 0 is all
  std::string data = "/usr/share/datasets/fashion-mnist";
  std::string save;
  std::string plot;
  std::string tensorboard = {};  // a folder for curves as TensorBoard reads them
  bool resume = false;
};

struct BenchOptions {
  std::string what = "all";
  std::string model = "mnist";
  int64_t repeats = 5;
  std::string which = {};                 // of cases: with this in their group or name
  int64_t size = 0;                       // of cases; 0: each at its own sizes
  std::vector<std::string> against = {};  // peers that take turns with weft
  std::string python = "python3";         // has the peers
  int64_t busy = -1;                      // of cases: a CPU that another process keeps busy
  bool quick = false;                     // of lengths: few of them, in few turns
};

struct ExplainOptions {
  std::string code;     // an error code, an option, a model, or with `passes` a file
  bool passes = false;  // what every pass did
  std::string kernel;   // of kernels whose name has this in it, with texts
  std::string pass;     // of passes whose name has this in it, with texts
  std::string dump;     // folder for the texts
};

struct TokenizeOptions {
  std::string model;       // a tokenizer.json, a folder with one, a GGUF file
  std::string text = "-";  // -: standard input
  bool decode = false;     // the text is ids
  std::string chat = {};   // a file of messages, in the text's place
  size_t train = 0;        // tokens to learn from `files`; the model is where they are written
  std::vector<std::string> files = {};
  std::vector<std::string> special_tokens = {"<|endoftext|>"};
};

struct OnnxOptions {
  std::string action;               // check, inspect, run, bench, export or optimize
  std::string model;                // path
  std::vector<std::string> cases;   // of check: directories
  std::string which;                // of check: cases with this in their name
  int64_t most = 20;                // of check: how many that do not pass are listed; 0: all
  std::vector<std::string> inputs;  // "name=file.npy"
  std::vector<std::string> sizes;   // "name=3": of what the model names
  std::string output;               // of run: directory for .npy files; of optimize: a file
  bool external_data = false;       // of export and optimize
  int64_t opset = 20;               // of export
  int64_t seed = 0;                 // of inputs that are not given
  int64_t repeats = 20;             // of bench
  std::string against;              // of bench: "ort"
  std::string python = "python3";   // has the peer
};

struct VizOptions {
  std::string file;                       // a recording
  std::vector<std::string> command = {};  // in place of one: a program to record
  int64_t port = 0;                       // 0: any that is free
  bool no_browser = false;
  std::string history = {};   // benchmarks by commit, for the page
  std::string perfetto = {};  // in place of serving the page: a file for ui.perfetto.dev
  std::string view = "page";  // else what to print; empty: "session"
  std::vector<std::string> parameters = {};  // of the view: "pass=17"
};

struct LlmOptions;  // llm_options.h

/// All of it. Error: file.read.
std::string standard_input();

std::string version_text();  // "weft 0.1.0 (build 0123456789abcdef)"

// Each returns its exit code and throws Error.
int run_version(const Session& session);
int run_explain(const Session& session, const ExplainOptions& options);
// What every pass did to a model's step, or to the graph in a file; without either, what passes
// there are.
int explain_passes(const Session& session, const ExplainOptions& options);
int run_devices(const Session& session);
int run_inspect(const Session& session, const std::string& file);
int run_rules(const Session& session, const std::string& name);
int run_bench(const Session& session, const BenchOptions& options);
int run_train(const Session& session, const TrainOptions& options);
int run_onnx(const Session& session, const OnnxOptions& options);
int run_llm(const Session& session, const LlmOptions& options);
/// `words`: the command line from the subcommand on; its exit code.
int run_trust(const Session& session, std::span<const std::string> words);
int run_viz(const Session& session, const VizOptions& options);
int run_tokenize(const Session& session, const TokenizeOptions& options);
int check_onnx(const Session& session, const OnnxOptions& options);
int inspect_onnx(const Session& session, const OnnxOptions& options);
int run_onnx_model(const Session& session, const OnnxOptions& options);
int bench_onnx(const Session& session, const OnnxOptions& options);
int export_onnx_model(const Session& session, const OnnxOptions& options);
int optimize_onnx(const Session& session, const OnnxOptions& options);

// An Error where the default device takes kernels and runs none: nothing would be learnt on it.
void require_computing_device(Context& context);

// The null device of the machine that `device` names: of "CPU:X86", "x86" and "NULL:X86" it is
// NULL:X86, of "CPU" and "NULL" NULL. What has none, as GPUs, stands for itself.
std::string null_device(Context& context, std::string_view device);

}  // namespace weft
