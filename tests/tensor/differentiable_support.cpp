#include "tests/tensor/differentiable.h"

#include "weft/tensor/einsum.h"
#include "weft/tensor/fft.h"
#include "weft/tensor/image.h"
#include "weft/tensor/linalg.h"
#include "weft/tensor/losses.h"
#include "weft/tensor/movement.h"
#include "weft/tensor/pooling.h"
#include "weft/tensor/products.h"
#include "weft/tensor/reductions.h"
#include "weft/tensor/selection.h"
#include "weft/tensor/statistics.h"

namespace weft {

using In = const std::vector<Tensor>&;

std::vector<Tensor> Differentiable::inputs(DType dtype) const {
  std::vector<Tensor> made;
  for (const Dims& shape : shapes)
    made.push_back(sample(shape, static_cast<int>(made.size()) + 1).cast(dtype));
  return made;
}

const std::vector<Differentiable>& differentiable() {
  static const std::vector<Differentiable> kCases = {
      {"add broadcast", {{2, 3}, {3}}, [](In x) { return x[0] + x[1]; }},
      {"sub scalar", {{2, 3}, {}}, [](In x) { return x[0] - x[1]; }},
      {"mul broadcast", {{2, 1}, {1, 3}}, [](In x) { return x[0] * x[1]; }},
      {"mul scalar", {{}, {4}}, [](In x) { return x[0] * x[1]; }},
      {"div", {{2, 3}, {2, 1}}, [](In x) { return x[0] / x[1]; }},
      {"square", {{3}}, [](In x) { return x[0] * x[0]; }},
      {"sqrt exp2 log2", {{3}}, [](In x) { return ((x[0] * x[0]).sqrt().exp2() + 1).log2(); }},
      {"maximum minimum", {{4}, {4}}, [](In x) { return x[0].maximum(x[1]) + x[0].minimum(0.1); }},
      {"where", {{4}, {4}}, [](In x) { return (x[0] > x[1]).where(x[0] * 2, x[1] * 3); }},
      {"pow tensor", {{3}, {3}}, [](In x) { return x[0].abs().pow(x[1]); }},
      {"reshape permute", {{2, 3}}, [](In x) { return x[0].T().reshape({6}) * Tensor::arange(6); }},
      {"expand", {{2, 1}}, [](In x) { return x[0].expand({2, 3}); }},
      {"pad", {{2, 2}}, [](In x) { return x[0].pad({{1, 2}, {-1, 1}}, 3); }},
      {"shrink step", {{7}}, [](In x) { return x[0][{Slice(1, 7, 2)}]; }},
      {"slice back", {{7}}, [](In x) { return x[0][{Slice(5, 0, -3)}]; }},
      {"flip", {{2, 3}}, [](In x) { return x[0].flip(1); }},
      {"cat stack", {{2}, {3}}, [](In x) { return Tensor::cat({x[0], x[1], x[0]}); }},
      {"window", {{8}}, [](In x) { return x[0].window(0, 3, 2); }},
      {"window dilated", {{2, 8}}, [](In x) { return x[0].window(1, 2, 1, 3); }},
      {"roll repeat", {{3}}, [](In x) { return x[0].roll(1, 0).repeat({2}); }},
      {"gather", {{3, 2}}, [](In x) { return x[0].gather(0, Tensor::of({{-1, 1}, {-1, 4}}) + 1); }},
      {"index", {{3, 2}}, [](In x) { return x[0][Tensor::of({2, 0, 2})]; }},
      {"scatter set",
       {{4}, {3}},
       [](In x) { return x[0].scatter(0, Tensor::of({1, 3, 1}), x[1]); }},
      {"scatter add",
       {{4}, {3}},
       [](In x) { return x[0].scatter(0, Tensor::of({1, 3, 1}), x[1], Fold::Add); }},
      {"scatter mul",
       {{4}, {3}},
       [](In x) { return x[0].scatter(0, Tensor::of({1, 3, 1}), x[1], Fold::Mul); }},
      {"scatter max",
       {{4}, {3}},
       [](In x) { return x[0].scatter(0, Tensor::of({1, 3, 1}), x[1], Fold::Max); }},
      {"assign",
       {{3, 3}, {3}},
       [](In x) {
         Tensor y = x[0] * 1;
         y[{Slice(), 1}].assign(x[1]);
         y[0] *= 2;
         return y;
       }},
      {"masked_select", {{2, 3}}, [](In x) { return masked_select(x[0], x[0] > 0, 4, 2); }},
      {"mask write",
       {{2, 3}, {3}},
       [](In x) {
         Tensor y = x[0] * 1;
         y.index_put({Tensor::of({false, true})}, x[1]);
         return y;
       }},
      {"take put",
       {{2, 3}, {2}},
       [](In x) {
         const Tensor at = Tensor::of({4, 1});
         return put(x[0], at, x[1]) + take(x[0], at).sum();
       }},
      {"scatter_reduce",
       {{4}, {3}},
       [](In x) {
         const Tensor at = Tensor::of({1, 3, 1});
         return scatter_reduce(x[0], 0, at, x[1], ScatterReduce::Mean, false) +
                scatter_reduce(x[0], 0, at, x[1], ScatterReduce::Amax) +
                scatter_reduce(x[0], 0, at, x[1], ScatterReduce::Prod, false);
       }},
      {"pad modes",
       {{3, 2}},
       [](In x) {
         return pad(x[0], {{2, 1}, {1, 0}}, PadMode::Reflect) +
                pad(x[0], {{1, 2}, {1, 0}}, PadMode::Replicate) *
                    pad(x[0], {{3, 0}, {0, 1}}, PadMode::Circular);
       }},
      {"diagonal diag", {{3, 4}}, [](In x) { return diag(x[0].diagonal(1), -1); }},
      {"einsum",
       {{2, 3}, {3, 2}, {2}},
       [](In x) { return einsum("ij,jk,k->ik", x) + einsum("ij,ji->", {x[0], x[1]}); }},
      {"rearrange",
       {{2, 4}},
       [](In x) { return rearrange(x[0], "a (b c) -> b (c a)", {{"b", 2}}); }},
      {"sum mean", {{2, 3}}, [](In x) { return x[0].sum(0) * x[0].mean(0); }},
      {"max min", {{2, 3}}, [](In x) { return x[0].max(1) + x[0].min(1); }},
      {"prod", {{2, 3, 2}}, [](In x) { return x[0].prod({0, 2}); }},
      {"var std", {{3, 4}}, [](In x) { return x[0].var(1) + x[0].std(1); }},
      {"softmax", {{2, 3}}, [](In x) { return x[0].softmax(); }},
      {"log_softmax", {{2, 3}}, [](In x) { return x[0].log_softmax(0); }},
      {"logsumexp", {{2, 3}}, [](In x) { return x[0].logsumexp(1); }},
      {"cumsum", {{2, 4}}, [](In x) { return x[0].cumsum(1); }},
      {"cumprod", {{2, 4}}, [](In x) { return x[0].cumprod(1); }},
      {"cummax cummin", {{2, 4}}, [](In x) { return x[0].cummax(1) * x[0].cummin(1); }},
      {"cummax position", {{2, 4}}, [](In x) { return cummax(x[0], 1).values; }},
      {"logcumsumexp", {{2, 4}}, [](In x) { return logcumsumexp(x[0] * 3, 1); }},
      {"norms",
       {{2, 3}},
       [](In x) { return normalize(x[0], 3) + softmin(x[0]) + vector_norm(x[0], 1, 1, true); }},
      {"rounded div lerp",
       {{3}, {3}},
       [](In x) { return x[0].div(x[1]) + x[0].lerp(x[1], 0.3) + x[0].copysign(x[1]); }},
      {"logaddexp", {{3}, {3}}, [](In x) { return x[0].logaddexp(x[1]); }},
      {"order statistics",
       {{2, 5}},
       [](In x) {
         return median(x[0]).values + nanmedian(x[0]).values + kthvalue(x[0], 2).values +
                mode(x[0]).values + quantile(x[0], Tensor(0.3)) + nanmean(x[0], 1);
       }},
      {"covariances", {{3, 4}}, [](In x) { return cov(x[0]) + corrcoef(x[0]); }},
      {"diff trapezoid", {{3, 4}}, [](In x) { return diff(x[0], 2) + trapezoid(x[0], 2, 0)[0]; }},
      {"weighted bincount",
       {{3}},
       [](In x) { return bincount(Tensor::of({1, 0, 1}), x[0], 0, 2); }},
      {"two operands",
       {{4}, {4}},
       [](In x) {
         return x[0].hypot(x[1]) + x[0].atan2(x[1]) + x[0].logaddexp2(x[1]) + x[0].fmax(x[1]) +
                x[0].xlogy(x[1].abs() + 0.1) + x[0].addcmul(x[1], x[0], 2) + x[0].fmin(0.1);
       }},
      {"sort", {{2, 5}}, [](In x) { return x[0].sort().first; }},
      {"topk", {{6}}, [](In x) { return x[0].topk(3).first; }},
      {"products",
       {{2, 3}, {3, 2}},
       [](In x) {
         return outer(x[0], x[1]).sum() + inner(x[0], x[1].T()) + tensordot(x[0], x[1], 1) +
                kron(x[0], x[1]).sum() + cross(x[0], x[1].T()).sum();
       }},
      {"distances",
       {{3, 2}, {2, 2}},
       [](In x) { return cdist(x[0], x[1]) + dist(x[0][0], x[1][0]); }},
      {"diagonals and turns",
       {{3}, {2, 3}},
       [](In x) {
         return diag_embed(x[0], 1).sum() + vander(x[0], 3).sum() + rot90(x[1], 3) +
                block_diag({x[0], x[1]}).square().sum();
       }},
      {"writes at positions",
       {{3, 2}, {2, 2}},
       [](In x) {
         const Tensor at = Tensor::of({2, 0});
         return index_add(x[0], 0, at, x[1]) * index_copy(x[0], 0, at, x[1]) +
                index_fill(x[0], 1, Tensor::of({1}), 2) +
                masked_scatter(x[0], x[0] > 0, Tensor::cat({x[1], x[1]}));
       }},
      {"pixels",
       {{1, 4, 2, 3}},
       [](In x) { return pixel_unshuffle(pixel_shuffle(x[0], 2).square(), 2); }},
      {"matmul", {{2, 3}, {3, 2}}, [](In x) { return x[0].matmul(x[1]); }},
      {"matmul batched", {{2, 1, 2, 3}, {2, 3, 1}}, [](In x) { return x[0].matmul(x[1]); }},
      {"matmul vector", {{2, 3}, {3}}, [](In x) { return x[0].matmul(x[1]); }},
      {"solve det",
       {{3, 3}, {3, 2}},
       [](In x) { return linalg::solve(x[0], x[1]).sum() * linalg::det(x[0]); }},
      {"cholesky",
       {{3, 3}},
       [](In x) {
         const Tensor a = x[0].matmul(x[0].T()) + Tensor::eye(3, x[0].dtype());
         return linalg::cholesky(a) + linalg::slogdet(a).second;
       }},
      {"cholesky as it is read",
       {{2, 2}},
       [](In x) { return linalg::cholesky(x[0] * 0.1 + Tensor::eye(2, x[0].dtype())); }},
      {"qr", {{3, 2}}, [](In x) { return linalg::qr(x[0]).first.matmul(x[0].T()); }},
      {"eigh",
       {{2, 2}},
       [](In x) {
         const auto [l, v] = linalg::eigh(x[0]);
         return l + v * v;
       }},
      {"svd",
       {{2, 2}},
       [](In x) {
         const linalg::SVD f = linalg::svd(x[0]);
         return f.s + f.u * f.u * 2;
       }},
      {"fft",
       {{6, 2}, {35}},
       [](In x) {
         return fft::fft(x[0]).sum() + fft::irfft(fft::rfft(x[1]).square(), 35) +
                fft::fft(x[0].reshape({3, 2, 2}), 37, 0).sum();
       }},
      {"stft", {{16}}, [](In x) { return fft::stft(x[0], 8).square().sum({0, 2}); }},
      {"conv2d",
       {{1, 2, 4, 4}, {2, 2, 3, 3}, {2}},
       [](In x) { return x[0].conv2d(x[1], x[2], {.padding = 1}); }},
      {"conv2d stride",
       {{1, 2, 5, 5}, {2, 1, 2, 2}},
       [](In x) { return x[0].conv2d(x[1], {}, {.groups = 2, .stride = 2, .dilation = 2}); }},
      {"conv_transpose2d",
       {{1, 2, 3}, {2, 1, 3}},
       [](In x) { return x[0].conv_transpose2d(x[1], {}, {.stride = 2, .padding = 1}); }},
      {"max_pool2d", {{1, 1, 4, 5}}, [](In x) { return x[0].max_pool2d(); }},
      {"max_pool2d overlap",
       {{1, 1, 4, 5}},
       [](In x) { return x[0].max_pool2d({3, 3}, {.stride = 1, .padding = 1}); }},
      {"avg_pool2d", {{1, 1, 5, 4}}, [](In x) { return x[0].avg_pool2d({2, 2}, {.stride = 1}); }},
      {"max_pool2d positions",
       {{1, 1, 4, 5}},
       [](In x) { return max_pool2d_with_positions(x[0], {2, 3}, {.stride = 1}).values; }},
      {"max_unpool2d",
       {{1, 1, 2, 2}},
       [](In x) { return max_unpool2d(x[0], Tensor::of({0, 3, 9, 14}).reshape({1, 1, 2, 2})); }},
      {"adaptive pools",
       {{1, 1, 5, 3}},
       [](In x) { return adaptive_avg_pool(x[0], {3, 2}) + adaptive_max_pool(x[0], {3, 2}); }},
      {"interpolate",
       {{1, 1, 3, 4}},
       [](In x) {
         return interpolate(x[0], {5, 3}, Resize::Linear) +
                interpolate(x[0], {5, 3}, Resize::Cubic, true) + interpolate(x[0], {5, 3});
       }},
      {"grid_sample",
       {{1, 2, 3, 3}, {1, 2, 2, 2}},
       [](In x) {
         return grid_sample(x[0], x[1]) +
                grid_sample(x[0], x[1] * 1.9, false, Outside::Reflection, true);
       }},
      {"fold unfold",
       {{1, 2, 3, 3}},
       [](In x) {
         return fold(unfold(x[0], {2, 2}, {.padding = 1}).square(), {3, 3}, {2, 2}, {.padding = 1});
       }},
      {"weighted losses",
       {{3, 4}, {3, 4}},
       [](In x) {
         const ClassLossOptions o{.weight = Tensor::of({1.0f, 2.0f, 0.5f, 3.0f}).cast(x[0].dtype()),
                                  .label_smoothing = 0.1};
         const Tensor bce = binary_crossentropy_logits(
             x[0], x[1].sigmoid(), {.pos_weight = Tensor(2.0).cast(x[0].dtype())});
         return cross_entropy(x[0], Tensor::of({1, 3, -100}), o) +
                cross_entropy(x[0], x[1].softmax(1), o) + bce;
       }},
      {"losses of numbers",
       {{3, 4}, {3, 4}},
       [](In x) {
         return huber_loss(x[0], x[1], 0.4) + l1_loss(x[0], x[1]) + smooth_l1_loss(x[0], x[1]) +
                kl_div(x[0], x[1].softmax(1)) + soft_margin_loss(x[0], x[1]) +
                hinge_loss(x[0], x[1]) + poisson_nll_loss(x[0], x[1]);
       }},
      {"losses of distances",
       {{2, 3}, {2, 3}, {2, 3}},
       [](In x) {
         const Tensor sides = Tensor::of({1, -1});
         return cosine_embedding_loss(x[0], x[1], sides, -2) +
                triplet_margin_loss(x[0], x[1], x[2], 3) +
                gaussian_nll_loss(x[0], x[1], x[2].square() + 0.1, true);
       }},
      {"layernorm", {{2, 4}}, [](In x) { return x[0].layernorm(); }},
      {"batchnorm",
       {{2, 2, 2}, {2}, {2}},
       [](In x) {
         const Tensor mean = x[0].mean({0, 2}), var = x[0].var({0, 2}, false, 0);
         return x[0].batchnorm(x[1], x[2], mean, (var + 1e-3).rsqrt());
       }},
      {"attention",
       {{1, 2, 4}, {1, 2, 4}, {1, 2, 4}},
       [](In x) { return x[0].scaled_dot_product_attention(x[1], x[2], {.causal = true}); }},
      {"cross_entropy",
       {{3, 4}},
       [](In x) { return x[0].cross_entropy(Tensor::of({1, 3, -100}), 0.1); }},
      {"contiguous", {{3}}, [](In x) { return x[0].exp().contiguous() * 2; }},
      {"second order",
       {{3}},
       [](In x) { return (x[0] * x[0] * x[0].sin()).sum().gradient({x[0]})[0]; }},
      {"second order conv",
       {{1, 1, 4}, {1, 1, 2}},
       [](In x) { return x[0].conv2d(x[1]).square().sum().gradient({x[0]})[0]; }},
      {"second order prod", {{4}}, [](In x) { return x[0].prod().gradient({x[0]})[0]; }},
      {"second order unwindow",
       {{6}},
       [](In x) { return (x[0].window(0, 3).square()).sum().gradient({x[0]})[0].pow(2); }},
      {"second order cumprod",
       {{4}},
       [](In x) { return x[0].cumprod(0).square().sum().gradient({x[0]})[0]; }},
  };
  return kCases;
}

}  // namespace weft
