// Regex: the patterns that cut texts into words. Onigurama's syntax as far as tokenizers use it,
// found by backtracking that remembers what failed once it has taken long.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/function_ref.h"
#include "weft/text/character_set.h"

namespace weft::text {

/// Syntax (github.com/kkos/oniguruma/blob/master/doc/RE): characters and their escapes, ., classes
/// with ranges, nesting, && and [:posix:], \d \w \s \h, \p{..} of categories and scripts, groups,
/// (?i: ..), (?> ..), looking ahead and behind (of one length), |, repeats that are greedy, lazy
/// (?) or possessive (+), ^ $ of lines, \A \z \Z \b \B. No captures and no references to them.
/// Throws an Error ("regex.pattern") with the place for what is none.
///   Regex(R"(\p{L}+|\p{N}{1,3}|\s+(?!\S))").for_each_match(text, [&](size_t begin, size_t end)
///   {..});
class Regex {
 public:
  explicit Regex(std::string_view pattern);

  using Match = std::pair<size_t, size_t>;  // begin and end, in bytes
  /// The matches of valid UTF-8 from left to right, none in another; empty ones too, but not where
  /// the one before ended. Throws an Error ("regex.steps") for patterns that would take too long.
  void for_each_match(std::string_view text, FunctionRef<void(size_t, size_t)> match) const;

 private:
  friend class RegexParser;
  friend class RegexMatcher;

  enum class Op : uint8_t {
    Set,       // one of a set
    Run,       // up to `limit` of a set: as many as there are, then fewer
    RunAll,    // as many as there are
    Jump,      // to `to`
    Fork,      // to the next, then to `to`
    LazyFork,  // to `to`, then to the next
    Ahead,     // what begins behind matches (or not, `negated`) up to a Match; goes on at `to`
    Behind,    // the same, `limit` code points back, and ends here
    Atomic,    // what begins behind, in its first way; goes on at `to`
    TextBegin,
    TextEnd,
    TextEndOrLine,
    LineBegin,
    LineEnd,
    WordEdge,
    NoWordEdge,  // clang-format off
    Match  // clang-format on
  };
  struct Step {
    Op op = Op::Match;
    bool negated = false;
    uint32_t to = 0;      // or which set
    uint32_t limit = 0;   // kNoLimit: none
    uint32_t choice = 0;  // of Run, Fork and LazyFork: which of them
  };
  static constexpr uint32_t kNoLimit = UINT32_MAX;

  void find_first_characters();
  bool first_ascii(uint32_t step, uint64_t* bits, std::vector<bool>& seen, int depth) const;

  std::string pattern_;
  std::vector<Step> steps_;
  std::vector<CharacterSet> sets_;
  uint32_t choices_ = 0;
  std::vector<uint32_t> alternatives_;  // steps where the outermost ones begin
  std::vector<uint64_t> first_;  // of an ASCII character: alternatives that may begin with it
};

}  // namespace weft::text
