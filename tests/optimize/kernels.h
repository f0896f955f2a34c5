// Kernels of the shapes the optimiser is made for, and the check that it keeps their values.
#pragma once
#include "tests/lower/kernels.h"
#include "weft/optimize/optimize.h"

namespace weft::test {

/// "c" as if the machine had these: widths 512, 256 and 128.
inline Target target_with_bits(int bits) {
  CpuFeatures cpu;
  if (bits >= 256) {
    cpu.set(CpuFeature::Avx2, true);
    cpu.set(CpuFeature::Fma, true);
  }
  if (bits >= 512)
    for (CpuFeature f :
         {CpuFeature::Avx512f, CpuFeature::Avx512bw, CpuFeature::Avx512dq, CpuFeature::Avx512vl})
      cpu.set(f, true);
  return make_target("c", cpu, 2);
}

inline std::string joined(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& l : lines) out += l + "\n";
  return out;
}

/// Optimises and compares values; sums of the small numbers of kernels.h are exact in any order.
inline Kernel expect_kept(const Kernel& kernel, const Buffers& buffers, const Target& target,
                          const Variables& variables = {}) {
  OptimizeReport report;
  const Kernel better = optimize_kernel(kernel, target, {true, &report});
  verify_kernel(better, "optimize");
  const Buffers expected = run_kernel(kernel.sink, buffers, variables);
  const Buffers got = run_kernel(better.sink, buffers, variables);
  for (size_t slot = 0; slot < expected.size(); ++slot)
    for (size_t i = 0; i < expected[slot].size(); ++i)
      if (!(expected[slot][i] == got[slot][i])) {
        ADD_FAILURE() << "p" << slot << "[" << i << "] is " << got[slot][i].text() << ", not "
                      << expected[slot][i].text() << "\n"
                      << joined(report.applied) << print_graph(better.sink);
        return better;
      }
  return better;
}

inline Kernel expect_kept(const Kernel& kernel, const Buffers& buffers, int bits = 512,
                          const Variables& variables = {}) {
  return expect_kept(kernel, buffers, target_with_bits(bits), variables);
}

inline bool has_binding(const Kernel& kernel, Binding binding) {
  for (NodeRef n : Toposort(kernel.sink))
    if (n->op == Op::Range && range_binding(n) == binding) return true;
  return false;
}

/// out[i, j] = sum over k of a * b, with a and b stored as their strides say.
inline Kernel matmul_kernel(int64_t m, int64_t n, int64_t k, bool a_transposed, bool b_transposed) {
  KernelBuilder b;
  NodeRef i = b.range(m, 0), j = b.range(n, 1), r = b.range(k, 2);
  auto at = [&](NodeRef row, NodeRef column, int64_t width) {
    return b.g.add(b.g.mul(row, b.g.index(width)), column);
  };
  NodeRef x = b.load(b.param(1, DType::F32, m * k), a_transposed ? at(r, i, m) : at(i, r, k));
  NodeRef y = b.load(b.param(2, DType::F32, k * n), b_transposed ? at(j, r, k) : at(r, j, n));
  b.store(b.param(0, DType::F32, m * n), at(i, j, n), b.reduce(Fold::Add, b.g.mul(x, y), {r}));
  return b.kernel();
}

struct ConvShape {
  int64_t batch, in, height, width, out, window;
};

/// The strides of an array [n, c, h, w], with the batch outermost or innermost.
struct Layout {
  int64_t n, c, h, w;
  Layout(const ConvShape& s, int64_t channels, int64_t rows, int64_t columns, bool batch_inner) {
    w = batch_inner ? s.batch : 1;
    h = w * columns;
    c = h * rows;
    n = batch_inner ? 1 : c * channels;
  }
};

/// Which of a convolution's three products.
enum class ConvPart { Forward, Input, Weight };

inline Kernel conv_kernel(const ConvShape& s, bool batch_inner, ConvPart part) {
  KernelBuilder b;
  const int64_t oh = s.height - s.window + 1, ow = s.width - s.window + 1;
  const Layout xs(s, s.in, s.height, s.width, batch_inner), ys(s, s.out, oh, ow, batch_inner);
  NodeRef x =
      b.param(part == ConvPart::Input ? 0 : 1, DType::F32, s.batch * s.in * s.height * s.width);
  NodeRef y = b.param(part == ConvPart::Forward ? 0 : 2, DType::F32, s.batch * s.out * oh * ow);
  NodeRef w = b.param(part == ConvPart::Weight    ? 0
                      : part == ConvPart::Forward ? 2
                                                  : 1,
                      DType::F32, s.out * s.in * s.window * s.window);
  int64_t next = 0;
  auto range = [&](int64_t size) { return size == 1 ? b.index(0) : b.range(size, next++); };
  auto sum = [&](std::initializer_list<std::pair<NodeRef, int64_t>> terms) {
    NodeRef total = b.index(0);
    for (auto [node, stride] : terms) total = b.g.add(total, b.g.mul(node, b.index(stride)));
    return total;
  };
  auto weight_at = [&](NodeRef oc, NodeRef ic, NodeRef ky, NodeRef kx) {
    return sum(
        {{oc, s.in * s.window * s.window}, {ic, s.window * s.window}, {ky, s.window}, {kx, 1}});
  };
  auto reduce = [&](NodeRef value, std::vector<NodeRef> ranges) {
    std::erase_if(ranges, [](NodeRef r) { return r->op != Op::Range; });
    return b.reduce(Fold::Add, value, ranges);
  };
  if (part == ConvPart::Weight) {
    NodeRef oc = range(s.out), ic = range(s.in), ky = range(s.window), kx = range(s.window);
    NodeRef n = batch_inner ? nullptr : range(s.batch), oy = range(oh), ox = range(ow);
    if (!n) n = range(s.batch);
    NodeRef value = b.g.mul(
        b.load(x, sum({{n, xs.n}, {ic, xs.c}, {oy, xs.h}, {ky, xs.h}, {ox, xs.w}, {kx, xs.w}})),
        b.load(y, sum({{n, ys.n}, {oc, ys.c}, {oy, ys.h}, {ox, ys.w}})));
    b.store(w, weight_at(oc, ic, ky, kx), reduce(value, {n, oy, ox}));
    return b.kernel();
  }
  const bool forward = part == ConvPart::Forward;
  NodeRef n = batch_inner ? nullptr : range(s.batch);
  NodeRef c = range(forward ? s.out : s.in), py = range(forward ? oh : s.height),
          px = range(forward ? ow : s.width);
  if (!n) n = range(s.batch);
  NodeRef other = range(forward ? s.in : s.out), ky = range(s.window), kx = range(s.window);
  if (forward) {
    NodeRef value = b.g.mul(
        b.load(x, sum({{n, xs.n}, {other, xs.c}, {py, xs.h}, {ky, xs.h}, {px, xs.w}, {kx, xs.w}})),
        b.load(w, weight_at(c, other, ky, kx)));
    b.store(y, sum({{n, ys.n}, {c, ys.c}, {py, ys.h}, {px, ys.w}}), reduce(value, {other, ky, kx}));
    return b.kernel();
  }
  NodeRef oy = b.g.sub(py, ky), ox = b.g.sub(px, kx);
  NodeRef valid = b.g.boolean(true);
  for (auto [at, size] : {std::pair{oy, oh}, std::pair{ox, ow}})
    valid =
        b.g.logical_and(valid, b.g.logical_and(b.g.le(b.index(0), at), b.g.lt(at, b.index(size))));
  NodeRef value = b.g.mul(b.load(y, sum({{n, ys.n}, {other, ys.c}, {oy, ys.h}, {ox, ys.w}}), valid),
                          b.load(w, weight_at(other, c, ky, kx)));
  b.store(x, sum({{n, xs.n}, {c, xs.c}, {py, xs.h}, {px, xs.w}}), reduce(value, {other, ky, kx}));
  return b.kernel();
}

/// Buffers of small numbers for every param of a kernel.
inline Buffers buffers_for(const Kernel& kernel) {
  Buffers out;
  for (NodeRef n : Toposort(kernel.sink)) {
    if (n->op != Op::Param) continue;
    const auto slot = static_cast<size_t>(param_slot(n));
    if (out.size() <= slot) out.resize(slot + 1);
    out[slot] = numbers(n->dtype, n->src(0)->vmax, static_cast<int64_t>(slot));
  }
  return out;
}

}  // namespace weft::test
