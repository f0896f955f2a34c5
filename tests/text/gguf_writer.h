// The keys of a tokenizer in a GGUF file, for tests.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weft/io/gguf.h"

namespace weft::text {

struct GgufWriter {
  GgufContent content;
  void text(const char* key, std::string_view value) { set(key, GgufValue::of(value)); }
  void texts(const char* key, const std::vector<std::string>& values) {
    set(key, GgufValue::of_texts(values));
  }
  template <class T>
  void numbers(const char* key, const std::vector<T>& values) {
    set(key, GgufValue::of_numbers<T>(values));
  }
  template <class T>
  void number(const char* key, T value) {
    set(key, GgufValue::of_number(value));
  }
  /// Instead of what the key had.
  void set(const std::string& key, GgufValue value) {
    erase(key);
    content.metadata.emplace_back("tokenizer.ggml." + key, std::move(value));
  }
  void erase(const std::string& key) {
    std::erase_if(content.metadata,
                  [&](const auto& one) { return one.first == "tokenizer.ggml." + key; });
  }
};

}  // namespace weft::text
