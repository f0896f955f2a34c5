#include "weft/io/json_reader.h"

#include <charconv>
#include <cstdlib>

#include "weft/base/error.h"
#include "weft/base/utf8.h"

namespace weft {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

void JsonReader::fail_here(std::string_view problem) const {
  fail_runtime("json.format",
               "{}: {} at offset {}; the file is damaged or not what it claims to be", what_,
               problem, offset());
}

void JsonReader::space() {
  while (at_ < text_.size() &&
         (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r')) {
    ++at_;
  }
}

void JsonReader::expect(char wanted, std::string_view problem) {
  space();
  if (at_ >= text_.size()) fail_here("the JSON text ends too early");
  if (text_[at_] != wanted) fail_here(problem);
  ++at_;
}

void JsonReader::open(char bracket) {
  expect(bracket, bracket == '{' ? "expected an object" : "expected an array");
  if (++depth_ > kMostDepth) fail_here("nesting deeper than 64");
  first_ = true;
}

bool JsonReader::next(char bracket) {
  space();
  if (at_ < text_.size() && text_[at_] == bracket) {
    ++at_;
    --depth_;
    first_ = false;
    return false;
  }
  if (!first_) {
    expect(',', "expected ',' or a closing bracket");
    space();
  }
  first_ = false;
  return true;
}

void JsonReader::begin_object() { open('{'); }
void JsonReader::begin_array() { open('['); }
bool JsonReader::next_item() { return next(']'); }

bool JsonReader::next_key(std::string& key) {
  if (!next('}')) return false;
  key = string();
  expect(':', "expected ':' after a key");
  return true;
}

char JsonReader::peek() {
  space();
  if (at_ >= text_.size()) fail_here("the JSON text ends too early");
  return text_[at_];
}

std::string JsonReader::string() {
  std::string out;
  read_string(&out);
  return out;
}

void JsonReader::read_string(std::string* out) {
  expect('"', "expected a string");
  const size_t start = at_;
  while (true) {
    if (at_ >= text_.size()) fail_here("a string without an end");
    if (at_ - start > longest_string_) fail_here("a string longer than 1 MiB");
    const unsigned char c = static_cast<unsigned char>(text_[at_]);
    if (c == '"') break;
    if (c < 0x20) fail_here("a control character in a string");
    if (c == '\\') {
      read_escape(out);
    } else {
      read_utf8(out);
    }
  }
  ++at_;
}

void JsonReader::read_utf8(std::string* out) {
  const size_t length = utf8_length(text_, at_);
  if (length == 0) fail_here("bytes that are not UTF-8");
  if (out != nullptr) out->append(text_.substr(at_, length));
  at_ += length;
}

void JsonReader::read_escape(std::string* out) {
  constexpr std::string_view kShort = "\"\\/bfnrt", kMeaning = "\"\\/\b\f\n\r\t";
  ++at_;
  const size_t known = kShort.find(current());
  if (at_ < text_.size() && known != std::string_view::npos) {
    ++at_;
    if (out != nullptr) *out += kMeaning[known];
    return;
  }
  if (current() != 'u') fail_here("an unknown escape in a string");
  ++at_;
  uint32_t c = read_hex4();
  if (c == 0 && !allow_nul_) fail_here("a NUL character in a string");
  if (c >= 0xdc00 && c <= 0xdfff) fail_here("a lone surrogate in a string");
  if (c >= 0xd800 && c <= 0xdbff) {
    if (text_.substr(at_, 2) != "\\u") fail_here("a lone surrogate in a string");
    at_ += 2;
    const uint32_t low = read_hex4();
    if (low < 0xdc00 || low > 0xdfff) fail_here("a lone surrogate in a string");
    c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
  }
  if (out != nullptr) append_utf8(*out, c);
}

uint32_t JsonReader::read_hex4() {
  uint32_t value = 0;
  const std::string_view digits = text_.substr(at_, 4);
  const auto [stop, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (digits.size() != 4 || error != std::errc() || stop != digits.data() + 4) {
    fail_here("an escape without four hexadecimal digits");
  }
  at_ += 4;
  return value;
}

std::string_view JsonReader::read_number() {
  const size_t start = at_;
  const auto digits = [&] {
    const size_t from = at_;
    while (is_digit(current())) ++at_;
    if (at_ == from) fail_here("a malformed number");
  };
  if (current() == '-') ++at_;
  const bool zero = current() == '0';
  const size_t whole = at_;
  digits();
  if (zero && at_ - whole > 1) fail_here("a number with a leading zero");
  if (current() == '.') {
    ++at_;
    digits();
  }
  if (current() == 'e' || current() == 'E') {
    ++at_;
    if (current() == '+' || current() == '-') ++at_;
    digits();
  }
  if (at_ - start > kLongestNumber) fail_here("a number longer than 64 characters");
  return text_.substr(start, at_ - start);
}

uint64_t JsonReader::unsigned_integer() {
  const char c = peek();
  if (!is_digit(c) && c != '-') fail_here("expected a number");
  const size_t start = at_;
  const std::string_view text = read_number();
  uint64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && stop == text.data() + text.size()) return value;
  at_ = start;
  fail_here("expected a non-negative integer below 2^64, not " + std::string(text));
}

double JsonReader::number() {
  const char c = peek();
  if (!is_digit(c) && c != '-') fail_here("expected a number");
  return std::strtod(std::string(read_number()).c_str(), nullptr);
}

void JsonReader::read_word() {
  for (const std::string_view word : {"true", "false", "null"}) {
    if (text_.substr(at_, word.size()) == word) {
      at_ += word.size();
      return;
    }
  }
  fail_here("expected a value");
}

void JsonReader::skip_scalar() {
  const char c = peek();
  if (c == '"') return read_string(nullptr);
  if (is_digit(c) || c == '-') return static_cast<void>(read_number());
  read_word();
}

void JsonReader::skip() {
  std::string closers;  // the open containers
  do {
    if (!closers.empty()) {
      const bool object = closers.back() == '}';
      if (!next(closers.back())) {
        closers.pop_back();
        continue;
      }
      if (object) {
        read_string(nullptr);
        expect(':', "expected ':' after a key");
      }
    }
    const char c = peek();
    if (c == '{' || c == '[') {
      open(c);
      closers += c == '{' ? '}' : ']';
    } else {
      skip_scalar();
    }
  } while (!closers.empty());
}

void JsonReader::end() {
  space();
  if (at_ != text_.size()) fail_here("something after the end of the JSON value");
}

}  // namespace weft
