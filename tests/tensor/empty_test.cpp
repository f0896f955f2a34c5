// Every family on tensors without elements and on single numbers: shapes follow, nothing is read.
#include "tests/tensor/tensor_test.h"
#include "weft/tensor/distributions.h"
#include "weft/tensor/einsum.h"
#include "weft/tensor/fft.h"
#include "weft/tensor/hash.h"
#include "weft/tensor/image.h"
#include "weft/tensor/linalg.h"
#include "weft/tensor/losses.h"
#include "weft/tensor/movement.h"
#include "weft/tensor/pooling.h"
#include "weft/tensor/reductions.h"
#include "weft/tensor/selection.h"

namespace weft {
namespace {

struct Case {
  const char* name;
  Tensor (*make)();
  const char* shape;
};

Tensor f(const Dims& shape) { return Tensor::zeros(shape); }
Tensor i(const Dims& shape) { return Tensor::zeros(shape, DType::I32); }
Tensor b(const Dims& shape) { return Tensor::zeros(shape, DType::Bool); }

const Case kCases[] = {
    {"elementwise", [] { return f({0, 2}).erf().asinh().expm1().abs(); }, "(0, 2)"},
    {"elementwise scalar", [] { return f({}).erf().asinh().expm1().abs(); }, "()"},
    {"copysign", [] { return f({0}).copysign(f({})); }, "(0,)"},
    {"norm", [] { return normalize(f({0, 3})) + vector_norm(f({3, 0}), 2, 0).sum(); }, "(0, 3)"},
    {"norm of nothing", [] { return vector_norm(f({3, 0}), 2, 1); }, "(3,)"},
    {"cummax", [] { return cummax(f({2, 0}), 1).positions; }, "(2, 0)"},
    {"logcumsumexp", [] { return logcumsumexp(f({0, 4}), 1); }, "(0, 4)"},
    {"sort", [] { return f({2, 0}).sort(1).first; }, "(2, 0)"},
    {"long sort", [] { return f({0, 600}).sort(1).first; }, "(0, 600)"},
    {"topk", [] { return f({2, 0}).topk(0, 1).first; }, "(2, 0)"},
    {"mask", [] { return f({0, 3})[b({0})]; }, "(0, 3)"},
    {"mask write", [] { return f({0, 3}).contiguous().index_put({b({0})}, 1); }, "(0, 3)"},
    {"masked_select", [] { return masked_select(f({0}), b({0}), 2); }, "(2,)"},
    {"nonzero", [] { return nonzero(f({0, 2}), 3); }, "(3, 2)"},
    {"unique", [] { return unique(f({0, 2}), 2).inverse; }, "(0, 2)"},
    {"searchsorted", [] { return searchsorted(f({0}), f({2, 0})); }, "(2, 0)"},
    {"take", [] { return take(f({3}), i({0, 2})); }, "(0, 2)"},
    {"take of nothing", [] { return take(f({0}), i({0})); }, "(0,)"},
    {"put", [] { return put(f({2}), i({0}), f({0})); }, "(2,)"},
    {"scatter_reduce",
     [] { return scatter_reduce(f({2, 0}), 0, i({1, 0}), f({1, 0}), ScatterReduce::Mean); },
     "(2, 0)"},
    {"pad", [] { return pad(f({0, 3}), {{0, 0}, {1, 1}}, PadMode::Reflect); }, "(0, 5)"},
    {"meshgrid", [] { return meshgrid({f({0}), f({2})})[0]; }, "(0, 2)"},
    {"diag", [] { return diag(f({0}), 2); }, "(2, 2)"},
    {"diagonal", [] { return f({0, 3, 3}).diagonal(0, 1, 2); }, "(0, 3)"},
    {"diagonal empty", [] { return f({3, 0}).diagonal(); }, "(0,)"},
    {"roll", [] { return f({0, 2}).roll({1, 1}, {0, 1}); }, "(0, 2)"},
    {"einsum", [] { return einsum("bij,bjk->bik", {f({0, 2, 3}), f({0, 3, 4})}); }, "(0, 2, 4)"},
    {"einsum scalars", [] { return einsum(",->", {f({}), f({})}); }, "()"},
    {"rearrange", [] { return rearrange(f({}), "-> 1 1"); }, "(1, 1)"},
    {"pool positions", [] { return max_pool2d_with_positions(f({0, 1, 4, 4})).positions; },
     "(0, 1, 2, 2)"},
    {"adaptive", [] { return adaptive_avg_pool(f({0, 2, 5}), {2}); }, "(0, 2, 2)"},
    {"interpolate", [] { return interpolate(f({0, 1, 3}), {5}, Resize::Cubic); }, "(0, 1, 5)"},
    {"grid_sample", [] { return grid_sample(f({1, 1, 2, 2}), f({1, 0, 3, 2})); }, "(1, 1, 0, 3)"},
    {"fold", [] { return fold(unfold(f({0, 1, 3, 3}), {2, 2}), {3, 3}, {2, 2}); }, "(0, 1, 3, 3)"},
    {"random_crop", [] { return random_crop(f({0, 1, 3, 3}), 2, 2); }, "(0, 1, 2, 2)"},
    {"losses", [] { return huber_loss(f({0}), f({0}), 1, Reduction::None); }, "(0,)"},
    {"class losses",
     [] {
       return cross_entropy(f({0, 3}), i({0}), {.weight = f({3}), .reduction = Reduction::None});
     },
     "(0,)"},
    {"cosine", [] { return cosine_similarity(f({0, 3}), f({3})); }, "(0,)"},
    {"solve", [] { return linalg::solve(f({0, 3, 3}), f({0, 3, 1})); }, "(0, 3, 1)"},
    {"inv", [] { return linalg::inv(f({0, 0})); }, "(0, 0)"},
    {"cholesky", [] { return linalg::cholesky(f({0, 2, 2})); }, "(0, 2, 2)"},
    {"qr", [] { return linalg::qr(f({0, 3, 2})).first; }, "(0, 3, 2)"},
    {"qr empty", [] { return linalg::qr(f({3, 0})).first; }, "(3, 0)"},
    {"eigh", [] { return linalg::eigh(f({0, 2, 2})).first; }, "(0, 2)"},
    {"svd", [] { return linalg::svd(f({0, 2, 2})).s; }, "(0, 2)"},
    {"fft", [] { return fft::fft(f({0, 4, 2})); }, "(0, 4, 2)"},
    {"irfft", [] { return fft::irfft(f({0, 3, 2})); }, "(0, 4)"},
    {"stft", [] { return fft::stft(f({0, 16}), 8); }, "(0, 5, 9, 2)"},
    {"keccak", [] { return keccak(Tensor::zeros({0, 5}, DType::U8)); }, "(0, 32)"},
    {"sha256", [] { return sha256(Tensor::zeros({2, 0}, DType::U8)); }, "(2, 32)"},
    {"content_hash", [] { return content_hash(f({0})); }, "(16,)"},
    {"multinomial", [] { return multinomial(f({0, 3}), 2, true); }, "(0, 2)"},
    {"gamma", [] { return gamma(f({0})); }, "(0,)"},
};

class Empty : public TensorTest {};

TEST_F(Empty, ShapesFollow) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    try {
      const Tensor x = c.make();
      EXPECT_EQ(x.dims().text(), c.shape);
      x.realize();
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

}  // namespace
}  // namespace weft
