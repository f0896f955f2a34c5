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
      const auto count = static_cast<std::ptrdiff_t>(n.nsrc & ~Pat::kRest);
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
  Emitter(const Tree& tree, RuleProgram& out) : tree_(tree), out_(out) { slot_reg_.fill(-1); }

  void emit() {
    const Tree::Item& root = item(tree_.root);
    if (root.node.kind == PatKind::Op) {
      out_.root_op = root.node.op;
      for (size_t i = 0; i < root.src.size() && i < 3; ++i) out_.source_op[i] = op_at(root.src[i]);
    }
    term(tree_.root, 0, true);
    for (uint8_t s = 0; s < kPatSlots; ++s) {
      if (slot_reg_[s] < 0) continue;
      out_.bound.emplace_back(s, static_cast<uint8_t>(slot_reg_[s]));
      if (s < kFirstBoolSlot || s >= kFirstConstSlot) out_.domain_slots.push_back(s);
    }
  }

 private:
  const Tree::Item& item(int i) const { return tree_.items[static_cast<size_t>(i)]; }
  uint8_t op_at(int i) const {
    if (item(i).node.kind == PatKind::Op) return item(i).node.op;
    return is_constant(tree_, i) ? static_cast<uint8_t>(Op::Const) : 0;
  }
  void step(MatchStep::Code code, uint8_t from, uint8_t to, uint8_t index) {
    out_.steps.push_back({code, from, to, index});
  }

  void bind(uint8_t slot, uint8_t reg) {
    int& where = slot_reg_[slot];
    if (where >= 0) return step(MatchStep::Same, reg, static_cast<uint8_t>(where), 0);
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
    if (info(op).arity < 0)
      step(t.node.nsrc & Pat::kRest ? MatchStep::SourcesAtLeast : MatchStep::Sources, reg, 0,
           count);
    if (t.node.arg != Pat::kAnyArg) {
      const bool cast = op == Op::Cast || op == Op::Bitcast;
      step(cast ? MatchStep::HasDType : MatchStep::FirstInt, reg, 0,
           static_cast<uint8_t>(t.node.arg - 1));
    }
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
  std::array<int, kPatSlots> slot_reg_;
  uint8_t next_reg_ = 1;
};

}  // namespace

std::vector<RuleProgram> compile_pattern(const RuleEntry& entry, bool& capped) {
  Tree tree = tree_of(entry.rule->lhs);
  const std::vector<int> swaps = swappable(tree);
  const size_t forms = size_t{1} << std::min<size_t>(swaps.size(), 8);
  capped = forms > kMaxForms;
  std::vector<RuleProgram> out;
  for (size_t form = 0; form < std::min(forms, kMaxForms); ++form) {
    Tree t = tree;
    for (size_t k = 0; k < swaps.size(); ++k) {
      auto& src = t.items[static_cast<size_t>(swaps[k])].src;
      if (form >> k & 1) std::swap(src[0], src[1]);
    }
    RuleProgram program;
    program.entry = &entry;
    Emitter(t, program).emit();
    out.push_back(std::move(program));
  }
  return out;
}

}  // namespace weft
