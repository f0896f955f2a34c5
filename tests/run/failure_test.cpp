// A realization or a replay in which an allocation or a command fails: afterwards every tensor
// reads its old or its new value, or says that it was lost; never anything else.
#include <cerrno>
#include <functional>
#include <optional>

#include "tests/run/fixture.h"
#include "weft/run/replay.h"
#include "weft/trust/random.h"

namespace weft {
namespace {

constexpr int kMostFaults = 40;

/// A fault in the n-th allocation or command of a device, and what came of it.
class Failure : public RunTest {
 protected:
  using Tensors = std::vector<StorageRef>;
  enum class Kind { Allocation, Command };

  Device& device(std::string_view name) {
    return context.get<DeviceTable>().open(testing::device_here(name));
  }
  static void inject(Device& on, Kind kind, int64_t n) {
    if (kind == Kind::Allocation)
      on.allocator().fail_after(n);
    else
      on.fail_after(n, n % 2 ? Device::Fault::Stop : Device::Fault::Lost);
  }
  /// Whether the fault happened: `body` threw what it has to.
  static bool fails(Device& on, Kind kind, int64_t n, const std::function<void()>& body) {
    inject(on, kind, n);
    try {
      body();
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), kind == Kind::Allocation ? ErrorKind::Memory : ErrorKind::Device)
          << e.what();
      return true;
    }
    inject(on, kind, -1);
    return false;
  }
  /// The value; nothing when it was lost, which the error has to say.
  std::optional<Floats> read_or_lost(const StorageRef& s) {
    try {
      return read(s);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), "storage.lost") << e.what();
      EXPECT_NE(std::string(e.what()).find("assign it anew"), std::string::npos) << e.what();
      return std::nullopt;
    }
  }
  NodeRef contiguous(NodeRef x) {
    const NodeRef src[] = {x};
    return g.make({Op::Contiguous, DType::F32, src});
  }
  NodeRef copy_to(NodeRef x, Device& to) {
    return g.make(Op::Copy, x->dtype, {x}, {int64_t{to.id()}});
  }
  NodeRef assigned(NodeRef old, NodeRef view, NodeRef value) {
    const NodeRef src[] = {old, view, value};
    return g.make({Op::Assign, DType::F32, src});
  }

  // ---- a step with everything in it: kernels before and after the first write in place, a write
  // through a view, a value read before it is overwritten, a second device

  struct Step {
    StorageRef p, q, whole, view, half, there;
    Tensors all() const { return {p, q, whole, view, half, there}; }
  };
  Step step() {
    Step s{from({1, 2, 3, 4}), from({5, 6, 7, 8}), from({0, 0, 0, 0}), from({1, 1, 1, 1}), {}, {}};
    s.half = lazy([&] { return g.mul(contiguous(g.add(s.p->value(), num(1))), num(0.5)); });
    s.there = lazy([&] {
      return g.mul(copy_to(contiguous(g.mul(s.q->value(), num(10))), device("CPU:INTERP:1")),
                   num(2));
    });
    assign(s.p, [&] { return g.add(s.p->value(), g.mul(s.q->value(), num(2))); });
    assign(s.q, [&] { return g.mul(s.q->value(), contiguous(sum(s.p->value()))); });
    assign(s.whole, [&] { return g.add(s.half->value(), num(100)); });
    assign(s.view, [&] {
      NodeRef old = s.view->value();
      return assigned(old, shrink(old, g.index(1), g.index(2)),
                      shrink(s.half->value(), g.index(0), g.index(2)));
    });
    return s;
  }
  static std::vector<Floats> after_step() {
    return {{11, 14, 17, 20}, {310, 372, 434, 496}, {101, 101.5, 102, 102.5},
            {1, 1, 1.5, 1},   {1, 1.5, 2, 2.5},     {100, 120, 140, 160}};
  }
  /// Fails every allocation or command of a step in turn; how often that was, and how many tensors
  /// were lost in all.
  std::pair<int, int> fail_each(std::string_view on, Kind kind) {
    int faults = 0, lost = 0;
    for (;; ++faults) {
      Step s = step();
      collect_garbage(context);
      const bool failed = fails(device(on), kind, faults, [&] { run(s.all()); });
      const std::vector<Floats> wanted = after_step();
      for (size_t i = 0; i < wanted.size(); ++i) {
        const std::optional<Floats> got = read_or_lost(s.all()[i]);
        lost += !got;
        EXPECT_EQ(got.value_or(wanted[i]), wanted[i]) << "fault " << faults << " tensor " << i;
      }
      if (!failed || faults > kMostFaults) break;
      Step again = step();  // what was lost is assigned anew, and all of it goes through
      run(again.all());
      for (size_t i = 0; i < wanted.size(); ++i) EXPECT_EQ(read(again.all()[i]), wanted[i]);
    }
    EXPECT_LE(faults, kMostFaults);
    return {faults, lost};
  }
};

TEST_F(Failure, NoAllocationLosesAnything) {
  const auto [here, lost_here] = fail_each("CPU:INTERP", Kind::Allocation);
  EXPECT_GE(here, 2);
  EXPECT_EQ(lost_here, 0);
  const auto [there, lost_there] = fail_each("CPU:INTERP:1", Kind::Allocation);
  EXPECT_GE(there, 1);
  EXPECT_EQ(lost_there, 0);
}

TEST_F(Failure, NoCommandGivesAWrongValue) {
  const auto [here, lost_here] = fail_each("CPU:INTERP", Kind::Command);
  EXPECT_GE(here, 5);
  EXPECT_GE(lost_here, 1) << "some fault comes when memory is half overwritten";
  const auto [there, lost_there] = fail_each("CPU:INTERP:1", Kind::Command);
  EXPECT_GE(there, 1);
}

TEST_F(Failure, WhatWasReadBeforeItsSourceWasOverwrittenIsLostWithIt) {
  StorageRef p = from({1, 2, 3, 4});
  p->set_label("weights");
  StorageRef shifted;
  {
    Graph::Building building(g);
    NodeRef old = p->value();
    p->set_value(contiguous(g.mul(old, num(2))));
    shifted = lazy([&] { return g.add(contiguous(g.add(old, num(1))), p->value()); });
  }
  shifted->set_label("shifted");
  ASSERT_TRUE(fails(device("CPU:INTERP"), Kind::Command, 2, [&] { run({p, shifted}); }));
  for (const StorageRef& s : {p, shifted}) {
    ASSERT_TRUE(s->lost());
    try {
      s->value();
      FAIL();
    } catch (const Error& e) {
      EXPECT_EQ(std::string(e.what()).find("[storage] the contents of " + s->label() +
                                           " were lost: memory it is computed from was being "
                                           "updated in place when [device]"),
                0u)
          << e.what();
    }
  }
  assign(p, [&] { return g.add(from({1, 2, 3, 4})->value(), num(0)); });
  EXPECT_EQ(read(p), (Floats{1, 2, 3, 4}));
  EXPECT_TRUE(shifted->lost());
}

TEST_F(Failure, MemoryWhoseOldContentsNobodyReadsIsNoLoss) {
  StorageRef p = from({1, 2, 3, 4}), q = from({5, 6, 7, 8});
  assign(p, [&] { return g.mul(q->value(), num(2)); });
  ASSERT_TRUE(fails(device("CPU:INTERP"), Kind::Command, 0, [&] { run({p}); }));
  EXPECT_EQ(read(p), (Floats{10, 12, 14, 16}));
}

TEST_F(Failure, ADeviceThatIsGoneTakesOnlyItsOwn) {
  const StorageRef here = from({1, 2, 3, 4});
  for (int n = 0; n < 2; ++n) {
    Device& sim = device(strformat("SIM:INTERP:{}", 2 + n));
    const StorageRef there = lazy([&] { return copy_to(g.mul(here->value(), num(2)), sim); });
    run({there});
    const auto on_sim = [&](double by) {
      return lazy(
          [&] { return contiguous(g.mul(contiguous(g.add(there->value(), num(1))), num(by))); });
    };
    const StorageRef fine = on_sim(3), lost = on_sim(5), after = on_sim(7);
    EXPECT_EQ(read(fine), (Floats{9, 15, 21, 27}));
    sim.fail_after(n, Device::Fault::Gone);
    const StorageRef back = lazy([&] {
      return g.add(copy_to(lost->value(), context.get<DeviceTable>().default_device()),
                   here->value());
    });
    for (const StorageRef& s : {back, lost, after, there, fine}) {
      try {
        read(s);
        ADD_FAILURE() << "read from a device that is gone";
      } catch (const DeviceError& error) {
        EXPECT_EQ(error.status(), ENODEV) << error.what();
      }
    }
    EXPECT_EQ(read(here), (Floats{1, 2, 3, 4}));
    EXPECT_EQ(read(lazy([&] { return g.add(here->value(), num(1)); })), (Floats{2, 3, 4, 5}));
  }
}

// ---- replays

TEST_F(Failure, AReplayLosesNoMoreThanWhatItWrites) {
  for (const Kind kind : {Kind::Allocation, Kind::Command}) {
    int faults = 0;
    for (;; ++faults) {
      StorageRef p = from({1, 2}), only_read = from({3, 4});
      const auto body = [&](const StorageRef& x) {
        StorageRef half = lazy([&] { return contiguous(g.mul(x->value(), num(0.5))); });
        assign(p, [&] { return g.add(p->value(), half->value()); });
        run({half, p});
        return Tensors{lazy([&] { return g.add(p->value(), only_read->value()); })};
      };
      const StorageRef first = from({2, 2}), x = from({4, 8});
      const ReplayArgument captured[] = {{"x", first}}, passed[] = {{"x", x}};
      std::unique_ptr<Replay> replay;
      {
        CaptureScope scope_(context, captured);
        const Tensors results = body(first);
        replay = scope_.finish(results);
      }
      collect_garbage(context);
      const bool failed = fails(device("CPU:INTERP"), kind, faults, [&] { replay->run(passed); });
      EXPECT_EQ(read(x), (Floats{4, 8}));
      EXPECT_EQ(read(only_read), (Floats{3, 4}));
      if (!failed) break;
      ASSERT_LE(faults, kMostFaults);
      const std::optional<Floats> now = read_or_lost(p);
      EXPECT_TRUE(now || kind == Kind::Command);
      EXPECT_EQ(now.value_or(Floats{2, 3}), (Floats{2, 3}));
      if (!now) assign(p, [&] { return from({2, 3})->value(); });
      EXPECT_EQ(read(replay->run(passed)[0]), (Floats{7, 11})) << "fault " << faults;
      EXPECT_EQ(read(p), (Floats{4, 7}));
    }
    EXPECT_GE(faults, kind == Kind::Allocation ? 1 : 2);
  }
}

/// New sizes mean new arenas on both devices; when the second is refused, the first must not be
/// used.
TEST_F(Failure, AReplayKeepsItsArenasWhenNewOnesAreRefused) {
  Device& other = device("CPU:INTERP:1");
  NodeRef n = g.variable("n", 1, 100);
  g.retain(n);
  StorageRef x = from(Floats(100, 1));
  std::unique_ptr<Replay> replay;
  const ReplayArgument arguments[] = {{"x", x}};
  const auto with = [&](int64_t length) { return std::vector<ReplayVariable>{{n, length}}; };
  {
    const std::vector<ReplayVariable> length = with(10);
    CaptureScope scope_(context, arguments, length);
    StorageRef total = lazy([&] {
      const NodeRef bind[] = {n, g.index(10)};
      NodeRef part = shrink(x->value(), g.index(0), g.intern({Op::Bind, DType::Index, bind}));
      NodeRef there = copy_to(contiguous(g.add(part, num(1))), other);
      return sum(contiguous(g.mul(there, num(3))));
    });
    run({total});
    const Tensors results = {total};
    replay = scope_.finish(results);
  }
  EXPECT_EQ(read(replay->run(arguments, with(20))[0]), (Floats{120}));
  for (const char* refusing : {"CPU:INTERP", "CPU:INTERP:1"}) {
    const bool refused =
        fails(device(refusing), Kind::Allocation, 0, [&] { replay->run(arguments, with(100)); });
    // One that finishes later waits for the arena that was given back, and asks again.
    ASSERT_TRUE(refused || testing::simulated());
    const Floats noise(200, 777);  // takes the place of what was given back
    StorageRef here = from(noise), there = lazy([&] { return copy_to(here->value(), other); });
    run({there});
    EXPECT_EQ(read(replay->run(arguments, with(20))[0]), (Floats{120}));
    EXPECT_EQ(read(here), noise);
    EXPECT_EQ(read(there), noise);
  }
  EXPECT_EQ(read(replay->run(arguments, with(100))[0]), (Floats{600}));
  g.release(n);
}

// ---- random programs with random faults

class FailureFuzz : public Failure {
 protected:
  NodeRef operand(const Tensors& from) {
    NodeRef n = random->pick(from)->value();
    const NodeRef src[] = {n};
    static constexpr int64_t kAxis[] = {0};
    return random->chance(25) ? g.make({Op::Flip, DType::F32, src, kAxis}) : n;
  }
  NodeRef value(const Tensors& from) {
    NodeRef a = operand(from), b = operand(from);
    const int64_t kind = random->below(4);
    if (kind == 0) return g.add(g.mul(a, num(0.5)), b);
    if (kind == 1) return contiguous(g.sub(a, b));
    if (kind == 2) return g.add(sum(a), g.mul(b, num(0.125)));
    return g.alu(Op::Max, {a, b});
  }
  void write(const StorageRef& to, const Tensors& all) {
    assign(to, [&]() -> NodeRef {
      if (random->chance(60)) return value(all);
      NodeRef old = to->value();
      const int64_t at = random->below(3);
      return assigned(old, shrink(old, g.index(at), g.index(2)),
                      shrink(value(all), g.index(random->below(3)), g.index(2)));
    });
  }
  /// The same values for the same seed; some of them lazy, some in memory.
  Tensors program(uint64_t seed) {
    random.emplace(seed);
    Tensors all = {from({1, 2, 3, 4}), from({4, 3, 2, 1}), from({-1, 5, 0.5, 8})};
    for (int64_t i = 0, steps = random->between(3, 9); i < steps; ++i) {
      const int64_t kind = random->below(5);
      if (kind == 0)
        run({random->pick(all)});
      else if (kind < 3)
        write(random->pick(all), all);
      else
        all.push_back(lazy([&] { return value(all); }));
    }
    return all;
  }
  Tensors some(const Tensors& all) {
    Tensors chosen;
    for (const StorageRef& s : all)
      if (random->chance(70)) chosen.push_back(s);
    return chosen;
  }
  /// Runs program `seed` with a fault; how many tensors were lost.
  int compare(uint64_t seed) {
    std::vector<Floats> wanted;
    for (const StorageRef& s : program(seed)) wanted.push_back(read(s));
    const Tensors all = program(seed), chosen = some(all);
    const Kind kind = random->chance(30) ? Kind::Allocation : Kind::Command;
    fails(device("CPU:INTERP"), kind, random->below(5), [&] { run(chosen); });
    int lost = 0;
    for (const size_t first : {size_t{0}, all.size() - 1})  // in both orders
      for (size_t k = 0; k < all.size(); ++k) {
        const size_t i = first == 0 ? k : first - k;
        const std::optional<Floats> got = read_or_lost(all[i]);
        EXPECT_TRUE(got || kind == Kind::Command);
        EXPECT_EQ(got.value_or(wanted[i]), wanted[i]) << "tensor " << i;
        lost += !got;
      }
    return lost;
  }
  void run_programs(uint64_t first, uint64_t count) {
    int lost = 0;
    for (uint64_t seed = first; seed < first + count && !HasFailure(); ++seed) {
      SCOPED_TRACE(seed);
      lost += compare(seed);
    }
    EXPECT_GT(lost, static_cast<int>(count / 20)) << "faults have to come in bad moments too";
  }

  std::optional<Random> random;
};

TEST_F(FailureFuzz, EveryTensorIsRightOrLost) { run_programs(0, 300); }
TEST_F(FailureFuzz, SlowEveryTensorIsRightOrLost) { run_programs(1000, 100'000); }

}  // namespace
}  // namespace weft
