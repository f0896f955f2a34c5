// The filter wordwrap: Python's textwrap.wrap, without tabs made wider and spaces made equal.
#include <algorithm>

#include "weft/text/jinja/filter_call.h"
#include "weft/text/jinja/python_text.h"
#include "weft/text/regex.h"

namespace weft::text::jinja {

namespace {
using Kind = Value::Kind;

// What stays together (CPython's Lib/textwrap.py, wordsep_re): spaces; dashes between words; a
// word, up to a hyphen between letters, the end, or dashes.
constexpr std::string_view kAtHyphens =
    R"([\t\n\v\f\r ]+|(?<=[\w!"'&.,?])-{2,}(?=\w)|[^\t\n\v\f\r ]+?(?:-(?:(?<=[^\d\W][^\d\W]-)|)"
    R"((?<=[^\d\W]-[^\d\W]-))(?=[^\d\W]-?[^\d\W])|(?=[\t\n\v\f\r ]|\z)|)"
    R"((?<=[\w!"'&.,?])(?=-{2,}\w)))";
constexpr std::string_view kAtSpaces = R"([\t\n\v\f\r ]+|[^\t\n\v\f\r ]+)";

bool is_space(std::string_view text) { return stripped(text, Side::Both).empty(); }

class Wrapper {
 public:
  Wrapper(size_t width, bool break_words, bool at_hyphens, Workspace& work)
      : width_(width),
        break_words_(break_words),
        at_hyphens_(at_hyphens),
        pattern_(at_hyphens ? kAtHyphens : kAtSpaces),
        work_(work) {}

  std::vector<std::string> lines(std::string_view text) {
    work_.spend_for(text.size() * 64);
    work_.require(text.size() * sizeof(std::string));
    split(text);
    std::vector<std::string> all;
    for (size_t at = 0; at < chunks_.size();) {
      std::vector<std::string_view> line;
      if (!all.empty() && is_space(chunks_[at])) ++at;
      size_t size = 0;
      for (; at < chunks_.size() && size + character_count(chunks_[at]) <= width_; ++at) {
        size += character_count(chunks_[at]);
        line.push_back(chunks_[at]);
      }
      if (at < chunks_.size() && character_count(chunks_[at]) > width_)
        take_of_long(at, width_ - size, line);
      if (!line.empty() && is_space(line.back())) line.pop_back();
      if (line.empty()) continue;
      std::string& made = all.emplace_back();
      for (const std::string_view part : line) made += part;
    }
    return all;
  }

 private:
  void split(std::string_view text) {
    chunks_.clear();
    work_.require(text.size() * sizeof(std::string_view));
    size_t end = 0;
    const auto add = [&](size_t from, size_t to) {
      if (from < to) chunks_.push_back(text.substr(from, to - from));
      end = to;
    };
    pattern_.for_each_match(text, [&](size_t from, size_t to) {
      add(end, from);
      add(from, to);
    });
    add(end, text.size());
  }

  /// Of a chunk that has no line with room for it: what fits, or all of it on a line of its own.
  void take_of_long(size_t& at, size_t room, std::vector<std::string_view>& line) {
    std::string_view& chunk = chunks_[at];
    if (!break_words_) {
      if (line.empty()) line.push_back(chunks_[at++]);
      return;
    }
    const std::vector<std::string_view> letters = characters(chunk);
    size_t bytes = letters[room].data() - chunk.data();
    const size_t hyphen = chunk.substr(0, bytes).rfind('-');
    const bool kept = at_hyphens_ && hyphen != std::string_view::npos && hyphen > 0 &&
                      chunk.substr(0, hyphen).find_first_not_of('-') != std::string_view::npos;
    if (kept) bytes = hyphen + 1;
    line.push_back(chunk.substr(0, bytes));
    chunk.remove_prefix(bytes);
  }

  size_t width_;
  bool break_words_, at_hyphens_;
  Regex pattern_;
  Workspace& work_;
  std::vector<std::string_view> chunks_;
};
}  // namespace

Value word_wrapped(const FilterCall& f) {
  const int64_t width = f.integer(0, "width", 79);
  if (width < 1) refuse("a width of {}", width);
  const std::string_view between =
      f.argument(2, "wrapstring").is(Kind::None) ? "\n" : f.text_argument(2, "wrapstring", "");
  Wrapper wrapper(static_cast<size_t>(width), f.flag(1, "break_long_words", true),
                  f.flag(3, "break_on_hyphens", true), f.work);
  TextBuilder out(f.work);
  bool first_line = true;
  for (const std::string_view line : lines(f.text(), false)) {
    if (!first_line) out.add(between);
    first_line = false;
    bool first = true;
    for (const std::string& part : wrapper.lines(line)) {
      if (!first) out.add(between);
      first = false;
      out.add(part);
    }
  }
  return out.done();
}

}  // namespace weft::text::jinja
