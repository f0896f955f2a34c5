// CompletionForm: the objects of /v1/chat/completions and /v1/completions, whole and in chunks.
#pragma once

#include <string>
#include <vector>

#include "weft/serve/answer_form.h"

namespace weft::serve {

/// What all objects of an answer begin with.
struct CompletionHead {
  bool chat = true, logprobs = false, include_usage = false;
  std::string id, model;
  int64_t created = 0;
};

class CompletionForm final : public AnswerForm {
 public:
  /// `tokenizer` outlives it.
  CompletionForm(CompletionHead head, const text::Tokenizer& tokenizer)
      : head_(std::move(head)), tokenizer_(tokenizer) {}

  Events begin(Choices& choices) override;
  Events part(Choice& choice, const AnswerPart* part,
              const std::vector<llm::GeneratedToken>& tokens) override;
  Events end_choice(Choice& choice) override { return part(choice, nullptr, {}); }
  Events end(const Usage& usage) override;
  Events fail(const Refusal& refusal) override { return {{error_json(refusal)}}; }
  std::string whole(Choices& choices, const Usage& usage) override;

 private:
  std::string role_chunk(const Choice& choice) const;

  const CompletionHead head_;
  const text::Tokenizer& tokenizer_;
};

}  // namespace weft::serve
