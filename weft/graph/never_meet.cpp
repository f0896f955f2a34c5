// Whether two index expressions differ whatever their ranges are: rows, columns, and parts of
// these.
#include <algorithm>
#include <numeric>

#include "weft/base/int128.h"
#include "weft/base/small_vector.h"
#include "weft/graph/index_algebra.h"
#include "weft/graph/walks.h"

namespace weft {

namespace {

struct Terms {
  SmallVector<NodeRef, 8> moving;
  int64_t constant = 0;
};

Terms terms_of(NodeRef index) {
  Terms out;
  for (NodeRef n : operands_of(index, Op::Add))
    if (n->op == Op::Const)
      out.constant += n->vmin;
    else
      out.moving.push_back(n);
  return out;
}

/// Whether values of one sum that are `apart` in their constants differ: in rows of `step`, what
/// the terms that do not go from row to row reach leaves room between them.
bool differ_in_rows(std::span<const NodeRef> terms, int64_t step, int64_t apart) {
  if (step <= 0) return false;
  Int128 reach = 0;
  for (NodeRef t : terms)
    if (divisor_of(t) % step != 0) reach += Int128(t->vmax) - t->vmin;
  const int64_t between = (apart % step + step) % step;
  return between > reach && step - between > reach;
}

}  // namespace

bool never_meet(NodeRef a, NodeRef b) {
  if (a->vmin > b->vmax || b->vmin > a->vmax) return true;
  const Terms x = terms_of(a), y = terms_of(b);
  if (!std::ranges::equal(x.moving, y.moving)) return false;
  int64_t common = 0;
  for (NodeRef t : x.moving) common = std::gcd(common, divisor_of(t));
  const auto differ = [&](int64_t step) {
    return differ_in_rows(x.moving, step, x.constant - y.constant);
  };
  return differ(common) ||
         std::ranges::any_of(x.moving, [&](NodeRef t) { return differ(divisor_of(t)); });
}

}  // namespace weft
