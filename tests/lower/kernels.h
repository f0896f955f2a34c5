// Building small kernels by hand and running them both ways.
#pragma once
#include <gtest/gtest.h>

#include "tests/support/kernel_eval.h"
#include "weft/graph/print.h"
#include "weft/graph/stage.h"
#include "weft/graph/verify.h"
#include "weft/lower/lower.h"
#include "weft/target/target.h"

namespace weft::test {

struct KernelBuilder {
  std::shared_ptr<Graph> graph = std::make_shared<Graph>();
  Graph& g = *graph;
  std::vector<NodeRef> stores;

  NodeRef index(int64_t v) { return g.index(v); }
  NodeRef range(int64_t size, int64_t id, Binding binding = Binding::Loop) {
    return g.range(size, id, binding);
  }
  NodeRef param(int64_t slot, DType dtype, int64_t size) {
    const NodeRef dims[] = {g.index(size)};
    return g.param(slot, dtype, dims);
  }
  NodeRef load(NodeRef param, NodeRef at, NodeRef valid = nullptr) {
    std::vector<NodeRef> src{param, at};
    if (valid) src.push_back(valid);
    return g.make({Op::Load, param->dtype, src});
  }
  void store(NodeRef param, NodeRef at, NodeRef value, NodeRef valid = nullptr,
             Fold combine = Fold::Set, int64_t unique = 1) {
    std::vector<NodeRef> src{param, at, value};
    if (valid) src.push_back(valid);
    const int64_t ints[] = {static_cast<int64_t>(combine), unique};
    stores.push_back(g.make({Op::Store, DType::Void, src, ints}));
  }
  NodeRef reduce(Fold fold, NodeRef value, std::vector<NodeRef> ranges) {
    std::vector<NodeRef> src{value};
    src.insert(src.end(), ranges.begin(), ranges.end());
    const int64_t ints[] = {static_cast<int64_t>(fold)};
    return g.make({Op::Reduce, value->dtype, src, ints});
  }
  /// In local memory, dense where there are no strides.
  NodeRef stage(NodeRef value, std::vector<NodeRef> ranges,
                const std::vector<int64_t>& strides = {}, int64_t buffers = 1) {
    std::vector<NodeRef> src{value};
    src.insert(src.end(), ranges.begin(), ranges.end());
    std::vector<int64_t> ints{static_cast<int64_t>(Space::Local),
                              static_cast<int64_t>(StageLifetime::Kernel), buffers};
    ints.insert(ints.end(), strides.begin(), strides.end());
    return g.make({Op::Stage, value->dtype, src, ints});
  }
  NodeRef f32(double v) { return g.constant(Value::of(DType::F32, v)); }
  Kernel kernel() {
    Kernel k{graph, g.make({Op::Sink, DType::Void, stores}), "test"};
    verify_kernel(k, "test");
    return k;
  }
};

/// The sum over a window of 3 and 4 channels around each of 6 places, zeros around them.
inline Kernel padded_window() {
  KernelBuilder k;
  NodeRef y = k.range(6, 0), w = k.range(3, 1), c = k.range(4, 2);
  NodeRef at = k.g.add(k.g.sub(y, k.index(1)), w);  // in [0, 6) where valid
  NodeRef valid = k.g.logical_and(k.g.lt(k.index(-1), at), k.g.lt(at, k.index(6)));
  NodeRef flat = k.g.add(k.g.mul(at, k.index(4)), c);
  NodeRef x = k.load(k.param(0, DType::F32, 24), flat, valid);
  NodeRef weight = k.load(k.param(1, DType::F32, 12), k.g.add(k.g.mul(w, k.index(4)), c));
  NodeRef bias = k.load(k.param(2, DType::F32, 6), at, valid);  // not in the loop that is skipped
  NodeRef value = k.g.mul(k.g.add(x, bias), weight);
  NodeRef sum = k.reduce(Fold::Add, k.g.where(valid, value, k.f32(0)), {w, c});
  k.store(k.param(3, DType::F32, 6), y, sum);
  return k.kernel();
}

/// Deterministic small values: sums and products of them are exact in f32.
inline std::vector<Value> numbers(DType dtype, int64_t count, int64_t seed = 1) {
  std::vector<Value> out;
  uint64_t x = static_cast<uint64_t>(seed) * 0x9E3779B97F4A7C15ull + 12345;
  for (int64_t i = 0; i < count; ++i) {
    x = x * 6364136223846793005ull + 1442695040888963407ull;
    const auto v = static_cast<int64_t>(x >> 33) % 9;
    out.push_back(Value::of(dtype, is_unsigned(dtype) || is_bool(dtype) ? v : v - 4));
  }
  return out;
}
inline std::vector<Value> zeros(DType dtype, int64_t count) {
  return std::vector<Value>(static_cast<size_t>(count), Value::of(dtype, 0));
}

inline LinearProgram lowered(const Kernel& kernel, const Target& target) {
  LinearProgram program = lower_kernel(kernel, target);
  verify_program(program, "lower");
  return program;
}
inline LinearProgram lowered(const Kernel& kernel, const char* target = "c") {
  return lowered(kernel, make_target(target, CpuFeatures::detect(), 2));
}
/// What this machine runs, also as one that has less.
inline std::vector<Target> targets() {
  const CpuFeatures cpu = CpuFeatures::detect(), less = cpu.up_to("avx2");
  std::vector<Target> all;
  if (less.bits() != cpu.bits()) all.push_back(make_target("x86", less, 2));
  for (const char* name : {"interp", "x86", "c"}) all.push_back(make_target(name, cpu, 2));
  return all;
}

enum class Zeros { Signed, Unsigned };
inline bool same_value(const Value& a, const Value& b, Zeros zeros = Zeros::Signed) {
  if (a == b || (a.is_nan() && b.is_nan())) return true;
  return zeros == Zeros::Unsigned && a.is_zero() && b.is_zero();
}

/// Lowers for each target and compares with the kernel's meaning, bit for bit; gives the last
/// program.
inline LinearProgram expect_same(const Kernel& kernel, const Buffers& buffers,
                                 const Variables& variables = {}, Zeros zeros = Zeros::Signed) {
  LinearProgram program;
  const Buffers expected = run_kernel(kernel.sink, buffers, variables);
  for (const Target& target : targets()) {
    program = lowered(kernel, target);
    const Buffers got = run_program(program, buffers, variables);
    for (size_t slot = 0; slot < expected.size(); ++slot)
      for (size_t i = 0; i < expected[slot].size(); ++i) {
        const bool same = same_value(expected[slot][i], got[slot][i], zeros);
        EXPECT_TRUE(same) << target.name << " p" << slot << "[" << i << "] is "
                          << got[slot][i].text() << ", not " << expected[slot][i].text() << "\n"
                          << print_program(program);
        if (!same) return program;
      }
  }
  return program;
}

inline size_t count(const LinearProgram& program, Op op) {
  size_t n = 0;
  for (NodeRef x : program.code) n += x->op == op;
  return n;
}

/// What a lowered kernel of this target computes, beside the kernel's own meaning.
inline LinearProgram expect_same_on(const Target& target, const Kernel& kernel,
                                    const Buffers& buffers) {
  const LinearProgram program = lower_kernel(kernel, target);
  verify_program(program, "lower");
  const Buffers want = run_kernel(kernel.sink, buffers), got = run_program(program, buffers);
  for (size_t slot = 0; slot < want.size(); ++slot)
    for (size_t i = 0; i < want[slot].size(); ++i)
      EXPECT_TRUE(same_value(want[slot][i], got[slot][i])) << "p" << slot << "[" << i << "]";
  return program;
}

}  // namespace weft::test
