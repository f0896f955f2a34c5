// Dot products of words as instructions, in every number of lanes, against plain C++.
#include <gtest/gtest.h>

#include <bit>
#include <cstring>

#include "tests/device/programs.h"
#include "tests/support/compiler/isa_levels.h"

namespace weft {
namespace {

using testing::Loaded;
using testing::ProgramBuilder;

constexpr int64_t kCount = 256;

LinearProgram program_of(const MatrixUnit& unit, int lanes) {
  ProgramBuilder b(strformat("dot_{}", lanes));
  NodeRef out = b.param(unit.sum, true);
  const NodeRef in[] = {b.param(DType::U32), b.param(DType::U32), b.param(unit.sum)};
  NodeRef range = b.open(b.i32(kCount / lanes), Binding::Core);
  NodeRef index = b.alu(Op::Mul, {range, b.i32(lanes)});
  std::vector<NodeRef> operands;
  for (NodeRef p : in) operands.push_back(b.load(p, index, lanes));
  b.store(out, index, b.emit(unit.op, unit.sum, operands, {}, lanes));
  b.close(range);
  return b.build();
}

// bf16 of whole numbers from -128 to 127, the sums of whose products are exact; any bytes.
uint32_t word_of(uint32_t bits, DType element) {
  if (element != DType::BF16) return bits;
  const auto half = [](uint32_t byte) {
    return std::bit_cast<uint32_t>(static_cast<float>(static_cast<int8_t>(byte))) >> 16;
  };
  return half(bits & 255) | half(bits >> 8 & 255) << 16;
}

int32_t dot_of_bytes(uint32_t a, uint32_t b, int32_t c) {
  auto sum = static_cast<uint32_t>(c);
  for (int i = 0; i < 32; i += 8)
    sum += static_cast<uint32_t>(static_cast<uint8_t>(a >> i) * static_cast<int8_t>(b >> i));
  return static_cast<int32_t>(sum);
}

int32_t dot_of_i16(uint32_t a, uint32_t b, int32_t c) {
  auto sum = static_cast<uint32_t>(c);
  for (int i = 0; i < 32; i += 16)
    sum += static_cast<uint32_t>(static_cast<int16_t>(a >> i) * static_cast<int16_t>(b >> i));
  return static_cast<int32_t>(sum);
}

float dot_of_bf16(uint32_t a, uint32_t b, float c) {
  const auto lower = [](uint32_t x) { return std::bit_cast<float>(x << 16); };
  const auto upper = [](uint32_t x) { return std::bit_cast<float>(x & 0xffff0000); };
  return lower(a) * lower(b) + upper(a) * upper(b) + c;
}

struct Words {
  std::vector<uint32_t> a, b, c, want;  // sums as their bits
  explicit Words(const MatrixUnit& unit) {
    uint32_t state = 1;
    const auto next = [&] { return state = state * 1664525 + 1013904223; };
    for (int64_t i = 0; i < kCount; ++i) {
      a.push_back(word_of(next() >> 7, unit.left));
      b.push_back(word_of(next() >> 7, unit.right));
      const auto sum = static_cast<int32_t>(next());
      const auto number = static_cast<float>(sum >> 16);
      const bool whole = unit.sum == DType::I32;
      const auto dot = unit.left == DType::I16 ? dot_of_i16 : dot_of_bytes;
      c.push_back(whole ? static_cast<uint32_t>(sum) : std::bit_cast<uint32_t>(number));
      want.push_back(whole ? static_cast<uint32_t>(dot(a.back(), b.back(), sum))
                           : std::bit_cast<uint32_t>(dot_of_bf16(a.back(), b.back(), number)));
    }
  }
};

void check_unit(Device& device, const MatrixUnit& unit) {
  const int widths[] = {1, 2, 4, 8, 16, 32, 64};
  std::vector<LinearProgram> programs;
  for (int lanes : widths) programs.push_back(program_of(unit, lanes));
  Loaded loaded(device, programs);
  const Words words(unit);
  std::vector<std::shared_ptr<Buffer>> buffers{device.allocate(4 * kCount)};
  for (const std::vector<uint32_t>* x : {&words.a, &words.b, &words.c}) {
    buffers.push_back(device.allocate(4 * kCount));
    device.copy_in({buffers.back().get()}, std::as_bytes(std::span(*x)));
  }
  std::vector<BufferSlice> slices;
  for (auto& b : buffers) slices.push_back({b.get()});
  for (size_t i = 0; i < std::size(widths); ++i) {
    loaded.run(i, slices, {}, kCount / widths[i]);
    std::vector<uint32_t> got(kCount);
    device.copy_out(std::as_writable_bytes(std::span(got)), {buffers[0].get()});
    EXPECT_EQ(got, words.want) << info(unit.op).mnemonic << " in " << widths[i] << " lanes";
  }
}

// ---- tiles: matrices in memory with rows further apart than they are long

constexpr int kTile = 16, kBlocks = 2, kSteps = 3;  // kBlocks tiles of kSteps products each
constexpr int kLeftRow = kTile * kSteps + 5, kRightRow = kTile + 3;

/// One work item a tile: the sum over all steps goes through local memory, row by row.
LinearProgram program_of_tiles(const MatrixUnit& unit) {
  constexpr int kLanes = kTile * kTile;
  ProgramBuilder b("tiles");
  NodeRef out = b.param(unit.sum, true), left = b.param(DType::U32), right = b.param(DType::U32);
  NodeRef none = b.i32(0), tile = b.i32(kTile), lanes = b.i32(kLanes), steps = b.i32(kSteps);
  NodeRef left_row = b.i32(kLeftRow), left_rows = b.i32(kTile * kLeftRow);
  NodeRef right_row = b.i32(kRightRow), right_rows = b.i32(kTile * kRightRow);
  NodeRef zero = unit.sum == DType::I32 ? none : b.constant(unit.sum, 0), blocks = b.i32(kBlocks);
  NodeRef item = b.open(blocks, Binding::Core), first = b.alu(Op::Mul, {item, left_rows});
  NodeRef zeros = b.emit(Op::Splat, unit.sum, {zero}, {}, kLanes);
  NodeRef acc = b.emit(Op::Acc, unit.sum, {zeros}, {0}, kLanes);
  NodeRef step = b.open(steps), along = b.alu(Op::Mul, {step, tile});
  NodeRef down = b.alu(Op::Mul, {step, right_rows}), at_left = b.alu(Op::Add, {first, along});
  NodeRef x = b.emit(Op::TileLoad, DType::U32, {left, at_left, left_row}, {kTile}, kLanes);
  NodeRef y = b.emit(Op::TileLoad, DType::U32, {right, down, right_row}, {kTile}, kLanes);
  NodeRef before = b.emit(Op::GetAcc, unit.sum, {acc}, {0}, kLanes);
  NodeRef sum = b.emit(unit.op, unit.sum, {x, y, before}, {}, kLanes);
  b.emit(Op::SetAcc, unit.sum, {acc, sum}, {}, kLanes);
  b.close(step);
  NodeRef all = b.emit(Op::GetAcc, unit.sum, {acc}, {1}, kLanes);
  NodeRef memory = b.emit(Op::Local, unit.sum, {lanes}, {0, 0});
  b.store(memory, none, all);
  b.emit(Op::Barrier, DType::Void, {}, {0, 1});
  NodeRef known = b.emit(Op::Local, unit.sum, {lanes}, {0, 1});
  NodeRef row = b.open(tile), at = b.alu(Op::Mul, {row, tile});
  NodeRef begin = b.alu(Op::Mul, {item, lanes}), to = b.alu(Op::Add, {begin, at});
  b.store(out, to, b.load(known, at, kTile));
  b.close(row);
  b.close(item);
  return b.build();
}

uint32_t dot(const MatrixUnit& unit, uint32_t a, uint32_t b, uint32_t sum) {
  if (unit.words == Op::Dot2)
    return std::bit_cast<uint32_t>(dot_of_bf16(a, b, std::bit_cast<float>(sum)));
  const bool swapped = unit.left == DType::I8;
  return static_cast<uint32_t>(
      dot_of_bytes(swapped ? b : a, swapped ? a : b, static_cast<int32_t>(sum)));
}

void check_tiles(Device& device, const MatrixUnit& unit) {
  Loaded loaded(device, {program_of_tiles(unit)});
  std::vector<uint32_t> left(kBlocks * kTile * kLeftRow), right(kTile * kSteps * kRightRow);
  uint32_t state = 7;
  const auto next = [&] { return state = state * 1664525 + 1013904223; };
  for (uint32_t& x : left) x = word_of(next() >> 7, unit.left);
  for (uint32_t& x : right) x = word_of(next() >> 7, unit.right);
  std::vector<uint32_t> want(kBlocks * kTile * kTile), got(want.size());
  for (int r = 0; r < kBlocks * kTile; ++r)
    for (int c = 0; c < kTile; ++c)
      for (int k = 0; k < kTile * kSteps; ++k) {
        uint32_t& sum = want[static_cast<size_t>(r * kTile + c)];
        sum = dot(unit, left[static_cast<size_t>(r * kLeftRow + k)],
                  right[static_cast<size_t>(k * kRightRow + c)], sum);
      }
  std::vector<std::shared_ptr<Buffer>> buffers{device.allocate(4 * got.size())};
  for (const std::vector<uint32_t>* x : {&left, &right}) {
    buffers.push_back(device.allocate(4 * x->size()));
    device.copy_in({buffers.back().get()}, std::as_bytes(std::span(*x)));
  }
  std::vector<BufferSlice> slices;
  for (auto& b : buffers) slices.push_back({b.get()});
  loaded.run(0, slices, {}, kBlocks);
  device.copy_out(std::as_writable_bytes(std::span(got)), {buffers[0].get()});
  EXPECT_EQ(got, want) << info(unit.op).mnemonic;
}

TEST(DotProducts, X86) {
  std::vector<std::string> levels = testing::isa_levels();
  levels.insert(levels.begin(), "");
  size_t units = 0;
  for (const std::string& level : levels) {
    SCOPED_TRACE(level);
    Options options = testing::quiet_options();
    options.isa = level;
    Context context(options);
    ContextScope scope(context);
    Device& device = context.get<DeviceTable>().open("CPU:X86");
    for (const MatrixUnit& unit : device.target().matrix_units)
      unit.tile > 0 ? check_tiles(device, unit) : check_unit(device, unit);
    units += device.target().matrix_units.size();
  }
  if (units == 0) GTEST_SKIP() << "this CPU has no dot products";
}

}  // namespace
}  // namespace weft
