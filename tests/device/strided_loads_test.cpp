// Elements at equal distances in memory, in every dtype, number of lanes and instruction set: from
// memory that ends with the last one of them.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "tests/device/programs.h"
#include "tests/support/compiler/isa_levels.h"
#include "weft/codegen/x86/select.h"
#include "weft/isa/x86.h"

namespace weft {
namespace {

using testing::Loaded;
using testing::ProgramBuilder;
using x86::Form;

/// out[k] = in[k * distance], on that many lanes at once.
LinearProgram strided(DType dtype, int lanes, int distance) {
  ProgramBuilder b(strformat("strided_{}_{}_{}", name(dtype), lanes, distance));
  NodeRef out = b.param(dtype, true), in = b.param(dtype);
  NodeRef range = b.open(b.i32(1), Binding::Core);
  NodeRef begin = b.alu(Op::Mul, {range, b.i32(lanes)});
  std::vector<NodeRef> taken;
  for (int k = 0; k < lanes; ++k)
    taken.push_back(b.load(in, k == 0 ? begin : b.alu(Op::Add, {begin, b.i32(k * distance)})));
  b.store(out, begin, b.emit(Op::Vec, dtype, taken, {}, lanes));
  b.close(range);
  return b.build();
}

/// Bytes that end where memory does.
class AtTheEnd {
 public:
  explicit AtTheEnd(size_t bytes) {
    void* begin =
        ::mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(begin, MAP_FAILED);
    memory_ = std::shared_ptr<void>(begin, [](void* p) { ::munmap(p, 2 * kPage); });
    EXPECT_EQ(::mprotect(static_cast<std::byte*>(begin) + kPage, kPage, PROT_NONE), 0);
    data_ = {static_cast<std::byte*>(begin) + kPage - bytes, bytes};
  }
  std::span<std::byte> data() const { return data_; }
  const std::shared_ptr<void>& owner() const { return memory_; }

 private:
  static constexpr size_t kPage = 4096;
  std::shared_ptr<void> memory_;
  std::span<std::byte> data_;
};

class StridedLoads : public ::testing::TestWithParam<std::string> {};

TEST_P(StridedLoads, TakeWhatIsThereAndNothingBeyond) {
  Options options = testing::quiet_options();
  options.isa = GetParam();
  Context context(options);
  ContextScope scope(context);
  Device& device = context.get<DeviceTable>().open("CPU:X86");
  for (const DType dtype : {DType::U8, DType::BF16, DType::U32, DType::F32, DType::F64})
    for (const int lanes : {2, 4, 8, 16, 32})
      for (int distance = 2; distance <= 9; ++distance) {
        const LinearProgram program = strided(dtype, lanes, distance);
        const auto size = static_cast<size_t>(bits(dtype) / 8);
        const auto count = static_cast<size_t>((lanes - 1) * distance + 1);
        const AtTheEnd in(count * size);
        for (size_t i = 0; i < count * size; ++i)
          in.data()[i] = static_cast<std::byte>(i * 37 % 127);
        const std::shared_ptr<Buffer> from = Buffer::borrow(
            device, in.data().data(), static_cast<int64_t>(in.data().size()), in.owner());
        std::vector<std::byte> want(static_cast<size_t>(lanes) * size), got(want.size());
        for (size_t k = 0; k < static_cast<size_t>(lanes); ++k)
          std::memcpy(&want[k * size], &in.data()[k * static_cast<size_t>(distance) * size], size);
        const auto to = device.allocate(static_cast<int64_t>(got.size()));
        const std::vector<BufferSlice> slices{{to.get()}, {from.get()}};
        Loaded(device, {program}).run(0, slices);
        device.copy_out(got, slices[0]);
        EXPECT_EQ(got, want) << program.name;
      }
}

/// Two permutations of three registers take the place of what joins sixteen words.
TEST_P(StridedLoads, AreOfWholeRegisters) {
  const CpuFeatures cpu = CpuFeatures::detect().up_to(GetParam());
  const bool permutes = cpu.has(CpuFeature::Avx512f);  // of two registers
  const auto code =
      codegen::select_x86(strided(DType::F32, 16, 3), make_target("x86", cpu, 1)).code;
  const auto count = [&](Form form) {
    return std::ranges::count_if(
        code, [form](const auto& i) { return static_cast<Form>(i.form) == form; });
  };
  EXPECT_EQ(count(Form::VPermT2D), permutes ? 2 : 0);
  EXPECT_EQ(count(Form::VUnpcklps) == 0, permutes);
}

INSTANTIATE_TEST_SUITE_P(Levels, StridedLoads, ::testing::ValuesIn(testing::isa_levels()));

}  // namespace
}  // namespace weft
