#include "weft/text/jinja/python_text.h"

#include <algorithm>

#include "weft/base/format.h"
#include "weft/base/utf8.h"
#include "weft/text/unicode.h"

namespace weft::text::jinja {

bool is_python_space(char32_t c) { return is_space(c) || (c >= 0x1c && c <= 0x1f); }

std::vector<std::string_view> characters(std::string_view text) {
  std::vector<std::string_view> all;
  for (size_t at = 0; at < text.size();) {
    const size_t from = at;
    next_code_point(text, at);
    all.push_back(text.substr(from, at - from));
  }
  return all;
}

size_t character_count(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

std::string_view stripped(std::string_view text, Side side, const std::string_view* set) {
  const auto goes = [&](size_t from, size_t to) {
    size_t at = from;
    if (set == nullptr) return is_python_space(next_code_point(text, at));
    return set->find(text.substr(from, to - from)) != std::string_view::npos;
  };
  size_t begin = 0, end = text.size();
  while (side != Side::Right && begin < end) {
    size_t next = begin;
    next_code_point(text, next);
    if (!goes(begin, next)) break;
    begin = next;
  }
  while (side != Side::Left && end > begin) {
    const size_t before = code_point_before(text, end);
    if (!goes(before, end)) break;
    end = before;
  }
  return text.substr(begin, end - begin);
}

namespace {
template <class Change>
std::string changed(std::string_view text, Change change) {
  std::string out;
  for (size_t at = 0; at < text.size();) change(out, next_code_point(text, at));
  return out;
}
bool is_cased(char32_t c) {
  std::string low, up, self;
  append_lower(low, c);
  append_upper(up, c);
  append_utf8(self, c);
  return low != self || up != self;
}
}  // namespace

std::string lower(std::string_view text) { return changed(text, append_lower); }
std::string upper(std::string_view text) { return changed(text, append_upper); }

std::string title(std::string_view text) {
  bool in_word = false;
  return changed(text, [&](std::string& out, char32_t c) {
    in_word ? append_lower(out, c) : append_title(out, c);
    in_word = is_cased(c);
  });
}

std::string capitalized(std::string_view text) {
  bool first = true;
  return changed(text, [&](std::string& out, char32_t c) {
    first ? append_title(out, c) : append_lower(out, c);
    first = false;
  });
}

std::string swapped_case(std::string_view text) {
  return changed(text, [&](std::string& out, char32_t c) {
    std::string low, self;
    append_lower(low, c);
    append_utf8(self, c);
    low != self ? void(out += low) : append_upper(out, c);
  });
}

bool is_cased_as(std::string_view text, std::string (*change)(std::string_view)) {
  return change(text) == text && lower(text) != upper(text);
}

std::string filter_title(std::string_view text) {
  bool in_word = false;
  return changed(text, [&](std::string& out, char32_t c) {
    in_word ? append_lower(out, c) : append_upper(out, c);
    constexpr std::u32string_view kBetween = U"-({[<";
    in_word = !is_python_space(c) && kBetween.find(c) == std::u32string_view::npos;
  });
}

namespace {
std::vector<std::string_view> split_at(std::string_view text, std::string_view separator,
                                       size_t most, bool right) {
  std::vector<std::string_view> parts;
  while (parts.size() < most) {
    const size_t at = right ? text.rfind(separator) : text.find(separator);
    if (at == std::string_view::npos) break;
    parts.push_back(right ? text.substr(at + separator.size()) : text.substr(0, at));
    text = right ? text.substr(0, at) : text.substr(at + separator.size());
  }
  parts.push_back(text);
  return parts;
}

/// The word at the end of a text without space there.
size_t last_word(std::string_view text) {
  size_t at = text.size();
  while (at > 0) {
    const size_t before = code_point_before(text, at);
    size_t next = before;
    if (is_python_space(next_code_point(text, next))) break;
    at = before;
  }
  return at;
}
size_t first_word(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    size_t next = at;
    if (is_python_space(next_code_point(text, next))) break;
    at = next;
  }
  return at;
}

std::vector<std::string_view> split_at_space(std::string_view text, size_t most, bool right) {
  std::vector<std::string_view> parts;
  const Side near = right ? Side::Right : Side::Left;
  for (text = stripped(text, near); !text.empty(); text = stripped(text, near)) {
    if (parts.size() == most) {
      parts.push_back(text);  // which keeps the space at its other end
      break;
    }
    const size_t at = right ? last_word(text) : first_word(text);
    parts.push_back(right ? text.substr(at) : text.substr(0, at));
    text = right ? text.substr(0, at) : text.substr(at);
  }
  return parts;
}
}  // namespace

std::vector<std::string_view> split(std::string_view text, const std::string_view* separator,
                                    int64_t most, bool right) {
  const size_t limit = most < 0 ? SIZE_MAX : static_cast<size_t>(most);
  std::vector<std::string_view> parts = separator == nullptr
                                            ? split_at_space(text, limit, right)
                                            : split_at(text, *separator, limit, right);
  if (right) std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<std::string_view> lines(std::string_view text, bool keep_ends) {
  constexpr std::u32string_view kEnds = U"\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029";
  std::vector<std::string_view> all;
  size_t from = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t here = at;
    const char32_t c = next_code_point(text, at);
    if (kEnds.find(c) == std::u32string_view::npos) continue;
    if (c == '\r' && at < text.size() && text[at] == '\n') ++at;
    all.push_back(text.substr(from, (keep_ends ? at : here) - from));
    from = at;
  }
  if (from < text.size()) all.push_back(text.substr(from));
  return all;
}

std::string quoted(std::string_view text) {
  const bool doubles =
      text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos;
  const char quote = doubles ? '"' : '\'';
  std::string out(1, quote);
  for (size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    constexpr std::string_view kShort = "\n\r\t\\", kLetters = "nrt\\";
    const size_t known = c < 0x80 ? kShort.find(static_cast<char>(c)) : std::string_view::npos;
    if (known != std::string_view::npos) {
      out += {'\\', kLetters[known]};
    } else if (c == static_cast<char32_t>(quote)) {
      out += {'\\', quote};
    } else if (c == ' ' || !is_in(c, kOthers | kSeparators)) {
      append_utf8(out, c);
    } else {
      const auto code = static_cast<uint32_t>(c);
      out += c < 0x100     ? strformat("\\x{:02x}", code)
             : c < 0x10000 ? strformat("\\u{:04x}", code)
                           : strformat("\\U{:08x}", code);
    }
  }
  return out + quote;
}

}  // namespace weft::text::jinja
