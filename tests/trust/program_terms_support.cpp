#if __has_include(<z3++.h>) && defined(WEFT_HAVE_Z3)
#include <array>

#include "tests/trust/term_runs_support.h"
#include "weft/base/format.h"
#include "weft/graph/node_map.h"

namespace weft::test {
namespace {

/// What all items see, and which of them one is.
struct Place {
  TermMemory& memory;
  std::map<int64_t, std::vector<Term>>& local;
  const Variables& variables;
  std::array<int64_t, 3> group = {}, item = {};
};

/// One work item, instruction by instruction. What only some values of the inputs lead to is done
/// under their condition.
class ItemRun {
 public:
  ItemRun(TermAlgebra& algebra, const LinearProgram& program, const Place& place, Steps& steps)
      : algebra_(algebra), program_(program), place_(place), steps_(steps) {}

  /// To the next barrier or shuffle, which it gives; null at the end.
  NodeRef run() {
    while (pc_ < program_.code.size()) {
      steps_.take();
      NodeRef n = program_.code[pc_++];
      if (n->op == Op::Barrier || n->op == Op::Shuffle) return n;
      step(n);
    }
    return nullptr;
  }
  void take(NodeRef shuffle, const ItemRun& other) { values_[shuffle] = other.operand(shuffle, 0); }

 private:
  struct Block {
    NodeRef opened;
    size_t body;
    int64_t at = 0, most = 1;
    Term size = {}, outside = {};  // outside: the condition of what is around it
  };

  void step(NodeRef n) {
    switch (n->op) {
      case Op::Range: return enter(n);
      case Op::EndRange: return next();
      case Op::If: return enter_if(n);
      case Op::EndIf: runs_ = blocks_.back().outside; return blocks_.pop_back();
      case Op::Param:
      case Op::Local: return;
      case Op::Const: values_[n] = {{const_value(n)}}; return;
      case Op::Variable:
        values_[n] = {TermAlgebra::index(place_.variables.at(std::string(n->text())))};
        return;
      case Op::WorkId: values_[n] = {{Value::of(n->dtype, work_id(n))}}; return;
      case Op::Load:
        values_[n] = load_lanes(algebra_, n, memory_of(n), operand(n, 1)[0],
                                n->nsrc > 2 ? operand(n, 2) : Lanes());
        return;
      case Op::Store:
        return store_lanes(algebra_, memory_of(n), operand(n, 1)[0], operand(n, 2),
                           n->nsrc > 3 ? operand(n, 3) : Lanes(), runs_);
      case Op::Acc:
      case Op::GetAcc: values_[n] = Lanes(operand(n, 0)); return;
      case Op::SetAcc: return set(n);
      default: break;
    }
    std::vector<Lanes> operands;
    for (size_t i = 0; i < n->nsrc; ++i) operands.push_back(operand(n, i));
    values_[n] = apply_lanes(algebra_, n, operands);
  }

  void enter(NodeRef range) {
    Block block{range, pc_, 0, 0, operand(range, 0)[0], runs_};
    // A core range is as long as its true size says.
    if (range_binding(range) == Binding::Core && program_.core_size)
      block.size = {
          Value::of(block.size.dtype, trust::index_value(program_.core_size, place_.variables))};
    block.most = block.size.is_number() ? block.size.value.as_int() : range->src(0)->vmax;
    blocks_.push_back(block);
    begin_iteration();
  }
  void begin_iteration() {
    Block& block = blocks_.back();
    if (block.at >= block.most) {
      runs_ = block.outside;
      pc_ = after_end_of(block.opened);
      return blocks_.pop_back();
    }
    const Term at{Value::of(block.opened->dtype, block.at)};
    const Term within[] = {{Value::of(block.size.dtype, block.at)}, block.size};
    values_[block.opened] = {at};
    runs_ = algebra_.both(block.outside, algebra_.apply(Op::Lt, DType::Bool, within));
    pc_ = block.body;
  }
  void next() {
    ++blocks_.back().at;
    begin_iteration();
  }
  size_t after_end_of(NodeRef range) const {
    for (size_t pc = 0; pc < program_.code.size(); ++pc)
      if (program_.code[pc]->op == Op::EndRange && program_.code[pc]->src(0) == range)
        return pc + 1;
    throw Unsupported{"a range that does not end"};
  }
  void enter_if(NodeRef n) {
    blocks_.push_back({n, pc_, 0, 1, {}, runs_});
    runs_ = algebra_.both(runs_, operand(n, 0)[0]);
  }

  void set(NodeRef n) {
    const Lanes now = operand(n, 1);
    Lanes& held = *values_.find(n->src(0));
    for (size_t k = 0; k < now.size(); ++k) held.at(k) = algebra_.where(runs_, now[k], held.at(k));
  }

  int64_t work_id(NodeRef n) const {
    if (!program_.launch.grouped) throw Unsupported{"groups whose size is not known yet"};
    const bool grid = static_cast<Binding>(n->int_arg(0)) == Binding::Grid;
    return (grid ? place_.group : place_.item)[static_cast<size_t>(n->int_arg(1))];
  }

  const Lanes& operand(NodeRef n, size_t i) const {
    const Lanes* v = values_.find(n->src(i));
    if (!v) throw Unsupported{strformat("{} before it is computed", info(n->src(i)->op).mnemonic)};
    return *v;
  }

  std::vector<Term>& memory_of(NodeRef access) {
    NodeRef memory = access->src(0);
    if (memory->op == Op::Param) return place_.memory.at(static_cast<size_t>(param_slot(memory)));
    std::vector<Term>& local = place_.local[memory->int_arg(0)];
    local.resize(static_cast<size_t>(memory->src(0)->vmin), {Value::of(memory->dtype, 77)});
    return local;
  }

  TermAlgebra& algebra_;
  const LinearProgram& program_;
  Place place_;
  Steps& steps_;
  NodeMap<Lanes> values_;
  std::vector<Block> blocks_;
  Term runs_{Value::boolean(true)};
  size_t pc_ = 0;
};

template <class F>
void each_of(const std::array<int64_t, 3>& sizes, F&& f) {
  for (int64_t z = 0; z < sizes[2]; ++z)
    for (int64_t y = 0; y < sizes[1]; ++y)
      for (int64_t x = 0; x < sizes[0]; ++x) f(std::array<int64_t, 3>{x, y, z});
}

void exchange(NodeRef shuffle, std::vector<ItemRun>& items) {
  for (size_t i = 0; i < items.size(); ++i)
    items[i].take(shuffle, items.at(i ^ static_cast<size_t>(shuffle->int_arg(0))));
}

class GroupsRun {
 public:
  GroupsRun(TermAlgebra& algebra, const LinearProgram& program, TermMemory& memory,
            const Variables& variables, Steps& steps)
      : algebra_(algebra),
        program_(program),
        memory_(memory),
        variables_(variables),
        steps_(steps) {}

  void run() {
    std::array<int64_t, 3> sizes{1, 1, 1};
    for (size_t axis = 0; axis < 3; ++axis)
      if (NodeRef size = program_.launch.grid[axis])
        sizes[axis] = trust::index_value(size, variables_);
    each_of(sizes, [this](const auto& group) { run(group); });
  }

 private:
  /// All items to the first barrier, then all to the next.
  void run(const std::array<int64_t, 3>& group) {
    std::map<int64_t, std::vector<Term>> local;
    std::vector<ItemRun> items;
    each_of(program_.launch.group, [&](const auto& item) {
      items.emplace_back(algebra_, program_, Place{memory_, local, variables_, group, item},
                         steps_);
    });
    for (NodeRef reached = nullptr;;) {
      for (ItemRun& item : items) reached = item.run();
      if (!reached) return;
      if (reached->op == Op::Shuffle) exchange(reached, items);
    }
  }

  TermAlgebra& algebra_;
  const LinearProgram& program_;
  TermMemory& memory_;
  const Variables& variables_;
  Steps& steps_;
};

}  // namespace

TermMemory run_program(TermAlgebra& algebra, const LinearProgram& program, const TermMemory& memory,
                       const Variables& variables, Steps& steps) {
  TermMemory after = memory;
  GroupsRun(algebra, program, after, variables, steps).run();
  return after;
}

}  // namespace weft::test
#endif
