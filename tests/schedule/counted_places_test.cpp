// A pass of a counting sort: what goes to counted places goes there as they are counted.
#include "tests/schedule/schedule_test.h"

namespace weft {
namespace {

class CountedPlacesTest : public ScheduleTest {
 protected:
  static constexpr int64_t kBlocks = 2, kLength = 40, kDigits = 8;

  /// Of digits (blocks, elements): 40 places for each digit of each block.
  NodeRef places(NodeRef digit) {
    const int64_t blocks = digit->dim(0)->vmin;
    const auto times = [&](NodeRef x, int64_t n) {
      NodeRef number = b_.reshape(b_.constant(double(n), DType::I32), {1, 1});
      return g_.mul(x, b_.expand(number, {blocks, kDigits}));
    };
    NodeRef block = b_.iota({blocks, kDigits}, 0), which = b_.iota({blocks, kDigits}, 1);
    NodeRef first = g_.add(times(block, kDigits * kLength), times(which, kLength));
    return b_.make(Op::CumCount, DType::I32, {first, digit}, {1});
  }
  NodeRef flat(NodeRef x) { return b_.reshape(x, {x->dim(0)->vmin * kLength}); }
  /// Into a base of its own, all of whose other elements stay.
  NodeRef placed(NodeRef x, NodeRef place, int slot, int64_t unique = 1) {
    NodeRef base = b_.param(slot, {kBlocks * kDigits * kLength}, x->dtype);
    return b_.make(Op::Scatter, x->dtype, {base, place, x},
                   {0, static_cast<int64_t>(Fold::Set), unique});
  }

  /// Whether a kernel counts where it finds out where to store.
  static bool places_as_it_counts(const Schedule& s) {
    return std::ranges::any_of(s.kernels, [](const Kernel& k) {
      return std::ranges::any_of(k.sink->src(), [](NodeRef store) {
        return std::ranges::any_of(Toposort(store->src(1)),
                                   [](NodeRef n) { return n->op == Op::Store; });
      });
    });
  }
  static Schedule scheduled(std::initializer_list<NodeRef> values, const Target& target = kTarget) {
    std::vector<ScheduleOutput> outputs;
    for (NodeRef v : values) outputs.push_back({v});
    return make_schedule(outputs, target, {});
  }

  /// (blocks, kLength), each from 0 to 7.
  NodeRef digits(int64_t blocks) {
    NodeRef mask = b_.reshape(b_.constant(kDigits - 1, DType::I32), {1, 1});
    return g_.alu(Op::And,
                  {b_.param(0, {blocks, kLength}, DType::I32), b_.expand(mask, {blocks, kLength})});
  }

  NodeRef digit_ = digits(kBlocks);
  NodeRef x_ = b_.param(1, {kBlocks * kLength}, DType::I32);
};

TEST_F(CountedPlacesTest, AreUsedAsTheyAreCounted) {
  NodeRef out = placed(x_, flat(places(digit_)), 2);
  const Schedule s = scheduled({out});
  EXPECT_TRUE(places_as_it_counts(s));
  EXPECT_EQ(s.steps.size(), 3U) << "counts, the base, and one pass";
  check({{out}});
}

TEST_F(CountedPlacesTest, AlsoOfOneRowInAnotherType) {
  NodeRef place = flat(places(digits(1)));
  NodeRef as = b_.make(Op::Cast, DType::U32, {place}, {});
  NodeRef out = placed(b_.param(1, {kLength}), as, 2);
  EXPECT_TRUE(places_as_it_counts(scheduled({out})));
  check({{out}});
}

TEST_F(CountedPlacesTest, LieInMemoryWhereTheyMayMeet) {
  NodeRef out = placed(x_, flat(places(digit_)), 2, 0);
  EXPECT_FALSE(places_as_it_counts(scheduled({out}))) << "the last one stays, in order";
  check({{out}});
}

TEST_F(CountedPlacesTest, LieInMemoryWhereSomebodyElseAsks) {
  NodeRef place = places(digit_), out = placed(x_, flat(place), 2);
  EXPECT_FALSE(places_as_it_counts(scheduled({out, place})));
  check({{out}, {place}});
  NodeRef both = g_.add(out, placed(flat(digit_), flat(place), 3));
  EXPECT_FALSE(places_as_it_counts(scheduled({both})));
  check({{both}});
}

TEST_F(CountedPlacesTest, LieInMemoryWhereElementsGoAnotherWay) {
  NodeRef turned = b_.permute(places(digit_), {1, 0});
  NodeRef out = placed(x_, b_.reshape(turned, {kBlocks * kLength}), 2);
  EXPECT_FALSE(places_as_it_counts(scheduled({out})));
  check({{out}});
  NodeRef half = b_.shrink(flat(places(digit_)), {7}, {50});
  NodeRef few = placed(b_.shrink(x_, {0}, {50}), half, 2);
  EXPECT_FALSE(places_as_it_counts(scheduled({few})));
  check({{few}});
}

TEST_F(CountedPlacesTest, LieInMemoryOfGridsAndBeyondTheCaches) {
  NodeRef out = placed(x_, flat(places(digit_)), 2);
  EXPECT_FALSE(places_as_it_counts(scheduled({out}, make_target("opencl", CpuFeatures(), 2))));
  Target small = kTarget;
  small.machine.caches.back().bytes = 1024;
  EXPECT_FALSE(places_as_it_counts(scheduled({out}, small)));
}

}  // namespace
}  // namespace weft
