// Trie: all prefixes of a text that are tokens, found in one walk.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace weft::text {

class Trie {
 public:
  static constexpr size_t kLongestKey = 1024;  // bytes; bounds what a walk can cost

  /// Distinct keys of 1 to kLongestKey bytes, and values >= 0.
  explicit Trie(std::vector<std::pair<std::string_view, int32_t>> keys);

  /// Calls visit(length, value) for each key that `text` begins with, from short to long.
  template <class Visit>
  void for_each_prefix(std::string_view text, const Visit& visit) const {
    uint32_t node = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      node = child(node, static_cast<uint8_t>(text[i]));
      if (node == 0) return;
      if (nodes_[node].value >= 0) visit(i + 1, nodes_[node].value);
    }
  }

 private:
  struct Node {
    uint32_t first = 0;  // of its children, which lie in a row and are sorted by their byte
    uint16_t count = 0;
    uint8_t byte = 0;
    int32_t value = -1;
  };
  uint32_t child(uint32_t node, uint8_t byte) const {
    if (node == 0) return root_[byte];
    uint32_t low = nodes_[node].first, high = low + nodes_[node].count;
    while (low < high) {
      const uint32_t middle = (low + high) / 2;
      if (nodes_[middle].byte < byte)
        low = middle + 1;
      else
        high = middle;
    }
    return low < nodes_[node].first + nodes_[node].count && nodes_[low].byte == byte ? low : 0;
  }

  std::vector<Node> nodes_;  // the first is the root, which is nobody's child
  std::array<uint32_t, 256> root_{};
};

}  // namespace weft::text
