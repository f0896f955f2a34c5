#include "weft/run/check_nan.h"

#include <algorithm>
#include <cmath>

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/graph/loops.h"
#include "weft/graph/node_map.h"
#include "weft/graph/print.h"
#include "weft/graph/provenance.h"
#include "weft/graph/tuple.h"
#include "weft/run/realize.h"

namespace weft {
namespace {

/// How many operations are computed together: each needs memory of its own.
constexpr size_t kAtOnce = 16;

/// What a tensor's elements are like.
struct Statistics {
  int64_t count = 0, nans = 0, infinities = 0, zeros = 0, first_nan = -1;
  double least = 0, most = 0;

  explicit Statistics(const Storage& s) {
    const DType d = s.value()->dtype;
    const std::vector<std::byte> bytes = storage_to_bytes(s);
    const auto width = static_cast<size_t>(bits(d) / 8);
    bool any = false;
    for (size_t at = 0; at < bytes.size(); at += width, ++count) {
      const double x = Value::load(d, bytes.data() + at).as_double();
      if (std::isnan(x)) {
        if (nans++ == 0) first_nan = count;
        continue;
      }
      infinities += std::isinf(x);
      zeros += x == 0;
      least = any ? std::min(least, x) : x;
      most = any ? std::max(most, x) : x;
      any = true;
    }
  }

  std::string text() const {
    if (nans == count) return "nothing but NaN";
    std::string out = strformat("from {:g} to {:g}", least, most);
    for (const auto& [number, what] :
         {std::pair{zeros, "zeros"}, {infinities, "infinities"}, {nans, "NaN"}})
      if (number != 0) append_format(out, ", {} {}", number, what);
    return out;
  }
};

/// Operations on floats outside of loop bodies, sources first. Views make no numbers.
std::vector<NodeRef> operations(std::span<const NodeRef> values) {
  std::vector<NodeRef> out;
  NodeMap<bool> open;
  for (NodeRef n : Toposort::evaluated(values)) {
    bool inside = n->op == Op::Carry || n->op == Op::Elem;
    if (n->op != Op::Loop)
      for (NodeRef s : n->src()) inside |= open.contains(s);
    if (inside) open[n] = true;
    const bool makes = is_alu(n->op) || group(n->op) == OpGroup::Storage || n->op == Op::Get ||
                       n->op == Op::Reduce || n->op == Op::Scan || n->op == Op::Buffer;
    if (!inside && makes && is_float(n->dtype)) out.push_back(n);
  }
  return out;
}

/// What an operation is given; bodies have no values of their own.
std::span<const NodeRef> inputs_of(NodeRef n) {
  if (n->op == Op::Loop) return n->src().first(n->nsrc - loop_parts(n).values.size());
  return n->src().first(evaluated_sources(n));
}

std::string place_text(int64_t flat, NodeRef n) {
  if (!is_static(n)) return std::to_string(flat);
  std::string text;
  for (size_t a = n->rank(); a-- > 0; flat /= std::max<int64_t>(1, n->dim(a)->vmin))
    text = strformat("{}{}{}", flat % n->dim(a)->vmin, text.empty() ? "" : ", ", text);
  return strformat("({})", text);
}

/// What made it: a call is the function that was called.
std::string_view operation(NodeRef n) {
  if (n->op == Op::Buffer) return "data";
  return n->op == Op::Call ? n->text() : info(n->op).mnemonic;
}

}  // namespace

NanCheck::NanCheck(Context& context, std::span<const std::shared_ptr<Storage>> storages)
    : context_(context) {
  for (const auto& s : storages) {
    NodeRef value = StorageAccess::peek(*s);
    if (s->lost() || value->op == Op::Buffer || !is_float(value->dtype)) continue;
    storages_.push_back(s);
    values_.push_back(value);
    tensor_graph(context).retain(value);
  }
}

NanCheck::~NanCheck() {
  for (NodeRef n : values_) tensor_graph(context_).release(n);
}

void NanCheck::run(Realize realize) {
  const bool any = std::ranges::any_of(
      storages_, [](const auto& s) { return s->realized() && Statistics(*s).nans > 0; });
  if (!any) return;
  const std::vector<NodeRef> all = operations(values_);
  for (size_t begin = 0; begin < all.size(); begin += kAtOnce) {
    const std::span<const NodeRef> some(all.data() + begin, std::min(kAtOnce, all.size() - begin));
    std::vector<std::shared_ptr<Storage>> made;
    for (NodeRef n : some) made.push_back(std::make_shared<Storage>(context_, n));
    realize(made);
    for (size_t i = 0; i < some.size(); ++i)
      if (Statistics(*made[i]).nans > 0) report(some[i], *made[i], realize);
  }
}

void NanCheck::report(NodeRef n, const Storage& result, Realize realize) const {
  const Statistics of_result(result);
  const CallSite site = context_.get<Provenance>().find(n);
  std::string inputs;
  NodeRef of = n->op == Op::Get ? n->src(0) : n;
  for (NodeRef s : inputs_of(of)) {
    if (!is_float(s->dtype)) continue;
    const std::shared_ptr<Storage> input = std::make_shared<Storage>(context_, s);
    realize({&input, 1});
    append_format(inputs, "{}{} {} {}", inputs.empty() ? "; its inputs: " : "; ", name(s->dtype),
                  shape_text(s->shape), Statistics(*input).text());
  }
  fail("nan", "{} gave NaN: {} of {} elements of shape {}, the first at {}{}{}", operation(of),
       of_result.nans, of_result.count, shape_text(n->shape), place_text(of_result.first_nan, n),
       site ? strformat(", made at {}", short_text(site)) : "", inputs);
}

}  // namespace weft
