#include "weft/onnx/ml_scores.h"

#include <cmath>
#include <numbers>

#include "weft/onnx/host.h"

namespace weft::onnx {

Labels Labels::of(const NodeCall& call, std::string_view ints, std::string_view texts) {
  Labels labels{call.texts(texts), call.ints(ints)};
  if (labels.texts.empty() == labels.ints.empty())
    call.refuse("one of {} and {} has to be given", ints, texts);
  return labels;
}

Value Labels::at(const std::vector<int64_t>& places, std::vector<int64_t> shape) const {
  std::vector<std::string> named;
  std::vector<int64_t> numbered;
  for (const int64_t at : places) {
    if (texts.empty())
      numbered.push_back(ints[static_cast<size_t>(at)]);
    else
      named.push_back(texts[static_cast<size_t>(at)]);
  }
  return texts.empty() ? host_value(numbered, std::move(shape))
                       : Value::strings(std::move(named), std::move(shape));
}

PostTransform post_transform_of(const NodeCall& call) {
  constexpr std::pair<std::string_view, PostTransform> kNames[] = {
      {"NONE", PostTransform::None},
      {"SOFTMAX", PostTransform::Softmax},
      {"LOGISTIC", PostTransform::Logistic},
      {"SOFTMAX_ZERO", PostTransform::SoftmaxZero},
      {"PROBIT", PostTransform::Probit}};
  const std::string name = call.text("post_transform", "NONE");
  for (const auto& [text, post] : kNames)
    if (name == text) return post;
  call.refuse("post_transform {}: NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT",
              quoted_name(name));
}

Tensor transformed(const Tensor& scores, PostTransform post) {
  switch (post) {
    case PostTransform::Softmax: return scores.softmax(-1);
    case PostTransform::Logistic: return scores.sigmoid();
    case PostTransform::SoftmaxZero: {  // scores of 0 stay, and do not count
      const Tensor scaled = (scores - scores.max(-1, true)).exp();
      const Tensor counts = scores.abs() > 1e-7;
      return counts.where(scaled, scores) / counts.where(scaled, 0).sum(-1, true);
    }
    case PostTransform::Probit: return (scores * 2 - 1).erfinv() * std::numbers::sqrt2;
    default: return scores;
  }
}

Tensor feature_rows(const NodeCall& call, size_t input) {
  const Tensor& x = call.tensor(input);
  if (x.ndim() != 1 && x.ndim() != 2)
    call.refuse("input {}: (rows, features) or (features)", x.dims().text());
  return x.ndim() == 2 ? x : x.unsqueeze(0);
}

}  // namespace weft::onnx
