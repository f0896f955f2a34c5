#include "weft/graph/loops.h"

#include "weft/base/error.h"

namespace weft {
namespace {

// Integers of a Loop: its id, elements, carries, whether it runs, axes.
constexpr size_t kElements = 1, kCarries = 2, kRunning = 3, kAxes = 4;

size_t count(NodeRef loop, size_t which) { return static_cast<size_t>(loop->int_arg(which)); }

}  // namespace

size_t reduced_values(NodeRef reduce) { return reduce->nints > 1 ? count(reduce, 1) : 1; }

bool is_running(NodeRef n) {
  return n->op == Op::Scan || (n->op == Op::Loop && n->int_arg(kRunning) != 0);
}

LoopParts loop_parts(NodeRef n) {
  const std::span<const NodeRef> src = n->src();
  if (n->op == Op::Reduce) {
    const size_t values = reduced_values(n);
    return {{}, {}, src.first(values), src.subspan(values), false};
  }
  if (n->op == Op::Scan) return {{}, {}, src.first(1), src.subspan(1), true};
  if (n->op == Op::Barrier) {
    if (src.empty()) return {};  // a program's: its loops are instructions
    const auto stores = static_cast<size_t>(n->int_arg(1));
    return {{}, {}, src.subspan(1, stores), src.subspan(1 + stores), false};
  }
  WEFT_CHECK(n->op == Op::Loop && n->nints >= kAxes, "not a loop");
  const size_t elements = count(n, kElements), carries = count(n, kCarries);
  WEFT_CHECK(src.size() >= elements + 2 * carries, "a loop without bodies");
  return {src.first(elements), src.subspan(elements, carries),
          src.subspan(elements + carries, carries), src.subspan(elements + 2 * carries),
          is_running(n)};
}

std::span<const NodeRef> listed_ranges(NodeRef n) {
  return is_loop_op(n->op) ? loop_parts(n).ranges : std::span<const NodeRef>();
}

std::span<const NodeRef> reduction_ranges(NodeRef n) {
  return is_loop_op(n->op) ? loop_parts(n).closed() : std::span<const NodeRef>();
}

std::span<const int64_t> loop_axes(NodeRef n) {
  return n->ints().subspan(n->op == Op::Loop ? kAxes : 1);
}

}  // namespace weft
