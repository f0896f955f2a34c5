#include "weft/graph/index_value.h"

#include <algorithm>
#include <optional>

#include "weft/base/checked.h"
#include "weft/base/error.h"
#include "weft/base/small_vector.h"
#include "weft/graph/fold.h"
#include "weft/graph/node_map.h"
#include "weft/graph/print.h"

namespace weft {
namespace {

uint32_t position_of(NodeRef variable, std::span<const NodeRef> variables) {
  for (size_t i = 0; i < variables.size(); ++i)
    if (variables[i]->text() == variable->text()) return static_cast<uint32_t>(i);
  internal_error("graph", "a size depends on variable {}, which the schedule does not list",
                 variable->text());
}

/// The nodes an expression needs, each after its sources. A Bind needs nothing below it.
std::vector<NodeRef> expression_order(NodeRef root) {
  std::vector<NodeRef> order;
  NodeMap<bool> entered, done;
  std::vector<NodeRef> stack{root};
  while (!stack.empty()) {
    NodeRef n = stack.back();
    const bool leaf = n->op == Op::Bind;
    if (!entered.contains(n) && !leaf) {
      entered[n] = true;
      for (NodeRef s : n->src())
        if (!done.contains(s)) stack.push_back(s);
      continue;
    }
    stack.pop_back();
    if (done.contains(n)) continue;
    done[n] = true;
    order.push_back(n);
  }
  return order;
}

Value apply(Op op, DType dtype, std::span<const Value> operands) {
  const std::optional<Value> v = fold_constants(op, dtype, operands);
  if (!v) internal_error("graph", "{} cannot stand in a size", info(op).mnemonic);
  return *v;
}

}  // namespace

IndexProgram::IndexProgram(NodeRef root, std::span<const NodeRef> variables) {
  if (root->op == Op::Const) {
    constant_ = root->vmin;
    return;
  }
  NodeMap<uint32_t> place;
  for (NodeRef n : expression_order(root)) {
    Instruction i{n->op, n->dtype, {0, 0, 0}, 0};
    if (n->op == Op::Variable) {
      i.immediate = position_of(n, variables);
    } else if (n->op == Op::Bind) {
      i.op = Op::Const;
      i.immediate = n->src(1)->vmin;
    } else if (n->op == Op::Const) {
      i.immediate = n->int_arg(0);
    } else if (!is_alu(n->op)) {
      internal_error("graph", "{} cannot stand in a size", summary(n));
    }
    for (size_t k = 0; k < n->nsrc && is_alu(n->op); ++k) i.src[k] = place.at(n->src(k));
    place[n] = static_cast<uint32_t>(code_.size());
    code_.push_back(i);
  }
}

IndexProgram IndexProgram::renumbered(std::span<const int> positions) const {
  IndexProgram out = *this;
  for (Instruction& i : out.code_)
    if (i.op == Op::Variable) i.immediate = positions[static_cast<size_t>(i.immediate)];
  return out;
}

int64_t IndexProgram::evaluate(std::span<const int64_t> values) const {
  SmallVector<int64_t, 32> at(code_.size());
  for (size_t i = 0; i < code_.size(); ++i) {
    const Instruction& c = code_[i];
    switch (c.op) {
      case Op::Const: at[i] = c.immediate; break;
      case Op::Variable: at[i] = values[static_cast<size_t>(c.immediate)]; break;
      case Op::Add:
        at[i] =
            c.dtype == DType::Bool ? (at[c.src[0]] | at[c.src[1]]) : at[c.src[0]] + at[c.src[1]];
        break;
      case Op::Mul: at[i] = at[c.src[0]] * at[c.src[1]]; break;
      case Op::Max: at[i] = std::max(at[c.src[0]], at[c.src[1]]); break;
      case Op::Min: at[i] = std::min(at[c.src[0]], at[c.src[1]]); break;
      default: {
        Value operands[3];
        const size_t count = static_cast<size_t>(info(c.op).arity);
        for (size_t k = 0; k < count; ++k)
          operands[k] = Value::of(code_[c.src[k]].dtype, at[c.src[k]]);
        at[i] = apply(c.op, c.dtype, {operands, count}).as_int();
      }
    }
  }
  return at.back();
}

bool is_bound(NodeRef index) {
  const auto order = expression_order(index);
  return std::none_of(order.begin(), order.end(), [](NodeRef n) { return n->op == Op::Variable; });
}

int64_t bound_value(NodeRef index) {
  if (index->op == Op::Const) return index->vmin;
  if (index->op == Op::Bind) return index->src(1)->vmin;
  for (NodeRef n : expression_order(index))
    if (n->op == Op::Variable)
      fail("realize.unbound",
           "variable {} is unbound, it has no value; use {}.bind(value) where a size is needed",
           n->text(), n->text());
  return IndexProgram(index, {})({});
}

int64_t bound_numel(std::span<const NodeRef> dims) {
  int64_t count = 1;
  for (NodeRef d : dims) count = mul_or_fail("shape", count, bound_value(d));
  return count;
}

}  // namespace weft
