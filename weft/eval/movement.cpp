// Movement ops as index maps: out index i -> in index j, each from docs/design/ir.md.
#include "weft/base/error.h"
#include "weft/eval/step.h"

namespace weft::eval {
namespace {

using IndexMap = bool (*)(const Step& s, const Index& i, Index& j);

bool reshape(const Step& s, const Index& i, Index& j) {
  j = unflatten(flatten(i, s.extents), s.x().extents());
  return true;
}

bool expand(const Step& s, const Index& i, Index& j) {
  for (size_t a = 0; a < i.size(); ++a) j[a] = s.x().extents()[a] == 1 ? 0 : i[a];
  return true;
}

bool permute(const Step& s, const Index& i, Index& j) {
  for (size_t a = 0; a < i.size(); ++a) j[s.axis_arg(a)] = i[a];
  return true;
}

bool pad(const Step& s, const Index& i, Index& j) {
  for (size_t a = 0; a < i.size(); ++a) {
    const int64_t p = i[a] - s.number(1 + a), period = s.arg(a) + 1;
    if (p < 0 || p % period != 0 || p / period >= s.x().extents()[a]) return false;
    j[a] = p / period;
  }
  return true;
}

bool shrink(const Step& s, const Index& i, Index& j) {
  for (size_t a = 0; a < i.size(); ++a) j[a] = s.number(1 + a) + s.arg(a) * i[a];
  return true;
}

bool flip(const Step& s, const Index& i, Index& j) {
  j = i;
  for (size_t k = 0; k < s.node->nints; ++k) {
    const size_t a = s.axis_arg(k);
    j[a] = s.extents[a] - 1 - i[a];
  }
  return true;
}

bool window(const Step& s, const Index& i, Index& j) {
  const size_t axis = s.axis_arg(0);
  const int64_t stride = s.arg(2), dilation = s.arg(3);
  for (size_t a = 0; a < j.size(); ++a) j[a] = i[a];
  j[axis] = i[axis] * stride + i.back() * dilation;
  return true;
}

bool unwindow(const Step& s, const Index& i, Index& j) {
  const size_t axis = s.axis_arg(0);
  const int64_t stride = s.arg(2), dilation = s.arg(3);
  const int64_t t = i[axis] - i.back() * dilation;
  if (t < 0 || t % stride != 0 || t / stride >= s.x().extents()[axis]) return false;
  j = i;
  j[axis] = t / stride;
  return true;
}

bool gather(const Step& s, const Index& i, Index& j) {
  const size_t axis = s.axis_arg(0);
  const Value at = s.src[1]->at(flatten(i, s.src[1]->extents()));
  const int64_t n = s.x().extents()[axis];
  // Past int64's maximum a u64 index is outside, too.
  if (is_unsigned(at.dtype()) ? at.as_uint() >= static_cast<uint64_t>(n)
                              : at.as_int() < 0 || at.as_int() >= n)
    return false;
  j = i;
  j[axis] = at.as_int();
  return true;
}

struct MovementRow {
  Op op;
  IndexMap map;
};
constexpr MovementRow kMovements[] = {
    {Op::Reshape, reshape}, {Op::Expand, expand},     {Op::Permute, permute},
    {Op::Pad, pad},         {Op::Shrink, shrink},     {Op::Flip, flip},
    {Op::Window, window},   {Op::Unwindow, unwindow}, {Op::Gather, gather},
};

IndexMap map_of(Op op) {
  for (const MovementRow& row : kMovements)
    if (row.op == op) return row.map;
  internal_error("eval", "{} is no movement op", info(op).mnemonic);
}

}  // namespace

bool movement_source(const Step& s, const Index& out, Index& in) {
  in.assign(s.x().rank(), 0);
  return map_of(s.node->op)(s, out, in);
}

Array evaluate_movement(const Step& s) {
  if (s.node->op == Op::Reshape && count_of(s.extents) != s.x().count())
    fail("eval", "reshape: {} elements cannot become {}", s.x().count(), count_of(s.extents));
  const IndexMap map = map_of(s.node->op);
  const Extents& in = s.x().extents();
  // The dtype of what is moved, not of the node: assign moves positions through a view's chain.
  Array out(s.x().dtype(), s.extents);
  Index j(in.size());
  for_each_index(s.extents, [&](const Index& i, int64_t flat) {
    if (!map(s, i, j)) return;
    for (size_t a = 0; a < j.size(); ++a)
      if (j[a] < 0 || j[a] >= in[a])
        fail("eval", "{}: reads element {} of axis {}, which has {}", info(s.node->op).mnemonic,
             j[a], a, in[a]);
    out.set(flat, s.x().at(flatten(j, in)));
  });
  return out;
}

Array evaluate_cat(const Step& s) {
  Array out(s.node->dtype, s.extents);
  int64_t begin = 0;
  for (const Array* part : s.src) {
    for_each_index(part->extents(), [&](const Index& i, int64_t flat) {
      Index at = i;
      at[s.axis_arg(0)] += begin;
      out.set(flatten(at, s.extents), part->at(flat));
    });
    begin += part->extents()[s.axis_arg(0)];
  }
  return out;
}

}  // namespace weft::eval
