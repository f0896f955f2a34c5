// The command as users meet it: exit codes, where output goes, what errors say.
#include "weft/app/app.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/app/command.h"
#include "tests/source_dir.h"
#include "weft/base/file.h"

namespace weft {
namespace {

using Outcome = CommandOutcome;

Outcome weft(const std::vector<std::string>& words) { return run_command(words); }

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(App, HelpGoesToOutAndSucceeds) {
  const Outcome all = weft({"--help"});
  EXPECT_EQ(all.code, kExitOk);
  for (const char* name : {"train", "devices", "bench", "rules", "explain", "inspect", "tokenize",
                           "completion", "version"}) {
    EXPECT_TRUE(has(all.out, name)) << name;
  }
  EXPECT_TRUE(has(all.out, "WEFT_DEBUG"));
  EXPECT_EQ(all.err, "");
  const Outcome train = weft({"train", "--help"});
  EXPECT_EQ(train.code, kExitOk);
  for (const char* option : {"--epochs", "--batch", "--lr", "--seed", "--threads", "--device",
                             "--data", "--save", "--resume", "--plot", "--json"}) {
    EXPECT_TRUE(has(train.out, option)) << option;
  }
}

TEST(App, WrongUsageIsTwoAndSaysSoOnce) {
  for (const std::vector<std::string>& bad : {std::vector<std::string>{},
                                              {"trian"},
                                              {"train"},
                                              {"train", "cifar"},
                                              {"bench", "x"},
                                              {"train", "fashion-mnist", "--epochs", "0"},
                                              {"train", "fashion-mnist", "--lr", "-1"},
                                              {"version", "--wat"},
                                              {"train", "fashion-mnist", "--batch", "many"}}) {
    const Outcome outcome = weft(bad);
    EXPECT_EQ(outcome.code, kExitUsage);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err.rfind("weft: ", 0), 0u) << outcome.err;
    EXPECT_TRUE(has(outcome.err, "--help` shows what is possible")) << outcome.err;
  }
}

/// The program beside this one that has the reference: its output, its exit codes.
TEST(App, FuzzIsAnotherProgram) {
  const Outcome fuzz = weft({"fuzz", "--count", "3", "--json"});
  EXPECT_EQ(fuzz.code, kExitOk) << fuzz.err;
  EXPECT_TRUE(has(fuzz.out, R"("programs":3)")) << fuzz.out;
  const Outcome help = weft({"bisect", "--help"});
  EXPECT_EQ(help.code, kExitOk);
  EXPECT_TRUE(has(help.out, "weft bisect -- python check.py")) << help.out;
  const Outcome right = weft({"bisect", "--", "true", "--json"});
  EXPECT_TRUE(has(right.err, "the command exits with 0")) << right.err;
  const Outcome missing = weft({"repro", "/no/such.repro"});
  EXPECT_EQ(missing.code, kExitFailure);
  EXPECT_TRUE(has(missing.err, "/no/such.repro")) << missing.err;
}

TEST(App, FuzzOfNoDeviceIsAnError) {
  const Outcome fuzz = weft({"fuzz", "--device", "NOPE"});
  EXPECT_EQ(fuzz.code, kExitFailure);
  EXPECT_TRUE(has(fuzz.err, "there is no device \"NOPE\"")) << fuzz.err;
  EXPECT_EQ(fuzz.out, "");
  const Outcome target = weft({"fuzz", "--device", "CHECK:NOPE"});
  EXPECT_EQ(target.code, kExitFailure);
  EXPECT_TRUE(has(target.err, "there is no target \"nope\"")) << target.err;
  EXPECT_EQ(target.out, "");
}

TEST(App, WhatCannotBePrintedIsAnError) {
  std::FILE *full = std::fopen("/dev/full", "w"), *err = std::tmpfile();
  if (full == nullptr) GTEST_SKIP() << "no /dev/full here";
  const char* const words[] = {"weft", "version"};
  EXPECT_EQ(run_app(words, full, err), kExitFailure);
  std::fclose(full);
  EXPECT_TRUE(has(taken(err), "cannot write what is printed: No space left on device"));
}

TEST(App, ClosedOutputIsNoFileOfOurs) {
  const int kept = ::dup(STDOUT_FILENO);
  ::close(STDOUT_FILENO);
  open_standard_files();
  const int next = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::dup2(kept, STDOUT_FILENO);
  ::close(kept);
  EXPECT_GT(next, STDERR_FILENO);
  ::close(next);
}

TEST(App, LinksToThemselvesAreErrorsOfFiles) {
  const std::string loop = testing::TempDir() + "/weft_loop";
  std::filesystem::remove(loop);
  std::filesystem::create_symlink(loop, loop);
  const Outcome check = weft({"onnx", "check", loop.c_str()});
  std::filesystem::remove(loop);
  EXPECT_EQ(check.code, kExitFailure);
  EXPECT_TRUE(has(check.err, "weft: [file] ")) << check.err;
}

/// What a crash would leave is written at each call; benchmarks measure what programs have.
TEST(App, BenchmarksLeaveNoProgramBehind) {
  const std::string state = testing::TempDir() + "/bench_state";
  std::filesystem::remove_all(state);
  ::setenv("XDG_STATE_HOME", state.c_str(), 1);
  EXPECT_EQ(weft({"bench", "dispatch", "--repeats", "1"}).code, kExitOk);
  EXPECT_FALSE(std::filesystem::exists(state + "/weft/repro"));
  EXPECT_EQ(weft({"explain", "mnist"}).code, kExitOk);
  EXPECT_TRUE(std::filesystem::exists(state + "/weft/repro"));
  ::unsetenv("XDG_STATE_HOME");
}

TEST(App, Version) {
  EXPECT_TRUE(has(weft({"version"}).out, "weft 0.1.0 (build "));
  EXPECT_TRUE(has(weft({"version", "--json"}).out, R"({"version":"0.1.0","build":")"));
  const Outcome flag = weft({"--version"});
  EXPECT_EQ(flag.code, kExitOk);
  EXPECT_EQ(flag.out, weft({"version"}).out);
}

TEST(App, UnknownWordsNameTheNearest) {
  EXPECT_TRUE(has(weft({"trian"}).err, "weft: there is no command 'trian'; did you mean train?"));
  EXPECT_TRUE(has(weft({"frobnicate"}).err, "weft: there is no command 'frobnicate'\n"));
  EXPECT_TRUE(has(weft({"train", "fashion-mnist", "--epoch=3"}).err,
                  "there is no option '--epoch'; did you mean --epochs?"));
}

/// What bash offers after these words.
std::string completed(const std::string& words, int last) {
  const Outcome script = weft({"completion", "bash"});
  EXPECT_EQ(script.code, kExitOk);
  const std::string file = testing::TempDir() + "/completion.bash";
  std::ofstream(file) << script.out << "COMP_WORDS=(" << words << ")\nCOMP_CWORD=" << last
                      << "\n_weft\necho \"${COMPREPLY[@]}\"\n";
  std::FILE* bash = ::popen(("bash " + file + " 2>&1").c_str(), "r");
  std::string text(4096, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), bash));
  ::pclose(bash);
  return text;
}

TEST(App, CompletesCommandsOptionsAndValues) {
  EXPECT_EQ(completed("weft tr", 1), "train\n");
  EXPECT_EQ(completed("weft train --schedule ''", 3), "cosine constant\n");
  EXPECT_EQ(completed("weft train --ep", 2), "--epochs\n");
  EXPECT_EQ(completed("weft train fash", 2), "fashion-mnist\n");
  EXPECT_TRUE(has(weft({"completion", "zsh"}).out, "#compdef weft"));
  EXPECT_TRUE(has(weft({"completion", "fish"}).out, "-l schedule -x -a 'cosine constant'"));
  EXPECT_EQ(weft({"completion", "tcsh"}).code, kExitUsage);
}

TEST(App, ExplainsCodesAndOptions) {
  const Outcome code = weft({"explain", "safetensors.layout"});
  EXPECT_EQ(code.code, kExitOk);
  EXPECT_TRUE(has(code.out, "overlap"));
  EXPECT_TRUE(has(weft({"explain", "WEFT_DEBUG"}).out, "4 the code of kernels"));
  const Outcome list = weft({"explain"});
  EXPECT_TRUE(has(list.out, "file.missing\n"));
  EXPECT_TRUE(has(list.out, "WEFT_THREADS\n"));
  const Outcome unknown = weft({"explain", "safetensor.layout"});
  EXPECT_EQ(unknown.code, kExitFailure);
  EXPECT_TRUE(has(unknown.err, "did you mean safetensors.layout")) << unknown.err;
  // A reason without a row of its own belongs to its operation.
  EXPECT_TRUE(has(weft({"explain", "conv2d.groups"}).out, "dilation * (k - 1)"));
}

TEST(App, ExplainsTheKernelsOfAModel) {
  const Outcome mnist = weft({"explain", "mnist"});
  EXPECT_EQ(mnist.code, kExitOk);
  EXPECT_EQ(mnist.err, "");
  EXPECT_TRUE(has(mnist.out, ": a reduction with several uses at fashion.cpp:")) << mnist.out;
  EXPECT_TRUE(has(mnist.out, "on NULL:X86 at fashion.cpp:")) << mnist.out;
  std::istringstream json(weft({"explain", "mnist", "--json"}).out);
  std::set<std::string> kinds;
  for (std::string line; std::getline(json, line);) {
    const auto record = nlohmann::json::parse(line);
    kinds.insert(record.at("kind"));
    EXPECT_EQ(record.contains("flops"), record.at("kind") == "kernel") << line;
  }
  EXPECT_EQ(kinds, (std::set<std::string>{"decision", "kernel", "plan"}));
}

TEST(App, ExplainsTheKernelsOfAGpuThatIsNotHere) {
  const Outcome mnist = weft({"explain", "mnist", "--device", "ptx"});
  EXPECT_EQ(mnist.code, kExitOk) << mnist.err;
  EXPECT_TRUE(has(mnist.out, "on NULL:PTX at fashion.cpp:")) << mnist.out;
}

TEST(App, SlowExplainsTheKernelsOfAGpu) {
  const Outcome mnist = weft({"explain", "mnist", "--device", "opencl"});
  if (has(mnist.err, "open failed")) GTEST_SKIP() << mnist.err;
  EXPECT_EQ(mnist.code, kExitOk) << mnist.err;
  EXPECT_TRUE(has(mnist.out, "on OPENCL at fashion.cpp:")) << mnist.out;
}

TEST(App, ExplainsWhatPassesDid) {
  EXPECT_TRUE(has(weft({"explain", "--passes"}).out, "lower.vectorise "));
  EXPECT_EQ(weft({"explain", "--pass", "lower.unroll"}).code, kExitUsage);
  const Outcome table = weft({"explain", "mnist", "--passes"});
  EXPECT_EQ(table.code, kExitOk) << table.err;
  for (const char* pass : {"normalise.number", "schedule.plan", "optimize.tile", "lower.linearise",
                           "codegen.encode", "load.programs", "plan.arenas", "bind.commands"})
    EXPECT_TRUE(has(table.out, pass)) << table.out;
  std::istringstream json(
      weft({"explain", "mnist", "--passes", "--pass", "lower.unroll", "--json"}).out);
  int changed = 0;
  for (std::string line; std::getline(json, line);) {
    const auto record = nlohmann::json::parse(line);
    EXPECT_EQ(record.at("pass"), "lower.unroll");
    EXPECT_EQ(record.at("changed"), record.at("before") != record.at("after"));
    changed += record.at("changed").get<bool>();
  }
  EXPECT_GT(changed, 10);
}

// What a pass was given is a file that the compiler takes up again, as a kernel or as values.
TEST(App, PassesOfDumpedGraphs) {
  const std::string folder = testing::TempDir() + "/passes";
  std::filesystem::remove_all(folder);
  for (const char* pass : {"normalise.number", "optimize.split_digits", "schedule.import"})
    EXPECT_EQ(weft({"explain", "mnist", "--passes", "--pass", pass, "--dump", folder.c_str()}).code,
              0);
  std::string kernel, values, tensors;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().string();
    if (name.ends_with("optimize.split_digits.before.wt") && kernel.empty()) kernel = name;
    if (name.ends_with("schedule.import.after.wt")) values = name;
    if (name.ends_with("normalise.number.before.wt")) tensors = name;
  }
  const Outcome of_kernel = weft({"explain", kernel.c_str(), "--passes"});
  EXPECT_EQ(of_kernel.code, kExitOk) << of_kernel.err;
  EXPECT_TRUE(has(of_kernel.out, "codegen.encode"));
  EXPECT_FALSE(has(of_kernel.out, "schedule.plan"));
  const Outcome of_values = weft({"explain", values.c_str(), "--passes"});
  EXPECT_EQ(of_values.code, kExitOk) << of_values.err;
  EXPECT_TRUE(has(of_values.out, "schedule.plan"));
  EXPECT_FALSE(has(of_values.out, "normalise.number"));
  const Outcome of_tensors = weft({"explain", tensors.c_str(), "--passes"});
  EXPECT_EQ(of_tensors.code, kExitOk) << of_tensors.err;
  EXPECT_TRUE(has(of_tensors.out, "normalise.number"));
  const std::string page = source_dir() + std::string("/README.md");
  const Outcome broken = weft({"explain", page.c_str(), "--passes"});
  EXPECT_EQ(broken.code, kExitFailure);
  EXPECT_TRUE(has(broken.err, "README.md")) << broken.err;
}

TEST(App, DevicesListsWhatIsThere) {
  const Outcome devices = weft({"devices"});
  EXPECT_EQ(devices.code, kExitOk);
  EXPECT_TRUE(has(devices.out, "CPU:C"));
  EXPECT_TRUE(has(devices.out, "NULL"));
  EXPECT_TRUE(has(weft({"devices", "--json"}).out, R"("available":true)"));
}

TEST(App, InspectsFilesByTheirFirstBytes) {
  const std::string corpus = source_dir() + std::string("/tests/fuzz/corpus/");
  const Outcome gguf = weft({"inspect", (corpus + "gguf/small").c_str()});
  EXPECT_EQ(gguf.code, kExitOk) << gguf.err;
  EXPECT_TRUE(has(gguf.out, "GGUF version 3, alignment 32: 2 tensors of 67 numbers in 48 bytes"));
  EXPECT_TRUE(has(gguf.out, "['a', 'bc', '']"));
  EXPECT_TRUE(has(gguf.out, "(2, 32)"));
  EXPECT_TRUE(has(weft({"inspect", (corpus + "npy/f4").c_str()}).out, "NPY: 1 tensors of"));
  const Outcome json = weft({"inspect", (corpus + "gguf/small").c_str(), "--json"});
  EXPECT_TRUE(has(json.out, R"({"name":"w","type":"Q4_0","shape":[2,32],"bytes":36})")) << json.out;
  const Outcome page = weft({"inspect", (source_dir() + std::string("/README.md")).c_str()});
  EXPECT_EQ(page.code, kExitFailure);
  EXPECT_TRUE(has(page.err, "safetensors")) << page.err;
}

TEST(App, RulesAreListedAndFiltered) {
  EXPECT_TRUE(has(weft({"rules"}).out, " rules\n"));
  const Outcome json = weft({"rules", "index", "--json"});
  EXPECT_EQ(json.out.rfind("{\"set\":\"", 0), 0u);
  EXPECT_TRUE(has(weft({"rules", "no_such_rule"}).err, "no rule or set has 'no_such_rule'"));
}

TEST(App, TrainFailuresSayWhatToDo) {
  const Outcome missing = weft({"train", "fashion-mnist", "--data", "/nonexistent"});
  EXPECT_EQ(missing.code, kExitFailure);
  EXPECT_TRUE(has(missing.err, "apt-get install dataset-fashion-mnist")) << missing.err;
  const Outcome resume = weft({"train", "fashion-mnist", "--resume"});
  EXPECT_EQ(resume.code, kExitFailure);
  EXPECT_TRUE(has(resume.err, "give --save FILE")) << resume.err;
}

TEST(App, TokenizeShowsTokensAndIds) {
  const std::string model = source_dir() + std::string("/tests/fuzz/corpus/tokenizer/bpe");
  const Outcome text = weft({"tokenize", model.c_str(), "a B1[MASK]"});
  EXPECT_EQ(text.code, kExitOk) << text.err;
  EXPECT_EQ(text.out, "[MASK] a \u0120b 1 [MASK]\n9 0 3 4 9\n5 tokens\n");
  const Outcome json = weft({"tokenize", model.c_str(), "a B", "--json"});
  const auto parsed = nlohmann::json::parse(json.out);
  EXPECT_EQ(parsed["ids"], (std::vector<int>{9, 0, 3}));
  EXPECT_EQ(parsed["tokens"][2], "\u0120b");
  EXPECT_EQ(weft({"tokenize", model.c_str(), "--decode", "[9, 0, 3]"}).out, "[MASK]a b\n");
  EXPECT_TRUE(has(weft({"tokenize", model.c_str(), "--decode", "99999999999"}).err,
                  "an id of more than 2147483647"));
  EXPECT_TRUE(has(weft({"tokenize", source_dir()}).err, "the folder has no tokenizer.json"));
}

TEST(App, TokenizeLearnsATokenizer) {
  const std::string text = testing::TempDir() + "corpus.txt", made = testing::TempDir() + "t.json";
  atomic_write_file(text, "low low lot lower");
  const Outcome learnt =
      weft({"tokenize", made.c_str(), "--train", "259", "--from", text.c_str(), "--json"});
  EXPECT_EQ(learnt.code, kExitOk) << learnt.err;
  EXPECT_TRUE(has(learnt.out, "{\"tokens\":259,")) << learnt.out;
  EXPECT_TRUE(has(weft({"tokenize", made.c_str(), "low<|endoftext|>"}).out, "3 tokens"));
  const Outcome small = weft({"tokenize", made.c_str(), "--train", "9", "--from", text.c_str()});
  EXPECT_TRUE(has(small.err, "a vocabulary of 9 tokens")) << small.err;
  atomic_write_file(text, "a");  // nothing to merge
  const Outcome bytes = weft({"tokenize", made.c_str(), "--train", "300", "--from", text.c_str()});
  EXPECT_TRUE(has(bytes.out, "257 tokens")) << bytes.out;
}

}  // namespace
}  // namespace weft
