// JSON schemas (json-schema.org, draft 2020-12) as GBNF.
#include <algorithm>
#include <cmath>
#include <map>

#include "weft/base/error.h"
#include "weft/base/json_writer.h"
#include "weft/io/json_tree.h"
#include "weft/llm/grammar.h"
#include "weft/llm/json_pattern.h"

namespace weft::llm {

namespace {

using Value = JsonTree::Value;

constexpr const char* kCommonRules = R"(ws ::= "" | " " | "\n" [ \t]{0,20}
value ::= object | array | string | number | "true" | "false" | "null"
object ::= "{" ws (string ":" ws value ("," ws string ":" ws value)*)? ws "}"
array ::= "[" ws (value ("," ws value)*)? ws "]"
string ::= "\"" char* "\""
char ::= [^\"\\\x00-\x1f] | "\\" ([\"\\/bfnrt] | "u" ([0-9a-cA-Ce-fE-F] hex hex hex | [dD] [0-7] hex hex))
hex ::= [0-9a-fA-F]
integer ::= "-"? ("0" | [1-9] [0-9]{0,15})
number ::= integer ("." [0-9]{1,16})? ([eE] [-+]? [0-9]{1,2})?
)";

// RFC 3339; days as the months have them, February 28.
constexpr const char* kDate =
    R"([0-9]{4} "-" (("0" [13578] | "1" [02]) "-" ("0" [1-9] | [12] [0-9] | "3" [01]) | ("0" [469] | "11") "-" ("0" [1-9] | [12] [0-9] | "30") | "02-" ("0" [1-9] | "1" [0-9] | "2" [0-8])))";
constexpr const char* kTime =
    R"((([01] [0-9] | "2" [0-3]) ":" [0-5] [0-9] ":" [0-5] [0-9] ("." [0-9]{1,6})? ("Z" | [-+] ([01] [0-9] | "2" [0-3]) ":" [0-5] [0-9])))";
constexpr const char* kUuid =
    R"([0-9a-f]{8} "-" [0-9a-f]{4} "-" [0-9a-f]{4} "-" [0-9a-f]{4} "-" [0-9a-f]{12})";
constexpr const char* kByte = R"(("25" [0-5] | "2" [0-4] [0-9] | "1" [0-9]{2} | [1-9]? [0-9]))";

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

std::string json_of(Value v) {
  JsonWriter json;
  write(json, v);
  return json.take();
}

class SchemaGrammar {
 public:
  explicit SchemaGrammar(Value root) : root_(root) {}

  std::string text() {
    const std::string top = expression(root_);
    std::string all = "root ::= " + top + "\n";
    for (const std::string& rule : rules_) all += rule + "\n";
    return all + kCommonRules;
  }

 private:
  [[noreturn]] static void fail_at(Value v, std::string_view problem) {
    const std::string_view key = v.key();
    fail_runtime("llm.schema", "{}{}{}; answers cannot be held to it", key, key.empty() ? "" : ": ",
                 problem);
  }
  static bool is_false(Value v) { return v.kind() == JsonTree::Kind::False; }
  static bool is_true(Value v) { return v.kind() == JsonTree::Kind::True; }

  std::string new_rule(const std::string& text) {
    std::string name = strformat("r{}", ++count_);
    rules_.push_back(name + " ::= " + text);
    return name;
  }

  std::string expression(Value schema) {
    if (is_true(schema)) return "value";
    if (is_false(schema)) fail_at(schema, "false allows nothing");
    if (!schema.is_object()) fail_at(schema, "a schema is an object, true or false");
    for (const std::string_view keyword : kNotHeld)
      if (!schema[keyword].is_null()) fail_at(schema[keyword], "is not supported");
    if (!schema["$ref"].is_null()) return reference(schema["$ref"]);
    if (const Value all = schema["allOf"]; !all.is_null()) {
      if (all.size() != 1) fail_at(all, "of more than one schema is not supported");
      return expression(*all.begin());
    }
    for (const char* name : {"anyOf", "oneOf"})
      if (const Value any = schema[name]; !any.is_null()) return any_of(any);
    if (has(schema, "const")) return gbnf_literal(json_of(schema["const"]));
    if (!schema["enum"].is_null()) return one_of(schema["enum"], schema["type"]);
    return by_type(schema);
  }

  static bool has(Value object, std::string_view key) {
    for (const Value member : object)
      if (member.key() == key) return true;
    return false;
  }

  std::string any_of(Value schemas) {
    std::string all;
    for (const Value schema : schemas) all += (all.empty() ? "" : " | ") + expression(schema);
    if (all.empty()) fail_at(schemas, "is empty");
    return "(" + all + ")";
  }

  static bool is_of(Value v, std::string_view type) {
    switch (v.kind()) {
      case JsonTree::Kind::Null: return type == "null";
      case JsonTree::Kind::False:
      case JsonTree::Kind::True: return type == "boolean";
      case JsonTree::Kind::String: return type == "string";
      case JsonTree::Kind::Array: return type == "array";
      case JsonTree::Kind::Object: return type == "object";
      case JsonTree::Kind::Number: break;
    }
    return type == "number" || (type == "integer" && v.number() == std::floor(v.number()));
  }

  std::string one_of(Value values, Value type) {
    std::string all;
    for (const Value v : values) {
      bool fits = type.is_null() || (type.is_text() && is_of(v, type.text()));
      if (type.is_array())
        for (const Value one : type) fits |= is_of(v, one.text());
      if (fits) all += (all.empty() ? "" : " | ") + gbnf_literal(json_of(v));
    }
    if (all.empty()) fail_at(values, "has no value of the type");
    return "(" + all + ")";
  }

  /// A JSON pointer (RFC 6901) into the schema itself.
  std::string reference(Value ref) {
    const std::string path(ref.text());
    const auto [place, is_new] = references_.try_emplace(path, "");
    if (!is_new) return place->second;
    const std::string name = place->second = strformat("ref{}", references_.size());
    const Value target = resolve(ref);
    const std::string text = expression(target);
    rules_.push_back(name + " ::= " + text);
    return name;
  }

  Value resolve(Value ref) const {
    std::string_view path = ref.text();
    if (!path.starts_with('#')) fail_at(ref, strformat("'{}' is not within the schema", path));
    Value at = root_;
    path.remove_prefix(1);
    while (!path.empty()) {
      if (path[0] != '/') fail_at(ref, "is no JSON pointer");
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
      if (at.is_array()) {
        const Value list = at;
        size_t index = 0;
        bool found = false;
        for (const Value item : list) {
          if (std::to_string(index++) != key) continue;
          at = item;
          found = true;
        }
        if (!found) fail_at(ref, strformat("'{}' is not there", ref.text()));
      } else {
        at = at.is_object() ? at[key] : at[""];
        if (at.is_null()) fail_at(ref, strformat("'{}' is not there", ref.text()));
      }
    }
    return at;
  }

  std::string by_type(Value schema) {
    const Value type = schema["type"];
    if (type.is_array()) {
      std::string all;
      for (const Value one : type) all += (all.empty() ? "" : " | ") + of_type(schema, one.text());
      if (all.empty()) fail_at(type, "is empty");
      return "(" + all + ")";
    }
    if (!type.is_null()) return of_type(schema, type.text());
    constexpr std::pair<const char*, const char*> kImplied[] = {{"properties", "object"},
                                                                {"required", "object"},
                                                                {"additionalProperties", "object"},
                                                                {"items", "array"},
                                                                {"prefixItems", "array"},
                                                                {"minItems", "array"},
                                                                {"maxItems", "array"},
                                                                {"minLength", "string"},
                                                                {"maxLength", "string"},
                                                                {"pattern", "string"},
                                                                {"format", "string"},
                                                                {"minimum", "number"},
                                                                {"maximum", "number"},
                                                                {"exclusiveMinimum", "number"},
                                                                {"exclusiveMaximum", "number"}};
    for (const auto& [keyword, implied] : kImplied)
      if (!schema[keyword].is_null()) return of_type(schema, implied);
    return "value";
  }

  std::string of_type(Value schema, std::string_view type) {
    if (type == "object") return object(schema);
    if (type == "array") return array(schema);
    if (type == "string") return string(schema);
    if (type == "integer" || type == "number") return number(schema, type == "integer");
    if (type == "boolean") return "(\"true\" | \"false\")";
    if (type == "null") return "\"null\"";
    fail_at(schema, strformat("there is no type '{}'", type));
  }

  static int64_t count(Value v, int64_t otherwise) { return v.integer_or(otherwise, 0, 100000); }

  static std::string times(int64_t least, int64_t most) {
    return most < 0 ? strformat("{{{},}}", least) : strformat("{{{},{}}}", least, most);
  }

  std::string string(Value schema) {
    const int64_t least = count(schema["minLength"], 0), most = count(schema["maxLength"], -1);
    if (most >= 0 && most < least) fail_at(schema["maxLength"], "is below minLength");
    const bool sized = least > 0 || most >= 0;
    std::string inside;
    if (const Value pattern = schema["pattern"]; !pattern.is_null()) {
      if (sized) fail_at(pattern, "together with minLength or maxLength is not supported");
      inside = gbnf_pattern(pattern.text());
    } else {
      inside = format(schema["format"].is_text() ? schema["format"].text() : "");
      if (!inside.empty() && sized)
        fail_at(schema["format"], "together with a length is not supported");
    }
    if (inside.empty() && !sized) return "string";
    if (inside.empty()) inside = "char" + times(least, most);
    return "\"\\\"\" " + inside + " \"\\\"\"";
  }

  /// Empty for those that are only annotations here.
  static std::string format(std::string_view name) {
    if (name == "date") return kDate;
    if (name == "time") return kTime;
    if (name == "date-time") return std::string(kDate) + " \"T\" " + kTime;
    if (name == "uuid") return kUuid;
    if (name == "ipv4") return strformat("{0} \".\" {0} \".\" {0} \".\" {0}", kByte);
    return "";
  }

  std::string number(Value schema, bool integer) {
    if (const Value step = schema["multipleOf"]; !step.is_null())
      if (!integer || step.number() != 1) fail_at(step, "is not supported");
    constexpr double kMost = 999999999999999;
    double least = -kMost, most = kMost;
    bool bounded = false;
    const auto bound = [&](const char* keyword, double& end, double excluded, bool lower) {
      const Value v = schema[keyword];
      if (v.is_null()) return;
      bounded = true;
      const double whole = lower ? std::ceil(v.number()) : std::floor(v.number());
      const double at = whole == v.number() ? whole + excluded : whole;
      end = lower ? std::max(end, at) : std::min(end, at);
    };
    bound("minimum", least, 0, true);
    bound("exclusiveMinimum", least, 1, true);
    bound("maximum", most, 0, false);
    bound("exclusiveMaximum", most, -1, false);
    if (!bounded) return integer ? "integer" : "number";
    // Of numbers with bounds the whole ones: they are within, and digits can say so.
    if (least > most) fail_at(schema, "bounds with no whole number between are not supported");
    return gbnf_integers(static_cast<int64_t>(least), static_cast<int64_t>(most));
  }

  std::string array(Value schema) {
    if (is_true(schema["uniqueItems"])) fail_at(schema["uniqueItems"], "is not supported");
    int64_t least = count(schema["minItems"], 0), most = count(schema["maxItems"], -1);
    std::vector<std::string> first;
    for (const Value item : schema["prefixItems"]) first.push_back(new_rule(expression(item)));
    const Value items = schema["items"];
    if (items.is_array()) fail_at(items, "as a list is prefixItems now");
    if (is_false(items)) {
      const auto fixed = static_cast<int64_t>(first.size());
      most = most < 0 ? fixed : std::min(most, fixed);
    }
    if (most >= 0 && most < least) fail_at(schema, "has fewer items at most than at least");
    if (most == 0) return "\"[\" ws \"]\"";
    if (most >= 0 && static_cast<int64_t>(first.size()) > most)
      first.resize(static_cast<size_t>(most));
    const auto fixed = static_cast<int64_t>(first.size());
    const bool more = most < 0 || most > fixed;
    const std::string item = !more ? "" : new_rule(items.is_null() ? "value" : expression(items));
    // What follows the items that have a place of their own.
    std::string rest;
    const int64_t rest_least = std::max<int64_t>(least - fixed, 0);
    const int64_t rest_most = most < 0 ? -1 : most - fixed;
    if (fixed == 0) {
      const std::string list = item + " (\",\" ws " + item + ")" +
                               times(std::max<int64_t>(least - 1, 0), most < 0 ? -1 : most - 1);
      rest = least == 0 ? "(" + list + ")?" : list;
    } else if (more) {
      rest = "(\",\" ws " + item + ")" + times(rest_least, rest_most);
    }
    for (int64_t i = fixed; i-- > 0;) {
      rest = (i == 0 ? "" : "\",\" ws ") + first[static_cast<size_t>(i)] +
             (rest.empty() ? "" : " " + rest);
      if (i >= least) rest = "(" + rest + ")?";
      rest = new_rule(rest);
    }
    return "\"[\" ws " + rest + " ws \"]\"";
  }

  struct Member {
    std::string rule;
    bool needed;
  };
  void add_member(std::vector<Member>& members, std::string_view name, const std::string& value,
                  bool needed) {
    JsonWriter key;
    const std::string text = gbnf_literal(key.value(name).take() + ":");
    members.push_back({new_rule(text + " ws " + value), needed});
  }

  /// The properties in their order, then what is required and no property.
  std::vector<Member> members_of(Value schema) {
    const Value additional = schema["additionalProperties"];
    std::vector<std::string> required;
    for (const Value name : schema["required"]) required.emplace_back(name.text());
    std::vector<Member> members;
    for (const Value property : schema["properties"]) {
      const auto needed = std::find(required.begin(), required.end(), property.key());
      if (needed == required.end() && is_false(property)) continue;
      add_member(members, property.key(), expression(property), needed != required.end());
      if (needed != required.end()) required.erase(needed);
    }
    for (const std::string& name : required) {
      if (is_false(additional)) fail_at(schema["required"], strformat("'{}' is no property", name));
      add_member(members, name, additional.is_object() ? expression(additional) : "value", true);
    }
    return members;
  }

  std::string object(Value schema) {
    const Value additional = schema["additionalProperties"];
    const auto declared = static_cast<int64_t>(schema["properties"].size());
    if (count(schema["minProperties"], 0) > static_cast<int64_t>(schema["required"].size()))
      fail_at(schema["minProperties"], "above what is required is not supported");
    if (const int64_t most = count(schema["maxProperties"], -1); most >= 0 && most < declared)
      fail_at(schema["maxProperties"], "below the number of properties is not supported");
    const std::vector<Member> members = members_of(schema);
    if (members.empty())
      return is_false(additional) || declared > 0 ? "\"{\" ws \"}\"" : map(additional);
    // From behind: what may follow if nothing was written yet, and if something was.
    std::string begin, after;
    for (auto member = members.rbegin(); member != members.rend(); ++member) {
      const auto& [rule, needed] = *member;
      const std::string alone = rule + (after.empty() ? "" : " " + after);
      begin = new_rule(needed ? alone : alone + " | " + (begin.empty() ? "\"\"" : begin));
      const std::string next = needed ? "\",\" ws " + rule : "(\",\" ws " + rule + ")?";
      after = new_rule(next + (after.empty() ? "" : " " + after));
    }
    return "\"{\" ws " + begin + " ws \"}\"";
  }

  std::string map(Value values) {
    if (!values.is_object()) return "object";
    const std::string member = new_rule("string \":\" ws " + expression(values));
    return "\"{\" ws (" + member + " (\",\" ws " + member + ")*)? ws \"}\"";
  }

  Value root_;
  size_t count_ = 0;
  std::vector<std::string> rules_;
  std::map<std::string, std::string> references_;
};

}  // namespace

std::string json_schema_gbnf(std::string_view schema) {
  const JsonTree tree(schema, "schema", "llm.schema");
  return SchemaGrammar(tree.root()).text();
}

}  // namespace weft::llm
