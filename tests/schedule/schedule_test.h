// What tests of the scheduler share: a graph, and what it computes both ways.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/support/compiler/graph_builder.h"
#include "tests/support/compiler/schedule_runner.h"
#include "weft/eval/evaluate.h"
#include "weft/graph/print.h"
#include "weft/schedule/schedule.h"
#include "weft/target/target.h"

namespace weft {

/// Of one width wherever the tests run.
inline const Target kTarget = make_target("interp", CpuFeatures(), 2);

using eval::Array;
using testing::GraphBuilder;

class ScheduleTest : public ::testing::Test {
 protected:
  /// Random values in [-2, 2) for every param of the graph; small non-negative integers for integer
  /// ones.
  std::vector<Array> inputs(std::span<const NodeRef> roots) {
    std::vector<Array> params;
    for (NodeRef n : Toposort(roots)) {
      if (n->op != Op::Param) continue;
      const auto slot = static_cast<size_t>(param_slot(n));
      if (params.size() <= slot) params.resize(slot + 1);
      params[slot] = random(n);
    }
    return params;
  }

  Array random(NodeRef n) {
    eval::Extents extents;
    for (NodeRef d : n->shape->span()) extents.push_back(d->vmin);
    Array a(n->dtype, extents);
    for (int64_t i = 0; i < a.count(); ++i) {
      if (is_float(n->dtype))
        a.set(i, Value::of(n->dtype, std::uniform_real_distribution<double>(-2, 2)(rng_)));
      else
        a.set(i, Value::of(n->dtype, std::uniform_int_distribution<int64_t>(-1, 6)(rng_)));
    }
    return a;
  }

  /// Runs the outputs both ways and compares. `tolerance` is relative to the largest magnitude; 0
  /// asks for equal bits.
  void check(const std::vector<ScheduleOutput>& outputs, double tolerance = 0,
             testing::RunOptions options = {}) {
    std::vector<NodeRef> roots;
    for (const ScheduleOutput& o : outputs) roots.push_back(o.value);
    std::vector<Array> params = inputs(roots);
    eval::Inputs oracle;
    oracle.params = params;
    const std::vector<Array> expected = eval::evaluate(roots, oracle);
    for (const bool fuse : {true, false}) {
      for (const bool optimize : {false, true}) {
        options.schedule.fuse = fuse;
        options.optimize = optimize;
        std::vector<Array> mine = params;
        const std::vector<Array> got = testing::run_graph(context_, outputs, mine, {}, options);
        for (size_t i = 0; i < roots.size(); ++i)
          compare(expected[i], got[i], tolerance, roots[i], fuse, optimize);
      }
    }
  }

  void compare(const Array& expected, const Array& got, double tolerance, NodeRef root, bool fuse,
               bool optimize) {
    SCOPED_TRACE(print_graph(root));
    if (tolerance == 0) {
      EXPECT_TRUE(expected == got) << "fuse " << fuse << " optimize " << optimize << "\nexpected "
                                   << expected.text() << "\ngot      " << got.text();
      return;
    }
    double largest = 1e-30;
    for (double v : expected.doubles()) largest = std::max(largest, std::fabs(v));
    for (int64_t i = 0; i < expected.count(); ++i)
      ASSERT_NEAR(expected.at(i).as_double(), got.at(i).as_double(), tolerance * largest)
          << "at " << i << ", fuse " << fuse << " optimize " << optimize;
  }

  size_t kernels(const std::vector<ScheduleOutput>& outputs) {
    return make_schedule(outputs, kTarget).steps.size();
  }

  Context context_;
  std::mt19937 rng_{7};
  GraphBuilder b_;
  Graph& g_ = b_.graph();
};

}  // namespace weft
