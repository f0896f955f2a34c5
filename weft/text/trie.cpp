#include "weft/text/trie.h"

#include <algorithm>

namespace weft::text {

Trie::Trie(std::vector<std::pair<std::string_view, int32_t>> keys) : nodes_(1) {
  std::sort(keys.begin(), keys.end());
  struct Span {
    uint32_t node;
    size_t begin, end, depth;  // keys that go through it, bytes before it
  };
  std::vector<Span> level{{0, 0, keys.size(), 0}}, next;
  while (!level.empty()) {
    for (Span span : level) {
      if (span.begin < span.end && keys[span.begin].first.size() == span.depth)
        nodes_[span.node].value = keys[span.begin++].second;
      nodes_[span.node].first = static_cast<uint32_t>(nodes_.size());
      for (size_t at = span.begin; at < span.end;) {
        const char byte = keys[at].first[span.depth];
        const size_t begin = at;
        while (at < span.end && keys[at].first[span.depth] == byte) ++at;
        next.push_back({static_cast<uint32_t>(nodes_.size()), begin, at, span.depth + 1});
        nodes_.push_back({0, 0, static_cast<uint8_t>(byte), -1});
        ++nodes_[span.node].count;
      }
    }
    level.swap(next);
    next.clear();
  }
  for (uint32_t i = 0; i < nodes_[0].count; ++i) root_[nodes_[1 + i].byte] = 1 + i;
}

}  // namespace weft::text
