#include "weft/graph/words.h"

#include <vector>

#include "weft/graph/index_algebra.h"

namespace weft {
namespace {

/// What is moved up in a word, by so many bits.
struct Piece {
  NodeRef element = nullptr;
  int64_t shift = 0;
};

Piece piece_of(NodeRef n) {
  Piece p;
  if (n->op == Op::Shl) {
    if (n->src(1)->op != Op::Const) return {};
    p.shift = n->src(1)->vmin;
    n = n->src(0);
  }
  if (n->op != Op::Cast || !is_unsigned(n->src(0)->dtype)) return {};
  p.element = n->src(0)->op == Op::Bitcast ? n->src(0)->src(0) : n->src(0);
  return p;
}

/// By place, the lowest first. Empty where the word is not whole, or is anything else.
std::vector<Element> elements_of(NodeRef word, FunctionRef<Element(NodeRef)> locate) {
  std::vector<Element> at;
  const int64_t whole = bits(word->dtype);
  std::vector<NodeRef> open{word};
  size_t found = 0;
  while (!open.empty()) {
    NodeRef n = open.back();
    open.pop_back();
    if (n->op == Op::Or) {
      open.insert(open.end(), {n->src(0), n->src(1)});
      continue;
    }
    const Piece p = piece_of(n);
    const int64_t width = p.element ? static_cast<int64_t>(bits(p.element->dtype)) : 0;
    if ((width != 8 && width != 16) || width == whole) return {};
    if (at.empty()) at.resize(static_cast<size_t>(whole / width));
    const auto place = static_cast<size_t>(p.shift / width);
    if (p.shift % width != 0 || place >= at.size() || at[place].memory) return {};
    at[place] = locate(p.element);
    found += at[place].memory != nullptr;
  }
  return found == at.size() ? at : std::vector<Element>{};
}

}  // namespace

Element first_of_word(Graph& g, NodeRef word, FunctionRef<Element(NodeRef)> locate) {
  if (!may_be_word(word)) return {};
  const std::vector<Element> at = elements_of(word, locate);
  if (at.empty()) return {};
  const Offset first = split_offset(g, at[0].at);
  for (size_t i = 1; i < at.size(); ++i) {
    const Offset next = split_offset(g, at[i].at);
    if (at[i].memory != at[0].memory || at[i].valid != at[0].valid || next.rest != first.rest ||
        next.constant != first.constant + static_cast<int64_t>(i))
      return {};
  }
  return at[0];
}

bool is_aligned(const Element& first, DType word) {
  return divisor_of(first.at) % (bits(word) / bits(first.memory->dtype)) == 0;
}

}  // namespace weft
