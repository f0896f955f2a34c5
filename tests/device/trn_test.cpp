// Steps of transpositions as instructions, for every size of blocks, against plain C++.
#include <gtest/gtest.h>

#include <array>

#include "tests/device/programs.h"
#include "tests/support/compiler/isa_levels.h"

namespace weft {
namespace {

using testing::Loaded;
using testing::ProgramBuilder;

LinearProgram program_of(DType dtype, int lanes, int64_t size, int64_t odd) {
  ProgramBuilder b(strformat("trn_{}_{}", size, odd));
  NodeRef out = b.param(dtype, true), left = b.param(dtype), right = b.param(dtype);
  NodeRef range = b.open(b.i32(1), Binding::Core);
  NodeRef index = b.alu(Op::Mul, {range, b.i32(lanes)});
  std::vector<NodeRef> rows;
  for (NodeRef p : {left, right}) rows.push_back(b.load(p, index, lanes));
  b.store(out, index, b.emit(Op::Trn, dtype, rows, {size, odd}, static_cast<uint16_t>(lanes)));
  b.close(range);
  return b.build();
}

/// What a program with one result makes of a and b, all as long as each other.
template <class T>
std::vector<T> made_of(Device& device, const LinearProgram& program, std::vector<T> a,
                       std::vector<T> b) {
  Loaded loaded(device, {program});
  std::vector<T> out(a.size());
  std::vector<std::shared_ptr<Buffer>> buffers;
  for (std::vector<T>* x : {&out, &a, &b}) {
    buffers.push_back(device.allocate(static_cast<int64_t>(sizeof(T) * out.size())));
    device.copy_in({buffers.back().get()}, std::as_bytes(std::span(*x)));
  }
  std::vector<BufferSlice> slices;
  for (auto& buffer : buffers) slices.push_back({buffer.get()});
  loaded.run(0, slices, {}, 1);
  device.copy_out(std::as_writable_bytes(std::span(out)), {buffers[0].get()});
  return out;
}

template <class T>
void check(Device& device, DType dtype, int lanes) {
  const auto n = static_cast<size_t>(lanes);
  for (size_t size = 1; size < n; size *= 2)
    for (const size_t odd : {size_t{0}, size_t{1}}) {
      SCOPED_TRACE(strformat("{} blocks of {}, {}", name(dtype), size, odd));
      std::vector<T> a(n), b(n), want(n);
      for (size_t k = 0; k < n; ++k) a[k] = static_cast<T>(k), b[k] = static_cast<T>(100 + k);
      for (size_t k = 0; k < n; ++k)
        want[k] = k / size % 2 == 0 ? a[k + odd * size] : b[k - size + odd * size];
      const auto program =
          program_of(dtype, lanes, static_cast<int64_t>(size), static_cast<int64_t>(odd));
      EXPECT_EQ(made_of(device, program, a, b), want);
    }
}

/// out: of each four lanes of a, and then of b, those with these numbers (0 to 3 of a, 4 to 7 of
/// b).
LinearProgram program_of_block(const std::array<int, 4>& block, int lanes) {
  ProgramBuilder b("block");
  NodeRef out = b.param(DType::F32, true), left = b.param(DType::F32), right = b.param(DType::F32);
  NodeRef range = b.open(b.i32(1), Binding::Core);
  NodeRef index = b.alu(Op::Mul, {range, b.i32(lanes)});
  const NodeRef of[] = {b.load(left, index, lanes), b.load(right, index, lanes)};
  std::vector<NodeRef> all;
  for (int k = 0; k < lanes; ++k) {
    const int place = block[static_cast<size_t>(k % 4)];
    all.push_back(b.emit(Op::Lane, DType::F32, {of[place / 4]}, {k / 4 * 4 + place % 4}));
  }
  b.store(out, index, b.emit(Op::Vec, DType::F32, all, {}, static_cast<uint16_t>(lanes)));
  b.close(range);
  return b.build();
}

TEST(Trn, WithinBlocks) {
  Context context(testing::quiet_options());
  ContextScope scope(context);
  constexpr int kLanes = 16;
  for (const char* device_name : {"CPU:INTERP", "CPU:X86"}) {
    Device& device = context.get<DeviceTable>().open(device_name);
    // Words of both in turns, two of one before two of the other, and neither.
    for (const std::array<int, 4> block :
         {std::array{0, 4, 1, 5}, std::array{2, 6, 3, 7}, std::array{4, 0, 5, 1},
          std::array{6, 2, 7, 3}, std::array{0, 1, 4, 5}, std::array{3, 1, 6, 6},
          std::array{5, 4, 2, 0}, std::array{0, 2, 1, 3}, std::array{7, 4, 6, 5},
          std::array{0, 4, 2, 6}, std::array{1, 2, 3, 4}, std::array{4, 0, 1, 5}}) {
      SCOPED_TRACE(
          strformat("{}: {} {} {} {}", device_name, block[0], block[1], block[2], block[3]));
      std::vector<float> a(kLanes), b(kLanes), want(kLanes);
      for (size_t k = 0; k < kLanes; ++k)
        a[k] = static_cast<float>(k), b[k] = static_cast<float>(100 + k);
      for (size_t k = 0; k < kLanes; ++k) {
        const auto place = static_cast<size_t>(block[k % 4]);
        want[k] = (place < 4 ? a : b)[k / 4 * 4 + place % 4];
      }
      EXPECT_EQ(made_of(device, program_of_block(block, kLanes), a, b), want);
    }
  }
}

TEST(Trn, X86AndInterpreted) {
  Context context(testing::quiet_options());
  ContextScope scope(context);
  for (const char* name : {"CPU:INTERP", "CPU:X86"}) {
    SCOPED_TRACE(name);
    Device& device = context.get<DeviceTable>().open(name);
    if (!device.target().permutes_pairs(DType::F32) && name != std::string("CPU:INTERP"))
      GTEST_SKIP() << "this CPU has no AVX-512";
    check<float>(device, DType::F32, 16);
    check<uint32_t>(device, DType::U32, 16);
    check<double>(device, DType::F64, 8);
    check<int64_t>(device, DType::I64, 8);
    for (const int lanes : {8, 16, 32}) {
      check<uint16_t>(device, DType::U16, lanes);
      check<uint16_t>(device, DType::BF16, lanes);
    }
    if (!device.target().permutes_pairs(DType::U8) && name != std::string("CPU:INTERP")) continue;
    for (const int lanes : {16, 32, 64}) check<uint8_t>(device, DType::U8, lanes);
  }
}

}  // namespace
}  // namespace weft
