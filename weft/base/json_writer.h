// JsonWriter: JSON text built by appending, commas and escapes included.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace weft {

class JsonWriter {
 public:
  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }

  JsonWriter& key(std::string_view name);
  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(bool flag);
  JsonWriter& value(double number);  // not finite: null, JSON has no other word
  template <std::integral T>
  JsonWriter& value(T number) {
    if constexpr (std::unsigned_integral<T>) return unsigned_value(number);
    return signed_value(static_cast<int64_t>(number));
  }
  JsonWriter& null();
  JsonWriter& raw(std::string_view json);  // already JSON

  template <class T>
  JsonWriter& field(std::string_view name, T&& content) {
    key(name);
    return value(content);
  }

  const std::string& text() const { return text_; }
  std::string take() { return std::move(text_); }

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  JsonWriter& signed_value(int64_t number);
  JsonWriter& unsigned_value(uint64_t number);
  void separate();

  std::string text_;
  bool comma_ = false;  // the next item follows another
};

// A JSON string literal with its quotes. Bytes that are not UTF-8 become U+FFFD.
std::string json_quote(std::string_view text);

}  // namespace weft
