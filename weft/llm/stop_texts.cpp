#include "weft/llm/stop_texts.h"

#include <algorithm>
#include <utility>

namespace weft::llm {

namespace {
/// The length of the longest end of `text` that `stop` begins with.
size_t begun(std::string_view text, std::string_view stop) {
  for (size_t size = std::min(text.size(), stop.size() - 1); size > 0; --size)
    if (text.ends_with(stop.substr(0, size))) return size;
  return 0;
}
}  // namespace

StopTexts::StopTexts(std::vector<std::string> texts) : texts_(std::move(texts)) {
  std::erase_if(texts_, [](const std::string& text) { return text.empty(); });
}

std::string StopTexts::add(std::string_view piece) {
  if (found_) return "";
  held_ += piece;
  size_t first = std::string::npos, kept = 0;
  for (const std::string& stop : texts_) {
    first = std::min(first, held_.find(stop));
    kept = std::max(kept, begun(held_, stop));
  }
  found_ = first != std::string::npos;
  const size_t given = found_ ? first : held_.size() - kept;
  std::string text = held_.substr(0, given);
  held_.erase(0, given);
  if (found_) held_.clear();
  return text;
}

std::string StopTexts::finish() { return std::exchange(held_, ""); }

}  // namespace weft::llm
