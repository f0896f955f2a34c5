// Vectors that gather elements of a column, one from each row, where there are such vectors of
// several columns side by side: pieces of the rows are loaded instead, and transposed in registers.
#include <algorithm>
#include <map>
#include <vector>

#include "weft/graph/index_algebra.h"
#include "weft/graph/node_map.h"
#include "weft/graph/walks.h"
#include "weft/lower/steps.h"
#include "weft/lower/vector_nodes.h"
#include "weft/target/transposed_rows.h"

namespace weft::lower {
namespace {

// Words that begin at any byte are transposed at most so many at a time: more would wait in
// registers for what is made of them.
constexpr size_t kWords = 8;

/// A vector whose lanes are loads, one from each row, and how far along the rows they are.
struct Column {
  int64_t at;
  NodeRef vec;
};

class LoadTransposer {
 public:
  LoadTransposer(Graph& g, const Target& target) : g_(g), target_(target) {}

  void find(std::span<const NodeRef> gathered) {
    for (NodeRef n : gathered)
      if (n->op == Op::Vec && is_column(n)) add(n);
    for (std::vector<Column>& columns : groups_) transpose_all(columns);
  }
  NodeRef made(NodeRef n, std::span<const NodeRef> src) {
    const NodeRef* found = transposed_.find(n);
    return found ? *found : g_.with_sources(n, src);
  }
  bool found_any() const { return transposed_.size() > 0; }

 private:
  /// What rows are: the buffer, and where each begins as far as it is no constant.
  using Key = std::vector<std::pair<NodeRef, int64_t>>;

  bool is_column(NodeRef n) const {
    if (!target_.permutes_pairs(n->dtype) || n->lanes != target_.lanes(n->dtype)) return false;
    return std::ranges::all_of(n->src(), [&](NodeRef s) {
      return s->op == Op::Load && s->nsrc == 2 && s->src(0) == n->src(0)->src(0);
    });
  }

  void add(NodeRef n) {
    const int64_t first = split_offset(g_, n->src(0)->src(1)).constant;
    Key key{{n->src(0)->src(0), 0}};
    for (NodeRef s : n->src()) {
      const Offset offset = split_offset(g_, s->src(1));
      key.emplace_back(offset.rest, offset.constant - first);
    }
    const auto [found, is_new] = group_of_.try_emplace(std::move(key), groups_.size());
    if (is_new) groups_.emplace_back();
    groups_[found->second].push_back({first, n});
  }

  /// Columns of the same rows, as many side by side at a time as there are, up to a square's.
  void transpose_all(std::vector<Column>& columns) {
    std::ranges::sort(columns, {}, &Column::at);
    NodeRef one = columns[0].vec->src(0);
    const int64_t step = bits(one->dtype) / bits(one->src(0)->dtype);
    for (size_t i = 0; i < columns.size();) {
      size_t end = i + 1;
      while (end < columns.size() && columns[end].at == columns[end - 1].at + step) ++end;
      while (i < end) i += transpose_some(std::span(columns).subspan(i, end - i));
    }
  }

  /// How many of the columns, which lie side by side, are done with, from the first on. Of words
  /// whole squares come last: what packed blocks begin with is short.
  size_t transpose_some(std::span<const Column> columns) {
    const size_t lanes = columns[0].vec->lanes;
    const bool words = columns[0].vec->dtype == DType::U32;
    const auto least = static_cast<size_t>(fewest_columns(target_, columns[0].vec->dtype));
    size_t together = words ? std::min(lanes, kWords) : lanes;
    if (words && columns.size() % together >= least) together = least;
    while (together > least && columns.size() < together) together /= 2;
    if (columns.size() < together) return columns.size();
    transpose(columns.first(together));
    return together;
  }

  /// Vector i of a square begins with a piece of row i.
  void transpose(std::span<const Column> columns) {
    const auto loads = columns[0].vec->src();
    const auto size = static_cast<uint16_t>(columns.size());
    std::vector<NodeRef> vectors;
    for (size_t i = 0; i < size; ++i) {
      SmallVector<NodeRef, 16> lanes;
      for (size_t row = i; row < loads.size(); row += size) {
        NodeRef load = loads[row];
        NodeRef piece = g_.intern({Op::Load, load->dtype, load->src(), load->ints(), {}, size});
        for (size_t k = 0; k < size; ++k) lanes.push_back(lane(g_, piece, k));
      }
      vectors.push_back(size == loads.size() ? lanes[0]->src(0) : vec(g_, lanes));
    }
    transpose_blocks(g_, vectors);
    for (size_t i = 0; i < size; ++i) transposed_.set(columns[i].vec, vectors[i]);
  }

  Graph& g_;
  const Target& target_;
  std::map<Key, size_t> group_of_;
  std::vector<std::vector<Column>> groups_;  // as they are met
  NodeMap<NodeRef> transposed_;
};

}  // namespace

NodeRef transpose_loads(Graph& g, NodeRef sink, std::span<const NodeRef> gathered,
                        const Target& target) {
  if (gathered.empty() || !target.permutes_pairs(DType::F32)) return sink;
  LoadTransposer transposer(g, target);
  transposer.find(gathered);
  if (!transposer.found_any()) return sink;
  const NodeRef roots[] = {sink};
  return rebuild_all(
      roots, [&](NodeRef n, std::span<const NodeRef> src) { return transposer.made(n, src); })[0];
}

}  // namespace weft::lower
