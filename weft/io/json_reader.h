// JsonReader: a strict pull parser for untrusted JSON; no tree, no recursion, bounded everything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace weft {

// The caller asks for what it expects, and anything else is an Error with the byte's offset.
// RFC 8259, and stricter: valid UTF-8 only, no lone surrogates, no NUL in strings (unless
// allow_nul() says so), depth <= 64, strings <= 1 MiB (or allow_strings_of()), numbers <= 64
// characters. Duplicate keys are
// for the caller to refuse.
//
//   JsonReader json(text, "model.safetensors: header");
//   json.begin_object();
//   while (json.next_key(key)) { ... one value ... }
//   json.end();
class JsonReader {
 public:
  static constexpr int kMostDepth = 64;
  static constexpr size_t kLongestString = size_t{1} << 20;
  static constexpr size_t kLongestNumber = 64;

  // `base` is added to the offsets in errors: where the text starts in its file.
  JsonReader(std::string_view text, std::string_view what, uint64_t base = 0)
      : text_(text), what_(what), base_(base) {}

  void allow_nul() { allow_nul_ = true; }
  void allow_strings_of(size_t bytes) { longest_string_ = bytes; }

  void begin_object();
  bool next_key(std::string& key);  // false: the object has ended
  void begin_array();
  bool next_item();  // false: the array has ended

  std::string string();
  uint64_t unsigned_integer();  // no sign, fraction, exponent or leading zero; fits 64 bits
  double number();              // any number; out of range: infinite, or 0
  void skip();                  // any value
  char peek();                  // the first character of the next value
  void end();                   // only white space may follow

  uint64_t offset() const { return base_ + at_; }
  [[noreturn]] void fail_here(std::string_view problem) const;

 private:
  void space();
  char current() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void expect(char wanted, std::string_view problem);
  void open(char bracket);
  bool next(char bracket);
  void read_string(std::string* out);
  void read_escape(std::string* out);
  uint32_t read_hex4();
  void read_utf8(std::string* out);
  std::string_view read_number();
  void read_word();
  void skip_scalar();

  std::string_view text_, what_;
  uint64_t base_;
  size_t at_ = 0;
  int depth_ = 0;
  size_t longest_string_ = kLongestString;
  bool allow_nul_ = false;
  bool first_ = true;  // the next item is its container's first
};

}  // namespace weft
