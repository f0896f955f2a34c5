#include "weft/trust/guilty_pass.h"

#include <algorithm>
#include <cmath>

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/graph/parse.h"
#include "weft/run/explain_passes.h"
#include "weft/run/passes.h"
#include "weft/trust/kernel_eval.h"
#include "weft/trust/random.h"

namespace weft::trust {
namespace {

constexpr double kMostSteps = 1e6;  // of evaluating a kernel
constexpr int64_t kMostElements = 1 << 16;

/// How often stores happen, times what each takes.
double steps_of(NodeRef sink) {
  double iterations = 1, steps = 0;
  for (NodeRef n : Toposort(sink))
    if (n->op == Op::Range) iterations *= static_cast<double>(std::max<int64_t>(n->vmax + 1, 1));
  for (NodeRef store : sink->src()) steps += evaluation_steps(store);
  return iterations * steps;
}

/// By slot, the same for the kernel before and after a pass.
Buffers made_up(NodeRef sink, const Variables& variables) {
  Buffers buffers;
  for (NodeRef n : Toposort(sink)) {
    if (n->op != Op::Param) continue;
    const auto slot = static_cast<size_t>(param_slot(n));
    if (buffers.size() <= slot) buffers.resize(slot + 1);
    Random random(slot);
    const int64_t size = std::min(index_value(n->src(0), variables), kMostElements);
    for (int64_t i = 0; i < size; ++i)
      buffers[slot].push_back(
          Value::of(n->dtype, random.between(is_unsigned(n->dtype) ? 0 : -4, 4)));
  }
  return buffers;
}

bool same(const Value& a, const Value& b) {
  if (a == b || !is_float(a.dtype())) return a == b;
  const double x = a.as_double(), y = b.as_double();
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) == std::isnan(y);
  const double allowed = std::ldexp(1, -float_digits(a.dtype()) / 2);
  return x == y || std::fabs(x - y) <= allowed * std::max(std::fabs(x), std::fabs(y));
}

bool same(const Buffers& a, const Buffers& b) {
  for (size_t slot = 0; slot < std::min(a.size(), b.size()); ++slot)
    if (!a[slot].empty() && !b[slot].empty() &&
        !std::ranges::equal(a[slot], b[slot],
                            [](const Value& x, const Value& y) { return same(x, y); }))
      return false;
  return true;
}

/// What the text of a kernel means; nothing where it is no graph, or too much work.
std::optional<Buffers> meaning(const std::string& text, const Variables& variables) {
  try {
    Graph g;
    NodeRef sink = parse_graph(g, text).front();
    if (sink->op != Op::Sink || steps_of(sink) > kMostSteps) return std::nullopt;
    return run_kernel(sink, made_up(sink, variables), variables);
  } catch (const Error&) {
    return std::nullopt;
  }
}

bool changes_meaning(const PassRecord& p, const Variables& variables) {
  const std::string_view stage(p.pass);
  if (!p.changed() || !(stage.starts_with("optimize.") || stage.starts_with("lower.")))
    return false;
  const std::optional<Buffers> before = meaning(p.text_before, variables);
  const std::optional<Buffers> after = before ? meaning(p.text_after, variables) : std::nullopt;
  return after && !same(*before, *after);
}

/// Wrong, with the pass as its code; Passed where there is none.
Outcome first_guilty(const RandomGraph& program, const Options& options) {
  try {
    Context context(options);
    for (const PassRecord& p : explain_passes(context, program.roots, true))
      if (changes_meaning(p, program.bindings[0].variables))
        return {Outcome::Kind::Wrong, p.pass, p.subject};
  } catch (const Error&) {  // it does not compile: what it says is all that is known
  }
  return {};
}

}  // namespace

std::optional<Culprit> guilty_pass(const RandomGraph& program, const Options& options,
                                   const Isolation& isolation) {
  const Outcome found = run_apart([&] { return first_guilty(program, options); }, isolation);
  if (found.kind != Outcome::Kind::Wrong) return std::nullopt;
  for (const PassRow& row : all_passes())
    if (row.name == found.code)
      return Culprit{Culprit::Kind::Pass, row.name, "", row.after,
                     strformat("what kernel {} computes is something else after it", found.what)};
  return std::nullopt;
}

}  // namespace weft::trust
