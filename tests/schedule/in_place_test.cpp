// Intermediates written where their kernel is the last to read one.
#include "tests/schedule/schedule_test.h"

namespace weft {
namespace {

class InPlace : public ScheduleTest {
 protected:
  InPlace() { target_.machine.caches[2].bytes = 64; }

  static bool is_intermediate(const BufferSpec& b) { return b.input < 0 && b.output < 0; }

  /// Kernels that write an intermediate which a kernel before has written.
  int written_again(NodeRef value, const Target& target) {
    const Schedule s = make_schedule(std::vector<ScheduleOutput>{{value}}, target);
    std::vector<bool> written(s.buffers.size());
    int again = 0;
    for (const ScheduleStep& step : s.steps)
      for (NodeRef store : s.kernels[static_cast<size_t>(step.kernel)].sink->src()) {
        const auto b =
            static_cast<size_t>(step.buffers[static_cast<size_t>(param_slot(store->src(0)))]);
        again += written[b] && is_intermediate(s.buffers[b]);
        written[b] = true;
      }
    return again;
  }
  int written_again(NodeRef value) { return written_again(value, target_); }

  NodeRef stored(NodeRef n) { return g_.make(Op::Contiguous, n->dtype, {n}); }
  NodeRef square(int64_t n) { return stored(b_.matmul(b_.param(0, {n, n}), b_.param(1, {n, n}))); }
  void check_numbers(NodeRef value) {
    testing::RunOptions options;
    options.target = &target_;
    for (const char* device : {"INTERP", "CPU", "SIM"}) {
      options.device = device;
      check({{value}}, 1e-5, options);
    }
  }

  Target target_ = kTarget;
};

TEST_F(InPlace, TheLastReaderOfAValueWritesWhereItLies) {
  NodeRef x = square(16);
  NodeRef y = stored(g_.alu(Op::Exp2, {g_.mul(x, b_.constant(0.25))}));
  NodeRef z = b_.matmul(y, b_.param(2, {16, 16}));
  EXPECT_EQ(written_again(z), 1);
  check_numbers(z);
}

/// A row's largest number is taken of it before: a softmax's gradient lies where its logits lay.
TEST_F(InPlace, ReadersBeforeItMayBeOfAnyForm) {
  NodeRef x = square(16), most = b_.reduce(x, Fold::Max, {1});
  NodeRef wide = b_.expand(b_.reshape(stored(most), {16, 1}), {16, 16});
  NodeRef y = stored(g_.alu(Op::Exp2, {g_.sub(x, wide)}));
  NodeRef z = b_.matmul(y, b_.param(2, {16, 16}));
  EXPECT_EQ(written_again(z), 1);
  check_numbers(z);
}

TEST_F(InPlace, NotWhileSomebodyStillReadsIt) {
  NodeRef x = square(16);
  NodeRef y = stored(g_.alu(Op::Exp2, {g_.mul(x, b_.constant(0.25))}));
  NodeRef z = b_.matmul(y, x);
  EXPECT_EQ(written_again(z), 0);
  check_numbers(z);
}

TEST_F(InPlace, NotWhereOtherPlacesAreRead) {
  NodeRef x = square(16);
  NodeRef y = stored(g_.add(x, b_.permute(x, {1, 0})));
  NodeRef z = b_.matmul(y, b_.param(2, {16, 16}));
  EXPECT_EQ(written_again(z), 0);
  check_numbers(z);
}

TEST_F(InPlace, NotInTheMemoryOfAnotherType) {
  NodeRef y = stored(g_.cast(square(16), DType::I32));
  NodeRef z = b_.matmul(g_.cast(y, DType::F32), b_.param(2, {16, 16}));
  EXPECT_EQ(written_again(z), 0);
  check_numbers(z);
}

TEST_F(InPlace, NotWhatCachesHold) {
  NodeRef y = stored(g_.alu(Op::Exp2, {g_.mul(square(16), b_.constant(0.25))}));
  EXPECT_EQ(written_again(b_.matmul(y, b_.param(2, {16, 16})), kTarget), 0);
}

/// Inputs and results are not the schedule's to overwrite.
TEST_F(InPlace, NotInAnInput) {
  NodeRef y = stored(g_.alu(Op::Exp2, {b_.param(0, {16, 16})}));
  NodeRef z = b_.matmul(y, b_.param(1, {16, 16}));
  EXPECT_EQ(written_again(z), 0);
  NodeRef x = square(16), w = stored(g_.mul(x, b_.constant(2)));
  check({{x}, {b_.matmul(w, b_.param(2, {16, 16}))}}, 1e-5);
}

/// What is left of rows behind vectors is computed once: whole tiles, smaller ones, single
/// elements.
TEST_F(InPlace, RowsOfEveryLength) {
  for (const int64_t n : {3, 5, 17, 24, 31, 33, 47, 50, 63, 65, 79, 97, 127}) {
    NodeRef x = stored(b_.matmul(b_.param(0, {6, 4}), b_.param(1, {4, n})));
    NodeRef row = b_.expand(b_.param(3, {1, n}), {6, n});
    NodeRef y = stored(g_.mul(g_.add(x, row), x));
    NodeRef z = b_.matmul(b_.permute(y, {1, 0}), b_.param(2, {6, 3}));
    EXPECT_EQ(written_again(z), 1) << n;
    check_numbers(z);
  }
}

}  // namespace
}  // namespace weft
