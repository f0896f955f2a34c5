// Tables as instructions, in every number of lanes, against plain C++: bytes of a word by vpshufb,
// words in memory by vpgatherdd.
#include <gtest/gtest.h>

#include "tests/device/programs.h"
#include "tests/support/compiler/isa_levels.h"

namespace weft {
namespace {

using testing::Loaded;
using testing::ProgramBuilder;

constexpr int64_t kCount = 256;
constexpr int kWidths[] = {1, 2, 4, 8, 16, 32, 64};
constexpr uint32_t kTable[] = {0xbfad9881, 0xf6eaddcf, 0x26190d01, 0x71594535};

std::vector<uint32_t> some_words() {
  std::vector<uint32_t> out(kCount);
  uint32_t state = 3;
  for (uint32_t& x : out) {
    state = state * 1664525 + 1013904223;
    x = state >> 1 ^ state << 13;
  }
  return out;
}

uint32_t looked_up(uint32_t word) {
  uint32_t out = 0;
  for (int i = 0; i < 32; i += 8) {
    const uint32_t at = word >> i & 15;
    out |= (kTable[at / 4] >> (8 * (at % 4)) & 255) << i;
  }
  return out;
}

/// out[i] = make(in[i]), where a second buffer may be read.
template <class Make>
LinearProgram program_of(int lanes, Make make) {
  ProgramBuilder b(strformat("lookup_{}", lanes));
  NodeRef out = b.param(DType::U32, true), in = b.param(DType::U32), other = b.param(DType::U32);
  NodeRef range = b.open(b.i32(kCount / lanes), Binding::Core);
  NodeRef index = b.alu(Op::Mul, {range, b.i32(lanes)});
  b.store(out, index, make(b, b.load(in, index, lanes), other));
  b.close(range);
  return b.build();
}

LinearProgram lookup(int lanes, bool masked) {
  return program_of(lanes, [&](ProgramBuilder& b, NodeRef x, NodeRef) {
    const auto all = [&](uint32_t word) {
      NodeRef n = b.constant(DType::U32, word);
      return lanes == 1 ? n : b.emit(Op::Splat, DType::U32, {n}, {}, lanes);
    };
    if (masked) x = b.alu(Op::And, {x, all(0x0f0f0f0f)});
    std::vector<NodeRef> operands{x};
    for (const uint32_t word : kTable) operands.push_back(all(word));
    return b.emit(Op::Lookup4, DType::U32, operands, {}, lanes);
  });
}

LinearProgram gather(int lanes) {
  return program_of(lanes, [&](ProgramBuilder& b, NodeRef x, NodeRef memory) {
    NodeRef most = b.emit(Op::Splat, DType::U32, {b.constant(DType::U32, kCount - 1)}, {}, lanes);
    NodeRef places = b.emit(Op::Bitcast, DType::I32, {b.alu(Op::And, {x, most})}, {}, lanes);
    std::vector<NodeRef> found;
    for (int k = 0; k < lanes; ++k)
      found.push_back(b.load(memory, b.emit(Op::Lane, DType::I32, {places}, {k})));
    return b.emit(Op::Vec, DType::U32, found, {}, lanes);
  });
}

/// Which lane of `from` a lane of `to` takes.
using Places = int (*)(int lane, int from, int to);
constexpr Places kPlaces[] = {
    [](int lane, int from, int) { return lane % from; },
    [](int lane, int from, int) { return from - 1 - lane % from; },
    [](int lane, int from, int to) { return from < to ? lane * from / to : lane * 2 % from; },
    [](int lane, int from, int) { return (lane * 7 + 3) % from; }};

/// Where the vector of `from` lanes begins whose lanes become numbers `at` on.
int begin_of(int at, int from) { return at & (static_cast<int>(kCount) - from); }

LinearProgram lanes_of(int from, int to, Places places) {
  ProgramBuilder b(strformat("lanes_{}_{}", from, to));
  NodeRef out = b.param(DType::U32, true), in = b.param(DType::U32);
  b.param(DType::U32);
  NodeRef range = b.open(b.i32(kCount / to), Binding::Core);
  NodeRef index = b.alu(Op::Mul, {range, b.i32(to)});
  NodeRef x = b.load(in, b.alu(Op::And, {index, b.i32(begin_of(-1, from))}), from);
  std::vector<NodeRef> taken;
  for (int k = 0; k < to; ++k)
    taken.push_back(b.emit(Op::Lane, DType::U32, {x}, {places(k, from, to)}));
  b.store(out, index, b.emit(Op::Vec, DType::U32, taken, {}, to));
  b.close(range);
  return b.build();
}

class Lookups : public ::testing::TestWithParam<std::string> {
 protected:
  static void check(std::vector<LinearProgram> programs, const std::vector<int>& lanes,
                    const std::vector<uint32_t>& want) {
    Options options = testing::quiet_options();
    options.isa = GetParam();
    Context context(options);
    ContextScope scope(context);
    Device& device = context.get<DeviceTable>().open("CPU:X86");
    Loaded loaded(device, programs);
    const std::vector<uint32_t> words = some_words();
    std::vector<std::shared_ptr<Buffer>> buffers;
    std::vector<BufferSlice> slices;
    for (int i = 0; i < 3; ++i) {
      buffers.push_back(device.allocate(4 * kCount));
      slices.push_back({buffers.back().get()});
      device.copy_in(slices.back(), std::as_bytes(std::span(words)));
    }
    for (size_t i = 0; i < programs.size(); ++i) {
      loaded.run(i, slices, {}, kCount / lanes[i]);
      std::vector<uint32_t> got(kCount);
      device.copy_out(std::as_writable_bytes(std::span(got)), slices[0]);
      EXPECT_EQ(got, want) << programs[i].name;
    }
  }
};

TEST_P(Lookups, BytesOfWords) {
  std::vector<LinearProgram> programs;
  std::vector<int> lanes;
  for (const int width : kWidths)
    for (const bool masked : {false, true}) {
      programs.push_back(lookup(width, masked));
      lanes.push_back(width);
    }
  std::vector<uint32_t> want;
  for (const uint32_t word : some_words()) want.push_back(looked_up(word));
  check(std::move(programs), lanes, want);
}

TEST_P(Lookups, WordsWhosePlacesAreLanes) {
  std::vector<LinearProgram> programs;
  std::vector<int> lanes;
  for (const int width : kWidths)
    if (width > 1) programs.push_back(gather(width)), lanes.push_back(width);
  const std::vector<uint32_t> words = some_words();
  std::vector<uint32_t> want;
  for (const uint32_t word : words) want.push_back(words[word & (kCount - 1)]);
  check(std::move(programs), lanes, want);
}

/// Of a shorter vector or a longer one, each once or several times.
TEST_P(Lookups, LanesOfAnotherVector) {
  const std::vector<uint32_t> words = some_words();
  for (const int from : kWidths)
    for (const int to : kWidths)
      for (const Places places : kPlaces) {
        if (from == 1 || to == 1) continue;
        std::vector<uint32_t> want;
        for (int i = 0; i < kCount; ++i)
          want.push_back(
              words[static_cast<size_t>(begin_of(i / to * to, from) + places(i % to, from, to))]);
        check({lanes_of(from, to, places)}, {to}, want);
      }
}

INSTANTIATE_TEST_SUITE_P(Levels, Lookups, ::testing::ValuesIn(testing::isa_levels()));

}  // namespace
}  // namespace weft
