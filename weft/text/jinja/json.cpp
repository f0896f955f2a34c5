#include <algorithm>
#include <charconv>
#include <cmath>

#include "weft/base/utf8.h"
#include "weft/io/json_reader.h"
#include "weft/text/jinja/value.h"

namespace weft::text::jinja {

namespace {
using Kind = Value::Kind;

// json.encoder's ESCAPE_DCT, and with `ascii` all that is not printable ASCII.
void append_json_text(TextBuilder& out, std::string_view text, bool ascii) {
  std::string quoted = "\"";
  for (size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    constexpr std::string_view kShort = "\"\\\n\r\t\f\b", kLetters = "\"\\nrtfb";
    const size_t known = c < 0x80 ? kShort.find(static_cast<char>(c)) : std::string_view::npos;
    const auto escape = [&](uint32_t unit) { append_format(quoted, "\\u{:04x}", unit); };
    if (known != std::string_view::npos) {
      quoted += {'\\', kLetters[known]};
    } else if (c < 0x20 || (ascii && c >= 0x7f && c < 0x10000)) {
      c == 0x7f ? append_utf8(quoted, c) : escape(c);
    } else if (ascii && c >= 0x10000) {
      escape(0xd800 + ((c - 0x10000) >> 10));
      escape(0xdc00 + ((c - 0x10000) & 0x3ff));
    } else {
      append_utf8(quoted, c);
    }
  }
  out.add(quoted + "\"");
}

std::string json_real(double d) {
  if (std::isnan(d)) return "NaN";
  if (std::isinf(d)) return d > 0 ? "Infinity" : "-Infinity";
  return real_text(d);
}

std::string json_key(const Value& key) {
  switch (key.kind()) {
    case Kind::Text: return std::string(key.as_text());
    case Kind::None: return "null";
    case Kind::Bool: return key.as_integer() != 0 ? "true" : "false";
    case Kind::Int: return std::to_string(key.as_integer());
    case Kind::Float: return json_real(key.as_real());
    default: refuse("a key of JSON is a text or a number, got {}", kind_name(key));
  }
}

struct JsonDump {
  TextBuilder& out;
  const JsonStyle& style;
  Workspace& work;

  void line(int depth) {
    if (style.indent < 0) return;
    out.add("\n");
    out.add(static_cast<size_t>(style.indent) * static_cast<size_t>(depth), ' ');
  }
  template <class Item, class Append>
  void items(std::string_view brackets, std::span<const Item> all, int depth, Append append) {
    if (all.empty()) return out.add(brackets);
    out.add(brackets.substr(0, 1));
    for (size_t i = 0; i < all.size(); ++i) {
      if (i != 0) out.add(style.item_separator);
      line(depth + 1);
      append(all[i]);
    }
    line(depth);
    out.add(brackets.substr(1));
  }
  void dict(std::span<const Pair> pairs, int depth) {
    std::vector<Pair> sorted(pairs.begin(), pairs.end());
    const auto before = [&](const Pair& a, const Pair& b) { return less(a.key, b.key, work); };
    if (style.sort_keys) {
      std::make_heap(sorted.begin(), sorted.end(), before);
      std::sort_heap(sorted.begin(), sorted.end(), before);
    }
    items("{}", std::span<const Pair>(sorted), depth, [&](const Pair& pair) {
      append_json_text(out, json_key(pair.key), style.ascii);
      out.add(style.key_separator);
      append_json(out, pair.value, style, work, depth + 1);
    });
  }
};

/// A parser's values; 64 levels at most, which the reader sees to.
struct JsonLoad {
  JsonReader reader;
  std::string_view text;
  Workspace& work;

  Value number() {
    const size_t from = reader.offset();
    const double d = reader.number();
    const std::string_view digits = text.substr(from, reader.offset() - from);
    int64_t i = 0;
    if (digits.find_first_of(".eE") == std::string_view::npos &&
        std::from_chars(digits.data(), digits.data() + digits.size(), i).ec == std::errc())
      return Value::integer(i);
    return Value::real(d);
  }
  Value list() {
    std::vector<Value> items;
    reader.begin_array();
    while (reader.next_item()) items.push_back(value());
    return work.list(items);
  }
  // As json.loads: of two with one key the last, where the first is.
  Value dict() {
    std::vector<Pair> pairs;
    reader.begin_object();
    std::string key;
    while (reader.next_key(key)) {
      const Value name = work.text(key);
      const Value content = value();
      const auto same = std::find_if(pairs.begin(), pairs.end(), [&](const Pair& pair) {
        return pair.key.as_text() == name.as_text();
      });
      work.spend_for(pairs.size());
      same == pairs.end() ? pairs.push_back({name, content}) : void(same->value = content);
    }
    return work.dict(pairs);
  }
  Value value() {
    work.spend(1);
    switch (reader.peek()) {
      case '{': return dict();
      case '[': return list();
      case '"': return work.text(reader.string());
      case 't': reader.skip(); return Value::boolean(true);
      case 'f': reader.skip(); return Value::boolean(false);
      case 'n': reader.skip(); return Value::none();
      default: return number();
    }
  }
};
}  // namespace

void append_json(TextBuilder& out, const Value& v, const JsonStyle& style, Workspace& work,
                 int depth) {
  if (depth > 100) throw Problem{"template.limit", "a value is nested more than 100 levels deep"};
  work.spend(1);
  JsonDump dump{out, style, work};
  switch (v.kind()) {
    case Kind::None: return out.add("null");
    case Kind::Bool: return out.add(v.as_integer() != 0 ? "true" : "false");
    case Kind::Int: return out.add(std::to_string(v.as_integer()));
    case Kind::Float: return out.add(json_real(v.as_real()));
    case Kind::Text:
      work.spend_for(v.as_text().size());
      return append_json_text(out, v.as_text(), style.ascii);
    case Kind::List:
    case Kind::Tuple:
      return dump.items("[]", v.items(), depth,
                        [&](const Value& item) { append_json(out, item, style, work, depth + 1); });
    case Kind::Dict: return dump.dict(v.pairs(), depth);
    default: refuse("{} cannot be written as JSON", kind_name(v));
  }
}

Value read_json(std::string_view json, std::string_view what, Workspace& work) {
  JsonLoad load{JsonReader(json, what), json, work};
  load.reader.allow_nul();
  load.reader.allow_strings_of(json.size());
  const Value v = load.value();
  load.reader.end();
  return v;
}

}  // namespace weft::text::jinja
