// SIM: what holds of a device that finishes late, and that it finds what such devices get wrong.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <numeric>
#include <optional>
#include <thread>

#include "tests/device/samples.h"
#include "weft/device/drivers/sim.h"
#include "weft/trust/random.h"

namespace weft {
namespace {

constexpr int64_t kLarge = SimDevice::kCapacity / 8 - (1 << 20);
constexpr uint64_t kLong = 20'000'000;  // a delay that nobody overlooks

class Sim : public ::testing::Test {
 protected:
  using BufferRef = std::shared_ptr<Buffer>;

  /// Late by up to `ns`, in another way for each seed.
  void be_late(uint64_t seed, uint64_t ns) { device.set_delays(seed, ns); }
  BufferRef filled(const std::vector<float>& data, std::string_view label = "data") {
    auto buffer = device.allocate(static_cast<int64_t>(data.size() * 4), label);
    write(buffer, data);
    return buffer;
  }
  void write(const BufferRef& buffer, const std::vector<float>& data) {
    device.copy_in({buffer.get()}, std::as_bytes(std::span(data)));
  }
  std::vector<float> read(const BufferRef& buffer) {
    std::vector<float> out(static_cast<size_t>(buffer->bytes() / 4));
    device.copy_out(std::as_writable_bytes(std::span(out)), {buffer.get()});
    return out;
  }
  TimelinePoint copy(const BufferRef& from, const BufferRef& to,
                     std::vector<TimelinePoint> waits = {}, int queue = 0) {
    const Command command = Command::copy({from.get()}, {to.get()}, from->bytes());
    return device.submit(queue, {&command, 1}, waits);
  }
  /// What the call throws; the test fails where that is nothing.
  template <class F>
  std::optional<DeviceError> error_of(F&& call) {
    try {
      call();
    } catch (const DeviceError& error) {
      return error;
    }
    ADD_FAILURE() << "nothing was thrown";
    return std::nullopt;
  }

  Context context{testing::quiet_options()};
  SimDevice& device = dynamic_cast<SimDevice&>(context.get<DeviceTable>().open("SIM:INTERP"));
};
#define EXPECT_HAS(text, part) EXPECT_NE(std::string(text).find(part), std::string::npos) << (text)

// ---- memory

TEST_F(Sim, MemoryIsNotTheHostsAndPoisoned) {
  auto a = device.allocate(1000);
  EXPECT_EQ(a->data(), nullptr);
  EXPECT_NE(a->block(), nullptr);
  EXPECT_EQ(device.alignment(), SimDevice::kAlignment);
  std::vector<std::byte> bytes(1000);
  const auto is_poison = [](std::byte b) { return b == SimDevice::kPoison; };
  device.copy_out(bytes, {a.get()});
  EXPECT_TRUE(std::ranges::all_of(bytes, is_poison));
  device.copy_in({a.get()}, std::vector<std::byte>(1000));
  const void* block = a->block();
  a.reset();
  a = device.allocate(1000);
  ASSERT_EQ(a->block(), block) << "freed blocks are used again";
  device.copy_out(bytes, {a.get()});
  EXPECT_TRUE(std::ranges::all_of(bytes, is_poison));
}

TEST_F(Sim, BorrowsNothing) {
  const auto owner = std::make_shared<float>(1.0f);
  EXPECT_THROW(Buffer::borrow(device, owner.get(), 4, owner), InternalError);
}

TEST_F(Sim, RunsOutOfMemory) {
  std::vector<BufferRef> all;
  try {
    for (int i = 0; i < 100; ++i) all.push_back(device.allocate(kLarge, "large"));
    FAIL() << "there is no end of it";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Memory);
    EXPECT_HAS(error.what(), "refused");
  }
}

// ---- submissions come back before they are done

TEST_F(Sim, SubmitReturnsBeforeTheEnd) {
  be_late(3, kLong);
  auto a = filled({1, 2, 3}), b = filled({0, 0, 0});
  bool early = false;
  for (int i = 0; i < 20 && !early; ++i) {
    const TimelinePoint done = copy(a, b);
    early = !done.timeline->reached(done.value);
    device.wait(done);
  }
  EXPECT_TRUE(early);
  EXPECT_EQ(read(b), (std::vector<float>{1, 2, 3}));
}

TEST_F(Sim, TheHostWaitsForWhatItReadsAndOverwrites) {
  be_late(5, kLong / 4);
  for (int i = 0; i < 10; ++i) {
    auto a = filled({1, 2, 3}), b = filled({0, 0, 0}), c = filled({0, 0, 0});
    copy(a, b);
    copy(b, c);
    write(b, {7, 8, 9});
    EXPECT_EQ(read(c), (std::vector<float>{1, 2, 3}));
    EXPECT_EQ(read(b), (std::vector<float>{7, 8, 9}));
  }
}

TEST_F(Sim, FreedMemoryIsUsedAgainWhenItsPointsAreReached) {
  be_late(1, kLong / 10);
  auto out = filled(std::vector<float>(100, 0));
  for (int i = 0; i < 50; ++i) {
    auto a = filled(std::vector<float>(100, static_cast<float>(i)));
    copy(a, out);
    a.reset();  // the copy still reads it
    auto other = filled(std::vector<float>(100, -1));
    EXPECT_EQ(read(out)[99], static_cast<float>(i));
  }
}

TEST_F(Sim, MemoryComesBackFromCommandsWhenItIsShort) {
  be_late(1, kLong / 10);
  auto out = filled({0});
  for (int i = 0; i < 20; ++i) {  // of which there are eight
    auto a = device.allocate(kLarge);
    write(a, {static_cast<float>(i)});
    const Command command = Command::copy({a.get()}, {out.get()}, 4);
    device.submit(0, {&command, 1});
  }
  EXPECT_EQ(read(out)[0], 19.0f);
}

// ---- failures

TEST_F(Sim, AFailureIsThrownByWaitAndNamesTheCommand) {
  auto a = filled({1, 2}), b = filled({0, 0}), c = filled({0, 0});
  const Command both[] = {Command::copy({a.get()}, {b.get()}, 8),
                          Command::copy({b.get()}, {c.get()}, 8)};
  device.fail_after(1);
  const TimelinePoint failed = device.submit(0, both);
  const auto error = error_of([&] { device.wait(failed); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->command(), 1);
  EXPECT_EQ(error->call(), "copy");
  EXPECT_HAS(error->what(), "SIM:INTERP");
  EXPECT_TRUE(failed.timeline->reached(failed.value));
  error_of([&] { read(c); });  // half-written
  EXPECT_NO_THROW(copy(a, c)) << "told once";
  EXPECT_EQ(read(c), (std::vector<float>{1, 2}));
}

TEST_F(Sim, WhoNeverWaitsIsToldByTheNextSubmit) {
  auto a = filled({1, 2}), b = filled({0, 0});
  device.fail_after(0, Device::Fault::Lost);
  const TimelinePoint failed = copy(a, b);
  failed.timeline->wait(failed.value);
  const auto error = error_of([&] { copy(b, a); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->status(), ETIMEDOUT);
  EXPECT_HAS(error->what(), "never ran");
  EXPECT_NO_THROW(device.wait(copy(a, b)));
  EXPECT_EQ(read(b), (std::vector<float>{1, 2}));
}

TEST_F(Sim, WhatWaitsForAFailureIsNotBegun) {
  be_late(2, kLong / 10);
  for (int queue : {0, 1}) {
    auto a = filled({1, 2}), b = filled({0, 0}), c = filled({5, 5});
    device.fail_after(0);
    const TimelinePoint first = copy(a, b), then = copy(b, c, {first}, queue);
    first.timeline->wait(first.value);
    then.timeline->wait(then.value);
    ASSERT_NE(then.timeline->failure(then.value), nullptr);
    EXPECT_FALSE(then.timeline->failure(then.value)->begun);
    error_of([&] { device.wait(first); });
    error_of([&] { device.wait(then); });
    EXPECT_EQ(read(c), (std::vector<float>{5, 5})) << "it is as it was";
  }
}

TEST_F(Sim, AGoneDeviceSaysSo) {
  auto a = filled({1, 2}), b = filled({0, 0});
  device.fail_after(0, Device::Fault::Gone);
  const TimelinePoint failed = copy(a, b);
  const auto error = error_of([&] { device.wait(failed); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->status(), ENODEV);
  for (const auto& again : {error_of([&] { copy(a, b); }), error_of([&] { read(a); }),
                            error_of([&] { filled({1}); })}) {
    ASSERT_TRUE(again);
    EXPECT_EQ(again->status(), ENODEV);
    EXPECT_HAS(again->what(), "gone");
  }
}

TEST_F(Sim, SignalsOfOthersFailToo) {
  Timeline mine;
  auto a = filled({1, 2}), b = filled({0, 0});
  const Command command = Command::copy({a.get()}, {b.get()}, 8);
  const TimelinePoint signal{&mine, 4};
  device.wait(device.submit(0, {&command, 1}, {}, {&signal, 1}));
  EXPECT_TRUE(mine.reached(4));
  device.fail_after(0);
  const TimelinePoint next{&mine, 5}, failed = device.submit(0, {&command, 1}, {}, {&next, 1});
  mine.wait(5);
  error_of([&] { raise_failure(next); });
  error_of([&] { device.wait(failed); });
}

// ---- what it reports

TEST_F(Sim, AMissingWaitBetweenQueues) {
  auto a = filled({1, 2}), b = filled({0, 0}, "b"), c = filled({0, 0});
  const TimelinePoint written = copy(a, b, {}, 0);
  EXPECT_HAS(error_of([&] { copy(b, c, {}, 1); })->what(), "queue 1 reads b");
  const TimelinePoint read_by_1 = copy(b, c, {written}, 1);
  EXPECT_HAS(error_of([&] { copy(a, b, {}, 0); })->what(), "queue 0 writes b");
  device.wait(copy(a, b, {read_by_1}, 0));
  EXPECT_NO_THROW(device.wait(copy(b, c, {}, 1))) << "the host has waited";
}

TEST_F(Sim, AMissingWaitOfTheHost) {
  be_late(7, kLong / 10);
  // Past the buffer's own record of who uses it, as a driver with an error would.
  WaitCheck check(device);
  auto a = filled({1, 2}), b = filled({0, 0}, "b");
  const Command command = Command::copy({a.get()}, {b.get()}, 8);
  check.check({0, {&command, 1}, {}, {}, 1});
  EXPECT_HAS(error_of([&] { check.check_host(*b, false); })->what(), "the host reads b");
  EXPECT_HAS(error_of([&] { check.check_host(*a, true); })->what(), "the host writes data");
  EXPECT_NO_THROW(check.check_host(*a, false));
  check.host_waited({&device.timeline(0), 1});
  EXPECT_NO_THROW(check.check_host(*b, false));
}

TEST_F(Sim, MemoryGivenAwayTooEarly) {
  be_late(4, kLong);
  for (bool reused : {false, true}) {
    auto a = filled(std::vector<float>(4096, 1)), b = filled(std::vector<float>(4096, 0));
    TimelinePoint last;
    for (int i = 0; i < 8; ++i) last = copy(a, b);
    device.allocator().forget_uses(*a);  // as if nobody kept count
    a.reset();
    if (reused)
      device.allocate(4096 * 4);
    else
      device.allocator().trim();
    EXPECT_HAS(error_of([&] { copy(b, b); })->what(), reused ? "given out again" : "is freed");
    last.timeline->wait(last.value);
  }
}

TEST_F(Sim, AMissingWaitForAPartOfABuffer) {
  auto a = filled(std::vector<float>(8, 1)), b = filled(std::vector<float>(8, 0), "b");
  const auto copy_part = [&](int64_t begin, int64_t bytes, int queue) {
    const Command command = Command::copy({a.get(), begin}, {b.get(), begin}, bytes);
    return device.submit(queue, {&command, 1});
  };
  const TimelinePoint done = copy_part(4, 16, 0);
  EXPECT_NO_THROW(copy_part(20, 12, 1)) << "beside it";
  EXPECT_NO_THROW(copy_part(0, 4, 1));
  EXPECT_HAS(error_of([&] { copy_part(16, 8, 1); })->what(), "writes b (bytes 16 to 24)");
  EXPECT_HAS(error_of([&] { copy_part(0, 5, 1); })->what(), "queue 0 uses at point");
  device.wait(done);
}

// ---- random programs on several queues

/// Copies and additions between a few buffers on both queues, each waiting for what it has to. What
/// it has to wait for is kept in the plainest way: the last point that wrote, and all that read
/// since.
class SimFuzz : public Sim {
 protected:
  static constexpr size_t kBuffers = 6, kFloats = 1024;  // of sample_add()

  /// Executables outlive what launches them.
  void TearDown() override {
    for (int queue = 0; queue < SimDevice::kQueues; ++queue) device.wait(device.submit(queue, {}));
  }

  struct Last {
    TimelinePoint written;
    std::vector<TimelinePoint> read;
  };
  /// Runs program `seed`; with `leave_out`, the first that needs waits has none (later ones may
  /// know from others), and whether that was reported.
  bool program(uint64_t seed, bool leave_out) {
    Random random(seed);
    be_late(seed, 300'000);
    std::vector<std::vector<float>> expected;
    std::vector<BufferRef> buffers;
    for (size_t i = 0; i < kBuffers; ++i) {
      expected.emplace_back(kFloats, static_cast<float>(random.below(100)));
      buffers.push_back(filled(expected.back()));
    }
    std::vector<Last> last(kBuffers);
    bool left_out = false;
    for (int64_t i = 0, steps = random.between(5, 20); i < steps; ++i) {
      const auto pick = [&] { return static_cast<size_t>(random.below(kBuffers)); };
      const size_t to = pick(), x = pick(), y = pick();
      const int queue = static_cast<int>(random.below(SimDevice::kQueues));
      std::vector<TimelinePoint> needed;
      const auto need = [&](TimelinePoint p) {
        if (p.timeline && p.timeline != &device.timeline(queue)) needed.push_back(p);
      };
      for (size_t from : {x, y}) need(last[from].written);
      need(last[to].written);
      for (const TimelinePoint& p : last[to].read) need(p);
      if (leave_out && !needed.empty()) {
        needed.clear();
        left_out = true;
      }
      const BufferSlice slices[] = {{buffers[to].get()}, {buffers[x].get()}, {buffers[y].get()}};
      const Command command = Command::launch(*add_[0], slices, {}, kFloats / 16);
      TimelinePoint done;
      try {
        done = device.submit(queue, {&command, 1}, needed);
      } catch (const DeviceError& error) {
        EXPECT_HAS(error.what(), "without waiting");
        return true;
      }
      if (left_out) return false;
      for (size_t from : {x, y}) last[from].read.push_back(done);
      last[to] = {done, {}};
      for (size_t k = 0; k < kFloats; ++k) expected[to][k] = expected[x][k] + expected[y][k];
      if (!leave_out && random.chance(10)) {
        EXPECT_EQ(read(buffers[to]), expected[to]);
      }
    }
    for (size_t i = 0; i < kBuffers; ++i) EXPECT_EQ(read(buffers[i]), expected[i]);
    return leave_out && !left_out;  // nothing needed a wait
  }

  const LinearProgram program_ = testing::sample_add();
  std::vector<std::unique_ptr<Executable>> add_ =
      device.load(std::vector<ProgramSource>{{&program_, "", "add"}});
};

TEST_F(SimFuzz, QueuesOutOfStepGiveTheSame) {
  for (uint64_t seed = 0; seed < 100 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    program(seed, false);
  }
}
TEST_F(SimFuzz, EveryMissingWaitIsFound) {
  for (uint64_t seed = 0; seed < 100; ++seed) EXPECT_TRUE(program(seed, true)) << seed;
}
TEST_F(SimFuzz, SlowQueuesOutOfStepGiveTheSame) {
  for (uint64_t seed = 1000; seed < 21'000 && !HasFailure(); ++seed) program(seed, false);
}

TEST_F(SimFuzz, SeveralThreadsSubmitToIt) {
  be_late(9, 100'000);
  std::vector<std::thread> threads;
  for (int queue = 0; queue < SimDevice::kQueues; ++queue)
    threads.emplace_back([&, queue] {
      auto x = filled(std::vector<float>(kFloats, 1)), sum = filled(std::vector<float>(kFloats, 0));
      const BufferSlice slices[] = {{sum.get()}, {sum.get()}, {x.get()}};
      const Command command = Command::launch(*add_[0], slices, {}, kFloats / 16);
      for (int i = 0; i < 100; ++i) device.submit(queue, {&command, 1});
      EXPECT_EQ(read(sum), std::vector<float>(kFloats, 100));
    });
  for (std::thread& t : threads) t.join();
}

}  // namespace
}  // namespace weft
