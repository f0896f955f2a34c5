// Attention by blocks of rows (schedule/row_blocks.h): the values, the memory it takes, and what it
// leaves alone.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <set>

#include "tests/schedule/tiles.h"
#include "tests/support/compiler/buffer_bytes.h"
#include "tests/support/compiler/schedule_runner.h"
#include "tests/support/device_here.h"
#include "tests/tensor/tensor_test.h"
#include "weft/graph/tuple.h"
#include "weft/graph/words.h"
#include "weft/rewrite/calls.h"
#include "weft/rewrite/driver.h"
#include "weft/run/stats.h"
#include "weft/run/storage.h"
#include "weft/target/target.h"
#include "weft/tensor/reductions.h"

namespace weft {
namespace {

/// A machine whose cache holds few scores, so that short sequences have many blocks.
Target small_machine(const char* name) {
  Target t = make_target(name, CpuFeatures(), 2);
  t.vector_bits = std::max(t.vector_bits, 128);
  t.machine.caches[1].bytes = 16 << 10;
  return t;
}

class Attention : public TensorTest {
 protected:
  /// The graph of `x` as it comes to the schedule: with inputs in the place of its buffers, and
  /// nothing that is there for gradients alone.
  NodeRef with_inputs(const Tensor& x) {
    NodeRef given = g_.import(x.node());
    NodeRef root = InlinedCalls(g_, {&given, 1}).image(given);
    NodeMap<NodeRef> replaced;
    params_.clear();
    const auto& table = context_.get<BufferTable>();
    for (NodeRef n : Toposort(root)) {
      if (n->op == Op::Detach) replaced.set(n, substitute(g_, n->src(0), replaced));
      if (n->op == Op::Get && n->src(0)->op == Op::Function)
        replaced.set(n, substitute(g_, result_like(n->src(0), 0), replaced));
      if (n->op != Op::Buffer) continue;
      eval::Extents extents;
      for (NodeRef d : n->shape->span()) extents.push_back(d->vmin);
      replaced.set(n, g_.param(static_cast<int64_t>(params_.size()), n->dtype, n->shape->span()));
      params_.push_back(eval::Array::copy_of(n->dtype, extents,
                                             testing::bytes_of(table.find(buffer_id(n))).data()));
    }
    return substitute(g_, root, replaced);
  }

  bool in_blocks(const Tensor& x, const Target& target) {
    const ScheduleOutput out[] = {{with_inputs(x)}};
    const Schedule made = make_schedule(out, target);
    return std::ranges::any_of(made.steps, [](const ScheduleStep& s) { return s.round >= 0; });
  }

  /// As the interpreter and compiled code run it, against the oracle.
  void check(const Tensor& x, double tolerance = 2e-6) {
    const eval::Array expected = evaluated(x);
    for (const char* device : {"CPU:INTERP", "CPU:X86"}) {
      testing::RunOptions options;
      options.device = testing::device_here(device);
      Target target = context_.get<DeviceTable>().open(options.device).target();
      target.vector_bits = std::max(target.vector_bits, 128);
      target.machine.caches[1].bytes = 16 << 10;
      EXPECT_TRUE(in_blocks(x, target));
      const ScheduleOutput out[] = {{with_inputs(x)}};
      options.target = &target;
      std::vector<eval::Array> params = params_;
      compare(expected, testing::run_graph(context_, out, params, {}, options)[0], tolerance);
    }
  }

  static void compare(const eval::Array& expected, const eval::Array& got, double tolerance) {
    ASSERT_EQ(expected.count(), got.count());
    for (int64_t i = 0; i < expected.count(); ++i)
      ASSERT_NEAR(expected.at(i).as_double(), got.at(i).as_double(), tolerance) << "element " << i;
  }

  static Tensor random(const Dims& shape, DType dtype = DType::F32) {
    return Tensor::randn(shape).cast(dtype).realize();
  }

  struct Operands {
    Tensor q, k, v;
    Tensor attention(const AttentionOptions& options = {}) const {
      return q.scaled_dot_product_attention(k, v, options);
    }
  };
  static Operands operands(int64_t heads, int64_t queries, int64_t keys, int64_t key_heads = 0,
                           DType dtype = DType::F32) {
    const int64_t shared = key_heads ? key_heads : heads;
    return {random({1, heads, queries, 4}, dtype), random({1, shared, keys, 4}, dtype),
            random({1, shared, keys, 5}, dtype)};
  }

  /// Launches within blocks, where no run changes the inputs that `constant` says it of.
  size_t steps_in_blocks(const Tensor& x, const std::function<bool(const eval::Array&)>& constant) {
    const ScheduleOutput out[] = {{with_inputs(x)}};
    ScheduleOptions options;
    for (const eval::Array& input : params_) options.constants.push_back(constant(input));
    const Schedule made = make_schedule(out, make_target("x86", CpuFeatures(), 2), options);
    return static_cast<size_t>(
        std::ranges::count_if(made.steps, [](const ScheduleStep& s) { return s.round >= 0; }));
  }

  Graph g_;
  std::vector<eval::Array> params_;
};

AttentionOptions causal() {
  AttentionOptions o;
  o.causal = true;
  return o;
}

TEST_F(Attention, AllKeys) { check(operands(2, 128, 128).attention()); }

/// Inputs of the blocks have numbers of their own: that a weight is constant says nothing of keys.
/// Of keys that are, no block makes a copy.
TEST_F(Attention, BlocksCopyNoConstants) {
  const Tensor x = random({8, 128, 384});
  const auto heads = [&] {
    return x.matmul(random({384, 384})).reshape({8, 128, 12, 32}).transpose(1, 2);
  };
  const Operands projected{heads(), heads(), heads()};
  const auto is_weight = [](const eval::Array& input) { return input.extents().size() == 2; };
  const size_t without = steps_in_blocks(projected.attention(), [](const auto&) { return false; });
  EXPECT_GT(without, 0U);
  EXPECT_EQ(steps_in_blocks(projected.attention(), is_weight), without);
  const auto all = [](const eval::Array&) { return true; };
  EXPECT_EQ(steps_in_blocks(projected.attention(), all), without);
}

/// More than the cache holds, and keys that no panel divides.
TEST_F(Attention, LongValues) {
  const Tensor q = random({2, 128, 4}), k = random({2, 150, 4}), v = random({2, 150, 40});
  check(q.scaled_dot_product_attention(k, v));
  check(q.scaled_dot_product_attention(k, v, causal()));
}

/// Tiles want a number of keys: those above a causal triangle are left out by groups of blocks.
TEST_F(Attention, CausalTrianglesByTiles) {
  Target target = kWideTiles;
  target.machine.caches[1].bytes = 64 << 10;
  const auto bfloats = [] { return random({1, 1, 256, 64}, DType::BF16); };
  const Tensor q = bfloats(), k = bfloats(), v = bfloats();
  for (const bool is_causal : {false, true}) {
    AttentionOptions o;
    o.causal = is_causal;
    const Tensor y = q.scaled_dot_product_attention(k, v, o);
    const ScheduleOutput out[] = {{with_inputs(y)}};
    std::set<int64_t> lengths;  // of sums by tiles over keys
    for (const Kernel& kernel : make_schedule(out, target).kernels)
      for (NodeRef n : Toposort(kernel.sink))
        if (n->op == Op::Reduce && has_trait(n->src(0)->op, kWords))
          lengths.insert(n->src(1)->src(0)->vmin * 2);
    EXPECT_EQ(lengths,
              is_causal ? (std::set<int64_t>{64, 128, 192, 256}) : (std::set<int64_t>{64, 256}));
    std::vector<eval::Array> params = params_;
    const auto got = testing::run_graph(
        context_, out, params, {}, {.device = "CPU:INTERP", .schedule = {}, .target = &target});
    compare(evaluated(y), got[0], 2e-2);
  }
}
/// Of 197 keys and rows of 80, which no tiles divide: zeros fill them. Words of keys and values are
/// made once, not in every block.
TEST_F(Attention, OfAnyLengthByTiles) {
  Target target = kWideTiles;
  target.machine.caches[1].bytes = 64 << 10;
  const auto bfloats = [] { return random({1, 2, 197, 80}, DType::BF16); };
  const Tensor q = bfloats(), k = bfloats(), v = bfloats();
  for (const bool is_causal : {false, true}) {
    AttentionOptions o;
    o.causal = is_causal;
    const Tensor y = q.scaled_dot_product_attention(k, v, o);
    const ScheduleOutput out[] = {{with_inputs(y)}};
    const Schedule made = make_schedule(out, target);
    const auto makes_words = [&](const ScheduleStep& s) {
      const Kernel& kernel = made.kernels[static_cast<size_t>(s.kernel)];
      const auto nodes = Toposort(kernel.sink);
      return s.round >= 0 && std::ranges::any_of(nodes, may_be_word) &&
             std::ranges::none_of(nodes, [](NodeRef n) { return n->op == Op::Reduce; });
    };
    // Of 8 blocks each makes those of its rows, which 80 numbers have no whole tiles of.
    EXPECT_EQ(std::ranges::count_if(made.steps, makes_words), 8);
    std::vector<eval::Array> params = params_;
    const auto got = testing::run_graph(
        context_, out, params, {}, {.device = "CPU:INTERP", .schedule = {}, .target = &target});
    compare(evaluated(y), got[0], 2e-2);
  }
}
/// A score of some hundred in bf16 is off by one half: its exponential would be by half.
TEST_F(Attention, ScoresKeepTheirDigits) {
  const Tensor q = (random({1, 1, 40, 64}) * 8).cast(DType::BF16).realize();
  const Tensor k = (random({1, 1, 40, 64}) * 8).cast(DType::BF16).realize();
  const Tensor v = random({1, 1, 40, 64}, DType::BF16);
  const auto f32 = [](const Tensor& x) { return x.cast(DType::F32); };
  const Tensor wide = f32(q).scaled_dot_product_attention(f32(k), f32(v));
  compare(evaluated(wide), evaluated(f32(q.scaled_dot_product_attention(k, v))), 2e-2);
}
TEST_F(Attention, OfFloatsIsTheSameBesideTiles) {
  const Tensor x = operands(2, 256, 256).attention(causal());
  Target with = kWideTiles;
  with.machine.caches[1].bytes = 16 << 10;
  Target without = with;
  without.matrix_units = {};
  ASSERT_TRUE(in_blocks(x, without));
  const ScheduleOutput out[] = {{with_inputs(x)}};
  EXPECT_EQ(make_schedule(out, with).steps.size(), make_schedule(out, without).steps.size());
}
TEST_F(Attention, CausalTriangles) { check(operands(2, 128, 128).attention(causal())); }

TEST_F(Attention, LengthsThatNoBlockDivides) {
  for (const int64_t n : {101, 127, 150}) {
    check(operands(2, n, n).attention());
    check(operands(2, n, n).attention(causal()));
  }
}

TEST_F(Attention, OtherKeysThanQueries) {
  check(operands(3, 70, 150).attention(causal()));
  check(operands(3, 150, 70).attention(causal()));
  check(operands(3, 150, 70).attention());
}

TEST_F(Attention, Windows) {
  AttentionOptions o = causal();
  o.window = 20;
  check(operands(2, 192, 192).attention(o));
  check(operands(2, 192, 64).attention(o));  // the last rows see nothing
  o.causal = false;
  check(operands(2, 130, 130).attention(o));
}

TEST_F(Attention, MasksAndRowsThatSeeNothing) {
  const Tensor keep = (Tensor::rand({128, 128}) < 0.5).realize();
  const Tensor rows = (Tensor::rand({128, 1}) < 0.8).realize();
  const Tensor mask = (keep & rows).realize(), bias = random({2, 128, 128});
  AttentionOptions o;
  o.mask = &mask;
  check(operands(2, 128, 128).attention(o));
  o.mask = &bias;
  check(operands(2, 128, 128).attention(o), 5e-6);
}

TEST_F(Attention, GroupedHeads) {
  AttentionOptions o = causal();
  o.grouped_queries = true;
  check(operands(4, 96, 96, 2).attention(o));
}

TEST_F(Attention, HeadsThatLieBetweenPositions) {
  const Tensor x = random({2, 96, 3 * 8});
  const auto part = [&](int64_t i) {
    return x.shrink({{0, 2}, {0, 96}, {8 * i, 8 * i + 8}}).reshape({2, 96, 2, 4}).transpose(1, 2);
  };
  check(part(0).scaled_dot_product_attention(part(1), part(2), causal()));
}

TEST_F(Attention, InputsOfOtherShapes) {
  const Tensor q = random({2 * 96 * 4}), k = random({2, 96 * 4}), v = random({2 * 96, 1, 4});
  const Dims shape{1, 2, 96, 4};
  check(q.reshape(shape).scaled_dot_product_attention(k.reshape(shape), v.reshape(shape)));
}

/// Weights are rounded to the dtype of the values, as in the graph.
TEST_F(Attention, NarrowFloats) {
  check(operands(2, 100, 100, 0, DType::F16).attention(causal()), 2e-3);
  check(operands(2, 100, 100, 0, DType::BF16).attention(), 2e-2);
}

/// A second attention reads what the first one gives.
TEST_F(Attention, OneAfterTheOther) {
  const Operands a = operands(2, 96, 96);
  const Tensor k = random({1, 2, 96, 5});
  check(a.attention(causal()).scaled_dot_product_attention(k, a.v), 5e-6);
}

TEST_F(Attention, OthersAreLeftAlone) {
  const Target target = small_machine("interp");
  const Operands a = operands(2, 128, 128);
  EXPECT_TRUE(in_blocks(a.attention(), target));
  EXPECT_FALSE(in_blocks(operands(1, 40, 40).attention(), target)) << "its scores fit the cache";
  EXPECT_FALSE(in_blocks(operands(64, 1, 128).attention(), target)) << "there is but one row";
  const Tensor scores = a.q.matmul(a.k.transpose(-1, -2));
  EXPECT_FALSE(in_blocks(scores.relu().matmul(a.v), target)) << "no softmax";
  const Tensor weights = scores.softmax(-1);
  EXPECT_FALSE(in_blocks(weights.matmul(a.v).sum() + weights.max(), target))
      << "others read the weights";
  EXPECT_FALSE(in_blocks(random({2, 128, 128}).softmax(-1).matmul(random({2, 128, 4})), target))
      << "the scores are there";
  EXPECT_FALSE(in_blocks(scores.softmax(-2).matmul(a.v), target)) << "along the queries";
}

// ---- gradients

/// Of all three operands, one after the other.
Tensor gradients(const Tensor& y, const Tensor& q, const Tensor& k, const Tensor& v) {
  const Tensor weights = (Tensor::arange(0, y.numel()).cast(y.dtype()) * 0.31).sin();
  std::vector<Tensor> flat;
  for (const Tensor& g : y.gradient({q, k, v}, weights.reshape(y.dims())))
    flat.push_back(g.flatten());
  return Tensor::cat(flat);
}

class AttentionGradient : public Attention {
 protected:
  void check_gradient(const Operands& a, const AttentionOptions& o = {}, double tolerance = 5e-6) {
    check(gradients(a.attention(o), a.q, a.k, a.v), tolerance);
  }
};

TEST_F(AttentionGradient, AllKeys) { check_gradient(operands(2, 128, 128)); }
TEST_F(AttentionGradient, CausalTriangles) { check_gradient(operands(2, 128, 128), causal()); }

TEST_F(AttentionGradient, LengthsThatNoBlockDivides) {
  for (const int64_t n : {101, 150}) {
    check_gradient(operands(2, n, n));
    check_gradient(operands(2, n, n), causal());
  }
  check_gradient(operands(3, 70, 150), causal());
  check_gradient(operands(3, 150, 70), causal());
}

TEST_F(AttentionGradient, Windows) {
  AttentionOptions o = causal();
  o.window = 20;
  check_gradient(operands(2, 192, 192), o);
  check_gradient(operands(2, 192, 64), o);  // the last rows see nothing
}

TEST_F(AttentionGradient, Masks) {
  const Tensor keep = (Tensor::rand({128, 128}) < 0.5).realize(), bias = random({2, 128, 128});
  AttentionOptions o;
  o.mask = &keep;
  check_gradient(operands(2, 128, 128), o);
  o.mask = &bias;
  check_gradient(operands(2, 128, 128), o, 2e-5);
}

TEST_F(AttentionGradient, GroupedHeads) {
  AttentionOptions o = causal();
  o.grouped_queries = true;
  check_gradient(operands(4, 96, 96, 2), o);
}

/// As dropout does, by numbers that were drawn before.
TEST_F(AttentionGradient, WeightsThatAreDropped) {
  const Operands a = operands(2, 128, 128);
  const Tensor keep = ((Tensor::rand({1, 2, 128, 128}) < 0.8).where(1.25, 0)).realize();
  const Tensor scores = a.q.matmul(a.k.transpose(-1, -2)) * 0.5;
  const Tensor y = (scores.softmax(-1) * keep).matmul(a.v);
  check(y);
  check(gradients(y, a.q, a.k, a.v), 5e-6);
}

/// What comes from above is made of the attention itself.
TEST_F(AttentionGradient, OfALossOfTheAttention) {
  const Operands a = operands(2, 128, 128);
  const Tensor y = a.attention(causal());
  check(Tensor::cat({gradients(y * y, a.q, a.k, a.v), y.flatten()}), 1e-5);
}

TEST_F(AttentionGradient, OfOneAfterTheOther) {
  const Operands a = operands(2, 96, 96);
  const Tensor k = random({1, 2, 96, 5}), v = random({1, 2, 96, 5});
  const Tensor y = a.attention(causal()).scaled_dot_product_attention(k, v);
  check(gradients(y, a.q, a.k, a.v), 1e-5);
}

TEST_F(AttentionGradient, ThatOthersReadIsLeftAlone) {
  const Operands a = operands(2, 128, 128);
  const Tensor bias = random({2, 128, 128}), y = a.q.matmul(a.k.transpose(-1, -2)).softmax(-1);
  const Tensor z = ((a.q.matmul(a.k.transpose(-1, -2)) + bias).softmax(-1)).matmul(a.v);
  EXPECT_FALSE(in_blocks(z.gradient({bias}, z)[0], small_machine("interp"))) << "of all scores";
}

// ---- through everything

Context& with_threads(int threads) {
  static std::vector<std::unique_ptr<Context>> all;
  Options options = Options::from_environment();
  options.threads = threads;
  options.deterministic = true;  // the default machine, whose L2 has 1 MiB
  return *all.emplace_back(std::make_unique<Context>(options));
}

std::vector<float> attention_in(Context& context, int64_t length, bool backwards,
                                int64_t* peak = nullptr) {
  const ContextScope scope(context);
  const auto wave = [&](double step) {
    return (Tensor::arange(0, 4 * length).reshape({1, length, 4}).cast(DType::F32) * step).sin();
  };
  const Tensor q = wave(0.7).realize(), k = wave(1.3).realize(), v = wave(0.9).realize();
  reset_run_stats(context);
  Tensor y = q.scaled_dot_product_attention(k, v, causal());
  if (backwards) y = gradients(y, q, k, v);
  y.realize();
  if (peak) *peak = run_stats(context).memory_peak;
  return y.to_vector<float>();
}

TEST(AttentionRuns, EqualBitsForAnyNumberOfThreads) {
  for (const bool backwards : {false, true}) {
    const std::vector<float> one = attention_in(with_threads(1), 800, backwards);
    for (const int threads : {2, 3, 8}) {
      const std::vector<float> more = attention_in(with_threads(threads), 800, backwards);
      EXPECT_EQ(std::memcmp(one.data(), more.data(), one.size() * sizeof(float)), 0) << threads;
    }
  }
}

TEST(AttentionRuns, MemoryGrowsWithTheLength) {
  for (const bool backwards : {false, true}) {
    int64_t peak = 0, twice = 0;
    attention_in(with_threads(1), 2048, backwards, &peak);
    attention_in(with_threads(1), 4096, backwards, &twice);
    EXPECT_LT(twice, 2.5 * static_cast<double>(peak));
    EXPECT_LT(twice, 4096 * 4096) << "a quarter of all scores";
  }
}

}  // namespace
}  // namespace weft
