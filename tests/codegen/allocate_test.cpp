// Random machine code computes the same before and after allocation, however few registers there
// are.
#include "weft/codegen/machine/allocate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "weft/base/error.h"
#include "weft/codegen/machine/dead_code.h"
#include "weft/isa/x86.h"
#include "weft/trust/random.h"

namespace weft {
namespace {

using x86::Form;
using x86::make;

/// x86 with fewer registers, or more.
class Resized final : public InstructionSet {
 public:
  explicit Resized(size_t count) : count_(count) {
    const std::span<const Reg> all = all_.allocatable(RegClass::General);
    registers_.assign(all.begin(), all.end());
    for (Reg r = 64; registers_.size() < count; ++r) registers_.push_back(r);
  }
  RegisterUses operands(Instruction& i) const override { return all_.operands(i); }
  std::span<const Reg> allocatable(RegClass kind) const override {
    if (kind == RegClass::General) return std::span(registers_).first(count_);
    const std::span<const Reg> all = all_.allocatable(kind);
    return all.first(std::min(count_, all.size()));
  }
  Instruction move(RegClass k, int bits, Reg to, Reg from) const override {
    return all_.move(k, bits, to, from);
  }
  Instruction reload(RegClass k, int bits, Reg to, int32_t offset) const override {
    return all_.reload(k, bits, to, offset);
  }
  Instruction spill(RegClass k, int bits, Reg from, int32_t offset) const override {
    return all_.spill(k, bits, from, offset);
  }
  Repeat repeat(const Instruction& i) const override { return all_.repeat(i); }
  bool stores(const Instruction& i) const override { return all_.stores(i); }
  bool is_move(const Instruction& i) const override { return all_.is_move(i); }
  std::string print(const Instruction& i) const override { return all_.print(i); }

 private:
  const InstructionSet& all_ = x86::instruction_set();
  size_t count_;
  std::vector<Reg> registers_;  // general ones
};

/// Runs the few forms that the tests use; a loop runs three times, a skip skips where the number
/// tested last is even. What is stored other than in the frame is the output.
class Machine {
 public:
  std::vector<int64_t> run(const MachineProgram& p) {
    run(p, 0, p.code.size());
    return output_;
  }

 private:
  void run(const MachineProgram& p, size_t begin, size_t end) {
    for (size_t at = begin; at < end; ++at) {
      if (p.code[at].form == static_cast<uint16_t>(Form::Jcc) && even_) {
        const int32_t label = p.code[at].label;
        while (p.code[at].form != kLabel || p.code[at].label != label) ++at;
        continue;
      }
      if (p.code[at].form != kLoopBegin) {
        step(p.code[at]);
        continue;
      }
      size_t last = at;
      for (int depth = 1; depth != 0;) {
        ++last;
        depth += p.code[last].form == kLoopBegin;
        depth -= p.code[last].form == kLoopEnd;
      }
      for (int n = 0; n < 3; ++n) run(p, at + 1, last);
      at = last;
    }
  }

  void step(const Instruction& i) {
    auto& [a, b, c, d] = i.regs;
    auto wrap = [](int64_t x, int64_t y) {
      return static_cast<int64_t>(static_cast<uint64_t>(x) * 31 + static_cast<uint64_t>(y));
    };
    switch (static_cast<Form>(i.form)) {
      case Form::MovI64: regs_[a] = i.immediate; break;
      case Form::Mov: regs_[a] = regs_.at(b); break;
      case Form::Add: regs_[a] = wrap(regs_.at(a), regs_.at(b)); break;
      case Form::Andn: regs_[a] = wrap(regs_.at(b), regs_.at(c)) ^ 5; break;
      case Form::Idiv:
        regs_[b] = wrap(regs_.at(b), regs_.at(a));
        regs_[c] = wrap(regs_.at(c), regs_.at(a)) ^ 9;
        break;
      case Form::Test: even_ = regs_.at(a) % 2 == 0; break;
      case Form::MovLoad:
        regs_[a] = i.address.base == x86::kRsp ? frame_.at(i.address.displacement)
                                               : memory_[cell(i.address)];
        break;
      case Form::MovStore:
        if (i.address.base == x86::kRsp)
          frame_[i.address.displacement] = regs_.at(b);
        else if (i.address.base != kNoReg)
          memory_[cell(i.address)] = regs_.at(b);
        else
          output_.push_back(regs_.at(b));
        break;
      default: break;
    }
  }

  /// Few cells, so that stores change what was loaded.
  size_t cell(const Address& a) const {
    const auto number = [&](Reg r) { return static_cast<uint64_t>(r == kNoReg ? 0 : regs_.at(r)); };
    return (number(a.base) + number(a.index) + static_cast<uint64_t>(a.displacement)) % 4;
  }

  std::map<Reg, int64_t> regs_;
  std::map<int32_t, int64_t> frame_;
  std::array<int64_t, 4> memory_{11, 22, 33, 44};
  std::vector<int64_t> output_;
  bool even_ = false;
};

class RandomCode {
 public:
  explicit RandomCode(uint64_t seed) : random_(seed) {
    const int64_t count = random_.between(2, 24);
    for (int64_t k = 0; k < count; ++k) {
      values_.push_back(fresh());
      p_.code.push_back(make(Form::MovI64, 64, {values_.back()}, random_.between(-99, 99)));
    }
    block(0);
    for (Reg r : values_) store(r);
  }
  MachineProgram program() const { return p_; }

 private:
  Reg fresh() { return p_.fresh(RegClass::General, 64); }
  Reg any() { return random_.pick(values_); }
  void store(Reg r) {
    p_.code.push_back(make(Form::MovStore, 64, {kNoReg, r}, Address{.displacement = 64}));
  }

  void block(int depth) {
    const size_t outside = values_.size();
    for (int64_t n = random_.between(1, 12); n > 0; --n) {
      if (depth < 3 && random_.chance(15)) {
        p_.code.push_back({.form = kLoopBegin});
        block(depth + 1);
        p_.code.push_back({.form = kLoopEnd});
        continue;
      }
      if (depth < 3 && random_.chance(15)) {
        skipped(depth);
        continue;
      }
      instruction();
    }
    values_.resize(outside);  // what a loop computes is not seen outside, except by what it changes
  }

  void skipped(int depth) {
    const Reg condition = any();
    const int32_t end = p_.labels++;
    p_.code.push_back(make(Form::Test, 64, {condition, condition}));
    p_.code.push_back(make(Form::Jcc, 0, {}, x86::kEqual));
    p_.code.back().label = end;
    block(depth + 1);
    p_.code.push_back({.form = kLabel, .label = end});
  }

  void instruction() {
    switch (random_.below(8)) {
      case 6: return load();
      case 7:
        if (random_.chance(70)) return load();
        return p_.code.push_back(make(Form::MovStore, 64, {kNoReg, any()}, address()));
      case 0: return p_.code.push_back(make(Form::Add, 64, {any(), any()}));
      case 1: return store(any());
      case 2: return divide();
      case 3: return p_.code.push_back(make(Form::Mov, 64, {any(), any()}));
      default: break;
    }
    const Reg a = any(), b = any(), old = any(), to = random_.chance(70) ? fresh() : old;
    if (to != old) values_.push_back(to);
    p_.code.push_back(make(Form::Andn, 64, {to, a, b}));
    if (random_.chance(30)) return;
    store(values_.back());
  }

  Address address() {
    return {.base = any(), .index = random_.chance(50) ? any() : kNoReg, .displacement = 8};
  }
  void load() {
    const Address from = address();
    const Reg to = random_.chance(80) ? fresh() : any();
    p_.code.push_back(make(Form::MovLoad, 64, {to}, from));
    values_.push_back(to);
  }

  void divide() {
    const Reg low = fresh(), high = fresh(), by = any(), from = any();
    p_.code.push_back(make(Form::Mov, 64, {low, from}));
    p_.code.push_back(make(Form::Mov, 64, {high, by}));
    p_.code.push_back(make(Form::Idiv, 64, {by, low, high}));
    p_.code.push_back(make(Form::Mov, 64, {any(), high}));
  }

  Random random_;
  MachineProgram p_;
  std::vector<Reg> values_;
};

TEST(Allocate, RandomCodeComputesTheSame) {
  int64_t rematerialised = 0, in_memory = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    const MachineProgram before = RandomCode(seed).program();
    const std::vector<int64_t> expected = Machine().run(before);
    for (size_t registers : {5, 8, 16}) {
      MachineProgram after = before;
      codegen::allocate(after, Resized(registers));
      ASSERT_EQ(Machine().run(after), expected) << "seed " << seed << ", " << registers;
      rematerialised += after.rematerialised;
      in_memory += after.in_memory;
    }
  }
  EXPECT_GT(rematerialised, 1000);
  EXPECT_GT(in_memory, 1000);
}

/// GPUs have hundreds of registers in a class.
TEST(Allocate, AClassMayHaveHundredsOfRegisters) {
  MachineProgram p;
  const Reg sum = p.fresh(RegClass::General, 64);
  p.code.push_back(make(Form::MovI64, 64, {sum}, 0));
  std::vector<Reg> live;
  for (int k = 0; k < 280; ++k) {
    live.push_back(p.fresh(RegClass::General, 64));
    p.code.push_back(make(Form::Mov, 64, {live.back(), sum}));
    p.code.push_back(make(Form::AddI, 64, {live.back()}, k));
  }
  for (Reg r : live) p.code.push_back(make(Form::Add, 64, {sum, r}));
  p.code.push_back(make(Form::MovStore, 64, {kNoReg, sum}, Address{.displacement = 64}));
  const auto expected = Machine().run(p);
  MachineProgram few = p;
  codegen::allocate(p, Resized(300));
  EXPECT_EQ(Machine().run(p), expected);
  EXPECT_EQ(p.frame_bytes, 0);
  codegen::allocate(few, Resized(15));
  EXPECT_EQ(Machine().run(few), expected);
  EXPECT_GT(few.frame_bytes, 0);
}

/// Of more loads than there are registers, those that nothing changes are loaded at their uses.
TEST(Allocate, LoadsAreRepeatedRatherThanSpilled) {
  MachineProgram p;
  const Reg base = p.fresh(RegClass::General, 64), sum = p.fresh(RegClass::General, 64);
  p.code.push_back(make(Form::MovI64, 64, {base}, 0));
  p.code.push_back(make(Form::MovI64, 64, {sum}, 0));
  std::vector<Reg> loaded;
  for (int32_t k = 0; k < 12; ++k) {
    loaded.push_back(p.fresh(RegClass::General, 64));
    p.code.push_back(
        make(Form::MovLoad, 64, {loaded.back()}, Address{.base = base, .displacement = k}));
  }
  for (int round = 0; round < 2; ++round)
    for (Reg r : loaded) p.code.push_back(make(Form::Add, 64, {sum, r}));
  p.code.push_back(make(Form::MovStore, 64, {kNoReg, sum}, Address{.displacement = 64}));
  MachineProgram stored = p;  // the same with a store in between
  stored.code.insert(stored.code.begin() + 20, make(Form::MovStore, 64, {kNoReg, sum},
                                                    Address{.base = base, .displacement = 1}));
  const auto expected = Machine().run(p);
  codegen::allocate(p, Resized(8));
  EXPECT_EQ(Machine().run(p), expected);
  EXPECT_EQ(p.in_memory, 0);
  EXPECT_EQ(p.frame_bytes, 0);
  EXPECT_GT(p.rematerialised, 0);
  codegen::allocate(stored, Resized(8));
  EXPECT_GT(stored.in_memory, 0);
}

/// Sums keep their registers where what they add can be loaded again: once for uses side by side.
TEST(Allocate, LoadsGiveWayToSums) {
  MachineProgram p;
  constexpr int32_t kLoads = 10, kRounds = 2;
  const Reg base = p.fresh(RegClass::General, 64);
  std::vector<Reg> sums, loaded;
  p.code.push_back(make(Form::MovI64, 64, {base}, 0));
  p.code.push_back(make(Form::AddI, 64, {base}, 0));
  for (int k = 0; k < 12; ++k) {
    sums.push_back(p.fresh(RegClass::General, 64));
    p.code.push_back(make(Form::Mov, 64, {sums.back(), base}));
  }
  for (int32_t k = 0; k < kLoads; ++k) {
    loaded.push_back(p.fresh(RegClass::General, 64));
    p.code.push_back(
        make(Form::MovLoad, 64, {loaded.back()}, Address{.base = base, .displacement = k}));
  }
  for (int round = 0; round < kRounds; ++round)
    for (Reg r : loaded)
      for (size_t k = 0; k < sums.size(); ++k) p.code.push_back(make(Form::Add, 64, {sums[k], r}));
  for (Reg r : sums)
    p.code.push_back(make(Form::MovStore, 64, {kNoReg, r}, Address{.displacement = 64}));
  codegen::allocate(p, Resized(16));
  EXPECT_LE(p.in_memory, 1);  // the base
  EXPECT_LE(std::ranges::count(p.code, static_cast<uint16_t>(Form::MovLoad), &Instruction::form),
            2 * kRounds * kLoads);
}

TEST(DeadCode, WhatIsStoredStays) {
  size_t before = 0, after = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    MachineProgram p = RandomCode(seed).program();
    const std::vector<int64_t> expected = Machine().run(p);
    before += p.code.size();
    codegen::remove_dead_code(p, x86::instruction_set());
    after += p.code.size();
    ASSERT_EQ(Machine().run(p), expected) << "seed " << seed;
  }
  EXPECT_LT(after, before);
}

/// A sum that only it itself reads goes, with what it is made of; what is compared stays.
TEST(DeadCode, CountersThatNobodyReadsGo) {
  MachineProgram p;
  const Reg sum = p.fresh(RegClass::General, 64), one = p.fresh(RegClass::General, 64),
            limit = p.fresh(RegClass::General, 64);
  for (Reg r : {sum, one, limit}) p.code.push_back(make(Form::MovI64, 64, {r}, 1));
  p.code.push_back({.form = kLoopBegin});
  p.code.push_back(make(Form::Add, 64, {sum, one}));
  p.code.push_back(make(Form::CmpI, 64, {limit}, 3));
  p.code.push_back({.form = kLoopEnd});
  codegen::remove_dead_code(p, x86::instruction_set());
  ASSERT_EQ(p.code.size(), 4U);
  EXPECT_EQ(p.code[0].regs[0], limit);
}

TEST(Allocate, ChainsNeedNoMoves) {
  MachineProgram p;
  Reg sum = p.fresh(RegClass::Vector, 512);
  p.code.push_back(make(Form::VMovups, 512, {sum}, Address{.label = 0}));
  for (int k = 0; k < 4; ++k) {
    const Reg next = p.fresh(RegClass::Vector, 512);
    p.code.push_back(make(Form::VMovaps, 512, {next, sum}));
    p.code.push_back(make(Form::VFmadd231Ps, 512, {next, next, next}));
    sum = next;
  }
  p.code.push_back(make(Form::VMovupsStore, 512, {kNoReg, sum}, Address{.base = 7}));
  codegen::allocate(p, x86::instruction_set());
  EXPECT_EQ(p.code.size(), 6U);
}

TEST(Allocate, ConstantsAreComputedAgain) {
  MachineProgram p;
  std::vector<Reg> all;
  for (int k = 0; k < 10; ++k) {
    all.push_back(p.fresh(RegClass::General, 64));
    p.code.push_back(make(Form::MovI64, 64, {all.back()}, k));
  }
  for (Reg r : all)
    p.code.push_back(make(Form::MovStore, 64, {kNoReg, r}, Address{.displacement = 64}));
  const std::vector<int64_t> expected = Machine().run(p);
  codegen::allocate(p, Resized(4));
  EXPECT_EQ(p.frame_bytes, 0);
  EXPECT_EQ(Machine().run(p), expected);
}

/// However often something is used around a loop of many rounds, what that sums up has registers.
TEST(Allocate, LoopsOfManyRoundsKeepTheirSums) {
  constexpr int kSums = 5, kUses = 8;
  MachineProgram p;
  const Reg given = p.fresh(RegClass::General, 64), z = p.fresh(RegClass::General, 64);
  p.code.push_back(make(Form::MovLoad, 64, {given}, Address{.displacement = 8}));
  p.code.push_back(make(Form::Andn, 64, {z, given, given}));
  p.code.push_back({.form = kLoopBegin});
  std::vector<Reg> sums;
  for (int k = 0; k < kSums; ++k) {
    sums.push_back(p.fresh(RegClass::General, 64));
    p.code.push_back(make(Form::Mov, 64, {sums.back(), z}));
  }
  p.code.push_back({.form = kLoopBegin, .immediate = 512});
  const Reg factor = p.fresh(RegClass::General, 64);
  p.code.push_back(make(Form::Andn, 64, {factor, sums[0], sums[1]}));
  for (Reg sum : sums) p.code.push_back(make(Form::Add, 64, {sum, factor}));
  p.code.push_back({.form = kLoopEnd});
  for (int use = 0; use < kUses; ++use)
    for (Reg sum : sums) p.code.push_back(make(Form::Add, 64, {sum, z}));
  for (Reg sum : sums)
    p.code.push_back(make(Form::MovStore, 64, {kNoReg, sum}, Address{.displacement = 64}));
  p.code.push_back({.form = kLoopEnd});
  codegen::allocate(p, Resized(kSums + 1));
  bool inside = false;
  for (const Instruction& i : p.code) {
    if (i.form == kLoopBegin) inside = i.immediate > 0;
    if (i.form == kLoopEnd) inside = false;
    EXPECT_FALSE(inside && i.has_memory);
  }
  EXPECT_EQ(p.in_memory, 1);
}

TEST(Allocate, TheCheckFindsASharedRegister) {
  MachineProgram p;
  const Reg a = p.fresh(RegClass::General, 64), b = p.fresh(RegClass::General, 64);
  p.code.push_back(make(Form::MovI64, 64, {a}, 1));
  p.code.push_back(make(Form::MovI64, 64, {b}, 2));
  p.code.push_back(make(Form::Add, 64, {a, b}));
  EXPECT_NO_THROW(codegen::check_assignment(p, std::vector<Reg>{0, 1}, x86::instruction_set()));
  EXPECT_THROW(codegen::check_assignment(p, std::vector<Reg>{1, 1}, x86::instruction_set()),
               InternalError);
}

TEST(Allocate, TwoValuesInOneFixedRegisterAreRefused) {
  MachineProgram p;
  const Reg a = p.fresh(RegClass::General, 64), b = p.fresh(RegClass::General, 64);
  p.of(a).fixed = p.of(b).fixed = x86::kRax;
  p.code.push_back(make(Form::Add, 64, {a, b}));
  EXPECT_THROW(codegen::allocate(p, x86::instruction_set()), InternalError);
}

}  // namespace
}  // namespace weft
