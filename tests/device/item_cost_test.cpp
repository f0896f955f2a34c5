// What a launch takes, by the sizes it has.
#include <gtest/gtest.h>

#include "tests/device/programs.h"
#include "weft/device/item_cost.h"

namespace weft::testing {
namespace {

/// A loop of `size`, which has another in it of twice that many iterations.
LinearProgram two_loops(ProgramBuilder& b, NodeRef size) {
  NodeRef to = b.param(DType::F32, true), two = b.i32(2), one = b.constant(DType::F32, 1);
  NodeRef outer = b.open(size);
  NodeRef inner = b.open(b.alu(Op::Mul, {size, two}));
  b.store(to, inner, one);
  b.close(inner);
  b.close(outer);
  return b.build();
}

TEST(ItemCost, FollowsTheSizesOfALaunch) {
  ProgramBuilder b("lengths");
  NodeRef n = b.variable("n", 0, 1000);
  const LinearProgram program = two_loops(b, b.emit(Op::Cast, DType::I32, {n}));
  const ItemCost cost(program, 1);
  const auto of = [&](int64_t value) { return cost({&value, 1}); };
  EXPECT_LT(of(0), 10);
  EXPECT_GT(of(10), 20 * of(0));
  EXPECT_NEAR(of(1000) / of(100), 100, 1);
  EXPECT_NEAR(ItemCost(program, 30)(std::vector<int64_t>{100}), 30 * of(100), 1);
}

TEST(ItemCost, IsThatOfTheSameLengthWrittenOut) {
  ProgramBuilder a("any"), b("one");
  NodeRef n = a.variable("n", 0, 1000);
  const ItemCost any(two_loops(a, a.emit(Op::Cast, DType::I32, {n})), 1);
  const ItemCost one(two_loops(b, b.i32(64)), 1);
  EXPECT_NEAR(any(std::vector<int64_t>{64}), one({}), 1);
}

TEST(ItemCost, MemoryIsWaitedForOnce) {
  ProgramBuilder b("stores");
  LinearProgram program = two_loops(b, b.i32(128));
  const double stores = 128 * 256;
  const auto of = [&](double bytes) {
    program.bytes = bytes;
    return ItemCost(program, 1)({});
  };
  const double unknown = of(0), far = of(stores * 64), again = of(64);
  EXPECT_NEAR(far, unknown, 1);
  EXPECT_LT(of(stores * 16), far / 2) << "small memory is near, and read four times";
  EXPECT_LT(again, far / 4) << "what is stored again lies in the first cache";
  program.core_size = b.i32(16);
  EXPECT_NEAR(of(16 * stores * 64), far, 1) << "of each item";
}

TEST(ItemCost, TilesComeOutOfMemory) {
  const auto of = [](bool loads) {
    ProgramBuilder b("tiles");
    NodeRef from = b.param(DType::U32);
    NodeRef loop = b.open(b.i32(64));
    if (loads) b.emit(Op::TileLoad, DType::U32, {from, loop, b.i32(64)}, {16}, 256);
    b.close(loop);
    return ItemCost(b.build(), 1)({});
  };
  EXPECT_GT(of(true) - of(false), 64 * 16) << "a line each ns";
}

TEST(ItemCost, SizesThatDataDecidesAreGuessed) {
  ProgramBuilder b("data");
  NodeRef from = b.param(DType::I32), zero = b.i32(0);
  const ItemCost cost(two_loops(b, b.load(from, zero)), 1);
  EXPECT_GT(cost({}), 1e6);
}

}  // namespace
}  // namespace weft::testing
