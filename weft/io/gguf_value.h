// GgufValue: a metadata value of a GGUF file: a number, a text, or an array of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace weft {

// By the number in files.
enum class GgufType : uint32_t {
  U8,
  I8,
  U16,
  I16,
  U32,
  I32,
  F32,
  Bool,
  String,
  Array,
  U64,
  I64,
  F64
};
constexpr uint32_t kGgufTypes = 13;
std::string_view name(GgufType type);
size_t size_of(GgufType type);  // bytes of a number; 0 for String and Array

struct GgufValue {
  GgufType type = GgufType::U8;  // Array: of `element`
  GgufType element = GgufType::U8;
  uint64_t count = 1;                        // of an array
  std::span<const std::byte> bytes;          // numbers, little-endian; or a String's text
  std::vector<std::string_view> texts;       // of an array of String
  std::vector<GgufValue> values;             // of an array of Array
  std::shared_ptr<const std::string> owner;  // of values that were made here

  std::string_view text() const {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  // Number i of a number or of an array of numbers, where it is one (and whole, and fits).
  std::optional<int64_t> integer(uint64_t i = 0) const;
  std::optional<double> number(uint64_t i = 0) const;
  // For people: arrays are cut after `most` elements.
  std::string shown(uint64_t most = 8) const;

  static GgufValue of(std::string_view text);
  static GgufValue of_texts(std::span<const std::string> texts);
  // Numbers of a C++ type; `array` or one.
  template <class T>
  static GgufValue of_number(T x) {
    return made(type_of<T>(), false, std::as_bytes(std::span(&x, 1)));
  }
  template <class T>
  static GgufValue of_numbers(std::span<const T> x) {
    return made(type_of<T>(), true, std::as_bytes(x));
  }
  static GgufValue made(GgufType type, bool array, std::span<const std::byte> numbers);

 private:
  template <class T>
  static constexpr GgufType type_of() {
    if constexpr (std::is_same_v<T, bool>) return GgufType::Bool;
    if constexpr (std::is_floating_point_v<T>)
      return sizeof(T) == 4 ? GgufType::F32 : GgufType::F64;
    constexpr uint32_t kBySize[] = {0, 0, 2, 0, 4, 0, 0, 0, 10};
    return static_cast<GgufType>(kBySize[sizeof(T)] + (std::is_signed_v<T> ? 1 : 0));
  }
};

}  // namespace weft
