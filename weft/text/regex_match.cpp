// Backtracking over a pattern's steps. A search that has taken long goes on remembering at which
// step and place it failed, so that its time is bounded by pattern times text.
#include "weft/base/error.h"
#include "weft/base/utf8.h"
#include "weft/io/host_array.h"
#include "weft/text/regex.h"

namespace weft::text {

class RegexMatcher {
 public:
  RegexMatcher(const Regex& regex, std::string_view text)
      : regex_(regex), text_(text), quick_(64 * text.size() + 10000) {}

  /// The end of the match that begins here.
  std::optional<size_t> match_at(size_t begin) {
    const unsigned char first =
        begin < text_.size() ? static_cast<unsigned char>(text_[begin]) : 255;
    uint64_t may = first < 128 ? regex_.first_[first] : ~uint64_t{0};
    for (size_t i = 0; i < regex_.alternatives_.size(); ++i) {
      if (i < 64 && (may >> i & 1) == 0) continue;
      if (const auto end = run(regex_.alternatives_[i], begin, 0)) return end;
    }
    return {};
  }

  /// What led to a match ending here did not fail.
  void forget(size_t end) {
    if (!remembers_) return;
    for (uint32_t choice = 0; choice < regex_.choices_; ++choice)
      failed_[place(choice, end)] = false;
  }

 private:
  using Op = Regex::Op;
  struct Point {
    uint32_t step;
    size_t at, low;  // goes on at `at`, then before it, down to `low`
  };
  static constexpr size_t kMostRemembered = size_t{1} << 29;  // bits

  size_t place(uint32_t choice, size_t at) const { return at * regex_.choices_ + choice; }

  void count() {
    if (++taken_ <= quick_) return;
    const size_t places = (text_.size() + 1) * regex_.choices_;
    if (taken_ > 16 * quick_ || places > kMostRemembered)
      fail_runtime("regex.steps",
                   "pattern {}: takes more than {} steps in a text of {} bytes; a pattern whose "
                   "parts cannot match the same text in many ways takes few",
                   quoted_name(regex_.pattern_), taken_, text_.size());
    if (!remembers_) failed_.resize(places);
    remembers_ = true;
  }
  bool failed_before(const Regex::Step& s, size_t at, int depth) {
    if (!remembers_ || depth > 0) return false;
    const size_t here = place(s.choice, at);
    const bool before = failed_[here];
    failed_[here] = true;
    return before;
  }

  /// Whether the character at `at` is in the set; `at` moves behind it.
  bool takes(uint32_t set, size_t& at) const {
    if (at >= text_.size()) return false;
    size_t next = at;
    if (!regex_.sets_[set].contains(next_code_point(text_, next))) return false;
    at = next;
    return true;
  }

  std::optional<size_t> run(uint32_t step, size_t at, int depth) {
    const size_t bottom = points_.size();
    while (true) {
      count();
      const Regex::Step& s = regex_.steps_[step];
      if (s.op == Op::Match) {
        points_.resize(bottom);
        return at;
      }
      if (goes_on(s, step, at, depth)) continue;
      if (points_.size() == bottom) return {};
      Point& point = points_.back();
      step = point.step;
      at = point.at;
      if (point.at > point.low)
        point.at = code_point_before(text_, point.at);
      else
        points_.pop_back();
    }
  }

  /// One step; false: it fails.
  bool goes_on(const Regex::Step& s, uint32_t& step, size_t& at, int depth) {
    switch (s.op) {
      case Op::Set: ++step; return takes(s.to, at);
      case Op::Run: return run_of(s, step, at, depth);
      case Op::RunAll:
        for (uint32_t i = 0; i < s.limit && takes(s.to, at); ++i) {}
        ++step;
        return true;
      case Op::Jump: step = s.to; return true;
      case Op::Fork:
      case Op::LazyFork: {
        if (failed_before(s, at, depth)) return false;
        const bool lazy = s.op == Op::LazyFork;
        points_.push_back({lazy ? step + 1 : s.to, at, at});
        step = lazy ? s.to : step + 1;
        return true;
      }
      case Op::Ahead:
      case Op::Behind:
      case Op::Atomic: return looks(s, step, at, depth);
      default: ++step; return holds(s.op, at);
    }
  }

  bool run_of(const Regex::Step& s, uint32_t& step, size_t& at, int depth) {
    if (remembers_ && s.limit == Regex::kNoLimit) {  // one at a time, as a Fork
      if (failed_before(s, at, depth)) return false;
      points_.push_back({step + 1, at, at});
      if (!takes(s.to, at)) {
        points_.pop_back();
        ++step;
      }
      return true;
    }
    const size_t low = at;
    for (uint32_t i = 0; i < s.limit && takes(s.to, at); ++i) {}
    taken_ += (at - low) / 4;
    ++step;
    if (at > low) points_.push_back({step, code_point_before(text_, at), low});
    return true;
  }

  bool looks(const Regex::Step& s, uint32_t& step, size_t& at, int depth) {
    size_t from = at;
    bool there = true;
    for (uint32_t i = 0; s.op == Op::Behind && i < s.limit; ++i) {
      there = from > 0;
      if (!there) break;
      from = code_point_before(text_, from);
    }
    const std::optional<size_t> end =
        there ? run(step + 1, from, depth + 1) : std::optional<size_t>();
    const bool matched = end && (s.op != Op::Behind || *end == at);
    step = s.to;
    if (s.op != Op::Atomic) return matched != s.negated;
    if (matched) at = *end;
    return matched;
  }

  bool is_word_at(size_t at) const {
    if (at >= text_.size()) return false;
    constexpr Categories kWords = kLetters | kMarks | of(Category::Nd) | of(Category::Pc);
    return is_in(next_code_point(text_, at), kWords);
  }
  bool holds(Op op, size_t at) const {
    const bool end = at == text_.size();
    switch (op) {
      case Op::TextBegin: return at == 0;
      case Op::TextEnd: return end;
      case Op::TextEndOrLine: return end || (text_[at] == '\n' && at + 1 == text_.size());
      case Op::LineBegin: return at == 0 || (text_[at - 1] == '\n' && !end);
      case Op::LineEnd: return end || text_[at] == '\n';
      default: break;
    }
    const bool edge = is_word_at(at) != (at > 0 && is_word_at(code_point_before(text_, at)));
    return edge == (op == Op::WordEdge);
  }

  const Regex& regex_;
  std::string_view text_;
  std::vector<Point> points_;
  uint64_t taken_ = 0, quick_;
  bool remembers_ = false;
  std::vector<bool> failed_;
};

void Regex::for_each_match(std::string_view text, FunctionRef<void(size_t, size_t)> match) const {
  RegexMatcher matcher(*this, text);
  std::optional<size_t> last;  // where a match ended
  for (size_t at = 0; at <= text.size();) {
    const std::optional<size_t> end = matcher.match_at(at);
    const bool found = end && !(*end == at && last == at);
    if (found) {
      match(at, *end);
      matcher.forget(*end);
      last = end;
    }
    if (found && *end > at)
      at = *end;
    else if (at < text.size())
      next_code_point(text, at);
    else
      break;
  }
}

/// Adds the ASCII characters that a match from this step on may begin with; false: it may be empty
/// or begin with what is not known.
bool Regex::first_ascii(uint32_t step, uint64_t* bits, std::vector<bool>& seen, int depth) const {
  if (depth > 50) return false;
  if (seen[step]) return true;
  seen[step] = true;
  const Step& s = steps_[step];
  switch (s.op) {
    case Op::Set:
    case Op::Run:
    case Op::RunAll:
      for (char32_t c = 0; c < 128; ++c)
        if (sets_[s.to].contains(c)) bits[c / 64] |= uint64_t{1} << (c % 64);
      return s.op == Op::Set || first_ascii(step + 1, bits, seen, depth + 1);
    case Op::Jump: return first_ascii(s.to, bits, seen, depth + 1);
    case Op::Fork:
    case Op::LazyFork:
      return first_ascii(step + 1, bits, seen, depth + 1) &&
             first_ascii(s.to, bits, seen, depth + 1);
    case Op::Atomic: return first_ascii(step + 1, bits, seen, depth + 1);
    default: return false;
  }
}

void Regex::find_first_characters() {
  first_.assign(128, 0);
  for (size_t i = 0; i < alternatives_.size() && i < 64; ++i) {
    uint64_t bits[2] = {0, 0};
    std::vector<bool> seen(steps_.size());
    if (!first_ascii(alternatives_[i], bits, seen, 0)) bits[0] = bits[1] = ~uint64_t{0};
    for (size_t c = 0; c < 128; ++c) first_[c] |= (bits[c / 64] >> (c % 64) & 1) << i;
  }
}

}  // namespace weft::text
