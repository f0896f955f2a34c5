// What a template can call by name, and what it can ask of a loop.
#include <algorithm>
#include <chrono>
#include <ctime>

#include "weft/text/jinja/evaluator.h"

namespace weft::text::jinja {

namespace {
using Kind = Value::Kind;

Value make_range(Evaluator& evaluator, const Arguments& a) {
  const size_t count = a.positional.size();
  if (count < 1 || count > 3) refuse("range takes one to three numbers, got {}", count);
  int64_t bounds[3];
  for (size_t i = 0; i < count; ++i) bounds[i] = integer_of(a.positional[i], "a range's bound");
  const int64_t from = count == 1 ? 0 : bounds[0], to = count == 1 ? bounds[0] : bounds[1];
  const int64_t step = count == 3 ? bounds[2] : 1;
  if (step == 0) refuse("a range's step is 0");
  constexpr size_t kMost = 100000;  // jinja2's sandbox has the same
  std::vector<Value> items;
  for (int64_t i = from; step > 0 ? i < to : i > to;) {
    if (items.size() == kMost) refuse("a range of more than {} numbers", kMost);
    items.push_back(Value::integer(i));
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  evaluator.work().spend_for(items.size());
  return evaluator.work().list(items);
}

/// Pairs of a dict that may be given, then those named.
std::vector<Pair> pairs_of(const Arguments& a, Workspace& work) {
  std::vector<Pair> pairs;
  const auto put = [&](const Value& key, const Value& value) {
    work.spend_for(pairs.size());
    const auto same = std::find_if(pairs.begin(), pairs.end(),
                                   [&](const Pair& p) { return equal(p.key, key, work); });
    same == pairs.end() ? pairs.push_back({key, value}) : void(same->value = value);
  };
  if (!a.positional.empty()) {
    const Value& first = a.positional[0];
    if (first.is(Kind::Dict)) {
      for (const Pair& pair : first.pairs()) put(pair.key, pair.value);
    } else {
      for (const Value& item : sequence(first, work)) {
        const auto two = sequence(item, work);
        if (two.size() != 2) refuse("dict takes pairs, got one of {}", two.size());
        put(two[0], two[1]);
      }
    }
  }
  for (const auto& [name, value] : a.named) put(Value::text(name), value);
  return pairs;
}

Value make_dict(Evaluator& evaluator, const Arguments& a) {
  return evaluator.work().dict(pairs_of(a, evaluator.work()));
}

Value make_namespace(Evaluator& evaluator, const Arguments& a) {
  Workspace& work = evaluator.work();
  const std::vector<Pair> pairs = pairs_of(a, work);
  Namespace* n = work.new_namespace();
  for (const Pair& pair : pairs) {
    if (!pair.key.is(Kind::Text) || pair.key.as_text().starts_with('_'))
      refuse("a namespace's member is a text that does not begin with _");
    work.charge(sizeof(n->members[0]));
    n->members.emplace_back(pair.key.as_text(), pair.value);
  }
  return Value::of(n);
}

Value from_keys(Evaluator& evaluator, const Arguments& a) {
  const Value value = a.get(1, "value", Value::none());
  Arguments pairs;
  std::vector<Value> all;
  for (const Value& key : sequence(a.get(0, "iterable", {}), evaluator.work())) {
    const Value two[] = {key, value};
    all.push_back(evaluator.work().tuple(two));
  }
  pairs.positional = {evaluator.work().list(all)};
  return make_dict(evaluator, pairs);
}

Value make_cycler(Evaluator& evaluator, const Arguments& a) {
  if (a.positional.empty()) refuse("cycler takes values");
  Loop* state = evaluator.work().new_loop();
  state->items = evaluator.work().keep(a.positional);
  return Value::cycler(state);
}

Value make_joiner(Evaluator& evaluator, const Arguments& a) {
  Arguments two;
  two.positional = {Value::text(""), a.get(0, "sep", Value::text(", "))};
  Function f;
  f.kind = Function::Kind::Joiner;
  f.name = "joiner";
  f.self = make_cycler(evaluator, two);
  return Value::of(evaluator.work().new_function(f));
}

Value raise_exception(Evaluator& evaluator, const Arguments& a) {
  const Value message = a.get(0, "message", Value::text(""));
  throw Problem{"template.raised", std::string(text_of(message, evaluator.work()))};
}

Value strftime_now(Evaluator& evaluator, const Arguments& a) {
  const Value pattern = a.get(0, "format", {});
  if (!pattern.is(Kind::Text)) refuse("strftime_now takes a text, got {}", kind_name(pattern));
  const int64_t now = evaluator.options().now.value_or(
      std::chrono::system_clock::to_time_t(std::chrono::system_clock::now()));
  return evaluator.work().text(strftime_text(pattern.as_text(), now));
}

struct GlobalRow {
  std::string_view name;
  Value (*call)(Evaluator&, const Arguments&);
};
constexpr GlobalRow kGlobals[] = {
    {"cycler", make_cycler},        {"dict", make_dict},
    {"dict.fromkeys", from_keys},  // no name that a template can write
    {"joiner", make_joiner},        {"namespace", make_namespace},
    {"range", make_range},          {"raise_exception", raise_exception},
    {"strftime_now", strftime_now},
};
}  // namespace

bool is_global(std::string_view name) {
  return std::any_of(std::begin(kGlobals), std::end(kGlobals),
                     [&](const GlobalRow& row) { return row.name == name; });
}

Value Evaluator::global(std::string_view name, const Arguments& arguments) {
  for (const GlobalRow& row : kGlobals)
    if (row.name == name) return row.call(*this, arguments);
  refuse("'{}' is undefined", name);
}

Value loop_attribute(const Loop& loop, std::string_view name) {
  const auto at = static_cast<int64_t>(loop.at), size = static_cast<int64_t>(loop.items.size());
  const auto item = [&](int64_t i, std::string_view what) {
    return i < 0 || i >= size ? Value::undefined(what) : loop.items[static_cast<size_t>(i)];
  };
  if (name == "index") return Value::integer(at + 1);
  if (name == "index0") return Value::integer(at);
  if (name == "revindex") return Value::integer(size - at);
  if (name == "revindex0") return Value::integer(size - at - 1);
  if (name == "first") return Value::boolean(at == 0);
  if (name == "last") return Value::boolean(at == size - 1);
  if (name == "length") return Value::integer(size);
  if (name == "depth") return Value::integer(loop.depth);
  if (name == "depth0") return Value::integer(loop.depth - 1);
  if (name == "previtem") return item(at - 1, name);
  if (name == "nextitem") return item(at + 1, name);
  return Value::undefined(name);
}

namespace {
/// Python's: a time without a zone has none to name, and microseconds, which are 0 here.
std::string without_zone(std::string_view pattern) {
  std::string made;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char next = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (next == '\0') {
      made += pattern[i];
      continue;
    }
    ++i;
    if (next == 'f')
      made += "000000";
    else if (next != 'Z' && next != 'z')
      made += {'%', next};
  }
  return made;
}
}  // namespace

// In the local time zone, as datetime.now() is.
std::string strftime_text(std::string_view pattern, int64_t seconds) {
  if (pattern.size() > 256) refuse("a date's format of more than 256 bytes");
  const auto time = static_cast<std::time_t>(seconds);
  std::tm local{};
  if (localtime_r(&time, &local) == nullptr) refuse("{} is no time", seconds);
  // One byte more, as an empty result is not an error.
  const std::string format = without_zone(pattern) + " ";
  char text[4096];
  const size_t size = std::strftime(text, sizeof(text), format.c_str(), &local);
  if (size == 0) refuse("a date's format makes a text too long");
  return {text, size - 1};
}

}  // namespace weft::text::jinja
