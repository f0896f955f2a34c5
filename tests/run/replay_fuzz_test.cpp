// Random functions of arguments and state, captured against not captured.
#include <random>

#include "tests/run/fixture.h"
#include "weft/run/replay.h"

namespace weft {
namespace {

class ReplayFuzz : public RunTest {
 protected:
  using Tensors = std::vector<StorageRef>;

  // Integers, which wrap: sums in any order are equal, and how values share kernels may differ.
  using Numbers = std::vector<int32_t>;
  StorageRef integers(const Numbers& data) {
    Graph::Building building(g);
    const NodeRef dims[] = {g.index(static_cast<int64_t>(data.size()))};
    return storage_from_bytes(context, std::as_bytes(std::span(data)), DType::I32, dims);
  }
  NodeRef num(int32_t x) { return g.constant(Value::of(DType::I32, x)); }
  Numbers values(const StorageRef& s) {
    Numbers out(static_cast<size_t>(static_numel(s->value())));
    read_bytes(s, std::as_writable_bytes(std::span(out)));
    return out;
  }

  int pick(int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); }

  NodeRef operand(const Tensors& from) {
    NodeRef n = from[static_cast<size_t>(pick(static_cast<int>(from.size())))]->value();
    if (pick(4) == 0) return g.make({Op::Flip, DType::I32, std::span(&n, 1), kAxis});
    return n;
  }
  NodeRef value(const Tensors& from) {
    NodeRef a = operand(from), b = operand(from);
    switch (pick(4)) {
      case 0: return g.add(g.mul(a, num(3)), b);
      case 1: return g.sub(a, g.mul(b, num(5)));
      case 2: return g.alu(Op::Max, {a, b});
      default: return g.add(sum(a), g.mul(b, num(7)));
    }
  }
  /// Writes all of `to`, or two elements of it.
  void write(const StorageRef& to, const Tensors& from) {
    assign(to, [&] {
      if (pick(2) == 0) return value(from);
      NodeRef old = to->value(), more = value(from);
      NodeRef view = shrink(old, g.index(pick(3)), g.index(2));
      const NodeRef src[] = {old, view, shrink(more, g.index(pick(3)), g.index(2))};
      return g.make({Op::Assign, DType::I32, src});
    });
  }
  /// The same for the same seed, whatever the tensors hold.
  Tensors function(unsigned seed, const Tensors& states, const Tensors& arguments) {
    random.seed(seed);
    Tensors all = states, results;
    all.insert(all.end(), arguments.begin(), arguments.end());
    for (int i = 0, steps = 2 + pick(8); i < steps; ++i) {
      switch (pick(5)) {
        case 0: run({all[static_cast<size_t>(pick(static_cast<int>(all.size())))]}); break;
        case 1: write(states[static_cast<size_t>(pick(3))], all); break;
        case 2: write(all[static_cast<size_t>(pick(static_cast<int>(all.size())))], all); break;
        default: all.push_back(lazy([&] { return value(all); }));
      }
    }
    for (int i = 0; i < 2; ++i)
      results.push_back(all[static_cast<size_t>(pick(static_cast<int>(all.size())))]);
    return results;
  }

  Tensors three(int32_t base) {
    Tensors out;
    for (int i = 0; i < 3; ++i) {
      const int32_t x = base + i;
      out.push_back(integers({x, 2 * x, 1 - x, 3}));
    }
    return out;
  }

  void compare(unsigned seed) {
    const Tensors plain = three(1), captured = three(1);
    Tensors kept_plain, kept_captured;
    std::unique_ptr<Replay> replay;
    for (int call = 0; call < 4; ++call) {
      const Tensors a = {integers({1 + call, 2, 3, 4})}, b = {integers({1 + call, 2, 3, 4})};
      const Tensors wanted = function(seed, plain, a);
      Tensors got;
      const ReplayArgument arguments[] = {{"a", b[0]}};
      if (!replay) {
        CaptureScope scope_(context, arguments);
        got = function(seed, captured, b);
        replay = scope_.finish(got);
      } else {
        got = replay->run(arguments);
      }
      for (size_t i = 0; i < 2; ++i) ASSERT_EQ(values(got[i]), values(wanted[i])) << "result " << i;
      for (size_t i = 0; i < 3; ++i)
        ASSERT_EQ(values(captured[i]), values(plain[i])) << "state " << i;
      ASSERT_EQ(values(b[0]), values(a[0])) << "argument";
      // What somebody keeps, realized or not, stays as it was.
      kept_plain.push_back(lazy([&] { return g.add(plain[0]->value(), num(1)); }));
      kept_captured.push_back(lazy([&] { return g.add(captured[0]->value(), num(1)); }));
      if (call == 1)  // state changes between calls
        for (const Tensors* states : {&plain, &captured})
          assign((*states)[1], [&] { return g.add((*states)[1]->value(), num(2)); });
    }
    for (size_t i = 0; i < kept_plain.size(); ++i)
      ASSERT_EQ(values(kept_captured[i]), values(kept_plain[i])) << "kept after call " << i;
  }

  static constexpr int64_t kAxis[] = {0};
  std::mt19937 random;
};

TEST_F(ReplayFuzz, CapturedEqualsPlain) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    compare(seed);
    if (HasFatalFailure()) return;
  }
}

TEST_F(ReplayFuzz, CapturedEqualsPlainSlow) {
  for (unsigned seed = 1000; seed < 101000; ++seed) {
    SCOPED_TRACE(seed);
    compare(seed);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace weft
