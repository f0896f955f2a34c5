// Tests: what may follow `is`.
#include <algorithm>

#include "weft/text/jinja/evaluator.h"
#include "weft/text/jinja/python_text.h"

namespace weft::text::jinja {

namespace {
using Kind = Value::Kind;

struct TestCall {
  Evaluator& evaluator;
  const Value& value;
  const Arguments& arguments;
  Workspace& work;

  Value other(std::string_view name = "other") const {
    const Value* v = arguments.find(0, name);
    if (v == nullptr) refuse("a test lacks what it compares with");
    return *v;
  }
  /// Whether value < other, or the other way round.
  bool below(bool swapped) const {
    const Value o = other();
    require_defined(value);
    require_defined(o);
    return swapped ? less(o, value, work) : less(value, o, work);
  }
};

/// Whether what is left is `rest`: of floats, too.
bool leaves(const TestCall& t, const Value& by, int64_t rest) {
  if (t.value.is(Kind::Text)) refuse("what is tested is a number, got str");
  return equal(arithmetic("%", t.value, by, t.work), Value::integer(rest), t.work);
}
bool is_iterable(const Value& v) {
  return v.is(Kind::Undefined) || v.is(Kind::Text) || v.is_list() || v.is(Kind::Dict);
}
bool is_cased(const TestCall& t, std::string (*change)(std::string_view)) {
  return is_cased_as(text_of(t.value, t.work), change);
}

struct TestRow {
  std::string_view name;
  bool (*holds)(const TestCall&);
};
constexpr TestRow kTests[] = {
    {"!=", [](const TestCall& t) { return !equal(t.value, t.other(), t.work); }},
    {"<", [](const TestCall& t) { return t.below(false); }},
    {"<=", [](const TestCall& t) { return !t.below(true); }},
    {"==", [](const TestCall& t) { return equal(t.value, t.other(), t.work); }},
    {">", [](const TestCall& t) { return t.below(true); }},
    {">=", [](const TestCall& t) { return !t.below(false); }},
    {"boolean", [](const TestCall& t) { return t.value.is(Kind::Bool); }},
    {"callable",
     [](const TestCall& t) { return t.value.is(Kind::Function) || t.value.is(Kind::Loop); }},
    {"defined", [](const TestCall& t) { return !t.value.is(Kind::Undefined); }},
    {"divisibleby", [](const TestCall& t) { return leaves(t, t.other("num"), 0); }},
    {"eq", [](const TestCall& t) { return equal(t.value, t.other(), t.work); }},
    {"equalto", [](const TestCall& t) { return equal(t.value, t.other(), t.work); }},
    {"escaped", [](const TestCall&) { return false; }},  // as nothing is by itself
    {"even", [](const TestCall& t) { return leaves(t, Value::integer(2), 0); }},
    {"false",
     [](const TestCall& t) { return t.value.is(Kind::Bool) && t.value.as_integer() == 0; }},
    {"filter",
     [](const TestCall& t) {
       const auto names = JinjaTemplate::filters();
       return std::find(names.begin(), names.end(), text_of(t.value, t.work)) != names.end();
     }},
    {"float", [](const TestCall& t) { return t.value.is(Kind::Float); }},
    {"ge", [](const TestCall& t) { return !t.below(false); }},
    {"greaterthan", [](const TestCall& t) { return t.below(true); }},
    {"gt", [](const TestCall& t) { return t.below(true); }},
    {"in", [](const TestCall& t) { return contains(t.other("seq"), t.value, t.work); }},
    {"integer", [](const TestCall& t) { return t.value.is(Kind::Int); }},
    {"iterable", [](const TestCall& t) { return is_iterable(t.value); }},
    {"le", [](const TestCall& t) { return !t.below(true); }},
    {"lessthan", [](const TestCall& t) { return t.below(false); }},
    {"lower", [](const TestCall& t) { return is_cased(t, lower); }},
    {"lt", [](const TestCall& t) { return t.below(false); }},
    {"mapping", [](const TestCall& t) { return t.value.is(Kind::Dict); }},
    {"ne", [](const TestCall& t) { return !equal(t.value, t.other(), t.work); }},
    {"none", [](const TestCall& t) { return t.value.is(Kind::None); }},
    {"number", [](const TestCall& t) { return t.value.is_number(); }},
    {"odd", [](const TestCall& t) { return leaves(t, Value::integer(2), 1); }},
    {"sameas",
     [](const TestCall& t) {
       const Value other = t.other();
       return t.value.kind() == other.kind() && equal(t.value, other, t.work);
     }},
    {"sequence", [](const TestCall& t) { return is_iterable(t.value); }},
    {"string", [](const TestCall& t) { return t.value.is(Kind::Text); }},
    {"test",
     [](const TestCall& t) {
       const auto names = JinjaTemplate::tests();
       return std::find(names.begin(), names.end(), text_of(t.value, t.work)) != names.end();
     }},
    {"true", [](const TestCall& t) { return t.value.is(Kind::Bool) && t.value.as_integer() != 0; }},
    {"undefined", [](const TestCall& t) { return t.value.is(Kind::Undefined); }},
    {"upper", [](const TestCall& t) { return is_cased(t, upper); }},
};
}  // namespace

bool Evaluator::test(std::string_view name, const Value& of, const Arguments& arguments) {
  for (const TestRow& row : kTests)
    if (row.name == name) return row.holds({*this, of, arguments, work_});
  refuse("there is no test '{}'", name);
}

}  // namespace weft::text::jinja

namespace weft::text {
std::vector<std::string_view> JinjaTemplate::tests() {
  std::vector<std::string_view> names;
  for (const auto& row : jinja::kTests) names.push_back(row.name);
  return names;
}
}  // namespace weft::text
