// LinearClassifier and LinearRegressor: a product, and what becomes of it.
#include "weft/onnx/host.h"
#include "weft/onnx/ml_models.h"
#include "weft/onnx/ml_scores.h"

namespace weft::onnx {
namespace {

// x @ coefficients^T + intercepts: one row of coefficients for each of `targets`.
Tensor linear_scores(const NodeCall& call, int64_t targets) {
  const Tensor x = feature_rows(call, 0).cast(DType::F32);
  const std::vector<double> coefficients = call.numbers("coefficients"),
                            intercepts = call.numbers("intercepts");
  const auto count = static_cast<int64_t>(coefficients.size());
  if (targets < 1 || count % targets != 0 || !(x.dim(1) == Dim(count / targets)))
    call.refuse("{} coefficients for {} targets and input {}: targets times features", count,
                targets, x.dims().text());
  if (!intercepts.empty() && static_cast<int64_t>(intercepts.size()) != targets)
    call.refuse("{} intercepts for {} targets: one each", intercepts.size(), targets);
  const Tensor weight = host_numbers(coefficients, {targets, count / targets}, DType::F32).tensor();
  const Tensor scores = x.matmul(weight.T());
  return intercepts.empty() ? scores
                            : scores + host_numbers(intercepts, {targets}, DType::F32).tensor();
}

}  // namespace

Tensor both_classes(const Tensor& positive, PostTransform post, bool opposed) {
  if (post == PostTransform::Logistic)
    return Tensor::cat({(-positive).sigmoid(), positive.sigmoid()}, 1);
  const Tensor s = post == PostTransform::Probit ? transformed(positive, post) : positive;
  return Tensor::cat({opposed ? -s : 1 - s, s}, 1);
}

Values linear_classifier(const NodeCall& call) {
  const Labels labels = Labels::of(call, "classlabels_ints", "classlabels_strings");
  const PostTransform post = post_transform_of(call);
  const size_t rows = call.numbers("intercepts").size();
  const int64_t targets = static_cast<int64_t>(rows == 0 ? labels.size() : rows);
  const Tensor scores = linear_scores(call, targets);
  const bool one = targets == 1 && labels.size() == 2;
  if (!one && static_cast<int64_t>(labels.size()) < targets)
    call.refuse("{} labels for {} scores", labels.size(), targets);
  const Tensor place =
      one ? (scores > 0).cast(DType::I64).reshape({-1}) : scores.argmax(1).cast(DType::I64);
  const Tensor given = one ? both_classes(scores, post, false) : transformed(scores, post);
  if (labels.texts.empty()) return {Tensor::of(labels.ints).index({place}), given};
  const std::vector<int64_t> places = place.to_vector<int64_t>();
  return {labels.at(places, {static_cast<int64_t>(places.size())}), given};
}

Values linear_regressor(const NodeCall& call) {
  const Tensor scores = linear_scores(call, call.integer("targets", 1));
  return {regressed(scores, post_transform_of(call))};
}

Tensor regressed(const Tensor& scores, PostTransform post) {
  const bool softmax = post == PostTransform::Softmax || post == PostTransform::SoftmaxZero;
  return scores.dim(1) == Dim(1) && softmax ? scores : transformed(scores, post);
}

}  // namespace weft::onnx
