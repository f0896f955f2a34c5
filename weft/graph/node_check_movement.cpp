// Checks of what moves elements and of what stores them.
#include <algorithm>

#include "weft/graph/infer.h"
#include "weft/graph/node_check.h"

namespace weft::check {
namespace {

// Window geometry beyond this is a mistake, and would overflow the size formula.
constexpr int64_t kMaxWindow = int64_t{1} << 31;

/// Last element read: begin + step*(size-1) < n, where all of it is known.
bool shrink_fits(NodeRef begin, NodeRef size, int64_t step, NodeRef n) {
  if (!is_static_dim(begin) || !is_static_dim(size) || !is_static_dim(n)) return true;
  if (begin->vmin < 0 || begin->vmin > n->vmin) return false;
  return size->vmin == 0 || size->vmin - 1 <= (n->vmin - 1 - begin->vmin) / step;
}

const char* window_geometry(const Spec& s, size_t rank) {
  if (!axis_of(s.ints[0], rank)) return "axis is out of range";
  for (const int64_t v : s.ints.subspan(1))
    if (v < 1 || v > kMaxWindow) return "size, stride and dilation are at least 1";
  return same_dtype(s);
}

/// Axes of `inner` other than `axis` are no longer than those of `outer`, where that is known.
bool axes_fit(NodeRef inner, NodeRef outer, int64_t axis) {
  for (size_t i = 0; i < inner->rank(); ++i) {
    NodeRef a = inner->dim(i), b = outer->dim(i);
    if (static_cast<int64_t>(i) != axis && is_static_dim(a) && is_static_dim(b) &&
        a->vmin > b->vmin)
      return false;
  }
  return true;
}

}  // namespace

// ---- movement

const char* reshape(const Spec& s) {
  const auto dims = s.src.subspan(1);
  if (const char* problem = sizes(dims)) return problem;
  const auto old = s.src[0]->shape->span();
  if (!std::all_of(dims.begin(), dims.end(), is_static_dim)) return same_dtype(s);
  if (!std::all_of(old.begin(), old.end(), is_static_dim)) return same_dtype(s);
  int64_t count = 1;
  for (NodeRef d : dims) count *= d->vmin;
  return count == static_numel(s.src[0]) ? same_dtype(s) : "changes the number of elements";
}

const char* expand(const Spec& s) {
  const auto dims = s.src.subspan(1);
  NodeRef x = s.src[0];
  if (const char* problem = sizes(dims)) return problem;
  if (dims.size() != x->rank()) return "changes the rank";
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i] != x->dim(i) && !is_int_const(x->dim(i), 1)) return "expands an axis that is not 1";
  return same_dtype(s);
}

const char* permute(const Spec& s) {
  if (s.ints.size() != s.src[0]->rank()) return "lists every axis";
  const char* problem = distinct_axes(s.ints, s.src[0]->rank());
  return problem ? problem : same_dtype(s);
}

const char* pad(const Spec& s) {
  NodeRef x = s.src[0];
  if (s.src.size() != 1 + 2 * x->rank() || s.ints.size() != x->rank())
    return "needs before, after and interior for every axis";
  for (const int64_t interior : s.ints)
    if (interior < 0 || interior > kMaxWindow) return "interior is out of range";
  if (const char* problem = sizes(s.src.subspan(1, x->rank()))) return problem;
  const char* problem = sizes(s.src.subspan(1 + x->rank()));
  return problem ? problem : same_dtype(s);
}

const char* shrink(const Spec& s) {
  NodeRef x = s.src[0];
  const size_t rank = x->rank();
  if (s.src.size() != 1 + 2 * rank || s.ints.size() != rank)
    return "needs begin, size and step for every axis";
  if (const char* problem = sizes(s.src.subspan(1, rank))) return problem;
  if (const char* problem = sizes(s.src.subspan(1 + rank))) return problem;
  for (size_t i = 0; i < rank; ++i) {
    if (s.ints[i] < 1) return "steps must be at least 1";
    if (!shrink_fits(s.src[1 + i], s.src[1 + rank + i], s.ints[i], x->dim(i)))
      return "reaches past its source";
  }
  return same_dtype(s);
}

const char* flip(const Spec& s) {
  const char* problem = distinct_axes(s.ints, s.src[0]->rank());
  return problem ? problem : same_dtype(s);
}

const char* window(const Spec& s) {
  const size_t rank = s.src[0]->rank();
  if (const char* problem = window_geometry(s, rank)) return problem;
  if (rank == kMaxRank) return "has more than 64 axes";
  NodeRef n = s.src[0]->dim(static_cast<size_t>(s.ints[0]));
  const int64_t reach = s.ints[3] * (s.ints[1] - 1) + 1;
  return n->vmax < reach ? "the window is larger than the axis" : nullptr;
}

const char* unwindow(const Spec& s) {
  const size_t rank = s.src[0]->rank();
  if (rank < 2) return "needs a window axis";
  if (const char* problem = window_geometry(s, rank - 1)) return problem;
  if (!is_int_const(s.src[0]->dim(rank - 1), s.ints[1])) return "the last axis is not the window";
  return sizes(s.src.subspan(1));
}

const char* gather(const Spec& s) {
  NodeRef x = s.src[0], index = s.src[1];
  if (!is_int(index->dtype)) return "indices are integers";
  if (index->rank() != x->rank()) return "index and source have different ranks";
  if (!axis_of(s.ints[0], x->rank())) return "axis is out of range";
  return axes_fit(index, x, s.ints[0]) ? same_dtype(s) : "index is larger than its source";
}

// ---- storage

const char* copy(const Spec& s) {
  return s.ints[0] >= 0 && s.ints[0] <= UINT16_MAX ? same_dtype(s) : "no such device";
}

const char* assign(const Spec& s) {
  NodeRef view = s.src[1], value = s.src[2];
  if (value->shape != view->shape) return "value and view have different shapes";
  if (view->dtype != s.dtype || value->dtype != s.dtype) return "changes the dtype";
  return same_dtype(s);
}

const char* cat(const Spec& s) {
  NodeRef first = s.src[0];
  if (!axis_of(s.ints[0], first->rank())) return "axis is out of range";
  for (NodeRef x : s.src) {
    if (x->dtype != s.dtype) return "changes the dtype";
    if (x->rank() != first->rank()) return "parts have different ranks";
    for (size_t a = 0; a < x->rank(); ++a)
      if (static_cast<int64_t>(a) != s.ints[0] && x->dim(a) != first->dim(a))
        return "parts differ outside the axis";
  }
  return nullptr;
}

const char* scatter(const Spec& s) {
  NodeRef base = s.src[0], index = s.src[1], value = s.src[2];
  if (const char* problem = gather(s)) return problem;
  if (index->shape != value->shape) return "index and value have different shapes";
  if (value->dtype != s.dtype) return "changes the dtype";
  if (s.ints[1] != 0 && is_float8(s.dtype)) return "8-bit floats are combined in f32";
  if (s.ints[1] != 0)
    if (const char* problem = fold_kind(s.ints[1], s.dtype)) return problem;
  if (s.ints[2] == 2 && (s.ints[1] != 0 || base->shape != index->shape)) return "permutes nothing";
  return s.ints[2] >= 0 && s.ints[2] <= 2 ? nullptr : "unique is 0, 1 or 2";
}

const char* cumcount(const Spec& s) { return is_int(s.dtype) ? gather(s) : "counts are integers"; }

}  // namespace weft::check
