// GrammarBuilder: rules, alternatives, repetition and characters as elements of a Grammar.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "weft/llm/grammar.h"

namespace weft::llm {

using CodeRange = std::pair<char32_t, char32_t>;  // both are in it

class GrammarBuilder {
 public:
  using Element = Grammar::Element;
  using Sequence = std::vector<Element>;

  uint32_t new_rule();
  void set_rule(uint32_t rule, const std::vector<Sequence>& alternatives);
  Sequence bytes(std::string_view text);
  /// One character of these, or with `negated` any other; in UTF-8, no surrogates.
  Sequence character(std::vector<CodeRange> ranges, bool negated);
  /// `least` to `most` times; `most` -1: any number.
  Sequence repeated(const Sequence& what, int64_t least, int64_t most);
  Sequence choice(std::vector<Sequence> alternatives);
  static Element rule(uint32_t index) { return {Element::Kind::Rule, index}; }
  size_t size() const { return grammar_.elements_.size(); }

  /// A rule that may begin with itself; -1: none does.
  int64_t left_recursive() const;
  /// Without what has no end. Error: llm.grammar, where nothing is left.
  Grammar build(uint32_t root) &&;

 private:
  void drop_endless();
  Element set_of(const std::bitset<256>& bytes);
  Element byte_range(uint8_t low, uint8_t high);
  void utf8_range(char32_t low, char32_t high, size_t length, std::vector<Sequence>& out);

  Grammar grammar_;
};

}  // namespace weft::llm
