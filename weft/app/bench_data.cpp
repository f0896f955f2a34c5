// Data movement, selection and sorting, random numbers, linear algebra and Fourier transforms.
#include "weft/app/bench_cases.h"
#include "weft/tensor/distributions.h"
#include "weft/tensor/fft.h"
#include "weft/tensor/image.h"
#include "weft/tensor/linalg.h"
#include "weft/tensor/selection.h"
#include "weft/tensor/statistics.h"

namespace weft {
namespace {

using Fill = BenchOperand::Fill;
using Dims64 = std::vector<int64_t>;

BenchOperand floats(Dims64 dims) { return {std::move(dims)}; }
BenchOperand positive(Dims64 dims) { return {std::move(dims), DType::F32, Fill::Positive}; }
BenchOperand definite(Dims64 dims) { return {std::move(dims), DType::F32, Fill::Definite}; }
BenchOperand below(int64_t most, Dims64 dims, DType dtype = DType::I64) {
  return {std::move(dims), dtype, Fill::Below, most};
}

/// Rows that are written to given places, wide ones and of lengths that no vector divides.
void add_writes_of_rows(std::vector<BenchCase>& cases) {
  const auto add = [&](const char* name, const char* torch,
                       BenchValues (*compute)(const BenchValues&)) {
    cases.push_back({"selection",
                     std::string(name) + " of 256 rows to 256 x {}",
                     {1000, 1001, 16384},
                     [](int64_t n) -> BenchOperands {
                       return {floats({256, n}), below(256, {256}), floats({256, n})};
                     },
                     compute,
                     torch});
  };
  add("index_add", "a.index_add(0, b, c)",
      [](const BenchValues& v) -> BenchValues { return {index_add(v[0], 0, v[1], v[2])}; });
  add("index_copy", "a.index_copy(0, b, c)",
      [](const BenchValues& v) -> BenchValues { return {index_copy(v[0], 0, v[1], v[2])}; });
}

}  // namespace

void add_movement(std::vector<BenchCase>& cases) {
  const Dims64 sides = {64, 512, 4096};
  const auto square = [](int64_t n) -> BenchOperands { return {floats({n, n})}; };
  const auto add = [&](const char* name, BenchValues (*compute)(const BenchValues&),
                       const char* torch) {
    cases.push_back({"movement", std::string(name) + ", {0} x {0}", sides, square, compute, torch});
  };
  using In = const BenchValues&;
  using Out = BenchValues;
  add("transpose", [](In v) -> Out { return {v[0].T().contiguous()}; }, "a.T.contiguous()");
  add("flip", [](In v) -> Out { return {v[0].flip(1).contiguous()}; }, "a.flip(1)");
  add("roll", [](In v) -> Out { return {v[0].roll(5, 1)}; }, "a.roll(5, 1)");
  add(
      "pad", [](In v) -> Out { return {v[0].pad({{1, 1}, {1, 1}}).contiguous()}; },
      "F.pad(a, (1, 1, 1, 1))");
  add(
      "cat of rows", [](In v) -> Out { return {Tensor::cat({v[0], v[0]}, 0).contiguous()}; },
      "torch.cat([a, a], 0)");
  add(
      "cat of columns", [](In v) -> Out { return {Tensor::cat({v[0], v[0]}, 1).contiguous()}; },
      "torch.cat([a, a], 1)");
  add(
      "stack", [](In v) -> Out { return {Tensor::stack({v[0], v[0]}, -1).contiguous()}; },
      "torch.stack([a, a], -1)");
  add("repeat", [](In v) -> Out { return {v[0].repeat({2, 2}).contiguous()}; }, "a.repeat(2, 2)");
  add(
      "every second",
      [](In v) -> Out { return {v[0].index({Slice(), Slice(0, v[0].size(1), 2)}).contiguous()}; },
      "a[:, ::2].contiguous()");
  add("triangle", [](In v) -> Out { return {v[0].tril()}; }, "a.tril()");
  add("where", [](In v) -> Out { return {(v[0] > 0).where(v[0], 0)}; }, "torch.where(a > 0, a, 0)");
  cases.push_back({"movement",
                   "permute to (2, 0, 1), {} x 128 x 256",
                   {4, 64},
                   [](int64_t n) -> BenchOperands { return {floats({n, 128, 256})}; },
                   [](In v) -> Out { return {v[0].permute({2, 0, 1}).contiguous()}; },
                   "a.permute(2, 0, 1).contiguous()"});
  cases.push_back({"movement",
                   "permute heads, {} x 1024 x 12 x 64",
                   {1, 8},
                   [](int64_t n) -> BenchOperands { return {floats({n, 1024, 12, 64})}; },
                   [](In v) -> Out { return {v[0].permute({0, 2, 1, 3}).contiguous()}; },
                   "a.permute(0, 2, 1, 3).contiguous()"});
  const auto images = [](int64_t n) -> BenchOperands { return {floats({n, 64, 112, 112})}; };
  cases.push_back({"movement",
                   "max_pool2d 2, {} x 64 x 112 x 112",
                   {1, 8},
                   images,
                   [](In v) -> Out { return {v[0].max_pool2d({2, 2})}; },
                   "F.max_pool2d(a, 2)"});
  cases.push_back(
      {"movement",
       "avg_pool2d 3, stride 2, {} x 64 x 112 x 112",
       {1, 8},
       images,
       [](In v) -> Out { return {v[0].avg_pool2d({3, 3}, {.stride = 2, .padding = 1})}; },
       "F.avg_pool2d(a, 3, 2, 1)"});
  cases.push_back({"movement",
                   "interpolate linearly to 224, {} x 16 x 112 x 112",
                   {1, 8},
                   [](int64_t n) -> BenchOperands { return {floats({n, 16, 112, 112})}; },
                   [](In v) -> Out { return {interpolate(v[0], {224, 224}, Resize::Linear)}; },
                   "F.interpolate(a, (224, 224), mode='bilinear')"});
}

void add_selection(std::vector<BenchCase>& cases) {
  add_writes_of_rows(cases);
  using In = const BenchValues&;
  using Out = BenchValues;
  const Dims64 sizes = {1 << 10, 1 << 16, 1 << 20};
  const auto line = [](int64_t n) -> BenchOperands { return {floats({n})}; };
  const auto add = [&](const char* name, const char* torch, BenchValues (*compute)(In),
                       std::function<BenchOperands(int64_t)> operands, Dims64 of) {
    cases.push_back({"selection", name, std::move(of), std::move(operands), compute, torch});
  };
  const auto sorted = [](In v) -> Out {
    const auto [values, places] = v[0].sort();
    return {values, places};
  };
  add("sort of {}", "a.sort()", sorted, line, sizes);
  add(
      "sort of {} i32", "a.sort()", sorted,
      [](int64_t n) -> BenchOperands { return {below(1 << 30, {n}, DType::I32)}; }, sizes);
  add(
      "sort of {} i64", "a.sort()", sorted,
      [](int64_t n) -> BenchOperands { return {below(1 << 30, {n})}; }, sizes);
  add("sort of rows, 64 x {}", "a.sort()", sorted,
      [](int64_t n) -> BenchOperands { return {floats({64, n})}; }, {32, 1024, 16384});
  add(
      "argsort of rows, 64 x {}", "a.argsort()", [](In v) -> Out { return {v[0].argsort()}; },
      [](int64_t n) -> BenchOperands { return {floats({64, n})}; }, {32, 1024, 16384});
  const auto top = [](In v) -> Out {
    const auto [values, places] = v[0].topk(8);
    return {values, places};
  };
  add("topk 8 of rows, {} x 32000", "a.topk(8)", top,
      [](int64_t n) -> BenchOperands { return {floats({n, 32000})}; }, {1, 64});
  add(
      "kthvalue of rows, 64 x {}", "a.kthvalue(100)",
      [](In v) -> Out { return {kthvalue(v[0], 100, 1).values}; },
      [](int64_t n) -> BenchOperands { return {floats({64, n})}; }, {512, 16384});
  add(
      "median of {}", "a.median(0)", [](In v) -> Out { return {median(v[0], 0).values}; }, line,
      sizes);
  const auto classes = [](int64_t n) -> BenchOperands { return {below(1000, {n}, DType::I32)}; };
  add(
      "unique of {}", "a.unique()", [](In v) -> Out { return {unique(v[0]).values}; }, classes,
      sizes);
  add(
      "nonzero of {}", "(a > 0).nonzero()", [](In v) -> Out { return {nonzero(v[0] > 0)}; }, line,
      sizes);
  add(
      "masked_select of {}", "a.masked_select(a > 0)",
      [](In v) -> Out { return {masked_select(v[0], v[0] > 0)}; }, line, sizes);
  add(
      "bincount of {}", "a.bincount()", [](In v) -> Out { return {bincount(v[0])}; }, classes,
      sizes);
  add(
      "scatter_reduce of {} to 10000", "a.scatter_reduce(0, b, c, 'sum')",
      [](In v) -> Out { return {scatter_reduce(v[0], 0, v[1], v[2], ScatterReduce::Sum)}; },
      [](int64_t n) -> BenchOperands { return {floats({10000}), below(10000, {n}), floats({n})}; },
      sizes);
  add(
      "rows of an embedding, {} of 50000 x 256", "a[b]",
      [](In v) -> Out { return {v[0].index_select(0, v[1])}; },
      [](int64_t n) -> BenchOperands { return {floats({50000, 256}), below(50000, {n})}; },
      {32, 4096});
  add(
      "index_add of {} rows to 50000 x 64", "a.index_add(0, b, c)",
      [](In v) -> Out { return {index_add(v[0], 0, v[1], v[2])}; },
      [](int64_t n) -> BenchOperands {
        return {floats({50000, 64}), below(50000, {n}), floats({n, 64})};
      },
      {32, 4096});
  add(
      "searchsorted of {} in 65536", "torch.searchsorted(a, b)",
      [](In v) -> Out { return {searchsorted(v[0], v[1])}; },
      [](int64_t n) -> BenchOperands { return {positive({65536}), positive({n})}; }, sizes);
  const auto count = [](int64_t n) -> BenchOperands { return {below(2, {n}, DType::I32)}; };
  const auto random = [&](const char* name, const char* torch, BenchValues (*compute)(In)) {
    cases.push_back({"random", name, {1 << 10, 1 << 16, 1 << 22}, count, compute, torch});
  };
  random("rand of {}", "torch.rand(len(a))",
         [](In v) -> Out { return {Tensor::rand({v[0].numel()})}; });
  random("randn of {}", "torch.randn(len(a))",
         [](In v) -> Out { return {Tensor::randn({v[0].numel()})}; });
  random("randint of {}", "torch.randint(10, (len(a),))",
         [](In v) -> Out { return {Tensor::randint(0, 10, {v[0].numel()})}; });
  random("randperm of {}", "torch.randperm(len(a))",
         [](In v) -> Out { return {Tensor::randperm(v[0].numel())}; });
  cases.push_back({"random",
                   "multinomial, 64 of {} x 32000",
                   {1, 64},
                   [](int64_t n) -> BenchOperands { return {positive({n, 32000})}; },
                   [](In v) -> Out { return {multinomial(v[0], 64, true)}; },
                   "a.multinomial(64, replacement=True)"});
}

void add_linear_algebra(std::vector<BenchCase>& cases) {
  using In = const BenchValues&;
  using Out = BenchValues;
  const auto add = [&](const char* name, const char* torch, const char* numpy,
                       BenchValues (*compute)(In), BenchOperand (*operand)(Dims64), Dims64 of) {
    cases.push_back({"linear algebra", std::string(name) + " of {0} x {0}", std::move(of),
                     [operand](int64_t n) -> BenchOperands { return {operand({n, n})}; }, compute,
                     torch, numpy});
  };
  const Dims64 small = {8, 64, 256};
  add("cholesky", "torch.linalg.cholesky(a)", "np.linalg.cholesky(a)",
      [](In v) -> Out { return {linalg::cholesky(v[0])}; }, definite, {8, 64, 512});
  add("inverse", "torch.linalg.inv(a)", "np.linalg.inv(a)",
      [](In v) -> Out { return {linalg::inv(v[0])}; }, definite, {8, 64, 512});
  add("solve", "torch.linalg.solve(a, a)", "np.linalg.solve(a, a)",
      [](In v) -> Out { return {linalg::solve(v[0], v[0])}; }, definite, {8, 64, 512});
  add(
      "determinant", "torch.linalg.det(a)", "np.linalg.det(a)",
      [](In v) -> Out { return {linalg::det(v[0])}; }, definite, small);
  add(
      "qr", "torch.linalg.qr(a)", "np.linalg.qr(a)",
      [](In v) -> Out {
        const auto [q, r] = linalg::qr(v[0]);
        return {q, r};
      },
      floats, small);
  add(
      "eigh", "torch.linalg.eigh(a)", "np.linalg.eigh(a)",
      [](In v) -> Out {
        const auto [values, vectors] = linalg::eigh(v[0]);
        return {values, vectors};
      },
      definite, small);
  add(
      "svd", "torch.linalg.svd(a)", "np.linalg.svd(a)",
      [](In v) -> Out {
        const linalg::SVD parts = linalg::svd(v[0]);
        return {parts.u, parts.s, parts.vt};
      },
      floats, small);
  add(
      "lu", "torch.linalg.lu_factor(a)", "",
      [](In v) -> Out {
        const linalg::LU f = linalg::lu(v[0]);
        return {f.packed, f.rows};
      },
      floats, small);
  add(
      "triangular solve", "torch.linalg.solve_triangular(a, a, upper=True)", "",
      [](In v) -> Out { return {linalg::triangular_solve(v[0], v[0], true)}; }, definite, small);
  add(
      "least squares", "torch.linalg.lstsq(a, a).solution", "np.linalg.lstsq(a, a)",
      [](In v) -> Out { return {linalg::lstsq(v[0], v[0])}; }, definite, small);
  add("eig", "torch.linalg.eig(a)", "np.linalg.eig(a)",
      [](In v) -> Out {
        const auto [values, vectors] = linalg::eig(v[0]);
        return {values, vectors};
      },
      floats, {8, 64});
  cases.push_back({"linear algebra",
                   "irfft of 64 x {}",
                   {512, 1000, 4096},
                   [](int64_t n) -> BenchOperands { return {floats({64, n / 2 + 1, 2})}; },
                   [](In v) -> Out { return {fft::irfft(v[0])}; },
                   "torch.fft.irfft(torch.view_as_complex(a))",
                   "np.fft.irfft(a.view(np.complex64)[..., 0])"});
  cases.push_back({"linear algebra",
                   "rfft of 64 x {}",
                   {512, 1000, 4096},
                   [](int64_t n) -> BenchOperands { return {floats({64, n})}; },
                   [](In v) -> Out { return {fft::rfft(v[0])}; },
                   "torch.fft.rfft(a)",
                   "np.fft.rfft(a)"});
  const auto complex = [](int64_t n) -> BenchOperands { return {floats({64, n, 2})}; };
  cases.push_back({"linear algebra",
                   "fft of 64 x {}",
                   {64, 1000, 1024, 1009},
                   complex,
                   [](In v) -> Out { return {fft::fft(v[0])}; },
                   "torch.fft.fft(torch.view_as_complex(a))",
                   "np.fft.fft(a.view(np.complex64)[..., 0])"});
  cases.push_back({"linear algebra",
                   "fft2 of 4 x {0} x {0}",
                   {30, 128, 500},
                   [](int64_t n) -> BenchOperands { return {floats({4, n, n, 2})}; },
                   [](In v) -> Out { return {fft::fftn(v[0], {1, 2})}; },
                   "torch.fft.fft2(torch.view_as_complex(a))",
                   "np.fft.fft2(a.view(np.complex64)[..., 0])"});
}

}  // namespace weft
