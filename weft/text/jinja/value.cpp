#include "weft/text/jinja/value.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "weft/text/jinja/python_text.h"

namespace weft::text::jinja {

namespace {
using Kind = Value::Kind;
constexpr int kDeepest = 100;

void require_depth(int depth) {
  if (depth > kDeepest)
    throw Problem{"template.limit", "a value is nested more than 100 levels deep"};
}
}  // namespace

std::string_view kind_name(const Value& v) {
  switch (v.kind()) {
    case Kind::Undefined: return "undefined";
    case Kind::None: return "none";
    case Kind::Bool: return "bool";
    case Kind::Int: return "int";
    case Kind::Float: return "float";
    case Kind::Text: return "str";
    case Kind::List: return "list";
    case Kind::Tuple: return "tuple";
    case Kind::Dict: return "dict";
    case Kind::Namespace: return "namespace";
    case Kind::Loop: return "loop";
    case Kind::Function: return "function";
    case Kind::Cycler: return "cycler";
  }
  return "value";
}

bool truth(const Value& v) {
  switch (v.kind()) {
    case Kind::Undefined:
    case Kind::None: return false;
    case Kind::Bool:
    case Kind::Int: return v.as_integer() != 0;
    case Kind::Float: return v.as_real() != 0;
    case Kind::Text: return !v.as_text().empty();
    case Kind::List:
    case Kind::Tuple: return !v.items().empty();
    case Kind::Dict: return !v.pairs().empty();
    default: return true;
  }
}

namespace {
bool equal_numbers(const Value& a, const Value& b) {
  if (a.is_integer() && b.is_integer()) return a.as_integer() == b.as_integer();
  return a.as_real() == b.as_real();
}

bool equal_dicts(std::span<const Pair> a, const Value& b, Workspace& work, int depth) {
  if (a.size() != b.pairs().size()) return false;
  return std::all_of(a.begin(), a.end(), [&](const Pair& pair) {
    const Value* other = find(b, pair.key, work);
    return other != nullptr && equal(pair.value, *other, work, depth + 1);
  });
}
}  // namespace

bool equal(const Value& a, const Value& b, Workspace& work, int depth) {
  require_depth(depth);
  if (a.is_number() && b.is_number()) return equal_numbers(a, b);
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::Text:
      if (a.as_text().size() != b.as_text().size()) return false;
      work.spend_for(a.as_text().size());
      return a.as_text() == b.as_text();
    case Kind::List:
    case Kind::Tuple: {
      const auto x = a.items(), y = b.items();
      work.spend_for(x.size() * 16);
      return std::equal(
          x.begin(), x.end(), y.begin(), y.end(),
          [&](const Value& p, const Value& q) { return equal(p, q, work, depth + 1); });
    }
    case Kind::Dict: return equal_dicts(a.pairs(), b, work, depth);
    case Kind::Namespace: return a.as_namespace() == b.as_namespace();
    case Kind::Loop:
    case Kind::Cycler: return a.as_loop() == b.as_loop();
    case Kind::Function: return a.as_function() == b.as_function();
    default: return true;  // undefined, none
  }
}

bool less(const Value& a, const Value& b, Workspace& work, int depth) {
  require_depth(depth);
  if (a.is_integer() && b.is_integer()) return a.as_integer() < b.as_integer();
  if (a.is_number() && b.is_number()) return a.as_real() < b.as_real();
  if (a.is(Kind::Text) && b.is(Kind::Text)) {
    work.spend_for(std::min(a.as_text().size(), b.as_text().size()));
    return a.as_text() < b.as_text();  // UTF-8 sorts as code points do
  }
  if (a.kind() != b.kind() || !a.is_list())
    refuse("{} and {} have no order", kind_name(a), kind_name(b));
  const auto x = a.items(), y = b.items();
  for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
    work.spend(1);
    if (!equal(x[i], y[i], work, depth + 1)) return less(x[i], y[i], work, depth + 1);
  }
  return x.size() < y.size();
}

const Value* find(const Value& dict, const Value& key, Workspace& work) {
  const std::span<const Pair> pairs = dict.pairs();
  work.spend_for(pairs.size());
  for (const Pair& pair : pairs)
    if (equal(pair.key, key, work)) return &pair.value;
  return nullptr;
}

bool contains(const Value& in, const Value& what, Workspace& work) {
  switch (in.kind()) {
    case Kind::Undefined: return false;
    case Kind::Dict: return find(in, what, work) != nullptr;
    case Kind::Text:
      if (!what.is(Kind::Text)) refuse("'in <str>' takes a str, got {}", kind_name(what));
      work.spend_for(in.as_text().size());
      return in.as_text().find(what.as_text()) != std::string_view::npos;
    case Kind::List:
    case Kind::Tuple: {
      const auto items = in.items();
      work.spend_for(items.size() * 16);
      return std::any_of(items.begin(), items.end(),
                         [&](const Value& item) { return equal(item, what, work); });
    }
    default: refuse("nothing is in {}", kind_name(in));
  }
}

std::span<const Value> sequence(const Value& v, Workspace& work) {
  if (v.is_list()) return v.items();
  if (v.is(Kind::Undefined)) return {};
  std::vector<Value> items;
  if (v.is(Kind::Dict)) {
    work.require(v.pairs().size() * sizeof(Value));
    for (const Pair& pair : v.pairs()) items.push_back(pair.key);
  } else if (v.is(Kind::Text)) {
    work.require(v.as_text().size() * sizeof(Value));
    for (const std::string_view c : characters(v.as_text())) items.push_back(Value::text(c));
  } else {
    refuse("{} has no items to go through", kind_name(v));
  }
  work.spend_for(items.size() * 4);
  return work.keep(items);
}

int64_t length(const Value& v, Workspace& work) {
  switch (v.kind()) {
    case Kind::Undefined: return 0;
    case Kind::Text:
      work.spend_for(v.as_text().size());
      return static_cast<int64_t>(character_count(v.as_text()));
    case Kind::List:
    case Kind::Tuple: return static_cast<int64_t>(v.items().size());
    case Kind::Dict: return static_cast<int64_t>(v.pairs().size());
    default: refuse("{} has no length", kind_name(v));
  }
}

// repr(float): the shortest digits that read back as the same number; an exponent below 1e-4 and
// from 1e16 on (CPython's float_repr_style "short").
std::string real_text(double d) {
  if (std::isnan(d)) return "nan";
  if (std::isinf(d)) return d > 0 ? "inf" : "-inf";
  char buffer[64];
  const double size = std::fabs(d);
  const bool exponent = size != 0 && (size < 1e-4 || size >= 1e16);
  const auto end =
      std::to_chars(buffer, buffer + sizeof(buffer), d,
                    exponent ? std::chars_format::scientific : std::chars_format::fixed)
          .ptr;
  std::string text(buffer, end);
  if (!exponent && text.find('.') == std::string::npos) text += ".0";
  return text;
}

namespace {
template <class Item, class Append>
void append_items(TextBuilder& out, std::span<const Item> items, Append append) {
  for (size_t i = 0; i < items.size(); ++i) {
    if (i != 0) out.add(", ");
    append(items[i]);
  }
}

void append_sequence(TextBuilder& out, const Value& v, Workspace& work, int depth) {
  const bool tuple = v.is(Kind::Tuple);
  out.add(tuple ? "(" : "[");
  append_items(out, v.items(), [&](const Value& item) { append_repr(out, item, work, depth + 1); });
  if (tuple && v.items().size() == 1) out.add(",");
  out.add(tuple ? ")" : "]");
}

void append_dict(TextBuilder& out, const Value& v, Workspace& work, int depth) {
  out.add("{");
  append_items(out, v.pairs(), [&](const Pair& pair) {
    append_repr(out, pair.key, work, depth + 1);
    out.add(": ");
    append_repr(out, pair.value, work, depth + 1);
  });
  out.add("}");
}
}  // namespace

void append_repr(TextBuilder& out, const Value& v, Workspace& work, int depth) {
  require_depth(depth);
  work.spend(1);
  switch (v.kind()) {
    case Kind::Undefined: return out.add("Undefined");
    case Kind::None: return out.add("None");
    case Kind::Bool: return out.add(v.as_integer() != 0 ? "True" : "False");
    case Kind::Int: return out.add(std::to_string(v.as_integer()));
    case Kind::Float: return out.add(real_text(v.as_real()));
    case Kind::Text: work.spend_for(v.as_text().size()); return out.add(quoted(v.as_text()));
    case Kind::List:
    case Kind::Tuple: return append_sequence(out, v, work, depth);
    case Kind::Dict: return append_dict(out, v, work, depth);
    default: return out.add(strformat("<{}>", kind_name(v)));
  }
}

void append_text(TextBuilder& out, const Value& v, Workspace& work) {
  if (v.is(Kind::Undefined)) return;
  if (!v.is(Kind::Text)) return append_repr(out, v, work);
  work.spend_for(v.as_text().size());
  out.add(v.as_text());
}

std::string_view text_of(const Value& v, Workspace& work) {
  if (v.is(Kind::Text)) return v.as_text();
  TextBuilder out(work);
  append_text(out, v, work);
  return out.done().as_text();
}

}  // namespace weft::text::jinja
