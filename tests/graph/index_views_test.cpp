// Chains of reshapes and permutations: what ends where it began is the plain index again, whatever
// stands beside it, and what does not keeps its value.
#include <gtest/gtest.h>

#include <functional>

#include "tests/support/index_expression.h"
#include "weft/graph/print.h"
#include "weft/trust/random.h"

namespace weft {
namespace {

/// A view of a flat array, as the flat position of each of its elements.
class View {
 public:
  View(Graph& g, NodeRef size) : g_(g), dims_{size} {
    index_ = {g.range(size, 0)};
    position_ = [](const std::vector<NodeRef>& index) { return index[0]; };
  }

  /// From the view's axes to the ones it is made of, step by step: as a scheduler goes.
  using Map = std::function<NodeRef(const std::vector<NodeRef>&)>;

  void reshape(std::vector<NodeRef> to) {
    position_ = [this, from = dims_, to, inner = position_](const std::vector<NodeRef>& index) {
      return inner(unflatten(flatten(index, to), from));
    };
    dims_ = std::move(to);
  }
  void permute(const std::vector<size_t>& axes) {
    std::vector<NodeRef> dims;
    for (size_t a : axes) dims.push_back(dims_[a]);
    position_ = [axes, inner = position_](const std::vector<NodeRef>& index) {
      std::vector<NodeRef> from(index.size());
      for (size_t a = 0; a < axes.size(); ++a) from[axes[a]] = index[a];
      return inner(from);
    };
    dims_ = std::move(dims);
  }
  const std::vector<NodeRef>& dims() const { return dims_; }
  NodeRef at(const std::vector<NodeRef>& index) const { return position_(index); }

 private:
  NodeRef flatten(const std::vector<NodeRef>& index, const std::vector<NodeRef>& dims) const {
    NodeRef flat = g_.index(0);
    for (size_t i = 0; i < dims.size(); ++i) flat = g_.add(g_.mul(flat, dims[i]), index[i]);
    return flat;
  }
  std::vector<NodeRef> unflatten(NodeRef flat, const std::vector<NodeRef>& dims) const {
    std::vector<NodeRef> index(dims.size());
    for (size_t i = dims.size(); i-- > 0; flat = g_.idiv(flat, dims[i]))
      index[i] = i == 0 ? flat : g_.mod(flat, dims[i]);
    return index;
  }

  Graph& g_;
  std::vector<NodeRef> dims_, index_;
  Map position_;
};

std::vector<NodeRef> nodes(Graph& g, const std::vector<int64_t>& sizes) {
  std::vector<NodeRef> out;
  for (int64_t n : sizes) out.push_back(g.index(n));
  return out;
}

/// A random way to write n as a product.
std::vector<int64_t> factors(Random& random, int64_t n) {
  std::vector<int64_t> out{1};
  for (int64_t p = 2; n > 1; ++p)
    for (; n % p == 0; n /= p) {
      if (random.chance(50)) out.push_back(1);
      random.pick(out) *= p;
    }
  std::erase(out, 1);
  return out;
}

std::vector<size_t> shuffled(Random& random, size_t n) {
  std::vector<size_t> axes(n);
  for (size_t a = 0; a < n; ++a) axes[a] = a;
  for (size_t a = n; a > 1; --a)
    std::swap(axes[a - 1], axes[static_cast<size_t>(random.below(static_cast<int64_t>(a)))]);
  return axes;
}

constexpr int64_t kSizes[] = {24, 36, 60, 64, 120, 210, 360, 3136};

TEST(IndexViews, ChainsOfReshapesAreThePlainIndex) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    Random random(seed);
    Graph g;
    const int64_t n = random.pick(kSizes);
    View view(g, g.index(n));
    std::string chain;
    for (int64_t k = random.between(2, 5); k > 0; --k) {
      const std::vector<int64_t> shape = factors(random, n);
      chain += "(";
      for (int64_t d : shape) chain += std::to_string(d) + " ";
      chain += ") ";
      view.reshape(nodes(g, shape));
    }
    view.reshape({g.index(n)});
    NodeRef r = g.range(n, 0);
    ASSERT_EQ(view.at({r}), r) << chain << expression(view.at({r}));
  }
}

/// The digits of one range in any order, with other terms between them and a common factor.
TEST(IndexViews, DigitsMeetAcrossOtherTerms) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    Random random(seed);
    Graph g;
    const int64_t n = random.pick(kSizes), factor = random.between(1, 3);
    NodeRef r = g.range(n, 0), x = random.chance(33) ? g.add(r, g.range(9, 1)) : r;
    std::vector<NodeRef> terms{g.mul(g.range(7, 2), g.index(n)), g.variable("v", 0, 9),
                               g.mul(g.idiv(g.range(50, 3), g.index(5)), g.index(5))};
    NodeRef expected = g.mul(x, g.index(factor));
    for (NodeRef t : terms) expected = g.add(expected, t);
    int64_t place = 1;
    const std::vector<int64_t> shape = factors(random, n);
    for (size_t i = shape.size(); i-- > 0; place *= shape[i]) {
      NodeRef digit = g.idiv(x, g.index(place));
      if (i > 0) digit = g.mod(digit, g.index(shape[i]));
      terms.push_back(g.mul(digit, g.index(place * factor)));
    }
    NodeRef sum = g.index(0);
    while (!terms.empty()) {
      const auto at = static_cast<size_t>(random.below(static_cast<int64_t>(terms.size())));
      sum = g.add(sum, terms[at]);
      terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(at));
    }
    ASSERT_EQ(sum, expected) << "seed " << seed << ": " << expression(sum);
  }
}

TEST(IndexViews, PermutationsThatUndoEachOtherAreThePlainIndex) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    Random random(seed);
    Graph g;
    const int64_t n = random.pick(kSizes);
    const std::vector<int64_t> shape = factors(random, n);
    View view(g, g.index(n));
    view.reshape(nodes(g, shape));
    const std::vector<size_t> axes = shuffled(random, shape.size());
    std::vector<size_t> back(shape.size());
    for (size_t a = 0; a < axes.size(); ++a) back[axes[a]] = a;
    view.permute(axes);
    const std::vector<NodeRef> dims = view.dims();
    view.reshape({g.index(n)});
    view.reshape(nodes(g, factors(random, n)));
    view.reshape({g.index(n)});
    view.reshape(dims);
    view.permute(back);
    view.reshape({g.index(n)});
    NodeRef r = g.range(n, 0);
    ASSERT_EQ(view.at({r}), r) << "seed " << seed << ": " << expression(view.at({r}));
  }
}

TEST(IndexViews, RandomChainsKeepTheirValues) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    Graph g;
    const int64_t n = kSizes[random.below(6)];
    View view(g, g.index(n));
    std::vector<std::vector<int64_t>> shapes;
    std::vector<std::vector<size_t>> orders;
    for (int k = 0; k < 3; ++k) {
      shapes.push_back(factors(random, n));
      view.reshape(nodes(g, shapes.back()));
      orders.push_back(shuffled(random, shapes.back().size()));
      view.permute(orders.back());
    }
    view.reshape({g.index(n)});
    NodeRef r = g.range(n, 0), at = view.at({r});
    for (int64_t i = 0; i < n; ++i) {
      int64_t expected = i;
      for (size_t k = shapes.size(); k-- > 0;) {
        std::vector<int64_t> index(shapes[k].size());
        for (size_t a = index.size(); a-- > 0;) {
          const int64_t size = shapes[k][orders[k][a]];
          index[orders[k][a]] = expected % size;
          expected /= size;
        }
        for (size_t a = 0; a < index.size(); ++a) expected = expected * shapes[k][a] + index[a];
      }
      ASSERT_EQ(index_value(at, {{r, i}}), expected) << "seed " << seed << ": " << expression(at);
    }
  }
}

TEST(IndexViews, SymbolicAxesMeetAgain) {
  Graph g;
  NodeRef n = g.variable("n", 1, 100), r = g.range(g.mul(g.index(12), n), 0),
          beside = g.mul(g.range(5, 1), n);
  NodeRef sum = g.add(g.add(g.mul(g.idiv(r, n), n), beside), g.mod(r, n));
  EXPECT_EQ(sum, g.add(r, beside)) << expression(sum);
  NodeRef twice = g.add(g.mul(g.mul(g.idiv(r, n), n), g.index(2)), g.mul(g.mod(r, n), g.index(2)));
  EXPECT_EQ(twice, g.mul(r, g.index(2))) << expression(twice);
}

}  // namespace
}  // namespace weft
