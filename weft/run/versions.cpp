#include "weft/run/versions.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "weft/base/error.h"
#include "weft/rewrite/driver.h"

namespace weft {
namespace {

// Compiling takes twice as long, and thrice: of a program of so many nodes that is some tenths of a
// second, and what short lengths lose in a larger one is little beside all it does.
constexpr size_t kMostNodes = 400;
// Vectors that lengths of the second version do not fill.
constexpr int64_t kVectors = 8;
// All lengths are at least so many times those that have a version.
constexpr int64_t kTimes = 2;

/// The one variable that sizes depend on; null where there is none or several.
NodeRef only_length(const Toposort& nodes) {
  std::vector<NodeRef> sizes;
  for (NodeRef n : nodes)
    if (n->shape && !is_static(n))
      for (NodeRef d : n->shape->span())
        if (d->op != Op::Const) sizes.push_back(d);
  NodeRef found = nullptr;
  for (NodeRef n : Toposort(sizes)) {
    if (n->op != Op::Variable || n == found) continue;
    if (found) return nullptr;
    found = n;
  }
  return found;
}

/// The same where `variable` lies in another range.
Version version_for(Graph& g, const NormalForm& form, const WithoutCalls& given, NodeRef variable,
                    int64_t least, int64_t most) {
  Version out{{}, {}, std::string(variable->text()), least, most};
  NodeRef narrow = g.variable(variable->text(), least, most, variable->int_arg(2));
  const auto image = [&](NodeRef n, std::span<const NodeRef> src) {
    if (n == variable) return narrow;
    NodeRef made = g.with_sources(n, src);
    if (made == n) return made;
    const auto of = given.origins.find(n->hash);
    out.origins.try_emplace(made->hash, of == given.origins.end() ? n->hash : of->second);
    return made;
  };
  out.form.root = rebuild(g.intern({Op::Sink, DType::Void, given.values}), image);
  out.form.values.assign(out.form.root->src());
  out.form.variables = form.variables;
  return out;
}

}  // namespace

std::vector<Version> versions_of(Graph& g, const NormalForm& form, const Target& target,
                                 bool constants) {
  // Bits that all machines share do not depend on how long vectors are.
  if (form.variables.empty() || target.vector_bits == 0 || target.canonical) return {};
  const WithoutCalls given = without_calls(g, form);
  const Toposort nodes(given.values);
  NodeRef length = nodes.size() <= kMostNodes ? only_length(nodes) : nullptr;
  if (!length) return {};
  const int64_t longest = length->int_arg(1), multiple = length->int_arg(2);
  const int64_t vector = target.lanes(DType::F32);
  std::vector<Version> all;
  int64_t least = length->int_arg(0);
  const auto add = [&](int64_t most) {
    all.push_back(version_for(g, form, given, length, least, most));
    least = most + multiple;
  };
  const int64_t ends[] = {vector, kVectors * vector};
  for (const int64_t end : std::span(ends).first(constants ? 1 : 2))
    if (const int64_t most = (end - 1) / multiple * multiple;
        most >= least && kTimes * end <= longest)
      add(most);
  if (!all.empty()) add(longest);
  return all;
}

namespace {

/// Which steps compute the same in every call: of constant inputs, or of nothing.
std::vector<bool> steps_of_constants(const CompiledSchedule& s,
                                     const std::vector<bool>& constants) {
  std::vector<bool> changes(s.buffers.size()), out(s.steps.size(), !constants.empty());
  const auto is_constant = [&](int slot) { return constants[static_cast<size_t>(slot)]; };
  for (size_t b = 0; b < s.buffers.size() && !constants.empty(); ++b) {
    const CompiledBuffer& buffer = s.buffers[b];
    changes[b] = buffer.input >= 0 ? !is_constant(buffer.input)
                                   : buffer.output >= 0 || !buffer.numel.is_constant();
  }
  const auto may_differ = [&](const CompiledStep& step) {
    return std::ranges::any_of(step.variables, [](const auto& v) { return v.position >= 0; }) ||
           std::ranges::any_of(step.buffers,
                               [&](int b) { return changes[static_cast<size_t>(b)]; });
  };
  // Whoever else writes what a step writes counts, too.
  for (bool more = true; more;) {
    more = false;
    for (size_t i = 0; i < out.size(); ++i) {
      if (!out[i] || !may_differ(s.steps[i])) continue;
      out[i] = false, more = true;
      for (size_t slot = 0; slot < s.steps[i].buffers.size(); ++slot)
        if (s.steps[i].writes(slot)) changes[static_cast<size_t>(s.steps[i].buffers[slot])] = true;
    }
  }
  return out;
}

/// How many steps write each buffer.
std::vector<int> writers_of(const CompiledSchedule& s) {
  std::vector<int> out(s.buffers.size());
  for (const CompiledStep& step : s.steps)
    for (size_t slot = 0; slot < step.buffers.size(); ++slot)
      if (step.writes(slot)) ++out[static_cast<size_t>(step.buffers[slot])];
  return out;
}

/// Puts versions side by side, over the same inputs and outputs.
class Joiner {
 public:
  Joiner(Graph& g, const NormalForm& form, const std::vector<bool>& constants)
      : g_(g), constants_(constants) {
    for (NodeRef n : Toposort(form.values))
      if (n->op == Op::Param) inputs_[n->int_arg(0)] = n;
    outputs_.assign(form.values.begin(), form.values.end());
    for (const BoundVariable& v : form.variables) {
      out_.variables.push_back(v.name);
      variables_.push_back(g.variable(v.name, 0, 1));
    }
    out_.outputs.assign(outputs_.size(), -1);
  }

  void add(const Version& version, const CompiledSchedule& of) {
    std::vector<int> variables;
    for (const std::string& name : of.variables) variables.push_back(position_of(name));
    const Lengths lengths{position_of(version.variable), version.least, version.most};
    std::vector<int> buffers;
    for (const CompiledBuffer& b : of.buffers) {
      CompiledBuffer copy = b;
      if (b.intermediate()) copy.numel = b.numel.renumbered(variables), copy.lengths = lengths;
      buffers.push_back(place_of(std::move(copy)));
    }
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const int b = buffers[static_cast<size_t>(of.outputs[i])];
      WEFT_CHECK(out_.outputs[i] < 0 || out_.outputs[i] == b,
                 "output {} lies elsewhere for other lengths", i);
      out_.outputs[i] = b;
    }
    const std::vector<bool> of_constants = steps_of_constants(of, constants_);
    const std::vector<int> writers = writers_of(of);
    for (size_t i = 0; i < of.steps.size(); ++i) {
      CompiledStep step = of.steps[i];
      if (of_constants[i]) fits_ &= makes_values(step, writers);
      if (of_constants[i] && is_there(step, buffers)) continue;
      for (int& b : step.buffers) b = buffers[static_cast<size_t>(b)];
      for (CompiledStep::Variable& v : step.variables)
        if (v.position >= 0) v.position = variables[static_cast<size_t>(v.position)];
      step.lengths = lengths;
      if (of_constants[i]) for_all_lengths(step);
      if (step.loop >= 0) step.loop += out_.loops;
      out_.steps.push_back(std::move(step));
    }
    out_.loops += of.loops;
    joins_ = true;
  }
  /// Whether versions after the first make nothing else of constants, and all make it whole.
  bool fits() const { return fits_; }
  CompiledSchedule take() { return std::move(out_); }

 private:
  /// As a whole, and not round by round.
  static bool makes_values(const CompiledStep& step, const std::vector<int>& writers) {
    for (size_t slot = 0; slot < step.buffers.size(); ++slot)
      if (step.writes(slot) && writers[static_cast<size_t>(step.buffers[slot])] > 1) return false;
    return step.loop < 0 && step.round < 0;
  }

  /// Whether a step of a version before makes the same; then `buffers` say where that is.
  bool is_there(const CompiledStep& step, std::vector<int>& buffers) {
    const auto same = [&](size_t number) {
      const CompiledStep& known = out_.steps[number];
      if (known.kind != step.kind || known.kernel != step.kernel || known.device != step.device ||
          !std::ranges::equal(known.variables, step.variables, {}, &CompiledStep::Variable::fixed,
                              &CompiledStep::Variable::fixed))
        return false;
      for (size_t slot = 0; slot < step.buffers.size(); ++slot)
        if (!step.writes(slot) &&
            known.buffers[slot] != buffers[static_cast<size_t>(step.buffers[slot])])
          return false;
      return true;
    };
    const auto known = std::ranges::find_if(of_constants_, same);
    if (known == of_constants_.end()) return false;
    for (size_t slot = 0; slot < step.buffers.size(); ++slot)
      if (step.writes(slot))
        buffers[static_cast<size_t>(step.buffers[slot])] = out_.steps[*known].buffers[slot];
    return true;
  }
  /// What is made of nothing is small, or not kept.
  void for_all_lengths(CompiledStep& step) {
    const bool of_inputs = std::ranges::any_of(step.buffers, [&](int b) {
      return out_.buffers[static_cast<size_t>(b)].input >= 0 || of_inputs_.contains(b);
    });
    if (of_inputs) of_inputs_.insert(step.buffers.begin(), step.buffers.end());
    fits_ &= !joins_ || !of_inputs;
    of_constants_.push_back(out_.steps.size());
    step.lengths = {};
    for (const int b : step.buffers) out_.buffers[static_cast<size_t>(b)].lengths = {};
  }

  int position_of(const std::string& name) const {
    const auto at = std::ranges::find(out_.variables, name);
    WEFT_CHECK(at != out_.variables.end(), "a version depends on {}, and the program does not",
               name);
    return static_cast<int>(at - out_.variables.begin());
  }

  /// What goes in or out is the same for all versions, and as large as the program says.
  int place_of(CompiledBuffer buffer) {
    const auto same = std::ranges::find_if(out_.buffers, [&](const CompiledBuffer& b) {
      return buffer.input >= 0 ? b.input == buffer.input
                               : buffer.output >= 0 && b.output == buffer.output;
    });
    if (same != out_.buffers.end()) return static_cast<int>(same - out_.buffers.begin());
    if (!buffer.intermediate())
      buffer.numel = numel_of(buffer.input >= 0 ? inputs_.at(buffer.input)
                                                : outputs_[static_cast<size_t>(buffer.output)]);
    out_.buffers.push_back(std::move(buffer));
    return static_cast<int>(out_.buffers.size()) - 1;
  }
  IndexProgram numel_of(NodeRef value) const {
    NodeRef numel = g_.index(1);
    for (NodeRef d : value->shape->span()) numel = g_.mul(numel, d);
    return IndexProgram(numel, variables_);
  }

  Graph& g_;
  const std::vector<bool>& constants_;           // by input slot
  std::vector<size_t> of_constants_;             // steps that are there for all lengths
  std::unordered_set<int> of_inputs_;            // buffers that these read and write
  bool joins_ = false, fits_ = true;             // there is a version; and none makes more
  std::unordered_map<int64_t, NodeRef> inputs_;  // by slot
  std::vector<NodeRef> outputs_, variables_;
  CompiledSchedule out_;
};

}  // namespace

std::optional<CompiledSchedule> joined(Graph& g, const NormalForm& form,
                                       std::span<const Version> versions,
                                       std::span<const CompiledSchedule> compiled,
                                       const std::vector<bool>& constants) {
  if (versions.empty()) return std::nullopt;
  Joiner joiner(g, form, constants);
  for (size_t i = versions.size(); i-- > 0;) joiner.add(versions[i], compiled[i]);
  if (!joiner.fits()) return std::nullopt;
  return joiner.take();
}

}  // namespace weft
