#include "weft/serve/fields.h"

#include <cmath>
#include <vector>

#include "weft/base/format.h"
#include "weft/base/json_writer.h"
#include "weft/base/names.h"

namespace weft::serve {

namespace {

using Kind = JsonTree::Kind;

// A JsonTree is at most 64 deep.
void append(JsonWriter& json, JsonTree::Value value) {
  switch (value.kind()) {
    case Kind::Null: json.null(); break;
    case Kind::False: json.value(false); break;
    case Kind::True: json.value(true); break;
    case Kind::Number: json.value(value.number()); break;
    case Kind::String: json.value(value.text()); break;
    case Kind::Array:
      json.begin_array();
      for (const JsonTree::Value element : value) append(json, element);
      json.end_array();
      break;
    case Kind::Object:
      json.begin_object();
      for (const JsonTree::Value member : value) append(json.key(member.key()), member);
      json.end_object();
  }
}

}  // namespace

void refuse_parameter(std::string param, std::string message, std::string code) {
  throw Refusal{400, std::move(code), std::move(param), std::move(message)};
}

std::string json_text(JsonTree::Value value) {
  JsonWriter json;
  append(json, value);
  return json.take();
}

std::string shown(JsonTree::Value value) {
  if (value.is_array()) return strformat("an array of {}", value.size());
  if (value.is_object()) return strformat("an object of {}", value.size());
  if (value.is_text()) return "'" + valid_start(value.text()) + "'";
  return json_text(value);
}

Fields::Fields(JsonTree::Value object, std::string where)
    : object_(object), where_(std::move(where)) {
  if (object.is_object()) return;
  const std::string name = where_.empty() ? "the body" : where_.substr(0, where_.size() - 1);
  refuse_parameter(where_.empty() ? "" : name,
                   strformat("{} is {}; it has to be a JSON object", name, shown(object)));
}

void Fields::only(std::span<const std::string_view> known) const {
  for (const JsonTree::Value member : object_) {
    const std::string_view name = member.key();
    bool found = false;
    for (const std::string_view one : known) found |= one == name;
    if (found) continue;
    refuse_parameter(path(valid_start(name)),
                     strformat("there is no parameter '{}{}'{}", where_, valid_start(name),
                               did_you_mean(valid_start(name), known)),
                     "unknown_parameter");
  }
}

void Fields::refuse(std::string_view name, std::string_view wanted) const {
  refuse_parameter(path(name), strformat("{} is {}; {}", path(name), shown(object_[name]), wanted));
}

JsonTree::Value Fields::of(std::string_view name, Kind kind, std::string_view wanted) const {
  const JsonTree::Value value = object_[name];
  if (!value.is_null() && value.kind() != kind) refuse(name, strformat("it has to be {}", wanted));
  return value;
}

double Fields::number(std::string_view name, double otherwise, double least, double most) const {
  const std::string wanted = strformat("a number from {} to {}", least, most);
  const JsonTree::Value value = of(name, Kind::Number, wanted);
  if (value.is_null()) return otherwise;
  const double x = value.number();
  if (!(x >= least && x <= most)) refuse(name, "it has to be " + wanted);
  return x;
}

int64_t Fields::integer(std::string_view name, int64_t otherwise, int64_t least,
                        int64_t most) const {
  const std::string wanted = strformat("an integer from {} to {}", least, most);
  const JsonTree::Value value = of(name, Kind::Number, wanted);
  if (value.is_null()) return otherwise;
  const double x = value.number();
  if (x != std::floor(x) || x < static_cast<double>(least) || x > static_cast<double>(most))
    refuse(name, "it has to be " + wanted);
  return static_cast<int64_t>(x);
}

bool Fields::flag(std::string_view name, bool otherwise) const {
  const JsonTree::Value value = object_[name];
  if (value.is_null()) return otherwise;
  if (value.kind() != Kind::True && value.kind() != Kind::False)
    refuse(name, "it has to be true or false");
  return value.boolean();
}

std::string Fields::text(std::string_view name, std::string_view otherwise) const {
  const JsonTree::Value value = of(name, Kind::String, "a string");
  return std::string(value.is_null() ? otherwise : value.text());
}

JsonTree::Value Fields::array(std::string_view name, size_t most) const {
  const JsonTree::Value value = of(name, Kind::Array, "an array");
  if (!value.is_null() && value.size() > most)
    refuse(name, strformat("it has to have at most {} elements", most));
  return value;
}

JsonTree::Value Fields::object(std::string_view name) const {
  return of(name, Kind::Object, "an object");
}

}  // namespace weft::serve
