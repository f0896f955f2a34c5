#include "weft/nn/layers.h"

namespace weft::nn {

Linear::Linear(int64_t in, int64_t out, bool with_bias, CallSite at) {
  const CallSiteScope site(at);
  check_positive("Linear", "in", in);
  check_positive("Linear", "out", out);
  weight = uniform_for({out, in}, in);
  if (with_bias) bias = uniform_for({out}, in);
}
Tensor Linear::operator()(const Tensor& x, CallSite at) const {
  return x.linear(weight.T(at), bias, at);
}
void Linear::visit(StateVisitor& v) {
  v("weight", weight);
  v("bias", bias);
}

Embedding::Embedding(int64_t vocabulary, int64_t dim, CallSite at) {
  const CallSiteScope site(at);
  check_positive("Embedding", "vocabulary", vocabulary);
  check_positive("Embedding", "dim", dim);
  weight = trained(Tensor::glorot_uniform({vocabulary, dim}));
}
Tensor Embedding::operator()(const Tensor& ids, CallSite at) const {
  return weight[Index(ids, at)];
}
void Embedding::visit(StateVisitor& v) { v("weight", weight); }

}  // namespace weft::nn
