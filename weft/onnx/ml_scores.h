// What classifiers and regressors of ai.onnx.ml have in common: labels, and what becomes of scores.
#pragma once

#include "weft/onnx/operators.h"

namespace weft::onnx {

/// Names of classes: strings or integers.
struct Labels {
  std::vector<std::string> texts;
  std::vector<int64_t> ints;

  /// Of these attributes, one of which is given.
  static Labels of(const NodeCall& call, std::string_view ints, std::string_view texts);
  size_t size() const { return texts.empty() ? ints.size() : texts.size(); }
  Value at(const std::vector<int64_t>& places, std::vector<int64_t> shape) const;
};

enum class PostTransform : uint8_t { None, Softmax, Logistic, SoftmaxZero, Probit };
PostTransform post_transform_of(const NodeCall& call);
/// Of scores (n, classes), floats.
Tensor transformed(const Tensor& scores, PostTransform post);
/// Of scores (n, targets) of a regression: a softmax of one score leaves it.
Tensor regressed(const Tensor& scores, PostTransform post);
/// Scores (n, 2) of two classes from those of the second one (n, 1): the other's is the rest to 1,
/// or (opposed) its negative.
Tensor both_classes(const Tensor& positive, PostTransform post, bool opposed);

/// x as (rows, features); one row where it is 1-D.
Tensor feature_rows(const NodeCall& call, size_t input);

}  // namespace weft::onnx
