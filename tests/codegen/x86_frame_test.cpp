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
  EXPECT_EQ(codegen::list_x86(squares(), Core::Unknown),

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
  EXPECT_EQ(codegen::list_x86(p, Core::Unknown).substr(0, 72),
            "# 3 values in memory, 2 computed again where they are used, 192 bytes of");
}

/// No vector in the frame or among the constants crosses a line.
TEST(Frames, BeginWithALine) {
  MachineProgram p;
  p.frame_bytes = 192;
  EXPECT_EQ(codegen::list_x86(p, Core::Unknown),
            R"(# 0 values in memory, 0 computed again where they are used, 192 bytes of frame
  mov rax, rsp                                             ;  1 alu
  sub rsp, 200                                             ;  1 alu
  and rsp, -64                                             ;  1 alu
  mov qword ptr [rsp + 192], rax                           ;  1 store
  mov rsp, qword ptr [rsp + 192]                           ;  4 load
  vzeroupper                                               ;  0 none
  ret                                                      ;  1 branch
)");
}

TEST(Frames, ConstantsLieWithinLines) {
  MachineProgram p;
  p.labels = 4;
  const auto bytes = [](size_t n, uint8_t of) { return std::vector<uint8_t>(n, of); };
  p.data = {{0, bytes(16, 1)}, {1, bytes(64, 2)}, {2, bytes(32, 3)}, {3, bytes(64, 4)}};
  const std::string code = codegen::encode_x86(p);
  for (const auto& [label, of] : p.data)
    EXPECT_EQ(code.find(std::string(of.begin(), of.end())) % of.size(), 0U) << label;
}

// The sum waits for itself: four cycles of latency, whatever the ports could do.
TEST(Estimate, TheChainOfASum) {
  const MachineProgram p = squares();
  const x86::Estimate e = x86::estimate_loop(p.code, Core::Unknown);
  EXPECT_EQ(e.instructions, 6);
  EXPECT_EQ(e.chain, 4);
  EXPECT_EQ(e.loaded, 64);
  EXPECT_EQ(e.stored, 64);
}

TEST(Estimate, ThePortOfIndependentProducts) {
  std::vector<Instruction> code;
  for (Reg r = 0; r < 12; ++r) code.push_back(make(Form::VFmadd231Ps, 512, {r, 30, 31}));
  const x86::Estimate e = x86::estimate_loop(code, Core::Unknown);
  EXPECT_EQ(e.busiest, "fmul");
  EXPECT_EQ(e.ports, 6);
  EXPECT_EQ(e.cycles(), 6);
  // Zen 4 takes 512 bits in two turns.
  EXPECT_EQ(x86::estimate_loop(code, Core::Zen4).ports, 12);
  EXPECT_EQ(x86::estimate_loop(code, Core::GoldenCove).ports, 6);
  for (Instruction& i : code) i.width = 256;
  for (const Core core : {Core::Zen4, Core::Zen5, Core::GoldenCove})
    EXPECT_EQ(x86::estimate_loop(code, core).ports, 6) << name_of(core);
}

TEST(Estimate, EveryCoreHasItsOwnLatencies) {
  const Instruction product = make(Form::VMulPs, 512, {0, 1, 2});
  EXPECT_EQ(x86::latency(product, Core::Zen4), 3);
  EXPECT_EQ(x86::latency(product, Core::Zen5), 3);
  EXPECT_EQ(x86::latency(product, Core::Unknown), 3);
  EXPECT_EQ(x86::latency(product, Core::GoldenCove), 4);
  const Instruction fma = make(Form::VFmadd231Ps, 512, {0, 1, 2});
  const Instruction load = make(Form::MovLoad, 64, {0}, Address{.base = 1});
  for (const Core core : {Core::Zen4, Core::Zen5, Core::GoldenCove}) {
    EXPECT_EQ(x86::latency(fma, core), 4) << name_of(core);
    EXPECT_EQ(x86::latency(load, core), core == Core::GoldenCove ? 5 : 4);
    EXPECT_NE(x86::estimate_source(core).find(" of " + std::string(name_of(core)) + " ("),
              std::string::npos);
    EXPECT_EQ(x86::estimate_source(core).find("not known"), std::string::npos);
  }
  EXPECT_NE(x86::estimate_source(Core::Unknown).find(" of Zen 5 ("), std::string::npos);
  EXPECT_NE(x86::estimate_source(Core::Unknown).find("not known"), std::string::npos);
}

/// A product of a loop's result and itself waits as long as the core's latency says.
TEST(Estimate, ChainsAreTheCores) {
  const std::vector<Instruction> code = {make(Form::VMulPs, 512, {0, 0, 0})};
  EXPECT_EQ(x86::estimate_loop(code, Core::Zen4).chain, 3);
  EXPECT_EQ(x86::estimate_loop(code, Core::GoldenCove).chain, 4);
}

}  // namespace
}  // namespace weft
