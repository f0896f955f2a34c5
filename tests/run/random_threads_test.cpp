// One thread, two and eight give the same bits (which NaN is not defined): random graphs through
// the whole of run/, shared between threads in as many pieces as can be.
#include "tests/run/fixture.h"
#include "tests/support/compiler/isa_levels.h"
#include "weft/base/thread_pool.h"
#include "weft/graph/print.h"
#include "weft/tensor/tensor.h"
#include "weft/trust/random.h"
#include "weft/trust/random_storages.h"

namespace weft {
namespace {

/// Arrays a few threads' work long; floats, sums and all.
RandomGraphOptions large() {
  RandomGraphOptions graphs;
  graphs.steps = 8;
  graphs.longest = 48;
  graphs.largest = 30000;
  return graphs;
}

/// Reductions large enough to be done in two steps.
RandomGraphOptions huge() {
  RandomGraphOptions graphs;
  graphs.steps = 3;
  graphs.longest = 700;
  graphs.largest = 400000;
  return graphs;
}

/// Long elementwise programs, with functions of constants among them.
RandomGraphOptions chains() {
  RandomGraphOptions graphs;
  graphs.elementwise = true;
  graphs.steps = 24;
  graphs.largest = 100;
  return graphs;
}

/// Sums of products of plain floats: every change of order shows.
RandomGraphOptions products() {
  RandomGraphOptions graphs;
  graphs.steps = 4;
  graphs.longest = 9;
  graphs.largest = 3000;
  graphs.specials = false;
  graphs.dtypes = {DType::F32, DType::F64};
  return graphs;
}

Options options_for(std::string_view device, int64_t threads) {
  Options options = Options::from_environment();
  options.dev = testing::device_here(device);
  options.threads = threads;
  return options;
}

class Machine {
 public:
  explicit Machine(const Options& options) : context_(options) {
    context_.thread_pool().set_adverse(true);
  }

  /// The results of all the graphs, realized together: one compiler call.
  std::vector<eval::Array> run(std::span<const RandomGraph> graphs) {
    const ContextScope scope(context_);
    std::vector<StorageRef> results;
    for (const RandomGraph& r : graphs)
      for (StorageRef& s : storages_of(context_, r, r.bindings[0])) results.push_back(std::move(s));
    realize(context_, results);
    std::vector<eval::Array> values;
    for (const StorageRef& s : results) values.push_back(array_of(*s));
    return values;
  }
  std::vector<float> run(FunctionRef<Tensor()> make) {
    const ContextScope scope(context_);
    return make().to_vector<float>();
  }
  /// The sums of a large array over all of it and over its rows, and how many kernels they took.
  std::pair<std::vector<eval::Array>, int64_t> sums() {
    const ContextScope scope(context_);
    Graph& g = tensor_graph(context_);
    std::vector<float> data(600 * 700);
    Random random(1);
    for (float& x : data) x = static_cast<float>(random.between(-9000, 9000)) / 700;
    std::vector<StorageRef> results;
    {
      const Graph::Building building(g);
      const NodeRef dims[] = {g.index(600), g.index(700)};
      NodeRef x =
          storage_from_bytes(context_, std::as_bytes(std::span(data)), DType::F32, dims)->value();
      const auto add = static_cast<int64_t>(Fold::Add);
      results.push_back(
          std::make_shared<Storage>(context_, g.make(Op::Reduce, DType::F32, {x}, {add, 0, 1})));
      results.push_back(
          std::make_shared<Storage>(context_, g.make(Op::Reduce, DType::F32, {x}, {add, 1})));
    }
    const int64_t before = run_stats(context_).kernels;
    realize(context_, results);
    return {{array_of(*results[0]), array_of(*results[1])}, run_stats(context_).kernels - before};
  }

 private:
  Context context_;
};

/// Machines that have to give the same bits.
class Machines {
 public:
  static Machines with_threads(std::string_view device) {
    Machines all;
    for (int64_t threads : {1, 2, 8})
      all.all_.push_back(std::make_unique<Machine>(options_for(device, threads)));
    return all;
  }
  /// Under WEFT_DETERMINISTIC, where vectors differ in length.
  static Machines deterministic(std::initializer_list<const char*> devices) {
    Machines all;
    for (const std::string& level : testing::isa_levels())
      for (const char* device : devices) {
        Options options = options_for(device, 2);
        options.deterministic = true;
        options.isa = level;
        all.all_.push_back(std::make_unique<Machine>(options));
      }
    return all;
  }

  /// Graphs of these seeds, half of which end in sums, `at_once` of them in one realization.
  void expect_same_bits(uint64_t first, uint64_t count, const RandomGraphOptions& options,
                        uint64_t at_once = 1) {
    for (uint64_t seed = first; seed < first + count; seed += at_once) {
      Graph g;
      std::vector<RandomGraph> graphs;
      for (uint64_t s = seed; s < seed + at_once; ++s) {
        graphs.push_back(random_graph(g, s, options));
        if (s % 2 == 0) end_in_sums(g, graphs.back(), s);
      }
      if (!differ(graphs)) continue;
      std::string text = thrown_ + "\n";
      for (const RandomGraph& r : graphs) text += smallest(g, r);
      FAIL() << "seeds from " << seed << "\n" << text;
    }
  }

  void expect_same(FunctionRef<Tensor()> make) {
    const std::vector<float> wanted = all_[0]->run(make);
    for (const auto& machine : all_) EXPECT_EQ(machine->run(make), wanted);
  }
  void expect_same_sums() {
    const auto wanted = all_[0]->sums();
    EXPECT_EQ(wanted.second, 3) << "the sum of all is done in two steps";
    for (const auto& machine : all_) EXPECT_EQ(machine->sums(), wanted);
  }

 private:
  /// A graph that cannot be computed counts as one that differs: it is made smaller like one.
  bool differ(std::span<const RandomGraph> graphs) try {
    const std::vector<eval::Array> wanted = all_[0]->run(graphs);
    return std::any_of(all_.begin() + 1, all_.end(),
                       [&](const auto& machine) { return machine->run(graphs) != wanted; });
  } catch (const Error& error) {
    thrown_ = error.what();
    return true;
  }
  std::string smallest(Graph& g, const RandomGraph& r) {
    const auto fails = [this](const RandomGraph& x) { return differ({&x, 1}); };
    if (!fails(r)) return "";
    return print_graph(shrink(g, r, fails).roots) + "\n";
  }

  std::vector<std::unique_ptr<Machine>> all_;
  std::string thrown_;
};

TEST(RandomThreads, SplitReductionsHaveTheSameBits) {
  Machines::with_threads("CPU:INTERP").expect_same_sums();
  Machines::with_threads("CPU:C").expect_same_sums();
  Machines::with_threads("CPU:X86").expect_same_sums();
}

TEST(RandomThreads, InterpretedGraphsHaveTheSameBits) {
  Machines threads = Machines::with_threads("CPU:INTERP");
  threads.expect_same_bits(0, 250, large());
  threads.expect_same_bits(0, 40, huge());
}

TEST(RandomThreads, MachineCodeHasTheSameBits) {
  Machines threads = Machines::with_threads("CPU:X86");
  threads.expect_same_bits(0, 100, large());
  threads.expect_same_bits(0, 20, huge());
}

TEST(RandomThreads, CompiledGraphsHaveTheSameBits) {
  Machines threads = Machines::with_threads("CPU:C");
  threads.expect_same_bits(0, 20, huge(), 20);
  threads.expect_same_bits(0, 20, large(), 20);
}

/// WEFT_DETERMINISTIC: interpreter, machine code and two compilers' code add in one order.
TEST(RandomThreads, DeterministicGraphsHaveTheSameBitsEverywhere) {
  Machines both = Machines::deterministic({"CPU:INTERP", "CPU:X86"});
  both.expect_same_bits(0, 150, large());
  both.expect_same_bits(0, 15, huge());
  both.expect_same_bits(0, 400, chains(), 10);
  both.expect_same_bits(0, 600, products(), 10);
  Machines compiled = Machines::deterministic({"CPU:X86", "CPU:C"});
  compiled.expect_same_sums();
  compiled.expect_same_bits(0, 20, large(), 20);
}

/// A device whose commands are late gives what one gives that is done at once.
TEST(RandomThreads, SimulatedGraphsHaveTheSameBits) {
  Machines both = Machines::deterministic({"CPU:INTERP", "SIM:INTERP", "SIM:X86"});
  both.expect_same_bits(0, 60, large());
  both.expect_same_bits(0, 5, huge());
  both.expect_same_bits(0, 200, products(), 5);
}

/// Numbers whose sums are rounded.
Tensor fractions(const Dims& shape) {
  const Dim count = shape.product();
  return ((Tensor::arange(count) * 37 % 101).cast(DType::F32) / 7 - 5).reshape(shape).realize();
}

/// A product as input of a transposed convolution, and of one that is not: windows and masks on one
/// operand, flips and permutations on the other, groups, strides, dilations.
Tensor random_convolution(uint64_t seed) {
  Random random(seed);
  const auto upto = [&](int64_t most) { return random.between(1, most); };
  const int64_t groups = upto(3), in = upto(3), out = upto(3), kernel = upto(4), size = upto(5) + 3;
  const ConvOptions options{groups, upto(3), upto(2), random.below(kernel)};
  const Tensor x = fractions({upto(3), groups * in, size, size}), scaled = x * x.flip({1}) * 2.5;
  if (random.chance(60))
    return scaled.conv_transpose2d(fractions({groups * in, out, kernel, kernel}), {}, options);
  return scaled.pad({{0, 0}, {0, 0}, {4, 4}, {4, 4}})
      .conv2d(fractions({groups * out, in, kernel, kernel}), {}, options);
}

/// Which operand of a product comes first depends on hashes, and those on the device.
TEST(RandomThreads, DeterministicConvolutionsHaveTheSameBitsEverywhere) {
  Machines both = Machines::deterministic({"CPU:INTERP", "CPU:X86"});
  for (uint64_t seed = 0; seed < 60 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    both.expect_same([seed] { return random_convolution(seed); });
  }
}

TEST(RandomThreads, SlowHundredThousandGraphs) {
  Machines interpreted = Machines::with_threads("CPU:INTERP"),
           machine_code = Machines::with_threads("CPU:X86"),
           compiled = Machines::with_threads("CPU:C");
  interpreted.expect_same_bits(1000, 76000, large());
  interpreted.expect_same_bits(1000, 3000, huge());
  machine_code.expect_same_bits(1000, 19000, large());
  machine_code.expect_same_bits(1000, 1000, huge());
  compiled.expect_same_bits(1000, 500, large(), 50);
  compiled.expect_same_bits(1000, 500, huge(), 50);
  Machines deterministic = Machines::deterministic({"CPU:INTERP", "CPU:X86"});
  deterministic.expect_same_bits(1000, 10000, large());
  deterministic.expect_same_bits(1000, 100'000, chains(), 10);
  deterministic.expect_same_bits(1000, 100'000, products(), 10);
}

TEST(RandomThreads, SlowHundredThousandSimulatedGraphs) {
  Machines both = Machines::deterministic({"CPU:INTERP", "SIM:INTERP"});
  both.expect_same_bits(1000, 5000, large());
  both.expect_same_bits(1000, 50'000, chains(), 5);
  both.expect_same_bits(1000, 50'000, products(), 5);
}

}  // namespace
}  // namespace weft
