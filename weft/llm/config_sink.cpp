#include "weft/llm/config_sink.h"

#include <memory>

namespace weft::llm {

// ---- GGUF

GgufSink::GgufSink(const std::string& architecture) : architecture_(architecture) {
  made_.metadata.emplace_back("general.architecture", GgufValue::of(architecture));
}

void GgufSink::put(const Key& key, GgufValue value) {
  if (!key.gguf.empty())
    made_.metadata.emplace_back(architecture_ + "." + std::string(key.gguf), std::move(value));
}

void GgufSink::integer(const Key& key, int64_t x) {
  put(key, GgufValue::of_number(static_cast<uint32_t>(x)));
}
void GgufSink::real(const Key& key, double x) {
  put(key, GgufValue::of_number(static_cast<float>(x)));
}
void GgufSink::boolean(const Key& key, bool x) { put(key, GgufValue::of_number(x)); }
void GgufSink::text(const Key& key, const std::string& x) { put(key, GgufValue::of(x)); }

void GgufSink::booleans(const Key& key, const std::vector<bool>& x) {
  const std::vector<uint8_t> bytes(x.begin(), x.end());
  put(key, GgufValue::made(GgufType::Bool, true, std::as_bytes(std::span(bytes))));
}

void GgufSink::tensor(const std::string& name, const std::vector<float>& x) {
  const auto kept = std::make_shared<const std::vector<float>>(x);
  made_.tensors.push_back(
      {name, Codec::F32, {static_cast<int64_t>(x.size())}, std::as_bytes(std::span(*kept)), kept});
}

// ---- JSON

void JsonSink::put_json(const Key& key, std::string json) {
  const size_t point = key.json.find('.');
  if (key.json.empty()) return;
  if (point == std::string_view::npos)
    outer_[std::string(key.json)] = std::move(json);
  else
    inner_[std::string(key.json.substr(0, point))][std::string(key.json.substr(point + 1))] =
        std::move(json);
}

template <class T>
void JsonSink::put(const Key& key, const T& x) {
  put_json(key, JsonWriter().value(x).take());
}

template <class T>
void JsonSink::put_all(const Key& key, std::span<const T> all) {
  JsonWriter json;
  json.begin_array();
  for (const T& x : all) json.value(x);
  put_json(key, json.end_array().take());
}

void JsonSink::integer(const Key& key, int64_t x) { put(key, x); }
/// With a point: readers tell floats from whole numbers.
void JsonSink::real(const Key& key, double x) {
  std::string json = JsonWriter().value(x).take();
  if (json.find_first_of(".en") == std::string::npos) json += ".0";
  put_json(key, std::move(json));
}
void JsonSink::boolean(const Key& key, bool x) { put(key, x); }
void JsonSink::text(const Key& key, const std::string& x) { put(key, x); }
void JsonSink::nothing(const Key& key) { put_json(key, "null"); }
void JsonSink::numbers(const Key& key, std::span<const double> x) { put_all(key, x); }
void JsonSink::texts(const Key& key, std::span<const std::string> x) { put_all(key, x); }

void JsonSink::tokens(const Key& key, std::span<const int32_t> ids) {
  if (ids.empty()) return nothing(key);
  if (ids.size() == 1) return put(key, ids[0]);
  put_all(key, ids);
}

std::string JsonSink::take() const {
  JsonWriter json;
  json.begin_object();
  for (const auto& [name, value] : outer_) json.key(name).raw(value);
  for (const auto& [name, members] : inner_) {
    json.key(name).begin_object();
    for (const auto& [inner, value] : members) json.key(inner).raw(value);
    json.end_object();
  }
  return json.end_object().take();
}

}  // namespace weft::llm
