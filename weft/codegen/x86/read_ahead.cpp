#include "weft/codegen/x86/read_ahead.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "weft/base/small_vector.h"
#include "weft/graph/index_algebra.h"
#include "weft/graph/node.h"

namespace weft::codegen {
namespace {

// Operations for each byte: with more the machine waits for its pipes. Products of bytes are four
// for one of floats in the same time.
constexpr double kMostWork = 32, kMostWorkOfPacked = 4 * kMostWork;
// Times L2 that are read at least, and bytes between two work items at most: what comes earlier
// than that is gone again before it is read. A model's packed weights go by once for each token,
// so that even small ones are in memory, not in L2, when their turn comes (2.4 MB of Q4_K by one
// row, two threads: 174 us without, 12.1 to 13.6 GB/s where larger ones have 22).
constexpr double kTimesL2 = 2, kTimesL2OfPacked = 0.125;
constexpr int64_t kFurthest = 256 << 10;
constexpr int64_t kNear = 12 << 10;  // that L1 holds beside what is read now
constexpr int64_t kFewestRows = 4;   // side by side
// Wider numbers, but for words of packed blocks, fill whole lines with each vector, which the
// machine follows.
constexpr int kWidest = 16;
// Bytes from one step of a sum to the next, at least, where prefetchers do not follow: they stay
// within a page, and know few of them.
constexpr int64_t kPage = 4096;

/// How much integers change from one iteration of each loop to the next, as far as that is always
/// the same; where a quotient or remainder jumps now and then, most of the time. A number in memory
/// (which matrix is read) is the same along loops that its own place does not follow.
class Slopes {
 public:
  void add(NodeRef n) {
    if (!is_int(n->dtype) || n->lanes > 1) return;
    Steps steps;
    if (find(n, steps)) of_.set(n, std::move(steps));
  }
  /// 0 where it is not known, too.
  int64_t along(NodeRef n, NodeRef range) const {
    const Steps* found = of_.find(n);
    if (!found) return 0;
    for (const Step& s : *found)
      if (s.range == range) return s.known ? s.slope : 0;
    return 0;
  }

 private:
  struct Step {
    NodeRef range;
    int64_t slope;
    bool known = true;
  };
  using Steps = SmallVector<Step, 4>;

  bool find(NodeRef n, Steps& steps) const {
    switch (n->op) {
      case Op::Const: return true;
      case Op::Range: steps.push_back({n, 1}); return true;
      case Op::Cast:
      case Op::Min:  // the last item may lie where it overlaps the one before
      case Op::Max:
      case Op::Mod:
      case Op::CMod:
      case Op::And: return of(n->src(0), steps);
      case Op::Add: return of(n->src(0), steps) && of(n->src(1), steps);
      case Op::Neg:
        if (!of(n->src(0), steps)) return false;
        for (Step& s : steps) s.slope = -s.slope;
        return true;
      case Op::Mul:
      case Op::Shl:
      case Op::IDiv:
      case Op::CDiv:
      case Op::Shr: return scaled(n, steps);
      case Op::Load: return in_memory(n, steps);
      default: return false;
    }
  }
  bool in_memory(NodeRef load, Steps& steps) const {
    if (!of(load->src(1), steps)) return false;
    for (Step& s : steps) s.known = s.known && s.slope == 0;
    return true;
  }
  bool of(NodeRef n, Steps& steps) const {
    const Steps* found = of_.find(n);
    if (!found) return false;
    for (const Step& s : *found) {
      const auto same = std::ranges::find(steps, s.range, &Step::range);
      if (same == steps.end())
        steps.push_back(s);
      else
        same->slope += s.slope, same->known = same->known && s.known;
    }
    return true;
  }
  bool scaled(NodeRef n, Steps& steps) const {
    NodeRef by = n->src(1);
    const bool shift = n->op == Op::Shl || n->op == Op::Shr;
    if (by->op != Op::Const || by->vmin < 0 || (shift && by->vmin > 62) || !of(n->src(0), steps))
      return false;
    const int64_t factor = shift ? int64_t{1} << by->vmin : by->vmin;
    for (Step& s : steps) {
      if (n->op == Op::Mul || n->op == Op::Shl) {
        if (__builtin_mul_overflow(s.slope, factor, &s.slope)) return false;
      } else {
        s.slope = factor == 0 ? 0 : s.slope / factor;
      }
    }
    return true;
  }

  NodeMap<Steps> of_;
};

bool streams(const LinearProgram& program, const Machine& machine) {
  const bool packed = std::ranges::any_of(
      program.code, [](NodeRef n) { return n->op == Op::Dot4 || n->op == Op::DotPairs; });
  const double least = packed ? kTimesL2OfPacked : kTimesL2,
               most = packed ? kMostWorkOfPacked : kMostWork;
  return program.bytes >= least * static_cast<double>(machine.l2().bytes) &&
         program.flops <= most * program.bytes;
}

class Search {
 public:
  Search(const LinearProgram& program, const Target& target)
      : program_(program), streams_(streams(program, target.machine)) {}

  NodeMap<Ahead> run() {
    for (NodeRef n : program_.code) visit(n);
    NodeMap<Ahead> out;
    for (NodeRef n : program_.code)
      if (const Ahead* ahead = found_.find(n); ahead && !is_brought(n, *ahead)) out.set(n, *ahead);
    return out;
  }

 private:
  /// A buffer of which each iteration of a loop fetches so much that all `bytes` of an item come.
  struct Pieces {
    NodeRef memory, loop;
    int64_t bytes;
  };
  /// A loop that is open.
  struct Loop {
    NodeRef range;
    std::vector<NodeRef> loads = {};  // right in it
    int64_t products = 0;
    bool inner = true;
  };

  void visit(NodeRef n) {
    slopes_.add(n);
    switch (n->op) {
      case Op::Range:
        for (Loop& around : loops_) around.inner = false;
        return loops_.push_back({n});
      case Op::EndRange: return close();
      case Op::Acc: declared_.set(n, loops_.size()); return;
      case Op::SetAcc: return fold(n->src(0));
      case Op::Load: return load(n);
      default:
        if (!loops_.empty()) loops_.back().products += is_mul_acc(n->op);
    }
  }

  /// All loops that were opened since are of the sum.
  void fold(NodeRef acc) {
    const size_t outside = declared_.at(acc);
    for (size_t i = outside; i < loops_.size(); ++i) folds_.set(loops_[i].range, true);
  }

  void load(NodeRef n) {
    if (loops_.empty()) return;
    loops_.back().loads.push_back(n);
    const DType of = n->src(0)->dtype;
    const bool in_pieces = bits(of) <= kWidest || of == DType::U32;
    if (streams_ && (in_pieces || n->lanes == 1)) next_item(n, in_pieces);
  }

  static int64_t size_of(NodeRef n) { return bits(n->src(0)->dtype) / 8; }

  void next_item(NodeRef n, bool in_pieces) {
    NodeRef core = loops_[0].range;
    if (range_binding(core) != Binding::Core || loops_.size() == 1) return;
    const int64_t bytes = slopes_.along(n->src(1), core) * size_of(n);
    if (bytes < Machine::kLine || bytes > kFurthest) return;
    if (const int64_t steps = steps_of_rows(n, bytes); steps > 0)
      next_piece(n, bytes, steps);
    else if (in_pieces)
      found_.set(n, {bytes, bytes > kNear});
  }

  /// Iterations of the innermost loop in an item, where that is so many bytes in rows that it walks
  /// along side by side, some after the others; 0 where it is anything else.
  int64_t steps_of_rows(NodeRef n, int64_t bytes) const {
    NodeRef loop = loops_.back().range, size = loop->src(0);
    const int64_t step = slopes_.along(n->src(1), loop) * size_of(n);
    if (size->op != Op::Const || size->vmin < 1 || step <= 0) return 0;
    const int64_t row = step * size->vmin, runs = runs_in_item(n);
    return bytes % row == 0 && bytes >= kFewestRows * row * runs ? size->vmin * runs : 0;
  }

  /// How often the innermost loop runs for other bytes, and is followed; more often than any item
  /// has rows where that is not known.
  int64_t runs_in_item(NodeRef n) const {
    int64_t runs = 1;
    for (size_t i = 1; i + 1 < loops_.size(); ++i) {
      NodeRef range = loops_[i].range, size = range->src(0);
      if (slopes_.along(n->src(1), range) == 0) continue;
      if (size->op != Op::Const || size->vmin > kFurthest / runs) return kFurthest;
      runs *= std::max<int64_t>(1, size->vmin);
    }
    return runs;
  }

  /// The first load of a buffer fetches for all.
  void next_piece(NodeRef n, int64_t bytes, int64_t steps) {
    NodeRef loop = loops_.back().range;
    for (const Pieces& p : pieces_)
      if (p.memory == n->src(0) && p.loop == loop) return;
    pieces_.push_back({n->src(0), loop, bytes});
    const int64_t each = bytes / steps, step = slopes_.along(n->src(1), loop) * size_of(n);
    found_.set(
        n, {bytes, bytes > kNear, loop, (each + Machine::kLine - 1) / Machine::kLine, each - step});
  }

  /// Pieces are all of an item: what else is read of it comes with them.
  bool is_brought(NodeRef n, const Ahead& ahead) const {
    return ahead.lines == 0 && std::ranges::any_of(pieces_, [&](const Pieces& p) {
             return p.memory == n->src(0) && p.bytes == ahead.bytes;
           });
  }

  void close() {
    const Loop loop = std::move(loops_.back());
    loops_.pop_back();
    if (!loop.inner || !folds_.contains(loop.range)) return;
    std::vector<NodeRef> scattered;
    for (NodeRef n : loop.loads) {
      const int64_t step = slopes_.along(n->src(1), loop.range) * size_of(n);
      if (std::abs(step) < kPage) continue;
      if (n->lanes == 1)
        scattered.push_back(n);
      else if (streams_ && !found_.contains(n))
        next_tile(n);
    }
    if (static_cast<int64_t>(scattered.size()) > loop.products) return;
    for (NodeRef n : scattered) next_tile(n);
  }

  /// Where the loop around the sum goes on, the innermost one that changes the address.
  void next_tile(NodeRef n) {
    for (size_t i = loops_.size(); i-- > 0;) {
      if (folds_.contains(loops_[i].range)) continue;
      const int64_t bytes = slopes_.along(n->src(1), loops_[i].range) * size_of(n);
      if (bytes == 0) continue;
      if (std::abs(bytes) <= kFurthest) found_.set(n, {bytes, true});
      return;
    }
  }

  const LinearProgram& program_;
  const bool streams_;
  Slopes slopes_;
  std::vector<Loop> loops_;
  NodeMap<size_t> declared_;  // of each register, the loops open there
  NodeMap<bool> folds_;
  std::vector<Pieces> pieces_;
  NodeMap<Ahead> found_;
};

}  // namespace

NodeMap<Ahead> reads_ahead(const LinearProgram& program, const Target& target) {
  return Search(program, target).run();
}

}  // namespace weft::codegen
