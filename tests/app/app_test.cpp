// The command as users meet it: exit codes, where output goes, what errors say.
#include "weft/app/app.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace weft {
namespace {

struct Outcome {
  int code;
  std::string out, err;
};

std::string take(std::FILE* file) {
  std::string text(static_cast<size_t>(std::ftell(file)), '\0');
  std::rewind(file);
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  return text;
}

Outcome weft(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "weft");
  std::FILE* out = std::tmpfile();
  std::FILE* err = std::tmpfile();
  const int code = run_app(arguments, out, err);
  return {code, take(out), take(err)};
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(App, HelpGoesToOutAndSucceeds) {
  const Outcome all = weft({"--help"});
  EXPECT_EQ(all.code, kExitOk);
  for (const char* name : {"train", "devices", "bench", "rules", "explain", "version"}) {
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
  for (const std::vector<const char*>& bad : {std::vector<const char*>{},
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

TEST(App, Version) {
  EXPECT_TRUE(has(weft({"version"}).out, "weft 0.1.0 (build "));
  EXPECT_TRUE(has(weft({"version", "--json"}).out, R"({"version":"0.1.0","build":")"));
}

TEST(App, ExplainsCodesAndOptions) {
  const Outcome code = weft({"explain", "safetensors.layout"});
  EXPECT_EQ(code.code, kExitOk);
  EXPECT_TRUE(has(code.out, "overlap"));
  EXPECT_TRUE(has(weft({"explain", "WEFT_DEBUG"}).out, "4 kernel source"));
  const Outcome list = weft({"explain"});
  EXPECT_TRUE(has(list.out, "file.missing\n"));
  EXPECT_TRUE(has(list.out, "WEFT_THREADS\n"));
  const Outcome unknown = weft({"explain", "safetensor.layout"});
  EXPECT_EQ(unknown.code, kExitFailure);
  EXPECT_TRUE(has(unknown.err, "did you mean safetensors.layout")) << unknown.err;
}

TEST(App, ExplainsTheKernelsOfAModel) {
  const Outcome mnist = weft({"explain", "mnist"});
  EXPECT_EQ(mnist.code, kExitOk);
  EXPECT_EQ(mnist.err, "");
  EXPECT_TRUE(has(mnist.out, ": a reduction at fashion.cpp:")) << mnist.out;
  EXPECT_TRUE(has(mnist.out, "on NULL:X86 at fashion.cpp:")) << mnist.out;
  EXPECT_TRUE(has(weft({"explain", "mnist", "--json"}).out, R"({"line":"kernel )"));
}

TEST(App, DevicesListsWhatIsThere) {
  const Outcome devices = weft({"devices"});
  EXPECT_EQ(devices.code, kExitOk);
  EXPECT_TRUE(has(devices.out, "CPU:C"));
  EXPECT_TRUE(has(devices.out, "NULL"));
  EXPECT_TRUE(has(weft({"devices", "--json"}).out, R"("available":true)"));
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

}  // namespace
}  // namespace weft
