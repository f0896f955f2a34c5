// What a program costs to compile grows with its length: every construct is made longer, and the
// nodes that its compilation makes, its kernels and its own graph must grow no faster.
#include <algorithm>
#include <functional>

#include "tests/tensor/tensor_test.h"
#include "weft/base/context.h"
#include "weft/base/spans.h"
#include "weft/run/realize.h"
#include "weft/run/stats.h"
#include "weft/run/storage.h"
#include "weft/tensor/linalg.h"
#include "weft/trust/random.h"

namespace weft {
namespace {

using Program = std::function<std::vector<Tensor>(int)>;

struct Cost {
  int64_t graph, compiled, kernels;
};

Cost cost_of(const Program& program, int n) {
  Options options = Options::from_environment();
  options.dev = "NULL:INTERP";
  Context context(options);
  const ContextScope scope(context);
  Tensor::manual_seed(1);
  const std::vector<Tensor> out = program(n);
  collect_garbage(context);  // which goes when it likes
  const auto graph = static_cast<int64_t>(tensor_graph(context).live_nodes());
  const int64_t before = context.tracer().value(Counter::Nodes);
  reset_run_stats(context);
  realize(out);
  return {graph, context.tracer().value(Counter::Nodes) - before, run_stats(context).kernels};
}

/// What is linear costs from 2n to 4n twice what it costs from n to 2n. Three times is allowed, or
/// three times the first n: the second may have the kernels of the first, which are compiled once,
/// and kernels that are full are cut elsewhere. Squares cost four times as much from 2n to 4n as
/// from n to 2n, and twelve times the first n.
void expect_linear(const char* what, int64_t one, int64_t two, int64_t four, int64_t slack) {
  EXPECT_LE(four - two, 3 * std::max(two - one, one) + slack)
      << what << " grow from " << one << " to " << two << " to " << four;
}

void expect_linear_growth(const Program& program, int n) {
  const Cost one = cost_of(program, n), two = cost_of(program, 2 * n),
             four = cost_of(program, 4 * n);
  expect_linear("nodes of the graph", one.graph, two.graph, four.graph, 100);
  expect_linear("nodes made by compiling", one.compiled, two.compiled, four.compiled, 60 * n);
  expect_linear("kernels", one.kernels, two.kernels, four.kernels, 12);
}

Tensor data(const Dims& shape) { return Tensor::uniform(shape, 0.5, 2).realize(); }
Tensor places(int64_t n) { return Tensor::randint(0, n, {n}).realize(); }

/// A program that takes the same step n times.
Program chain(const Dims& shape, std::function<Tensor(const Tensor&, int)> step) {
  return [=](int n) {
    Tensor x = data(shape);
    for (int i = 0; i < n; ++i) x = step(x, i);
    return std::vector<Tensor>{x};
  };
}

/// One that writes n times into one array.
Program writes(std::function<Dims(int)> shape, std::function<void(Tensor&, int)> write) {
  return [=](int n) {
    Tensor x = data(shape(n));
    for (int i = 0; i < n; ++i) write(x, i);
    return std::vector<Tensor>{x};
  };
}

Program joined(std::function<Tensor(int)> part, int64_t axis = 0) {
  return [=](int n) {
    std::vector<Tensor> parts;
    for (int i = 0; i < n; ++i) parts.push_back(part(i));
    return std::vector<Tensor>{Tensor::cat(parts, axis)};
  };
}

/// The gradient of the sum of what a program gives, by its data.
Program gradient_of(const Dims& shape, std::function<Tensor(const Tensor&, int)> f) {
  return [=](int n) {
    Tensor x = data(shape);
    x.requires_grad_();
    f(x, n).sum().backward();
    return std::vector<Tensor>{x.grad()};
  };
}

struct Construct {
  const char* name;
  Program program;
};

std::vector<Construct> joins_and_writes() {
  const auto vector = [](int n) { return Dims{n + 1}; };
  return {
      {"cat of memory", joined([](int) { return data({1}); })},
      {"cat of constants", joined([](int i) { return Tensor::full({1}, 0.5 * i); })},
      {"cat of sizes", joined([](int i) { return data({50}).shrink({{0, 1 + i * 7 % 50}}); })},
      {"cat of columns", joined([](int i) { return data({30, 1}) * i; }, 1)},
      {"cat of large parts", joined([](int) { return data({500}) * 2; })},
      {"cat of sums", joined([](int) { return data({5, 7}).sum({1}); })},
      {"elements", writes(vector, [](Tensor& x, int i) { x.index_put({i}, 0.5 * i); })},
      {"one element", writes(vector, [](Tensor& x, int i) { x.index_put({i % 3}, 0.5 * i); })},
      {"elements from data", writes(vector, [](Tensor& x, int i) { x.index_put({i}, data({})); })},
      {"from the one before",
       writes(vector, [](Tensor& x, int i) { x.index_put({i + 1}, x.index({i}) * 2); })},
      {"updated elements",
       writes(vector, [](Tensor& x, int i) { x.index_put({i}, x.index({i}) + 1); })},
      {"rows", writes([](int n) { return Dims{n, 9}; },
                      [](Tensor& x, int i) { x.index_put({i}, data({9}) * 2); })},
      {"overlapping slices",
       writes([](int n) { return Dims{n + 4}; },
              [](Tensor& x, int i) { x.index_put({Slice(i, i + 3)}, data({3})); })},
      {"in place", writes(vector, [](Tensor& x, int) { x.assign(x * 0.5 + 1); })},
  };
}

Tensor shuffled(const Tensor& x) {
  return x.reshape({24, 30}).permute({1, 0}).reshape({20, 36}).permute({1, 0}).reshape({720});
}

std::vector<Construct> moves() {
  return {
      {"reshapes", chain({720}, [](const Tensor& x, int) { return shuffled(x); })},
      {"reshapes and adds", chain({720}, [](const Tensor& x, int) { return shuffled(x) + 1; })},
      {"reshapes, pads, slices",
       chain({720},
             [](const Tensor& x, int) { return shuffled(x).pad({{3, 5}}).shrink({{2, 722}}); })},
      {"pads", chain({7}, [](const Tensor& x, int) { return x.pad({{1, 2}}); })},
      {"pads and adds", chain({7}, [](const Tensor& x, int) { return x.pad({{1, 2}}) + 1; })},
      {"pads and flips", chain({7}, [](const Tensor& x, int) { return x.pad({{1, 2}}).flip(0); })},
      {"gathers of itself",
       [](int n) {
         Tensor y = places(50);
         for (int i = 0; i < n; ++i) y = y.gather(0, y);
         return std::vector<Tensor>{y};
       }},
      {"gathers of a pair",
       [](int n) {
         Tensor y = places(2);
         for (int i = 0; i < n; ++i) y = y.gather(0, y);
         return std::vector<Tensor>{y};
       }},
      {"index",
       [](int n) {
         Tensor x = data({50, 3}), at = places(50);
         for (int i = 0; i < n; ++i) x = x.index({at});
         return std::vector<Tensor>{x};
       }},
      {"rolls", chain({100}, [](const Tensor& x, int) { return x.roll(3) + x; })},
      {"rests",
       [](int n) {
         Tensor x = data({n + 1}), sum = data({});
         for (int i = 0; i < n; ++i) {
           sum = sum + x.index({0});
           x = x.index({Slice(1)});
         }
         return std::vector<Tensor>{sum};
       }},
      {"triangles", chain({9, 9}, [](const Tensor& x, int i) { return x.tril(i % 3).T(); })},
      {"windows",
       [](int n) {
         Tensor x = data({n + 40});
         for (int i = 0; i < n; ++i) x = x.window(0, 2).sum({-1});
         return std::vector<Tensor>{x};
       }},
  };
}

std::vector<Construct> arithmetic() {
  return {
      {"adds", chain({100}, [](const Tensor& x, int) { return x + 1; })},
      {"exponentials", chain({9}, [](const Tensor& x, int) { return (x.exp() + 1).log().sin(); })},
      {"64-bit divisions", chain({9},
                                 [](const Tensor& x, int i) {
                                   return x.cast(DType::I64).floor_div(i + 2) +
                                          x.cast(DType::I64) % (i + 3) + 7;
                                 })},
      {"wheres", chain({9}, [](const Tensor& x, int i) { return (x > i).where(x * 2, x + 1); })},
      {"turned sums",
       chain({12}, [](const Tensor& x,
                      int) { return x + x.reshape({3, 4}).permute({1, 0}).reshape({12}); })},
      {"Fibonacci",
       [](int n) {
         Tensor a = data({12}), b = data({12});
         for (int i = 0; i < n; ++i)
           a = std::exchange(b, a.flip(0) + b.reshape({3, 4}).T().flatten());
         return std::vector<Tensor>{b};
       }},
      {"inputs",
       [](int n) {
         Tensor sum = data({9});
         for (int i = 0; i < n; ++i) sum = sum + data({9});
         return std::vector<Tensor>{sum};
       }},
      {"outputs",
       [](int n) {
         std::vector<Tensor> out;
         for (int i = 0; i < n; ++i) out.push_back(data({9}) * i);
         return out;
       }},
      {"outputs of a chain",
       [](int n) {
         std::vector<Tensor> out{data({9})};
         for (int i = 0; i < n; ++i) out.push_back(out.back() * 0.5 + 1);
         return out;
       }},
      {"updates in place",
       [](int n) {
         std::vector<Tensor> out;
         for (int i = 0; i < n; ++i) {
           out.push_back(data({9}));
           out.back().assign(out.back() * 0.5);
         }
         return out;
       }},
  };
}

std::vector<Construct> folds() {
  const Dims matrix{6, 6};
  return {
      {"running sums", chain({50}, [](const Tensor& x, int) { return x.cumsum(0); })},
      {"sorts", chain({20}, [](const Tensor& x, int) { return x.sort(0).first + 1; })},
      {"scatters",
       [](int n) {
         Tensor x = data({20}), at = places(20);
         for (int i = 0; i < n; ++i) x = x.scatter(0, at, x, Fold::Add);
         return std::vector<Tensor>{x};
       }},
      {"products", chain(matrix, [](const Tensor& x, int) { return x.matmul(x).relu(); })},
      {"softmax", chain(matrix, [](const Tensor& x, int i) { return x.softmax(i % 2); })},
      {"means", chain(matrix, [](const Tensor& x, int) { return x - x.mean({1}, true); })},
      {"largest", chain(matrix, [](const Tensor& x, int i) { return x - x.max({i % 2}, true); })},
      {"places", chain(matrix, [](const Tensor& x, int i) { return x + x.argmax(i % 2, true); })},
      {"outer products",
       chain({6}, [](const Tensor& x, int) { return (x.unsqueeze(1) * x.unsqueeze(0)).sum({1}); })},
      {"gradient of tanh", gradient_of({50},
                                       [](const Tensor& x, int n) {
                                         Tensor y = x;
                                         for (int i = 0; i < 2 * n; ++i) y = (y * 0.9 + x).tanh();
                                         return y;
                                       })},
      {"gradient of products", gradient_of(matrix,
                                           [](const Tensor& x, int n) {
                                             Tensor y = x;
                                             for (int i = 0; i < n; ++i)
                                               y = (y.matmul(x) * 0.1).tanh();
                                             return y;
                                           })},
      {"gradient of cat", gradient_of({500},
                                      [](const Tensor& x, int n) {
                                        std::vector<Tensor> parts;
                                        for (int i = 0; i < n; ++i)
                                          parts.push_back(x.index({Slice(i, i + 1)}) * i);
                                        return Tensor::cat(parts);
                                      })},
      {"gradient of elements", gradient_of({500},
                                           [](const Tensor& x, int n) {
                                             Tensor sum = x.index({0});
                                             for (int i = 0; i < n; ++i)
                                               sum = sum + x.index({i}) * i;
                                             return sum;
                                           })},
  };
}

void expect_all_linear(const std::vector<Construct>& constructs, int n) {
  for (const Construct& c : constructs) {
    SCOPED_TRACE(c.name);
    expect_linear_growth(c.program, n);
  }
}

TEST(Growth, JoinsAndWrites) { expect_all_linear(joins_and_writes(), 60); }
TEST(Growth, Moves) { expect_all_linear(moves(), 60); }
TEST(Growth, Arithmetic) { expect_all_linear(arithmetic(), 60); }
TEST(Growth, Folds) { expect_all_linear(folds(), 30); }

/// Steps of a (12, 12) array to itself.
Tensor random_step(const Tensor& x, int kind) {
  switch (kind) {
    case 0: return x + 1;
    case 1: return x.T();
    case 2: return x.flip(0);
    case 3: return x.reshape({8, 18}).T().reshape({12, 12});
    case 4: return x.reshape({2, 72}).T().reshape({12, 12});
    case 5: return x.pad({{1, 0}, {0, 2}}).shrink({{0, 12}, {1, 13}});
    case 6: return x.roll({3}, {1});
    case 7: return x * x.T();
    case 8: return x.gather(0, (x * 12).cast(DType::I32));
    case 9: return x.softmax(1);
    case 10: return x.cumsum(0);
    case 11: return x - x.max({1}, true);
    case 12: return (x > 1).where(x, x.flip(1));
    case 13: return Tensor::cat({x, x.T()}, 1).index({kEllipsis, Slice({}, {}, 2)});
    case 14: return x.exp() * 0.1;
    case 15: return x.tril();
    case 16: return x.repeat({2, 1}).shrink({{5, 17}, {0, 12}});
    case 17: return x.index({Slice({}, {}, -1)}) + x;
    default: return x.window(1, 3).max({-1}).pad({{0, 0}, {1, 1}});
  }
}

/// Whatever steps are repeated in whatever order.
TEST(Growth, OfRandomChains) {
  Random random(7);
  for (int program = 0; program < 40; ++program) {
    std::vector<int> kinds;
    for (int64_t k = random.between(2, 5); k > 0; --k)
      kinds.push_back(static_cast<int>(random.below(19)));
    SCOPED_TRACE(::testing::PrintToString(kinds));
    expect_linear_growth(chain({12, 12},
                               [&kinds](const Tensor& x, int i) {
                                 return random_step(x,
                                                    kinds[static_cast<size_t>(i) % kinds.size()]);
                               }),
                         40);
  }
}

// ---- linear algebra: loops whose bodies are compiled once

struct Algebra {
  const char* name;
  std::function<std::vector<Tensor>(const Tensor&)> f;
};

std::vector<Algebra> algebra() {
  return {
      {"cholesky", [](const Tensor& a) { return std::vector{linalg::cholesky(a)}; }},
      {"lu", [](const Tensor& a) { return std::vector{linalg::lu(a).packed}; }},
      {"solve", [](const Tensor& a) { return std::vector{linalg::solve(a, a)}; }},
      {"inv", [](const Tensor& a) { return std::vector{linalg::inv(a)}; }},
      {"det", [](const Tensor& a) { return std::vector{linalg::det(a)}; }},
      {"qr",
       [](const Tensor& a) { return std::vector{linalg::qr(a).first, linalg::qr(a).second}; }},
      {"eigh", [](const Tensor& a) { return std::vector{linalg::eigh(a).second}; }},
      {"svd", [](const Tensor& a) { return std::vector{linalg::svd(a).u, linalg::svd(a).vt}; }},
      {"pinv", [](const Tensor& a) { return std::vector{linalg::pinv(a)}; }},
      {"gradient of solve",
       [](const Tensor& a) { return linalg::solve(a, a).sum().gradient({a}); }},
      {"gradient of eigh",
       [](const Tensor& a) { return linalg::eigh(a).second.sum().gradient({a}); }},
      {"gradient of svd", [](const Tensor& a) { return linalg::svd(a).u.sum().gradient({a}); }},
  };
}

struct Compiled {
  int64_t graph, nodes, kernels;
};

Compiled compiled(const Algebra& algebra, int64_t n) {
  Options options = Options::from_environment();
  options.dev = "NULL:INTERP";
  Context context(options);
  const ContextScope scope(context);
  const std::vector<Tensor> out = algebra.f(Tensor::randn({n, n}).realize());
  const auto graph = static_cast<int64_t>(tensor_graph(context).live_nodes());
  const int64_t before = context.tracer().value(Counter::Nodes);
  realize(out);
  return {graph, context.tracer().value(Counter::Nodes) - before,
          run_stats(context).kernel_cache.entries};
}

// Of svd's gradient: two factorisations of four stages each, two orthogonalisations, three
// joinings, triangles in halves, and 60 more where products are summed in six blocks.
constexpr int64_t kMostKernels = 280;

TEST(Growth, LinearAlgebraHasNone) {
  for (const Algebra& a : algebra()) {
    SCOPED_TRACE(a.name);
    // Both beyond the sizes up to which values are sorted in one go, and not beyond those from
    // which on products are summed in blocks, up to 16 of them.
    const Compiled small = compiled(a, 600), large = compiled(a, 1600);
    EXPECT_LE(large.graph, small.graph + 50);
    // The tiles of a product may be larger for the larger one; growing with n would be 2.7 times.
    EXPECT_LE(large.nodes, small.nodes + small.nodes / 2);
    // L2 may hold the operands of the small one alone: then those of the large one are packed, in
    // each of the stages that columns are taken in.
    EXPECT_LE(large.kernels, small.kernels + 4 + small.kernels / 10);
    EXPECT_LE(large.kernels, kMostKernels);
    EXPECT_LE(compiled(a, 6000).kernels, kMostKernels) << "in six blocks";
  }
}

// ---- the values of what is written in parts

class Parts : public TensorTest {};

TEST_F(Parts, OfCatAreWhereTheyBelong) {
  for (const int64_t axis : {0, 1}) {
    std::vector<Tensor> parts;
    std::vector<double> numbers;
    for (int i = 0; i < 200; ++i) {
      const int64_t size = i * 5 % 4;
      const Dims shape = axis == 0 ? Dims{size, 3} : Dims{3, size};
      parts.push_back((Tensor::arange(3 * size).reshape(shape) + 100 * i).cast(DType::F32));
    }
    const Tensor all = Tensor::cat(parts, axis);
    const std::vector<double> expected = values(all);
    EXPECT_EQ(all.to_vector<float>(), std::vector<float>(expected.begin(), expected.end()));
  }
}

TEST_F(Parts, GiveTheirGradients) {
  Tensor x = Tensor::arange(300).cast(DType::F32).realize();
  x.requires_grad_();
  std::vector<Tensor> parts;
  for (int i = 0; i < 100; ++i) parts.push_back(x.index({Slice(3 * i, 3 * i + 3)}) * (i + 1));
  (Tensor::cat(parts) * Tensor::arange(300)).sum().backward();
  std::vector<float> expected;
  for (int i = 0; i < 300; ++i) expected.push_back(static_cast<float>(i * (i / 3 + 1)));
  EXPECT_EQ(x.grad().to_vector<float>(), expected);
}

/// Elements and slices, again and again, some from what is there.
TEST_F(Parts, WrittenLastWin) {
  Random random(3);
  for (int round = 0; round < 10; ++round) {
    std::vector<float> expected(20);
    Tensor x = Tensor::zeros({20}).contiguous().realize();
    for (int i = 0; i < 150; ++i) {
      const auto size = random.between(1, 3);
      const auto at = random.between(0, 20 - size);
      const bool again = random.chance(10);
      const auto from = random.between(0, 20 - size);
      const auto number = static_cast<float>(i);
      const std::vector<float> before = expected;
      for (int64_t k = 0; k < size; ++k)
        expected[static_cast<size_t>(at + k)] =
            again ? before[static_cast<size_t>(from + k)] : number;
      if (again)
        x.index_put({Slice(at, at + size)}, x.index({Slice(from, from + size)}).contiguous());
      else
        x.index_put({Slice(at, at + size)}, number);
    }
    EXPECT_EQ(x.to_vector<float>(), expected);
  }
}

/// A write in place walks over the graph: what is dead must not make it longer and longer.
TEST(Growth, WritesInPlaceFindFewDeadNodes) {
  for (const int made : {1, 10, 40}) {
    Context context;
    const ContextScope scope(context);
    Tensor x = Tensor::arange(8).cast(DType::F32).contiguous().realize();
    size_t most = 0;
    for (int i = 0; i < 200; ++i) {
      Tensor y = x;
      for (int k = 0; k < made; ++k) y = y * 1.5 + i;
      x.index_put({i % 8}, i);
      x.realize();
      most = std::max(most, tensor_graph(context).live_nodes());
    }
    EXPECT_LE(most, 2000u) << made;
  }
}

}  // namespace
}  // namespace weft
