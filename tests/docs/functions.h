// The functions that a program can call, by what they do, and the header that declares each; what
// is not there yet, and why. tests/docs/functions_support.cpp makes a part of docs/ops.md of it,
// and fails where a header does not declare what is listed.
#pragma once

#include <string>
#include <string_view>

namespace weft {

struct FunctionRow {
  const char* names;   // separated by spaces; "name=other": declared under another name or spelling
  const char* header;  // in weft/tensor/, or a file of Python's; null: not there
  const char* note;    // what is special, or why it is not there
};

inline bool is_of_python(const FunctionRow& row) {
  return row.header && std::string_view(row.header).starts_with("../python/");
}

struct FunctionFamily {
  const char* title;
  std::initializer_list<FunctionRow> rows;
};

inline const FunctionFamily kFunctionFamilies[] = {
    {"Creation",
     {{"from of from_bytes empty full zeros ones full_like zeros_like ones_like arange linspace "
       "eye "
       "tril triu one_hot",
       "tensor.h", ""},
      {"const=full const_like=full_like empty_like=zeros_like", "tensor.h",
       "the same, by other names"},
      {"rand randn randint uniform normal kaiming_uniform kaiming_normal glorot_uniform randperm "
       "dropout manual_seed threefry2x32",
       "tensor.h", ""},
      {"rand_like randn_like randint_like random_bits scaled_uniform bernoulli multinomial "
       "exponential "
       "gumbel log_normal laplace cauchy gamma beta dirichlet student_t gumbel_softmax",
       "distributions.h", ""},
      {"random_key split_key fold_in keyed_bits keyed_uniform", "random_keys.h",
       "of a key, without a state: JAX's bits"},
      {"invalids", "../python/weft/tensor.py",
       "zeros, as empty()'s contents are: there is no poison constant"},
      {"from_blob=borrowed_tensor", "../io/host_memory.h", "memory of others, kept by its owner"},
      {"from_url", "../python/weft/tensor.py", "in C++ fetching is left to the program"}}},
    {"Movement",
     {{"reshape expand permute transpose T flip shrink pad squeeze unsqueeze flatten unflatten "
       "split "
       "chunk stack cat repeat repeat_interleave roll diagonal unfold window",
       "tensor.h", ""},
      {"size numel ndim shape dims dim", "tensor.h", ""},
      {"view=reshape tile=repeat max_shape=dims", "tensor.h", "the same, by other names"},
      {"pad_modes=pad pads_from_last pad_to shrink_to", "movement.h",
       "reflect, replicate, circular and constant padding"},
      {"meshgrid diag movedim broadcast_tensors unbind tensor_split rot90 diag_embed block_diag "
       "vander",
       "movement.h", ""},
      {"rearrange", "einsum.h", ""},
      {"nbytes element_size", "../python/values.cpp",
       "in C++ bytes_for() and bits() of the dtype (weft/dtype/dtype.h)"}}},
    {"Indexing and selection",
     {{"operator[] index index_put gather scatter index_select assign", "tensor.h",
       "numbers, slices of any step, new axes, index tensors, bool masks"},
      {"masked_select nonzero unique searchsorted take put take_along_axis put_along_axis "
       "index_add index_copy index_fill masked_scatter isin scatter_reduce",
       "selection.h", ""}}},
    {"Elementwise, besides the table below",
     {{"+=operator+ -=operator- *=operator* /=operator/ %=operator% <<=operator<< >>=operator>> "
       "&=operator& |=operator| ^=operator^ ~=operator~",
       "tensor.h", "comparisons too"},
      {"floor_div pow where trunc cast bitcast clamp clamp_min clamp_max", "tensor.h", ""},
      {"sqrt exp2 log2 sin cos tan maximum minimum", "../graph/ops.def", "ops of the IR"},
      {"detach contiguous", "tensor.h", ""},
      {"alu", nullptr, "operators and methods build the same nodes"},
      {"contiguous_backward", "transforms.h", ""}}},
    {"Functions of functions",
     {{"vmap vjp jvp value_and_grad jacobian hessian scan while_loop checkpoint "
       "accumulate_gradients "
       "with_gradient traced",
       "transforms.h", "[how they work](transforms.md)"},
      {"custom_kernel", "custom_kernel.h", "a kernel of the user's own"}}},
    {"Reductions, running folds, sorting",
     {{"sum prod max min mean var std any all argmax argmin logsumexp softmax log_softmax cumsum "
       "cumprod sort argsort topk",
       "tensor.h", "sum and prod in a given dtype too"},
      {"var_mean std_mean softmin normalize vector_norm allclose cummax cummin logcumsumexp",
       "reductions.h", "cummax and cummin with positions"},
      {"nansum nanmean count_nonzero median nanmedian kthvalue mode quantile nanquantile bincount "
       "histc cov corrcoef diff trapezoid",
       "statistics.h", ""}}},
    {"Products, convolutions, pools, images",
     {{"matmul dot linear conv2d conv_transpose2d max_pool2d avg_pool2d layernorm batchnorm "
       "scaled_dot_product_attention",
       "tensor.h", "any number of spatial axes; asymmetric and negative padding"},
      {"einsum", "einsum.h", ""},
      {"outer inner tensordot kron cross cdist dist", "products.h", ""},
      {"max_pool2d_with_positions max_unpool2d adaptive_avg_pool adaptive_max_pool lp_pool2d",
       "pooling.h", ""},
      {"interpolate grid_sample unfold fold pixel_shuffle pixel_unshuffle channel_shuffle "
       "affine_grid center_crop random_crop random_flip cutmix",
       "image.h", ""},
      {"image_dot image_conv2d", "../python/weft/tensor.py",
       "dot() and conv2d(): no image memory, the layouts of buffers do this"}}},
    {"Losses",
     {{"mse_loss binary_crossentropy binary_crossentropy_logits sparse_categorical_crossentropy "
       "cross_entropy nll_loss",
       "tensor.h", "the short forms"},
      {"l1_loss huber_loss smooth_l1_loss kl_div soft_margin_loss hinge_loss gaussian_nll_loss "
       "poisson_nll_loss cosine_similarity cosine_embedding_loss triplet_margin_loss "
       "binary_crossentropy binary_crossentropy_logits cross_entropy nll_loss",
       "losses.h", "with weights, ignored classes, smoothing"}}},
    {"Linear algebra",
     {{"lu solve inv det slogdet triangular_solve cholesky qr lstsq eigh svd pinv matrix_power "
       "trace "
       "newton_schulz",
       "linalg.h", ""},
      {"eig", "linalg.h", "real and imaginary parts in a trailing axis"}}},
    {"Fourier transforms",
     {{"fft ifft rfft irfft fftn ifftn fftshift ifftshift fftfreq rfftfreq hann_window "
       "hamming_window stft istft",
       "fft.h", "complex numbers are a last axis of 2"}}},
    {"Hashes",
     {{"keccak sha256 content_hash", "hash.h", ""},
      {"hash=content_hash", "hash.h", "the same, by its other name"},
      {"decode_hevc_frame", nullptr, "needs a hardware decoder"}}},
    {"Gradients and values",
     {{"requires_grad_ grad zero_grad backward gradient realize to_vector item copy_from copy_to",
       "tensor.h", ""}}},
};

/// The tables of functions for docs/ops.md.
std::string function_tables();

}  // namespace weft
