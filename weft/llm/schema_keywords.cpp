#include "weft/llm/schema_keywords.h"

#include <algorithm>
#include <cmath>

#include "weft/base/error.h"
#include "weft/base/json_writer.h"
#include "weft/base/percent.h"

namespace weft::llm {

namespace {

using Value = JsonTree::Value;

// What would be promised and not kept.
constexpr std::string_view kNotHeld[] = {"not",
                                         "if",
                                         "then",
                                         "else",
                                         "dependentRequired",
                                         "dependentSchemas",
                                         "dependencies",
                                         "patternProperties",
                                         "propertyNames",
                                         "unevaluatedProperties",
                                         "unevaluatedItems",
                                         "contains",
                                         "$dynamicRef",
                                         "$recursiveRef"};

// What says something of a value; all else is for readers.
constexpr std::string_view kHeld[] = {"$ref",
                                      "additionalProperties",
                                      "allOf",
                                      "anyOf",
                                      "const",
                                      "enum",
                                      "exclusiveMaximum",
                                      "exclusiveMinimum",
                                      "format",
                                      "items",
                                      "maxItems",
                                      "maxLength",
                                      "maxProperties",
                                      "maximum",
                                      "minItems",
                                      "minLength",
                                      "minProperties",
                                      "minimum",
                                      "multipleOf",
                                      "oneOf",
                                      "pattern",
                                      "prefixItems",
                                      "properties",
                                      "required",
                                      "type",
                                      "uniqueItems"};

constexpr size_t kMostParts = 64;  // beyond it a schema includes itself

void write(JsonWriter& json, Value v) {
  switch (v.kind()) {
    case JsonTree::Kind::Null: json.null(); break;
    case JsonTree::Kind::False: json.value(false); break;
    case JsonTree::Kind::True: json.value(true); break;
    case JsonTree::Kind::String: json.value(v.text()); break;
    case JsonTree::Kind::Number: {
      const double d = v.number();
      if (d == std::floor(d) && std::fabs(d) < 1e15)
        json.value(static_cast<int64_t>(d));
      else
        json.value(d);
      break;
    }
    case JsonTree::Kind::Array:
      json.begin_array();
      for (const Value item : v) write(json, item);
      json.end_array();
      break;
    case JsonTree::Kind::Object:
      json.begin_object();
      for (const Value member : v) {
        json.key(member.key());
        write(json, member);
      }
      json.end_object();
      break;
  }
}

/// Of a pointer "/a~1b/.." the first step, "a/b".
std::string next_step(std::string_view& path) {
  path.remove_prefix(1);
  const size_t end = std::min(path.find('/'), path.size());
  std::string key;
  for (size_t i = 0; i < end; ++i) {
    if (path[i] == '~' && i + 1 < end)
      key += path[++i] == '1' ? '/' : '~';
    else
      key += path[i];
  }
  path.remove_prefix(end);
  return key;
}

Value step_into(Value at, const std::string& key, Value ref) {
  if (has_member(at, key)) return at[key];
  size_t index = 0;
  if (at.is_array())
    for (const Value item : at)
      if (std::to_string(index++) == key) return item;
  fail_schema(ref, strformat("'{}' is not there", ref.text()));
}

}  // namespace

void fail_schema(Value at, std::string_view problem) {
  const std::string_view key = at.key();
  fail_runtime("llm.schema", "{}{}{}; answers cannot be held to it", key, key.empty() ? "" : ": ",
               problem);
}

std::string json_text_of(Value v) {
  JsonWriter json;
  write(json, v);
  return json.take();
}

bool has_member(Value object, std::string_view key) {
  if (!object.is_object()) return false;
  for (const Value member : object)
    if (member.key() == key) return true;
  return false;
}

Value resolved(Value ref, Value root) {
  const std::string all = percent_decoded(ref.text());
  std::string_view path = all;
  if (!path.starts_with('#')) fail_schema(ref, strformat("'{}' is not within the schema", path));
  Value at = root;
  for (path.remove_prefix(1); !path.empty();) {
    if (path[0] != '/') fail_schema(ref, "is no JSON pointer");
    at = step_into(at, next_step(path), ref);
  }
  return at;
}

std::string_view resource_id(Value schema) {
  const Value id = schema.is_object() ? schema["$id"] : schema.missing();
  return id.is_text() && !id.text().starts_with('#') ? id.text() : "";
}

bool says_only(Value schema, std::string_view keyword) {
  const auto is_more = [&](std::string_view more) {
    return more != keyword && has_member(schema, more);
  };
  return has_member(schema, keyword) && std::ranges::none_of(kHeld, is_more) &&
         std::ranges::none_of(kNotHeld, is_more);
}

SchemaKeywords::SchemaKeywords(Value schema, Value root) { add(schema, root); }

void SchemaKeywords::add(Value schema, Value root) {
  if (schema.kind() == JsonTree::Kind::False) fail_schema(schema, "false allows nothing");
  const bool is_true = schema.kind() == JsonTree::Kind::True;
  if (is_true && !parts_.empty()) return;
  if (!is_true && !schema.is_object()) fail_schema(schema, "a schema is an object, true or false");
  if (parts_.size() == kMostParts) fail_schema(schema, "includes itself, or more than 64 schemas");
  if (!parts_.empty() && !resource_id(schema).empty())
    fail_schema(schema["$id"], "of a schema beside another one is not supported");
  parts_.push_back({schema});
  if (is_true) return;
  for (const std::string_view keyword : kNotHeld)
    if (has_member(schema, keyword)) fail_schema(schema[keyword], "is not supported");
  if (has_member(schema, "$ref")) add(resolved(schema["$ref"], root), root);
  for (const Value one : schema["allOf"]) add(one, root);
}

void SchemaKeywords::hide(std::string_view keyword) {
  for (Part& part : parts_) part.hidden.push_back(keyword);
}

bool SchemaKeywords::Part::has(std::string_view keyword) const {
  return std::ranges::find(hidden, keyword) == hidden.end() && has_member(schema, keyword);
}

std::vector<Value> SchemaKeywords::all(std::string_view keyword) const {
  std::vector<Value> values;
  for (const Part& part : parts_)
    if (part.has(keyword)) values.push_back(part.schema[keyword]);
  return values;
}

bool SchemaKeywords::has(std::string_view keyword) const { return !all(keyword).empty(); }

/// What $ref and allOf name is among the parts.
bool SchemaKeywords::says_nothing() const {
  return std::ranges::none_of(kHeld, [&](std::string_view keyword) {
    return keyword != "$ref" && keyword != "allOf" && has(keyword);
  });
}

Value SchemaKeywords::operator[](std::string_view keyword) const {
  const std::vector<Value> values = all(keyword);
  for (size_t i = 1; i < values.size(); ++i)
    if (json_text_of(values[i]) != json_text_of(values[0]))
      fail_schema(values[0], "of two schemas that have to hold at once is not supported");
  return values.empty() ? first().missing() : values[0];
}

std::string SchemaKeywords::identity() const {
  std::string all;
  for (const Part& part : parts_) {
    all += strformat("{} ", part.schema.place());
    for (const std::string_view keyword : part.hidden) all += std::string(keyword) + ' ';
  }
  return all;
}

void SchemaKeywords::require_together(std::string_view keyword, std::string_view beside) const {
  for (const Part& one : parts_)
    for (const Part& other : parts_)
      if (one.has(keyword) && !other.has(keyword) && other.has(beside))
        fail_schema(one.schema[keyword],
                    strformat("beside a schema with other {} is not supported", beside));
}

void SchemaKeywords::require_only(std::string_view keyword, std::string_view other) const {
  for (const std::string_view more : kHeld)
    if (more != "$ref" && more != "allOf" && more != keyword && more != other && has(more))
      fail_schema((*this)[more], strformat("beside {} is not supported", keyword));
}

}  // namespace weft::llm
