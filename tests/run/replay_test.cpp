#include "weft/run/replay.h"

#include <functional>

#include "tests/run/fixture.h"

namespace weft {
namespace {

using Args = std::vector<ReplayArgument>;
using Vars = std::vector<ReplayVariable>;

class ReplayTest : public RunTest {
 protected:
  using Function = std::function<std::vector<StorageRef>(const Args&)>;

  std::unique_ptr<Replay> capture(const Args& args, const Function& f, const Vars& vars = {}) {
    CaptureScope recording(context, args, vars);
    const std::vector<StorageRef> results = f(args);
    return recording.finish(results);
  }
  /// The text of the Error that `f` throws.
  std::string error_of(const std::function<void()>& f) {
    try {
      f();
    } catch (const Error& e) {
      return e.what();
    }
    return "no error";
  }
  static void expect_says(const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }
  StorageRef plus(const StorageRef& a, double x) {
    return lazy([&] { return g.add(a->value(), num(x)); });
  }
  NodeRef bind(NodeRef v, int64_t n) {
    const NodeRef src[] = {v, g.index(n)};
    return g.intern({Op::Bind, DType::Index, src});
  }
};

TEST_F(ReplayTest, RunsAgainWithOtherArguments) {
  StorageRef x = from({1, 2, 3});
  auto replay = capture({{"x", x}}, [&](const Args& a) {
    return std::vector{lazy([&] { return sum(g.mul(a[0].storage->value(), num(2))); })};
  });
  EXPECT_EQ(replay->kernels(), 1u);
  const RunStats before = run_stats(context);
  for (int i = 0; i < 10; ++i) {
    StorageRef y = from({float(i), 1, 1});
    EXPECT_EQ(read(replay->run(Args{{"x", y}})[0]), (Floats{2.f * i + 4}));
  }
  const RunStats after = run_stats(context);
  EXPECT_EQ(after.schedules.misses, before.schedules.misses);
  EXPECT_EQ(after.kernels, before.kernels + 10);
}

/// A replay needs nothing of them, and they are captured again as well as before.
TEST_F(ReplayTest, CachesLetGoOfLargePrograms) {
  const auto steps = [this](int count, StorageRef x) {
    return lazy([&] {
      NodeRef y = x->value();
      for (int i = 0; i < count; ++i)
        y = g.make(Op::Contiguous, DType::F32, {g.sub(g.mul(num(2), y), num(1))});
      return y;
    });
  };
  for (const int count : {10, 3000})
    for (int again = 0; again < 2; ++again) {
      auto replay = capture({{"x", from({1, 1})}},
                            [&](const Args& a) { return std::vector{steps(count, a[0].storage)}; });
      EXPECT_EQ(replay->kernels(), static_cast<size_t>(count));
      EXPECT_LT(run_stats(context).schedules.bytes, int64_t{1} << 20);
      EXPECT_EQ(run_stats(context).schedules.evictions, count == 10 ? 0 : 1 + again);
      for (int call = 0; call < 3; ++call)
        EXPECT_EQ(read(replay->run(Args{{"x", from({1, 1})}})[0]), (Floats{1, 1}));
    }
  read(steps(3000, from({1, 1})));
  EXPECT_GT(run_stats(context).schedules.bytes, int64_t{1} << 20) << "what is not captured stays";
}

TEST_F(ReplayTest, TheResultOfTheCapturingCallIsRightToo) {
  StorageRef x = from({1, 2, 3}), result;
  capture({{"x", x}}, [&](const Args& a) { return std::vector{result = plus(a[0].storage, 1)}; });
  EXPECT_EQ(read(result), (Floats{2, 3, 4}));
}

// tinygrad #7020, #6803: a returned tensor was the buffer of the next call's result.
TEST_F(ReplayTest, ResultsOfTwoCallsDoNotAlias) {
  StorageRef x = from({1, 2});
  auto replay =
      capture({{"x", x}}, [&](const Args& a) { return std::vector{plus(a[0].storage, 1)}; });
  StorageRef first = replay->run(Args{{"x", from({10, 20})}})[0];
  StorageRef second = replay->run(Args{{"x", from({30, 40})}})[0];
  EXPECT_EQ(read(first), (Floats{11, 21}));
  EXPECT_EQ(read(second), (Floats{31, 41}));
}

// tinygrad #14278, #7637: output fed back as the next input.
TEST_F(ReplayTest, AResultMayBeTheNextArgument) {
  StorageRef x = from({0, 0});
  auto replay =
      capture({{"x", x}}, [&](const Args& a) { return std::vector{plus(a[0].storage, 1)}; });
  for (int i = 1; i <= 10; ++i) {
    x = replay->run(Args{{"x", x}})[0];
    EXPECT_EQ(read(x), (Floats{float(i), float(i)}));
  }
}

// tinygrad #16620: an assign to an argument was ignored on replay.
TEST_F(ReplayTest, AWrittenArgumentIsWrittenAgain) {
  auto f = [&](const Args& a) {
    assign(a[0].storage, [&] { return g.mul(a[0].storage->value(), num(3)); });
    return std::vector<StorageRef>{};
  };
  auto replay = capture({{"x", from({1, 2})}}, f);
  StorageRef y = from({5, 6});
  replay->run(Args{{"y", y}});
  EXPECT_EQ(read(y), (Floats{15, 18}));
  replay->run(Args{{"y", y}});
  EXPECT_EQ(read(y), (Floats{45, 54}));
}

// tinygrad #13642: gradient accumulation into state.
TEST_F(ReplayTest, StateAccumulates) {
  StorageRef total = from({0, 0});
  total->set_label("total");
  auto f = [&](const Args& a) {
    assign(total, [&] { return g.add(total->value(), a[0].storage->value()); });
    return std::vector<StorageRef>{};
  };
  auto replay = capture({{"x", from({1, 2})}}, f);
  const void* place = total->buffer()->block();
  for (int i = 0; i < 5; ++i) replay->run(Args{{"x", from({10, 20})}});
  EXPECT_EQ(read(total), (Floats{51, 102}));
  EXPECT_EQ(total->buffer()->block(), place) << "state is updated where it is";
}

// tinygrad #9434, tt-metal #56184: random numbers repeat on replay. The counter is state.
TEST_F(ReplayTest, ACounterAdvances) {
  StorageRef counter = from({7});
  auto replay = capture({}, [&](const Args&) {
    StorageRef drawn = lazy([&] { return g.mul(counter->value(), num(100)); });
    assign(counter, [&] { return g.add(counter->value(), num(1)); });
    return std::vector{drawn};
  });
  EXPECT_EQ(read(replay->run(Args{})[0]), (Floats{800}));
  EXPECT_EQ(read(replay->run(Args{})[0]), (Floats{900}));
  EXPECT_EQ(read(counter), (Floats{10}));
}

// tinygrad #14689: an overlapping shift inside a buffer.
TEST_F(ReplayTest, AShiftInPlace) {
  StorageRef p = from({1, 2, 3, 4});
  auto f = [&](const Args& a) {
    assign(p, [&] {
      NodeRef old = p->value();
      const NodeRef src[] = {old, shrink(old, g.index(1), g.index(3)),
                             shrink(old, g.index(0), g.index(3))};
      return g.make({Op::Assign, DType::F32, src});
    });
    assign(p, [&] {
      NodeRef old = p->value();
      const NodeRef src[] = {old, shrink(old, g.index(0), g.index(1)), a[0].storage->value()};
      return g.make({Op::Assign, DType::F32, src});
    });
    return std::vector<StorageRef>{};
  };
  auto replay = capture({{"x", from({9})}}, f);
  EXPECT_EQ(read(p), (Floats{9, 1, 2, 3}));
  replay->run(Args{{"x", from({8})}});
  replay->run(Args{{"x", from({7})}});
  EXPECT_EQ(read(p), (Floats{7, 8, 9, 1}));
}

TEST_F(ReplayTest, StateThatWasSetBetweenCallsIsSeen) {
  StorageRef p = from({1, 1});
  auto replay = capture({{"x", from({1, 2})}}, [&](const Args& a) {
    return std::vector{lazy([&] { return g.mul(a[0].storage->value(), p->value()); })};
  });
  assign(p, [&] { return g.add(p->value(), num(9)); });  // lazily
  EXPECT_EQ(read(replay->run(Args{{"x", from({1, 2})}})[0]), (Floats{10, 20}));
  StorageRef other = from({3, 3});
  assign(p, [&] { return other->value(); });
  EXPECT_EQ(read(replay->run(Args{{"x", from({1, 2})}})[0]), (Floats{3, 6}));
}

TEST_F(ReplayTest, WhoLooksAtOldStateKeepsIt) {
  StorageRef p = from({1, 2});
  auto replay = capture({}, [&](const Args&) {
    assign(p, [&] { return g.add(p->value(), num(1)); });
    return std::vector{p};
  });
  StorageRef lazy_reader = lazy([&] { return g.mul(p->value(), num(10)); });
  StorageRef snapshot = lazy([&] { return p->value(); });
  StorageRef returned = replay->run(Args{})[0];
  EXPECT_EQ(returned, p) << "the state itself was returned";
  EXPECT_EQ(read(p), (Floats{3, 4}));
  EXPECT_EQ(read(lazy_reader), (Floats{20, 30}));
  EXPECT_EQ(read(snapshot), (Floats{2, 3}));
  replay->run(Args{});
  EXPECT_EQ(read(p), (Floats{4, 5}));
  EXPECT_EQ(read(snapshot), (Floats{2, 3}));
}

TEST_F(ReplayTest, StateThatIsReplacedAsAWhole) {
  StorageRef best = from({0, 0}), seen = lazy([&] { return best->value(); });
  auto replay = capture({{"x", from({1, 2})}}, [&](const Args& a) {
    assign(best, [&] { return g.mul(a[0].storage->value(), num(2)); });
    return std::vector<StorageRef>{};
  });
  replay->run(Args{{"x", from({5, 6})}});
  EXPECT_EQ(read(best), (Floats{10, 12}));
  EXPECT_EQ(read(seen), (Floats{0, 0}));
}

TEST_F(ReplayTest, StateSetToAnArgumentSharesUntilWritten) {
  StorageRef last = from({0, 0});
  auto replay = capture({{"x", from({1, 2})}}, [&](const Args& a) {
    assign(last, [&] { return a[0].storage->value(); });
    return std::vector<StorageRef>{};
  });
  StorageRef x = from({3, 4});
  replay->run(Args{{"x", x}});
  assign(x, [&] { return g.add(x->value(), num(100)); });
  EXPECT_EQ(read(x), (Floats{103, 104}));
  EXPECT_EQ(read(last), (Floats{3, 4}));
}

TEST_F(ReplayTest, SeveralRealizationsShareOneArena) {
  StorageRef x = from(Floats(1000, 1));
  auto f = [&](const Args& a) {
    StorageRef s = a[0].storage;
    for (int i = 0; i < 8; ++i) {
      s = plus(s, 1);
      run({s});
    }
    return std::vector{s};
  };
  auto replay = capture({{"x", x}}, f);
  EXPECT_EQ(replay->kernels(), 8u);
  const int64_t alignment = memory().alignment();
  EXPECT_EQ(replay->arena_bytes(), 2 * ((4000 + alignment - 1) / alignment * alignment))
      << replay->plan_text();
  EXPECT_EQ(read(replay->run(Args{{"x", from(Floats(1000, 5))}})[0]), Floats(1000, 13));
}

/// One runs at a time: what they need together is what the largest needs.
TEST_F(ReplayTest, CapturedFunctionsShareOneArena) {
  const auto live = [&] {
    context.get<BufferTable>().sweep();
    return run_stats(context).memory_live;
  };
  const auto steps = [&](int64_t size) {
    StorageRef x = from(Floats(static_cast<size_t>(size), 1));
    return capture({{"x", x}}, [&](const Args& a) {
      StorageRef s = a[0].storage;
      for (int i = 0; i < 4; ++i) run({s = plus(s, 1)});
      return std::vector{s};
    });
  };
  const auto is_right = [&](Replay& f, size_t size, float value) {
    EXPECT_EQ(read(f.run(Args{{"x", from(Floats(size, value))}})[0]), Floats(size, value + 4));
  };
  const int64_t before = live();
  auto small = steps(1000);
  is_right(*small, 1000, 1);
  EXPECT_EQ(live() - before, small->arena_bytes());
  auto large = steps(50000), middle = steps(20000);
  for (int i = 0; i < 3; ++i) {
    is_right(*middle, 20000, 3);
    is_right(*large, 50000, 5);
    is_right(*small, 1000, 7);
    EXPECT_EQ(live() - before, large->arena_bytes());
  }
  EXPECT_LT(small->arena_bytes(), middle->arena_bytes());
  large.reset();
  is_right(*small, 1000, 2);
  EXPECT_EQ(live() - before, middle->arena_bytes());
  is_right(*middle, 20000, 4);
  middle.reset();
  small.reset();
  EXPECT_EQ(live(), before);
}

TEST_F(ReplayTest, ConstantArgumentsGetMemory) {
  StorageRef x = lazy([&] { return num(4); });
  auto f = [&](const Args& a) { return std::vector{plus(a[0].storage, 1)}; };
  auto replay = capture({{"x", x}}, f);
  StorageRef y = lazy([&] { return num(7); });
  EXPECT_EQ(read(replay->run(Args{{"x", y}})[0]), (Floats{8}));
}

TEST_F(ReplayTest, EqualArgumentsAreNotConfused) {
  StorageRef a = lazy([&] { return num(1); }), b = lazy([&] { return num(1); });
  run({a, b});
  auto f = [&](const Args& x) {
    return std::vector{
        lazy([&] { return g.sub(x[0].storage->value(), g.mul(num(10), x[1].storage->value())); })};
  };
  auto replay = capture({{"a", a}, {"b", b}}, f);
  StorageRef five = lazy([&] { return num(5); }), six = lazy([&] { return num(6); });
  EXPECT_EQ(read(replay->run(Args{{"a", five}, {"b", six}})[0]), (Floats{-55}));
}

// ---- what cannot be replayed correctly is an error that names it

TEST_F(ReplayTest, TheSameTensorTwice) {
  StorageRef x = from({1, 2});
  expect_says(error_of([&] { CaptureScope scope_(context, Args{{"a", x}, {"b", x}}); }),
              "[jit] a and b share memory");
  StorageRef y = from({3, 4});
  auto replay = capture({{"a", x}, {"b", y}}, [&](const Args& a) {
    return std::vector{lazy([&] { return g.add(a[0].storage->value(), a[1].storage->value()); })};
  });
  expect_says(error_of([&] { replay->run(Args{{"a", x}, {"b", x}}); }), "a and b share memory");
}

TEST_F(ReplayTest, ReadingOnTheHostWhileCapturing) {
  StorageRef x = from({1, 2});
  x->set_label("weights");
  expect_says(error_of([&] {
                capture({{"x", x}}, [&](const Args&) {
                  read(x);
                  return std::vector<StorageRef>{};
                });
              }),
              "weights is read on the host inside a captured function");
  EXPECT_EQ(read(x), (Floats{1, 2})) << "the capture ended with the error";
}

TEST_F(ReplayTest, HostDataMadeWhileCapturing) {
  StorageRef kept;
  expect_says(
      error_of([&] {
        capture({{"x", from({1, 2})}}, [&](const Args& a) {
          kept = from({1, 1});
          return std::vector{lazy([&] { return g.add(a[0].storage->value(), kept->value()); })};
        });
      }),
      "was filled from host data inside the captured function");
}

TEST_F(ReplayTest, MemoryThatNobodyOwns) {
  StorageRef hidden = from({1, 1});
  NodeRef node = hidden->value();
  g.retain(node);
  hidden.reset();
  expect_says(error_of([&] {
                capture({{"x", from({1, 2})}}, [&](const Args& a) {
                  return std::vector{lazy([&] { return g.add(a[0].storage->value(), node); })};
                });
              }),
              "reads data from the host (8 bytes), which is neither an argument nor");
  g.release(node);
}

TEST_F(ReplayTest, NestedCaptures) {
  StorageRef x = from({1, 2}), y = from({1, 2});
  auto inner =
      capture({{"x", y}}, [&](const Args& a) { return std::vector{plus(a[0].storage, 1)}; });
  CaptureScope outer(context, Args{{"x", x}});
  expect_says(error_of([&] { CaptureScope scope_(context, Args{{"y", y}}); }),
              "while another one is being captured");
  expect_says(error_of([&] { inner->run(Args{{"x", y}}); }), "while another one is being captured");
}

TEST_F(ReplayTest, OtherShapesDtypesDevicesAndCounts) {
  auto replay = capture({{"x", from({1, 2})}},
                        [&](const Args& a) { return std::vector{plus(a[0].storage, 1)}; });
  expect_says(error_of([&] { replay->run(Args{{"x", from({1, 2, 3})}}); }),
              "x has shape (3), had (2) when the function was captured");
  expect_says(error_of([&] { replay->run(Args{}); }), "0 tensors are passed, 1 were");
  StorageRef ints = lazy([&] { return g.cast(from({1, 2})->value(), DType::I32); });
  expect_says(error_of([&] { replay->run(Args{{"x", ints}}); }), "x is i32, was f32");
  const Floats data{1, 2};
  const NodeRef dims[] = {g.index(2)};
  Device& other = context.get<DeviceTable>().open(testing::device_here("CPU:INTERP:1"));
  StorageRef elsewhere =
      storage_from_bytes(context, std::as_bytes(std::span(data)), DType::F32, dims, other.id());
  expect_says(error_of([&] { replay->run(Args{{"x", elsewhere}}); }),
              "x is on " + other.name() + ", was on " + testing::device_here("CPU:INTERP"));
}

TEST_F(ReplayTest, AConstantThatChangedLater) {
  StorageRef scale = lazy([&] { return num(2); });
  scale->set_label("scale");
  auto replay = capture({{"x", from({1, 2})}}, [&](const Args& a) {
    return std::vector{lazy([&] { return g.mul(a[0].storage->value(), scale->value()); })};
  });
  run({scale});
  EXPECT_EQ(read(replay->run(Args{{"x", from({3, 4})}})[0]), (Floats{6, 8}));
  assign(scale, [&] { return num(5); });
  expect_says(error_of([&] { replay->run(Args{{"x", from({3, 4})}}); }),
              "scale was a constant when the function was captured");
}

TEST_F(ReplayTest, ALazyTensorFromOutside) {
  StorageRef p = from({1, 2}), lazy_one = plus(p, 1);
  lazy_one->set_label("offset");
  expect_says(
      error_of([&] {
        capture({{"x", from({1, 2})}}, [&](const Args& a) {
          return std::vector{lazy([&] { return g.add(a[0].storage->value(), lazy_one->value()); })};
        });
      }),
      "offset is read inside a captured function but was not computed before");
}

TEST_F(ReplayTest, ATensorThatWasMadeInsideAndKept) {
  StorageRef kept, computed;
  auto replay = capture({{"x", from({1, 2})}}, [&](const Args& a) {
    kept = plus(a[0].storage, 5);
    kept->set_label("kept");
    computed = plus(a[0].storage, 7);
    run({computed});
    return std::vector{plus(a[0].storage, 1)};
  });
  EXPECT_EQ(read(computed), (Floats{8, 9}));
  replay->run(Args{{"x", from({10, 20})}});
  EXPECT_EQ(read(computed), (Floats{17, 27})) << "what was realized inside is kept true";
  expect_says(error_of([&] { read(kept); }), "kept was made inside a captured function");
}

// ---- variables

TEST_F(ReplayTest, LengthsVary) {
  NodeRef n = g.variable("n", 1, 100);
  g.retain(n);
  StorageRef x = from(Floats(100, 1));
  int64_t length = 10;
  auto f = [&](const Args& a) {
    StorageRef part = lazy(
        [&] { return g.add(shrink(a[0].storage->value(), g.index(0), bind(n, length)), num(1)); });
    run({part});
    return std::vector{part, lazy([&] { return sum(part->value()); })};
  };
  auto replay = capture({{"x", x}}, f, {{n, length}});
  const RunStats before = run_stats(context);
  for (length = 1; length <= 100; ++length) {
    auto out = replay->run(Args{{"x", x}}, Vars{{n, length}});
    ASSERT_EQ(read(out[1]), Floats{2.f * static_cast<float>(length)});
    ASSERT_EQ(read(out[0]), Floats(static_cast<size_t>(length), 2.f));
  }
  EXPECT_EQ(run_stats(context).schedules.misses, before.schedules.misses);
  expect_says(error_of([&] { replay->run(Args{{"x", x}}, Vars{{n, 101}}); }),
              "variable n is 101; it must lie in [1, 100]");
  expect_says(error_of([&] { replay->run(Args{{"x", x}}); }), "variable n was given when");
  expect_says(error_of([&] { capture({{"x", x}}, f); }),
              "variable n is bound to 101 inside the captured function");
  g.release(n);
}

// ---- failures

TEST_F(ReplayTest, AFailedAllocationChangesNothing) {
  StorageRef p = from({1, 2});
  auto f = [&](const Args& a) {
    assign(p, [&] { return g.add(p->value(), a[0].storage->value()); });
    return std::vector{plus(p, 1)};
  };
  auto replay = capture({{"x", from({1, 1})}}, f);
  EXPECT_EQ(read(p), (Floats{2, 3}));
  StorageRef x = from({1, 1});
  memory().fail_after(0);
  expect_says(error_of([&] { replay->run(Args{{"x", x}}); }), "an injected fault");
  EXPECT_EQ(read(p), (Floats{2, 3}));
  EXPECT_EQ(read(replay->run(Args{{"x", x}})[0]), (Floats{4, 5}));
  EXPECT_EQ(read(p), (Floats{3, 4}));
}

/// Of a network, weights that were made are gigabytes that no call asks for again.
TEST_F(ReplayTest, FirstCallGivesBackWhatWasFreedBefore) {
  auto replay = capture({{"x", from({1, 1})}},
                        [&](const Args& a) { return std::vector{plus(a[0].storage, 1)}; });
  from(Floats(1 << 20, 1));  // nobody has it
  context.get<BufferTable>().sweep();
  ASSERT_GE(memory().stats().cached_bytes, 4 << 20);
  replay->run(Args{{"x", from({1, 1})}});
  EXPECT_LT(memory().stats().cached_bytes, 1 << 20);
}

TEST_F(ReplayTest, TenThousandCallsInFlatMemory) {
  StorageRef p = from({1, 2});
  auto replay = capture({{"x", from({1, 1})}}, [&](const Args& a) {
    assign(p, [&] { return g.mul(p->value(), num(0.5)); });
    return std::vector{plus(a[0].storage, 1)};
  });
  StorageRef x = from({1, 1});
  for (int i = 0; i < 1000; ++i) replay->run(Args{{"x", x}});
  const int64_t live = memory().stats().live_bytes;
  const size_t nodes = g.bytes();
  for (int i = 0; i < 9000; ++i) replay->run(Args{{"x", x}});
  EXPECT_LE(memory().stats().live_bytes, live + 64);
  EXPECT_LE(g.bytes(), nodes + (size_t{4} << 20));
}

}  // namespace
}  // namespace weft
