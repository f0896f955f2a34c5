#include "weft/optimize/read_words.h"

#include <vector>

#include "weft/graph/words.h"
#include "weft/rewrite/driver.h"

namespace weft::optimize {
namespace {

constexpr auto loaded = [](NodeRef n) {
  if (n->op != Op::Load || n->src(0)->op != Op::Param || n->nsrc > 3) return Element{};
  return Element{n->src(0), n->src(1), n->nsrc == 3 ? n->src(2) : nullptr};
};

/// In a buffer of words.
NodeRef as_word(Graph& g, Element first) {
  NodeRef elements = g.index(32 / bits(first.memory->dtype));
  const NodeRef size[] = {g.idiv(first.memory->src(0), elements)};
  NodeRef words = g.param(param_slot(first.memory), DType::U32, size);
  NodeRef at = g.idiv(first.at, elements);
  return first.valid ? g.make(Op::Load, DType::U32, {words, at, first.valid})
                     : g.make(Op::Load, DType::U32, {words, at});
}

/// In a buffer of its elements; null where they are no plain bits.
NodeRef among_elements(Graph& g, Element first, DType word) {
  if (!is_unsigned(first.memory->dtype)) return nullptr;
  return first.valid ? g.make(Op::Load, word, {first.memory, first.at, first.valid})
                     : g.make(Op::Load, word, {first.memory, first.at});
}

/// Whether a buffer is one thing to some accesses and another to others.
bool disagrees(NodeRef sink) {
  std::vector<NodeRef> params;
  for (NodeRef n : Toposort(sink)) {
    if (n->op != Op::Param) continue;
    for (NodeRef p : params)
      if (param_slot(p) == param_slot(n)) return true;
    params.push_back(n);
  }
  return false;
}

}  // namespace

NodeRef read_words(Graph& g, NodeRef sink) {
  const auto joined = [&](FunctionRef<NodeRef(Element, DType)> make) {
    return rebuild(sink, [&](NodeRef n, std::span<const NodeRef> src) {
      NodeRef now = g.with_sources(n, src);
      const Element first = first_of_word(g, now, loaded);
      NodeRef word = first.memory ? make(first, n->dtype) : nullptr;
      return word ? word : now;
    });
  };
  // Buffers of words lie as matrices do. Beside other accesses words begin at any element.
  bool aligned = true;
  NodeRef words = joined([&](Element first, DType word) {
    aligned = aligned && word == DType::U32 && is_aligned(first, word);
    return aligned ? as_word(g, first) : nullptr;
  });
  if (aligned && !disagrees(words)) return words;
  return joined([&](Element first, DType word) { return among_elements(g, first, word); });
}

}  // namespace weft::optimize
