// ai.onnx.ml: features. Models are in ml_linear_operators.cpp, ml_svm_operators.cpp and
// ml_tree_operators.cpp.
#include <algorithm>
#include <cmath>
#include <map>

#include "weft/onnx/host.h"
#include "weft/onnx/ml_models.h"
#include "weft/onnx/ml_scores.h"

namespace weft::onnx {
namespace {

Tensor floats(const Tensor& x) { return x.cast(DType::F32); }

Tensor table(const std::vector<double>& numbers) {
  return Tensor::of(std::vector<float>(numbers.begin(), numbers.end()));
}

Values array_feature_extractor(const NodeCall& call) {
  const Value& x = call.input(0);
  if (x.ndim() == 0) call.refuse("input (): at least one axis");
  const Tensor places = call.tensor(1).reshape({-1});
  return {moved(x, [&](const Tensor& data) {
    const Tensor chosen = data.index_select(-1, places);
    return data.ndim() == 1 ? chosen.unsqueeze(0) : chosen;
  })};
}

Values binarizer(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  return {(x > call.number("threshold", 0)).cast(x.dtype())};
}

// ---- categories

// A table of keys and values, either of which are strings or numbers.
struct Keys {
  std::map<std::string, size_t> texts;
  std::map<double, size_t> numbers;  // floats and integers below 2^53
  std::map<int64_t, size_t> ints;
  std::optional<size_t> nan;
};

// A list that an attribute gives in one of four forms.
Value listed(const NodeCall& call, const std::string& stem) {
  if (call.has(stem + "_tensor")) return call.constant(stem + "_tensor");
  if (call.has(stem + "_strings")) {
    std::vector<std::string> all = call.texts(stem + "_strings");
    const auto count = static_cast<int64_t>(all.size());
    return Value::strings(std::move(all), {count});
  }
  if (call.has(stem + "_int64s")) {
    const std::vector<int64_t> all = call.ints(stem + "_int64s");
    return host_value(all, {static_cast<int64_t>(all.size())});
  }
  const std::vector<double> all = call.numbers(stem + "_floats");
  if (all.empty()) call.refuse("none of {0}_strings, {0}_int64s, {0}_floats is given", stem);
  return host_numbers(all, {static_cast<int64_t>(all.size())}, DType::F32);
}

size_t length(const Value& list) {
  return list.kind() == Value::Kind::Strings ? list.texts().size()
                                             : static_cast<size_t>(list.constant()->numel());
}

Keys keys_of(const Value& list) {
  Keys keys;
  const size_t count = length(list);
  const HostArray numbers = list.kind() == Value::Kind::Strings ? HostArray() : *list.constant();
  for (size_t i = 0; i < count; ++i) {  // the last of equal ones counts
    if (list.kind() == Value::Kind::Strings) {
      keys.texts[list.texts()[i]] = i;
      continue;
    }
    const weft::Value x = element(numbers, static_cast<int64_t>(i));
    if (!is_float(numbers.dtype))
      keys.ints[x.as_int()] = i;
    else if (x.is_nan())
      keys.nan = i;
    else
      keys.numbers[x.as_double()] = i;
  }
  return keys;
}

std::optional<size_t> found(const auto& map, const auto& key) {
  const auto at = map.find(key);
  return at == map.end() ? std::nullopt : std::optional<size_t>(at->second);
}

// For each element of the input the place of its key; nothing where there is none.
std::vector<std::optional<size_t>> lookup(const NodeCall& call, const Keys& keys) {
  std::vector<std::optional<size_t>> places;
  if (call.input(0).kind() == Value::Kind::Strings) {
    for (const std::string& text : call.texts(0)) places.push_back(found(keys.texts, text));
    return places;
  }
  const HostArray all = call.array(0);
  for (int64_t i = 0; i < all.numel(); ++i) {
    const weft::Value x = element(all, i);
    places.push_back(!is_float(all.dtype) ? found(keys.ints, x.as_int())
                     : x.is_nan()         ? keys.nan
                                          : found(keys.numbers, x.as_double()));
  }
  return places;
}

// The listed values at these places, `otherwise` (one element) where there is none.
Value chosen(const Value& list, const Value& otherwise,
             const std::vector<std::optional<size_t>>& places, const std::vector<int64_t>& shape) {
  if (list.kind() == Value::Kind::Strings) {
    std::vector<std::string> texts;
    for (const auto& at : places) texts.push_back(at ? list.texts()[*at] : otherwise.texts()[0]);
    return Value::strings(std::move(texts), shape);
  }
  const HostArray from = *list.constant(), other = *otherwise.constant();
  std::vector<std::byte> bytes;
  const auto width = static_cast<size_t>(bytes_for(from.dtype, 1));
  for (const auto& at : places) {
    const std::byte* element = at ? from.bytes.data() + *at * width : other.bytes.data();
    bytes.insert(bytes.end(), element, element + width);
  }
  return Value(HostArray::owned(from.dtype, shape, std::move(bytes)));
}

Value default_of(const NodeCall& call, const Value& list) {
  if (call.has("default_tensor")) return call.constant("default_tensor");
  if (list.kind() == Value::Kind::Strings)
    return Value::strings({call.text("default_string", "_Unused")}, {1});
  const bool whole = !is_float(list.dtype());
  return host_numbers({whole ? static_cast<double>(call.integer("default_int64", -1))
                             : call.number("default_float", -0.0)},
                      {1}, list.dtype());
}

Values mapped(const NodeCall& call, const Value& keys, const Value& values,
              const Value& otherwise) {
  if (length(keys) != length(values))
    call.refuse("{} keys and {} values; there are equally many", length(keys), length(values));
  const bool same = otherwise.kind() == values.kind() &&
                    (values.kind() == Value::Kind::Strings || otherwise.dtype() == values.dtype());
  if (!same || length(otherwise) != 1)
    call.refuse("the default is not one element like the values");
  const auto table = call.kept<Keys>([&] { return keys_of(keys); });
  return {chosen(values, otherwise, lookup(call, *table), static_sizes(call.input(0).dims()))};
}

Values label_encoder(const NodeCall& call) {
  const Value keys = listed(call, "keys"), values = listed(call, "values");
  return mapped(call, keys, values, default_of(call, values));
}

// Strings to their place among the classes, or back.
Values label_encoder_1(const NodeCall& call) {
  std::vector<std::string> classes = call.texts("classes_strings");
  std::vector<int64_t> numbers(classes.size());
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int64_t>(i);
  const auto count = static_cast<int64_t>(classes.size());
  const Value texts = Value::strings(std::move(classes), {count});
  const Value ints = host_value(numbers, {count});
  const bool strings = call.input(0).kind() == Value::Kind::Strings;
  const Value& values = strings ? ints : texts;
  return mapped(call, strings ? texts : ints, values, default_of(call, values));
}

Values category_mapper(const NodeCall& call) {
  const Value texts = listed(call, "cats");  // _strings come first
  const std::vector<int64_t> numbers = call.ints("cats_int64s");
  const Value ints = host_value(numbers, {static_cast<int64_t>(numbers.size())});
  const bool strings = call.input(0).kind() == Value::Kind::Strings;
  const Value& values = strings ? ints : texts;
  return mapped(call, strings ? texts : ints, values, default_of(call, values));
}

Values one_hot_encoder(const NodeCall& call) {
  const Labels labels = Labels::of(call, "cats_int64s", "cats_strings");
  std::vector<int64_t> shape = static_sizes(call.input(0).dims());
  Keys keys;
  for (size_t i = 0; i < labels.size(); ++i) {
    if (!labels.texts.empty())
      keys.texts[labels.texts[i]] = i;
    else
      keys.numbers[static_cast<double>(labels.ints[i])] = keys.ints[labels.ints[i]] = i;
  }
  std::vector<std::optional<size_t>> places;
  if (call.input(0).kind() == Value::Kind::Strings) {
    places = lookup(call, keys);
  } else {  // floats are cut to integers
    for (const int64_t x : call.tensor(0).cast(DType::I64).to_vector<int64_t>())
      places.push_back(found(keys.ints, x));
  }
  constexpr size_t kMost = size_t{1} << 28;
  if (places.size() > kMost / labels.size())
    call.refuse("{} elements of {} categories: at most 2^28 together", places.size(),
                labels.size());
  std::vector<float> ones(places.size() * labels.size());
  for (size_t i = 0; i < places.size(); ++i) {
    if (places[i])
      ones[i * labels.size() + *places[i]] = 1;
    else if (call.integer("zeros", 1) == 0)
      call.refuse("element {} is of no category; zeros=1 makes such ones all 0", i);
  }
  shape.push_back(static_cast<int64_t>(labels.size()));
  return {host_value(ones, std::move(shape))};
}

// ---- numbers

Values feature_vectorizer(const NodeCall& call) {
  std::vector<Tensor> parts;
  for (size_t i = 0; i < call.inputs(); ++i) parts.push_back(floats(feature_rows(call, i)));
  const std::vector<int64_t> sizes = call.ints("inputdimensions");
  for (size_t i = 0; i < sizes.size() && i < parts.size(); ++i)
    if (sizes[i] >= 0 && parts[i].dim(1).min() > sizes[i])
      parts[i] = parts[i].shrink({{0, parts[i].dim(0)}, {0, Dim(sizes[i])}});
  return {Tensor::cat(parts, 1)};
}

Values imputer(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  const bool whole = is_int(x.dtype());
  const std::vector<int64_t> ints = call.ints("imputed_value_int64s");
  const std::vector<double> numbers = call.numbers("imputed_value_floats");
  const size_t count = whole ? ints.size() : numbers.size();
  if (count != 1 && !(x.ndim() > 0 && x.dim(-1) == Dim(count)))
    call.refuse("{} imputed values for input {}: 1, or one for each of the last axis", count,
                x.dims().text());
  const double old = whole ? static_cast<double>(call.integer("replaced_value_int64", 0))
                           : call.number("replaced_value_float", 0);
  const Tensor fresh = (whole ? Tensor::of(ints) : table(numbers)).cast(x.dtype());
  return {(std::isnan(old) ? x.isnan() : x == Tensor(old).cast(x.dtype())).where(fresh, x)};
}

Values normalizer(const NodeCall& call) {
  const Tensor x = floats(call.tensor(0));
  const std::string norm = call.text("norm", "MAX");
  if (norm != "MAX" && norm != "L1" && norm != "L2")
    call.refuse("norm {}: MAX, L1 or L2", quoted_name(norm));
  const Tensor by = norm == "MAX"  ? x.max(-1, true)
                    : norm == "L1" ? x.abs().sum(-1, true)
                                   : (x * x).sum(-1, true).sqrt();
  return {(by == 0).where(x, x / by)};
}

Values scaler(const NodeCall& call) {
  const std::vector<double> offset = call.numbers("offset"), scale = call.numbers("scale");
  if (offset.empty() || scale.empty() || offset.size() != scale.size())
    call.refuse("{} offsets and {} scales; there are equally many, and at least one", offset.size(),
                scale.size());
  return {(floats(call.tensor(0)) - table(offset)) * table(scale)};
}

}  // namespace

std::span<const Operator> ml_operators() {
  static constexpr Operator kRows[] = {
      {kMl, "ArrayFeatureExtractor", 1, array_feature_extractor},
      {kMl, "Binarizer", 1, binarizer},
      {kMl, "CastMap", 1, cast_map},
      {kMl, "CategoryMapper", 1, category_mapper},
      {kMl, "DictVectorizer", 1, dict_vectorizer},
      {kMl, "FeatureVectorizer", 1, feature_vectorizer},
      {kMl, "Imputer", 1, imputer},
      {kMl, "LabelEncoder", 1, label_encoder_1},
      {kMl, "LabelEncoder", 2, label_encoder},
      {kMl, "LinearClassifier", 1, linear_classifier},
      {kMl, "LinearRegressor", 1, linear_regressor},
      {kMl, "Normalizer", 1, normalizer},
      {kMl, "OneHotEncoder", 1, one_hot_encoder},
      {kMl, "SVMClassifier", 1, svm_classifier},
      {kMl, "SVMRegressor", 1, svm_regressor},
      {kMl, "Scaler", 1, scaler},
      {kMl, "TreeEnsemble", 5, tree_ensemble},
      {kMl, "TreeEnsembleClassifier", 1, tree_ensemble_classifier},
      {kMl, "TreeEnsembleRegressor", 1, tree_ensemble_regressor},
      {kMl, "ZipMap", 1, zip_map},
  };
  return kRows;
}

}  // namespace weft::onnx
