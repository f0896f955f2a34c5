#include "weft/rewrite/pattern_compiler.h"

#include <algorithm>
#include <array>

#include "weft/base/error.h"

namespace weft {
namespace {

constexpr size_t kMaxForms = 8;

/// A pattern with its tree made explicit.
struct Tree {
  struct Item {
    PatNode node;
    uint8_t at;  // position in the rule's left side
    std::vector<int> src;
    std::vector<uint8_t> binds;
    int dtype = -1;
  };
  std::vector<Item> items;
  int root = 0;
};

Tree tree_of(const Pat& p) {
  Tree t;
  std::vector<int> stack;
  for (int i = 0; i < p.size; ++i) {
    const PatNode n = p.node[i];
    if (n.kind == PatKind::Bind || n.kind == PatKind::Typed) {
      Tree::Item& top = t.items[static_cast<size_t>(stack.back())];
      if (n.kind == PatKind::Bind)
        top.binds.push_back(n.arg);
      else
        top.dtype = n.arg;
      continue;
    }
    Tree::Item item{n, static_cast<uint8_t>(i), {}, {}};
    if (n.kind == PatKind::Op) {
      const auto count = static_cast<std::ptrdiff_t>(n.nsrc);
      item.src.assign(stack.end() - count, stack.end());
      stack.resize(stack.size() - static_cast<size_t>(count));
    }
    stack.push_back(static_cast<int>(t.items.size()));
    t.items.push_back(std::move(item));
  }
  WEFT_CHECK(stack.size() == 1, "a pattern must be one term");
  t.root = stack[0];
  return t;
}

bool same_term(const Tree& t, int a, int b) {
  const Tree::Item& x = t.items[static_cast<size_t>(a)];
  const Tree::Item& y = t.items[static_cast<size_t>(b)];
  if (!(x.node == y.node) || x.binds != y.binds || x.dtype != y.dtype) return false;
  for (size_t i = 0; i < x.src.size(); ++i)
    if (!same_term(t, x.src[i], y.src[i])) return false;  // patterns have at most 24 nodes
  return true;
}

bool is_constant(const Tree& t, int i) {
  const PatKind k = t.items[static_cast<size_t>(i)].node.kind;
  return k == PatKind::Const || k == PatKind::Int || k == PatKind::Float;
}

/// Nodes whose two sources must be tried both ways. Graph::make puts constants right, so a pattern
/// with one constant source has one form: it is put right here.
std::vector<int> swappable(Tree& t) {
  std::vector<int> out;
  for (size_t i = 0; i < t.items.size(); ++i) {
    Tree::Item& item = t.items[i];
    if (item.node.kind != PatKind::Op || item.src.size() != 2) continue;
    if (!has_trait(static_cast<Op>(item.node.op), kCommutative)) continue;
    const bool left = is_constant(t, item.src[0]), right = is_constant(t, item.src[1]);
    if (left && !right) std::swap(item.src[0], item.src[1]);
    if (left != right || same_term(t, item.src[0], item.src[1])) continue;
    out.push_back(static_cast<int>(i));
  }
  return out;
}

class Emitter {
 public:
  Emitter(const Tree& tree, RuleProgram& out, std::vector<MatchStep>& steps)
      : tree_(tree), out_(out), steps_(steps) {}

  void emit() {
    out_.first_step = static_cast<uint32_t>(steps_.size());
    std::fill(std::begin(out_.reg_of), std::end(out_.reg_of), RuleProgram::kUnbound);
    const Tree::Item& root = item(tree_.root);
    if (root.node.kind == PatKind::Op) describe_root(root);
    term(tree_.root, 0, true);
    out_.steps = static_cast<uint16_t>(steps_.size() - out_.first_step);
  }

 private:
  const Tree::Item& item(int i) const { return tree_.items[static_cast<size_t>(i)]; }
  uint8_t op_at(int i) const {
    if (item(i).node.kind == PatKind::Op) return item(i).node.op;
    return is_constant(tree_, i) ? static_cast<uint8_t>(Op::Const) : 0;
  }
  void step(MatchStep::Code code, uint8_t from, uint8_t to, uint8_t index) {
    steps_.push_back({code, from, to, index});
  }

  /// What can be told before the program runs.
  void describe_root(const Tree::Item& root) {
    out_.root_op = root.node.op;
    for (size_t i = 0; i < root.src.size() && i < 3; ++i) out_.source_op[i] = op_at(root.src[i]);
    out_.same_sources = root.src.size() >= 2 && same_term(tree_, root.src[0], root.src[1]) &&
                        item(root.src[0]).node.kind == PatKind::Any;
    out_.of_operands = is_alu(static_cast<Op>(root.node.op)) && shows_domain(root);
  }
  /// A variable of the domain is an operand, directly or through ops that keep the dtype.
  bool shows_domain(const Tree::Item& t) const {
    const auto op = static_cast<Op>(t.node.op);
    if (op == Op::Cast || op == Op::Bitcast || op == Op::ToIndex) return false;
    for (size_t i = op == Op::Where ? 1 : 0; i < t.src.size(); ++i) {
      const Tree::Item& s = item(t.src[i]);
      const PatKind k = s.node.kind;
      if (k == PatKind::Const || (k == PatKind::Any && s.node.arg < kFirstBoolSlot)) return true;
      const bool keeps = k == PatKind::Op && is_alu(static_cast<Op>(s.node.op)) &&
                         !has_trait(static_cast<Op>(s.node.op), kBoolResult);
      if (keeps && shows_domain(s)) return true;
    }
    return false;
  }

  void bind(uint8_t slot, uint8_t reg) {
    uint8_t& where = out_.reg_of[slot];
    if (where != RuleProgram::kUnbound) return step(MatchStep::Same, reg, where, 0);
    where = reg;
    if (slot >= kFirstBoolSlot && slot < kFirstConstSlot)
      step(MatchStep::HasDType, reg, 0, static_cast<uint8_t>(DType::Bool));
  }

  /// `known`: the bitsets have tested the op already.
  void term(int i, uint8_t reg, bool known) {
    const Tree::Item& t = item(i);
    if (!known && op_at(i) != 0) step(MatchStep::IsOp, reg, 0, op_at(i));
    if (t.dtype >= 0) step(MatchStep::HasDType, reg, 0, static_cast<uint8_t>(t.dtype));
    if (t.node.kind == PatKind::Int || t.node.kind == PatKind::Float)
      step(MatchStep::Literal, reg, 0, t.at);
    if (t.node.kind == PatKind::Any || t.node.kind == PatKind::Const) bind(t.node.arg, reg);
    if (t.node.kind == PatKind::Op) sources(t, reg);
    for (uint8_t slot : t.binds) bind(slot, reg);
  }

  void sources(const Tree::Item& t, uint8_t reg) {
    const auto op = static_cast<Op>(t.node.op);
    const auto count = static_cast<uint8_t>(t.src.size());
    if (info(op).arity < 0) step(MatchStep::Sources, reg, 0, count);
    if (t.node.arg != Pat::kAnyArg)
      step(MatchStep::HasDType, reg, 0, static_cast<uint8_t>(t.node.arg - 1));
    std::array<uint8_t, Pat::kMaxNodes> regs{};
    // All loads and op tests first: they reject most.
    for (uint8_t i = 0; i < count; ++i) {
      regs[i] = next_reg_++;
      step(MatchStep::Load, reg, regs[i], i);
      const bool known = reg == 0 && i < 3;
      if (!known && op_at(t.src[i]) != 0) step(MatchStep::IsOp, regs[i], 0, op_at(t.src[i]));
    }
    for (uint8_t i = 0; i < count; ++i) term(t.src[i], regs[i], true);
  }

  const Tree& tree_;
  RuleProgram& out_;
  std::vector<MatchStep>& steps_;
  uint8_t next_reg_ = 1;
};

}  // namespace

bool compile_pattern(const RuleEntry& entry, std::vector<RuleProgram>& programs,
                     std::vector<MatchStep>& steps) {
  Tree tree = tree_of(entry.rule->lhs);
  const std::vector<int> swaps = swappable(tree);
  const size_t forms = size_t{1} << std::min<size_t>(swaps.size(), 8);
  for (size_t form = 0; form < std::min(forms, kMaxForms); ++form) {
    Tree t = tree;
    for (size_t k = 0; k < swaps.size(); ++k) {
      auto& src = t.items[static_cast<size_t>(swaps[k])].src;
      if (form >> k & 1) std::swap(src[0], src[1]);
    }
    RuleProgram program;
    program.entry = &entry;
    Emitter(t, program, steps).emit();
    programs.push_back(program);
  }
  return forms > kMaxForms;
}

}  // namespace weft
