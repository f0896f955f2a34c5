#include "weft/optimize/read_words.h"

#include <vector>

#include "weft/graph/index_algebra.h"
#include "weft/rewrite/driver.h"

namespace weft::optimize {
namespace {

constexpr int kWord = 32;

/// A load of an element of `width` bits, moved up in a word by `shift` bits.
struct Piece {
  NodeRef load = nullptr;
  int64_t shift = 0;
};

Piece piece_of(NodeRef n) {
  Piece p;
  if (n->op == Op::Shl) {
    if (n->src(1)->op != Op::Const) return {};
    p.shift = n->src(1)->vmin;
    n = n->src(0);
  }
  if (n->op != Op::Cast || n->dtype != DType::U32 || is_float(n->src(0)->dtype)) return {};
  const bool extends = is_unsigned(n->src(0)->dtype);
  n = n->src(0);
  if (n->op == Op::Bitcast) n = n->src(0);
  if (extends && n->op == Op::Load && n->nsrc == 2 && n->src(0)->op == Op::Param) p.load = n;
  return p;
}

/// What a word is put together from: by place, the lowest first. Empty where it is anything else.
std::vector<NodeRef> pieces_of(NodeRef word) {
  std::vector<NodeRef> at, open{word};
  while (!open.empty()) {
    NodeRef n = open.back();
    open.pop_back();
    if (n->op == Op::Or) {
      open.insert(open.end(), {n->src(0), n->src(1)});
      continue;
    }
    const Piece p = piece_of(n);
    if (!p.load) return {};
    const auto width = static_cast<int64_t>(bits(p.load->dtype));
    if (at.empty() && (width == 8 || width == 16)) at.resize(static_cast<size_t>(kWord / width));
    const auto place = static_cast<size_t>(p.shift / width);
    if (p.shift % width != 0 || place >= at.size() || at[place]) return {};
    at[place] = p.load;
  }
  return at;
}

/// The load of the lowest piece where all pieces lie as they are put together; null where not.
NodeRef first_of_word(Graph& g, NodeRef word) {
  const std::vector<NodeRef> at = pieces_of(word);
  if (at.empty() || !at[0]) return nullptr;
  const Offset first = split_offset(g, at[0]->src(1));
  for (size_t i = 1; i < at.size(); ++i) {
    if (!at[i] || at[i]->src(0) != at[0]->src(0)) return nullptr;
    const Offset next = split_offset(g, at[i]->src(1));
    if (next.rest != first.rest || next.constant != first.constant + static_cast<int64_t>(i))
      return nullptr;
  }
  return divisor_of(at[0]->src(1)) % static_cast<int64_t>(at.size()) == 0 ? at[0] : nullptr;
}

NodeRef as_words(Graph& g, NodeRef first) {
  NodeRef param = first->src(0), pieces = g.index(kWord / bits(param->dtype));
  const NodeRef size[] = {g.idiv(param->src(0), pieces)};
  NodeRef words = g.param(param_slot(param), DType::U32, size);
  return g.make(Op::Load, DType::U32, {words, g.idiv(first->src(1), pieces)});
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
  NodeRef made = rebuild(sink, [&g](NodeRef n, std::span<const NodeRef> src) {
    NodeRef now = g.with_sources(n, src);
    if (now->op != Op::Or || now->dtype != DType::U32) return now;
    NodeRef first = first_of_word(g, now);
    return first ? as_words(g, first) : now;
  });
  return disagrees(made) ? sink : made;
}

}  // namespace weft::optimize
