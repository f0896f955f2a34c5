// Methods of texts, lists and dicts: Python's, those that change nothing.
#include <algorithm>

#include "weft/base/utf8.h"
#include "weft/text/jinja/evaluator.h"
#include "weft/text/jinja/python_text.h"
#include "weft/text/unicode.h"

namespace weft::text::jinja {

namespace {
using Kind = Value::Kind;

struct MethodCall {
  Evaluator& evaluator;
  const Value& self;
  const Arguments& arguments;
  Workspace& work;

  std::string_view text() const { return self.as_text(); }
  Value argument(size_t place, std::string_view name, Value otherwise = Value::none()) const {
    return arguments.get(place, name, otherwise);
  }
  std::string_view text_argument(size_t place, std::string_view name) const {
    const Value v = argument(place, name);
    require_defined(v);
    if (!v.is(Kind::Text)) refuse("a str method takes a str, got {}", kind_name(v));
    return v.as_text();
  }
  int64_t integer(size_t place, std::string_view name, int64_t otherwise) const {
    return integer_of(argument(place, name, Value::integer(otherwise)), "an argument");
  }
  Value list_of(const std::vector<std::string_view>& parts) const {
    std::vector<Value> items;
    work.require(parts.size() * sizeof(Value));
    for (const std::string_view part : parts) items.push_back(Value::text(part));
    return work.list(items);
  }
};

template <std::string (*change)(std::string_view)>
Value changed(const MethodCall& m) {
  return m.work.text(change(m.text()));
}

template <Side side>
Value strip(const MethodCall& m) {
  if (m.argument(0, "chars").is(Kind::None)) return Value::text(stripped(m.text(), side));
  const std::string_view set = m.text_argument(0, "chars");
  return Value::text(stripped(m.text(), side, &set));
}

template <bool right>
Value split_text(const MethodCall& m) {
  m.work.spend_for(m.text().size() * 16);
  m.work.require(m.text().size() * sizeof(Value));
  const int64_t most = m.integer(1, "maxsplit", -1);
  if (m.argument(0, "sep").is(Kind::None)) return m.list_of(split(m.text(), nullptr, most, right));
  const std::string_view separator = m.text_argument(0, "sep");
  if (separator.empty()) refuse("an empty separator");
  return m.list_of(split(m.text(), &separator, most, right));
}

/// The part of the text that start and end leave, in bytes.
std::string_view part(const MethodCall& m) {
  const Value from = m.argument(1, "start"), to = m.argument(2, "end");
  if (from.is(Kind::None) && to.is(Kind::None)) return m.text();
  return sliced(m.self, from, to, Value::none(), m.work).as_text();
}

template <bool begins>
Value has_at_end(const MethodCall& m) {
  const std::string_view text = part(m);
  const auto fits = [&](const Value& v) {
    if (!v.is(Kind::Text)) refuse("startswith and endswith take a str, got {}", kind_name(v));
    return begins ? text.starts_with(v.as_text()) : text.ends_with(v.as_text());
  };
  const Value given = m.argument(0, "prefix");
  require_defined(given);
  if (!given.is(Kind::Tuple)) return Value::boolean(fits(given));
  return Value::boolean(std::any_of(given.items().begin(), given.items().end(), fits));
}

template <bool right, bool must>
Value find_text(const MethodCall& m) {
  const std::string_view text = part(m), what = m.text_argument(0, "sub");
  m.work.spend_for(text.size());
  const size_t at = right ? text.rfind(what) : text.find(what);
  if (at == std::string_view::npos) {
    if (must) refuse("the text does not have '{}'", what.substr(0, 40));
    return Value::integer(-1);
  }
  int64_t before = 0;
  if (const Value from = m.argument(1, "start"); !from.is(Kind::None)) {
    const int64_t size = length(m.self, m.work), start = integer_of(from, "start");
    before = std::clamp<int64_t>(start < 0 ? start + size : start, 0, size);
  }
  return Value::integer(before + static_cast<int64_t>(character_count(text.substr(0, at))));
}

Value replace(const MethodCall& m) {
  const std::string_view text = m.text(), old = m.text_argument(0, "old");
  const std::string_view made = m.text_argument(1, "new");
  int64_t left = m.integer(2, "count", -1);
  TextBuilder out(m.work);
  m.work.spend_for(text.size());
  size_t at = 0;
  if (old.empty()) {
    for (const std::string_view c : characters(text)) {
      if (left != 0) out.add(made);
      if (left > 0) --left;
      out.add(c);
    }
    if (left != 0) out.add(made);
    return out.done();
  }
  for (size_t found; left != 0 && (found = text.find(old, at)) != std::string_view::npos; --left) {
    out.add(text.substr(at, found - at));
    out.add(made);
    at = found + old.size();
  }
  out.add(text.substr(at));
  return out.done();
}

Value count_text(const MethodCall& m) {
  const std::string_view text = part(m), what = m.text_argument(0, "sub");
  m.work.spend_for(text.size());
  if (what.empty()) return Value::integer(static_cast<int64_t>(character_count(text)) + 1);
  int64_t count = 0;
  for (size_t at = 0; (at = text.find(what, at)) != std::string_view::npos; at += what.size())
    ++count;
  return Value::integer(count);
}

Value join(const MethodCall& m) {
  TextBuilder out(m.work);
  bool first = true;
  for (const Value& v : sequence(m.argument(0, "iterable"), m.work)) {
    if (!v.is(Kind::Text)) refuse("join takes texts, got {}", kind_name(v));
    if (!first) out.add(m.text());
    first = false;
    append_text(out, v, m.work);
  }
  return out.done();
}

template <bool right>
Value partition(const MethodCall& m) {
  const std::string_view text = m.text(), by = m.text_argument(0, "sep");
  if (by.empty()) refuse("an empty separator");
  m.work.spend_for(text.size());
  const size_t at = right ? text.rfind(by) : text.find(by);
  Value three[3] = {Value::text(text), Value::text(""), Value::text("")};
  if (at != std::string_view::npos) {
    three[0] = Value::text(text.substr(0, at));
    three[1] = Value::text(by);
    three[2] = Value::text(text.substr(at + by.size()));
  } else if (right) {
    std::swap(three[0], three[2]);
  }
  return m.work.tuple(three);
}

template <bool prefix>
Value without(const MethodCall& m) {
  const std::string_view text = m.text(), end = m.text_argument(0, "end");
  if (prefix && text.starts_with(end)) return Value::text(text.substr(end.size()));
  if (!prefix && text.ends_with(end)) return Value::text(text.substr(0, text.size() - end.size()));
  return m.self;
}

bool is_letter(char32_t c) { return is_in(c, kLetters); }
bool is_digit(char32_t c) { return is_in(c, kDecimalNumbers); }
bool is_number(char32_t c) { return is_in(c, kNumbers); }
bool is_letter_or_number(char32_t c) { return is_in(c, kLetters | kNumbers); }
template <bool (*holds)(char32_t)>
Value all_are(const MethodCall& m) {
  m.work.spend_for(m.text().size());
  bool all = !m.text().empty();
  for (size_t at = 0; at < m.text().size();) all = holds(next_code_point(m.text(), at)) && all;
  return Value::boolean(all);
}

template <std::string (*change)(std::string_view)>
Value cased_as(const MethodCall& m) {
  m.work.spend_for(m.text().size() * 4);
  return Value::boolean(is_cased_as(m.text(), change));
}

template <bool left, bool both>
Value padded(const MethodCall& m) {
  const int64_t spaces = m.integer(0, "width", 0) - length(m.self, m.work);
  if (spaces <= 0) return m.self;
  const Value fill = m.argument(1, "fillchar", Value::text(" "));
  // What str.center does with an odd one.
  const int64_t middle = spaces / 2 + (spaces & m.integer(0, "width", 0) & 1);
  const int64_t before = both ? middle : left ? spaces : 0;
  return arithmetic(
      "+", arithmetic("+", arithmetic("*", fill, Value::integer(before), m.work), m.self, m.work),
      arithmetic("*", fill, Value::integer(spaces - before), m.work), m.work);
}

Value dict_items(const MethodCall& m) {
  std::vector<Value> items;
  for (const Pair& pair : m.self.pairs()) {
    const Value two[] = {pair.key, pair.value};
    items.push_back(m.work.tuple(two));
  }
  return m.work.list(items);
}

/// Zeros behind the sign, if there is one.
Value filled_with_zeros(const MethodCall& m) {
  const std::string_view text = m.text();
  const int64_t wanted = m.integer(0, "width", 0), size = length(m.self, m.work);
  if (wanted <= size) return m.self;
  const bool sign = text.starts_with('+') || text.starts_with('-');
  TextBuilder out(m.work);
  out.add(text.substr(0, sign ? 1 : 0));
  out.add(static_cast<size_t>(wanted - size), '0');
  out.add(text.substr(sign ? 1 : 0));
  return out.done();
}

Value dict_values(const MethodCall& m) {
  std::vector<Value> values;
  for (const Pair& pair : m.self.pairs()) values.push_back(pair.value);
  return m.work.list(values);
}

Value dict_get(const MethodCall& m) {
  const Value* found = find(m.self, m.argument(0, "key"), m.work);
  return found != nullptr ? *found : m.argument(1, "default");
}

Value list_index(const MethodCall& m) {
  const auto items = m.self.items();
  const Value what = m.argument(0, "value");
  for (size_t i = 0; i < items.size(); ++i)
    if (equal(items[i], what, m.work)) return Value::integer(static_cast<int64_t>(i));
  refuse("the list does not have what index() looks for");
}

Value list_count(const MethodCall& m) {
  const Value what = m.argument(0, "value");
  int64_t count = 0;
  for (const Value& item : m.self.items()) count += equal(item, what, m.work) ? 1 : 0;
  return Value::integer(count);
}

Value loop_cycle(const MethodCall& m) {
  const auto& values = m.arguments.positional;
  if (values.empty()) refuse("cycle takes values");
  return values[m.self.as_loop()->at % values.size()];
}

/// Whether the values are others than the last time.
Value loop_changed(const MethodCall& m) {
  Loop& loop = *m.self.as_loop();
  const auto& values = m.arguments.positional;
  const bool same = loop.has_seen &&
                    std::equal(values.begin(), values.end(), loop.seen.begin(), loop.seen.end(),
                               [&](const Value& a, const Value& b) { return equal(a, b, m.work); });
  loop.seen = m.work.keep(values);
  loop.has_seen = true;
  return Value::boolean(!same);
}

Value cycler_next(const MethodCall& m) {
  Loop& state = *m.self.as_loop();
  return state.items[std::exchange(state.at, (state.at + 1) % state.items.size())];
}

Value cycler_reset(const MethodCall& m) {
  m.self.as_loop()->at = 0;
  return Value::none();
}

Value forbidden(const MethodCall&) {
  refuse("templates cannot change a list or a dict; use namespace() or concatenation");
}

struct MethodRow {
  Kind kind;
  std::string_view name;
  Value (*call)(const MethodCall&);
};
constexpr MethodRow kMethods[] = {
    {Kind::Text, "capitalize", changed<capitalized>},
    {Kind::Text, "center", padded<true, true>},
    {Kind::Text, "count", count_text},
    {Kind::Text, "endswith", has_at_end<false>},
    {Kind::Text, "find", find_text<false, false>},
    {Kind::Text, "format",
     [](const MethodCall& m) { return formatted(m.text(), m.arguments, m.evaluator); }},
    {Kind::Text, "index", find_text<false, true>},
    {Kind::Text, "isalnum", all_are<is_letter_or_number>},
    {Kind::Text, "isalpha", all_are<is_letter>},
    {Kind::Text, "isascii",
     [](const MethodCall& m) {
       return Value::boolean(std::ranges::all_of(m.text(), [](char c) { return c >= 0; }));
     }},
    {Kind::Text, "isdecimal", all_are<is_digit>},
    {Kind::Text, "isdigit", all_are<is_digit>},
    {Kind::Text, "islower", cased_as<lower>},
    {Kind::Text, "isnumeric", all_are<is_number>},
    {Kind::Text, "isspace", all_are<is_python_space>},
    {Kind::Text, "isupper", cased_as<upper>},
    {Kind::Text, "join", join},
    {Kind::Text, "ljust", padded<false, false>},
    {Kind::Text, "lower", changed<lower>},
    {Kind::Text, "lstrip", strip<Side::Left>},
    {Kind::Text, "partition", partition<false>},
    {Kind::Text, "removeprefix", without<true>},
    {Kind::Text, "removesuffix", without<false>},
    {Kind::Text, "replace", replace},
    {Kind::Text, "rfind", find_text<true, false>},
    {Kind::Text, "rindex", find_text<true, true>},
    {Kind::Text, "rjust", padded<true, false>},
    {Kind::Text, "rpartition", partition<true>},
    {Kind::Text, "rsplit", split_text<true>},
    {Kind::Text, "rstrip", strip<Side::Right>},
    {Kind::Text, "split", split_text<false>},
    {Kind::Text, "splitlines",
     [](const MethodCall& m) {
       return m.list_of(lines(m.text(), truth(m.argument(0, "keepends"))));
     }},
    {Kind::Text, "startswith", has_at_end<true>},
    {Kind::Text, "strip", strip<Side::Both>},
    {Kind::Text, "swapcase", changed<swapped_case>},
    {Kind::Text, "title", changed<title>},
    {Kind::Text, "upper", changed<upper>},
    {Kind::Text, "zfill", filled_with_zeros},
    {Kind::Dict, "copy", [](const MethodCall& m) { return m.self; }},
    {Kind::Dict, "get", dict_get},
    {Kind::Dict, "items", dict_items},
    {Kind::Dict, "keys", [](const MethodCall& m) { return Value::list(sequence(m.self, m.work)); }},
    {Kind::Dict, "values", dict_values},
    {Kind::Dict, "pop", forbidden},
    {Kind::Dict, "popitem", forbidden},
    {Kind::Dict, "clear", forbidden},
    {Kind::Dict, "setdefault", forbidden},
    {Kind::Dict, "update", forbidden},
    {Kind::List, "append", forbidden},
    {Kind::List, "clear", forbidden},
    {Kind::List, "copy", [](const MethodCall& m) { return m.self; }},
    {Kind::List, "count", list_count},
    {Kind::List, "extend", forbidden},
    {Kind::List, "index", list_index},
    {Kind::List, "insert", forbidden},
    {Kind::List, "pop", forbidden},
    {Kind::List, "remove", forbidden},
    {Kind::List, "reverse", forbidden},
    {Kind::List, "sort", forbidden},
    {Kind::Loop, "changed", loop_changed},
    {Kind::Loop, "cycle", loop_cycle},
    {Kind::Cycler, "next", cycler_next},
    {Kind::Cycler, "reset", cycler_reset},
    {Kind::Tuple, "count", list_count},
    {Kind::Tuple, "index", list_index},
};

const MethodRow* method_row(Kind kind, std::string_view name) {
  const auto* row = std::find_if(std::begin(kMethods), std::end(kMethods), [&](const MethodRow& r) {
    return r.kind == kind && r.name == name;
  });
  return row == std::end(kMethods) ? nullptr : row;
}
}  // namespace

bool has_method(const Value& of, std::string_view name) {
  return method_row(of.kind(), name) != nullptr;
}

Value Evaluator::method(const Value& of, std::string_view name, const Arguments& arguments) {
  const MethodRow* row = method_row(of.kind(), name);
  if (row == nullptr) refuse("{} has no method '{}'", kind_name(of), name);
  work_.spend_for(of.is(Kind::Text) ? of.as_text().size() : 1);
  return row->call({*this, of, arguments, work_});
}

}  // namespace weft::text::jinja
