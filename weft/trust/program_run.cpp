// Linear programs, instruction by instruction, and what their work items do to each other.
#include <algorithm>
#include <array>
#include <functional>
#include <map>

#include "weft/base/error.h"
#include "weft/base/small_vector.h"
#include "weft/eval/scalar.h"
#include "weft/graph/node_map.h"
#include "weft/trust/kernel_eval.h"

namespace weft::trust {
namespace {

using Lanes = std::vector<Value>;

/// Local memory of one group. Between two barriers no item may touch what another one writes: the
/// order in which they run is anyone's.
class GroupMemory {
 public:
  Value read(NodeRef local, int64_t at, int64_t item) {
    Word& w = word(local, at);
    WEFT_CHECK(w.written, "local memory is read that nobody has written");
    WEFT_CHECK(w.writer < 0 || w.writer == item, "item {} reads what item {} writes: no barrier",
               item, w.writer);
    w.shared |= w.reader >= 0 && w.reader != item;
    w.reader = item;
    return w.value;
  }
  void write(NodeRef local, int64_t at, Value value, int64_t item) {
    Word& w = word(local, at);
    const bool alone =
        !w.shared && (w.reader < 0 || w.reader == item) && (w.writer < 0 || w.writer == item);
    WEFT_CHECK(alone, "item {} writes what another one uses: no barrier", item);
    w.value = value;
    w.written = true;
    w.writer = item;
  }
  void pass_barrier() {
    for (auto& [id, words] : memory_)
      for (Word& w : words) w.reader = w.writer = -1, w.shared = false;
  }

 private:
  struct Word {
    Value value;
    bool written = false, shared = false;  // shared: read by several items
    int64_t reader = -1, writer = -1;      // since the last barrier
  };
  Word& word(NodeRef local, int64_t at) {
    const int64_t size = local->src(0)->vmin;
    WEFT_CHECK(at >= 0 && at < size, "local memory is accessed out of bounds");
    auto& words = memory_[local->int_arg(0)];
    words.resize(static_cast<size_t>(size));
    return words[static_cast<size_t>(at)];
  }

  std::map<int64_t, std::vector<Word>> memory_;
};

/// What items have in common, and which of them one is.
struct Place {
  Buffers& buffers;
  const Variables& variables;
  int64_t begin = 0, end = -1;  // of the core range
  GroupMemory* memory = nullptr;
  std::array<int64_t, 3> group = {}, item = {};
  int64_t number = 0;  // of the item in its group
};

class Item {
 public:
  Item(const LinearProgram& program, const Place& place) : program_(program), place_(place) {}

  /// Runs to the next barrier or shuffle, which it gives; null at the end.
  NodeRef run() {
    while (pc_ < program_.code.size()) {
      NodeRef n = program_.code[pc_++];
      if (n->op == Op::Barrier || n->op == Op::Shuffle) return n;
      if (n->op == Op::Range)
        enter(n);
      else if (n->op == Op::EndRange)
        next(n->src(0));
      else
        step(n);
    }
    WEFT_CHECK(loops_.empty(), "a range that does not end");
    return nullptr;
  }
  /// What a shuffle that was reached gives: another item's operand.
  void take(NodeRef shuffle, const Item& other) {
    values_[shuffle] = Lanes(other.operand(shuffle, 0));
  }

 private:
  struct Running {
    NodeRef range;
    size_t body;
    int64_t at, end;
  };

  void enter(NodeRef range) {
    const bool core = range_binding(range) == Binding::Core;
    const int64_t size = values_.at(range->src(0))[0].as_int();
    const Running loop{range, pc_, core ? place_.begin : 0,
                       core && place_.end >= 0 ? place_.end : size};
    if (loop.at >= loop.end) {
      pc_ = after_end_of(range);
      return;
    }
    values_[range] = {Value::of(range->dtype, loop.at)};
    loops_.push_back(loop);
  }
  void next(NodeRef range) {
    WEFT_CHECK(!loops_.empty() && loops_.back().range == range, "an endrange without its range");
    Running& loop = loops_.back();
    if (++loop.at >= loop.end) return loops_.pop_back();
    values_[range] = {Value::of(range->dtype, loop.at)};
    pc_ = loop.body;
  }
  size_t after_end_of(NodeRef range) const {
    for (size_t pc = pc_; pc < program_.code.size(); ++pc)
      if (program_.code[pc]->op == Op::EndRange && program_.code[pc]->src(0) == range)
        return pc + 1;
    WEFT_CHECK(false, "a range that does not end");
  }

  void step(NodeRef n) {
    switch (n->op) {
      case Op::Const: values_[n] = {const_value(n)}; return;
      case Op::Variable:
        values_[n] = {Value::index(place_.variables.at(std::string(n->text())))};
        return;
      case Op::Param:
      case Op::Local: return;
      case Op::WorkId: values_[n] = {Value::of(n->dtype, work_id(n))}; return;
      case Op::Load: values_[n] = load(n); return;
      case Op::Store: store(n); return;
      case Op::Acc:
      case Op::GetAcc: values_[n] = Lanes(operand(n, 0)); return;
      case Op::SetAcc: values_[n->src(0)] = Lanes(operand(n, 1)); return;
      case Op::Vec: {
        Lanes v;
        for (size_t k = 0; k < n->nsrc; ++k) v.push_back(operand(n, k).at(0));
        values_[n] = v;
        return;
      }
      case Op::Lane: values_[n] = {operand(n, 0).at(static_cast<size_t>(n->int_arg(0)))}; return;
      case Op::Trn: values_[n] = taken_in_turns(n); return;
      case Op::Splat: values_[n] = Lanes(n->lanes, operand(n, 0).at(0)); return;
      default: break;
    }
    alu(n);
  }

  Lanes taken_in_turns(NodeRef n) const {
    const auto size = static_cast<size_t>(n->int_arg(0)), odd = static_cast<size_t>(n->int_arg(1));
    Lanes out;
    for (size_t k = 0; k < n->lanes; ++k) {
      const bool second = k / size % 2 == 1;
      out.push_back(operand(n, second ? 1 : 0).at(k - (second ? size : 0) + odd * size));
    }
    return out;
  }

  int64_t work_id(NodeRef n) const {
    const bool grid = static_cast<Binding>(n->int_arg(0)) == Binding::Grid;
    return (grid ? place_.group : place_.item)[static_cast<size_t>(n->int_arg(1))];
  }

  /// Until the next value is computed.
  const Lanes& operand(NodeRef n, size_t i) const {
    const Lanes* v = values_.find(n->src(i));
    WEFT_CHECK(v, "{} is used before it is computed", info(n->src(i)->op).mnemonic);
    return *v;
  }

  void alu(NodeRef n) {
    const bool removed = n->op == Op::IDiv || n->op == Op::Mod || n->op == Op::ToIndex ||
                         n->op == Op::Exp2 || n->op == Op::Log2 || n->op == Op::Sin ||
                         n->op == Op::Cos || n->op == Op::Tan;
    WEFT_CHECK(!removed && n->dtype != DType::Index, "{} in a program", info(n->op).mnemonic);
    const bool half = is_half(n->dtype);
    const bool moves = n->op == Op::Cast || n->op == Op::Where || n->op == Op::Bitcast;
    WEFT_CHECK(!half || moves, "16-bit arithmetic in a program");
    Lanes& out = values_[n];
    out.resize(n->lanes);
    SmallVector<const Lanes*, 6> operands;
    for (size_t i = 0; i < n->nsrc; ++i) {
      operands.push_back(&operand(n, i));
      WEFT_CHECK(operands[i]->size() == n->lanes, "operands of {} have other lanes",
                 info(n->op).mnemonic);
    }
    SmallVector<Value, 6> v(operands.size());
    for (size_t k = 0; k < n->lanes; ++k) {
      for (size_t i = 0; i < v.size(); ++i) v[i] = (*operands[i])[k];
      out[k] = apply(n, {v.begin(), v.size()});
    }
  }

  static Value apply(NodeRef n, std::span<const Value> v) {
    if (n->op == Op::CDiv || n->op == Op::CMod) return truncating(n, v);
    const bool shift = n->op == Op::Shl || n->op == Op::Shr;
    WEFT_CHECK(!shift || (v[1].as_int() >= 0 && v[1].as_int() < bits(n->dtype)),
               "shift out of range");
    return eval::apply(n->op, n->dtype, v);
  }
  static Value truncating(NodeRef n, std::span<const Value> v) {
    WEFT_CHECK(!v[1].is_zero(), "division by zero");
    const bool quotient = n->op == Op::CDiv;
    if (is_unsigned(n->dtype)) {
      const uint64_t a = v[0].as_uint(), b = v[1].as_uint();
      return Value::of(n->dtype, quotient ? a / b : a % b);
    }
    const int64_t a = v[0].as_int(), b = v[1].as_int();
    WEFT_CHECK(b != -1 || a != int_min(n->dtype), "division overflows");
    return Value::of(n->dtype, quotient ? a / b : a % b);
  }

  Lanes load(NodeRef n) {
    const std::vector<bool> lanes = taken(n, 2);
    Lanes out(n->lanes, Value::of(n->dtype, 0));
    if (std::ranges::none_of(lanes, std::identity())) return out;
    const int64_t at = operand(n, 1).at(0).as_int();
    if (n->src(0)->op == Op::Local) return {place_.memory->read(n->src(0), at, place_.number)};
    const auto& buffer = place_.buffers.at(static_cast<size_t>(param_slot(n->src(0))));
    for (size_t k = 0; k < n->lanes; ++k) {
      if (!lanes[k]) continue;
      const int64_t place = at + static_cast<int64_t>(k);
      WEFT_CHECK(place >= 0 && place < static_cast<int64_t>(buffer.size()),
                 "reads outside its buffer");
      out[k] = buffer[static_cast<size_t>(place)];
    }
    return out;
  }

  /// Which lanes of an access its mask lets through; one mask may be all lanes'.
  std::vector<bool> taken(NodeRef n, size_t mask) const {
    const size_t lanes = n->op == Op::Store ? operand(n, 2).size() : n->lanes;
    std::vector<bool> out(lanes, true);
    if (n->nsrc <= mask) return out;
    const Lanes& given = operand(n, mask);
    for (size_t k = 0; k < lanes; ++k) out[k] = given.at(given.size() == 1 ? 0 : k).as_bool();
    return out;
  }

  void store(NodeRef n) {
    WEFT_CHECK(n->int_arg(0) == 0, "a combining store in a program");
    const std::vector<bool> lanes = taken(n, 3);
    if (std::ranges::none_of(lanes, std::identity())) return;
    const int64_t at = operand(n, 1).at(0).as_int();
    const Lanes& v = operand(n, 2);
    WEFT_CHECK(v.size() == n->lanes, "a store of other lanes than its value");
    if (n->src(0)->op == Op::Local) return place_.memory->write(n->src(0), at, v[0], place_.number);
    auto& buffer = place_.buffers.at(static_cast<size_t>(param_slot(n->src(0))));
    for (size_t k = 0; k < v.size(); ++k) {
      if (!lanes[k]) continue;
      const int64_t place = at + static_cast<int64_t>(k);
      WEFT_CHECK(place >= 0 && place < static_cast<int64_t>(buffer.size()),
                 "writes outside its buffer");
      buffer[static_cast<size_t>(place)] = v[k];
    }
  }

  const LinearProgram& program_;
  Place place_;
  NodeMap<Lanes> values_;
  std::vector<Running> loops_;
  size_t pc_ = 0;
};

template <class F>
void each_of(const std::array<int64_t, 3>& sizes, F&& f) {
  for (int64_t z = 0; z < sizes[2]; ++z)
    for (int64_t y = 0; y < sizes[1]; ++y)
      for (int64_t x = 0; x < sizes[0]; ++x) f(std::array<int64_t, 3>{x, y, z});
}

/// All items have come to it; it orders no access to memory.
void exchange(NodeRef shuffle, std::vector<Item>& items) {
  for (size_t i = 0; i < items.size(); ++i) {
    const size_t other = i ^ static_cast<size_t>(shuffle->int_arg(0));
    WEFT_CHECK(other < items.size(), "item {} reads what none has", i);
    items[i].take(shuffle, items[other]);
  }
}

/// All items to the first barrier, then all to the next.
void run_group(const LinearProgram& program, Place place) {
  GroupMemory memory;
  place.memory = &memory;
  std::vector<Item> items;
  each_of(program.launch.group, [&](const auto& item) {
    place.item = item;
    place.number = static_cast<int64_t>(items.size());
    items.emplace_back(program, place);
  });
  for (NodeRef reached = nullptr;;) {
    for (size_t i = 0; i < items.size(); ++i) {
      NodeRef now = items[i].run();
      WEFT_CHECK(i == 0 || now == reached, "items of a group wait at different barriers");
      reached = now;
    }
    if (!reached) return;
    reached->op == Op::Shuffle ? exchange(reached, items) : memory.pass_barrier();
  }
}

std::array<int64_t, 3> grid_of(const LinearProgram& program, const Variables& variables) {
  std::array<int64_t, 3> sizes{1, 1, 1};
  for (size_t axis = 0; axis < 3; ++axis)
    if (NodeRef size = program.launch.grid[axis]) sizes[axis] = index_value(size, variables);
  return sizes;
}

}  // namespace

Buffers run_program(const LinearProgram& program, const Buffers& buffers,
                    const Variables& variables, int64_t begin, int64_t end) {
  Buffers result = buffers;
  Place place{result, variables, begin, end};
  if (!program.launch.grouped) {
    Item(program, place).run();
    return result;
  }
  each_of(grid_of(program, variables), [&](const auto& group) {
    place.group = group;
    run_group(program, place);
  });
  return result;
}

}  // namespace weft::trust
