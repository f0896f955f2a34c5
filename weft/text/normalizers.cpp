#include "weft/text/normalizers.h"

#include "weft/base/utf8.h"

namespace weft::text {
namespace {

/// A function as a Normalizer.
template <class Function>
class Normalize final : public Normalizer {
 public:
  explicit Normalize(Function function) : function_(std::move(function)) {}
  std::string apply(std::string_view text) const override { return function_(text); }

 private:
  Function function_;
};
template <class Function>
NormalizerPtr by(Function function) {
  return std::make_unique<Normalize<Function>>(std::move(function));
}

/// What `add` makes of every code point.
template <class Add>
std::string mapped(std::string_view text, const Add& add) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) add(out, next_code_point(text, at));
  return out;
}

std::string stripped(std::string_view text, bool left, bool right) {
  size_t begin = 0, end = text.size();
  for (size_t at = 0; left && at < text.size() && is_space(next_code_point(text, at));) begin = at;
  while (right && end > begin) {
    const size_t before = code_point_before(text, end);
    size_t at = before;
    if (!is_space(next_code_point(text, at))) break;
    end = before;
  }
  return std::string(text.substr(begin, end - begin));
}

/// Blocks of ideographs: _is_chinese_char of google-research/bert's tokenization.py.
bool is_ideograph(char32_t c) {
  return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) ||
         (c >= 0x20000 && c <= 0x2a6df) || (c >= 0x2a700 && c <= 0x2b73f) ||
         (c >= 0x2b740 && c <= 0x2b81f) || (c >= 0x2b920 && c <= 0x2ceaf) ||
         (c >= 0xf900 && c <= 0xfaff) || (c >= 0x2f800 && c <= 0x2fa1f);
}

void add_clean(std::string& out, char32_t c) {
  const bool white = c == '\t' || c == '\n' || c == '\r';
  if (c == 0 || c == 0xfffd || (!white && is_in(c, kOthers & ~kUnassigned))) return;
  if (white || is_space(c))
    out += ' ';
  else
    append_utf8(out, c);
}

std::string bert_normalized(std::string_view given, const BertNormalization& how) {
  std::string text(given);
  if (how.clean_text) text = mapped(text, add_clean);
  if (how.space_ideographs)
    text = mapped(text, [](std::string& out, char32_t c) {
      if (is_ideograph(c)) out += ' ';
      append_utf8(out, c);
      if (is_ideograph(c)) out += ' ';
    });
  if (how.strip_accents)
    text = mapped(normalized(text, NormalForm::D), [](std::string& out, char32_t c) {
      if (!is_in(c, kNonspacingMarks)) append_utf8(out, c);
    });
  return how.lowercase ? mapped(text, append_lower) : text;
}

/// nmt_nfkc of SentencePiece's builder.cc.
void add_nmt(std::string& out, char32_t c) {
  const bool control = (c >= 1 && c <= 8) || c == 0xb || (c >= 0xe && c <= 0x1f) || c == 0x7f ||
                       c == 0x8f || c == 0x9f;
  if (control) return;
  const bool space = c == 9 || c == 0xa || c == 0xc || c == 0xd || c == 0x1680 ||
                     (c >= 0x200b && c <= 0x200f) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
                     c == 0xfeff || c == 0xfffd;
  append_utf8(out, space ? U' ' : c);
}

}  // namespace

NormalizerPtr unicode_normalizer(NormalForm form) {
  return by([form](std::string_view text) { return normalized(text, form); });
}
NormalizerPtr lowercase_normalizer() {
  return by([](std::string_view text) { return mapped(text, append_lower); });
}
NormalizerPtr strip_accents_normalizer() {
  return by([](std::string_view text) {
    return mapped(text, [](std::string& out, char32_t c) {
      if (!is_in(c, kMarks)) append_utf8(out, c);
    });
  });
}
NormalizerPtr strip_normalizer(bool left, bool right) {
  return by([=](std::string_view text) { return stripped(text, left, right); });
}
NormalizerPtr prepend_normalizer(std::string_view prefix) {
  return by([prefix = std::string(prefix)](std::string_view text) {
    return text.empty() ? std::string() : prefix + std::string(text);
  });
}
NormalizerPtr replace_normalizer(Pattern pattern, std::string_view with) {
  return by([pattern = std::move(pattern), with = std::string(with)](std::string_view text) {
    return pattern.replaced(text, with);
  });
}
NormalizerPtr byte_level_normalizer() {
  return by([](std::string_view text) {
    std::string out;
    append_spelling(out, text);
    return out;
  });
}
NormalizerPtr nmt_normalizer() {
  return by([](std::string_view text) { return mapped(text, add_nmt); });
}
NormalizerPtr bert_normalizer(BertNormalization how) {
  return by([how](std::string_view text) { return bert_normalized(text, how); });
}
NormalizerPtr sequence(std::vector<NormalizerPtr> steps) {
  return by([steps = std::move(steps)](std::string_view text) {
    std::string out(text);
    for (const NormalizerPtr& step : steps) out = step->apply(out);
    return out;
  });
}

}  // namespace weft::text
