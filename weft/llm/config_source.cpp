#include "weft/llm/config_source.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/io/host_array.h"

namespace weft::llm {

namespace {

constexpr uint64_t kMostNumbers = 1 << 16;  // of a list: layers, experts, frequencies
constexpr size_t kMostProblems = 20;

bool has_key(const JsonTree::Value& object, std::string_view name) {
  for (const JsonTree::Value v : object)
    if (v.key() == name) return true;
  return false;
}

/// The first part of `text` up to `mark`, which both are taken away from it.
std::string_view cut(std::string_view& text, char mark) {
  const size_t at = text.find(mark);
  const std::string_view part = text.substr(0, at);
  text = at == std::string_view::npos ? std::string_view() : text.substr(at + 1);
  return part;
}

}  // namespace

void ConfigSource::problem(std::string text) {
  if (problems_.size() < kMostProblems) problems_.push_back(std::move(text));
}

std::string ConfigSource::shown(const Key& key) const {
  return is_gguf() ? family() + "." + std::string(key.gguf) : std::string(key.json);
}

int64_t ConfigSource::integer(const Key& key, int64_t least, int64_t most,
                              std::optional<int64_t> otherwise) {
  const std::optional<double> found = number(key);
  if (!found && !otherwise) problem(strformat("{} is missing", shown(key)));
  if (!found) return otherwise.value_or(least);
  if (!(*found >= static_cast<double>(least) && *found <= static_cast<double>(most)) ||
      *found != std::floor(*found)) {
    problem(
        strformat("{} is {}, not a whole number from {} to {}", shown(key), *found, least, most));
    return otherwise.value_or(least);
  }
  return static_cast<int64_t>(*found);
}

double ConfigSource::real(const Key& key, double least, double otherwise) {
  const std::optional<double> found = number(key);
  if (!found) return otherwise;
  if (std::isfinite(*found) && *found >= least) return *found;
  problem(strformat("{} is {}, not a number of at least {}", shown(key), *found, least));
  return otherwise;
}

// ---- GGUF

GgufSource::GgufSource(const GgufContent& content) : content_(content) {
  const GgufValue* name = content.value("general.architecture");
  if (name == nullptr || name->type != GgufType::String)
    fail("llm.config", "the GGUF file does not say its general.architecture: it is no model");
  architecture_ = std::string(name->text());
}

const GgufValue* GgufSource::value(const Key& key) const {
  if (key.gguf.empty()) return nullptr;
  // Keys with a point in front are whole.
  if (key.gguf[0] == '.') return content_.value(key.gguf.substr(1));
  return content_.value(architecture_ + "." + std::string(key.gguf));
}

std::optional<double> GgufSource::number(const Key& key) {
  const GgufValue* found = value(key);
  if (found == nullptr) return {};
  const auto as_number = found->number();
  if (!as_number || found->count < 1) problem(shown(key) + " is no number");
  for (uint64_t i = 1; i < std::min(found->count, kMostNumbers); ++i)
    if (found->number(i) != as_number) {
      problem(shown(key) + " differs from layer to layer, which is not supported");
      break;
    }
  return as_number;
}

std::optional<bool> GgufSource::boolean(const Key& key) {
  const GgufValue* found = value(key);
  if (found == nullptr) return {};
  if (found->type == GgufType::Bool && !found->bytes.empty())
    return found->bytes[0] != std::byte{0};
  problem(shown(key) + " is neither true nor false");
  return {};
}

std::optional<std::string> GgufSource::text(const Key& key) {
  const GgufValue* found = value(key);
  if (found == nullptr) return {};
  if (found->type == GgufType::String) return std::string(found->text());
  problem(shown(key) + " is no text");
  return {};
}

std::vector<double> GgufSource::numbers(const Key& key) {
  const GgufValue* found = value(key);
  std::vector<double> all;
  if (found == nullptr) return all;
  for (uint64_t i = 0; i < std::min(found->count, kMostNumbers); ++i) {
    const bool flag = found->type == GgufType::Bool ||
                      (found->type == GgufType::Array && found->element == GgufType::Bool);
    const std::optional<double> x = flag && i < found->bytes.size()
                                        ? std::optional(found->bytes[i] == std::byte{0} ? 0.0 : 1.0)
                                        : found->number(i);
    if (!x) {
      problem(shown(key) + " is no list of numbers");
      return {};
    }
    all.push_back(*x);
  }
  return all;
}

std::vector<std::string> GgufSource::texts(const Key& key) {
  const GgufValue* found = value(key);
  if (found == nullptr) return {};
  return {found->texts.begin(), found->texts.end()};
}

std::vector<double> GgufSource::tensor(std::string_view name) {
  const GgufTensor* found = content_.find(name);
  if (found == nullptr) return {};
  const size_t count = found->bytes.size() / sizeof(float);
  if (found->codec != Codec::F32 || count > kMostNumbers) {
    problem(strformat("the tensor {} is not a short list of f32", quoted_name(name)));
    return {};
  }
  std::vector<float> raw(count);
  if (count != 0) std::memcpy(raw.data(), found->bytes.data(), count * sizeof(float));
  return {raw.begin(), raw.end()};
}

// ---- JSON

std::string JsonSource::family() const {
  const JsonTree::Value type = tree_.root()["model_type"];
  if (!type.is_text())
    fail("llm.config", "config.json does not say its model_type: it is no model");
  return std::string(type.text());
}

bool JsonSource::says(const Key& key) const { return value(key, true).has_value(); }

std::optional<JsonTree::Value> JsonSource::value(const Key& key, bool even_null) const {
  std::string_view rest = key.json;
  while (!rest.empty()) {
    std::string_view path = cut(rest, '|');
    JsonTree::Value at = tree_.root();
    bool there = true;
    while (!path.empty() && there) {
      const std::string_view name = cut(path, '.');
      there = at.is_object() && has_key(at, name);
      if (there) at = at[name];
    }
    if (there && (even_null || !at.is_null())) return at;
  }
  return {};
}

std::optional<double> JsonSource::number(const Key& key) {
  const auto found = value(key);
  if (!found) return {};
  if (found->kind() == JsonTree::Kind::Number) return found->number();
  problem(shown(key) + " is no number");
  return {};
}

std::optional<bool> JsonSource::boolean(const Key& key) {
  const auto found = value(key);
  if (!found) return {};
  if (found->kind() == JsonTree::Kind::True || found->kind() == JsonTree::Kind::False)
    return found->boolean();
  problem(shown(key) + " is neither true nor false");
  return {};
}

std::optional<std::string> JsonSource::text(const Key& key) {
  const auto found = value(key);
  if (!found) return {};
  if (found->is_text()) return std::string(found->text());
  problem(shown(key) + " is no text");
  return {};
}

std::vector<double> JsonSource::numbers(const Key& key) {
  const auto found = value(key);
  std::vector<double> all;
  if (!found) return all;
  if (found->kind() == JsonTree::Kind::Number) return {found->number()};
  if (found->is_array() && found->size() <= kMostNumbers) {
    for (const JsonTree::Value x : *found)
      if (x.kind() == JsonTree::Kind::Number) all.push_back(x.number());
    if (all.size() == found->size()) return all;
  }
  problem(shown(key) + " is no list of numbers");
  return {};
}

std::vector<std::string> JsonSource::texts(const Key& key) {
  const auto found = value(key);
  std::vector<std::string> all;
  if (!found || !found->is_array() || found->size() > kMostNumbers) return all;
  for (const JsonTree::Value x : *found)
    if (x.is_text()) all.emplace_back(x.text());
  return all;
}

}  // namespace weft::llm
