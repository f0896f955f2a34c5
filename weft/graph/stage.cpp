#include "weft/graph/stage.h"

#include <algorithm>

namespace weft {
namespace {

constexpr size_t kSpace = 0, kLifetime = 1, kBuffers = 2, kStrides = 3;
constexpr int64_t kMostElements = int64_t{1} << 24;  // far more than any group's memory holds

bool is_int_or_index(DType d) { return d == DType::Index || d == DType::I32 || d == DType::I64; }

/// Ranges from the largest stride to the smallest: each has to step over all inside of it.
bool keeps_apart(std::span<const NodeRef> ranges, std::span<const int64_t> strides) {
  SmallVector<size_t, 4> order;
  for (size_t i = 0; i < ranges.size(); ++i) order.push_back(i);
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return strides[a] < strides[b]; });
  int64_t covered = 1;
  for (size_t i : order) {
    const int64_t size = ranges[i]->src(0)->vmin;
    if (size == 1) continue;
    if (strides[i] < covered || strides[i] > kMostElements) return false;
    covered = strides[i] * (size - 1) + covered;
    if (covered > kMostElements) return false;
  }
  return true;
}

}  // namespace

const char* stage_problem(const NodeSpec& s) {
  const bool legal =
      std::any_of(std::begin(kStageForms), std::end(kStageForms), [&](const StageForm& form) {
        return s.ints[kSpace] == static_cast<int64_t>(form.space) &&
               s.ints[kLifetime] == static_cast<int64_t>(form.lifetime) && s.ints[kBuffers] >= 1 &&
               s.ints[kBuffers] <= form.most_buffers && (form.strides || s.ints.size() == kStrides);
      });
  if (!legal) return "there is no such stage";
  const auto ranges = s.src.subspan(1);
  for (NodeRef r : ranges)
    if (r->src(0)->op != Op::Const || r->src(0)->vmin < 1 || r->src(0)->vmin > kMostElements)
      return "stages over a range whose size is no number";
  const auto strides = s.ints.subspan(kStrides);
  if (strides.empty()) return nullptr;
  if (strides.size() != ranges.size()) return "has a stride for each range, or none";
  return keeps_apart(ranges, strides) ? nullptr : "its layout puts elements into one place";
}

const char* local_problem(const NodeSpec& s) {
  if (!is_data(s.dtype)) return "holds data";
  NodeRef size = s.src[0];
  return size->op == Op::Const && is_int_or_index(size->dtype) && size->vmin > 0
             ? nullptr
             : "its size is a number";
}

const char* work_id_problem(const NodeSpec& s) {
  const auto binding = static_cast<Binding>(s.ints[0]);
  if (binding != Binding::Grid && binding != Binding::Group) return "is in neither grid nor group";
  if (!is_int_or_index(s.dtype)) return "is no index";
  return s.ints[1] >= 0 && s.ints[1] < kLaunchAxes ? nullptr : "no such axis";
}

const char* barrier_problem(const NodeSpec& s) {
  return s.dtype == DType::Void && s.src.empty() ? nullptr : "takes nothing";
}

const char* shuffle_problem(const NodeSpec& s) {
  if (s.dtype != s.src[0]->dtype) return "gives another dtype";
  if (s.lanes != 1 || s.src[0]->lanes != 1) return "an item has scalars";
  return s.ints[0] > 0 ? nullptr : "changes no bit of the item's number";
}

StageParts stage_parts(NodeRef n) {
  StageParts parts{n->src(0), n->src().subspan(1), static_cast<Space>(n->int_arg(kSpace)), {},
                   1,         n->int_arg(kBuffers)};
  const auto strides = n->ints().subspan(kStrides);
  parts.strides.assign(strides);
  if (strides.empty()) {
    parts.strides.resize(parts.ranges.size());
    int64_t dense = 1;
    for (size_t i = parts.ranges.size(); i-- > 0;) {
      parts.strides[i] = dense;
      dense *= parts.ranges[i]->src(0)->vmin;
    }
  }
  for (size_t i = 0; i < parts.ranges.size(); ++i)
    parts.elements += (parts.ranges[i]->src(0)->vmin - 1) * parts.strides[i];
  return parts;
}

}  // namespace weft
