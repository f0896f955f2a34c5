// `weft llm train` as users meet it.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>

#include "tests/llm/llm_command.h"
#include "weft/io/safetensors.h"

namespace weft {
namespace {

class LlmTrain : public LlmCommand {
 protected:
  void SetUp() override {
    LlmCommand::SetUp();
    std::filesystem::create_directory(at("texts"));
    std::string text;
    for (int i = 0; i < 300; ++i)
      text += "Line " + std::to_string(i * 37 % 101) + " of a text that says little.\n";
    write("texts/a.txt", text);
  }
  Outcome train(const std::string& out, std::vector<std::string> more, bool fresh = true) const {
    std::vector<std::string> words = {"train", "-o", at(out), "--config", "tiny", "--batch", "4"};
    if (fresh) words.insert(words.end(), {"--data", at("texts"), "--vocabulary", "300"});
    words.insert(words.end(), more.begin(), more.end());
    return weft(words);
  }
  int64_t steps(const std::string& out) const {
    return static_cast<int64_t>(
        read_safetensors(at(out + "/checkpoint.safetensors")).find("history.loss")->numel());
  }
  std::string checkpoint(const std::string& out) const {
    return content(at(out + "/checkpoint.safetensors"));
  }
};

TEST_F(LlmTrain, MakesAModelThatRuns) {
  const Outcome made =
      train("out", {"--steps", "6", "--every", "3", "--warmup", "2", "--validation", "0.2",
                    "--sample", "4", "--tensorboard", at("board")});
  ASSERT_EQ(made.code, kExitOk) << made.text();
  for (const char* part :
       {"tokens of 1 files to train on", "gpt2: ", "step      3  loss ", "step      6  loss ",
        "validation", "tokens/s", "loss (nats of a token)", "trained in"})
    EXPECT_TRUE(has(made, part)) << part << "\n" << made.text();
  EXPECT_NE(content(at("out/loss.svg")).find("validation"), std::string::npos);
  EXPECT_NE(content(at("out/log.jsonl")).find(R"({"step":6,"loss":)"), std::string::npos);
  for (const auto& file : std::filesystem::directory_iterator(at("board")))
    for (const char* tag : {"train/loss", "train/gradient_norm", "validation/loss"})
      EXPECT_NE(content(file.path()).find(tag), std::string::npos) << tag;
  for (const char* model : {"out", "out/model.gguf"}) {
    const Outcome run = weft({"run", at(model), "-p", "Line 5", "-n", "3", "--json"});
    EXPECT_TRUE(has(run, R"("tokens":)")) << run.text();
  }
  const Outcome again = train("out", {"--steps", "6"});
  EXPECT_EQ(again.code, kExitFailure);
  EXPECT_TRUE(has(again, "there is a training in '" + at("out") + "' already; resume it"))
      << again.text();
}

TEST_F(LlmTrain, JsonIsAValueALine) {
  const Outcome made = train(
      "out", {"--steps", "2", "--warmup", "0", "--validation", "0.2", "--sample", "0", "--json"});
  ASSERT_EQ(made.code, kExitOk) << made.text();
  EXPECT_TRUE(has(made, R"({"training_tokens":)")) << made.text();
  EXPECT_TRUE(has(made, R"({"step":2,"loss":)")) << made.text();
  EXPECT_TRUE(has(made, R"({"steps":2,"seconds":)")) << made.text();
}

TEST_F(LlmTrain, SaysWhatIsWrong) {
  const auto refused = [&](const std::vector<std::string>& words, const std::string& part) {
    const Outcome o = weft(words);
    EXPECT_EQ(o.code, kExitFailure);
    EXPECT_TRUE(has(o, part)) << o.text();
  };
  const std::string out = at("out");
  refused({"train", "-o", out}, "there is nothing to learn from: give --data, or --resume");
  refused({"train", "-o", out, "--data", at("none")}, "there is no file or folder");
  std::filesystem::create_directory(at("empty"));
  refused({"train", "-o", out, "--data", at("empty")}, "there is no text in '" + at("empty"));
  refused({"train", "-o", out, "--data", write("bad.txt", "caf\xe9 au lait")}, "is not UTF-8");
  refused({"train", "-o", out, "--data", at("texts"), "--config", "enormous"},
          "there is no configuration 'enormous'");
  refused({"train", "-o", out, "--data", at("texts"), "--config", write("c.json", "{")}, "c.json");
  refused({"train", "-o", out, "--data", at("texts"), "--tokenizer", write("t.json", "{}")},
          "tokenizer");
  refused({"train", "-o", out, "--data", at("texts"), "--device", "NULL"},
          "nothing would be learnt");
  refused({"train", "-o", out, "--resume"}, "config.json");
  refused({"train", "-o", out, "--export"}, "config.json");
  EXPECT_EQ(weft({"train", "-o", out, "--optimizer", "sgd"}).code, kExitUsage);
}

TEST_F(LlmTrain, ResumesWithTheSameOptionsOnly) {
  const std::vector<std::string> course = {
      "--steps", "100000", "--warmup", "2", "--validation", "0.2", "--sample", "0", "--every", "2"};
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGINT, SIG_DFL);  // whatever started us may have it ignored
    ::_exit(train("out", course).code);
  }
  while (!std::filesystem::exists(at("out/checkpoint.safetensors"))) ::usleep(5000);
  ::kill(child, SIGINT);
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), kExitInterrupted);
  EXPECT_GE(steps("out"), 2);
  EXPECT_EQ(train("out", {"--export"}, false).code, kExitOk);
  EXPECT_TRUE(std::filesystem::exists(at("out/model.gguf")));
  const Outcome other = train("out", {"--resume", "--steps", "500"}, false);
  EXPECT_EQ(other.code, kExitFailure);
  EXPECT_TRUE(has(other, "steps = 100000, this run has 500")) << other.text();
}

TEST_F(LlmTrain, SlowKilledTrainingsGoOnToTheSameBits) {
  const std::vector<std::string> course = {"--steps",      "40",  "--warmup",  "2",
                                           "--validation", "0.2", "--sample",  "0",
                                           "--every",      "4",   "--dropout", "0.1"};
  // A model has the name of its folder.
  const std::string part = "part/model", whole = "whole/model";
  std::vector<std::string> resumed = course;
  resumed.emplace_back("--resume");
  for (int kill = 0;; ++kill) {
    const int64_t reached = kill == 0 ? 0 : steps(part);
    if (reached >= 24) break;
    const pid_t child = ::fork();
    if (child == 0) ::_exit(train(part, kill == 0 ? course : resumed, kill == 0).code);
    while (!std::filesystem::exists(at(part + "/checkpoint.safetensors")) || steps(part) == reached)
      ::usleep(1000);
    ::usleep(static_cast<useconds_t>(kill * 17000));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
  ASSERT_EQ(train(part, resumed, false).code, kExitOk);
  ASSERT_EQ(train(whole, course).code, kExitOk);
  EXPECT_TRUE(checkpoint(whole) == checkpoint(part));  // too long to print
  EXPECT_EQ(content(at(whole + "/log.jsonl")), content(at(part + "/log.jsonl")));
  EXPECT_TRUE(content(at(whole + "/model.gguf")) == content(at(part + "/model.gguf")));
}

}  // namespace
}  // namespace weft
