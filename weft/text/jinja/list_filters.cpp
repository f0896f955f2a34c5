// Filters of lists and dicts.
#include <algorithm>
#include <numeric>

#include "weft/text/jinja/filter_call.h"
#include "weft/text/jinja/python_text.h"

namespace weft::text::jinja {

namespace {
using Kind = Value::Kind;

/// Texts without regard to case.
Value folded(const Value& v, bool case_sensitive, Workspace& work) {
  return case_sensitive || !v.is(Kind::Text) ? v : work.text(lower(v.as_text()));
}

/// What an item is sorted, compared, summed by: itself, or an attribute of it.
std::vector<Value> keys_of(const FilterCall& f, std::span<const Value> items,
                           const Value& attribute, bool case_sensitive) {
  std::vector<Value> keys;
  f.work.require(items.size() * sizeof(Value));
  for (const Value& item : items) {
    const Value v = attribute.is(Kind::None) ? item : f.evaluator.path(item, attribute);
    keys.push_back(folded(v, case_sensitive, f.work));
  }
  return keys;
}

/// The order of `keys`; those that are equal stay as they are. By a heap, which stays within its
/// bounds even where NaN has no order.
std::vector<size_t> order_of(const std::vector<Value>& keys, bool reverse, Workspace& work) {
  std::vector<size_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  const auto before = [&](size_t a, size_t b) {
    work.spend(1);
    const Value &x = keys[reverse ? b : a], &y = keys[reverse ? a : b];
    return less(x, y, work) || (a < b && !less(y, x, work));
  };
  std::make_heap(order.begin(), order.end(), before);
  std::sort_heap(order.begin(), order.end(), before);
  return order;
}

/// Lists of what each attribute is, of which there may be several, "a,b": those that are equal need
/// no order.
std::vector<Value> sort_keys(const FilterCall& f, std::span<const Value> items) {
  const Value attribute = f.argument(2, "attribute");
  const bool case_sensitive = f.flag(1, "case_sensitive", false);
  const std::string_view comma = ",";
  std::vector<Value> attributes = {attribute};
  if (attribute.is(Kind::Text)) {
    attributes.clear();
    for (const std::string_view name : split(attribute.as_text(), &comma, -1, false))
      attributes.push_back(Value::text(name));
  }
  std::vector<std::vector<Value>> of_each(items.size());
  for (const Value& one : attributes) {
    const auto keys = keys_of(f, items, one, case_sensitive);
    for (size_t i = 0; i < items.size(); ++i) of_each[i].push_back(keys[i]);
  }
  std::vector<Value> keys;
  for (const std::vector<Value>& all : of_each) keys.push_back(f.work.list(all));
  return keys;
}

Value sort(const FilterCall& f) {
  const auto items = f.items();
  const auto keys = sort_keys(f, items);
  std::vector<Value> sorted;
  for (const size_t i : order_of(keys, f.flag(0, "reverse", false), f.work))
    sorted.push_back(items[i]);
  return f.work.list(sorted);
}

/// Pairs of what an attribute is and the items that have it so.
Value group_by(const FilterCall& f) {
  const auto items = f.items();
  const Value attribute = f.argument(0, "attribute"), otherwise = f.argument(1, "default");
  if (attribute.is(Kind::None)) refuse("groupby takes an attribute's name");
  const bool case_sensitive = f.flag(2, "case_sensitive", false);
  std::vector<Value> own, keys, all;
  f.work.require(2 * items.size() * sizeof(Value));
  for (const Value& item : items) {
    const Value v = f.evaluator.path(item, attribute);
    own.push_back(v.is(Kind::Undefined) && !otherwise.is(Kind::None) ? otherwise : v);
    keys.push_back(folded(own.back(), case_sensitive, f.work));
  }
  const std::vector<size_t> order = order_of(keys, false, f.work);
  for (size_t at = 0; at < order.size();) {
    const size_t first = order[at];
    std::vector<Value> members;
    for (; at < order.size() && equal(keys[order[at]], keys[first], f.work); ++at)
      members.push_back(items[order[at]]);
    if (members.empty()) members.push_back(items[order[at++]]);  // NaN is not itself
    const Value two[] = {own[first], f.work.list(members)};
    all.push_back(Value::group(f.work.keep(two)));
  }
  return f.work.list(all);
}

Value dict_sort(const FilterCall& f) {
  if (!f.value.is(Kind::Dict)) refuse("dictsort takes a dict, got {}", kind_name(f.value));
  const bool by_value = f.text_argument(1, "by", "key") == "value";
  std::vector<Value> keys, pairs;
  for (const Pair& pair : f.value.pairs()) {
    keys.push_back(
        folded(by_value ? pair.value : pair.key, f.flag(0, "case_sensitive", false), f.work));
    const Value two[] = {pair.key, pair.value};
    pairs.push_back(f.work.tuple(two));
  }
  std::vector<Value> sorted;
  for (const size_t i : order_of(keys, f.flag(2, "reverse", false), f.work))
    sorted.push_back(pairs[i]);
  return f.work.list(sorted);
}

Value unique(const FilterCall& f) {
  const auto items = f.items();
  const auto keys =
      keys_of(f, items, f.argument(1, "attribute"), f.flag(0, "case_sensitive", false));
  std::vector<Value> kept, seen;
  for (size_t i = 0; i < items.size(); ++i) {
    f.work.spend(1 + seen.size());
    if (std::any_of(seen.begin(), seen.end(),
                    [&](const Value& v) { return equal(v, keys[i], f.work); }))
      continue;
    seen.push_back(keys[i]);
    kept.push_back(items[i]);
  }
  return f.work.list(kept);
}

Value extreme(const FilterCall& f, bool most) {
  const auto items = f.items();
  if (items.empty()) return Value::undefined("item");
  const auto keys =
      keys_of(f, items, f.argument(1, "attribute"), f.flag(0, "case_sensitive", false));
  size_t best = 0;
  for (size_t i = 1; i < keys.size(); ++i) {
    f.work.spend(1);
    if (most ? less(keys[best], keys[i], f.work) : less(keys[i], keys[best], f.work)) best = i;
  }
  return items[best];
}

Value sum(const FilterCall& f) {
  Value total = f.argument(1, "start", Value::integer(0));
  for (const Value& v : keys_of(f, f.items(), f.argument(0, "attribute"), true)) {
    f.work.spend(1);
    total = arithmetic("+", total, v, f.work);
  }
  return total;
}

Value join(const FilterCall& f) {
  const std::string_view between = f.text_argument(0, "d", "");
  TextBuilder out(f.work);
  bool first = true;
  for (const Value& v : keys_of(f, f.items(), f.argument(1, "attribute"), true)) {
    if (!first) out.add(between);
    first = false;
    append_text(out, v, f.work);
  }
  return out.done();
}

/// What is false has no items here, whatever it is: as jinja2's map and select have it.
std::span<const Value> items_or_none(const FilterCall& f) {
  return truth(f.value) ? f.items() : std::span<const Value>{};
}

Value map(const FilterCall& f) {
  std::vector<Value> made;
  const auto items = items_or_none(f);
  const Value* attribute = nullptr;
  Value otherwise = Value::none();
  for (const auto& [name, value] : f.arguments.named) {
    if (name == "attribute") attribute = &value;
    if (name == "default") otherwise = value;
  }
  if (attribute == nullptr && f.arguments.positional.empty())
    refuse("map takes a filter's name or attribute=");
  const Arguments rest = attribute == nullptr ? f.arguments.without(1) : Arguments{};
  f.work.require(items.size() * sizeof(Value));
  for (const Value& item : items) {
    f.work.spend(1);
    if (attribute == nullptr) {
      made.push_back(f.evaluator.filter(text_of(f.arguments.positional[0], f.work), item, rest));
      continue;
    }
    const Value v = f.evaluator.path(item, *attribute);
    made.push_back(v.is(Kind::Undefined) && !otherwise.is(Kind::None) ? otherwise : v);
  }
  return f.work.list(made);
}

/// select and reject, of items or of an attribute of theirs.
Value chosen(const FilterCall& f, bool by_attribute, bool wanted) {
  const size_t skipped = by_attribute ? 1 : 0;
  if (f.arguments.positional.size() < skipped) refuse("selectattr takes an attribute's name");
  const bool tested = f.arguments.positional.size() > skipped;
  const Arguments rest = f.arguments.without(skipped + 1);
  std::vector<Value> kept;
  for (const Value& item : items_or_none(f)) {
    f.work.spend(1);
    const Value v = by_attribute ? f.evaluator.path(item, f.arguments.positional[0]) : item;
    const bool holds =
        tested ? f.evaluator.test(text_of(f.arguments.positional[skipped], f.work), v, rest)
               : truth(v);
    if (holds == wanted) kept.push_back(item);
  }
  return f.work.list(kept);
}

Value items(const FilterCall& f) {
  if (f.value.is(Kind::Undefined)) return Value::list({});
  if (!f.value.is(Kind::Dict)) refuse("items takes a dict, got {}", kind_name(f.value));
  return f.evaluator.method(f.value, "items", {});
}

Value reversed(const FilterCall& f) {
  const auto items = f.items();
  std::vector<Value> all(items.rbegin(), items.rend());
  if (!f.value.is(Kind::Text)) return f.work.list(all);
  TextBuilder out(f.work);
  for (const Value& c : all) out.add(c.as_text());
  return out.done();
}

Value batch(const FilterCall& f) {
  const int64_t size = f.integer(0, "linecount", 1);
  const Value fill = f.argument(1, "fill_with");
  if (size < 1) refuse("a batch of {}", size);
  std::vector<Value> all, part;
  const auto flush = [&] {
    all.push_back(f.work.list(part));
    part.clear();
  };
  for (const Value& item : f.items()) {
    if (static_cast<int64_t>(part.size()) == size) flush();
    part.push_back(item);
  }
  if (!part.empty() && !fill.is(Kind::None)) {
    f.work.require(static_cast<size_t>(size) * sizeof(Value));
    part.resize(static_cast<size_t>(size), fill);
  }
  if (!part.empty()) flush();
  return f.work.list(all);
}

/// So many lists, the first ones longer by one where that does not come out even.
Value slice(const FilterCall& f) {
  const auto items = f.items();
  const int64_t count = f.integer(0, "slices", 0);
  const Value fill = f.argument(1, "fill_with");
  if (count < 1) refuse("{} slices", count);
  f.work.spend_for(static_cast<size_t>(count));
  f.work.require(static_cast<size_t>(count) * sizeof(Value));
  const size_t size = items.size() / static_cast<size_t>(count);
  const size_t longer = items.size() % static_cast<size_t>(count);
  std::vector<Value> all;
  for (size_t i = 0, at = 0; i < static_cast<size_t>(count); ++i) {
    const auto own = items.subspan(at, size + (i < longer ? 1 : 0));
    at += own.size();
    std::vector<Value> part(own.begin(), own.end());
    if (i >= longer && !fill.is(Kind::None)) part.push_back(fill);
    all.push_back(f.work.list(part));
  }
  return f.work.list(all);
}

Value with_default(const FilterCall& f) {
  const bool replaced =
      f.value.is(Kind::Undefined) || (f.flag(1, "boolean", false) && !truth(f.value));
  return replaced ? f.argument(0, "default_value", Value::text("")) : f.value;
}

Value at_end(const FilterCall& f, bool last) {
  const auto all = f.items();
  if (all.empty()) return Value::undefined("item");
  return last ? all.back() : all.front();
}

Value count(const FilterCall& f) { return Value::integer(length(f.value, f.work)); }

constexpr FilterRow kListFilters[] = {
    {"attr",
     [](const FilterCall& f) {
       const Value name = f.argument(0, "name");
       return f.value.is(Kind::Dict) ? Value::undefined("attribute")
                                     : f.evaluator.attribute(f.value, text_of(name, f.work));
     }},
    {"batch", batch},
    {"count", count},
    {"d", with_default},
    {"default", with_default},
    {"dictsort", dict_sort},
    {"first", [](const FilterCall& f) { return at_end(f, false); }},
    {"groupby", group_by},
    {"items", items},
    {"join", join},
    {"last", [](const FilterCall& f) { return at_end(f, true); }},
    {"length", count},
    {"list", [](const FilterCall& f) { return Value::list(f.items()); }},
    {"map", map},
    {"max", [](const FilterCall& f) { return extreme(f, true); }},
    {"min", [](const FilterCall& f) { return extreme(f, false); }},
    {"reject", [](const FilterCall& f) { return chosen(f, false, false); }},
    {"rejectattr", [](const FilterCall& f) { return chosen(f, true, false); }},
    {"reverse", reversed},
    {"select", [](const FilterCall& f) { return chosen(f, false, true); }},
    {"selectattr", [](const FilterCall& f) { return chosen(f, true, true); }},
    {"slice", slice},
    {"sort", sort},
    {"sum", sum},
    {"unique", unique},
};
}  // namespace

std::span<const FilterRow> list_filters() { return kListFilters; }

Value Evaluator::filter(std::string_view name, const Value& of, const Arguments& arguments) {
  const Deeper deeper(depth_);  // map's filters may be map
  for (const std::span<const FilterRow> rows : {text_filters(), list_filters()})
    for (const FilterRow& row : rows)
      if (row.name == name) return row.apply({*this, of, arguments, work_});
  refuse("there is no filter '{}'", name);
}

}  // namespace weft::text::jinja

namespace weft::text {
std::vector<std::string_view> JinjaTemplate::filters() {
  std::vector<std::string_view> names;
  for (const auto rows : {jinja::text_filters(), jinja::list_filters()})
    for (const jinja::FilterRow& row : rows) names.push_back(row.name);
  return names;
}
}  // namespace weft::text
