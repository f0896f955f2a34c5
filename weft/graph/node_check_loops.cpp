// Checks of loops with state, of stages, and of loads and stores.
#include <algorithm>

#include "weft/graph/loops.h"
#include "weft/graph/node_check.h"
#include "weft/graph/program.h"
#include "weft/graph/stage.h"
#include "weft/graph/tuple.h"

namespace weft::check {
namespace {

const char* loop_states(std::span<const NodeRef> inits, std::span<const NodeRef> bodies) {
  for (size_t k = 0; k < inits.size(); ++k) {
    if (inits[k]->rank() != 0 || bodies[k]->rank() != 0) return "carries are scalars";
    if (inits[k]->dtype != bodies[k]->dtype) return "a body has another dtype than its carry";
  }
  return nullptr;
}

const char* tensor_loop(const Spec& s, size_t elems) {
  for (NodeRef x : s.src.first(elems))
    if (x->shape != s.src[0]->shape || x->rank() == 0) return "elements have different shapes";
  const auto axes = s.ints.subspan(4);
  if (!std::is_sorted(axes.begin(), axes.end())) return "axes are listed in order";
  return distinct_axes(axes, s.src[0]->rank());
}

/// Folds into one place happen once each and in order, so what they find is defined.
const char* fetched(const Spec& s, NodeRef store) {
  if (s.ints[0] != 0 || !counts_repeats(static_cast<Fold>(store->int_arg(0))))
    return "takes what a store that adds or multiplies found";
  return s.dtype == store->src(2)->dtype ? nullptr : "changes the dtype";
}

const char* access(const Spec& s, size_t valid_at) {
  const bool ranges = valid_at + 1 == kStoreRanges;
  if (s.src.size() < valid_at || (!ranges && s.src.size() > valid_at + 1))
    return "takes param, index, valid";
  const bool shared = s.src[0]->op == Op::Local || s.src[0]->op == Op::Barrier;
  if (s.src[0]->op != Op::Param && !shared) return "accesses no param";
  if (!is_loop_integer(s.src[1]->dtype) || s.src[1]->rank() != 0) return "the index is no index";
  if (s.src.size() > valid_at && s.src[valid_at]->dtype != DType::Bool) return "valid is not bool";
  return nullptr;
}

const char* reduce_unrolled(const Spec& s) {
  const int64_t values = s.ints[1];
  if (values < 1 || values >= static_cast<int64_t>(s.src.size()) ||
      !all_ranges(s.src.subspan(static_cast<size_t>(values))))
    return "takes as many values as it says, and ranges";
  for (NodeRef v : s.src.first(static_cast<size_t>(values)))
    if (v->rank() > 0 || v->dtype != s.dtype) return "a kernel reduces scalars of its dtype";
  return nullptr;
}

}  // namespace

// ---- loops with state

/// Tensor: (x) over axes; kernel: (value, ranges...), or (values..., ranges...) after unrolling,
/// where the number of values is an integer, too.
const char* reduce(const Spec& s) {
  if (const char* problem = fold_kind(s.ints[0], s.dtype)) return problem;
  if (s.src.size() > 1 && s.ints.size() == 2) return reduce_unrolled(s);
  if (s.src.size() > 1 && (s.ints.size() > 1 || !all_ranges(s.src.subspan(1))))
    return "takes one tensor and axes, or a value and ranges";
  if (s.src.size() > 1 && s.src[0]->rank() > 0) return "a kernel reduces scalars";
  const char* problem = distinct_axes(s.ints.subspan(1), s.src[0]->rank());
  return problem ? problem : same_dtype(s);
}

const char* scan(const Spec& s) {
  if (const char* problem = fold_kind(s.ints[0], s.dtype)) return problem;
  if (s.src.size() == 1 && s.ints.size() == 2)
    return axis_of(s.ints[1], s.src[0]->rank()) ? same_dtype(s) : "axis is out of range";
  const bool kernel = s.src.size() == 2 && s.ints.size() == 1 && all_ranges(s.src.subspan(1));
  return kernel && s.src[0]->rank() == 0 ? same_dtype(s)
                                         : "takes one tensor and an axis, or a value and a range";
}

const char* loop(const Spec& s) {
  const int64_t elems = s.ints[1], carries = s.ints[2];
  if (elems < 0 || elems > 255 || carries < 1 || carries > 255) return "has 1 to 255 carries";
  if (s.ints[3] < 0 || s.ints[3] > 1) return "stacked is 0 or 1";
  const auto e = static_cast<size_t>(elems), c = static_cast<size_t>(carries);
  if (s.src.size() < e + 2 * c) return "needs an init and a body for every carry";
  if (const char* problem = loop_states(s.src.subspan(e, c), s.src.subspan(e + c, c)))
    return problem;
  const auto rest = s.src.subspan(e + 2 * c);
  if (elems == 0 && s.ints.size() == 4 && !rest.empty() && all_ranges(rest)) return nullptr;
  if (elems == 0 || s.ints.size() == 4 || !rest.empty())
    return "runs over elements and axes, or over ranges";
  return tensor_loop(s, e);
}

const char* get(const Spec& s) {
  NodeRef tuple = s.src[0];
  if (tuple->op == Op::Store) return fetched(s, tuple);
  if (!is_tuple(tuple->op)) return "takes one of several results";
  if (s.ints[0] < 0 || s.ints[0] >= static_cast<int64_t>(result_count(tuple)))
    return "there are fewer results";
  NodeRef like = result_like(tuple, static_cast<size_t>(s.ints[0]));
  return s.dtype == like->dtype ? nullptr : "changes the dtype";
}

const char* stage(const Spec& s) {
  if (s.src.empty() || !all_ranges(s.src.subspan(1))) return "takes a value and ranges";
  if (const char* problem = stage_problem(s)) return problem;
  return same_dtype(s);
}

// ---- kernels

/// Several elements of memory, as one number.
bool is_word_of(DType word, DType element) {
  return is_unsigned(word) && is_unsigned(element) && bits(word) > bits(element);
}

const char* load(const Spec& s) {
  if (const char* problem = access(s, 2)) return problem;
  return is_word_of(s.dtype, s.src[0]->dtype) ? nullptr : same_dtype(s);
}

const char* store(const Spec& s) {
  if (const char* problem = access(s, 3)) return problem;
  if (s.dtype != DType::Void) return "has no dtype";
  if (s.src[2]->rank() != 0) return "stores scalars";
  if (s.src[2]->dtype != s.src[0]->dtype) return "stores another dtype than the param's";
  for (size_t i = kStoreRanges; i < s.src.size(); ++i)
    if (!is_loop_integer(s.src[i]->dtype) || s.src[i]->rank() != 0) return "a range is no index";
  if (s.ints[0] != 0)
    if (const char* problem = fold_kind(s.ints[0], s.src[2]->dtype)) return problem;
  return s.ints[1] == 0 || s.ints[1] == 1 ? nullptr : "unique is 0 or 1";
}

}  // namespace weft::check
