// Reading and writing at places that are data.
#include <algorithm>

#include "weft/onnx/exporter.h"

namespace weft::onnx {

namespace {

/// Positions before they were cast, which is for weft alone.
NodeRef before_cast(NodeRef i) {
  return i->op == Op::Cast && is_signed_int(i->src(0)->dtype) ? i->src(0) : i;
}

/// where(i < 0, i + n, i), and -1 where that is outside, of fewer bits then: what indexing makes of
/// positions. ONNX counts from the end by itself, and has an error for what is outside.
NodeRef positions_given(Exporter& e, NodeRef n, NodeRef size) {
  n = e.meaning(before_cast(e.meaning(n)));
  if (n->op == Op::Where && repeated_number(n->src(2)) == -1.0 && n->src(0)->op == Op::And)
    n = n->src(1);
  if (n->op != Op::Where || n->src(0)->op != Op::Lt) return nullptr;
  NodeRef i = n->src(2), moved = n->src(1);
  if (n->src(0)->src(0) != i || repeated_number(n->src(0)->src(1)) != 0.0) return nullptr;
  if (moved->op != Op::Add) return nullptr;
  for (size_t k = 0; k < 2; ++k) {
    const auto by = repeated_number(moved->src(k));
    if (!by || !is_const(size) || *by != static_cast<double>(size->vmin)) continue;
    if (moved->src(1 - k) != i) continue;
    return before_cast(i);
  }
  return nullptr;
}

/// Positions in a form that ONNX takes: those that were given, or computed ones with 0 in the place
/// of what lies outside, where `outside` is true.
struct Places {
  NodeRef index;
  bool inside;  // none lies outside of [-n, n)
};

Places places_of(Exporter& e, NodeRef index, NodeRef size) {
  if (NodeRef given = positions_given(e, index, size)) return {given, true};
  return {index, is_const(size) && index->vmin >= 0 && index->vmax < size->vmin};
}

/// As i32 or i64; what lies outside becomes n.
std::string written_places(Exporter& e, const Places& p, NodeRef size, std::string i) {
  if (p.index->dtype != DType::I32 && p.index->dtype != DType::I64) i = e.cast(i, DType::I64);
  if (p.inside) return i;
  if (p.index->dtype == DType::I32) i = e.cast(i, DType::I64);
  const std::string n = e.sizes({&size, 1});
  const std::string inside = e.out.node(
      "And",
      {e.out.node("Less", {i, n}), e.out.node("GreaterOrEqual", {i, e.out.scalar(DType::I64, 0)})});
  return e.out.node("Where", {inside, i, n});
}

/// With one more row of zeros at the end of the axis.
std::string with_zero(Exporter& e, const std::string& x, uint32_t rank, int64_t axis) {
  std::vector<int64_t> pads(2 * rank);
  pads[rank + static_cast<size_t>(axis)] = 1;
  return e.out.node("Pad", {x, e.out.integers(pads)});
}

/// The 1-D positions of whole rows, as they vary along one axis alone; null: each element has its
/// own.
NodeRef row_positions(NodeRef index, int64_t axis) {
  NodeRef n = unexpanded(index);
  for (uint32_t i = 0; i < n->rank(); ++i)
    if (i != axis && !is_int_const(n->dim(i), 1)) return nullptr;
  return n;
}

Emission rows(Exporter& e, NodeRef gather, NodeRef positions, std::span<const NodeRef> shape) {
  const int64_t axis = gather->int_arg(0);
  NodeRef x = gather->src(0), size = x->dim(static_cast<size_t>(axis));
  const Places p = places_of(e, positions, size);
  const std::vector<NodeRef> wanted(shape.begin(), shape.end());
  return {{x, p.index}, [&e, x, p, size, axis, wanted](const Names& in) {
            std::string i = written_places(e, p, size, in[1]);
            if (!std::ranges::equal(p.index->shape->span(), wanted)) i = e.reshaped(i, wanted);
            return e.out.node("Gather",
                              {p.inside ? in[0] : with_zero(e, in[0], x->rank(), axis), i},
                              {attribute("axis", axis)});
          }};
}

/// Rows by positions of any shape: reshape(gather(x, reshape(positions))).
MaybeEmission shaped_rows(Exporter& e, NodeRef n) {
  if (n->op != Op::Reshape || n->src(0)->op != Op::Gather || !e.used_once(n->src(0)))
    return std::nullopt;
  NodeRef gather = n->src(0), x = gather->src(0);
  const int64_t axis = gather->int_arg(0);
  NodeRef flat = row_positions(gather->src(1), axis);
  if (!flat || flat->op != Op::Reshape) return std::nullopt;
  NodeRef positions = flat->src(0);
  std::vector<NodeRef> shape;
  const auto all = x->shape->span(), own = positions->shape->span();
  shape.insert(shape.end(), all.begin(), all.begin() + axis);
  shape.insert(shape.end(), own.begin(), own.end());
  shape.insert(shape.end(), all.begin() + axis + 1, all.end());
  if (!std::ranges::equal(shape, n->shape->span())) return std::nullopt;
  return rows(e, gather, positions, own);
}

MaybeEmission gather(Exporter& e, NodeRef n) {
  if (n->op != Op::Gather) return std::nullopt;
  const int64_t axis = n->int_arg(0);
  NodeRef x = n->src(0), size = x->dim(static_cast<size_t>(axis));
  if (NodeRef positions = row_positions(n->src(1), axis)) {
    bool whole = true;  // the index has all of x's other axes
    for (uint32_t i = 0; i < n->rank(); ++i) whole &= i == axis || n->dim(i) == x->dim(i);
    NodeRef length = n->dim(static_cast<size_t>(axis));
    if (positions->op == Op::Reshape && positions->src(0)->rank() == 1)
      positions = positions->src(0);
    if (whole) return rows(e, n, positions, {&length, 1});
  }
  const Places p = places_of(e, n->src(1), size);
  return Emission{{x, p.index}, [&e, n, p, size, axis](const Names& in) {
                    const std::string i = written_places(e, p, size, in[1]);
                    const std::string from =
                        p.inside ? in[0] : with_zero(e, in[0], n->rank(), axis);
                    return e.out.node("GatherElements", {from, i}, {attribute("axis", axis)});
                  }};
}

/// What lies outside goes to a row of its own, which is cut off.
MaybeEmission scatter(Exporter& e, NodeRef n) {
  if (n->op != Op::Scatter) return std::nullopt;
  constexpr const char* kCombine[] = {"none", "add", "mul", "max", "min", nullptr, nullptr};
  const char* combine = kCombine[static_cast<size_t>(n->int_arg(1))];
  if (!combine) return std::nullopt;
  const int64_t axis = n->int_arg(0);
  NodeRef size = n->dim(static_cast<size_t>(axis));
  const Places p = places_of(e, n->src(1), size);
  return Emission{
      {n->src(0), p.index, n->src(2)}, [&e, n, p, size, axis, combine](const Names& in) {
        const std::string i = written_places(e, p, size, in[1]);
        const std::string base = p.inside ? in[0] : with_zero(e, in[0], n->rank(), axis);
        const std::string all =
            e.out.node("ScatterElements", {base, i, in[2]},
                       {attribute("axis", axis), attribute("reduction", combine)});
        if (p.inside) return all;
        return e.out.node("Slice",
                          {all, e.out.integers({0}), e.sizes({&size, 1}), e.out.integers({axis})});
      }};
}

constexpr ExportRule kRules[] = {shaped_rows, gather, scatter};

}  // namespace

std::span<const ExportRule> export_indexing() { return kRules; }

}  // namespace weft::onnx
