#include "weft/codegen/machine/flow.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "weft/base/function_ref.h"

namespace weft::codegen {
namespace {

bool is_mark(const Instruction& i) { return i.form >= kLabel; }

/// Cuts lines into blocks. Marks belong to the instruction below them.
class BlockFinder {
 public:
  explicit BlockFinder(std::span<const CodeLine> lines) : lines_(lines) {}

  ControlFlow find() {
    for (uint32_t i = 0; i < lines_.size(); ++i) add(i);
    close(static_cast<uint32_t>(lines_.size()));
    for (CodeBlock& b : flow_.blocks) connect(b);
    return std::move(flow_);
  }

 private:
  void add(uint32_t i) {
    const Instruction& instruction = lines_[i].instruction;
    if (is_mark(instruction)) {
      if (has_instructions_) close(i);
      if (instruction.form == kLoopBegin) begin_loop(i);
      if (instruction.form == kLoopEnd) end_loop(i);
      if (instruction.form == kLabel)
        block_of_.emplace(instruction.label, static_cast<uint32_t>(flow_.blocks.size()));
      return;
    }
    has_instructions_ = true;
    block_.loop = open_.empty() ? kNoLoop : open_.back();
    if (lines_[i].flow != Flow::Next) close(i + 1);
  }
  void close(uint32_t end) {
    if (block_.begin == end) return;
    block_.end = end;
    flow_.blocks.push_back(std::move(block_));
    block_ = {.begin = end};
    has_instructions_ = false;
  }

  void begin_loop(uint32_t i) {
    const uint32_t parent = open_.empty() ? kNoLoop : open_.back();
    open_.push_back(static_cast<uint32_t>(flow_.loops.size()));
    flow_.loops.push_back({i, i, parent, static_cast<int>(open_.size())});
  }
  void end_loop(uint32_t i) {
    flow_.loops[open_.back()].end = i + 1;
    open_.pop_back();
  }

  void connect(CodeBlock& b) const {
    const CodeLine& last = lines_[b.end - 1];
    const auto below = static_cast<uint32_t>(&b - flow_.blocks.data()) + 1;
    const bool falls = last.flow == Flow::Next || last.flow == Flow::Branch;
    if (falls && below < flow_.blocks.size()) b.next.push_back(below);
    if (last.flow != Flow::Branch && last.flow != Flow::Jump) return;
    const auto target = block_of_.find(last.instruction.label);
    const bool known = target != block_of_.end() && target->second < flow_.blocks.size();
    if (known && (b.next.empty() || b.next[0] != target->second)) b.next.push_back(target->second);
  }

  std::span<const CodeLine> lines_;
  ControlFlow flow_;
  CodeBlock block_;
  bool has_instructions_ = false;
  std::vector<uint32_t> open_;  // loops
  std::unordered_map<int32_t, uint32_t> block_of_;
};

/// What a line does with a register; redefined: writes it without reading what was there.
struct Use {
  uint32_t line;
  bool read = false, redefined = false;
};

/// Sets of registers, one for each of many things.
class RegisterSets {
 public:
  RegisterSets(size_t count, size_t registers)
      : words_((registers + 63) / 64), bits_(count * words_) {}

  bool has(size_t of, uint32_t reg) const { return word(of, reg) >> reg % 64 & 1; }
  void add(size_t of, uint32_t reg) { bits_[of * words_ + reg / 64] |= uint64_t{1} << reg % 64; }
  void remove(size_t of, uint32_t reg) {
    bits_[of * words_ + reg / 64] &= ~(uint64_t{1} << reg % 64);
  }
  void copy(size_t of, const RegisterSets& from, size_t other) {
    std::copy_n(&from.bits_[other * words_], words_, &bits_[of * words_]);
  }
  /// Whether that changed something.
  bool unite(size_t of, const RegisterSets& from, size_t with) {
    bool changed = false;
    for (size_t w = 0; w < words_; ++w) {
      uint64_t& to = bits_[of * words_ + w];
      const uint64_t all = to | from.bits_[with * words_ + w];
      changed |= all != to;
      to = all;
    }
    return changed;
  }

 private:
  uint64_t word(size_t of, uint32_t reg) const { return bits_[of * words_ + reg / 64]; }
  size_t words_;
  std::vector<uint64_t> bits_;
};

class LifeFinder {
 public:
  LifeFinder(std::span<const CodeLine> lines, const ControlFlow& flow, const InstructionSet& set)
      : lines_(lines), flow_(flow) {
    find_registers(set);
    find_uses(set);
    before_ = RegisterSets(lines.size(), out_.registers.size());
    after_ = before_;
  }

  RegisterLives find() {
    if (out_.registers.empty()) return {{}, {}, std::vector<std::string>(lines_.size())};
    // Where loops have one entry, as ours do, it ends after as many rounds as they are deep.
    for (int round = 0; round < kMostRounds && spread(); ++round) {}
    out_.uses.assign(lines_.size(), std::string(out_.registers.size(), ' '));
    for (uint32_t r = 0; r < out_.registers.size(); ++r) find_lives(r);
    std::ranges::sort(out_.lives, {},
                      [](const RegisterLife& l) { return std::tuple(l.first, l.last, l.reg); });
    return std::move(out_);
  }

 private:
  static constexpr int kMostRounds = 100;

  void each_use(const InstructionSet& set,
                FunctionRef<void(uint32_t line, const RegisterUse&)> f) const {
    for (uint32_t i = 0; i < lines_.size(); ++i) {
      Instruction copy = lines_[i].instruction;
      if (is_mark(copy)) continue;
      for (const RegisterUse& use : set.operands(copy)) f(i, use);
    }
  }

  void find_registers(const InstructionSet& set) {
    std::map<std::pair<RegClass, Reg>, uint16_t> widths;
    each_use(set, [&](uint32_t line, const RegisterUse& use) {
      uint16_t& bits = widths[{use.kind, *use.reg}];
      bits = std::max(bits, lines_[line].instruction.width);
    });
    for (const auto& [name, bits] : widths) {
      numbers_.emplace(name, static_cast<uint32_t>(numbers_.size()));
      out_.registers.push_back({name.first, name.second, bits});
    }
    uses_.resize(numbers_.size());
  }

  void find_uses(const InstructionSet& set) {
    by_line_.resize(lines_.size());
    each_use(set, [&](uint32_t line, const RegisterUse& use) {
      const uint32_t reg = numbers_.at({use.kind, *use.reg});
      std::vector<Use>& of = uses_[reg];
      if (of.empty() || of.back().line != line) {
        of.push_back({line});
        by_line_[line].push_back(reg);
      }
      of.back().read |= reads(use.access);
      of.back().redefined |= use.access == OperandAccess::Write;
    });
  }

  /// One round of the data flow, from the end; whether it found anything.
  bool spread() {
    bool changed = false;
    std::vector<size_t> next(uses_.size());  // of each register, one behind the use to come
    for (size_t r = 0; r < uses_.size(); ++r) next[r] = uses_[r].size();
    for (size_t b = flow_.blocks.size(); b-- > 0;) {
      const CodeBlock& block = flow_.blocks[b];
      for (const uint32_t n : block.next)
        changed |= after_.unite(block.end - 1, before_, flow_.blocks[n].begin);
      for (uint32_t i = block.end; i-- > block.begin;) {
        if (i + 1 < block.end) after_.copy(i, before_, i + 1);
        before_.copy(i, after_, i);
        for (const uint32_t r : by_line_[i]) {
          const Use& use = uses_[r][--next[r]];
          if (use.redefined) before_.remove(i, r);
          if (use.read) before_.add(i, r);
        }
      }
    }
    return changed;
  }

  void find_lives(uint32_t reg) {
    size_t next = 0;
    uint32_t first = kNotAlive;
    for (uint32_t i = 0; i < lines_.size(); ++i) {
      const bool used = next < uses_[reg].size() && uses_[reg][next].line == i;
      const Use use = used ? uses_[reg][next++] : Use{i};
      const bool before = before_.has(i, reg), after = after_.has(i, reg);
      if (first != kNotAlive && !before) end_life(reg, first, i - 1);
      if (first == kNotAlive && before) first = i;
      out_.uses[i][reg] = symbol(used, use.redefined, before, after);
      if (use.redefined) {
        if (before) end_life(reg, first, i);
        first = i;
      }
      if (first != kNotAlive && !after) end_life(reg, first, i);
    }
    if (first != kNotAlive) end_life(reg, first, static_cast<uint32_t>(lines_.size()) - 1);
  }
  static char symbol(bool used, bool redefined, bool before, bool after) {
    if (!used) return before || after ? '|' : ' ';
    if (redefined) return before || !after ? 'x' : 'v';
    return after ? 'o' : '^';
  }
  void end_life(uint32_t reg, uint32_t& first, uint32_t last) {
    out_.lives.push_back({reg, first, last});
    first = kNotAlive;
  }

  static constexpr uint32_t kNotAlive = UINT32_MAX;
  std::span<const CodeLine> lines_;
  const ControlFlow& flow_;
  std::map<std::pair<RegClass, Reg>, uint32_t> numbers_;
  std::vector<std::vector<Use>> uses_;          // of each register, by line
  std::vector<std::vector<uint32_t>> by_line_;  // registers
  RegisterSets before_{0, 0}, after_{0, 0};
  RegisterLives out_;
};

}  // namespace

ControlFlow control_flow(std::span<const CodeLine> lines) { return BlockFinder(lines).find(); }

std::vector<std::vector<Instruction>> loop_bodies(std::span<const CodeLine> lines,
                                                  const ControlFlow& flow) {
  std::vector<std::vector<Instruction>> out(flow.loops.size());
  for (const CodeBlock& b : flow.blocks)
    for (uint32_t i = b.begin; i < b.end && b.loop != kNoLoop; ++i)
      if (!is_mark(lines[i].instruction)) out[b.loop].push_back(lines[i].instruction);
  return out;
}

RegisterLives register_lives(std::span<const CodeLine> lines, const ControlFlow& flow,
                             const InstructionSet& set) {
  return LifeFinder(lines, flow, set).find();
}

}  // namespace weft::codegen
