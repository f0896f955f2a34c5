#include "weft/base/json_writer.h"

#include <cmath>

#include "weft/base/format.h"
#include "weft/base/utf8.h"

namespace weft {

namespace {

void append_escaped(std::string& out, std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const size_t length = utf8_length(text, i);
    const char c = text[i];
    if (length == 0) {
      out += "\\ufffd";
    } else if (c == '"' || c == '\\') {
      out += '\\', out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      append_format(out, "\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out.append(text, i, length);
    }
    i += length == 0 ? 1 : length;
  }
}

}  // namespace

std::string json_quote(std::string_view text) {
  std::string out = "\"";
  append_escaped(out, text);
  return out + '"';
}

void JsonWriter::separate() {
  if (comma_) text_ += ',';
  comma_ = true;
}

JsonWriter& JsonWriter::open(char bracket) {
  separate();
  text_ += bracket;
  comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  text_ += bracket;
  comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  value(name);
  text_ += ':';
  comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::raw(std::string_view json) {
  separate();
  text_ += json;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) { return raw(json_quote(text)); }
JsonWriter& JsonWriter::value(bool flag) { return raw(flag ? "true" : "false"); }
JsonWriter& JsonWriter::null() { return raw("null"); }
JsonWriter& JsonWriter::signed_value(int64_t number) { return raw(strformat("{}", number)); }
JsonWriter& JsonWriter::unsigned_value(uint64_t number) { return raw(strformat("{}", number)); }

JsonWriter& JsonWriter::value(double number) {
  return std::isfinite(number) ? raw(strformat("{}", number)) : null();
}

}  // namespace weft
