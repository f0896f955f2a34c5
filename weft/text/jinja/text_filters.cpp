// Filters of texts and numbers.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "weft/text/jinja/filter_call.h"
#include "weft/text/jinja/python_text.h"

namespace weft::text::jinja {

namespace {
using Kind = Value::Kind;

template <std::string (*change)(std::string_view)>
Value changed(const FilterCall& f) {
  f.work.spend_for(f.text().size() * 4);
  return f.work.text(change(f.text()));
}

Value trim(const FilterCall& f) {
  const Value set = f.argument(0, "chars");
  f.work.spend_for(f.text().size());
  if (set.is(Kind::None)) return Value::text(stripped(f.text(), Side::Both));
  const std::string_view characters = text_of(set, f.work);
  return Value::text(stripped(f.text(), Side::Both, &characters));
}

Value replace(const FilterCall& f) {
  Arguments three;
  three.positional = {Value::text(f.text_argument(0, "old", "")),
                      Value::text(f.text_argument(1, "new", ""))};
  const Value count = f.argument(2, "count");
  if (!count.is(Kind::None)) three.positional.push_back(count);
  return f.evaluator.method(Value::text(f.text()), "replace", three);
}

Value indent(const FilterCall& f) {
  const Value width = f.argument(0, "width", Value::integer(4));
  const int64_t count = width.is(Kind::Text) ? 0 : integer_of(width, "width");
  f.work.require(static_cast<size_t>(std::max<int64_t>(count, 0)));
  const std::string margin =
      width.is(Kind::Text) ? std::string(width.as_text())
                           : std::string(static_cast<size_t>(std::max<int64_t>(count, 0)), ' ');
  const bool first = f.flag(1, "first", false), blank = f.flag(2, "blank", false);
  TextBuilder out(f.work);
  const std::string text = std::string(f.text()) + "\n";  // as jinja2 does
  const std::vector<std::string_view> all = lines(text, false);
  for (size_t i = 0; i < all.size(); ++i) {
    f.work.spend_for(all[i].size() + margin.size());
    if (i != 0) out.add("\n");
    if (i == 0 ? first : (blank || !all[i].empty())) out.add(margin);
    out.add(all[i]);
  }
  return out.done();
}

Value escape(const FilterCall& f) {
  TextBuilder out(f.work);
  f.work.spend_for(f.text().size());
  for (const char c : f.text()) {
    switch (c) {
      case '&': out.add("&amp;"); break;
      case '<': out.add("&lt;"); break;
      case '>': out.add("&gt;"); break;
      case '\'': out.add("&#39;"); break;
      case '"': out.add("&#34;"); break;
      default: out.add(std::string_view(&c, 1));
    }
  }
  return out.done();
}

Value to_json(const FilterCall& f) {
  JsonStyle style;
  style.ascii = f.flag(0, "ensure_ascii", false);
  const Value indent = f.argument(1, "indent"), separators = f.argument(2, "separators");
  if (!indent.is(Kind::None)) {
    const int64_t width = integer_of(indent, "indent");
    if (width > 100) refuse("an indent of more than 100");
    style.indent = static_cast<int>(std::max<int64_t>(width, 0));
    style.item_separator = ",";
  }
  if (!separators.is(Kind::None)) {
    const auto two = sequence(separators, f.work);
    if (two.size() != 2) refuse("separators are two texts");
    style.item_separator = text_of(two[0], f.work);
    style.key_separator = text_of(two[1], f.work);
  }
  style.sort_keys = f.flag(3, "sort_keys", false);
  TextBuilder out(f.work);
  append_json(out, f.value, style, f.work);
  return out.done();
}

/// float() of a text; false where it is none.
bool read_real(std::string_view text, double& out) {
  text = stripped(text, Side::Both);
  if (text.empty() || text.size() > 400) return false;
  if (text[0] == '+') text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

Value truncated(double d, Value otherwise) {
  if (!(std::fabs(d) < 9.2e18)) return otherwise;
  return Value::integer(static_cast<int64_t>(d));
}

Value to_integer(const FilterCall& f) {
  const Value otherwise = f.argument(0, "default", Value::integer(0));
  if (f.value.is_integer()) return Value::integer(f.value.as_integer());
  if (f.value.is(Kind::Float)) return truncated(f.value.as_real(), otherwise);
  if (!f.value.is(Kind::Text)) return otherwise;
  const auto base = static_cast<int>(std::clamp<int64_t>(f.integer(1, "base", 10), 2, 36));
  std::string_view text = stripped(f.text(), Side::Both);
  if (!text.empty() && text[0] == '+') text.remove_prefix(1);
  if (base == 16 && (text.starts_with("0x") || text.starts_with("0X"))) text.remove_prefix(2);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error == std::errc() && end == text.data() + text.size()) return Value::integer(value);
  double real = 0;
  return read_real(text, real) ? truncated(real, otherwise) : otherwise;
}

Value to_real(const FilterCall& f) {
  if (f.value.is_number()) return Value::real(f.value.as_real());
  double real = 0;
  if (f.value.is(Kind::Text) && read_real(f.text(), real)) return Value::real(real);
  return f.argument(0, "default", Value::real(0));
}

Value absolute(const FilterCall& f) {
  require_defined(f.value);
  if (!f.value.is_number()) refuse("abs takes a number, got {}", kind_name(f.value));
  if (f.value.is(Kind::Float)) return Value::real(std::fabs(f.value.as_real()));
  return f.value.as_integer() < 0 ? arithmetic("-", Value::integer(0), f.value, f.work)
                                  : Value::integer(f.value.as_integer());
}

Value rounded(const FilterCall& f) {
  require_defined(f.value);
  if (!f.value.is_number()) refuse("round takes a number, got {}", kind_name(f.value));
  const int64_t digits = f.integer(0, "precision", 0);
  const std::string_view how = f.text_argument(1, "method", "common");
  if (digits < 0 || digits > 20) refuse("a precision of 0 to 20, got {}", digits);
  const double d = f.value.as_real();
  if (how == "common") {
    if (f.value.is_integer()) return Value::integer(f.value.as_integer());
    // Python rounds the decimal digits that the number has, half to even: as printf does.
    return Value::real(std::strtod(strformat("{:.{}f}", d, digits).c_str(), nullptr));
  }
  if (how != "ceil" && how != "floor") refuse("method is common, ceil or floor, got '{}'", how);
  const double scale = std::pow(10.0, static_cast<double>(digits));
  return Value::real((how == "ceil" ? std::ceil(d * scale) : std::floor(d * scale)) / scale);
}

Value format(const FilterCall& f) {
  if (!f.arguments.named.empty()) refuse("format takes no arguments with names");
  return printf_formatted(f.text(), f.arguments.positional, f.work);
}

Value word_count(const FilterCall& f) {
  f.work.spend_for(f.text().size() * 4);
  return Value::integer(static_cast<int64_t>(split(f.text(), nullptr, -1, false).size()));
}

Value centered(const FilterCall& f) {
  Arguments width;
  width.positional = {f.argument(0, "width", Value::integer(80))};
  return f.evaluator.method(Value::text(f.text()), "center", width);
}

Value truncated_text(const FilterCall& f) {
  const std::vector<std::string_view> all = characters(f.text());
  const int64_t most = f.integer(0, "length", 255), leeway = f.integer(3, "leeway", 5);
  const std::string_view end = f.text_argument(2, "end", "...");
  const auto end_size = static_cast<int64_t>(character_count(end));
  if (most < end_size || leeway < 0)
    refuse("a length of {} with an end of {}, a leeway of {}", most, end_size, leeway);
  f.work.spend_for(f.text().size());
  if (std::ssize(all) - most <= leeway) return Value::text(f.text());
  const size_t kept = static_cast<size_t>(most - end_size);
  std::string_view text = kept == 0 ? "" : f.text().substr(0, all[kept].data() - all[0].data());
  if (!f.flag(1, "killwords", false)) text = text.substr(0, text.rfind(' '));
  TextBuilder out(f.work);
  out.add(text);
  out.add(end);
  return out.done();
}

/// Percent-encoded (RFC 3986); `form`: as a part of a form, where a space is a plus.
void add_encoded(TextBuilder& out, std::string_view text, bool form) {
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("_.-~").find(c) != std::string_view::npos;
    if (plain || (c == '/' && !form))
      out.add(std::string_view(&c, 1));
    else if (c == ' ' && form)
      out.add("+");
    else
      out.add(strformat("%{:02X}", static_cast<unsigned char>(c)));
  }
}

/// A text, or a dict or pairs as a query.
Value url_encoded(const FilterCall& f) {
  TextBuilder out(f.work);
  const bool query = f.value.is(Kind::Dict) || f.value.is_list();
  if (!query) add_encoded(out, f.text(), false);
  const Value pairs = f.value.is(Kind::Dict) ? f.evaluator.method(f.value, "items", {}) : f.value;
  for (const Value& pair : query ? sequence(pairs, f.work) : std::span<const Value>{}) {
    const auto two = sequence(pair, f.work);
    if (two.size() != 2) refuse("urlencode takes pairs, got one of {}", two.size());
    if (!out.text().empty()) out.add("&");
    add_encoded(out, text_of(two[0], f.work), true);
    out.add("=");
    add_encoded(out, text_of(two[1], f.work), true);
  }
  f.work.spend_for(out.text().size());
  return out.done();
}

/// llama.cpp's: jinja2 has none of that name.
Value from_json(const FilterCall& f) {
  f.work.spend_for(f.text().size());
  return read_json(f.work.keep(f.text()), "fromjson", f.work);
}

constexpr FilterRow kTextFilters[] = {
    {"abs", absolute},
    {"capitalize", changed<capitalized>},
    {"center", centered},
    {"e", escape},
    {"escape", escape},
    {"float", to_real},
    {"forceescape", escape},
    {"format", format},
    {"fromjson", from_json},
    {"indent", indent},
    {"int", to_integer},
    {"lower", changed<lower>},
    {"replace", replace},
    {"round", rounded},
    {"safe", [](const FilterCall& f) { return Value::text(f.text()); }},
    {"string", [](const FilterCall& f) { return Value::text(f.text()); }},
    {"title", changed<filter_title>},
    {"tojson", to_json},
    {"trim", trim},
    {"truncate", truncated_text},
    {"upper", changed<upper>},
    {"urlencode", url_encoded},
    {"wordcount", word_count},
    {"wordwrap", word_wrapped},
};
}  // namespace

std::span<const FilterRow> text_filters() { return kTextFilters; }

}  // namespace weft::text::jinja
