#include "weft/optimize/digits.h"

#include <algorithm>
#include <numeric>

#include "weft/graph/index_algebra.h"
#include "weft/graph/walks.h"
#include "weft/optimize/byte_sums.h"
#include "weft/optimize/steady.h"

namespace weft::optimize {
namespace {

/// Of the divisors, those that are each a multiple of the one before and divide the extent: the
/// places of a mixed radix.
SmallVector<int64_t, 4> radix(SmallVector<int64_t, 4> divisors, const RangeInfo& range) {
  std::sort(divisors.begin(), divisors.end());
  const int64_t whole = range.constant ? range.extent : divisor_of(range.node->src(0));
  SmallVector<int64_t, 4> places;
  for (int64_t d : divisors) {
    const int64_t last = places.empty() ? 1 : places.back();
    if (d > last && d < range.extent && d % last == 0 && whole % d == 0) places.push_back(d);
  }
  return places;
}

/// The range whose digits a sum is taken apart by: the sum itself, or its one parallel range. Of
/// images with a border or windows, (y + 3) / 2 and (y - k) % 2 are a digit of y and something of
/// few values.
NodeRef digits_of(const KernelInfo& info, NodeRef sum) {
  if (sum->op == Op::Range) return sum;
  NodeRef found = nullptr;
  for (NodeRef n : operands_of(sum, Op::Add)) {
    if (n->op != Op::Range || !info.ranges[info.position(n)].parallel) continue;
    if (found) return nullptr;
    found = n;
  }
  return found;
}

constexpr int64_t kFewestGroups = 4;  // else vectors as long as a group do as well

/// The remainders that addresses are made of, not data that something is looked up by.
NodeMap<bool> remainders_in_addresses(const KernelInfo& info) {
  NodeMap<bool> seen;
  std::vector<NodeRef> stack;
  for (const Access& a : info.accesses) stack.push_back(a.node->src(1));
  while (!stack.empty()) {
    NodeRef n = stack.back();
    stack.pop_back();
    if (n->op == Op::ToIndex || seen.contains(n)) continue;
    seen[n] = true;
    stack.insert(stack.end(), n->src().begin(), n->src().end());
  }
  return seen;
}

/// Where along a range a comparison with a number changes: r < c, c < r, or of r as data; 0 where
/// that is not one range.
struct Threshold {
  size_t range;
  int64_t at = 0;
};
Threshold threshold_of(const KernelInfo& info, NodeRef n) {
  if (n->op != Op::Lt || n->rank() > 0) return {};
  NodeRef left = n->src(0), right = n->src(1);
  if (left->op == Op::Cast && right->op == Op::Const) left = left->src(0);
  int64_t sign = 1;
  if (left->op == Op::Mul && is_int_const(left->src(1), -1)) left = left->src(0), sign = -1;
  if (left->op != Op::Range || right->op != Op::Const) return {};
  // -r < c where r >= 1 - c.
  return {info.position(left), sign > 0 ? right->vmin : 1 - right->vmin};
}

/// Of ranges whose masks all change between groups of whole vectors, as those of joined parts do:
/// the size of such a group.
std::vector<int64_t> groups_of_masks(const KernelInfo& info, int64_t lanes) {
  std::vector<int64_t> sizes(info.ranges.size());
  for (NodeRef n : info.order) {
    const Threshold t = threshold_of(info, n);
    if (t.at <= 0) continue;
    const RangeInfo& r = info.ranges[t.range];
    if (!r.constant || !r.parallel || r.sequential || t.at >= r.extent) continue;
    int64_t& size = sizes[t.range];
    size = std::gcd(size == 0 ? r.extent : size, t.at);
  }
  for (int64_t& size : sizes) size = size > 0 && size % lanes == 0 ? lanes : 0;
  return sizes;
}

}  // namespace

std::vector<Digits> find_digits(const KernelInfo& info, int64_t lanes) {
  const RangeMask lookups = looked_up(info);
  const NodeMap<bool> in_addresses = lookups == 0 ? NodeMap<bool>() : remainders_in_addresses(info);
  const RangeMask words = scaled_words(info, lanes);
  std::vector<SmallVector<int64_t, 4>> divisors(info.ranges.size());
  for (NodeRef n : info.order) {
    if (n->op != Op::IDiv && n->op != Op::Mod) continue;
    NodeRef taken = digits_of(info, n->src(0));
    if (!taken) continue;
    const size_t range = info.position(taken);
    const RangeInfo& r = info.ranges[range];
    if (r.sequential || n->src(1)->op != Op::Const) continue;
    const int64_t divisor = n->src(1)->vmin;
    if ((words & bit(range)) != 0 && divisor < lanes) continue;
    // A vector of what is looked up has one element for each group of lanes.
    const bool within =
        (lookups & bit(range)) != 0 && divisor * kFewestGroups <= lanes && r.extent % lanes == 0;
    if (!within || (n->op == Op::Mod && in_addresses.contains(n)))
      divisors[range].push_back(divisor);
  }
  const std::vector<int64_t> groups = groups_of_masks(info, lanes);
  for (size_t r = 0; r < groups.size(); ++r)
    if (groups[r] > 0 && divisors[r].empty()) divisors[r].push_back(groups[r]);
  std::vector<Digits> out;
  for (size_t r = 0; r < divisors.size(); ++r) {
    const SmallVector<int64_t, 4> places = radix(divisors[r], info.ranges[r]);
    if (places.empty()) continue;
    Digits d{r, {}};
    for (size_t i = places.size(); i-- > 0;) d.sizes.push_back(places[i]);
    out.push_back(std::move(d));
  }
  return out;
}

}  // namespace weft::optimize
