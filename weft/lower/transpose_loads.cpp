// Vectors that gather elements of a column, one from each row, where there is one for each of as
// many columns side by side: the rows are loaded instead, and transposed in registers.
#include <algorithm>
#include <map>
#include <vector>

#include "weft/graph/index_algebra.h"
#include "weft/graph/node_map.h"
#include "weft/graph/walks.h"
#include "weft/lower/steps.h"
#include "weft/lower/vector_nodes.h"
#include "weft/target/target.h"

namespace weft::lower {
namespace {

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

  /// Columns of the same rows: as many side by side as there are rows, as often as there are.
  void transpose_all(std::vector<Column>& columns) {
    std::ranges::sort(columns, {}, &Column::at);
    const auto lanes = static_cast<size_t>(columns[0].vec->lanes);
    for (size_t i = 0; i + lanes <= columns.size();) {
      const bool together =
          columns[i + lanes - 1].at == columns[i].at + static_cast<int64_t>(lanes) - 1;
      if (together) transpose(std::span(columns).subspan(i, lanes));
      i += together ? lanes : 1;
    }
  }

  void transpose(std::span<const Column> columns) {
    std::vector<NodeRef> rows;
    for (NodeRef load : columns[0].vec->src())
      rows.push_back(g_.intern({Op::Load,
                                load->dtype,
                                load->src(),
                                load->ints(),
                                {},
                                static_cast<uint16_t>(columns.size())}));
    transpose_blocks(g_, rows);
    for (size_t i = 0; i < rows.size(); ++i) transposed_.set(columns[i].vec, rows[i]);
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
