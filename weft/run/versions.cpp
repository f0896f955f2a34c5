#include "weft/run/versions.h"

#include <algorithm>
#include <unordered_map>

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

std::vector<Version> versions_of(Graph& g, const NormalForm& form, const Target& target) {
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
  for (const int64_t end : {vector, kVectors * vector})
    if (const int64_t most = (end - 1) / multiple * multiple;
        most >= least && kTimes * end <= longest)
      add(most);
  if (!all.empty()) add(longest);
  return all;
}

namespace {

/// Puts versions side by side, over the same inputs and outputs.
class Joiner {
 public:
  Joiner(Graph& g, const NormalForm& form) : g_(g) {
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
    for (CompiledStep step : of.steps) {
      for (int& b : step.buffers) b = buffers[static_cast<size_t>(b)];
      for (CompiledStep::Variable& v : step.variables)
        if (v.position >= 0) v.position = variables[static_cast<size_t>(v.position)];
      step.lengths = lengths;
      if (step.loop >= 0) step.loop += out_.loops;
      out_.steps.push_back(std::move(step));
    }
    out_.loops += of.loops;
  }
  CompiledSchedule take() { return std::move(out_); }

 private:
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
  std::unordered_map<int64_t, NodeRef> inputs_;  // by slot
  std::vector<NodeRef> outputs_, variables_;
  CompiledSchedule out_;
};

}  // namespace

CompiledSchedule joined(Graph& g, const NormalForm& form, std::span<const Version> versions,
                        std::span<const CompiledSchedule> compiled) {
  Joiner joiner(g, form);
  for (size_t i = 0; i < versions.size(); ++i) joiner.add(versions[i], compiled[i]);
  return joiner.take();
}

}  // namespace weft
