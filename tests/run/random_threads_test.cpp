// One thread, two and eight give the same bits (which NaN is not defined): random graphs through
// the whole of run/, shared between threads in as many pieces as can be.
#include "tests/run/fixture.h"
#include "tests/run/random_storages.h"
#include "tests/support/random.h"
#include "weft/base/thread_pool.h"
#include "weft/graph/print.h"

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

/// A machine with so many threads.
class Machine {
 public:
  Machine(std::string_view device, int64_t threads) : context_(options_for(device, threads)) {
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
  static Options options_for(std::string_view device, int64_t threads) {
    Options options = Options::from_environment();
    options.dev = device;
    options.threads = threads;
    return options;
  }

  Context context_;
};

class Threads {
 public:
  explicit Threads(std::string_view device) : one_(device, 1), two_(device, 2), eight_(device, 8) {}

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
      std::string text;
      for (const RandomGraph& r : graphs) text += smallest(g, r);
      FAIL() << "seeds from " << seed << "\n" << text;
    }
  }

  void expect_same_sums() {
    const auto wanted = one_.sums();
    EXPECT_EQ(wanted.second, 3) << "the sum of all is done in two steps";
    EXPECT_EQ(two_.sums(), wanted);
    EXPECT_EQ(eight_.sums(), wanted);
  }

 private:
  bool differ(std::span<const RandomGraph> graphs) {
    const std::vector<eval::Array> wanted = one_.run(graphs);
    return two_.run(graphs) != wanted || eight_.run(graphs) != wanted;
  }
  std::string smallest(Graph& g, const RandomGraph& r) {
    const auto fails = [this](const RandomGraph& x) { return differ({&x, 1}); };
    if (!fails(r)) return "";
    return print_graph(shrink(g, r, fails).roots) + "\n";
  }

  Machine one_, two_, eight_;
};

TEST(RandomThreads, SplitReductionsHaveTheSameBits) {
  Threads("CPU:INTERP").expect_same_sums();
  Threads("CPU:C").expect_same_sums();
  Threads("CPU:X86").expect_same_sums();
}

TEST(RandomThreads, InterpretedGraphsHaveTheSameBits) {
  Threads threads("CPU:INTERP");
  threads.expect_same_bits(0, 250, large());
  threads.expect_same_bits(0, 40, huge());
}

TEST(RandomThreads, MachineCodeHasTheSameBits) {
  Threads threads("CPU:X86");
  threads.expect_same_bits(0, 100, large());
  threads.expect_same_bits(0, 20, huge());
}

TEST(RandomThreads, CompiledGraphsHaveTheSameBits) {
  Threads threads("CPU:C");
  threads.expect_same_bits(0, 20, huge(), 20);
  threads.expect_same_bits(0, 20, large(), 20);
}

TEST(RandomThreads, SlowHundredThousandGraphs) {
  Threads interpreted("CPU:INTERP"), machine_code("CPU:X86"), compiled("CPU:C");
  interpreted.expect_same_bits(1000, 76000, large());
  interpreted.expect_same_bits(1000, 3000, huge());
  machine_code.expect_same_bits(1000, 19000, large());
  machine_code.expect_same_bits(1000, 1000, huge());
  compiled.expect_same_bits(1000, 500, large(), 50);
  compiled.expect_same_bits(1000, 500, huge(), 50);
}

}  // namespace
}  // namespace weft
