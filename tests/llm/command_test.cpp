// `weft llm` as users meet it.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "tests/llm/llm_command.h"
#include "weft/base/format.h"
#include "weft/llm/lora.h"
#include "weft/llm/model_file.h"

namespace weft {
namespace {

TEST_F(LlmCommand, MakesLooksAtAndRunsAModel) {
  const std::string model = at("m.gguf");
  ASSERT_EQ(weft({"random", "--shape", "tiny", "--type", "q8_0", "-o", model}).code, kExitOk);
  const Outcome shown = weft({"inspect", model, "--json"});
  EXPECT_TRUE(has(shown, R"("family":"llama","name":"random tiny")")) << shown.text();
  EXPECT_TRUE(has(shown, R"("layers":2,"width":256)")) << shown.text();
  const std::vector<std::string> run = {"run", model,    "-p", "hello",        "-n",
                                        "5",   "--temp", "0",  "--ignore-end", "--json"};
  const Outcome first = weft(run);
  EXPECT_EQ(first.code, kExitOk);
  EXPECT_TRUE(has(first, R"("tokens":5)")) << first.text();
  const auto text_of = [](const Outcome& o) {
    return o.text().substr(0, o.text().find("first_token"));
  };
  EXPECT_EQ(text_of(weft(run)), text_of(first));
}

TEST_F(LlmCommand, Perplexity) {
  const std::string model = at("m.gguf");
  ASSERT_EQ(weft({"random", "--shape", "tiny", "--type", "f32", "-o", model}).code, kExitOk);
  const Outcome shown = weft({"perplexity", model, write("t.txt", "some words\n"), "--json"});
  EXPECT_EQ(shown.code, kExitOk) << shown.text();
  EXPECT_TRUE(has(shown, R"("perplexity":)")) << shown.text();
  EXPECT_TRUE(has(weft({"perplexity", model, write("e.txt", "")}), "e.txt"));
}

TEST_F(LlmCommand, Times) {
  const std::string model = at("m.gguf");
  ASSERT_EQ(weft({"random", "--shape", "tiny", "--type", "q8_0", "-o", model}).code, kExitOk);
  const Outcome timed =
      weft({"bench", model, "--slots", "2", "-n", "2", "--repeats", "1", "--json"});
  EXPECT_EQ(timed.code, kExitOk) << timed.text();
  for (const char* what : {"load and first token", "prompt of 256", "2 at once", "resident memory"})
    EXPECT_TRUE(has(timed, strformat(R"({{"what":"{}","value":)", what))) << timed.text();
  EXPECT_TRUE(has(timed, "bandwidth_share")) << timed.text();
  EXPECT_TRUE(has(weft({"bench", model, "--against", "llama.cpp", "--python", at("no python")}),
                  "name another Python by --python"));
}

TEST_F(LlmCommand, CtrlCEndsTheAnswerWithWhatHasCome) {
  const std::string model = at("m.gguf");
  ASSERT_EQ(weft({"random", "--shape", "tiny", "--type", "q8_0", "-o", model}).code, kExitOk);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    std::FILE* out = ::fdopen(ends[1], "w");
    const std::array line = {"weft",         "llm",          "run",       model.c_str(), "-p",
                             "hello",        "-n",           "100000000", "--context",   "0",
                             "--ignore-end", "--logit-bias", "300=100"};
    ::_exit(run_app(line, out, stderr));
  }
  ::close(ends[1]);
  std::string text(1, ' ');
  ASSERT_EQ(::read(ends[0], text.data(), 1), 1);  // it answers
  ::kill(child, SIGINT);
  char part[4096];
  for (ssize_t size; (size = ::read(ends[0], part, sizeof(part))) > 0;)
    text.append(part, static_cast<size_t>(size));
  ::close(ends[0]);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == kExitInterrupted) << status;
  EXPECT_TRUE(text.ends_with("word300\n")) << text;
}

TEST_F(LlmCommand, ReadsItsPromptFromAFile) {
  const std::string model = at("m.gguf");
  ASSERT_EQ(weft({"random", "--shape", "tiny", "--type", "q8_0", "-o", model}).code, kExitOk);
  const auto run = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"run", model, "-n", "5", "--temp", "0", "--ignore-end"});
    return weft(more);
  };
  const Outcome said = run({"-p", "hello"});
  EXPECT_EQ(run({"-f", write("p.txt", "hello\n")}).text(), said.text());
  EXPECT_TRUE(has(run({}), "--prompt or --file is required"));
  EXPECT_TRUE(has(run({"-p", "a", "-f", "b"}), "excludes --"));
}

TEST_F(LlmCommand, HoldsAnswersToWhatIsAsked) {
  const std::string model = at("m.gguf"), grammar = write("g.gbnf", "root ::= \"x\" \"y\"");
  ASSERT_EQ(weft({"random", "--shape", "tiny", "--type", "q8_0", "-o", model}).code, kExitOk);
  const auto run = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"run", model, "-p", "hello", "--json"});
    return weft(more);
  };
  EXPECT_TRUE(has(run({"--choices", "yes", "--choices", "yes, too"}), R"({"text":"yes)"));
  EXPECT_TRUE(has(run({"--pattern", "[a]{3}"}), R"({"text":"aaa","finish":"stop")"));
  EXPECT_TRUE(has(run({"--grammar", "@" + grammar}), R"({"text":"xy","finish":"stop")"));
  EXPECT_TRUE(has(run({"--grammar", "@" + at("none")}), "No such file"));
  EXPECT_TRUE(has(run({"-n", "2", "--logit-bias", "300=100,12=-3"}),
                  R"(" word300 word300","finish":"length")"));
  EXPECT_TRUE(has(run({"-n", "3", "--logit-bias", "300=100", "--stop-tokens", "5,300"}),
                  R"({"text":"","finish":"stop")"));
  EXPECT_TRUE(has(run({"-n", "3", "--logit-bias", "300=100", "--stop", "d300 w"}),
                  R"({"text":" wor","finish":"stop")"));
  EXPECT_TRUE(has(run({"--pattern", "a", "--grammar", "root ::= \"a\""}),
                  "grammar and pattern are given; an answer can be held to one of them"));
}

TEST_F(LlmCommand, SaysWhichOptionIsWrong) {
  const std::pair<std::vector<std::string>, const char*> kWrong[] = {
      {{"--temp", "nan"}, "temperature is 'nan'; it has to be a number, 0 to 100"},
      {{"--seed", "99999999999999999999"},
       "seed is '99999999999999999999'; it has to be an integer"},
      {{"--stop-tokens", "1,x"}, "stop_tokens is 'x'; it has to be ids of tokens"},
      {{"--logit-bias", "5"}, "logit_bias is '5'; it has to be TOKEN=BIAS"},
      {{"--context", "-1"}, "--context: '-1' is not an integer, 0 or more"},
      {{"--threads", "99999999999999999999"}, "is not an integer, 1 to 1024"},
      {{"-n", "1", "-n", "2"}, "--tokens is given more than once"},
      {{"--top-k"}, "--top-k takes a value, and there is none"},
      {{"--promt", "x"}, "there is no option '--promt'; did you mean --prompt?"},
      {{"some", "words"}, "'some' is a word too many"},
  };
  for (const auto& [words, want] : kWrong) {
    std::vector<std::string> line = {"run", at("m.gguf"), "-p", "hello"};
    line.insert(line.end(), words.begin(), words.end());
    const Outcome o = weft(line);
    EXPECT_EQ(o.code, kExitUsage) << o.text();
    EXPECT_TRUE(has(o, want)) << o.text();
  }
  EXPECT_TRUE(has(weft({"rn", at("m.gguf")}), "there is no command 'rn'; did you mean run?"));
  EXPECT_TRUE(has(run_command({"--json", "devices"}), "'--json' stands before the command"));
  EXPECT_TRUE(has(weft({"train", "-o", at("o"), "--lr", "nan"}), "'nan' is not a number"));
  EXPECT_TRUE(has(weft({"run", "--lora", at("l"), at("m.gguf"), "-p", "x"}), "No such file"));
}

TEST_F(LlmCommand, SaysWhatIsNoModel) {
  const std::string page = write("page.gguf", "<html>"), empty = write("empty.gguf", "");
  for (const char* command : {"run", "inspect", "perplexity", "serve", "quantize"}) {
    const auto said = [&](const std::string& path) {
      std::vector<std::string> line = {command, path};
      if (line[0] == "run") line.insert(line.end(), {"-p", "x"});
      if (line[0] == "perplexity") line.push_back(page);
      if (line[0] == "quantize") line.insert(line.end(), {"--type", "Q8_0", "-o", at("made")});
      return weft(line).err;
    };
    EXPECT_NE(said(page).find("[llm] " + page + " is no GGUF file: it begins with '<htm'"),
              std::string::npos)
        << said(page);
    EXPECT_NE(said(empty).find("is empty"), std::string::npos) << said(empty);
    EXPECT_NE(said(at("")).find("has no config.json"), std::string::npos) << said(at(""));
    EXPECT_NE(said(at("none")).find("No such file"), std::string::npos) << said(at("none"));
  }
}

TEST_F(LlmCommand, SaysWhatIsWrong) {
  EXPECT_TRUE(
      has(weft({"random", "--shape", "huge", "-o", at("x")}), "there is no shape 'huge': tiny"));
  EXPECT_TRUE(
      has(weft({"random", "--type", "Q9", "-o", at("x")}), "there is no block format 'Q9'"));
  EXPECT_TRUE(has(weft({"run", at("none.gguf"), "-p", "x"}), "none.gguf"));
}

TEST_F(LlmCommand, Quantises) {
  const std::string model = at("m.gguf"), made = at("q.gguf");
  ASSERT_EQ(weft({"random", "--shape", "tiny", "--type", "f16", "-o", model}).code, kExitOk);
  const Outcome outcome = weft({"quantize", model, "--type", "Q4_K_M", "-o", made});
  ASSERT_EQ(outcome.code, kExitOk) << outcome.text();
  EXPECT_TRUE(has(weft({"run", made, "-p", "a", "-n", "2", "--ignore-end", "--json"}), "tokens"));
  EXPECT_TRUE(has(weft({"quantize", made, "--type", "Q2_K", "-o", at("b.gguf")}), "--requantize"));
  EXPECT_TRUE(has(weft({"quantize", model, "--type", "Q4_0", "-o", at("./m.gguf")}),
                  "is what it would be made of: name another place"));
  EXPECT_TRUE(has(weft({"quantize", at("none"), "--type", "Q2_K", "-o", made}), "No such file"));
}

TEST_F(LlmCommand, ConvertsThereAndBack) {
  const std::string model = at("m.gguf"), folder = at("folder"), made = at("q.gguf");
  ASSERT_EQ(weft({"random", "--shape", "tiny", "--type", "f16", "-o", model}).code, kExitOk);
  const Outcome outcome = weft({"convert", model, "-o", folder, "--json"});
  ASSERT_EQ(outcome.code, kExitOk) << outcome.text();
  EXPECT_TRUE(has(outcome, folder));
  ASSERT_EQ(weft({"quantize", folder, "--type", "Q4_K_M", "-o", made}).code, kExitOk);
  EXPECT_TRUE(has(weft({"run", made, "-p", "a", "-n", "2", "--ignore-end", "--json"}), "tokens"));
  EXPECT_TRUE(
      has(weft({"convert", folder, "--type", "Q8_0", "-o", made, "--json"}), "bytes_before"));
  EXPECT_TRUE(has(weft({"convert", model, "--type", "Q8_0", "-o", folder}), "F32, F16 or BF16"));
}

TEST_F(LlmCommand, Adapters) {
  const std::string model = at("m.gguf"), adapter = at("l.gguf"), made = at("merged.gguf");
  ASSERT_EQ(weft({"random", "--shape", "tiny", "--type", "q8_0", "-o", model}).code, kExitOk);
  const llm::ModelFile file = llm::read_model(model);
  llm::save_lora_gguf(adapter, llm::new_lora(file.weights, file.config, {}, 1), file.config);
  const std::vector<std::string> run = {"run", model,    "-p", "hello",       "-n",
                                        "5",   "--temp", "0",  "--ignore-end"};
  std::vector<std::string> adapted = run;
  adapted.insert(adapted.end(), {"--lora", adapter});
  EXPECT_EQ(weft(adapted).text(), weft(run).text());  // a new one changes nothing
  const Outcome merged = weft({"merge", model, "--lora", adapter, "-o", made});
  ASSERT_EQ(merged.code, kExitOk) << merged.text();
  EXPECT_TRUE(has(weft({"inspect", made}), "Q8_0"));
  EXPECT_TRUE(has(weft({"merge", model, "--lora", model, "-o", made}), "not a lora adapter"));
  adapted.insert(adapted.end(), {"--lora-scale", "1", "--lora-scale", "2"});
  EXPECT_TRUE(has(weft(adapted), "2 scales of 1 adapters"));
}

}  // namespace
}  // namespace weft
