// Random tensors besides Tensor's own: the same generator, the same promises (random.h). Parameters
// are tensors or numbers where it says so; samples have no gradients, except in where they are
// scaled and shifted.
#pragma once

#include "weft/tensor/tensor.h"

namespace weft {

/// x's shape and dtype (floats; integers in [low, high)).
Tensor rand_like(const Tensor& x, CallSite = CallSite::here());
Tensor randn_like(const Tensor& x, CallSite = CallSite::here());
Tensor randint_like(const Tensor& x, int64_t low, int64_t high, CallSite = CallSite::here());
/// 32 random bits for each element, u32.
Tensor random_bits(const Dims& shape, CallSite = CallSite::here());
/// uniform(-1, 1) / sqrt(elements).
Tensor scaled_uniform(const Dims& shape, CallSite = CallSite::here());

/// 1 with probability p, else 0, in p's shape and dtype.
Tensor bernoulli(const Tensor& p, CallSite = CallSite::here());
/// i32 (samples) or (rows, samples): class numbers, of weights (classes) or (rows, classes) of any
/// sum; what is not above 0 is never drawn. With replacement by the running sum and binary search,
/// without by the largest keys (Efraimidis and Spirakis 2006).
Tensor multinomial(const Tensor& weights, int64_t samples = 1, bool replacement = false,
                   CallSite = CallSite::here());
/// -log(1 - u) / rate; the largest of many exponentials, mean 0.577; e^normal(mean, std); two
/// exponentials back to back; the tangent of a random angle.
Tensor exponential(const Dims& shape, double rate = 1, DType dtype = kDefaultFloat,
                   CallSite = CallSite::here());
Tensor gumbel(const Dims& shape, double location = 0, double scale = 1, DType dtype = kDefaultFloat,
              CallSite = CallSite::here());
Tensor log_normal(const Dims& shape, double mean = 0, double std = 1, DType dtype = kDefaultFloat,
                  CallSite = CallSite::here());
Tensor laplace(const Dims& shape, double location = 0, double scale = 1,
               DType dtype = kDefaultFloat, CallSite = CallSite::here());
Tensor cauchy(const Dims& shape, double location = 0, double scale = 1, DType dtype = kDefaultFloat,
              CallSite = CallSite::here());
/// Of the shape of alpha, which is above 0: Marsaglia and Tsang's method (2000) with 8 tries, of
/// which all fail once in 10^10; divided by rate.
Tensor gamma(const Tensor& alpha, double rate = 1, CallSite = CallSite::here());
/// a / (a + b) of two gammas; gammas divided by their sum along the last axis; normal / sqrt(2
/// gamma(df / 2) / df).
Tensor beta(const Tensor& a, const Tensor& b, CallSite = CallSite::here());
Tensor dirichlet(const Tensor& alpha, CallSite = CallSite::here());
Tensor student_t(const Tensor& df, CallSite = CallSite::here());
/// One-hot samples of softmax(logits) along axis, soft at this temperature: differentiable (Jang et
/// al. 2017). hard gives the one-hot of the largest with the soft one's gradient.
Tensor gumbel_softmax(const Tensor& logits, double temperature = 1, bool hard = false,
                      int64_t axis = -1, CallSite = CallSite::here());

}  // namespace weft
