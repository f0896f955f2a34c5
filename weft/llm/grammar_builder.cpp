#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/utf8.h"
#include "weft/llm/grammar_parts.h"

namespace weft::llm {

namespace {
constexpr size_t kMostElements = 2000000;
using Kind = GrammarBuilder::Element::Kind;
}  // namespace

uint32_t GrammarBuilder::new_rule() {
  grammar_.rules_.emplace_back();
  return static_cast<uint32_t>(grammar_.rules_.size() - 1);
}

void GrammarBuilder::set_rule(uint32_t rule, const std::vector<Sequence>& alternatives) {
  for (const Sequence& alternative : alternatives) {
    grammar_.rules_[rule].push_back(static_cast<uint32_t>(grammar_.elements_.size()));
    grammar_.elements_.insert(grammar_.elements_.end(), alternative.begin(), alternative.end());
    grammar_.elements_.push_back({Kind::End});
  }
  if (grammar_.elements_.size() > kMostElements)
    fail_runtime("llm.grammar",
                 "the grammar has more than {} elements; make its repetitions smaller",
                 kMostElements);
}

GrammarBuilder::Element GrammarBuilder::set_of(const std::bitset<256>& bytes) {
  auto& sets = grammar_.sets_;
  // The last ones are the likeliest to be equal.
  for (size_t i = sets.size(); i > 0 && sets.size() - i < 300; --i)
    if (sets[i - 1] == bytes) return {Kind::Bytes, static_cast<uint32_t>(i - 1)};
  sets.push_back(bytes);
  return {Kind::Bytes, static_cast<uint32_t>(sets.size() - 1)};
}

GrammarBuilder::Element GrammarBuilder::byte_range(uint8_t low, uint8_t high) {
  std::bitset<256> set;
  for (size_t byte = low; byte <= high; ++byte) set.set(byte);
  return set_of(set);
}

GrammarBuilder::Sequence GrammarBuilder::bytes(std::string_view text) {
  Sequence all;
  for (const char c : text)
    all.push_back(byte_range(static_cast<uint8_t>(c), static_cast<uint8_t>(c)));
  return all;
}

/// Ranges of bytes for the code points from low to high, all of `length` bytes: where only the last
/// bytes differ and go over all of theirs, one sequence is enough.
void GrammarBuilder::utf8_range(char32_t low, char32_t high, size_t length,
                                std::vector<Sequence>& out) {
  for (size_t tail = 1; tail < length; ++tail) {
    const char32_t mask = (char32_t{1} << (6 * tail)) - 1;
    if ((low & ~mask) == (high & ~mask)) break;
    if ((low & mask) != 0) {
      utf8_range(low, low | mask, length, out);
      return utf8_range((low | mask) + 1, high, length, out);
    }
    if ((high & mask) != mask) {
      utf8_range(low, (high & ~mask) - 1, length, out);
      return utf8_range(high & ~mask, high, length, out);
    }
  }
  std::string first, last;
  append_utf8(first, low);
  append_utf8(last, high);
  Sequence sequence;
  for (size_t i = 0; i < length; ++i)
    sequence.push_back(byte_range(static_cast<uint8_t>(first[i]), static_cast<uint8_t>(last[i])));
  out.push_back(std::move(sequence));
}

GrammarBuilder::Sequence GrammarBuilder::character(std::vector<CodeRange> ranges, bool negated) {
  std::sort(ranges.begin(), ranges.end());
  std::vector<CodeRange> merged;
  for (const CodeRange& range : ranges) {
    if (!merged.empty() && range.first <= merged.back().second + 1)
      merged.back().second = std::max(merged.back().second, range.second);
    else
      merged.push_back(range);
  }
  if (negated) {
    std::vector<CodeRange> others;
    char32_t next = 0;
    for (const auto& [low, high] : merged) {
      if (low > next) others.emplace_back(next, low - 1);
      next = high + 1;
    }
    if (next <= 0x10ffff) others.emplace_back(next, 0x10ffff);
    merged = std::move(others);
  }
  // What UTF-8 has in 1, 2, 3, 3 and 4 bytes, without the surrogates.
  constexpr CodeRange kParts[] = {
      {0, 0x7f}, {0x80, 0x7ff}, {0x800, 0xd7ff}, {0xe000, 0xffff}, {0x10000, 0x10ffff}};
  constexpr size_t kLengths[] = {1, 2, 3, 3, 4};
  std::vector<Sequence> alternatives;
  std::bitset<256> ascii;
  for (const auto& [low, high] : merged) {
    for (size_t i = 0; i < std::size(kParts); ++i) {
      const char32_t from = std::max(low, kParts[i].first), to = std::min(high, kParts[i].second);
      if (from > to) continue;
      if (i == 0)
        for (char32_t c = from; c <= to; ++c) ascii.set(c);
      else
        utf8_range(from, to, kLengths[i], alternatives);
    }
  }
  if (ascii.any()) alternatives.push_back({set_of(ascii)});
  return choice(std::move(alternatives));
}

GrammarBuilder::Sequence GrammarBuilder::choice(std::vector<Sequence> alternatives) {
  if (alternatives.size() == 1) return std::move(alternatives[0]);
  const uint32_t index = new_rule();
  set_rule(index, alternatives);
  return {rule(index)};
}

// x{2,4} is x x (x (x)?)?, x{2,} is x x r with r ::= x r | "". The last of a rule takes no place on
// a stack, so a long repetition does not make it deep.
GrammarBuilder::Sequence GrammarBuilder::repeated(const Sequence& what, int64_t least,
                                                  int64_t most) {
  Sequence one = what;
  if (what.size() > 1) {
    const uint32_t index = new_rule();
    set_rule(index, {what});
    one = {rule(index)};
  }
  Sequence all;
  for (int64_t i = 0; i < least; ++i) all.insert(all.end(), one.begin(), one.end());
  Sequence rest;
  if (most < 0) {
    const uint32_t loop = new_rule();
    Sequence again = one;
    again.push_back(rule(loop));
    set_rule(loop, {again, {}});
    rest = {rule(loop)};
  }
  for (int64_t i = least; i < most; ++i) {
    const uint32_t more = new_rule();
    Sequence next = one;
    next.insert(next.end(), rest.begin(), rest.end());
    set_rule(more, {next, {}});
    rest = {rule(more)};
  }
  all.insert(all.end(), rest.begin(), rest.end());
  return all;
}

int64_t GrammarBuilder::left_recursive() const {
  const auto& rules = grammar_.rules_;
  const auto& elements = grammar_.elements_;
  std::vector<uint8_t> nullable(rules.size());
  const auto skips = [&](uint32_t at) {  // past rules that may be empty
    while (elements[at].kind == Kind::Rule && nullable[elements[at].index]) ++at;
    return at;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t r = rules.size(); r-- > 0;) {
      if (nullable[r]) continue;
      for (const uint32_t alternative : rules[r])
        if (elements[skips(alternative)].kind == Kind::End) nullable[r] = 1;
      changed |= nullable[r] != 0;
    }
  }
  // Depth first over "may begin with"; a rule that is met on its own path begins with itself.
  enum : uint8_t { New, Open, Done };
  std::vector<uint8_t> seen(rules.size(), New);
  std::vector<std::vector<uint32_t>> begins(rules.size());
  for (size_t r = 0; r < rules.size(); ++r) {
    for (uint32_t at : rules[r])
      for (; elements[at].kind == Kind::Rule; ++at) {
        begins[r].push_back(elements[at].index);
        if (!nullable[elements[at].index]) break;
      }
  }
  for (uint32_t start = 0; start < rules.size(); ++start) {
    std::vector<std::pair<uint32_t, size_t>> path{{start, 0}};
    if (seen[start] != New) continue;
    seen[start] = Open;
    while (!path.empty()) {
      auto& [r, next] = path.back();
      if (next == begins[r].size()) {
        seen[r] = Done;
        path.pop_back();
        continue;
      }
      const uint32_t child = begins[r][next++];
      if (seen[child] == Open) return child;
      if (seen[child] == Done) continue;
      seen[child] = Open;
      path.emplace_back(child, 0);
    }
  }
  return -1;
}

/// Whoever began an alternative with no end would never get out of it.
void GrammarBuilder::drop_endless() {
  const auto& elements = grammar_.elements_;
  auto& rules = grammar_.rules_;
  std::vector<uint8_t> ends(rules.size());
  const auto has_end = [&](uint32_t at) {
    for (; elements[at].kind != Kind::End; ++at) {
      const uint32_t index = elements[at].index;
      if (elements[at].kind == Kind::Rule ? ends[index] == 0 : grammar_.sets_[index].none())
        return false;
    }
    return true;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t r = rules.size(); r-- > 0;) {
      if (ends[r] || std::ranges::none_of(rules[r], has_end)) continue;
      ends[r] = 1;
      changed = true;
    }
  }
  for (auto& alternatives : rules)
    std::erase_if(alternatives, [&](uint32_t at) { return !has_end(at); });
}

Grammar GrammarBuilder::build(uint32_t root) && {
  drop_endless();
  if (grammar_.rules_[root].empty())
    fail_runtime("llm.grammar", "no text follows the grammar: each would go on for ever");
  grammar_.root_ = root;
  return std::move(grammar_);
}

}  // namespace weft::llm
