// Vectors that gather elements of a column, one from each row, where there are such vectors of
// several columns side by side: pieces of the rows are loaded instead, and transposed in registers.
#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "weft/graph/index_algebra.h"
#include "weft/graph/loops.h"
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
  /// What is done on columns may be done on rows: in kernels without sums, beside which rows would
  /// take registers.
  void allow_rows(NodeRef sink) {
    const Toposort order(sink);
    if (std::ranges::any_of(order, [](NodeRef n) { return is_loop_op(n->op); })) return;
    for (NodeRef n : order)
      for (NodeRef s : n->src()) ++uses_[s];
  }
  NodeRef made(NodeRef n, std::span<const NodeRef> src) {
    if (const NodeRef* found = transposed_.find(n)) return *found;
    NodeRef turned = done_on_rows(n, src);
    return turned ? turned : g_.with_sources(n, src);
  }
  bool found_any() const { return transposed_.size() > 0; }

 private:
  struct Square {
    std::vector<NodeRef> rows, columns;
    bool of_bools = false;  // which rows have as bytes
  };
  struct Place {
    size_t square, column;
  };

  /// What rows are: the buffer, and where each begins as far as it is no constant.
  using Key = std::vector<std::pair<NodeRef, int64_t>>;

  bool is_column(NodeRef n) const {
    if (!turns_rows(target_, n->dtype, n->lanes)) return false;
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
    const bool words = columns[0].vec->dtype == DType::U32;
    const auto least = static_cast<size_t>(fewest_columns(columns[0].vec->dtype));
    const auto most = static_cast<size_t>(most_columns(columns[0].vec->lanes));
    size_t together = words ? std::min(most, kWords) : most;
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
    std::vector<NodeRef> rows;
    for (size_t i = 0; i < size; ++i) {
      SmallVector<NodeRef, 16> lanes;
      for (size_t row = i; row < loads.size(); row += size) {
        NodeRef load = loads[row];
        NodeRef piece = g_.intern({Op::Load, load->dtype, load->src(), load->ints(), {}, size});
        if (is_bool(load->dtype)) piece = cast(piece, DType::U8);
        for (size_t k = 0; k < size; ++k) lanes.push_back(lane(g_, piece, k));
      }
      rows.push_back(size == loads.size() ? lanes[0]->src(0) : vec(g_, lanes));
    }
    const Square& square = squares_[add_square(std::move(rows), is_bool(loads[0]->dtype))];
    for (size_t i = 0; i < size; ++i) transposed_.set(columns[i].vec, square.columns[i]);
  }

  NodeRef cast(NodeRef n, DType to) { return elementwise(g_, Op::Cast, to, {&n, 1}); }

  size_t add_square(std::vector<NodeRef> rows, bool of_bools) {
    const size_t number = squares_.size();
    std::vector<NodeRef> columns = rows;
    transpose_blocks(g_, columns);
    for (size_t i = 0; i < columns.size(); ++i) {
      if (of_bools) columns[i] = cast(columns[i], DType::Bool);
      places_.set(columns[i], {number, i});
    }
    squares_.push_back({std::move(rows), std::move(columns), of_bools});
    return number;
  }

  /// Whether an operation on bools is the same on bytes that are 0 or 1.
  static bool is_same_on_bytes(NodeRef n) {
    return is_bool(n->dtype) ? n->op == Op::And || n->op == Op::Or || n->op == Op::Xor
                             : n->op == Op::Cast;
  }

  /// What may differ from column to column would be another operation on all rows for each.
  static bool is_same_everywhere(NodeRef n) {
    return n->op == Op::Splat && n->src(0)->op == Op::Const;
  }

  /// The squares of an elementwise operation's operands, null for what is the same everywhere.
  struct Operands {
    SmallVector<const Square*, 4> squares;
    Place place;  // of one of the columns, whose number is that of all
  };

  /// Where all are columns that nothing else reads, as wide as the result.
  std::optional<Operands> columns_in(NodeRef n, std::span<const NodeRef> src) const {
    std::optional<Operands> out;
    if (!is_alu(n->op)) return out;
    SmallVector<const Square*, 4> squares;
    for (size_t i = 0; i < src.size(); ++i) {
      const Place* found = places_.find(src[i]);
      squares.push_back(found ? &squares_[found->square] : nullptr);
      if (!found && (!is_same_everywhere(src[i]) || is_bool(n->dtype))) return std::nullopt;
      if (!found) continue;
      const uint32_t* uses = uses_.find(n->src(i));
      const bool alone = uses && *uses == 1 && bits(src[i]->dtype) == bits(n->dtype);
      if (!alone || (squares.back()->of_bools ? !is_same_on_bytes(n) : is_bool(n->dtype)))
        return std::nullopt;
      if (out && (out->place.column != found->column ||
                  squares_[out->place.square].rows.size() != squares.back()->rows.size()))
        return std::nullopt;
      if (!out) out.emplace(Operands{{}, *found});
    }
    if (out) out->squares = std::move(squares);
    return out;
  }

  /// An elementwise operation on columns: done on the rows, of which the results are transposed,
  /// once however many operands there are. Null where it is anything else.
  NodeRef done_on_rows(NodeRef n, std::span<const NodeRef> src) {
    const std::optional<Operands> in = columns_in(n, src);
    if (!in) return nullptr;
    const bool bools = is_bool(n->dtype);
    const auto on_row = [&](size_t row) {
      SmallVector<NodeRef, 4> operands;
      for (size_t i = 0; i < src.size(); ++i)
        operands.push_back(in->squares[i] ? in->squares[i]->rows[row] : src[i]);
      return bools ? elementwise(g_, n->op, DType::U8, operands) : g_.with_sources(n, operands);
    };
    size_t& number = results_[bools ? 1 : 0][on_row(0)];  // counted from 1
    if (number == 0) {
      std::vector<NodeRef> rows;
      for (size_t row = 0; row < squares_[in->place.square].rows.size(); ++row)
        rows.push_back(on_row(row));
      number = add_square(std::move(rows), bools) + 1;
    }
    return squares_[number - 1].columns[in->place.column];
  }

  Graph& g_;
  const Target& target_;
  std::map<Key, size_t> group_of_;
  std::vector<std::vector<Column>> groups_;  // as they are met
  NodeMap<NodeRef> transposed_;
  std::deque<Square> squares_;  // they stay where they are
  NodeMap<Place> places_;       // of columns
  NodeMap<size_t> results_[2];  // squares of operations, by their first row; of bools
  NodeMap<uint32_t> uses_;
};

}  // namespace

NodeRef transpose_loads(Graph& g, NodeRef sink, std::span<const NodeRef> gathered,
                        const Target& target) {
  if (gathered.empty() || !target.permutes_pairs(DType::F32)) return sink;
  LoadTransposer transposer(g, target);
  transposer.find(gathered);
  if (!transposer.found_any()) return sink;
  transposer.allow_rows(sink);
  const NodeRef roots[] = {sink};
  return rebuild_all(
      roots, [&](NodeRef n, std::span<const NodeRef> src) { return transposer.made(n, src); })[0];
}

}  // namespace weft::lower
