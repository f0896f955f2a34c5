// Short vectors side by side that are spread over longer ones are loaded as one, and mean the same.
#include <algorithm>

#include "tests/lower/tile_kernel.h"

namespace weft::test {
namespace {

constexpr int64_t kBlocks = 3, kGroups = 4, kLanes = 16, kOfOne = 8;

/// out[b, u, v] = f32(in[b, u * 2 + v / 8]) * d[b]: numbers that groups of lanes share, as scales
/// of packed blocks are, of `apart` elements from one vector's to the next.
Kernel scaled(DType dtype, int64_t apart, bool added = false) {
  KernelBuilder k;
  NodeRef b = k.range(kBlocks, 0), u = k.range(kGroups, 1, Binding::Unroll);
  NodeRef v = k.range(kLanes, 2, Binding::Vector);
  NodeRef group = k.g.add(k.g.mul(u, k.index(apart)), k.g.idiv(v, k.index(kOfOne)));
  NodeRef at = k.g.add(k.g.mul(b, k.index(kGroups * apart)), group);
  NodeRef scale = k.g.cast(k.load(k.param(1, dtype, kBlocks * kGroups * apart), at), DType::F32);
  NodeRef x = k.g.mul(scale, k.load(k.param(2, DType::F32, kBlocks), b));
  NodeRef lane = k.g.add(k.g.mul(k.g.add(k.g.mul(b, k.index(kGroups)), u), k.index(kLanes)), v);
  NodeRef out = k.param(0, DType::F32, kBlocks * kGroups * kLanes);
  if (added) x = k.g.add(x, k.load(out, lane));
  k.store(out, lane, x);
  return k.kernel();
}

Buffers numbers(DType dtype, int64_t apart) {
  Buffers all(3);
  for (int64_t i = 0; i < kBlocks * kGroups * kLanes; ++i)
    all[0].push_back(Value::of(DType::F32, i));
  for (int64_t i = 0; i < kBlocks * kGroups * apart; ++i) all[1].push_back(Value::of(dtype, i - 9));
  for (int64_t i = 0; i < kBlocks; ++i) all[2].push_back(Value::of(DType::F32, 0.5 + double(i)));
  return all;
}

size_t loads_of(const LinearProgram& program, int64_t slot, uint16_t lanes) {
  return static_cast<size_t>(std::ranges::count_if(program.code, [&](NodeRef n) {
    return n->op == Op::Load && param_slot(n->src(0)) == slot && n->lanes == lanes;
  }));
}

TEST(JoinLoads, OfGroupsSideBySideIsOne) {
  for (const DType dtype : {DType::I8, DType::F16, DType::F32}) {
    SCOPED_TRACE(name(dtype));
    const LinearProgram p =
        expect_same_on(target_with_tiles(), scaled(dtype, 2), numbers(dtype, 2));
    EXPECT_EQ(loads_of(p, 1, 8), 1U);
    EXPECT_EQ(loads_of(p, 1, 2), 0U);
    EXPECT_EQ(std::ranges::count_if(
                  p.code, [](NodeRef n) { return n->op == Op::Mul && is_float(n->dtype); }),
              1);
  }
}

/// No longer than what they are spread over: that is as long as vectors of the widest numbers are.
TEST(JoinLoads, AreNoLongerThanVectors) {
  KernelBuilder k;
  NodeRef u = k.range(kGroups, 0, Binding::Unroll), v = k.range(4, 1, Binding::Vector);
  NodeRef at = k.g.add(k.g.mul(u, k.index(2)), k.g.idiv(v, k.index(2)));
  NodeRef x = k.g.cast(k.load(k.param(1, DType::I8, 2 * kGroups), at), DType::F64);
  k.store(k.param(0, DType::F64, 4 * kGroups), k.g.add(k.g.mul(u, k.index(4)), v), x);
  Buffers buffers(2);
  buffers[0].resize(4 * kGroups, Value::of(DType::F64, 0));
  for (int64_t i = 0; i < 2 * kGroups; ++i) buffers[1].push_back(Value::of(DType::I8, i - 3));
  const LinearProgram p = expect_same_on(target_with_tiles(), k.kernel(), buffers);
  EXPECT_EQ(loads_of(p, 1, 4), 2U);
  EXPECT_EQ(loads_of(p, 1, 8), 0U);
}

TEST(JoinLoads, OfGroupsApartStaysAsItIs) {
  const LinearProgram p =
      expect_same_on(target_with_tiles(), scaled(DType::I8, 3), numbers(DType::I8, 3));
  EXPECT_EQ(loads_of(p, 1, 2), 4U);
}

TEST(JoinLoads, BesideSums) {
  const LinearProgram p =
      expect_same_on(target_with_tiles(), scaled(DType::I8, 2, true), numbers(DType::I8, 2));
  EXPECT_EQ(loads_of(p, 1, 8), 1U);
  EXPECT_EQ(loads_of(p, 0, 16), 4U);
}

/// What the kernel writes is read where it is read.
TEST(JoinLoads, NotOfWhatIsWritten) {
  KernelBuilder k;
  NodeRef u = k.range(2, 0, Binding::Unroll), v = k.range(kLanes, 1, Binding::Vector);
  NodeRef memory = k.param(0, DType::F32, 2 * kLanes);
  NodeRef at = k.g.add(k.g.mul(u, k.index(2)), k.g.idiv(v, k.index(kOfOne)));
  NodeRef lane = k.g.add(k.g.mul(u, k.index(kLanes)), v);
  k.store(memory, lane, k.load(memory, at));
  const LinearProgram p = lower_kernel(k.kernel(), target_with_tiles());
  EXPECT_EQ(loads_of(p, 0, 2), 2U);
}

}  // namespace
}  // namespace weft::test
