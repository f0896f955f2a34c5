// str.format and %: Python's, for the types that templates have.
#include <algorithm>
#include <cmath>

#include "weft/text/jinja/evaluator.h"
#include "weft/text/jinja/python_text.h"

namespace weft::text::jinja {

namespace {
using Kind = Value::Kind;
constexpr int64_t kWidest = 1000;

/// [[fill]align][sign][0][width][,][.precision][type]
struct Specification {
  std::string_view fill = " ";
  char align = '\0', sign = '-', type = '\0';
  bool commas = false;
  int64_t width = 0, precision = -1;
};

int64_t digits_at(std::string_view text, size_t& at) {
  int64_t value = 0;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
    value = value * 10 + (text[at] - '0');
    if (value > kWidest) refuse("a width of more than {}", kWidest);
  }
  return value;
}

bool is_align(std::string_view c) { return c == "<" || c == ">" || c == "^" || c == "="; }

Specification specification(std::string_view text) {
  Specification s;
  const std::vector<std::string_view> all = characters(text);
  size_t at = 0;
  if (all.size() > 1 && is_align(all[1])) {
    s.fill = all[0];
    s.align = all[1][0];
    at = all[0].size() + 1;
  } else if (!all.empty() && is_align(all[0])) {
    s.align = all[0][0];
    at = 1;
  }
  if (at < text.size() && std::string_view("+- ").find(text[at]) != std::string_view::npos)
    s.sign = text[at++];
  if (at < text.size() && text[at] == '0' && s.align == '\0') {
    s.fill = "0";
    s.align = '=';
  }
  s.width = digits_at(text, at);
  if (at < text.size() && text[at] == ',') s.commas = ++at != 0;
  if (at < text.size() && text[at] == '.') s.precision = digits_at(text, ++at);
  if (at < text.size()) s.type = text[at++];
  if (at != text.size()) refuse("'{}' is no format", text);
  return s;
}

std::string with_commas(std::string digits) {
  const size_t end = std::min(digits.find_first_of(".e"), digits.size());
  for (size_t at = end; at > 3; at -= 3) digits.insert(at - 3, 1, ',');
  return digits;
}

/// The digits of a number without its sign.
std::string digits_of(const Value& v, const Specification& s) {
  if (v.is_integer() && std::string_view("\0dnxXob", 7).find(s.type) != std::string_view::npos) {
    const int64_t i = v.as_integer();
    const uint64_t size = i < 0 ? 0 - static_cast<uint64_t>(i) : static_cast<uint64_t>(i);
    if (s.type == 'x') return strformat("{:x}", size);
    if (s.type == 'X') return strformat("{:X}", size);
    if (s.type == 'o') return strformat("{:o}", size);
    if (s.type == 'b') return strformat("{:b}", size);
    return std::to_string(size);
  }
  const double d = std::fabs(v.as_real());
  const auto precision = static_cast<int>(s.precision < 0 ? 6 : s.precision);
  switch (s.type) {
    case '\0':
      if (s.precision < 0) return real_text(d);
      return strformat("{:.{}g}", d, std::max(precision, 1));
    case 'f':
    case 'F': return strformat("{:.{}f}", d, precision);
    case 'e': return strformat("{:.{}e}", d, precision);
    case 'g': return strformat("{:.{}g}", d, std::max(precision, 1));
    case '%': return strformat("{:.{}f}%", d * 100, precision);
    default: refuse("{} has no format '{}'", kind_name(v), s.type);
  }
}

void append_padded(TextBuilder& out, const Specification& s, std::string_view sign,
                   std::string_view body, bool number) {
  const auto size = static_cast<int64_t>(sign.size() + character_count(body));
  const int64_t spaces = std::max<int64_t>(s.width - size, 0);
  const char align = s.align != '\0' ? s.align : number ? '>' : '<';
  const int64_t left = align == '>' ? spaces : align == '^' ? spaces / 2 : 0;
  const auto fill = [&](int64_t count) {
    for (int64_t i = 0; i < count; ++i) out.add(s.fill);
  };
  fill(left);
  out.add(sign);
  if (align == '=') fill(spaces);
  out.add(body);
  if (align != '=') fill(spaces - left);
}

void append_formatted(TextBuilder& out, const Value& v, const Specification& s, Workspace& work) {
  if (!v.is_number() || (v.is(Kind::Bool) && s.type == '\0')) {
    require_defined(v);
    if (s.type != '\0' && s.type != 's') refuse("{} has no format '{}'", kind_name(v), s.type);
    std::string_view text = text_of(v, work);
    if (s.precision >= 0)
      text =
          sliced(Value::text(text), Value::none(), Value::integer(s.precision), Value::none(), work)
              .as_text();
    return append_padded(out, s, "", text, false);
  }
  const bool negative = v.is(Kind::Float) ? std::signbit(v.as_real()) : v.as_integer() < 0;
  const std::string_view sign = negative ? "-" : s.sign == '+' ? "+" : s.sign == ' ' ? " " : "";
  std::string digits = digits_of(v, s);
  append_padded(out, s, sign, s.commas ? with_commas(std::move(digits)) : digits, true);
}

/// The value that a field names: "", "0", "name", "name.a", "name[a]".
Value field_value(std::string_view field, const Arguments& arguments, Evaluator& evaluator,
                  size_t& next) {
  const size_t end = std::min(field.find_first_of(".["), field.size());
  const std::string_view first = field.substr(0, end);
  const bool number = first.find_first_not_of("0123456789") == std::string_view::npos;
  if (first.size() > 6 && number) refuse("there is no argument {}", first);
  const Value* v = nullptr;
  if (number) {
    const size_t place = first.empty() ? next++ : std::stoul(std::string(first));
    if (place < arguments.positional.size()) v = &arguments.positional[place];
  } else {
    for (const auto& [name, value] : arguments.named)
      if (name == first) v = &value;
  }
  if (v == nullptr) refuse("format has no argument for '{{{}}}'", field);
  if (end == field.size()) return *v;
  std::string path(field.substr(end + 1));
  std::erase(path, ']');
  std::ranges::replace(path, '[', '.');
  return evaluator.path(*v, Value::text(path));
}
}  // namespace

Value formatted(std::string_view pattern, const Arguments& arguments, Evaluator& evaluator) {
  Workspace& work = evaluator.work();
  TextBuilder out(work);
  size_t next = 0;
  for (size_t at = 0; at < pattern.size(); ++at) {
    const char c = pattern[at];
    if (c != '{' && c != '}') {
      out.add(pattern.substr(at, 1));
      continue;
    }
    if (at + 1 < pattern.size() && pattern[at + 1] == c) {
      out.add(pattern.substr(at++, 1));
      continue;
    }
    const size_t end = pattern.find('}', at);
    if (c == '}' || end == std::string_view::npos) refuse("a single '{}' in a format", c);
    std::string_view field = pattern.substr(at + 1, end - at - 1);
    const size_t colon = std::min(field.find(':'), field.size());
    const Specification s =
        specification(colon < field.size() ? field.substr(colon + 1) : std::string_view{});
    field = field.substr(0, colon);
    const bool repr = field.ends_with("!r");
    if (repr || field.ends_with("!s")) field.remove_suffix(2);
    const Value v = field_value(field, arguments, evaluator, next);
    TextBuilder text(work);
    if (repr) append_repr(text, v, work);
    const Value shown = repr ? text.done() : v;
    if (shown.is(Kind::Undefined))
      append_padded(out, s, "", "", false);
    else
      append_formatted(out, shown, s, work);
    at = end;
  }
  return out.done();
}

namespace {
/// The text in the parentheses at `at`, which stands behind them then.
std::string_view name_at(std::string_view pattern, size_t& at) {
  const size_t end = pattern.find(')', at);
  if (end == std::string_view::npos) refuse("a format's name has no end");
  const std::string_view name = pattern.substr(at + 1, end - at - 1);
  at = end + 1;
  return name;
}

Value member(std::span<const Value> values, std::string_view name, Workspace& work) {
  if (values.size() != 1 || !values[0].is(Kind::Dict)) refuse("a format with names takes a dict");
  const Value* found = find(values[0], Value::text(name), work);
  if (found == nullptr) refuse("format has no argument for '{}'", name);
  return *found;
}
}  // namespace

// %[(name)][flags][width][.precision]type of printf-style formatting.
Value printf_formatted(std::string_view pattern, std::span<const Value> values, Workspace& work) {
  TextBuilder out(work);
  size_t next = 0;
  for (size_t at = 0; at < pattern.size(); ++at) {
    if (pattern[at] != '%') {
      out.add(pattern.substr(at, 1));
      continue;
    }
    Specification s;
    s.align = '>';
    ++at;
    const bool named = at < pattern.size() && pattern[at] == '(';
    const std::string_view name = named ? name_at(pattern, at) : std::string_view();
    for (; at < pattern.size(); ++at) {
      const char flag = pattern[at];
      if (flag == '-')
        s.align = '<';
      else if (flag == '0' && s.align != '<')
        s.fill = "0", s.align = '=';
      else if (flag == '+' || flag == ' ')
        s.sign = flag;
      else
        break;
    }
    s.width = digits_at(pattern, at);
    if (at < pattern.size() && pattern[at] == '.') s.precision = digits_at(pattern, ++at);
    if (at >= pattern.size()) refuse("a format ends in the middle");
    s.type = pattern[at];
    if (s.type == '%') {
      out.add("%");
      continue;
    }
    if (!named && next >= values.size()) refuse("a format has more fields than arguments");
    Value v = named ? member(values, name, work) : values[next++];
    if (s.type == 's' || s.type == 'r') {
      TextBuilder text(work);
      s.type == 's' ? append_text(text, v, work) : append_repr(text, v, work);
      v = text.done();
      s.type = 's';
      if (s.fill == "0") s.fill = " ", s.align = '>';
    } else if (!v.is_number()) {
      refuse("%{} takes a number, got {}", s.type, kind_name(v));
    } else if (s.type == 'd' || s.type == 'i' || s.type == 'u') {
      s.type = 'd';
      if (v.is(Kind::Float))
        v = Value::integer(
            static_cast<int64_t>(std::clamp(std::trunc(v.as_real()), -9.2e18, 9.2e18)));
    }
    append_formatted(out, v, s, work);
  }
  // Python asks whether the one value has items that names could find.
  const bool may_be_unused =
      values.size() == 1 && (values[0].is(Kind::Dict) || values[0].is(Kind::List));
  if (next < values.size() && !may_be_unused) refuse("a format has fewer fields than arguments");
  return out.done();
}

}  // namespace weft::text::jinja
