// Vectors whose lanes are stored one by one, each to a row of its own, where other vectors go
// beside them: they are transposed in registers, so that each store writes a piece of a row. Where
// they are a few that fill rows which lie side by side, a store writes several rows.
#include <algorithm>
#include <bit>
#include <map>
#include <vector>

#include "weft/graph/index_algebra.h"
#include "weft/graph/node_map.h"
#include "weft/graph/program.h"
#include "weft/lower/steps.h"
#include "weft/lower/vector_nodes.h"
#include "weft/target/transposed_rows.h"

namespace weft::lower {
namespace {

/// The stores of a vector's lanes, in their order, and where the first of them goes.
struct Column {
  NodeRef vec;
  std::vector<NodeRef> stores;
  int64_t at = 0;
};

class StoreTransposer {
 public:
  StoreTransposer(Graph& g, const Target& target) : g_(g), target_(target) {}

  NodeRef run(NodeRef sink) {
    for (NodeRef n : sink->src())
      if (is_lane(n)) add(n);
    for (const Column& c : columns_)
      if (std::ranges::all_of(c.stores, [](NodeRef s) { return s != nullptr; })) place(c);
    for (std::vector<Column>& group : groups_) transpose_all(group);
    if (pieces_.size() == 0) return sink;
    std::vector<NodeRef> roots;
    for (NodeRef n : sink->src()) {
      const std::vector<NodeRef>* instead = pieces_.find(n);
      if (!instead)
        roots.push_back(n);
      else
        roots.insert(roots.end(), instead->begin(), instead->end());
    }
    return g_.intern({Op::Sink, sink->dtype, roots});
  }

 private:
  /// What rows are: where each begins, as far as it is no constant, and whatever else stores have.
  using Key = std::vector<std::pair<NodeRef, int64_t>>;

  /// Of places that no other store writes: those of a piece come in another order.
  bool is_lane(NodeRef n) const {
    if (n->op != Op::Store || n->src(0)->op != Op::Param) return false;
    if (n->int_arg(0) != static_cast<int64_t>(Fold::Set) || n->int_arg(1) == 0) return false;
    NodeRef value = n->src(2);
    return value->op == Op::Lane && !is_bool(value->dtype) &&
           turns_rows(target_, value->dtype, value->src(0)->lanes);
  }

  /// The same vector may be stored at several places, one after the other.
  void add(NodeRef n) {
    NodeRef vec = n->src(2)->src(0);
    const auto lane = static_cast<size_t>(n->src(2)->int_arg(0));
    const auto [found, is_new] = column_of_.try_emplace({vec, n->src(0)}, columns_.size());
    if (!is_new && columns_[found->second].stores[lane]) found->second = columns_.size();
    if (found->second == columns_.size())
      columns_.push_back({vec, std::vector<NodeRef>(vec->lanes, nullptr)});
    columns_[found->second].stores[lane] = n;
  }

  void place(Column column) {
    column.at = split_offset(g_, column.stores[0]->src(1)).constant;
    Key key{{column.stores[0]->src(0), 0}};
    for (NodeRef s : column.stores) {
      const Offset offset = split_offset(g_, s->src(1));
      key.emplace_back(offset.rest, offset.constant - column.at);
      for (NodeRef other : s->src().subspan(3)) key.emplace_back(other, 0);
    }
    const auto [found, is_new] = group_of_.try_emplace(std::move(key), groups_.size());
    if (is_new) groups_.emplace_back();
    groups_[found->second].push_back(std::move(column));
  }

  /// Columns side by side, as many as are a power of two together.
  void transpose_all(std::vector<Column>& columns) {
    std::ranges::sort(columns, {}, &Column::at);
    if (std::ranges::adjacent_find(columns, {}, &Column::at) != columns.end()) return;
    const size_t lanes = columns[0].vec->lanes;
    for (size_t i = 0; i < columns.size();) {
      size_t n = 1;
      while (i + n < columns.size() &&
             columns[i + n].at == columns[i].at + static_cast<int64_t>(n) && n < lanes)
        ++n;
      if (fill_rows(columns[i], n)) {
        interleave(std::span(columns).subspan(i, n));
      } else {
        n = std::bit_floor(n);
        if (n > 1 && bits(columns[i].vec->dtype) >= 32) transpose(std::span(columns).subspan(i, n));
      }
      i += n;
    }
  }

  /// Whether each row begins where the one before ends, with `n` columns.
  bool fill_rows(const Column& column, size_t n) {
    if (n < 2 || n > kMostInterleaved) return false;
    NodeRef first = column.stores[0];
    const Offset begin = split_offset(g_, first->src(1));
    for (size_t k = 0; k < column.stores.size(); ++k) {
      NodeRef store = column.stores[k];
      const Offset at = split_offset(g_, store->src(1));
      if (at.rest != begin.rest || at.constant != begin.constant + static_cast<int64_t>(k * n) ||
          !std::ranges::equal(store->src().subspan(3), first->src().subspan(3)))
        return false;
    }
    return true;
  }

  /// Element by element in the order of memory.
  void interleave(std::span<const Column> columns) {
    for (const Column& c : columns)
      for (NodeRef s : c.stores) pieces_[s];
    const size_t n = columns.size(), lanes = columns[0].vec->lanes;
    for (size_t first = 0; first < n * lanes; first += lanes) {
      std::vector<NodeRef> elements;
      for (size_t k = first; k < first + lanes; ++k)
        elements.push_back(lane(g_, columns[k % n].vec, k / n));
      pieces_[columns[0].stores[0]].push_back(
          stored(columns[first % n].stores[first / n], vec(g_, elements)));
    }
  }

  /// In the place of the first store there are those of all pieces.
  void transpose(std::span<const Column> columns) {
    std::vector<NodeRef> vectors;
    for (const Column& c : columns) {
      vectors.push_back(c.vec);
      for (NodeRef s : c.stores) pieces_[s];
    }
    transpose_blocks(g_, vectors);
    const size_t n = vectors.size(), lanes = columns[0].vec->lanes;
    std::vector<NodeRef>& stores = pieces_[columns[0].stores[0]];
    // What a transposition's last step makes of two vectors, one after the other.
    for (size_t j = 0; j < n / 2; ++j)
      for (const size_t row : {j, j + n / 2})
        for (size_t first = 0; first < lanes; first += n)
          stores.push_back(piece(columns[0].stores[first + row], vectors[row], first, n));
  }

  NodeRef piece(NodeRef store, NodeRef from, size_t first, size_t n) {
    std::vector<NodeRef> lanes;
    for (size_t k = 0; k < n; ++k) lanes.push_back(lane(g_, from, first + k));
    return stored(store, n == from->lanes ? from : vec(g_, lanes));
  }

  /// A vector from where a lane was stored.
  NodeRef stored(NodeRef store, NodeRef value) {
    std::vector<NodeRef> src(store->src().begin(), store->src().end());
    src[2] = value;
    return g_.intern({Op::Store, store->dtype, src, store->ints(), {}, value->lanes});
  }

  Graph& g_;
  const Target& target_;
  std::map<std::pair<NodeRef, NodeRef>, size_t> column_of_;  // by the vector and the buffer
  std::vector<Column> columns_;
  std::map<Key, size_t> group_of_;
  std::vector<std::vector<Column>> groups_;  // as they are met
  NodeMap<std::vector<NodeRef>> pieces_;     // by a scalar store: what is in its place
};

}  // namespace

NodeRef transpose_stores(Graph& g, NodeRef sink, const Target& target) {
  if (!target.permutes_pairs(DType::F32)) return sink;
  return StoreTransposer(g, target).run(sink);
}

}  // namespace weft::lower
