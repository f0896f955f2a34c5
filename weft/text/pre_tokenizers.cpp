#include "weft/text/pre_tokenizers.h"

#include "weft/base/utf8.h"
#include "weft/text/unicode.h"

namespace weft::text {

const char* const kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

namespace {

/// Cuts a text at matches that come one after another.
class Cutter {
 public:
  Cutter(std::string_view text, bool first, SplitBehavior behavior, PieceSink piece)
      : text_(text), first_(first), behavior_(behavior), piece_(piece) {}

  /// [begin, end) follows what came before; what is between is none.
  void add(size_t begin, size_t end, bool is_match) {
    switch (behavior_) {
      case SplitBehavior::Removed:
        if (!is_match) give(begin, end);
        break;
      case SplitBehavior::Isolated: give(begin, end); break;
      case SplitBehavior::Contiguous:
        if (has_ && was_match_ == is_match)
          kept_end_ = end;
        else
          keep(begin, end);
        break;
      case SplitBehavior::MergedWithPrevious:
        if (is_match && has_ && !was_match_)
          kept_end_ = end;
        else
          keep(begin, end);
        break;
      case SplitBehavior::MergedWithNext:
        if (!is_match && has_ && was_match_)
          kept_end_ = end;
        else
          keep(begin, end);
        break;
    }
    was_match_ = is_match;
  }
  void finish() {
    if (has_) give(kept_begin_, kept_end_);
    has_ = false;
  }

 private:
  void keep(size_t begin, size_t end) {
    finish();
    kept_begin_ = begin;
    kept_end_ = end;
    has_ = true;
  }
  void give(size_t begin, size_t end) {
    if (begin < end) piece_(text_.substr(begin, end - begin), first_ && begin == 0);
  }

  std::string_view text_;
  bool first_;
  SplitBehavior behavior_;
  PieceSink piece_;
  bool has_ = false, was_match_ = false;
  size_t kept_begin_ = 0, kept_end_ = 0;
};

class Split final : public PreTokenizer {
 public:
  Split(Pattern pattern, SplitBehavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}
  void split(std::string_view text, bool first, PieceSink piece) const override {
    Cutter cutter(text, first, behavior_, piece);
    size_t last = 0;
    pattern_.for_each_match(text, [&](size_t begin, size_t end) {
      if (begin > last) cutter.add(last, begin, invert_);
      if (end > begin) cutter.add(begin, end, !invert_);
      last = end;
    });
    if (last < text.size()) cutter.add(last, text.size(), invert_);
    cutter.finish();
  }

 private:
  Pattern pattern_;
  SplitBehavior behavior_;
  bool invert_;
};

/// Cuts at single characters.
template <class Is>
class SplitAt final : public PreTokenizer {
 public:
  SplitAt(Is is, SplitBehavior behavior) : is_(is), behavior_(behavior) {}
  void split(std::string_view text, bool first, PieceSink piece) const override {
    Cutter cutter(text, first, behavior_, piece);
    size_t last = 0;
    for (size_t at = 0; at < text.size();) {
      const size_t begin = at;
      if (!is_(next_code_point(text, at))) continue;
      if (begin > last) cutter.add(last, begin, false);
      cutter.add(begin, at, true);
      last = at;
    }
    if (last < text.size()) cutter.add(last, text.size(), false);
    cutter.finish();
  }

 private:
  Is is_;
  SplitBehavior behavior_;
};
template <class Is>
PreTokenizerPtr split_at(Is is, SplitBehavior behavior) {
  return std::make_unique<SplitAt<Is>>(is, behavior);
}

class ByteLevel final : public PreTokenizer {
 public:
  ByteLevel(bool prefix, bool use_regex)
      : prefix_(prefix), regex_(use_regex ? std::make_unique<Regex>(kGpt2Pattern) : nullptr) {}
  bool leave_bytes() override { return leaves_ = true; }
  void split(std::string_view text, bool first, PieceSink piece) const override {
    std::string spaced;
    if (prefix_ && !text.starts_with(' ')) {
      spaced = ' ' + std::string(text);
      text = spaced;
    }
    const auto give = [&](size_t begin, size_t end) {
      const std::string_view word = text.substr(begin, end - begin);
      if (word.empty()) return;
      if (leaves_) return piece(word, first && begin == 0);
      std::string spelt;
      append_spelling(spelt, word);
      piece(spelt, first && begin == 0);
    };
    if (!regex_) return give(0, text.size());
    size_t last = 0;
    regex_->for_each_match(text, [&](size_t begin, size_t end) {
      give(last, begin);
      give(begin, end);
      last = end;
    });
    give(last, text.size());
  }

 private:
  bool prefix_, leaves_ = false;
  std::unique_ptr<const Regex> regex_;
};

class Metaspace final : public PreTokenizer {
 public:
  Metaspace(char32_t replacement, PrependScheme prepend, bool split)
      : prepend_(prepend), split_(split) {
    append_utf8(replacement_, replacement);
  }
  void split(std::string_view text, bool first, PieceSink piece) const override {
    std::string spaced;
    const bool begins = text.starts_with(' ') || text.starts_with(replacement_);
    const bool prepends =
        prepend_ == PrependScheme::Always || (prepend_ == PrependScheme::First && first);
    if (prepends && !begins) spaced = replacement_;
    for (const char c : text)
      if (c == ' ')
        spaced += replacement_;
      else
        spaced += c;
    const std::string_view all = spaced;
    for (size_t begin = 0; begin < all.size();) {
      const size_t next = split_ ? all.find(replacement_, begin + 1) : std::string_view::npos;
      piece(all.substr(begin, next == std::string_view::npos ? next : next - begin),
            first && begin == 0);
      begin = std::min(next, all.size());
    }
  }

 private:
  std::string replacement_;
  PrependScheme prepend_;
  bool split_;
};

class FixedLength final : public PreTokenizer {
 public:
  explicit FixedLength(size_t characters) : characters_(characters) {}
  void split(std::string_view text, bool first, PieceSink piece) const override {
    for (size_t at = 0; at < text.size();) {
      const size_t begin = at;
      for (size_t i = 0; i < characters_ && at < text.size(); ++i) next_code_point(text, at);
      piece(text.substr(begin, at - begin), first && begin == 0);
    }
  }

 private:
  size_t characters_;
};

class Sequence final : public PreTokenizer {
 public:
  explicit Sequence(std::vector<PreTokenizerPtr> steps) : steps_(std::move(steps)) {}
  bool leave_bytes() override { return !steps_.empty() && steps_.back()->leave_bytes(); }
  void split(std::string_view text, bool first, PieceSink piece) const override {
    from(0, text, first, piece);
  }

 private:
  /// As deep as there are steps.
  void from(size_t step, std::string_view text, bool first, PieceSink piece) const {
    if (step == steps_.size()) return piece(text, first);
    if (step + 1 == steps_.size()) return steps_[step]->split(text, first, piece);
    steps_[step]->split(text, first, [&](std::string_view part, bool part_first) {
      from(step + 1, part, part_first, piece);
    });
  }
  std::vector<PreTokenizerPtr> steps_;
};

bool is_ascii_punctuation(char32_t c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
         (c >= '{' && c <= '~');
}
bool is_punctuation(char32_t c) { return is_ascii_punctuation(c) || is_in(c, kPunctuation); }

}  // namespace

PreTokenizerPtr split_pre_tokenizer(Pattern pattern, SplitBehavior behavior, bool invert) {
  return std::make_unique<Split>(std::move(pattern), behavior, invert);
}
PreTokenizerPtr byte_level_pre_tokenizer(bool add_prefix_space, bool use_regex) {
  return std::make_unique<ByteLevel>(add_prefix_space, use_regex);
}
PreTokenizerPtr whitespace_pre_tokenizer() {
  // \w of Unicode's Annex C, which has more than Oniguruma's.
  return split_pre_tokenizer(
      Pattern::of_regex("[\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{200c}\\x{200d}]+|"
                        "[^\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{200c}\\x{200d}\\s]+"),
      SplitBehavior::Removed, true);
}
PreTokenizerPtr whitespace_split_pre_tokenizer() {
  return split_at(is_space, SplitBehavior::Removed);
}
PreTokenizerPtr bert_pre_tokenizer() {
  std::vector<PreTokenizerPtr> steps;
  steps.push_back(whitespace_split_pre_tokenizer());
  steps.push_back(punctuation_pre_tokenizer(SplitBehavior::Isolated));
  return sequence(std::move(steps));
}
PreTokenizerPtr punctuation_pre_tokenizer(SplitBehavior behavior) {
  return split_at(is_punctuation, behavior);
}
PreTokenizerPtr digits_pre_tokenizer(bool individual) {
  return split_at([](char32_t c) { return is_in(c, kNumbers); },
                  individual ? SplitBehavior::Isolated : SplitBehavior::Contiguous);
}
PreTokenizerPtr delimiter_pre_tokenizer(char32_t delimiter) {
  return split_at([delimiter](char32_t c) { return c == delimiter; }, SplitBehavior::Removed);
}
PreTokenizerPtr fixed_length_pre_tokenizer(size_t characters) {
  return std::make_unique<FixedLength>(characters);
}
PreTokenizerPtr metaspace_pre_tokenizer(char32_t replacement, PrependScheme prepend, bool split) {
  return std::make_unique<Metaspace>(replacement, prepend, split);
}
PreTokenizerPtr sequence(std::vector<PreTokenizerPtr> steps) {
  return std::make_unique<Sequence>(std::move(steps));
}

}  // namespace weft::text
