// Small models of random weights, which tests ask.
#pragma once

#include <map>

#include "tests/io/scratch_dir.h"
#include "weft/base/error.h"
#include "weft/llm/model.h"
#include "weft/llm/random_model.h"

namespace weft::llm {

/// Models of random weights with a vocabulary of 320, and requests to them.
class Models : public ScratchDir {
 protected:
  static Model model(const ModelOptions& options, Codec codec = Codec::Q8_0) {
    const GgufModel file = gguf_model(random_model(*find_random_shape("tiny"), codec, 1));
    return Model(ModelFile{read_config(file.content), Weights(file)},
                 text::Tokenizer::from_gguf(file.content), options);
  }
  static Request request(std::vector<TokenId> prompt, int64_t tokens, uint64_t seed = 0) {
    Request r;
    r.prompt = std::move(prompt);
    r.max_tokens = tokens;
    r.ignore_end = true;
    r.sampling.temperature = seed == 0 ? 0.0F : 1.0F;
    r.sampling.seed = seed;
    return r;
  }
  struct Result {
    std::vector<TokenId> tokens;
    std::string text;
    Finish finish = Finish::None;
  };
  static std::map<RequestId, Result> run(Model& m) {
    std::map<RequestId, Result> all;
    while (!m.idle())
      for (const Progress& p : m.step()) {
        Result& r = all[p.request];
        EXPECT_EQ(r.finish, Finish::None) << "something comes after the end";
        for (const GeneratedToken& t : p.tokens) r.tokens.push_back(t.token.id);
        r.text += p.text;
        r.finish = p.finish;
      }
    return all;
  }
  static double counter(const Model& m, const std::string& name) {
    for (const auto& [key, value] : m.counters())
      if (key == name) return value;
    return -1;
  }
  static void expect_refused(Model& m, Request r, std::string_view code, std::string_view part) {
    try {
      m.submit(std::move(r));
      ADD_FAILURE() << "not refused";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), code);
      EXPECT_NE(e.message().find(part), std::string::npos) << e.message();
    }
  }
};

}  // namespace weft::llm
