// Operators on strings, on the host.
#include <algorithm>
#include <set>

#include "weft/onnx/broadcast.h"
#include "weft/onnx/characters.h"
#include "weft/onnx/host.h"
#include "weft/onnx/operators.h"
#include "weft/onnx/regex.h"

namespace weft::onnx {

Values tf_idf_vectorizer(const NodeCall& call);  // tf_idf_operator.cpp

namespace {

Values string_concat(const NodeCall& call) {
  const auto &a = call.texts(0), &b = call.texts(1);
  const auto m = static_sizes(call.input(0).dims()), n = static_sizes(call.input(1).dims());
  const std::vector<int64_t> shape = broadcast_shape(call, {m, n});
  const BroadcastPlaces at_a(m, shape), at_b(n, shape);
  std::vector<std::string> joined(static_cast<size_t>(checked_numel(shape).value()));
  for (size_t i = 0; i < joined.size(); ++i) joined[i] = a[at_a.of(i)] + b[at_b.of(i)];
  return {Value::strings(std::move(joined), shape)};
}

constexpr std::string_view kSpace = " \t\n\v\f\r";

// Between runs of white space; at most `most` cuts, behind which the rest is as it is.
std::vector<std::string> words(std::string_view text, int64_t most) {
  std::vector<std::string> all;
  for (size_t at = text.find_first_not_of(kSpace); at != std::string_view::npos;) {
    const size_t end = text.find_first_of(kSpace, at);
    const bool last = end == std::string_view::npos || static_cast<int64_t>(all.size()) == most;
    all.emplace_back(text.substr(at, last ? std::string_view::npos : end - at));
    if (last) break;
    at = text.find_first_not_of(kSpace, end);
  }
  return all;
}

std::vector<std::string> parts(std::string_view text, std::string_view delimiter, int64_t most) {
  if (delimiter.empty()) return words(text, most);
  std::vector<std::string> all;
  size_t at = 0;
  for (size_t end = text.find(delimiter);
       end != std::string_view::npos && static_cast<int64_t>(all.size()) != most;
       end = text.find(delimiter, at)) {
    all.emplace_back(text.substr(at, end - at));
    at = end + delimiter.size();
  }
  all.emplace_back(text.substr(at));
  return all;
}

Values string_split(const NodeCall& call) {
  const std::string delimiter = call.text("delimiter", "");
  const int64_t most = call.has("maxsplit") ? call.integer("maxsplit") : -1;
  std::vector<std::vector<std::string>> all;
  std::vector<int64_t> counts;
  size_t widest = 0, total = 0;
  for (const std::string& text : call.texts(0)) {
    all.push_back(parts(text, delimiter, most));
    counts.push_back(static_cast<int64_t>(all.back().size()));
    widest = std::max(widest, all.back().size());
    total += all.back().size();
  }
  constexpr size_t kMostPadding = size_t{1} << 26;
  if (widest > 0 && all.size() > (kMostPadding + total) / widest)
    call.refuse("{} texts of up to {} parts would be padded to more than 2^26; use maxsplit",
                all.size(), widest);
  std::vector<std::string> padded;
  for (auto& row : all) {
    row.resize(widest);
    padded.insert(padded.end(), row.begin(), row.end());
  }
  std::vector<int64_t> shape = static_sizes(call.input(0).dims());
  const Value lengths = host_value(counts, shape);
  shape.push_back(static_cast<int64_t>(widest));
  return {Value::strings(std::move(padded), shape), lengths};
}

std::string mapped(const std::string& text, char32_t (*map)(char32_t)) {
  std::u32string characters = decode_utf8(text);
  std::transform(characters.begin(), characters.end(), characters.begin(), map);
  return encode_utf8(characters);
}

Values string_normalizer(const NodeCall& call) {
  const std::string action = call.text("case_change_action", "NONE");
  const bool exact = call.integer("is_case_sensitive", 0) != 0;
  const Dims dims = call.input(0).dims();
  if (action != "NONE" && action != "LOWER" && action != "UPPER")
    call.refuse("case_change_action {}: NONE, LOWER or UPPER", quoted_name(action));
  if (dims.size() != 1 && !(dims.size() == 2 && dims[0] == Dim(1)))
    call.refuse("input {}: (C) or (1, C)", dims.text());
  std::set<std::string> stop;
  for (const std::string& word : call.texts("stopwords"))
    stop.insert(exact ? word : mapped(word, to_lower));
  std::vector<std::string> kept;
  for (const std::string& text : call.texts(0)) {
    if (!stop.empty() && stop.contains(exact ? text : mapped(text, to_lower))) continue;
    kept.push_back(action == "NONE" ? text : mapped(text, action == "LOWER" ? to_lower : to_upper));
  }
  if (kept.empty()) kept.emplace_back();
  std::vector<int64_t> shape(dims.size(), 1);
  shape.back() = static_cast<int64_t>(kept.size());
  return {Value::strings(std::move(kept), std::move(shape))};
}

Values regex_full_match(const NodeCall& call) {
  const auto regex = call.kept<Regex>([&] { return Regex(call.text("pattern", "")); });
  std::vector<uint8_t> matches;
  for (const std::string& text : call.texts(0)) matches.push_back(regex->matches(text));
  return {host_value(matches, static_sizes(call.input(0).dims()), DType::Bool)};
}

}  // namespace

std::span<const Operator> text_operators() {
  static constexpr Operator kRows[] = {
      {kOnnx, "RegexFullMatch", 20, regex_full_match},
      {kOnnx, "StringConcat", 20, string_concat},
      {kOnnx, "StringNormalizer", 10, string_normalizer},
      {kOnnx, "StringSplit", 20, string_split},
      {kOnnx, "TfIdfVectorizer", 9, tf_idf_vectorizer},
  };
  return kRows;
}

}  // namespace weft::onnx
