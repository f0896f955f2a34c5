#include "weft/trust/outcome.h"

#include <algorithm>
#include <cmath>

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/device/device.h"
#include "weft/eval/evaluate.h"
#include "weft/run/realize.h"
#include "weft/target/target.h"
#include "weft/trust/captured_run.h"
#include "weft/trust/checked_run.h"
#include "weft/trust/random_storages.h"

namespace weft::trust {
namespace {

bool is_approximate(NodeRef n) { return is_alu(n->op) && has_trait(n->op, kApproximate); }

}  // namespace

constexpr std::string_view kNoMachine = "CHECK:";

std::optional<Target> target_without_machine(Context& context, std::string_view device) {
  if (!device.starts_with(kNoMachine)) return {};
  std::string name(device.substr(kNoMachine.size()));
  std::ranges::transform(name, name.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  });
  return make_target(name, context);
}

bool is_exact(const RandomGraph& program) {
  std::vector<NodeRef> terms;
  for (NodeRef n : Toposort(program.roots)) {
    if (is_approximate(n)) return false;
    const bool folds = n->op == Op::Reduce || n->op == Op::Scan;
    if (folds && is_float(n->dtype)) terms.push_back(n->src(0));
    if (n->op == Op::Scatter && is_float(n->dtype)) terms.push_back(n->src(2));
    if (n->op == Op::Repeat) return false;
  }
  for (const eval::Array& values : program.evaluate(terms)) {
    double most = 0;
    for (double v : values.doubles()) {
      if (v != std::trunc(v)) return false;
      most = std::max(most, std::fabs(v));
    }
    const double exact_up_to = std::ldexp(1, float_digits(values.dtype()));
    if (!(most * static_cast<double>(values.count()) <= exact_up_to)) return false;
  }
  return true;
}

namespace {

/// Half of the digits, of the largest number around.
double tolerance(const eval::Array& expected) {
  double largest = 0;
  for (double v : expected.doubles())
    if (std::isfinite(v)) largest = std::max(largest, std::fabs(v));
  return largest * std::ldexp(1, -float_digits(expected.dtype()) / 2);
}

bool near(double got, double expected, double allowed) {
  if (std::isnan(expected) || std::isnan(got)) return std::isnan(expected) == std::isnan(got);
  return got == expected || std::fabs(got - expected) <= allowed;
}

std::string difference(size_t root, const eval::Array& got, const eval::Array& expected,
                       bool exact) {
  if (got == expected) return {};
  const bool loosely = !exact && is_float(expected.dtype());
  const double allowed = loosely ? tolerance(expected) : 0;
  int64_t wrong = 0, first = 0;
  const auto one = [](const eval::Array& a, int64_t i) { return eval::Array::scalar(a.at(i)); };
  for (int64_t i = expected.count(); i-- > 0;) {
    const bool same = loosely ? near(got.at(i).as_double(), expected.at(i).as_double(), allowed)
                              : one(got, i) == one(expected, i);
    if (same) continue;
    ++wrong;
    first = i;
  }
  if (wrong == 0) return {};
  return strformat("value {}, element {}: got {}, expected {} ({} of {} differ)", root, first,
                   one(got, first).text(), one(expected, first).text(), wrong, expected.count());
}

std::vector<eval::Array> realized(Context& context, const RandomGraph& program,
                                  const eval::Inputs& binding) {
  const auto storages = storages_of(context, program, binding);
  realize(context, storages);
  std::vector<eval::Array> out;
  for (const auto& s : storages) out.push_back(array_of(*s));
  return out;
}

std::string first_difference(std::span<const eval::Array> got,
                             std::span<const eval::Array> expected, bool exact) {
  for (size_t i = 0; i < got.size(); ++i)
    if (std::string d = difference(i, got[i], expected[i], exact); !d.empty()) return d;
  return {};
}

Target target_of(Context& context) {
  if (auto target = target_without_machine(context, context.options().dev)) return *target;
  return context.get<DeviceTable>().default_device().target();
}

/// Instruction by instruction before the machine does it: what goes astray in memory is an error
/// here, and anything there.
std::string problem(Context& context, const RandomGraph& program, const eval::Inputs& binding,
                    bool exact) {
  const std::vector<eval::Array> expected = eval::evaluate(program.roots, binding);
  const Target target = target_of(context);
  const CheckedValues checked = checked_run(context, target, program, binding);
  if (!checked.unknown)
    if (std::string d = first_difference(checked.values, expected, exact); !d.empty()) return d;
  if (context.options().dev.starts_with(kNoMachine)) return {};
  return first_difference(realized(context, program, binding), expected, exact);
}

/// What a captured function gives otherwise than the oracle; empty where nothing.
std::string problem_when_captured(Context& context, const RandomGraph& program, bool exact) {
  const std::string& device = context.options().dev;
  if (!context.options().jit || device.starts_with(kNoMachine)) return {};
  const CapturedValues captured = captured_run(context, program);
  for (size_t i = 0; i < captured.calls.size(); ++i) {
    const std::vector<eval::Array> expected =
        eval::evaluate(program.roots, program.bindings[captured.bindings[i]]);
    if (std::string d = first_difference(captured.calls[i], expected, exact); !d.empty())
      return strformat("{} {}: {}", i == 0 ? "captured, call" : "replayed, call", i, d);
  }
  return {};
}

}  // namespace

std::string Outcome::text() const {
  switch (kind) {
    case Kind::Passed: return "passed";
    case Kind::Wrong: return "wrong: " + what;
    case Kind::Error: return "error: " + what;
    case Kind::Crash: return strformat("crash: signal {}", code);
    case Kind::Hang: return "hang: " + what;
  }
  return {};
}

Outcome run_here(const RandomGraph& program, const Options& options) {
  // The oracle first: what it refuses is no program.
  const bool exact = is_exact(program);
  try {
    Context context(options);
    const ContextScope scope(context);
    for (const eval::Inputs& binding : program.bindings)
      if (std::string d = problem(context, program, binding, exact); !d.empty())
        return {Outcome::Kind::Wrong, {}, std::move(d)};
    if (std::string d = problem_when_captured(context, program, exact); !d.empty())
      return {Outcome::Kind::Wrong, {}, std::move(d)};
  } catch (const Error& error) {
    return {Outcome::Kind::Error, error.code(), error.what()};
  }
  return {};
}

Outcome run_program(const RandomGraph& program, const Options& options,
                    const Isolation& isolation) {
  return run_apart([&] { return run_here(program, options); }, isolation);
}

}  // namespace weft::trust
