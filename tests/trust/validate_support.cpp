#include "tests/trust/validate_support.h"

#include "weft/base/format.h"

namespace weft::test {

std::string Validated::text() const {
  constexpr const char* kVerdicts[] = {"proved", "refuted", "unknown"};
  return strformat("{} of {}: {}{}{}", step, subject, kVerdicts[static_cast<size_t>(verdict)],
                   why.empty() ? "" : ": ", why);
}

}  // namespace weft::test

#if __has_include(<z3++.h>) && defined(WEFT_HAVE_Z3)
#include <algorithm>
#include <cmath>

#include "tests/trust/term_runs_support.h"
#include "weft/base/error.h"
#include "weft/base/function_ref.h"
#include "weft/graph/node_map.h"
#include "weft/lower/lower.h"
#include "weft/optimize/optimize.h"
#include "weft/rewrite/pass.h"
#include "weft/schedule/schedule.h"
#include "weft/trust/random.h"

namespace weft::test {
namespace {

using Verdict = Validated::Verdict;

constexpr uint64_t kSamples = 8;
constexpr int64_t kMostElements = 512;

/// Something that computes memory from memory.
using Run = std::function<TermMemory(TermAlgebra&, const TermMemory&, Steps&)>;

/// dtype and number of elements of each param.
struct MemorySpec {
  DType dtype = DType::Void;
  int64_t count = 0;
};
std::vector<MemorySpec> params_of(std::span<const NodeRef> roots, const Variables& variables) {
  std::vector<MemorySpec> out;
  for (NodeRef n : Toposort(roots)) {
    if (n->op != Op::Param) continue;
    const auto slot = static_cast<size_t>(param_slot(n));
    if (out.size() <= slot) out.resize(slot + 1);
    int64_t count = 1;
    for (NodeRef d : n->rank() == 0 ? n->src() : n->shape->span())
      count *= trust::index_value(d, variables);
    if (count > kMostElements) throw Unsupported{"memory of many elements"};
    out[slot] = {n->dtype, count};
  }
  return out;
}

Value sample(DType dtype, Random& random) {
  if (is_float(dtype)) return Value::of(dtype, static_cast<double>(random.between(-9, 9)) / 2);
  const uint64_t any =
      random.chance(50) ? static_cast<uint64_t>(random.between(-9, 9)) : random.next();
  return is_bool(dtype) ? Value::boolean(any & 1) : Value::of(dtype, any);
}

bool near(const Value& a, const Value& b) {
  if (a == b || !is_float(a.dtype())) return a == b;
  const double x = a.as_double(), y = b.as_double();
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) == std::isnan(y);
  const double allowed = std::ldexp(1, -float_digits(a.dtype()) / 2);
  return x == y || std::fabs(x - y) <= allowed * std::max({std::fabs(x), std::fabs(y), 1.0});
}

/// Compares two runs over the same memory.
class Comparison {
 public:
  Comparison(const Run& before, const Run& after, std::span<const MemorySpec> specs,
             const ValidateLimits& limits)
      : before_(before), after_(after), specs_(specs), limits_(limits), algebra_(c_) {}

  std::pair<Verdict, std::string> run() {
    for (size_t slot = 0; slot < specs_.size(); ++slot) {
      inputs_.emplace_back();
      for (int64_t i = 0; i < specs_[slot].count; ++i)
        inputs_[slot].push_back(
            algebra_.unknown(strformat("p{}[{}]", slot, i), specs_[slot].dtype));
    }
    const z3::check_result answer = ask(run(before_, inputs_), run(after_, inputs_));
    if (answer == z3::unsat) return {Verdict::Proved, {}};
    if (answer == z3::sat)
      if (std::string found = shown_by(from_model()); !found.empty())
        return {Verdict::Refuted, found};
    for (uint64_t seed = 0; seed < kSamples; ++seed)
      if (std::string found = shown_by(sampled(seed)); !found.empty())
        return {Verdict::Refuted, found};
    return {Verdict::Unknown, answer == z3::unknown ? "Z3 gave up" : "by what is known of floats"};
  }

 private:
  TermMemory run(const Run& what, const TermMemory& inputs) {
    Steps steps{limits_.steps};
    return what(algebra_, inputs, steps);
  }

  z3::check_result ask(const TermMemory& a, const TermMemory& b) {
    z3::expr_vector differences(c_);
    for (size_t slot = 0; slot < std::min(a.size(), b.size()); ++slot)
      for (size_t i = 0; i < std::min(a[slot].size(), b[slot].size()); ++i)
        if (!z3::eq(algebra_.expression(a[slot][i]), algebra_.expression(b[slot][i])))
          differences.push_back(algebra_.differ(a[slot][i], b[slot][i]));
    if (differences.empty()) return z3::unsat;
    z3::solver solver(c_);
    z3::params limits(c_);
    limits.set("rlimit", limits_.resources);
    solver.set(limits);
    solver.add(z3::mk_or(differences));
    const z3::check_result answer = solver.check();
    if (answer == z3::sat) model_ = solver.get_model();
    return answer;
  }

  TermMemory numbers(FunctionRef<Value(const Term&)> value_of) {
    TermMemory out;
    for (const std::vector<Term>& memory : inputs_) {
      out.emplace_back();
      for (const Term& t : memory) out.back().push_back({value_of(t)});
    }
    return out;
  }
  TermMemory from_model() {
    return numbers([this](const Term& t) {
      const z3::expr v = model_->eval(*t.unknown, true);
      if (is_bool(t.dtype)) return Value::boolean(v.is_true());
      const uint64_t bits = v.get_numeral_uint64();
      return is_index(t.dtype) ? Value::index(static_cast<int64_t>(bits))
                               : Value::load(t.dtype, &bits);
    });
  }
  TermMemory sampled(uint64_t seed) {
    Random random(seed);
    return numbers([&random](const Term& t) { return sample(t.dtype, random); });
  }

  /// Where both runs give other numbers for these; empty where they do not.
  std::string shown_by(const TermMemory& inputs) {
    const TermMemory a = run(before_, inputs), b = run(after_, inputs);
    for (size_t slot = 0; slot < std::min(a.size(), b.size()); ++slot)
      for (size_t i = 0; i < std::min(a[slot].size(), b[slot].size()); ++i)
        if (!near(a[slot][i].value, b[slot][i].value))
          return strformat("value {}[{}] is {} before and {} after, with {}", slot, i,
                           a[slot][i].value.text(), b[slot][i].value.text(), text(inputs));
    return {};
  }
  static std::string text(const TermMemory& inputs) {
    std::string out;
    for (size_t slot = 0; slot < inputs.size(); ++slot) {
      append_format(out, "{}p{} =", slot ? ", " : "", slot);
      for (const Term& t : std::span(inputs[slot]).first(std::min<size_t>(inputs[slot].size(), 8)))
        append_format(out, " {}", t.value.text());
    }
    return out;
  }

  const Run &before_, &after_;
  std::span<const MemorySpec> specs_;
  const ValidateLimits& limits_;
  z3::context c_;
  TermAlgebra algebra_;
  TermMemory inputs_;
  std::optional<z3::model> model_;
};

/// Follows what passes do to each thing they work on.
class Validator : public PassWatcher {
 public:
  Validator(const Variables& variables, const ValidateLimits& limits)
      : variables_(variables), limits_(limits) {}

  size_t begin(const char* pass, std::string_view subject, const StateParts* before) override {
    open_.emplace_back(pass, subject);
    if (subject != subject_) forget(subject);
    // Otherwise it is what the pass before left, or what that could not be compared with.
    if (before && can_run(*before) && !uses_groups(*before)) hold(*before);
    return open_.size() - 1;
  }
  void end(size_t at, uint64_t, std::span<const RewriteStep>, const StateParts& after) override {
    const auto [pass, subject] = open_.at(at);
    open_.resize(at);
    if (after.nodes == nodes_ || !held_ || !can_run(after)) return;
    compare(pass, subject, run_of(after));
    if (!uses_groups(after)) hold(after);
  }

  void compare(const std::string& step, const std::string& subject, const Run& after) {
    Validated out{step, subject, Verdict::Unknown, {}};
    try {
      std::tie(out.verdict, out.why) = Comparison(*held_, after, specs_, limits_).run();
    } catch (const Unsupported& beyond) {
      out.why = beyond.what;
    } catch (const z3::exception& error) {
      out.why = error.msg();
    }
    found.push_back(std::move(out));
  }
  void hold(Run run, std::vector<MemorySpec> specs) {
    held_ = std::move(run);
    specs_ = std::move(specs);
  }

  std::vector<Validated> found;

 private:
  void forget(std::string_view subject) {
    subject_ = subject;
    held_.reset();
    nodes_.clear();
  }

  static bool is_kernel(const StateParts& s) {
    return s.nodes.size() == 1 && s.nodes[0]->op == Op::Sink;
  }
  Run run_of(const StateParts& s) const {
    const Variables& variables = variables_;
    if (s.kind == StateParts::Kind::Program)
      return [program = *s.program, variables](TermAlgebra& a, const TermMemory& m, Steps& steps) {
        return run_program(a, program, m, variables, steps);
      };
    if (is_kernel(s))
      return [sink = s.nodes[0], variables](TermAlgebra& a, const TermMemory& m, Steps& steps) {
        return run_kernel(a, sink, m, variables, steps);
      };
    return [roots = s.nodes, variables](TermAlgebra& a, const TermMemory& m, Steps& steps) {
      return run_graph(a, roots, m, variables, steps);
    };
  }
  /// Kernels that go through local memory are compared when they are programs that say how large
  /// groups are.
  static bool can_run(const StateParts& s) {
    if (s.kind == StateParts::Kind::Program) return s.program->launch.grouped || !uses_groups(s);
    return s.kind == StateParts::Kind::Graph && !s.nodes.empty() && !uses_groups(s);
  }
  static bool uses_groups(const StateParts& s) {
    const auto of_groups = [](NodeRef n) {
      return n->op == Op::Local || n->op == Op::WorkId || n->op == Op::Barrier;
    };
    if (s.kind == StateParts::Kind::Program) return std::ranges::any_of(s.program->code, of_groups);
    const Toposort nodes(s.nodes);
    return std::any_of(nodes.begin(), nodes.end(), of_groups);
  }
  void hold(const StateParts& s) {
    if (s.kind == StateParts::Kind::Graph && s.nodes == nodes_) return;
    try {
      if (s.kind == StateParts::Kind::Graph) specs_ = params_of(s.nodes, variables_);
      held_ = run_of(s);
      nodes_ = s.nodes;
    } catch (const Unsupported&) {
      held_.reset();
    }
  }

  const Variables& variables_;
  const ValidateLimits& limits_;
  std::vector<std::pair<std::string, std::string>> open_;  // passes and their subjects
  std::string subject_;
  std::optional<Run> held_;
  std::vector<NodeRef> nodes_;  // of it, where it is a graph
  std::vector<MemorySpec> specs_;
};

/// The kernels of a schedule, one step after the other.
TermMemory run_schedule(const Schedule& schedule, const Variables& given, TermAlgebra& algebra,
                        const TermMemory& inputs, Steps& steps) {
  TermMemory buffers;
  for (const BufferSpec& b : schedule.buffers) {
    const auto count = static_cast<size_t>(trust::index_value(b.numel, given));
    if (b.input >= 0)
      buffers.push_back(inputs.at(static_cast<size_t>(b.input)));
    else
      buffers.emplace_back(count, Term{Value::of(b.dtype, 85)});  // nobody's
  }
  for (const ScheduleStep& step : schedule.steps) {
    const auto at = [&](size_t slot) -> std::vector<Term>& {
      return buffers.at(static_cast<size_t>(step.buffers.at(slot)));
    };
    if (step.kind == ScheduleStep::Kind::Copy) {
      at(1) = at(0);
      continue;
    }
    Variables variables = given;
    for (const ScheduleStep::Fixed& f : step.fixed) variables[f.variable] = f.value;
    TermMemory memory;
    for (size_t slot = 0; slot < step.buffers.size(); ++slot) memory.push_back(at(slot));
    NodeRef sink = schedule.kernels.at(static_cast<size_t>(step.kernel)).sink;
    TermMemory after = run_kernel(algebra, sink, memory, variables, steps);
    for (NodeRef store : sink->src()) {
      const auto slot = static_cast<size_t>(param_slot(store->src(0)));
      at(slot) = after.at(slot);
    }
  }
  TermMemory out;
  for (int b : schedule.outputs) out.push_back(buffers.at(static_cast<size_t>(b)));
  return out;
}

}  // namespace

bool can_validate() { return true; }

std::vector<Validated> validate(std::span<const NodeRef> roots, const Variables& variables,
                                const Target& target, const ValidateLimits& limits) {
  Validator validator(variables, limits);
  const PassTrace trace(false, false, &validator);
  std::vector<ScheduleOutput> outputs;
  for (NodeRef n : roots) outputs.push_back({n});
  const Schedule schedule = make_schedule(outputs, target);
  const std::vector<NodeRef> given(roots.begin(), roots.end());
  validator.hold([&](TermAlgebra& a, const TermMemory& m,
                     Steps& steps) { return run_graph(a, given, m, variables, steps); },
                 params_of(roots, variables));
  validator.compare("schedule", "all kernels",
                    [&](TermAlgebra& a, const TermMemory& m, Steps& steps) {
                      return run_schedule(schedule, variables, a, m, steps);
                    });
  for (const Kernel& k : schedule.kernels) lower_kernel(optimize_kernel(k, target, {}), target);
  return std::move(validator.found);
}

}  // namespace weft::test

#else

namespace weft::test {
bool can_validate() { return false; }
std::vector<Validated> validate(std::span<const NodeRef>, const trust::Variables&, const Target&,
                                const ValidateLimits&) {
  return {};
}
}  // namespace weft::test

#endif
