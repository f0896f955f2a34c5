#include "weft/trust/reduce.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>

#include "weft/base/error.h"
#include "weft/graph/tuple.h"
#include "weft/graph/verify.h"
#include "weft/trust/program.h"
#include "weft/trust/shrink.h"

namespace weft::trust {
namespace {

using Clock = std::chrono::steady_clock;

/// The part of `from` that lies within `extents`, 0 beyond it.
eval::Array cut_to(const eval::Array& from, const eval::Extents& extents) {
  eval::Array out(from.dtype(), extents);
  for (int64_t i = 0; i < out.count(); ++i) {
    int64_t rest = i, at = 0, stride = 1;
    bool inside = true;
    for (size_t axis = extents.size(); axis-- > 0;) {
      const int64_t position = rest % extents[axis];
      rest /= extents[axis];
      inside &= position < from.extents()[axis];
      at += position * stride;
      stride *= from.extents()[axis];
    }
    if (inside) out.set(i, from.at(at));
  }
  return out;
}

class Reducer {
 public:
  Reducer(Graph& g, const RandomGraph& program, const Fails& fails, const ReduceLimits& limits)
      : g_(g), best_(program), fails_(fails), limits_(limits), start_(Clock::now()) {}

  RandomGraph run() {
    one_binding();
    no_variables();
    best_ = compacted(g_, best_);
    do {
      best_ = compacted(g_, shrink(g_, best_, [this](const RandomGraph& x) { return fails(x); }));
    } while (smaller_sizes());
    while (simpler_constants() || simpler_elements()) continue;
    return std::move(best_);
  }

 private:
  bool fails(const RandomGraph& candidate) {
    const std::chrono::duration<double> spent = Clock::now() - start_;
    if (++runs_ > limits_.runs || spent.count() > limits_.seconds) return false;
    try {
      return fails_(candidate);
    } catch (const Error&) {  // the oracle refuses it
      return false;
    }
  }
  bool accept(RandomGraph candidate) {
    if (find_tensor_problem(candidate.roots) || !fails(candidate)) return false;
    best_ = std::move(candidate);
    return true;
  }

  void one_binding() {
    for (size_t i = 0; best_.bindings.size() > 1 && i < best_.bindings.size(); ++i)
      if (accept({best_.roots, {best_.bindings[i]}})) return;
  }

  /// Each variable becomes the number that it is.
  void no_variables() {
    if (best_.bindings.size() != 1) return;
    NodeMap<NodeRef> numbers;
    for (NodeRef n : Toposort(best_.roots))
      if (n->op == Op::Variable)
        numbers[n] = g_.index(best_.bindings[0].variables.at(std::string(n->text())));
    if (numbers.size() == 0) return;
    if (auto roots = replaced(g_, best_.roots, numbers)) accept({*roots, best_.bindings});
  }

  // ---- sizes

  /// Every size of one value becomes a smaller one, wherever it stands.
  bool smaller_sizes() {
    std::set<int64_t, std::greater<>> values;
    for (NodeRef n : Toposort(best_.roots))
      if (n->op == Op::Const && n->dtype == DType::Index && n->vmin > 1) values.insert(n->vmin);
    bool any = false;
    for (int64_t from : values)
      for (int64_t to : {int64_t{1}, int64_t{2}, from / 2, from - 1})
        if (to < from && with_size(from, to)) {
          any = true;
          break;
        }
    return any;
  }
  bool with_size(int64_t from, int64_t to) {
    NodeMap<NodeRef> images;
    images[g_.index(from)] = g_.index(to);
    auto roots = replaced(g_, best_.roots, images);
    if (!roots || find_tensor_problem(*roots)) return false;
    RandomGraph candidate{std::move(*roots), best_.bindings};
    return fit_inputs(candidate) && accept(std::move(candidate));
  }
  /// Params have other sizes now; what they hold is cut.
  static bool fit_inputs(RandomGraph& candidate) {
    for (NodeRef p : Toposort(candidate.roots)) {
      if (p->op != Op::Param || is_inner_param(p)) continue;
      for (eval::Inputs& binding : candidate.bindings) {
        eval::Extents extents;
        for (NodeRef d : p->shape->span())
          extents.push_back(eval::evaluate(d, {{}, {}, binding.variables}).at(0).as_int());
        if (std::ranges::any_of(extents, [](int64_t d) { return d < 0; })) return false;
        eval::Array& values = binding.params[static_cast<size_t>(param_slot(p))];
        values = cut_to(values, extents);
      }
    }
    return true;
  }

  // ---- numbers

  static std::vector<Value> simpler_than(Value v) {
    std::vector<Value> out;
    for (int64_t simple : {0, 1, 2, -1}) {
      const Value s = Value::of(v.dtype(), simple);
      if (s == v) break;
      if (simple >= 0 || s.as_double() < 0) out.push_back(s);
    }
    return out;
  }

  bool simpler_constants() {
    const Toposort nodes(best_.roots);
    for (NodeRef n : nodes.nodes()) {
      if (n->op != Op::Const || n->dtype == DType::Index) continue;
      for (Value v : simpler_than(const_value(n))) {
        NodeMap<NodeRef> images;
        images[n] = g_.constant(v);
        auto roots = replaced(g_, best_.roots, images);
        if (roots && accept({std::move(*roots), best_.bindings})) return true;
      }
    }
    return false;
  }

  /// All of a param at once; then, where there are few, one after the other.
  bool simpler_elements() {
    bool any = false;
    for (size_t slot = 0; slot < best_.bindings[0].params.size(); ++slot) {
      const int64_t count = best_.bindings[0].params[slot].count();
      if (simpler_element(slot, 0, count)) any = true;
      for (int64_t i = 0; count <= kFewElements && i < count; ++i)
        any |= simpler_element(slot, i, 1);
    }
    return any;
  }
  bool simpler_element(size_t slot, int64_t first, int64_t count) {
    if (count == 0) return false;
    for (Value v : simpler_than(best_.bindings[0].params[slot].at(first))) {
      RandomGraph candidate = best_;
      eval::Array& values = candidate.bindings[0].params[slot];
      for (int64_t i = 0; i < count; ++i) values.set(first + i, v);
      if (values != best_.bindings[0].params[slot] && accept(std::move(candidate))) return true;
    }
    return false;
  }

  static constexpr int64_t kFewElements = 64;

  Graph& g_;
  RandomGraph best_;
  const Fails& fails_;
  const ReduceLimits limits_;
  const Clock::time_point start_;
  int64_t runs_ = 0;
};

}  // namespace

RandomGraph reduce(Graph& graph, const RandomGraph& program, const Fails& fails,
                   const ReduceLimits& limits) {
  return Reducer(graph, program, fails, limits).run();
}

}  // namespace weft::trust
