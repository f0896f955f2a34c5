// Executable memory: code runs, memory comes back, nothing is writable and executable.
#include "weft/device/code_memory.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <thread>

#include "weft/isa/x86.h"
#include "weft/trust/random.h"

namespace weft {
namespace {

using Function = int64_t (*)();

std::vector<uint8_t> returns(int64_t value) {
  x86::Encoder encoder;
  encoder.emit(x86::make(x86::Form::MovI64, 64, {x86::kRax}, value));
  encoder.emit(x86::make(x86::Form::Ret, 0, {}));
  return encoder.finish();
}

std::shared_ptr<const CodeMemory::Code> add(CodeMemory& memory, int64_t value, size_t padding = 0) {
  std::vector<uint8_t> code = returns(value);
  code.resize(code.size() + padding);
  return memory.add(std::as_bytes(std::span(code)));
}

int64_t call(const CodeMemory::Code& code) {
  return reinterpret_cast<Function>(reinterpret_cast<uintptr_t>(code.entry()))();
}

TEST(CodeMemory, RunsWhatWasAdded) {
  const auto memory = std::make_shared<CodeMemory>();
  const auto one = add(*memory, 1), two = add(*memory, 2);
  EXPECT_EQ(call(*one), 1);
  EXPECT_EQ(call(*two), 2);
  EXPECT_EQ(memory->used(), 128U);
}

TEST(CodeMemory, CodeOutlivesTheDevicesHandle) {
  auto memory = std::make_shared<CodeMemory>();
  const auto code = add(*memory, 42);
  memory.reset();
  EXPECT_EQ(call(*code), 42);
}

/// A child that drops what it inherited, and makes functions of its own, changes nothing of its
/// parent's.
TEST(CodeMemory, AForkedChildLeavesItsParentsCode) {
  const auto memory = std::make_shared<CodeMemory>();
  auto inherited = add(*memory, 42);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto own = add(*memory, 7);
    const bool right = call(*inherited) == 42 && call(*own) == 7;
    inherited.reset();
    ::_exit(right && call(*own) == 7 ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(call(*inherited), 42);
  EXPECT_EQ(call(*add(*memory, 8)), 8);
}

TEST(CodeMemory, ALargeFunctionGetsARegionOfItsOwn) {
  const auto memory = std::make_shared<CodeMemory>();
  const auto small = add(*memory, 1), large = add(*memory, 2, 9 << 20);
  EXPECT_EQ(call(*small) + call(*large), 3);
  EXPECT_GE(memory->reserved(), memory->used());
}

TEST(CodeMemory, AHundredThousandFunctionsInFlatMemory) {
  const auto memory = std::make_shared<CodeMemory>();
  Random random(1);
  std::vector<std::shared_ptr<const CodeMemory::Code>> live(100);
  std::vector<int64_t> values(live.size());
  for (int64_t n = 0; n < 100'000; ++n) {
    const auto slot = static_cast<size_t>(random.below(static_cast<int64_t>(live.size())));
    if (live[slot]) {
      ASSERT_EQ(call(*live[slot]), values[slot]);
    }
    values[slot] = n;
    live[slot] = add(*memory, n, static_cast<size_t>(random.below(5000)));
  }
  EXPECT_LE(memory->reserved(), size_t{4} << 20);
  live.clear();
  EXPECT_EQ(memory->used(), 0U);
}

TEST(CodeMemory, ThreadsAddAndDropAtOnce) {
  const auto memory = std::make_shared<CodeMemory>();
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int n = 0; n < 2000; ++n)
        if (call(*add(*memory, t * 10'000 + n)) != t * 10'000 + n) ++wrong;
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(memory->used(), 0U);
}

TEST(CodeMemory, NoPageIsWritableAndExecutable) {
  const auto memory = std::make_shared<CodeMemory>();
  const auto code = add(*memory, 7);
  std::ifstream maps("/proc/self/maps");
  const auto entry = reinterpret_cast<uintptr_t>(code->entry());
  std::string protection_of_code;
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = 0, end = 0;
    char protection[5] = {};
    ASSERT_EQ(std::sscanf(line.c_str(), "%zx-%zx %4s", &begin, &end, protection), 3) << line;
    EXPECT_FALSE(protection[1] == 'w' && protection[2] == 'x') << line;
    if (begin <= entry && entry < end) protection_of_code = protection;
  }
  EXPECT_EQ(protection_of_code, "r-xs");
  EXPECT_EQ(call(*code), 7);
}

}  // namespace
}  // namespace weft
