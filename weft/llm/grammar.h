// Grammar: what an answer may be, written in GBNF or as a JSON schema; and what may come next.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "weft/text/tokenizer.h"

namespace weft::llm {

/// A context-free grammar over bytes. Immutable: requests share it.
class Grammar {
 public:
  /// llama.cpp's GBNF (github.com/ggml-org/llama.cpp/blob/master/grammars/README.md): rules
  /// `name ::= alternatives`, "literals", [classes], `.`, groups, ? * + {m,n}, # comments; the
  /// answer is `root`. Error: llm.grammar, with line and column; also for left recursion.
  ///   Grammar::from_gbnf("root ::= \"yes\" | \"no\"");
  static Grammar from_gbnf(std::string_view text);
  /// Errors: llm.schema, json.format.
  static Grammar from_json_schema(std::string_view schema);
  /// A regular expression (ECMA 262) that the whole of an answer matches. Error: llm.schema, for
  /// what looks around or back, and what is not UTF-8.
  static Grammar from_pattern(std::string_view pattern);
  /// One of these texts. Error: llm.grammar, where there are none.
  static Grammar from_choices(std::span<const std::string> choices);

 private:
  friend class GrammarBuilder;
  friend class GrammarMatcher;
  struct Element {
    enum class Kind : uint8_t { Bytes, Rule, End } kind;
    uint32_t index = 0;  // of sets_ or rules_
  };
  std::vector<Element> elements_;             // alternatives one behind the other, each to its End
  std::vector<std::vector<uint32_t>> rules_;  // where a rule's alternatives begin
  std::vector<std::bitset<256>> sets_;
  uint32_t root_ = 0;
};

/// A JSON schema as GBNF. Held to: type, enum, const, properties (in their order), required,
/// additionalProperties, maxProperties, items, prefixItems, minItems, maxItems, minLength,
/// maxLength, pattern, format (date, time, date-time, uuid, ipv4), minimum to exclusiveMaximum,
/// anyOf, oneOf (of which more than one may hold), allOf, $ref within the schema (where a part has
/// an $id, within that part), and what stands beside the last four. Error: llm.schema, for keywords
/// that cannot be held to. What is not required of an object beyond its properties is not written.
std::string json_schema_gbnf(std::string_view schema);

/// The bytes of a model's tokens, as a tree of their beginnings.
class GrammarVocabulary {
 public:
  /// `end_tokens` end an answer; they and other special tokens stand for no text.
  GrammarVocabulary(const text::Tokenizer& tokenizer, std::vector<text::TokenId> end_tokens);
  /// Empty pieces are never allowed.
  GrammarVocabulary(std::span<const std::string> pieces, std::vector<text::TokenId> end_tokens);

  size_t size() const { return pieces_.size(); }
  const std::string& piece(text::TokenId id) const { return pieces_[static_cast<size_t>(id)]; }

 private:
  friend class GrammarMatcher;
  void build();

  // In preorder: a byte, where its subtree ends, and the first token that ends here.
  struct Node {
    uint32_t end;
    int32_t token;
    uint16_t depth;
    uint8_t byte;
  };
  std::vector<std::string> pieces_;
  std::vector<text::TokenId> end_tokens_;
  std::vector<Node> nodes_;
  std::vector<int32_t> same_;  // the next token with a token's bytes; -1: none
};

/// Where an answer is in its grammar. Belongs to one request.
///   GrammarMatcher matcher(grammar, vocabulary);
///   const TokenId id = sampler.sample(logits, tokens, prompt, matcher.allowed()).token.id;
///   matcher.accept(id);
class GrammarMatcher {
 public:
  GrammarMatcher(std::shared_ptr<const Grammar> grammar,
                 std::shared_ptr<const GrammarVocabulary> vocabulary);

  /// A bit for each token that may come next, as Sampler::sample() takes them; good until
  /// accept(). Error: llm.grammar, where a grammar is too ambiguous.
  std::span<const uint64_t> allowed();
  /// Error: llm.grammar, for a token that is not allowed.
  void accept(text::TokenId token);
  bool complete() const;  ///< the answer may end here
  bool finished();        ///< it has to

 private:
  friend class GrammarTrial;
  static constexpr int32_t kUnknown = -2, kDead = -1;
  struct State {
    std::vector<uint32_t> stacks;  // sorted
    std::array<int32_t, 256> next;
    std::vector<uint64_t> mask;  // empty: not made yet
  };
  struct Frame {  // a stack: an element, and what comes after its rule
    uint32_t element, below;
    uint32_t depth;
  };
  uint32_t push(uint32_t element, uint32_t below);
  void expand(uint32_t element, uint32_t below, std::vector<uint32_t>& stacks);
  int32_t state_of(std::vector<uint32_t> stacks);
  int32_t next_state(int32_t state, uint8_t byte);
  int32_t make_next(int32_t state, uint8_t byte);
  void make_mask(int32_t state);
  void forget();

  std::shared_ptr<const Grammar> grammar_;
  std::shared_ptr<const GrammarVocabulary> vocabulary_;
  std::vector<Frame> frames_;
  std::unordered_map<uint64_t, uint32_t> frame_ids_;
  std::vector<std::unique_ptr<State>> states_;
  std::unordered_map<std::string, int32_t> state_ids_;
  int32_t at_ = 0;
  bool ended_ = false, tried_ = false;
};

/// What a matcher accepts while this lives is only tried: afterwards it is where it was.
class GrammarTrial {
 public:
  explicit GrammarTrial(GrammarMatcher& matcher)
      : matcher_(matcher), at_(matcher.at_), ended_(matcher.ended_) {
    matcher_.tried_ = true;
  }
  ~GrammarTrial() {
    matcher_.at_ = at_;
    matcher_.ended_ = ended_;
    matcher_.tried_ = false;
  }
  GrammarTrial(const GrammarTrial&) = delete;
  GrammarTrial& operator=(const GrammarTrial&) = delete;

 private:
  GrammarMatcher& matcher_;
  const int32_t at_;
  const bool ended_;
};

}  // namespace weft::llm
