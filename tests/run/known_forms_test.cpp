// KnownForms: what is recognised has the normal form that it would have been given.
#include <gtest/gtest.h>

#include "weft/graph/tuple.h"
#include "weft/run/normalise.h"
#include "weft/trust/random_graph.h"

namespace weft {
namespace {

class KnownFormsTest : public ::testing::Test {
 protected:
  NodeRef buffer(int64_t id, int64_t size = 4, DeviceId device = 1) {
    NodeRef dim = g.index(size);
    return g.buffer(id, DType::F32, {&dim, 1}, device);
  }
  NodeRef bound(NodeRef variable, int64_t value) {
    return g.make(Op::Bind, DType::Index, {variable, g.index(value)});
  }
  NormalForm form(std::vector<NodeRef> values) { return normalise(normal, values, 1, {}, &known); }
  /// Whether a form like it was known; that it is right in either case.
  bool is_known(std::vector<NodeRef> values) {
    const NormalForm f = form(values), anew = normalise(normal, values, 1);
    EXPECT_EQ(f.asked, anew.asked);
    EXPECT_EQ(f.values, anew.values);
    EXPECT_EQ(f.root, anew.root);
    EXPECT_EQ(f.inputs, anew.inputs);
    EXPECT_EQ(f.calls, anew.calls);
    EXPECT_EQ(f.variables.size(), anew.variables.size());
    for (size_t i = 0; i < std::min(f.variables.size(), anew.variables.size()); ++i) {
      EXPECT_EQ(f.variables[i].variable, anew.variables[i].variable);
      EXPECT_EQ(f.variables[i].name, anew.variables[i].name);
      EXPECT_EQ(f.variables[i].value, anew.variables[i].value);
    }
    return f.copies.size() == 0;
  }

  Graph g{Graph::Sharing::Shared}, normal{Graph::Sharing::Shared};
  KnownPrograms known{g, normal};
};

/// What patterns of kernels would have to look through.
TEST_F(KnownFormsTest, WhatStopsGradientsIsGone) {
  NodeRef x = buffer(1), plain = g.alu(Op::Neg, {x});
  NodeRef once = g.make(Op::Detach, DType::F32, {x}),
          stopped = g.alu(Op::Neg, {g.make(Op::Detach, DType::F32, {once})});
  EXPECT_EQ(form({stopped}).values, form({plain}).values);
  EXPECT_TRUE(is_known({stopped}));
}

TEST_F(KnownFormsTest, OfOtherBuffers) {
  const auto program = [this](int64_t a, int64_t b) {
    return g.add(buffer(a), g.mul(buffer(b), g.constant(Value::of(DType::F32, 2.0))));
  };
  EXPECT_FALSE(is_known({program(1, 2)}));
  EXPECT_TRUE(is_known({program(1, 2)}));
  EXPECT_TRUE(is_known({program(3, 4)}));
  EXPECT_TRUE(is_known({program(2, 1)}));
}

TEST_F(KnownFormsTest, WhatIsForgottenIsMadeAnew) {
  const auto program = [this](double x) {
    return g.mul(buffer(1), g.constant(Value::of(DType::F32, x)));
  };
  EXPECT_FALSE(is_known({program(2)}));
  EXPECT_FALSE(is_known({program(3)}));
  known.forms.forget(form({program(2)}).root);
  EXPECT_FALSE(is_known({program(2)}));
  EXPECT_TRUE(is_known({program(3)}));
}

TEST_F(KnownFormsTest, OneBufferTwiceIsAnotherProgram) {
  const auto program = [this](int64_t a, int64_t b) {
    return g.alu(Op::Max, {buffer(a), buffer(b)});
  };
  ASSERT_EQ(program(1, 2)->hash, program(1, 1)->hash) << "only then it tests anything";
  EXPECT_FALSE(is_known({program(1, 2)}));
  EXPECT_FALSE(is_known({program(5, 5)}));
  EXPECT_TRUE(is_known({program(6, 6)}));
  EXPECT_TRUE(is_known({program(6, 7)}));
}

TEST_F(KnownFormsTest, WhatIsAskedForDecides) {
  NodeRef a = g.alu(Op::Neg, {buffer(1)}), b = g.alu(Op::Neg, {buffer(2)});
  EXPECT_FALSE(is_known({a, b}));
  EXPECT_FALSE(is_known({a}));
  EXPECT_FALSE(is_known({a, a}));
  EXPECT_TRUE(is_known({b, a}));
  EXPECT_TRUE(is_known({b}));
  EXPECT_TRUE(is_known({b, b}));
}

TEST_F(KnownFormsTest, NumbersSizesDtypesAndDevicesAreParts) {
  const auto plus = [this](NodeRef x, double y) {
    return g.add(x, g.constant(Value::of(x->dtype, y)));
  };
  EXPECT_FALSE(is_known({plus(buffer(1), 1)}));
  EXPECT_FALSE(is_known({plus(buffer(1), 2)}));
  EXPECT_FALSE(is_known({plus(buffer(2, 5), 1)}));
  EXPECT_FALSE(is_known({plus(buffer(3, 4, 2), 1)}));
  EXPECT_FALSE(is_known({plus(g.cast(buffer(1), DType::F64), 1)}));
  EXPECT_TRUE(is_known({plus(buffer(9), 2)}));
}

TEST_F(KnownFormsTest, AnotherDefaultDeviceIsAnotherForm) {
  const std::vector<NodeRef> values{g.alu(Op::Neg, {buffer(1)})};
  EXPECT_FALSE(is_known(values));
  const NormalForm there = normalise(normal, values, 2, {}, &known);
  EXPECT_NE(there.values[0], form(values).values[0]);
  EXPECT_EQ(there.values[0], normalise(normal, values, 2).values[0]);
}

TEST_F(KnownFormsTest, VariablesHaveOtherValues) {
  NodeRef n = g.variable("n", 1, 100), m = g.variable("m", 1, 100);
  const auto program = [this](NodeRef a, NodeRef b) {
    NodeRef dims[] = {a}, more[] = {b};
    return g.alu(
        Op::Neg,
        {g.add(
            g.make(Op::Reduce, DType::F32, {g.buffer(1, DType::F32, dims, 1)}, {int64_t{1}, 0}),
            g.make(Op::Reduce, DType::F32, {g.buffer(2, DType::F32, more, 1)}, {int64_t{1}, 0}))});
  };
  EXPECT_FALSE(is_known({program(bound(n, 3), bound(m, 4))}));
  EXPECT_TRUE(is_known({program(bound(n, 7), bound(m, 7))}));
  EXPECT_FALSE(is_known({program(bound(n, 3), bound(n, 4))})) << "n and n.1";
  EXPECT_FALSE(is_known({program(bound(n, 3), bound(n, 3))}));
  EXPECT_TRUE(is_known({program(bound(n, 5), bound(n, 9))}));
  EXPECT_TRUE(is_known({program(bound(n, 8), bound(n, 8))}));
}

TEST_F(KnownFormsTest, AFormIsKnownWhenItsProgramIsGone) {
  const auto program = [this](int64_t id) { return g.alu(Op::Neg, {buffer(id)}); };
  EXPECT_FALSE(is_known({program(1)}));
  g.sweep();
  normal.sweep();
  EXPECT_TRUE(is_known({program(2)}));
}

TEST_F(KnownFormsTest, ClearedOnesAreGone) {
  const std::vector<NodeRef> values{g.alu(Op::Neg, {buffer(1)})};
  EXPECT_FALSE(is_known(values));
  known.clear();
  normal.sweep();
  EXPECT_EQ(normal.live_nodes(), 0u) << "nothing roots them any more";
  EXPECT_FALSE(is_known(values));
}

TEST_F(KnownFormsTest, OfOneHashTheNewestStay) {
  const auto program = [this](std::vector<int64_t> ids) {
    NodeRef sum = buffer(ids[0]);
    for (size_t i = 1; i < ids.size(); ++i) sum = g.alu(Op::Max, {sum, buffer(ids[i])});
    return sum;
  };
  const std::vector<std::vector<int64_t>> alike = {
      {1, 2, 3}, {1, 1, 2}, {1, 2, 1}, {1, 2, 2}, {1, 1, 1}};
  for (const auto& ids : alike) EXPECT_FALSE(is_known({program(ids)}));
  for (size_t i = alike.size(); i-- > 1;) EXPECT_TRUE(is_known({program(alike[i])})) << i;
  EXPECT_FALSE(is_known({program(alike[0])}));
}

/// `roots` with params as these buffers.
std::vector<NodeRef> of_buffers(Graph& g, std::span<const NodeRef> roots,
                                const std::vector<int64_t>& ids) {
  NodeMap<NodeRef> images;
  for (NodeRef n : Toposort(roots)) {
    std::vector<NodeRef> src;
    for (NodeRef s : n->src()) src.push_back(images.at(s));
    const bool is_input = n->op == Op::Param && !is_inner_param(n);
    images.set(n, is_input ? g.buffer(ids[static_cast<size_t>(param_slot(n)) % ids.size()],
                                      n->dtype, src, 1)
                           : g.with_sources(n, src));
  }
  std::vector<NodeRef> out;
  for (NodeRef r : roots) out.push_back(images.at(r));
  return out;
}

TEST_F(KnownFormsTest, RandomProgramsOfRandomBuffers) {
  int recognised = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    RandomGraphOptions options;
    options.folds = seed % 2 == 1;
    const RandomGraph random = random_graph(g, seed, options);
    const auto at = static_cast<int64_t>(seed);
    for (const auto& ids : {std::vector<int64_t>{at, at + 1, at + 2, at + 3},
                            {at + 3, at + 2, at + 1, at},
                            {at, at, at + 1, at}})
      recognised += is_known(of_buffers(g, random.roots, ids));
  }
  EXPECT_GE(recognised, 150) << "all that have several params, about, twice";
}

}  // namespace
}  // namespace weft
