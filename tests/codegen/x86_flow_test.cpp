// Blocks, loops and lives of registers, against paths through the code.
#include <gtest/gtest.h>

#include <algorithm>

#include "weft/codegen/machine/flow.h"
#include "weft/codegen/x86/frame.h"
#include "weft/isa/x86.h"
#include "weft/trust/random.h"

namespace weft {
namespace {

using codegen::ControlFlow, codegen::RegisterLives;
using x86::Form;
using x86::make;

Instruction jump(Form form, int32_t label) {
  Instruction i = make(form, 64, {}, form == Form::Jcc ? x86::kLess : 0);
  i.label = label;
  return i;
}

/// sum += in[i], until i is 64; rcx is in, rsi is i, zmm0 the sum, which then goes to the frame.
MachineProgram sum() {
  MachineProgram p;
  p.labels = 1;
  p.frame_bytes = 64;
  p.code.push_back(make(Form::MovI32, 32, {6}, 0));
  p.code.push_back({.form = kLoopBegin});
  p.code.push_back({.form = kLabel, .label = 0});
  p.code.push_back(make(Form::VMovups, 512, {1}, {.base = 1, .index = 6, .scale = 4}));
  p.code.push_back(make(Form::VAddPs, 512, {0, 0, 1}));
  p.code.push_back(make(Form::AddI, 64, {6}, 16));
  p.code.push_back(make(Form::CmpI, 64, {6}, 64));
  p.code.push_back(jump(Form::Jcc, 0));
  p.code.push_back({.form = kLoopEnd});
  p.code.push_back(make(Form::VMovupsStore, 512, {kNoReg, 0}, {.base = x86::kRsp}));
  return p;
}

std::string column(const RegisterLives& lives, RegClass kind, Reg number) {
  const auto at = std::ranges::find_if(
      lives.registers, [&](const auto& r) { return r.kind == kind && r.number == number; });
  std::string out;
  for (const std::string& uses : lives.uses)
    out += uses[static_cast<size_t>(at - lives.registers.begin())];
  return out;
}

TEST(CodeFlow, OfALoop) {
  const std::vector<CodeLine> lines = codegen::lines_x86(sum(), Core::Unknown);
  ASSERT_EQ(lines.size(), 17U);  // with the frame, vzeroupper and ret
  const ControlFlow flow = codegen::control_flow(lines);
  ASSERT_EQ(flow.blocks.size(), 3U);
  EXPECT_EQ(flow.blocks[1].begin, 5U);
  EXPECT_EQ(flow.blocks[1].end, 12U);
  EXPECT_EQ(flow.blocks[1].next, (std::vector<uint32_t>{2, 1}));
  EXPECT_EQ(flow.blocks[1].loop, 0U);
  EXPECT_EQ(flow.blocks[2].loop, codegen::kNoLoop);
  EXPECT_TRUE(flow.blocks[2].next.empty());
  EXPECT_EQ(codegen::loop_bodies(lines, flow)[0].size(), 5U);
  EXPECT_EQ(lines[13].frame, FrameUse::Spill);
  EXPECT_EQ(lines[3].frame, FrameUse::None);  // where the stack was
  EXPECT_EQ(lines.back().flow, Flow::Return);

  const RegisterLives lives = codegen::register_lives(lines, flow, x86::instruction_set());
  EXPECT_EQ(column(lives, RegClass::Vector, 1), "       v^        ");
  EXPECT_EQ(column(lives, RegClass::Vector, 0), "||||||||x||||^   ");
  EXPECT_EQ(column(lives, RegClass::General, 6), "    v||o|oo|     ");
  EXPECT_EQ(column(lives, RegClass::General, 1), "|||||||o||||     ");
}

/// Whether some path from behind line `from` reads the register before it is written.
class Paths {
 public:
  Paths(const std::vector<CodeLine>& lines, Reg reg) : lines_(lines), reg_(reg) {}

  bool reads_after(size_t from) {
    seen_.assign(lines_.size(), false);
    bool any = false;
    for (const size_t to : next(from)) any |= reads_from(to);
    return any;
  }
  bool reads_at(size_t i) const {
    return uses(i, [](OperandAccess a) { return reads(a); });
  }
  bool writes_at(size_t i) const {
    return uses(i, [](OperandAccess a) { return writes(a); });
  }

 private:
  bool reads_from(size_t i) {
    if (seen_[i]) return false;
    seen_[i] = true;
    if (reads_at(i)) return true;
    if (writes_at(i)) return false;
    bool any = false;
    for (const size_t to : next(i)) any |= reads_from(to);
    return any;
  }
  template <class F>
  bool uses(size_t i, const F& what) const {
    Instruction copy = lines_[i].instruction;
    if (copy.form >= x86::kForms) return false;
    for (const RegisterUse& use : x86::instruction_set().operands(copy))
      if (use.kind == RegClass::General && *use.reg == reg_ && what(use.access)) return true;
    return false;
  }
  std::vector<size_t> next(size_t i) const {
    std::vector<size_t> out;
    const Flow flow = lines_[i].flow;
    if ((flow == Flow::Next || flow == Flow::Branch) && i + 1 < lines_.size()) out.push_back(i + 1);
    if (flow != Flow::Branch && flow != Flow::Jump) return out;
    for (size_t at = 0; at < lines_.size(); ++at)
      if (lines_[at].instruction.form == kLabel &&
          lines_[at].instruction.label == lines_[i].instruction.label)
        out.push_back(at);
    return out;
  }

  const std::vector<CodeLine>& lines_;
  Reg reg_;
  std::vector<bool> seen_;
};

MachineProgram random_program(Random& random) {
  constexpr Reg kFree[] = {0, 1, 2, 6, 7};
  MachineProgram p;
  p.labels = 4;
  const auto reg = [&] { return random.pick(kFree); };
  std::vector<int32_t> labels = {0, 1, 2, 3};
  for (int i = 0; i < 24; ++i) {
    if (!labels.empty() && random.below(5) == 0) {
      p.code.push_back({.form = kLabel, .label = labels.back()});
      labels.pop_back();
    }
    switch (random.below(5)) {
      case 0: p.code.push_back(jump(Form::Jcc, static_cast<int32_t>(random.below(4)))); break;
      case 1: p.code.push_back(make(Form::MovI32, 32, {reg()}, 5)); break;
      case 2: p.code.push_back(make(Form::AddI, 64, {reg()}, 1)); break;
      case 3: p.code.push_back(make(Form::MovLoad, 64, {reg()}, {.base = reg()})); break;
      default: p.code.push_back(make(Form::Mov, 64, {reg(), reg()}));
    }
  }
  for (const int32_t label : labels) p.code.push_back({.form = kLabel, .label = label});
  return p;
}

TEST(CodeFlow, LivesAreWhatPathsRead) {
  Random random(1);
  for (int round = 0; round < 200; ++round) {
    const std::vector<CodeLine> lines = codegen::lines_x86(random_program(random), Core::Unknown);
    const ControlFlow flow = codegen::control_flow(lines);
    const RegisterLives lives = codegen::register_lives(lines, flow, x86::instruction_set());
    for (const codegen::NamedRegister& r : lives.registers) {
      Paths paths(lines, r.number);
      const std::string uses = column(lives, r.kind, r.number);
      for (size_t i = 0; i < lines.size(); ++i) {
        const bool used = paths.reads_at(i) || paths.writes_at(i), after = paths.reads_after(i);
        EXPECT_EQ(uses[i] != ' ', used || after) << round << " line " << i;
        if (used) {
          EXPECT_NE((after ? std::string("ovx") : std::string("^x")).find(uses[i]),
                    std::string::npos)
              << uses[i];
        }
      }
    }
  }
}

TEST(CodeFlow, JumpsToNowhereEnd) {
  MachineProgram p;
  p.code.push_back(jump(Form::Jmp, 7));
  const std::vector<CodeLine> lines = codegen::lines_x86(p, Core::Unknown);
  EXPECT_TRUE(codegen::control_flow(lines).blocks[0].next.empty());
}

}  // namespace
}  // namespace weft
