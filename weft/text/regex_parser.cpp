// A pattern's parse, which makes the steps of what it has read: those of an atom are moved or
// copied when a repeat behind it asks for that. Targets are relative until the end.
#include <algorithm>
#include <map>

#include "weft/base/error.h"
#include "weft/base/utf8.h"
#include "weft/io/host_array.h"
#include "weft/text/regex.h"
#include "weft/text/regex_class.h"

namespace weft::text {

constexpr int kMostDepth = 100;
constexpr uint32_t kMostRepeats = 1000;
constexpr size_t kMostSteps = 20000;

class RegexParser {
 public:
  RegexParser(std::string_view pattern, Regex& regex) : source_(pattern), regex_(regex) {}

  void parse() {
    std::vector<Part> parts = alternatives(0);
    if (!source_.done()) source_.refuse("a ) without its (");
    Steps all;
    for (const Part& part : parts) {
      regex_.alternatives_.push_back(static_cast<uint32_t>(all.size()));
      append(all, part.steps);
      all.push_back({Op::Match});
    }
    for (size_t i = 0; i < all.size(); ++i) {
      if (jumps(all[i].op)) all[i].to += static_cast<uint32_t>(i);
      if (chooses(all[i].op)) all[i].choice = regex_.choices_++;
    }
    regex_.steps_ = std::move(all);
  }

 private:
  using Op = Regex::Op;
  using Steps = std::vector<Regex::Step>;
  static constexpr uint32_t kNoLimit = Regex::kNoLimit;

  struct Part {
    Steps steps;
    uint32_t least = 0;                  // code points
    std::optional<uint32_t> length = 0;  // where it has one
    bool one_set = false;

    void add(const Part& next) {
      append(steps, next.steps);
      least = std::min(least + next.least, kNoLimit / 4);
      length = length && next.length ? std::optional(std::min(*length + *next.length, 1u << 20))
                                     : std::nullopt;
      one_set = false;
    }
  };

  static void append(Steps& a, const Steps& b) { a.insert(a.end(), b.begin(), b.end()); }
  static bool jumps(Op op) {
    return op == Op::Jump || op == Op::Fork || op == Op::LazyFork || op == Op::Ahead ||
           op == Op::Behind || op == Op::Atomic;
  }
  static bool chooses(Op op) { return op == Op::Run || op == Op::Fork || op == Op::LazyFork; }
  static Part step(Regex::Step s) { return {{s}, 0, 0, false}; }
  void require_small(size_t steps) const {
    if (steps > kMostSteps) source_.refuse("repeats make it too large");
  }

  Part set_part(const CodeRanges& ranges) {
    const auto [at, is_new] = known_.emplace(ranges, static_cast<uint32_t>(regex_.sets_.size()));
    if (is_new) regex_.sets_.emplace_back(ranges);
    if (regex_.sets_.size() > 1000) source_.refuse("more than 1000 sets of characters");
    return {{{Op::Set, false, at->second, 0}}, 1, 1, true};
  }

  std::vector<Part> alternatives(int depth) {
    if (depth > kMostDepth) source_.refuse("too many groups in each other");
    const bool fold = source_.fold_case;
    std::vector<Part> parts;
    do parts.push_back(sequence(depth));
    while (source_.take('|'));
    source_.fold_case = fold;
    return parts;
  }

  /// a|b|c: Fork to b; a; Jump to the end; ...
  Part one_of(std::vector<Part> parts) {
    Part all = std::move(parts.back());
    if (parts.size() > 1) all.one_set = false;
    for (size_t i = parts.size() - 1; i-- > 0;) {
      const Part& part = parts[i];
      Part both;
      both.steps.push_back({Op::Fork, false, static_cast<uint32_t>(part.steps.size() + 2), 0});
      append(both.steps, part.steps);
      both.steps.push_back({Op::Jump, false, static_cast<uint32_t>(all.steps.size() + 1), 0});
      append(both.steps, all.steps);
      both.least = std::min(part.least, all.least);
      both.length = part.length == all.length ? part.length : std::nullopt;
      require_small(both.steps.size());
      all = std::move(both);
    }
    return all;
  }

  Part sequence(int depth) {
    Part all;
    while (!source_.done() && source_.peek() != '|' && source_.peek() != ')') {
      Part part = atom(depth);
      while (repeats(part)) {}
      all.add(part);
      require_small(all.steps.size());
    }
    return all;
  }

  Part atom(int depth) {
    const char32_t c = source_.next();
    if (c == '(') return group(depth);
    if (c == '^') return step({Op::LineBegin});
    if (c == '$') return step({Op::LineEnd});
    if (c == '.') return set_part(complement({{'\n', '\n'}}));
    if (c == '[') return set_part(read_class(source_));
    if (c == '*' || c == '+' || c == '?') source_.refuse("a repeat of nothing");
    if (c != '\\') return set_part(source_.cased({{c, c}}));
    if (const std::optional<Op> edge = assertion(source_.peek())) {
      source_.next();
      return step({*edge});
    }
    return set_part(read_escape(source_));
  }

  static std::optional<Op> assertion(char32_t c) {
    switch (c) {
      case 'A': return Op::TextBegin;
      case 'z': return Op::TextEnd;
      case 'Z': return Op::TextEndOrLine;
      case 'b': return Op::WordEdge;
      case 'B': return Op::NoWordEdge;
      default: return {};
    }
  }

  Part group(int depth) {
    const size_t begin = source_.at() - 1;
    const bool fold = source_.fold_case;
    Op look = Op::Jump;
    bool negated = false;
    if (source_.take(U"?=") || source_.take(U"?!")) {
      look = Op::Ahead;
      negated = source_.before() == '!';
    } else if (source_.take(U"?<=") || source_.take(U"?<!")) {
      look = Op::Behind;
      negated = source_.before() == '!';
    } else if (source_.take(U"?>")) {
      look = Op::Atomic;
    } else if (source_.take('?')) {
      if (options()) return {};  // (?i) holds to the end of the group around it
    }
    Part inside = one_of(alternatives(depth + 1));
    if (!source_.take(')')) source_.refuse("a ( without its )", begin);
    source_.fold_case = fold;
    return look == Op::Jump ? inside : looking(look, negated, std::move(inside), begin);
  }

  Part looking(Op op, bool negated, Part inside, size_t begin) {
    if (op == Op::Behind && !inside.length)
      source_.refuse("looking behind for what has more than one length", begin);
    Part all;
    const auto size = static_cast<uint32_t>(inside.steps.size());
    all.steps.push_back({op, negated, size + 2, op == Op::Behind ? *inside.length : 0});
    append(all.steps, inside.steps);
    all.steps.push_back({Op::Match});
    if (op == Op::Atomic) all.least = inside.least, all.length = inside.length;
    return all;
  }

  /// Behind "(?": i and -i, then : or ). True: the group is only that.
  bool options() {
    if (source_.take(':')) return false;
    if (source_.peek() == '<' || source_.peek() == 'P') return name();
    bool on = true;
    while (true) {
      const char32_t c = source_.next();
      if (c == '-')
        on = false;
      else if (c == 'i')
        source_.fold_case = on;
      else if (c == ':')
        return false;
      else if (c == ')')
        return true;
      else
        source_.refuse("an option other than i");
    }
  }
  bool name() {
    while (source_.next() != '>') {}
    return false;
  }

  struct Repeat {
    uint32_t least, most;
    bool lazy = false, possessive = false;
  };

  std::optional<Repeat> read_repeat() {
    std::optional<Repeat> found;
    if (source_.take('*'))
      found = {0, kNoLimit};
    else if (source_.take('+'))
      found = {1, kNoLimit};
    else if (source_.take('?'))
      found = {0, 1};
    else if (const auto counts = source_.counts()) {
      found = {counts->first, counts->second};
      const bool huge =
          found->least > kMostRepeats || (found->most != kNoLimit && found->most > kMostRepeats);
      if (huge) source_.refuse("a repeat of more than 1000 times");
      if (found->least > found->most) source_.refuse("a repeat of at least more than at most");
    }
    if (!found) return found;
    found->lazy = source_.take('?');
    found->possessive = !found->lazy && source_.take('+');
    return found;
  }

  bool repeats(Part& part) {
    const size_t begin = source_.at();
    const std::optional<Repeat> repeat = read_repeat();
    if (!repeat) return false;
    if (part.least == 0 && repeat->most == kNoLimit)
      source_.refuse("an endless repeat of what may be empty", begin);
    const size_t copies = repeat->most == kNoLimit ? repeat->least + 1u : repeat->most;
    require_small(copies * (part.steps.size() + 2));
    Part all;
    for (uint32_t i = 0; i < repeat->least; ++i) all.add(part);
    if (part.one_set && !repeat->lazy) {
      const Op op = repeat->possessive ? Op::RunAll : Op::Run;
      const uint32_t limit = repeat->most == kNoLimit ? kNoLimit : repeat->most - repeat->least;
      if (limit > 0) all.add(step({op, false, part.steps[0].to, limit}));
    } else {
      add_rest(all, part, *repeat);
    }
    if (repeat->least != repeat->most) all.length.reset();
    part = repeat->possessive && !part.one_set ? looking(Op::Atomic, false, std::move(all), begin)
                                               : std::move(all);
    part.one_set = false;
    return true;
  }

  /// Behind `least` of it: L: Fork out; part; Jump L, or (Fork out; part) as often as it may be.
  static void add_rest(Part& all, const Part& part, const Repeat& repeat) {
    const Op fork = repeat.lazy ? Op::LazyFork : Op::Fork;
    const auto size = static_cast<uint32_t>(part.steps.size());
    if (repeat.most == kNoLimit) {
      all.steps.push_back({fork, false, size + 2, 0});
      append(all.steps, part.steps);
      all.steps.push_back({Op::Jump, false, 0u - (size + 1), 0});
      return;
    }
    const uint32_t more = repeat.most - repeat.least;
    for (uint32_t i = 0; i < more; ++i) {
      all.steps.push_back({fork, false, (more - i) * (size + 1), 0});
      append(all.steps, part.steps);
    }
  }

  PatternText source_;
  Regex& regex_;
  std::map<CodeRanges, uint32_t> known_;
};

Regex::Regex(std::string_view pattern) : pattern_(pattern) {
  RegexParser(pattern, *this).parse();
  find_first_characters();
}

}  // namespace weft::text
