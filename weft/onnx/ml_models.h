// Rows of ml_operators.cpp that have files of their own.
#pragma once

#include "weft/onnx/operators.h"

namespace weft::onnx {

Values cast_map(const NodeCall& call);
Values dict_vectorizer(const NodeCall& call);
Values zip_map(const NodeCall& call);
Values linear_classifier(const NodeCall& call);
Values linear_regressor(const NodeCall& call);
Values svm_classifier(const NodeCall& call);
Values svm_regressor(const NodeCall& call);
Values tree_ensemble(const NodeCall& call);  ///< since 5
Values tree_ensemble_classifier(const NodeCall& call);
Values tree_ensemble_regressor(const NodeCall& call);

}  // namespace weft::onnx
