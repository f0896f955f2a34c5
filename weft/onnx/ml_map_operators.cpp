// ai.onnx.ml: what takes and makes maps.
#include <algorithm>
#include <cstdlib>
#include <map>

#include "weft/onnx/host.h"
#include "weft/onnx/ml_models.h"
#include "weft/onnx/ml_scores.h"

namespace weft::onnx {
namespace {

struct Entries {
  std::vector<int64_t> ints;
  std::vector<std::string> texts;  // keys: one of both
  const Value* values = nullptr;
};

Entries entries(const NodeCall& call) {
  const Value& map = call.input(0);
  if (map.kind() != Value::Kind::Map) call.refuse("the input is no map; ZipMap makes maps");
  Entries all;
  const Value& keys = map.elements()[0];
  if (keys.kind() == Value::Kind::Strings)
    all.texts = keys.texts();
  else
    all.ints = as_ints(*keys.constant());
  all.values = &map.elements()[1];
  return all;
}

// Values at places of a row of this size, what is in between 0 or empty.
Value spread(const Value& values, const std::vector<int64_t>& places, int64_t size) {
  if (values.kind() == Value::Kind::Strings) {
    std::vector<std::string> row(static_cast<size_t>(size));
    for (size_t i = 0; i < places.size(); ++i)
      row[static_cast<size_t>(places[i])] = values.texts()[i];
    return Value::strings(std::move(row), {1, size});
  }
  const Tensor& x = values.tensor();
  return Tensor::zeros({Dim(size)}, x.dtype()).scatter(0, Tensor::of(places), x).unsqueeze(0);
}

std::vector<double> numbers_in(const NodeCall& call, const Value& strings) {
  std::vector<double> numbers;
  for (const std::string& text : strings.texts()) {
    char* end = nullptr;
    numbers.push_back(std::strtod(text.c_str(), &end));
    if (text.empty() || *end != '\0') call.refuse("{} is no number", quoted_name(text));
  }
  return numbers;
}

Value written(const Value& numbers) {
  std::vector<std::string> texts;
  const HostArray all = read_now(numbers);
  for (int64_t i = 0; i < all.numel(); ++i) texts.push_back(element(all, i).text());
  return Value::strings(std::move(texts), all.shape);
}

}  // namespace

Values cast_map(const NodeCall& call) {
  const Entries all = entries(call);
  if (!all.texts.empty()) call.refuse("the map's keys are strings; integers are needed");
  const bool sparse = call.text("map_form", "DENSE") == "SPARSE";
  const std::string to = call.text("cast_to", "TO_FLOAT");
  std::vector<int64_t> places = all.ints, sorted = all.ints;
  std::sort(sorted.begin(), sorted.end());
  constexpr int64_t kMost = int64_t{1} << 28;
  const int64_t size = sparse ? call.integer("max_map", 1) : static_cast<int64_t>(sorted.size());
  if (size < 0 || size > kMost) call.refuse("max_map {}: 0 to {}", size, kMost);
  for (int64_t& place : places) {
    if (!sparse) place = std::lower_bound(sorted.begin(), sorted.end(), place) - sorted.begin();
    if (place < 0 || place >= size) call.refuse("key {} of a map of up to {}", place, size);
  }
  const bool strings = all.values->kind() == Value::Kind::Strings;
  Value values = *all.values;
  if (to == "TO_STRING") {
    if (!strings) values = written(values);
  } else if (to == "TO_FLOAT" || to == "TO_INT64") {
    const DType dtype = to == "TO_FLOAT" ? DType::F32 : DType::I64;
    values = strings ? host_numbers(numbers_in(call, values), static_sizes(values.dims()), dtype)
                     : Value(values.tensor().cast(dtype));
  } else {
    call.refuse("cast_to {}: TO_FLOAT, TO_STRING or TO_INT64", quoted_name(to));
  }
  return {spread(values, places, size)};
}

Values dict_vectorizer(const NodeCall& call) {
  const Entries all = entries(call);
  const Labels words = Labels::of(call, "int64_vocabulary", "string_vocabulary");
  std::map<std::string, int64_t> texts;
  std::map<int64_t, int64_t> ints;
  for (size_t i = 0; i < words.texts.size(); ++i) texts.emplace(words.texts[i], i);
  for (size_t i = 0; i < words.ints.size(); ++i) ints.emplace(words.ints[i], i);
  std::vector<int64_t> places;
  const auto add = [&](const auto& vocabulary, const auto& key) {
    const auto found = vocabulary.find(key);
    if (found == vocabulary.end()) call.refuse("key {} is not in the vocabulary", key);
    places.push_back(found->second);
  };
  for (const std::string& key : all.texts) add(texts, key);
  for (const int64_t key : all.ints) add(ints, key);
  return {spread(*all.values, places, static_cast<int64_t>(words.size()))};
}

Values zip_map(const NodeCall& call) {
  const Labels labels = Labels::of(call, "classlabels_int64s", "classlabels_strings");
  const Tensor x = feature_rows(call, 0);
  const auto count = static_cast<int64_t>(labels.size());
  if (!(x.dim(1) == Dim(count)))
    call.refuse("input {} for {} keys: a column each", x.dims().text(), count);
  std::vector<int64_t> places(labels.size());
  for (size_t i = 0; i < places.size(); ++i) places[i] = static_cast<int64_t>(i);
  const Value keys = labels.at(places, {count});
  std::vector<Value> maps;
  const std::vector<float> numbers = x.cast(DType::F32).to_vector<float>();
  for (int64_t row = 0; row < x.size(0); ++row)
    maps.push_back(
        Value::map(keys, host_value(std::vector<float>(numbers.begin() + row * count,
                                                       numbers.begin() + (row + 1) * count),
                                    {count})));
  return {Value::sequence(std::move(maps))};
}

}  // namespace weft::onnx
