// Which instructions selection chooses, at every level of instruction sets.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/device/programs.h"
#include "tests/support/compiler/isa_levels.h"
#include "weft/codegen/x86/select.h"
#include "weft/isa/x86.h"

namespace weft::codegen {
namespace {

using testing::ProgramBuilder;
using x86::Form;

/// out[i] = make(x[i], y[i]) on `lanes` lanes, as instructions before allocation.
template <class Make>
std::vector<Instruction> selected(const std::string& level, DType from, DType to, int lanes,
                                  Make make) {
  ProgramBuilder b("select");
  NodeRef out = b.param(to, true), x = b.param(from), y = b.param(from);
  NodeRef r = b.open(b.i32(64), Binding::Core);
  NodeRef i = b.alu(Op::Mul, {r, b.i32(lanes)});
  NodeRef a = b.load(x, i, lanes), c = b.load(y, i, lanes);
  b.store(out, i, make(b, a, c));
  b.close(r);
  const Target target = make_target("x86", CpuFeatures::detect().up_to(level), 1);
  return select_x86(b.build(), target).code;
}

ptrdiff_t count(const std::vector<Instruction>& code, std::initializer_list<Form> forms) {
  return std::count_if(code.begin(), code.end(), [&](const Instruction& i) {
    return std::find(forms.begin(), forms.end(), static_cast<Form>(i.form)) != forms.end();
  });
}

class X86Select : public ::testing::TestWithParam<std::string> {};

TEST_P(X86Select, AddingANegationSubtracts) {
  for (bool first : {false, true}) {
    const auto code = selected(
        GetParam(), DType::F32, DType::F32, 8, [&](ProgramBuilder& b, NodeRef x, NodeRef y) {
          NodeRef minus = b.alu(Op::Neg, {x});
          return first ? b.alu(Op::Add, {minus, y}) : b.alu(Op::Add, {y, minus});
        });
    EXPECT_EQ(count(code, {Form::VSubPs}), 1);
    EXPECT_EQ(count(code, {Form::VAddPs}), 0);
    const auto sub = std::find_if(code.begin(), code.end(), [](const Instruction& i) {
      return i.form == static_cast<uint16_t>(Form::VSubPs);
    });
    EXPECT_GT(sub->regs[1], sub->regs[2]);  // y, which was loaded last, is what x is taken from
  }
}

TEST_P(X86Select, FusedOperationsTakeNegationsIn) {
  struct {
    bool product, sum;
    Form form;
  } constexpr kSigns[] = {{false, true, Form::VFmsub231Ps},
                          {true, false, Form::VFnmadd231Ps},
                          {true, true, Form::VFnmsub231Ps}};
  for (const auto& signs : kSigns) {
    const auto code = selected(
        GetParam(), DType::F32, DType::F32, 8, [&](ProgramBuilder& b, NodeRef x, NodeRef y) {
          NodeRef minus_x = b.alu(Op::Neg, {x}), minus_y = b.alu(Op::Neg, {y});
          return b.alu(Op::MulAcc, {signs.product ? minus_x : x, y, signs.sum ? minus_y : y});
        });
    EXPECT_EQ(count(code, {signs.form}), 1);
    EXPECT_EQ(count(code, {Form::VFmadd231Ps}), 0);
  }
}

TEST_P(X86Select, StepsOfTranspositionsWithinBlocksNeedNoTableOfPlaces) {
  const Target target = make_target("x86", CpuFeatures::detect().up_to(GetParam()), 1);
  if (!target.permutes_pairs(DType::F32)) GTEST_SKIP() << "registers transpose nothing";
  const int lanes = target.lanes(DType::F32);
  for (int64_t size = 1; size < lanes; size *= 2) {
    const auto code = selected(
        GetParam(), DType::F32, DType::F32, lanes, [&](ProgramBuilder& b, NodeRef x, NodeRef y) {
          return b.emit(Op::Trn, DType::F32, {x, y}, {size, 1}, static_cast<uint16_t>(lanes));
        });
    EXPECT_EQ(count(code, {Form::VShufps}), size == 2) << size;
    EXPECT_EQ(count(code, {Form::VPermT2D}), size != 2) << size;
  }
}

TEST_P(X86Select, ExtremesOfNumbersNeedNoTestForNan) {
  auto with = [&](double v) {
    return selected(GetParam(), DType::F32, DType::F32, 8,
                    [&](ProgramBuilder& b, NodeRef x, NodeRef) {
                      NodeRef c = b.emit(Op::Splat, DType::F32, {b.constant(DType::F32, v)}, {}, 8);
                      return b.alu(Op::Max, {x, c});
                    });
  };
  EXPECT_EQ(count(with(2), {Form::VCmpPs, Form::VCmpPsK}), 0);
  EXPECT_EQ(count(with(NAN), {Form::VCmpPs, Form::VCmpPsK}), 1);
}

TEST_P(X86Select, ConstantsAreMadeBeforeLoops) {
  const auto code =
      selected(GetParam(), DType::I32, DType::I32, 8, [](ProgramBuilder& b, NodeRef x, NodeRef) {
        NodeRef c = b.emit(Op::Splat, DType::I32, {b.i32(7)}, {}, 8);
        return b.alu(Op::Add, {x, c});
      });
  const auto loop = std::find_if(code.begin(), code.end(),
                                 [](const Instruction& i) { return i.form == kLoopBegin; });
  EXPECT_EQ(count({code.begin(), loop}, {Form::VPbroadcastQ}), 1);
  EXPECT_EQ(count({loop, code.end()}, {Form::VPbroadcastQ, Form::VPbroadcastD}), 0);
}

/// Lanes one at a time would go through the frame.
TEST_P(X86Select, CastsOfManyLanesAreInstructions) {
  struct {
    DType from, to;
  } constexpr kCasts[] = {
      {DType::F16, DType::F32}, {DType::F32, DType::BF16}, {DType::I8, DType::F32},
      {DType::F32, DType::U8},  {DType::U32, DType::F64},  {DType::F64, DType::I16},
      {DType::I64, DType::I8},  {DType::Bool, DType::F64}, {DType::F16, DType::Bool}};
  for (const auto& c : kCasts)
    for (int lanes : {2, 16, 64}) {
      const auto code = selected(GetParam(), c.from, c.to, lanes,
                                 [to = c.to](ProgramBuilder& b, NodeRef x, NodeRef) {
                                   return b.emit(Op::Cast, to, {x}, {}, x->lanes);
                                 });
      EXPECT_TRUE(std::none_of(
          code.begin(), code.end(),
          [](const Instruction& i) { return i.has_memory && i.address.base == x86::kRsp; }))
          << name(c.from) << " to " << name(c.to) << ", " << lanes << " lanes";
    }
}

// One lane at the border of an image, say, and all others equal: no lane is inserted for itself.
TEST_P(X86Select, FewFloatsInManyLanesAreSpread) {
  for (const int few : {2, 3, 4}) {
    const auto code = selected(
        GetParam(), DType::F32, DType::F32, 8, [few](ProgramBuilder& b, NodeRef x, NodeRef y) {
          std::vector<NodeRef> lanes;
          for (int k = 0; k < 8; ++k) {
            const int which = k < few ? k : 0;
            NodeRef of = which % 2 ? y : x;
            lanes.push_back(b.alu(
                Op::Mul, {b.emit(Op::Lane, DType::F32, {of}, {which}), b.constant(DType::F32, 2)}));
          }
          return b.emit(Op::Vec, DType::F32, lanes, {}, 8);
        });
    EXPECT_EQ(count(code, {Form::VPermD}), 1) << few;
    EXPECT_LE(count(code, {Form::VUnpcklps, Form::VUnpcklpd}), few == 2 ? 1 : 3) << few;
  }
}

TEST_P(X86Select, VectorsThatAreRepeatedAreSpreadAsTheyAreLoaded) {
  const Target target = make_target("x86", CpuFeatures::detect().up_to(GetParam()), 1);
  for (int each = 4; each < target.lanes(DType::F32); each *= 2) {
    const auto code = selected(
        GetParam(), DType::F32, DType::F32, each, [&](ProgramBuilder& b, NodeRef x, NodeRef) {
          const int all = target.lanes(DType::F32);
          std::vector<NodeRef> lanes;
          for (int k = 0; k < all; ++k)
            lanes.push_back(b.emit(Op::Lane, DType::F32, {x}, {k % each}));
          return b.emit(Op::Vec, DType::F32, lanes, {}, static_cast<uint16_t>(all));
        });
    EXPECT_EQ(count(code, {Form::VBroadcastI128, Form::VBroadcastI32x4, Form::VBroadcastI64x4}), 1)
        << each;
    EXPECT_EQ(count(code, {Form::VInsertI128, Form::VInsertI32x4, Form::VInsertI64x4}), 0) << each;
  }
}

/// NaN is kept out by the conversion's mask, and what is below its range becomes the least integer
/// by itself.
TEST_P(X86Select, CastsToIntegersTestWhatTheyMust) {
  if (GetParam() == "avx2") GTEST_SKIP() << "conversions without masks, of 32 bits";
  struct {
    DType from, to;
    ptrdiff_t tests, limits;  // comparisons; minima and maxima
  } constexpr kCasts[] = {{DType::F32, DType::I32, 2, 0}, {DType::F32, DType::I64, 2, 0},
                          {DType::F64, DType::I32, 1, 1}, {DType::F64, DType::I64, 2, 0},
                          {DType::BF16, DType::I8, 1, 1}, {DType::F64, DType::I16, 1, 1},
                          {DType::F32, DType::U32, 0, 1}, {DType::F64, DType::U64, 0, 1},
                          {DType::F16, DType::U16, 0, 1}, {DType::F32, DType::U8, 0, 1}};
  for (const auto& c : kCasts) {
    SCOPED_TRACE(std::string(name(c.from)) + " to " + std::string(name(c.to)));
    const auto code =
        selected(GetParam(), c.from, c.to, 8, [to = c.to](ProgramBuilder& b, NodeRef x, NodeRef) {
          return b.emit(Op::Cast, to, {x}, {}, x->lanes);
        });
    EXPECT_EQ(count(code, {Form::VCmpPsK, Form::VCmpPdK}), c.tests);
    EXPECT_EQ(count(code, {Form::VMinPs, Form::VMinPd, Form::VMaxPs, Form::VMaxPd}), c.limits);
  }
}

TEST_P(X86Select, ShiftsByOneNumberTakeItFromTheInstruction) {
  for (const DType dtype : {DType::I32, DType::U32}) {
    const auto code =
        selected(GetParam(), dtype, dtype, 8, [](ProgramBuilder& b, NodeRef x, NodeRef) {
          NodeRef by = b.emit(Op::Splat, x->dtype, {b.constant(x->dtype, 3)}, {}, x->lanes);
          return b.alu(Op::Shr, {x, by});
        });
    EXPECT_GE(count(code, {dtype == DType::I32 ? Form::VPsraDi : Form::VPsrlDi}), 1) << name(dtype);
    EXPECT_EQ(count(code, {Form::VPsravD, Form::VPsrlvD}), 0) << name(dtype);
  }
}

NodeRef below_ten(ProgramBuilder& b, NodeRef i) { return b.alu(Op::Lt, {i, b.i32(10)}); }

/// out[i] = make(b, out, i), for all i or those below ten.
template <class Make>
std::vector<Instruction> updated(const std::string& level, DType dtype, Make make,
                                 bool masked = false) {
  ProgramBuilder b("update");
  NodeRef out = b.param(dtype, true);
  NodeRef i = b.open(b.i32(64), Binding::Core);
  NodeRef value = make(b, out, i);
  b.store(out, i, value, masked ? below_ten(b, i) : nullptr);
  b.close(i);
  const Target target = make_target("x86", CpuFeatures::detect().up_to(level), 1);
  return select_x86(b.build(), target).code;
}

TEST_P(X86Select, WhatIsAddedToAnIntegerIsAddedInMemory) {
  const auto in_memory = [](const std::vector<Instruction>& code) {
    return std::ranges::count_if(code, [](const Instruction& i) {
      return i.form == static_cast<uint16_t>(Form::Add) && i.has_memory;
    });
  };
  for (const DType dtype : {DType::I32, DType::U32, DType::I64, DType::U64}) {
    SCOPED_TRACE(std::string(name(dtype)));
    const auto counts = updated(GetParam(), dtype, [&](auto& b, NodeRef out, NodeRef i) {
      return b.alu(Op::Add, {b.load(out, i), b.constant(dtype, 1)});
    });
    EXPECT_EQ(in_memory(counts), 1);
    EXPECT_EQ(count(counts, {Form::MovStore}), 0);
    const auto doubled = updated(GetParam(), dtype, [&](auto& b, NodeRef out, NodeRef i) {
      NodeRef x = b.load(out, i);
      return b.alu(Op::Add, {x, x});
    });
    EXPECT_EQ(in_memory(doubled), 0) << "it is read twice";
    const auto moved = updated(GetParam(), dtype, [&](auto& b, NodeRef out, NodeRef i) {
      return b.alu(Op::Add, {b.load(out, b.alu(Op::Add, {i, b.i32(1)})), b.constant(dtype, 1)});
    });
    EXPECT_EQ(in_memory(moved), 0) << "it lies elsewhere";
    const auto stale = updated(GetParam(), dtype, [&](auto& b, NodeRef out, NodeRef i) {
      NodeRef x = b.load(out, i);
      b.store(out, b.alu(Op::Add, {i, b.i32(1)}), b.constant(dtype, 7));
      return b.alu(Op::Add, {x, b.constant(dtype, 1)});
    });
    EXPECT_EQ(in_memory(stale), 0) << "it may have been written since";
    for (const bool store_too : {false, true}) {
      const auto masked = updated(
          GetParam(), dtype,
          [&](auto& b, NodeRef out, NodeRef i) {
            return b.alu(Op::Add, {b.load(out, i, 1, below_ten(b, i)), b.constant(dtype, 1)});
          },
          store_too);
      EXPECT_EQ(in_memory(masked), store_too ? 1 : 0) << "elsewhere it is 0 + 1";
    }
  }
  const auto narrow = updated(GetParam(), DType::I16, [&](auto& b, NodeRef out, NodeRef i) {
    return b.alu(Op::Add, {b.load(out, i), b.constant(DType::I16, 1)});
  });
  EXPECT_EQ(in_memory(narrow), 0);
}

/// What was an integer is no subnormal number, which the instruction would take for 0.
TEST_P(X86Select, IntegersBecomeBfloatsByTheInstruction) {
  const CpuFeatures cpu = CpuFeatures::detect().up_to(GetParam());
  for (const DType from : {DType::I8, DType::U16, DType::I32, DType::F32}) {
    const auto code =
        selected(GetParam(), from, DType::BF16, 16, [](ProgramBuilder& b, NodeRef x, NodeRef) {
          if (x->dtype == DType::I32) x = b.emit(Op::Cast, DType::F32, {x}, {}, x->lanes);
          return b.emit(Op::Cast, DType::BF16, {x}, {}, x->lanes);
        });
    const bool by_instruction = from != DType::F32 && cpu.has(CpuFeature::Avx512bf16);
    EXPECT_EQ(count(code, {Form::VCvtneps2bf16}), by_instruction) << name(from);
  }
}

/// out[8 i ...] = sum over j of x[800 i + 8 j ...] * y[8 j ...], or of one of several matrices x,
/// which is another every `chosen` rows.
LinearProgram sum_along_rows(int32_t chosen = 0) {
  ProgramBuilder b("rows");
  NodeRef out = b.param(DType::F32, true), x = b.param(DType::F16), y = b.param(DType::F32);
  NodeRef ids = b.param(DType::I32);
  NodeRef i = b.open(b.i32(64), Binding::Core), row = i;
  if (chosen > 0) {
    NodeRef id = b.load(ids, b.alu(Op::CDiv, {i, b.i32(chosen)}));
    row = b.alu(Op::Add, {i, b.alu(Op::Mul, {id, b.i32(64)})});
  }
  NodeRef zero = b.emit(Op::Splat, DType::F32, {b.constant(DType::F32, 0)}, {}, 8);
  NodeRef acc = b.emit(Op::Acc, DType::F32, {zero}, {0}, 8);
  NodeRef j = b.open(b.i32(100));
  NodeRef so_far = b.emit(Op::GetAcc, DType::F32, {acc}, {0}, 8);
  NodeRef along = b.alu(Op::Mul, {j, b.i32(8)});
  NodeRef at = b.alu(Op::Add, {b.alu(Op::Mul, {row, b.i32(800)}), along});
  NodeRef wide = b.emit(Op::Cast, DType::F32, {b.load(x, at, 8)}, {}, 8);
  NodeRef product = b.alu(Op::Mul, {wide, b.load(y, along, 8)});
  b.emit(Op::SetAcc, DType::F32, {acc, b.alu(Op::Add, {so_far, product})}, {}, 8);
  b.close(j);
  b.store(out, b.alu(Op::Mul, {i, b.i32(8)}), b.emit(Op::GetAcc, DType::F32, {acc}, {1}, 8));
  b.close(i);
  return b.build();
}

/// Of more than caches hold.
TEST_P(X86Select, WhatTheNextItemReadsIsFetchedAhead) {
  const Target target = make_target("x86", CpuFeatures::detect().up_to(GetParam()), 1);
  LinearProgram program = sum_along_rows();
  EXPECT_EQ(count(select_x86(program, target).code, {Form::Prefetcht0}), 0);
  program.bytes = 1e9, program.flops = 1e9;
  const std::vector<Instruction> code = select_x86(program, target).code;
  ASSERT_EQ(count(code, {Form::Prefetcht0}), 1);
  const auto fetched = std::ranges::find_if(
      code, [](const Instruction& n) { return n.form == static_cast<uint16_t>(Form::Prefetcht0); });
  EXPECT_EQ(fetched->address.displacement, 1600);
  program.flops = 1e11;
  EXPECT_EQ(count(select_x86(program, target).code, {Form::Prefetcht0}), 0);
}

/// out[8 i ...] = sums over j and four rows of x[(4 i + row) length + 8 j ...], so many lanes, of
/// more than caches hold; `rounds` of them to a work item.
LinearProgram sum_of_four_rows(int64_t length, int64_t rounds = 1, DType dtype = DType::F16,
                               int lanes = 8) {
  ProgramBuilder b("rows");
  NodeRef out = b.param(DType::F32, true), x = b.param(dtype);
  NodeRef item = b.open(b.i32(64), Binding::Core), i = item, round = nullptr;
  if (rounds > 1) {
    round = b.open(b.i32(rounds));
    i = b.alu(Op::Add, {b.alu(Op::Mul, {item, b.i32(rounds)}), round});
  }
  NodeRef zero = b.emit(Op::Splat, DType::F32, {b.constant(DType::F32, 0)}, {}, 8);
  NodeRef acc = b.emit(Op::Acc, DType::F32, {zero}, {0}, 8);
  NodeRef j = b.open(b.i32(length / 8));
  NodeRef first =
      b.alu(Op::Add, {b.alu(Op::Mul, {i, b.i32(4 * length)}), b.alu(Op::Mul, {j, b.i32(8)})});
  NodeRef sum = b.emit(Op::GetAcc, DType::F32, {acc}, {0}, 8);
  for (int64_t row = 0; row < 4; ++row) {
    NodeRef part = b.load(x, b.alu(Op::Add, {first, b.i32(row * length)}), lanes);
    if (dtype != DType::F32) part = b.emit(Op::Cast, DType::F32, {part}, {}, lanes);
    if (lanes == 1) part = b.emit(Op::Splat, DType::F32, {part}, {}, 8);
    sum = b.alu(Op::Add, {sum, part});
  }
  b.emit(Op::SetAcc, DType::F32, {acc, sum}, {}, 8);
  b.close(j);
  b.store(out, b.alu(Op::Mul, {i, b.i32(8)}), b.emit(Op::GetAcc, DType::F32, {acc}, {1}, 8));
  if (round) b.close(round);
  b.close(item);
  LinearProgram program = b.build();
  program.bytes = 1e9, program.flops = 1e9;
  return program;
}

/// A line for all of them in each iteration, to L2 where L1 would not keep it, however long rows
/// are.
TEST_P(X86Select, RowsThatAreWalkedSideBySideAreFetchedInTheOrderOfMemory) {
  const Target target = make_target("x86", CpuFeatures::detect().up_to(GetParam()), 1);
  for (const auto& [length, near, later] : {std::tuple(800, 1, 0), {1600, 0, 1}, {8000, 0, 1}}) {
    const std::vector<Instruction> code = select_x86(sum_of_four_rows(length), target).code;
    EXPECT_EQ(count(code, {Form::Prefetcht0}), near) << length;
    EXPECT_EQ(count(code, {Form::Prefetcht1}), later) << length;
  }
  // Also numbers that are multiplied one by one; vectors of them the machine follows.
  for (const auto& [lanes, fetched] : {std::pair(1, 2), {8, 0}}) {
    const LinearProgram program = sum_of_four_rows(400, 1, DType::F32, lanes);
    EXPECT_EQ(count(select_x86(program, target).code, {Form::Prefetcht0}), fetched) << lanes;
  }
  // Each of an item's rounds fetches its share of the next one's.
  const std::vector<Instruction> code = select_x86(sum_of_four_rows(800, 16), target).code;
  EXPECT_EQ(count(code, {Form::Prefetcht1}), 1);
}

/// Of packed weights, of which little is a lot of work: products of bytes are four in the time of
/// one. What multiplies many rows by them waits for its pipes.
TEST_P(X86Select, PackedWeightsOfTheNextItemAreFetchedAheadForAFewRows) {
  const CpuFeatures cpu = CpuFeatures::detect().up_to(GetParam());
  const Target target = make_target("x86", cpu, 1);
  ProgramBuilder b("rows");
  NodeRef out = b.param(DType::I32, true), x = b.param(DType::U32);
  NodeRef i = b.open(b.i32(64), Binding::Core);
  NodeRef zero = b.emit(Op::Splat, DType::I32, {b.i32(0)}, {}, 8);
  NodeRef acc = b.emit(Op::Acc, DType::I32, {zero}, {0}, 8);
  NodeRef j = b.open(b.i32(100));
  NodeRef at = b.alu(Op::Add, {b.alu(Op::Mul, {i, b.i32(800)}), b.alu(Op::Mul, {j, b.i32(8)})});
  NodeRef words = b.load(x, at, 8);
  NodeRef so_far = b.emit(Op::GetAcc, DType::I32, {acc}, {0}, 8);
  // Without products of bytes as those of pairs are (lower/dot_products.cpp).
  const auto by_pairs = [&] {
    NodeRef ones = b.emit(Op::Splat, DType::U32, {b.constant(DType::U32, 0x00010001)}, {}, 8);
    NodeRef pairs = b.emit(Op::DotPairs, DType::U32, {words, words}, {}, 8);
    return b.emit(Op::Dot2I16, DType::I32, {pairs, ones, so_far}, {}, 8);
  };
  NodeRef sum = target.native(Op::Dot4, DType::I32)
                    ? b.emit(Op::Dot4, DType::I32, {words, words, so_far}, {}, 8)
                    : by_pairs();
  b.emit(Op::SetAcc, DType::I32, {acc, sum}, {}, 8);
  b.close(j);
  b.store(out, b.alu(Op::Mul, {i, b.i32(8)}), b.emit(Op::GetAcc, DType::I32, {acc}, {1}, 8));
  b.close(i);
  LinearProgram program = b.build();
  program.bytes = 1e9;
  for (const auto& [operations, fetched] : {std::pair(1e11, 1), {2e11, 0}}) {
    program.flops = operations;
    EXPECT_EQ(count(select_x86(program, target).code, {Form::Prefetcht0}), fetched) << operations;
  }
}

/// As a mixture's experts are.
TEST_P(X86Select, TheNextItemOfAMatrixThatDataChooseIsFetchedAhead) {
  const Target target = make_target("x86", CpuFeatures::detect().up_to(GetParam()), 1);
  for (const auto& [chosen, fetched] : {std::pair(32, 1), {1, 0}}) {
    LinearProgram program = sum_along_rows(chosen);
    program.bytes = 1e9, program.flops = 1e9;
    EXPECT_EQ(count(select_x86(program, target).code, {Form::Prefetcht0}), fetched) << chosen;
  }
}

/// out[8 i ...] = sum over j of x[i + apart j] * y[8 j ...]
LinearProgram sum_of_far_rows(int64_t apart) {
  ProgramBuilder b("rows");
  NodeRef out = b.param(DType::F32, true), x = b.param(DType::F32), y = b.param(DType::F32);
  NodeRef i = b.open(b.i32(64), Binding::Core);
  NodeRef zero = b.emit(Op::Splat, DType::F32, {b.constant(DType::F32, 0)}, {}, 8);
  NodeRef acc = b.emit(Op::Acc, DType::F32, {zero}, {0}, 8);
  NodeRef item = b.alu(Op::Mul, {b.alu(Op::CMod, {i, b.i32(32)}), b.i32(16)});
  NodeRef j = b.open(b.i32(100));
  NodeRef so_far = b.emit(Op::GetAcc, DType::F32, {acc}, {0}, 8);
  NodeRef at = b.alu(Op::Add, {item, b.alu(Op::Mul, {j, b.i32(apart)})});
  NodeRef one = b.emit(Op::Splat, DType::F32, {b.load(x, at)}, {}, 8);
  NodeRef of_y = b.load(y, b.alu(Op::Mul, {j, b.i32(8)}), 8);
  b.emit(Op::SetAcc, DType::F32, {acc, b.emit(Op::MulAcc, DType::F32, {one, of_y, so_far}, {}, 8)},
         {}, 8);
  b.close(j);
  b.store(out, b.alu(Op::Mul, {i, b.i32(8)}), b.emit(Op::GetAcc, DType::F32, {acc}, {1}, 8));
  b.close(i);
  return b.build();
}

TEST_P(X86Select, WhatTheNextTileTakesOfEachPageIsFetchedToL2) {
  const CpuFeatures cpu = CpuFeatures::detect().up_to(GetParam());
  if (!cpu.has(CpuFeature::Fma)) GTEST_SKIP() << "no multiply-add";
  const Target target = make_target("x86", cpu, 1);
  const std::vector<Instruction> code = select_x86(sum_of_far_rows(2000), target).code;
  ASSERT_EQ(count(code, {Form::Prefetcht1}), 1);
  const auto fetched = std::ranges::find_if(
      code, [](const Instruction& n) { return n.form == static_cast<uint16_t>(Form::Prefetcht1); });
  EXPECT_EQ(fetched->address.displacement, 64);
  // Within a page prefetchers follow.
  EXPECT_EQ(count(select_x86(sum_of_far_rows(20), target).code, {Form::Prefetcht1}), 0);
}

/// out[8 i ...] = sum over j of x[8 i + apart j ...], of more than caches hold.
LinearProgram sum_down_rows(int64_t apart) {
  ProgramBuilder b("rows");
  NodeRef out = b.param(DType::F32, true), x = b.param(DType::F32);
  NodeRef i = b.open(b.i32(64), Binding::Core);
  NodeRef column = b.alu(Op::Mul, {i, b.i32(8)});
  NodeRef zero = b.emit(Op::Splat, DType::F32, {b.constant(DType::F32, 0)}, {}, 8);
  NodeRef acc = b.emit(Op::Acc, DType::F32, {zero}, {0}, 8);
  NodeRef j = b.open(b.i32(100));
  NodeRef so_far = b.emit(Op::GetAcc, DType::F32, {acc}, {0}, 8);
  NodeRef row = b.load(x, b.alu(Op::Add, {column, b.alu(Op::Mul, {j, b.i32(apart)})}), 8);
  b.emit(Op::SetAcc, DType::F32, {acc, b.alu(Op::Add, {so_far, row})}, {}, 8);
  b.close(j);
  b.store(out, column, b.emit(Op::GetAcc, DType::F32, {acc}, {1}, 8));
  b.close(i);
  LinearProgram program = b.build();
  program.bytes = 1e9, program.flops = 1e9;
  return program;
}

TEST_P(X86Select, WhatTheNextTileTakesOfRowsBeyondCachesIsFetchedToL2) {
  const Target target = make_target("x86", CpuFeatures::detect().up_to(GetParam()), 1);
  const auto fetches = [&](const LinearProgram& program) {
    std::vector<int32_t> at;
    for (const Instruction& n : select_x86(program, target).code)
      if (n.form == static_cast<uint16_t>(Form::Prefetcht1)) at.push_back(n.address.displacement);
    return at;
  };
  EXPECT_EQ(fetches(sum_down_rows(2000)), std::vector<int32_t>{32});
  // Within a page prefetchers follow.
  EXPECT_EQ(fetches(sum_down_rows(1000)), std::vector<int32_t>{});
  // What caches hold needs none.
  LinearProgram small = sum_down_rows(2000);
  small.bytes = 1e5;
  EXPECT_EQ(fetches(small), std::vector<int32_t>{});
}

/// out[8 i ...] = (sum over j of x[8 j ...]) + y[8 i ...] + y[0 ...]
TEST_P(X86Select, WhatIsAddedToASumIsFetchedWhileItIsComputed) {
  ProgramBuilder b("sum");
  NodeRef out = b.param(DType::F32, true), x = b.param(DType::F32), y = b.param(DType::F32);
  NodeRef i = b.open(b.i32(64), Binding::Core);
  NodeRef at = b.alu(Op::Mul, {i, b.i32(8)});
  NodeRef zero = b.emit(Op::Splat, DType::F32, {b.constant(DType::F32, 0)}, {}, 8);
  NodeRef acc = b.emit(Op::Acc, DType::F32, {zero}, {0}, 8);
  NodeRef j = b.open(b.i32(100));
  NodeRef so_far = b.emit(Op::GetAcc, DType::F32, {acc}, {0}, 8);
  NodeRef next = b.load(x, b.alu(Op::Mul, {j, b.i32(8)}), 8);
  b.emit(Op::SetAcc, DType::F32, {acc, b.alu(Op::Add, {so_far, next})}, {}, 8);
  b.close(j);
  NodeRef sum = b.emit(Op::GetAcc, DType::F32, {acc}, {1}, 8);
  NodeRef beside = b.load(y, at, 8), same = b.load(y, b.i32(0), 8);
  b.store(out, at, b.alu(Op::Add, {b.alu(Op::Add, {sum, beside}), same}));
  b.close(i);
  const Target target = make_target("x86", CpuFeatures::detect().up_to(GetParam()), 1);
  const std::vector<Instruction> code = select_x86(b.build(), target).code;
  EXPECT_EQ(count(code, {Form::Prefetcht0}), 1);
  const auto fetched = std::ranges::find_if(
      code, [](const Instruction& n) { return n.form == static_cast<uint16_t>(Form::Prefetcht0); });
  ASSERT_NE(fetched, code.end());
  EXPECT_EQ((fetched + 1)->form, kLoopBegin);
  const auto reads_it = [&](const Instruction& n) {
    return n.has_memory && n.address.base == fetched->address.base &&
           n.address.index == fetched->address.index;
  };
  const auto loaded = std::find_if(fetched + 1, code.end(), reads_it);
  ASSERT_NE(loaded, code.end());
  EXPECT_GT(loaded,
            std::ranges::find_if(code, [](const Instruction& n) { return n.form == kLoopEnd; }));
}

INSTANTIATE_TEST_SUITE_P(Levels, X86Select, ::testing::ValuesIn(testing::isa_levels()),
                         [](const auto& p) { return p.param; });

}  // namespace
}  // namespace weft::codegen
