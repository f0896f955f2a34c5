// Listings of machine code: what they say of instructions and loops.
#include "weft/codegen/x86/frame.h"

#include <gtest/gtest.h>

#include "weft/isa/x86.h"
#include "weft/isa/x86_estimate.h"

namespace weft {
namespace {

using x86::Form;
using x86::make;

constexpr Reg kIn = 1, kOut = 2, kCounter = 6;

/// out[i] = in[i] * in[i] + acc, 16 floats at a time; acc is zmm0.
MachineProgram squares() {
  MachineProgram p;
  p.labels = 1;
  p.code.push_back({.form = kLoopBegin});
  p.code.push_back({.form = kLabel, .label = 0});
  const Address in{.base = kIn, .index = kCounter, .scale = 4};
  const Address out{.base = kOut, .index = kCounter, .scale = 4};
  p.code.push_back(make(Form::VMovups, 512, {1}, in));
  p.code.push_back(make(Form::VFmadd231Ps, 512, {0, 1, 1}));
  p.code.push_back(make(Form::VMovupsStore, 512, {kNoReg, 0}, out));
  p.code.push_back(make(Form::AddI, 64, {kCounter}, 16));
  p.code.push_back(make(Form::CmpI, 64, {kCounter}, 1024));
  Instruction back = make(Form::Jcc, 64, {}, x86::kLess);
  back.label = 0;
  p.code.push_back(back);
  p.code.push_back({.form = kLoopEnd});
  return p;
}

TEST(Listing, SaysWhatInstructionsAndLoopsTake) {
  EXPECT_EQ(codegen::list_x86(squares()),

            R"(# 0 values in memory, 0 computed again where they are used, 0 bytes of frame
  # loop: 6 instructions, 4.0 cycles (store 1.0, chain 4.0), 64 bytes in, 64 out
.L0:
  vmovups zmm1, zmmword ptr [rcx + 4*rsi]                  ;  7 load
  vfmadd231ps zmm0, zmm1, zmm1                             ;  4 fmul
  vmovups zmmword ptr [rdx + 4*rsi], zmm0                  ;  1 store
  add rsi, 16                                              ;  1 alu
  cmp rsi, 1024                                            ;  1 alu
  jl .L0                                                   ;  1 branch
  # end of loop
  vzeroupper                                               ;  0 none
  ret                                                      ;  1 branch
)");
}

TEST(Listing, CountsWhatIsInMemory) {
  MachineProgram p = squares();
  p.in_memory = 3, p.rematerialised = 2, p.frame_bytes = 192;
  EXPECT_EQ(codegen::list_x86(p).substr(0, 72),
            "# 3 values in memory, 2 computed again where they are used, 192 bytes of");
}

// The sum waits for itself: four cycles of latency, whatever the ports could do.
TEST(Estimate, TheChainOfASum) {
  const MachineProgram p = squares();
  const x86::Estimate e = x86::estimate_loop(p.code);
  EXPECT_EQ(e.instructions, 6);
  EXPECT_EQ(e.chain, 4);
  EXPECT_EQ(e.loaded, 64);
  EXPECT_EQ(e.stored, 64);
}

TEST(Estimate, ThePortOfIndependentProducts) {
  std::vector<Instruction> code;
  for (Reg r = 0; r < 12; ++r) code.push_back(make(Form::VFmadd231Ps, 512, {r, 30, 31}));
  const x86::Estimate e = x86::estimate_loop(code);
  EXPECT_EQ(e.busiest, "fmul");
  EXPECT_EQ(e.ports, 6);
  EXPECT_EQ(e.cycles(), 6);
}

}  // namespace
}  // namespace weft
