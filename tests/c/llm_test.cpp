// The C interface: language models.
#include "weft/c/llm.hpp"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "tests/c/c_test.h"

namespace weft::c {
namespace {

class CLlmTest : public CTest {
 protected:
  // A llama of random weights in a folder of Hugging Face's, with a tokenizer of bytes; made once.
  static void SetUpTestSuite() {
    char pattern[] = "/tmp/weft_c_llm_XXXXXX";
    ASSERT_NE(::mkdtemp(pattern), nullptr);
    path() = pattern;
    const char* text = "hello";
    ASSERT_EQ(weft_tokenizer_train((path() + "/tokenizer.json").c_str(), &text, 1, 257, nullptr),
              WEFT_OK);
    std::ofstream(path() + "/config.json")
        << R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 96, "vocab_size": 257,
               "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
               "max_position_embeddings": 256, "rms_norm_eps": 1e-5})";
    const Context context({"WEFT_DEV=CPU", "WEFT_THREADS=2"});
    save(path() + "/model.safetensors", weights(context));
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(path()); }
  static std::map<std::string, Tensor> weights(const Context& context) {
    std::map<std::string, Tensor> all;
    const auto add = [&](const std::string& name, const std::vector<int64_t>& shape) {
      all.emplace(name + ".weight",
                  shape.size() == 1 ? context.ones(shape) : context.rand(shape) - 0.5);
    };
    for (const char* name : {"model.embed_tokens", "lm_head"}) add(name, {257, 64});
    for (const std::string layer : {"model.layers.0.", "model.layers.1."}) {
      for (const char* name : {"q", "o"}) add(layer + "self_attn." + name + "_proj", {64, 64});
      for (const char* name : {"k", "v"}) add(layer + "self_attn." + name + "_proj", {32, 64});
      for (const char* name : {"gate", "up"}) add(layer + "mlp." + name + "_proj", {96, 64});
      add(layer + "mlp.down_proj", {64, 96});
      for (const char* name : {"input", "post_attention"}) add(layer + name + "_layernorm", {64});
    }
    add("model.norm", {64});
    return all;
  }
  static std::string& path() {
    static std::string folder;
    return folder;
  }
  static weft_llm_request five() {
    weft_llm_request r = llm_request();
    r.max_tokens = 5;
    r.flags = WEFT_LLM_IGNORE_END;
    return r;
  }
};

TEST_F(CLlmTest, SaysWhatItIs) {
  weft_llm_options options = llm_options();
  options.context = 100;
  options.slots = 2;
  const LanguageModel model(context, path(), options);
  const weft_llm_info info = model.info();
  EXPECT_EQ(info.slots, 2u);
  EXPECT_EQ(info.context, 100);
  EXPECT_EQ(info.vocabulary, 257);
  EXPECT_EQ(info.layers, 2);
  EXPECT_STREQ(info.family, "llama");
  EXPECT_GE(info.cache_bytes, int64_t{2} * 2 * 100 * 2 * 2 * 16 * 2);  // positions come in 64s
  EXPECT_GT(info.weight_bytes, 100000);
}

TEST_F(CLlmTest, Generates) {
  LanguageModel model(context, path());
  std::string heard;
  const auto on_text = [&](const std::string& text) {
    heard += text;
    return true;
  };
  const std::string whole = model.generate("hello", five(), on_text);
  EXPECT_EQ(heard, whole);
  EXPECT_FALSE(whole.empty());
  EXPECT_EQ(model.generate("hello", five()), whole);
  int parts = 0;
  weft_llm_request longer = five();
  longer.max_tokens = 100;
  model.generate("hello", longer, [&](const std::string&) { return ++parts < 3; });
  EXPECT_EQ(parts, 3);
  EXPECT_TRUE(model.idle());
  const auto throws = [](const std::string&) -> bool { throw std::runtime_error("mine"); };
  EXPECT_THROW(model.generate("hello", longer, throws), std::runtime_error);
  EXPECT_TRUE(model.idle());
  weft_llm_request constant = five();
  constant.grammar = "root ::= \"yes\"";
  EXPECT_EQ(model.generate("hello", constant), "yes");
  constant.grammar = nullptr;
  constant.json_schema = R"({"const": "no"})";
  constant.max_tokens = 50;
  EXPECT_EQ(model.generate("hello", constant), "\"no\"");
  const float bias = 100;
  const int32_t token = 70;
  weft_llm_request biased = five();
  biased.bias_count = 1;
  biased.bias_tokens = &token;
  biased.biases = &bias;
  EXPECT_EQ(model.generate(std::vector<int32_t>{1}, biased),
            model.tokenizer().decode({70, 70, 70, 70, 70}));
}

TEST_F(CLlmTest, HoldsAnswersToWhatIsAsked) {
  LanguageModel model(context, path());
  weft_llm_request r = llm_request();
  r.pattern = "[a]{3}";
  EXPECT_EQ(model.generate("hello", r), "aaa");
  const char* const choices[] = {"yes", nullptr};
  r = llm_request();
  r.choices = choices;
  EXPECT_EQ(model.generate("hello", r), "yes");
  const float bias = 100;
  const int32_t token = 70;
  r = five();
  r.bias_count = 1, r.bias_tokens = &token, r.biases = &bias;
  r.stop_tokens = &token, r.stop_token_count = 1;
  EXPECT_EQ(model.generate("hello", r), "");
  r.min_tokens = 3;
  EXPECT_NE(model.generate("hello", r), "");
  r = five();
  r.temperature = 1, r.mirostat_tau = 3;
  r.flags |= WEFT_LLM_NEW_TEXT | WEFT_LLM_FROM_START;
  EXPECT_FALSE(model.generate("hello", r).empty());
}

TEST_F(CLlmTest, GuessesAheadAndKeepsTheAnswer) {
  weft_llm_request request = five();
  request.max_tokens = 40;
  const std::string wanted = LanguageModel(context, path()).generate("hello", request);
  weft_llm_options options = llm_options();
  options.draft_tokens = 4;
  EXPECT_EQ(LanguageModel(context, path(), options).generate("hello", request), wanted);
  options.draft_model = "/nowhere";
  EXPECT_THROW(LanguageModel(context, path(), options), Error);
  options = llm_options();
  options.cache = WEFT_I8;
  EXPECT_FALSE(LanguageModel(context, path(), options).generate("hello", request).empty());
}

TEST_F(CLlmTest, FactorsAndAdapters) {
  weft_llm_options options = llm_options();
  options.factors = "f32";
  EXPECT_FALSE(LanguageModel(context, path(), options).generate("hello", five()).empty());
  options.factors = "int3";
  EXPECT_THROW(LanguageModel(context, path(), options), Error);
  const char* const lora[] = {"/nowhere", nullptr};
  options = llm_options();
  options.lora = lora;
  EXPECT_THROW(LanguageModel(context, path(), options), Error);
}

TEST_F(CLlmTest, StepsForSeveralRequests) {
  weft_llm_options options = llm_options();
  options.slots = 2;
  LanguageModel model(context, path(), options);
  const auto prompt = model.tokenizer().encode("hello");
  weft_llm_request sampled = five();
  sampled.flags |= WEFT_LLM_LOGPROBS;
  sampled.temperature = 1;
  const std::string alone = model.generate(prompt, sampled);
  std::map<uint64_t, LlmProgress> all;
  const uint64_t first = model.submit(prompt, sampled), second = model.submit(prompt, five()),
                 third = model.submit(prompt, five());
  model.cancel(third);
  model.cancel(999);
  while (!model.idle())
    for (const LlmProgress& p : model.step()) {
      LlmProgress& sum = all[p.request];
      sum.text += p.text;
      sum.finish = p.finish;
      sum.tokens.insert(sum.tokens.end(), p.tokens.begin(), p.tokens.end());
      for (const float x : p.logprobs) EXPECT_LE(x, 0);
    }
  EXPECT_EQ(all.size(), 3u);
  EXPECT_EQ(all[first].text, alone);
  EXPECT_EQ(all[first].finish, static_cast<uint32_t>(WEFT_LLM_LENGTH));
  EXPECT_EQ(all[second].tokens.size(), 5u);
  EXPECT_EQ(all[third].finish, static_cast<uint32_t>(WEFT_LLM_CANCELLED));
}

TEST_F(CLlmTest, EmbeddingsLogitsAndChats) {
  LanguageModel model(context, path());
  const std::vector<float> vector = model.embedding({1, 2, 3});
  float square = 0;
  for (const float x : vector) square += x * x;
  EXPECT_EQ(vector.size(), 64u);
  EXPECT_NEAR(square, 1, 1e-5);
  const Tensor logits = model.logits({1, 2, 3});
  EXPECT_EQ(logits.shape(), (std::vector<int64_t>{3, 257}));
  const std::string chat = model.tokenizer().chat(R"([{"role": "user", "content": "Hi"}])");
  EXPECT_EQ(chat, "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_THROW(model.tokenizer().chat("[1"), Error);
  EXPECT_THROW(model.tokenizer().chat("[]", "{"), Error);
}

/// A GGUF file with one matrix of ones, 32 by 256.
std::string gguf_bytes() {
  std::string bytes = "GGUF";
  const auto number = [&](auto x) { bytes.append(reinterpret_cast<const char*>(&x), sizeof(x)); };
  const auto text = [&](const std::string& t) { number(uint64_t{t.size()}), bytes += t; };
  number(uint32_t{3}), number(uint64_t{1}), number(uint64_t{1});  // version, tensors, metadata
  text("general.architecture"), number(uint32_t{8}), text("llama");
  text("blk.0.ffn_up.weight"), number(uint32_t{2}), number(uint64_t{32}), number(uint64_t{256});
  number(uint32_t{0}), number(uint64_t{0});  // f32, at the beginning
  bytes.resize((bytes.size() + 31) / 32 * 32);
  for (int i = 0; i < 32 * 256; ++i) number(1.0f);
  return bytes;
}

TEST_F(CLlmTest, Quantizes) {
  const std::string from = path() + "/f32.gguf", to = path() + "/q8.gguf";
  std::ofstream(from, std::ios::binary) << gguf_bytes();
  quantize(from, to, "Q8_0");
  EXPECT_LT(std::filesystem::file_size(to), std::filesystem::file_size(from) / 3);
  EXPECT_REFUSED(weft_llm_quantize(from.c_str(), to.c_str(), "Q9", false), WEFT_ERROR_VALUE, "Q9");
  EXPECT_REFUSED(weft_llm_quantize("/nowhere", to.c_str(), "Q8_0", false), WEFT_ERROR_RUNTIME,
                 "/nowhere");
  EXPECT_REFUSED(weft_llm_quantize(from.c_str(), to.c_str(), nullptr, false), WEFT_ERROR_ARGUMENT,
                 "mix is NULL");
}

TEST_F(CLlmTest, RefusesWhatCannotBe) {
  weft_llm handle = nullptr;
  EXPECT_REFUSED(weft_llm_open(context.get(), nullptr, nullptr, &handle), WEFT_ERROR_ARGUMENT,
                 "path is NULL");
  EXPECT_REFUSED(weft_llm_open(context.get(), path().c_str(), nullptr, nullptr),
                 WEFT_ERROR_ARGUMENT, "out is NULL");
  EXPECT_REFUSED(weft_llm_open(context.get(), "/nowhere.gguf", nullptr, &handle),
                 WEFT_ERROR_RUNTIME, "/nowhere.gguf");
  weft_llm_options options = llm_options();
  const auto options_refused = [&](const char* words) {
    EXPECT_REFUSED(weft_llm_open(context.get(), path().c_str(), &options, &handle),
                   WEFT_ERROR_ARGUMENT, words);
    options = llm_options();
  };
  options.context = -2, options_refused("a context of -2 tokens");
  options.slots = 100000, options_refused("100000 slots: at most 4096");
  options.cache = WEFT_I16, options_refused("a cache of dtype 3");
  options.struct_size = 0, options_refused("WEFT_STRUCT");
  options.reserved = 1, options_refused("reserved bits");

  LanguageModel model(context, path());
  const int32_t tokens[] = {1, 2, 600};
  weft_llm_request r = llm_request();
  uint64_t id = 0;
  const auto refused = [&](weft_status status, const char* words) {
    EXPECT_REFUSED(weft_llm_submit(model.get(), &r, &id), status, words);
    r = five();
    r.prompt = tokens;
    r.prompt_count = 2;
  };
  refused(WEFT_ERROR_VALUE, "the prompt has no tokens");
  r.prompt_count = 3, refused(WEFT_ERROR_VALUE, "token 600 is none of the model's 257");
  r.prompt = nullptr, refused(WEFT_ERROR_ARGUMENT, "prompt is NULL");
  r.prompt_count = UINT64_MAX, refused(WEFT_ERROR_ARGUMENT, "tokens");
  r.flags = 48, refused(WEFT_ERROR_ARGUMENT, "no flag 48");
  r.top_p = 2, refused(WEFT_ERROR_VALUE, "top_p");
  r.bias_count = 1, refused(WEFT_ERROR_ARGUMENT, "bias_tokens is NULL");
  r.grammar = "root := 1", refused(WEFT_ERROR_RUNTIME, "1:6: expected '::='");
  r.grammar = r.json_schema = "{}", refused(WEFT_ERROR_VALUE, "json_schema and grammar are given");
  r.min_tokens = 6, refused(WEFT_ERROR_VALUE, "min_tokens is 6");
  r.stop_token_count = 1, refused(WEFT_ERROR_ARGUMENT, "stop_tokens is NULL");
  r.reserved = 1, refused(WEFT_ERROR_ARGUMENT, "reserved bits");
  EXPECT_REFUSED(weft_llm_submit(model.get(), nullptr, &id), WEFT_ERROR_ARGUMENT,
                 "request is NULL");
  EXPECT_REFUSED(weft_llm_submit(model.get(), &r, nullptr), WEFT_ERROR_ARGUMENT, "out is NULL");
  EXPECT_REFUSED(weft_llm_generate(model.get(), &r, nullptr, nullptr), WEFT_ERROR_ARGUMENT,
                 "progress is NULL");
  weft_llm_progress p = WEFT_STRUCT(weft_llm_progress);
  EXPECT_REFUSED(weft_llm_progress_at(model.get(), 0, &p), WEFT_ERROR_ARGUMENT, "no number 0");
  float numbers[4];
  size_t count = 0;
  EXPECT_REFUSED(weft_llm_embedding(model.get(), tokens, 2, numbers, 4, &count), WEFT_ERROR_SPACE,
                 "64 results");
  EXPECT_EQ(count, 64u);
  ASSERT_EQ(weft_llm_submit(model.get(), &r, &id), WEFT_OK);
  const auto nothing = [](void*, const weft_llm_progress*) -> weft_status { return WEFT_OK; };
  EXPECT_REFUSED(weft_llm_generate(model.get(), &r, nothing, nullptr), WEFT_ERROR_ARGUMENT,
                 "other requests are open");
  EXPECT_REFUSED(weft_llm_step(nullptr, nullptr), WEFT_ERROR_ARGUMENT, "language model is NULL");
  EXPECT_REFUSED(weft_tokenizer_chat(model.tokenizer().get(), nullptr, nullptr, nullptr, 0, &count),
                 WEFT_ERROR_ARGUMENT, "messages is NULL");
}

// What progress() is given lies in what the last step gave: another step would take it away.
TEST_F(CLlmTest, ComputesNothingWhileItTells) {
  const LanguageModel model(context, path());
  const int32_t prompt[] = {1, 2};
  struct Told {
    weft_llm model;
    weft_llm_request request;
    int refused = 0, told = 0;
  } told{model.get(), five()};
  told.request.prompt = prompt, told.request.prompt_count = 2;
  const auto progress = [](void* user, const weft_llm_progress* p) -> weft_status {
    Told& t = *static_cast<Told*>(user);
    uint64_t id = 0;
    if (t.told++ == 0 && weft_llm_submit(t.model, &t.request, &id) != WEFT_OK) return 77;
    const auto none = [](void*, const weft_llm_progress*) -> weft_status { return WEFT_OK; };
    t.refused += weft_llm_step(t.model, nullptr) == WEFT_ERROR_ARGUMENT;
    t.refused += weft_llm_generate(t.model, &t.request, none, nullptr) == WEFT_ERROR_ARGUMENT;
    EXPECT_LE(std::strlen(p->text), p->text_length);
    return WEFT_OK;
  };
  ASSERT_EQ(weft_llm_generate(model.get(), &told.request, progress, &told), WEFT_OK);
  EXPECT_EQ(told.told, 10);  // tokens of both
  EXPECT_EQ(told.refused, 2 * told.told);
  EXPECT_EQ(weft_llm_step(model.get(), nullptr), WEFT_OK);
}

TEST_F(CLlmTest, AnyRequestGivesAStatus) {
  LanguageModel model(context, path());
  std::mt19937 random(1);
  const auto pick = [&](auto... values) {
    const std::common_type_t<decltype(values)...> all[] = {values...};
    return all[random() % sizeof...(values)];
  };
  const int32_t tokens[] = {1, 2, 3, 4, -1, 257, INT32_MAX};
  const float biases[] = {1, -INFINITY, NAN, INFINITY, 0, 0, 0};
  const char* stops[] = {"a", "", nullptr};
  using Text = const char*;
  size_t taken = 0;
  for (int i = 0; i < 6000; ++i) {
    weft_llm_request r = llm_request();
    const auto number = [&] { return pick(0.f, 0.f, 0.f, 0.5f, 1.f, -1.f, 1e30f, NAN, INFINITY); };
    r.flags = pick(0u, 1u, 2u, 3u, 3u, 1u, 4u, UINT32_MAX);
    r.prompt = pick(tokens, tokens, tokens, static_cast<const int32_t*>(nullptr));
    r.prompt_count = pick(0u, 1u, 2u, 4u, 4u, 7u);
    r.max_tokens = pick(int64_t{1}, int64_t{2}, int64_t{3}, INT64_MIN);
    r.stop = pick(static_cast<Text*>(nullptr), stops);
    r.json_schema = pick(Text(), Text(), Text(), Text("{}"), Text("{\"type\": 1}"), Text("["));
    r.grammar = pick(Text(), Text(), Text(), Text("root ::= \"a\"*"), Text("x"));
    r.pattern = pick(Text(), Text(), Text(), Text(), Text(), Text(), Text("a*"), Text("("));
    Text* const no_texts = nullptr;
    r.choices = pick(no_texts, no_texts, no_texts, no_texts, no_texts, stops);
    constexpr int64_t kNone = 0;
    r.min_tokens = pick(kNone, kNone, kNone, kNone, kNone, int64_t{1}, INT64_MIN, INT64_MAX);
    r.stop_token_count = pick(0u, 0u, 0u, 0u, 0u, 0u, 2u, 7u);
    r.stop_tokens = pick(tokens, tokens, static_cast<const int32_t*>(nullptr));
    r.seed = random();
    for (float* field :
         {&r.temperature, &r.top_p, &r.min_p, &r.typical_p, &r.repetition_penalty,
          &r.presence_penalty, &r.frequency_penalty, &r.mirostat_tau, &r.mirostat_eta})
      if (random() % 4 == 0) *field = number();
    r.top_k = pick(0, 1, 40, -1, INT32_MAX, INT32_MIN);
    r.penalised_tokens = pick(0, -1, 3, INT32_MIN, INT32_MAX);
    r.bias_count = pick(0u, 0u, 0u, 1u, 7u);
    r.bias_tokens = pick(tokens, tokens, static_cast<const int32_t*>(nullptr));
    r.biases = pick(biases, static_cast<const float*>(nullptr));
    uint64_t id = 0;
    const weft_status status = weft_llm_submit(model.get(), &r, &id);
    EXPECT_NE(status, WEFT_ERROR_INTERNAL) << last_error().text;
    taken += status == WEFT_OK;
    if (status == WEFT_OK && random() % 4 == 0) weft_llm_cancel(model.get(), id);
    if (taken >= 40 && status == WEFT_OK) weft_llm_cancel(model.get(), id);
    if (taken < 40 || i % 100 == 0) {
      EXPECT_EQ(weft_llm_step(model.get(), nullptr), WEFT_OK) << last_error().text;
    }
  }
  EXPECT_GT(taken, 40u);
}

}  // namespace
}  // namespace weft::c
