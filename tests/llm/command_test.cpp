// `weft llm` as users meet it.
#include <gtest/gtest.h>

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
  EXPECT_TRUE(has(weft({"quantize", at("none"), "--type", "Q2_K", "-o", made}),
                  "is neither a GGUF file nor a folder"));
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
