// What a filter is given, and the tables of filters.
#pragma once

#include "weft/text/jinja/evaluator.h"

namespace weft::text::jinja {

struct FilterCall {
  Evaluator& evaluator;
  const Value& value;
  const Arguments& arguments;
  Workspace& work;

  std::string_view text() const { return text_of(value, work); }
  std::span<const Value> items() const { return sequence(value, work); }
  Value argument(size_t place, std::string_view name, Value otherwise = Value::none()) const {
    return arguments.get(place, name, otherwise);
  }
  bool flag(size_t place, std::string_view name, bool otherwise) const {
    return truth(argument(place, name, Value::boolean(otherwise)));
  }
  std::string_view text_argument(size_t place, std::string_view name,
                                 std::string_view otherwise) const {
    return text_of(argument(place, name, Value::text(otherwise)), work);
  }
  int64_t integer(size_t place, std::string_view name, int64_t otherwise) const {
    return integer_of(argument(place, name, Value::integer(otherwise)), name);
  }
};

struct FilterRow {
  std::string_view name;
  Value (*apply)(const FilterCall&);
};

Value word_wrapped(const FilterCall& f);    // word_wrap.cpp
std::span<const FilterRow> text_filters();  // text_filters.cpp: those of texts and numbers
std::span<const FilterRow> list_filters();  // list_filters.cpp: those of lists and dicts

}  // namespace weft::text::jinja
