// A product of matrices of words, [m, k] by [k, n], as a kernel.
#pragma once
#include "tests/lower/kernels.h"

namespace weft::test {

inline Target target_with_tiles() {
  CpuFeatures cpu;
  for (CpuFeature f : {CpuFeature::Avx2, CpuFeature::Fma, CpuFeature::Avx512f, CpuFeature::Avx512bw,
                       CpuFeature::Avx512dq, CpuFeature::Avx512vl, CpuFeature::Avx512vbmi,
                       CpuFeature::Avx512vnni, CpuFeature::AmxTile, CpuFeature::AmxInt8})
    cpu.set(f, true);
  return make_target("x86", cpu, 2);
}

struct TileKernel {
  int64_t m, n, k;

  int64_t words(size_t slot) const { return slot == 1 ? m * k : k * n; }

  /// Rows in slot 1, columns in slot 2; `swapped`: the right operand's bytes are the unsigned ones.
  Kernel plain(bool swapped) const {
    KernelBuilder b;
    NodeRef i = b.range(m, 0), j = b.range(n, 1), steps = b.range(k, 2);
    return product(b, i, j, steps, {steps}, swapped);
  }
  /// With what a matrix unit covers bound to it; m and n are a tile's.
  Kernel bound(bool swapped) const {
    KernelBuilder b;
    NodeRef i = b.range(m, 1, Binding::Tile), j = b.range(n, 2, Binding::Vector);
    NodeRef outer = b.range(k / 16, 0), inner = b.range(16, 3, Binding::Tile);
    NodeRef steps = b.g.add(b.g.mul(outer, b.index(16)), inner);
    return product(b, i, j, steps, {outer, inner}, swapped);
  }

 private:
  Kernel product(KernelBuilder& b, NodeRef i, NodeRef j, NodeRef steps,
                 const std::vector<NodeRef>& ranges, bool swapped) const {
    NodeRef left = b.param(1, DType::U32, m * k), right = b.param(2, DType::U32, k * n);
    NodeRef row = b.load(left, b.g.add(b.g.mul(i, b.index(k)), steps));
    NodeRef column = b.load(right, b.g.add(b.g.mul(steps, b.index(n)), j));
    if (swapped) std::swap(row, column);
    NodeRef zero = b.g.constant(Value::of(DType::I32, 0));
    NodeRef dot = b.g.make(Op::Dot4, DType::I32, {row, column, zero});
    NodeRef sum = b.reduce(Fold::Add, dot, ranges);
    NodeRef place = b.g.add(b.g.mul(i, b.index(n)), j);
    b.store(b.param(0, DType::I32, m * n), place, sum);
    return b.kernel();
  }
};

}  // namespace weft::test
