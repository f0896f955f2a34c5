// Kernels that differ only in numbers they compute with, as one: by the scales of quantised layers,
// say. What differs becomes a variable with a value in every step.
#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "weft/base/format.h"
#include "weft/base/hash.h"
#include "weft/graph/infer.h"
#include "weft/rewrite/driver.h"
#include "weft/schedule/build.h"

namespace weft {
namespace {

std::string number_name(size_t i) { return strformat("@number{}", i); }
bool is_number(NodeRef n) { return n->op == Op::Variable && n->text().starts_with("@number"); }

/// Where an operand is a number, the code is often another one.
bool asks_for_number(Op op) {
  return op == Op::Div || op == Op::IDiv || op == Op::Mod || op == Op::Rem || op == Op::Shl ||
         op == Op::Shr;
}

/// Numbers that stand for something: masks, identities.
bool is_special(const Value& v) {
  const double x = v.as_double();
  return x == 0 || std::abs(x) == 1 || !std::isfinite(x);
}

/// Numbers of a kernel that others may have in another size, and what it looks like without them.
class Outline {
 public:
  explicit Outline(NodeRef sink) : sink_(sink), order_(sink) {
    for (NodeRef n : order_)
      if (asks_for_number(n->op))
        for (NodeRef s : n->src()) kept_[s] = true;
    for (NodeRef n : order_) varies_ |= may_vary(n);
    varies_ = varies_ && std::ranges::none_of(order_, is_number);  // of a loop's own
    if (!varies_) return;
    hashes_ = nameless_hashes(order_.nodes(), [&](NodeRef n) {
      return is_open(n) ? std::span<const int64_t>() : n->ints();
    });
  }

  bool varies() const { return varies_; }
  uint64_t hash() const { return hashes_.at(sink_); }

  /// The kernel with variables for numbers, and its params numbered anew.
  struct Lifted {
    NodeRef sink;
    std::vector<NodeRef> numbers, variables;  ///< constants, and what stands for each
    std::vector<int> slots;                   ///< what each param was called before
  };
  Lifted lift(Graph& g) const {
    Lifted out;
    NodeMap<NodeRef> replace;
    for (NodeRef n : leaves_met(sink_, hashes_, [&](NodeRef n) { return is_open(n); })) {
      if (n->op == Op::Param) {
        replace[n] = g.param(static_cast<int64_t>(out.slots.size()), n->dtype, n->src());
        out.slots.push_back(static_cast<int>(param_slot(n)));
      } else {
        replace[n] = variable_for(g, n->dtype, out.numbers.size());
        out.numbers.push_back(n);
        out.variables.push_back(replace[n]);
      }
    }
    out.sink = substitute(g, sink_, replace);
    return out;
  }

 private:
  bool may_vary(NodeRef n) const {
    if (n->op != Op::Const || is_index(n->dtype) || is_bool(n->dtype) || kept_.contains(n))
      return false;
    const bool fits = n->dtype == DType::F32 || (is_int(n->dtype) && bits(n->dtype) <= 32);
    return fits && !is_special(const_value(n));
  }

  bool is_open(NodeRef n) const { return n->op == Op::Param || may_vary(n); }

  static NodeRef variable_for(Graph& g, DType dtype, size_t number) {
    const DType whole = dtype == DType::F32 ? DType::I32 : dtype;
    const auto [least, most] = dtype_bounds(whole);
    NodeRef n = g.cast(g.variable(number_name(number), least, most), whole);
    return whole == dtype ? n : g.make(Op::Bitcast, dtype, {n});
  }

  NodeRef sink_;
  Toposort order_;
  NodeMap<bool> kept_;  // numbers that stay
  NodeMap<uint64_t> hashes_;
  bool varies_ = false;
};

/// Kernels that are one but for numbers.
struct Family {
  std::vector<size_t> kernels;
  std::vector<Outline::Lifted> lifted;

  bool differs(size_t number) const {
    return std::ranges::any_of(lifted, [&](const Outline::Lifted& l) {
      return l.numbers[number] != lifted[0].numbers[number];
    });
  }
  /// With numbers where all have the same.
  NodeRef sink(Graph& g) const {
    NodeMap<NodeRef> same;
    for (size_t i = 0; i < lifted[0].numbers.size(); ++i)
      if (!differs(i)) same[lifted[0].variables[i]] = lifted[0].numbers[i];
    return substitute(g, lifted[0].sink, same);
  }
};

/// Of two kernels or more.
std::vector<Family> families(Graph& g, std::span<const Kernel> kernels) {
  std::map<uint64_t, std::vector<size_t>> alike;
  std::vector<std::unique_ptr<const Outline>> outlines;
  for (size_t k = 0; k < kernels.size(); ++k) {
    outlines.push_back(std::make_unique<const Outline>(kernels[k].sink));
    if (outlines[k]->varies()) alike[outlines[k]->hash()].push_back(k);
  }
  std::vector<Family> found;
  for (const auto& [hash, of] : alike) {
    if (of.size() < 2) continue;
    NodeMap<Family> by_sink;
    std::vector<NodeRef> order;
    for (const size_t k : of) {
      Outline::Lifted lifted = outlines[k]->lift(g);
      Family& family = by_sink[lifted.sink];
      if (family.kernels.empty()) order.push_back(lifted.sink);
      family.kernels.push_back(k);
      family.lifted.push_back(std::move(lifted));
    }
    for (NodeRef sink : order)
      if (by_sink.at(sink).kernels.size() > 1) found.push_back(std::move(by_sink[sink]));
  }
  return found;
}

int64_t as_variable(NodeRef number) {
  const Value v = const_value(number);
  if (number->dtype != DType::F32) return v.as_int();
  return std::bit_cast<int32_t>(static_cast<float>(v.as_double()));
}

/// How the steps of one kernel run that of its family.
struct Member {
  int kernel = -1;  // of the new ones
  const Outline::Lifted* lifted = nullptr;
  std::vector<ScheduleStep::Fixed> fixed;
};

}  // namespace

void share_kernels(Graph& g, Schedule& s) {
  const std::vector<Family> all = families(g, s.kernels);
  if (all.empty()) return;
  std::vector<Member> members(s.kernels.size());
  std::vector<Kernel> kept;
  for (const Family& family : all) {
    Kernel kernel = s.kernels[family.kernels[0]];
    kernel.sink = family.sink(g);
    for (size_t m = 0; m < family.kernels.size(); ++m) {
      Member& member = members[family.kernels[m]];
      member.kernel = static_cast<int>(kept.size());
      member.lifted = &family.lifted[m];
      for (size_t i = 0; i < member.lifted->numbers.size(); ++i)
        if (family.differs(i))
          member.fixed.push_back({number_name(i), as_variable(member.lifted->numbers[i])});
    }
    kept.push_back(std::move(kernel));
  }
  for (size_t k = 0; k < members.size(); ++k) {
    if (members[k].kernel >= 0) continue;
    members[k].kernel = static_cast<int>(kept.size());
    kept.push_back(std::move(s.kernels[k]));
  }
  s.kernels = std::move(kept);
  for (ScheduleStep& step : s.steps) {
    if (step.kernel < 0) continue;
    const Member& member = members[static_cast<size_t>(step.kernel)];
    step.kernel = member.kernel;
    if (!member.lifted) continue;
    const std::vector<int> before = std::exchange(step.buffers, {});
    for (const int slot : member.lifted->slots)
      step.buffers.push_back(before[static_cast<size_t>(slot)]);
    step.fixed.insert(step.fixed.end(), member.fixed.begin(), member.fixed.end());
  }
}

}  // namespace weft
