// Reduce, scan, scatter and cumcount: folds over elements in row-major order.
#include <algorithm>
#include <optional>

#include "weft/eval/scalar.h"
#include "weft/eval/step.h"

namespace weft::eval {

Array evaluate_reduce(const Step& s) {
  const Fold kind = fold_of(s.node);
  const auto axes = reduce_axes(s.node);
  Array out(s.node->dtype, s.extents);
  for (int64_t i = 0; i < out.count(); ++i) out.set(i, fold_identity(kind, out.dtype()));
  for_each_index(s.x().extents(), [&](const Index& in, int64_t flat) {
    Index kept;
    for (size_t a = 0; a < in.size(); ++a)
      if (std::find(axes.begin(), axes.end(), static_cast<int64_t>(a)) == axes.end())
        kept.push_back(in[a]);
    const int64_t at = flatten(kept, s.extents);
    out.set(at, fold(kind, out.at(at), s.x().at(flat)));
  });
  return out;
}

/// Starts from the identity like reduce, so that the last step is what reduce gives (-0 becomes 0).
Array evaluate_scan(const Step& s) {
  const Fold kind = fold_of(s.node);
  const size_t axis = s.axis_arg(1);
  Array out = s.x();
  for_each_index(s.extents, [&](const Index& i, int64_t flat) {
    Index before = i;
    const bool first = before[axis]-- == 0;
    const Value running =
        first ? fold_identity(kind, out.dtype()) : out.at(flatten(before, s.extents));
    out.set(flat, fold(kind, running, s.x().at(flat)));
  });
  return out;
}

namespace {

/// Data as a position in [0, size).
std::optional<int64_t> position_in(const Value& at, int64_t size) {
  const bool huge = is_unsigned(at.dtype()) && static_cast<int64_t>(at.as_uint()) < 0;
  if (huge || at.as_int() < 0 || at.as_int() >= size) return std::nullopt;
  return at.as_int();
}

}  // namespace

Array evaluate_scatter(const Step& s) {
  const size_t axis = s.axis_arg(0);
  const Fold combine = static_cast<Fold>(s.arg(1));
  const Array &index = *s.src[1], &value = *s.src[2];
  Array out = s.x();
  for_each_index(value.extents(), [&](const Index& i, int64_t flat) {
    const std::optional<int64_t> at = position_in(index.at(flat), s.extents[axis]);
    if (!at) return;
    Index target = i;
    target[axis] = *at;
    const int64_t place = flatten(target, s.extents);
    out.set(place, fold(combine, out.at(place), value.at(flat)));
  });
  return out;
}

Array evaluate_cumcount(const Step& s) {
  const size_t axis = s.axis_arg(0);
  const Array& index = *s.src[1];
  Array counts = s.x(), out(s.node->dtype, s.extents);
  const Value one = Value::of(s.node->dtype, 1);
  for_each_index(s.extents, [&](const Index& i, int64_t flat) {
    const std::optional<int64_t> at = position_in(index.at(flat), counts.extents()[axis]);
    out.set(flat, Value::of(s.node->dtype, 0));
    if (!at) return;
    Index target = i;
    target[axis] = *at;
    const int64_t place = flatten(target, counts.extents());
    out.set(flat, counts.at(place));
    counts.set(place, fold(Fold::Add, counts.at(place), one));
  });
  return out;
}

}  // namespace weft::eval
