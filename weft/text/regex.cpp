#include "weft/text/regex.h"

// Texts are UTF-8: eight bits a unit.
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <new>

#include "weft/base/error.h"
#include "weft/base/spans.h"
#include "weft/base/utf8.h"
#include "weft/text/regex_syntax.h"

namespace weft::text {
namespace {

constexpr uint32_t kMostSteps = 10'000'000;  // from one place of a text
constexpr uint32_t kMostKiB = 64 << 10;      // of what is tried again later
constexpr size_t kPlaces = 256;              // that a match may begin at before the clock is asked
constexpr uint64_t kMostTime = 10'000'000'000;  // ns, of one text
constexpr size_t kLongestPattern = 1 << 20;

template <auto Free>
struct FreedBy {
  template <class T>
  void operator()(T* p) const {
    Free(p);
  }
};
template <class T, auto Free>
using Owned = std::unique_ptr<T, FreedBy<Free>>;

template <class T>
T* made(T* p) {
  if (!p) throw std::bad_alloc();
  return p;
}

PCRE2_SPTR units(std::string_view text) { return reinterpret_cast<PCRE2_SPTR>(text.data()); }

std::string problem_of(int code) {
  PCRE2_UCHAR text[256];
  pcre2_get_error_message(code, text, sizeof(text));
  return reinterpret_cast<const char*>(text);
}

pcre2_code* compile(std::string_view pattern) {
  if (pattern.size() > kLongestPattern || !is_utf8(pattern))
    refuse_pattern("", "longer than 1 MiB or not UTF-8", 0);
  const std::string text = pcre2_syntax(pattern);
  const Owned<pcre2_compile_context, pcre2_compile_context_free> context(
      made(pcre2_compile_context_create(nullptr)));
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  constexpr uint32_t options =
      PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C | PCRE2_USE_OFFSET_LIMIT;
  int error = 0;
  PCRE2_SIZE at = 0;
  pcre2_code* code = pcre2_compile(units(text), text.size(), options, &error, &at, context.get());
  // The place is one of the translation, mostly the same.
  if (!code) refuse_pattern(pattern, problem_of(error), at);
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // without it, it is interpreted
  return code;
}

}  // namespace

struct Regex::Code {
  explicit Code(std::string_view pattern) : code(compile(pattern)) {}
  Owned<pcre2_code, pcre2_code_free> code;
};

namespace {

/// One text's matches.
class Search {
 public:
  Search(const pcre2_code* code, std::string_view pattern, std::string_view text)
      : code_(code),
        pattern_(pattern),
        text_(text),
        found_(made(pcre2_match_data_create_from_pattern(code, nullptr))),
        context_(made(pcre2_match_context_create(nullptr))) {
    pcre2_set_match_limit(context_.get(), kMostSteps);
    pcre2_set_heap_limit(context_.get(), kMostKiB);
  }

  /// The next at `from` or behind; at `from` maybe not an empty one. False: there is none.
  bool next(size_t from, bool may_be_empty) {
    for (uint32_t options = may_be_empty ? 0 : PCRE2_NOTEMPTY_ATSTART;; options = 0) {
      const size_t last = std::min(from + kPlaces, text_.size());
      if (match(from, last, options) > 0) return true;
      if (last == text_.size()) return false;
      if (now_ns() - start_ > kMostTime) refuse("takes more than 10 s");
      for (from = last + 1; from < text_.size() && utf8_length(text_, from) == 0;) ++from;
    }
  }
  size_t begin() const { return pcre2_get_ovector_pointer(found_.get())[0]; }
  size_t end() const { return pcre2_get_ovector_pointer(found_.get())[1]; }

 private:
  /// That begins at `from` to `last`.
  int match(size_t from, size_t last, uint32_t options) {
    pcre2_set_offset_limit(context_.get(), last);
    options |= PCRE2_NO_UTF_CHECK;
    int result =
        pcre2_match(code_, units(text_), text_.size(), from, options, found_.get(), context_.get());
    if (result == PCRE2_ERROR_JIT_STACKLIMIT)
      result = pcre2_match(code_, units(text_), text_.size(), from, options | PCRE2_NO_JIT,
                           found_.get(), context_.get());
    if (result < 0 && result != PCRE2_ERROR_NOMATCH) refuse(problem_of(result));
    return result;
  }
  [[noreturn]] void refuse(std::string_view why) const {
    fail_runtime("regex.steps",
                 "pattern '{}': {} on a text of {} bytes; write it so that a character can be "
                 "matched in one way only, or cut the text",
                 pattern_.substr(0, 200), why, text_.size());
  }

  const pcre2_code* code_;
  std::string_view pattern_, text_;
  Owned<pcre2_match_data, pcre2_match_data_free> found_;
  Owned<pcre2_match_context, pcre2_match_context_free> context_;
  const uint64_t start_ = now_ns();
};

}  // namespace

Regex::Regex(std::string_view pattern)
    : pattern_(pattern), code_(std::make_shared<const Code>(pattern)) {}

void Regex::for_each_match(std::string_view text, FunctionRef<void(size_t, size_t)> match) const {
  if (!is_utf8(text)) return;
  Search search(code_->code.get(), pattern_, text);
  for (size_t at = 0, matches = 0; search.next(at, matches == 0); ++matches) {
    match(search.begin(), search.end());
    at = search.end();
  }
}

}  // namespace weft::text
