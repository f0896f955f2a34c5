#include "weft/graph/tuple.h"

#include <algorithm>
#include <array>

#include "weft/graph/loops.h"

namespace weft {

namespace {

/// Consecutive parts of a node's sources.
class Cut {
 public:
  explicit Cut(NodeRef n) : left_(n->src()) {}
  std::span<const NodeRef> take(int64_t count) {
    const auto part = left_.first(static_cast<size_t>(count));
    left_ = left_.subspan(part.size());
    return part;
  }
  std::span<const NodeRef> rest() const { return left_; }

 private:
  std::span<const NodeRef> left_;
};

}  // namespace

uint16_t inner_levels(NodeRef n) {
  const auto level = [](int64_t slot) {
    return static_cast<uint16_t>((slot - kInnerSlots) / kSlotsPerLevel + 1);
  };
  uint16_t levels = 0;
  for (NodeRef s : n->src().first(evaluated_sources(n))) levels = std::max(levels, s->levels);
  switch (n->op) {  // what is closed lies below the node that closes it
    case Op::Repeat: return std::max(levels, level(RepeatParts(n).slot));
    case Op::Call: return std::max(levels, level(CallParts(n).slot));
    case Op::Function: return std::max(levels, level(FunctionParts(n).slot));
    case Op::Custom: return std::max(levels, level(kInnerSlots));
    default: return levels;
  }
}

int64_t inner_slots_above(std::span<const NodeRef> bodies) {
  uint16_t levels = 0;
  for (NodeRef n : bodies) levels = std::max(levels, n->levels);
  return kInnerSlots + levels * kSlotsPerLevel;
}

FunctionParts::FunctionParts(NodeRef n) : slot(n->int_arg(2)) {
  Cut cut(n);
  results = cut.take(n->int_arg(0));
  inputs = cut.take(n->int_arg(1));
  gradients = cut.rest();
}

RepeatParts::RepeatParts(NodeRef n)
    : count(n->int_arg(0)), reversed(n->int_arg(1) != 0), slot(n->int_arg(5)) {
  if (n->ints().size() > 6) until = n->int_arg(6);
  Cut cut(n);
  stacked = cut.take(n->int_arg(2));
  whole = cut.take(n->int_arg(3));
  inits = cut.take(n->int_arg(4));
  nexts = cut.take(n->int_arg(4));
  outs = cut.rest();
}

CallParts::CallParts(NodeRef n) : slot(n->int_arg(1)) {
  Cut cut(n);
  inputs = cut.take(n->int_arg(0));
  bodies = cut.rest();
}

CustomParts::CustomParts(NodeRef n) : sink(n->src(n->nsrc - 1)) {
  Cut cut(n);
  inputs = cut.take(n->int_arg(0));
  outputs = cut.rest().first(cut.rest().size() - 1);
}

std::vector<NodeRef> placeholders_in(std::span<const NodeRef> closed, int64_t slot, size_t count) {
  std::vector<NodeRef> found(count);
  for (NodeRef n : Toposort(closed)) {
    if (n->op != Op::Param) continue;
    const int64_t k = param_slot(n) - slot;
    if (k >= 0 && k < static_cast<int64_t>(count)) found[static_cast<size_t>(k)] = n;
  }
  return found;
}

size_t evaluated_sources(NodeRef n) {
  switch (n->op) {
    case Op::Function:
    case Op::Call:
    case Op::Custom: return static_cast<size_t>(n->int_arg(0));
    case Op::Repeat: return static_cast<size_t>(n->int_arg(2) + n->int_arg(3) + n->int_arg(4));
    default: return n->nsrc;
  }
}

size_t result_count(NodeRef n) {
  switch (n->op) {
    case Op::Loop: return loop_parts(n).inits.size();
    case Op::Function: return static_cast<size_t>(n->int_arg(0));
    case Op::Repeat: {
      const RepeatParts parts(n);
      return parts.nexts.size() + parts.outs.size();
    }
    case Op::Call: return CallParts(n).bodies.size();
    case Op::Custom: return CustomParts(n).outputs.size();
    default: return 0;
  }
}

NodeRef result_like(NodeRef n, size_t k) {
  switch (n->op) {
    case Op::Loop: return loop_parts(n).inits[k];
    case Op::Custom: return CustomParts(n).outputs[k];
    case Op::Call:
    case Op::Repeat: return n->src(evaluated_sources(n) + k);
    default: return n->src(k);
  }
}

const Shape* result_shape(Graph& g, NodeRef n, size_t k) {
  if (n->op == Op::Loop) return n->shape;
  NodeRef like = result_like(n, k);
  if (n->op != Op::Repeat || k < RepeatParts(n).nexts.size()) return like->shape;
  std::vector<NodeRef> dims{g.index(n->int_arg(0))};
  for (NodeRef d : like->shape->span()) dims.push_back(d);
  return g.shape(dims);
}

NodeRef get_result(Graph& g, NodeRef tuple, size_t k) {
  const int64_t place[] = {static_cast<int64_t>(k)};
  return g.make({Op::Get, result_like(tuple, k)->dtype, {&tuple, 1}, place});
}

// ---- what their parts must be; each returns null or what is wrong

namespace {

/// Counts among the sources, and slots where those inside may have them.
const char* tuple_layout(const NodeSpec& s, std::span<const int64_t> counts, int64_t slot) {
  int64_t left = static_cast<int64_t>(s.src.size());
  for (const int64_t count : counts) {
    if (count < 0 || count > left || count > kSlotsPerLevel / 4) return "counts and sources differ";
    left -= count;
  }
  const bool fits = slot >= kInnerSlots && slot < kInnerSlotsEnd && slot % kSlotsPerLevel == 0;
  return fits ? nullptr : "has no such slot";
}

}  // namespace

const char* function_problem(const NodeSpec& s) {
  const int64_t results = s.ints[0], inputs = s.ints[1];
  if (results < 1) return "has no result";
  if (const char* problem = tuple_layout(s, std::array{results, inputs, inputs}, s.ints[2]))
    return problem;
  if (s.src.size() != static_cast<size_t>(results + 2 * inputs)) return "counts and sources differ";
  const auto x = s.src.subspan(static_cast<size_t>(results), static_cast<size_t>(inputs));
  const auto gradients = s.src.last(x.size());
  for (size_t i = 0; i < x.size(); ++i)
    if (gradients[i]->dtype != DType::Void &&
        (gradients[i]->shape != x[i]->shape || gradients[i]->dtype != x[i]->dtype))
      return "a gradient has another shape or dtype than its input";
  return nullptr;
}

const char* repeat_problem(const NodeSpec& s) {
  const int64_t count = s.ints[0], stacked = s.ints[2], whole = s.ints[3], carries = s.ints[4];
  if (count < 1 || count > kMostRounds) return "runs 1 to 16777216 times";
  if (s.ints[1] < 0 || s.ints[1] > 1) return "reversed is 0 or 1";
  if (const char* problem =
          tuple_layout(s, std::array{stacked, whole, carries, carries}, s.ints[5]))
    return problem;
  for (NodeRef x : s.src.first(static_cast<size_t>(stacked)))
    if (x->rank() == 0 || !is_int_const(x->dim(0), count)) return "a stack has another length";
  const auto inits = s.src.subspan(static_cast<size_t>(stacked + whole));
  for (size_t k = 0; k < static_cast<size_t>(carries); ++k) {
    NodeRef init = inits[k], next = inits[k + static_cast<size_t>(carries)];
    if (init->shape != next->shape || init->dtype != next->dtype)
      return "a carried value changes its shape or dtype";
  }
  if (s.src.size() == static_cast<size_t>(stacked + whole + carries)) return "has no result";
  if (s.ints.size() == 6) return nullptr;
  const int64_t until = s.ints[6];
  if (until < 0 || until >= carries || inits[static_cast<size_t>(until)]->dtype != DType::I32)
    return "what says that it is done is no carry in i32";
  return nullptr;
}

const char* call_problem(const NodeSpec& s) {
  if (const char* problem = tuple_layout(s, std::array{s.ints[0], int64_t{1}}, s.ints[1]))
    return problem;
  const auto bodies = s.src.subspan(static_cast<size_t>(s.ints[0]));
  const bool tensors = std::ranges::all_of(bodies, [](NodeRef n) { return !is_index(n->dtype); });
  return tensors ? nullptr : "gives indices";
}

const char* custom_problem(const NodeSpec& s) {
  if (const char* problem = tuple_layout(s, std::array{s.ints[0], int64_t{2}}, kInnerSlots))
    return problem;
  if (s.src.back()->op != Op::Sink) return "ends in no kernel";
  const auto outputs = s.src.subspan(static_cast<size_t>(s.ints[0]));
  for (NodeRef out : outputs.first(outputs.size() - 1))
    if (!is_inner_param(out)) return "its outputs are params with inner slots";
  return nullptr;
}

}  // namespace weft
