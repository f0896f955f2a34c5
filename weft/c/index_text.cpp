#include "weft/c/index_text.h"

#include <charconv>

#include "weft/base/error.h"

namespace weft::c {

namespace {

[[noreturn]] void bad_item(std::string_view item) {
  fail("index.text",
       "\"{}\" is no index: give numbers, start:stop:step, \"...\", \"new\" or \"t\", with commas",
       item);
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

int64_t number(std::string_view text, std::string_view item) {
  int64_t x = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), x);
  if (error != std::errc() || end != text.data() + text.size()) bad_item(item);
  return x;
}

Slice parse_slice(std::string_view item) {
  std::optional<Dim> ends[2];
  int64_t step = 1;
  std::string_view rest = item;
  for (int i = 0;; ++i) {
    const size_t colon = rest.find(':');
    const std::string_view part = trimmed(rest.substr(0, colon));
    if (i > 2) bad_item(item);
    if (!part.empty() && i < 2) ends[i] = Dim(number(part, item));
    if (!part.empty() && i == 2) step = number(part, item);
    if (colon == std::string_view::npos) return {ends[0], ends[1], step};
    rest = rest.substr(colon + 1);
  }
}

}  // namespace

std::vector<Index> parse_index(std::string_view text, const std::vector<Tensor>& tensors) {
  std::vector<Index> items;
  size_t next = 0;
  for (bool more = !trimmed(text).empty(); more;) {
    const size_t comma = text.find(',');
    const std::string_view item = trimmed(text.substr(0, comma));
    more = comma != std::string_view::npos;
    if (more) text.remove_prefix(comma + 1);
    if (item == "...") {
      items.emplace_back(kEllipsis, CallSite());
    } else if (item == "new") {
      items.emplace_back(kNewAxis, CallSite());
    } else if (item == "t") {
      if (next == tensors.size()) fail("index.text", "more \"t\" than {} tensors", next);
      items.emplace_back(tensors[next++], CallSite());
    } else if (item.find(':') != std::string_view::npos) {
      items.emplace_back(parse_slice(item), CallSite());
    } else {
      items.emplace_back(number(item, item), CallSite());
    }
  }
  if (next < tensors.size())
    fail("index.text", "{} tensors, and \"t\" stands for {} of them", tensors.size(), next);
  return items;
}

}  // namespace weft::c
