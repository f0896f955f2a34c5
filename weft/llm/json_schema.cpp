// JSON schemas (json-schema.org, draft 2020-12) as GBNF.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "weft/base/error.h"
#include "weft/base/json_writer.h"
#include "weft/io/json_tree.h"
#include "weft/llm/grammar.h"
#include "weft/llm/json_pattern.h"
#include "weft/llm/schema_keywords.h"

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

// Of one text: a schema that is included again and again is written each time.
constexpr size_t kMostSchemas = 20000;
constexpr int kDeepest = 100;

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
  static bool is_false(Value v) { return v.kind() == JsonTree::Kind::False; }
  static bool is_true(Value v) { return v.kind() == JsonTree::Kind::True; }
  static std::vector<Value> items_of(Value list) {
    std::vector<Value> items;
    for (const Value item : list) items.push_back(item);
    return items;
  }

  std::string new_rule(const std::string& text) {
    std::string name = strformat("r{}", ++count_);
    rules_.push_back(name + " ::= " + text);
    return name;
  }

  std::string expression(Value schema) {
    if (is_true(schema)) return "value";
    if (const auto id = resource_id(schema); !id.empty()) return resource(schema, id);
    return of_schema(schema);
  }

  std::string of_schema(Value schema) {
    // A rule of its own, which may name itself.
    if (says_only(schema, "$ref")) return reference(schema["$ref"]);
    if (says_only(schema, "allOf") && schema["allOf"].size() == 1)
      return expression(*schema["allOf"].begin());
    return together(SchemaKeywords(schema, root_));
  }

  std::string resource(Value schema, std::string_view id) {
    const auto outer = std::exchange(root_, schema);
    const auto outer_id = std::exchange(root_id_, std::string(id));
    std::string text = of_schema(schema);
    root_ = outer;
    root_id_ = outer_id;
    return text;
  }

  /// Of several a rule of its own, which they may include again.
  std::string together(SchemaKeywords schema) {
    if (schema.is_one()) return written(std::move(schema));
    const auto [place, is_new] = references_.try_emplace({root_id_, schema.identity()},
                                                         strformat("all{}", references_.size()));
    if (!is_new) return place->second;
    const std::string name = place->second;
    rules_.push_back(name + " ::= " + written(std::move(schema)));
    return name;
  }

  std::string written(SchemaKeywords schema) {
    if (++schemas_ > kMostSchemas || depth_ > kDeepest)
      fail_schema(schema.first(), "includes itself beside other keywords, or too many schemas");
    ++depth_;
    std::string text = of_keywords(std::move(schema));
    --depth_;
    return text;
  }

  std::string of_keywords(SchemaKeywords schema) {
    for (const char* name : {"anyOf", "oneOf"})
      if (schema.has(name)) return any_of(std::move(schema), name);
    if (schema.has("const")) return one_of(schema, "const", schema.all("const"));
    if (schema.has("enum")) return one_of(schema, "enum", items_of(schema["enum"]));
    return by_type(schema);
  }

  std::string any_of(SchemaKeywords schema, std::string_view name) {
    const Value schemas = schema[name];
    schema.hide(name);
    std::string all;
    const auto beside = [&](Value one) {
      SchemaKeywords both = schema;
      both.add(one, root_);
      return together(std::move(both));
    };
    const bool alone = schema.says_nothing();
    for (const Value one : schemas)
      all += (all.empty() ? "" : " | ") + (alone ? expression(one) : beside(one));
    if (all.empty()) fail_schema(schemas, "is empty");
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

  std::string one_of(const SchemaKeywords& schema, std::string_view keyword,
                     const std::vector<Value>& values) {
    schema.require_only(keyword, "type");
    const Value type = schema["type"];
    std::string all;
    for (const Value v : values) {
      bool fits = type.is_null() || (type.is_text() && is_of(v, type.text()));
      if (type.is_array())
        for (const Value one : type) fits |= is_of(v, one.text());
      if (fits) all += (all.empty() ? "" : " | ") + gbnf_literal(json_text_of(v));
    }
    if (all.empty()) fail_schema(schema.all(keyword)[0], "has no value of the type");
    return "(" + all + ")";
  }

  std::string reference(Value ref) {
    const auto [place, is_new] = references_.try_emplace({root_id_, std::string(ref.text())}, "");
    if (!is_new) return place->second;
    const std::string name = place->second = strformat("ref{}", references_.size());
    const std::string text = expression(resolved(ref, root_));
    rules_.push_back(name + " ::= " + text);
    return name;
  }

  std::string by_type(const SchemaKeywords& schema) {
    const Value type = schema["type"];
    if (type.is_array()) {
      std::string all;
      for (const Value one : type) all += (all.empty() ? "" : " | ") + of_type(schema, one.text());
      if (all.empty()) fail_schema(type, "is empty");
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
      if (schema.has(keyword)) return of_type(schema, implied);
    return "value";
  }

  std::string of_type(const SchemaKeywords& schema, std::string_view type) {
    if (type == "object") return object(schema);
    if (type == "array") return array(schema);
    if (type == "string") return string(schema);
    if (type == "integer" || type == "number") return number(schema, type == "integer");
    if (type == "boolean") return "(\"true\" | \"false\")";
    if (type == "null") return "\"null\"";
    fail_schema(schema.first(), strformat("there is no type '{}'", type));
  }

  static int64_t count(Value v, int64_t otherwise) { return v.integer_or(otherwise, 0, 100000); }

  static std::string times(int64_t least, int64_t most) {
    return most < 0 ? strformat("{{{},}}", least) : strformat("{{{},{}}}", least, most);
  }

  std::string string(const SchemaKeywords& schema) {
    const int64_t least = count(schema["minLength"], 0), most = count(schema["maxLength"], -1);
    if (most >= 0 && most < least) fail_schema(schema["maxLength"], "is below minLength");
    const bool sized = least > 0 || most >= 0;
    std::string inside;
    if (const Value pattern = schema["pattern"]; !pattern.is_null()) {
      if (sized) fail_schema(pattern, "together with minLength or maxLength is not supported");
      inside = gbnf_pattern(pattern.text());
    } else {
      inside = format(schema["format"].is_text() ? schema["format"].text() : "");
      if (!inside.empty() && sized)
        fail_schema(schema["format"], "together with a length is not supported");
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

  std::string number(const SchemaKeywords& schema, bool integer) {
    if (const Value step = schema["multipleOf"]; !step.is_null())
      if (!integer || step.number() != 1) fail_schema(step, "is not supported");
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
    if (least > most)
      fail_schema(schema.first(), "bounds with no whole number between are not supported");
    return gbnf_integers(static_cast<int64_t>(least), static_cast<int64_t>(most));
  }

  std::string array(const SchemaKeywords& schema) {
    schema.require_together("items", "prefixItems");
    if (is_true(schema["uniqueItems"])) fail_schema(schema["uniqueItems"], "is not supported");
    int64_t least = count(schema["minItems"], 0), most = count(schema["maxItems"], -1);
    std::vector<std::string> first;
    for (const Value item : schema["prefixItems"]) first.push_back(new_rule(expression(item)));
    const Value items = schema["items"];
    if (items.is_array()) fail_schema(items, "as a list is prefixItems now");
    if (is_false(items)) {
      const auto fixed = static_cast<int64_t>(first.size());
      most = most < 0 ? fixed : std::min(most, fixed);
    }
    if (most >= 0 && most < least)
      fail_schema(schema.first(), "has fewer items at most than at least");
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
  std::vector<Member> members_of(const SchemaKeywords& schema) {
    const Value additional = schema["additionalProperties"];
    std::set<std::string_view> required, declared;
    std::vector<Value> needed;
    for (const Value names : schema.all("required"))
      for (const Value name : names)
        if (required.insert(name.text()).second) needed.push_back(name);
    std::vector<Member> members;
    for (const Value properties : schema.all("properties")) {
      if (!properties.is_object()) fail_schema(properties, "is an object of schemas");
      for (const Value property : properties) {
        const std::string_view name = property.key();
        const bool is_needed = required.contains(name);
        if (!declared.insert(name).second || (!is_needed && is_false(property))) continue;
        add_member(members, name, of_property(schema, name), is_needed);
      }
    }
    for (const Value one : needed) {
      const std::string_view name = one.text();
      if (declared.contains(name)) continue;
      if (is_false(additional)) fail_schema(one, strformat("'{}' is no property", name));
      add_member(members, name, additional.is_object() ? expression(additional) : "value", true);
    }
    return members;
  }

  /// As all say it that have the property.
  std::string of_property(const SchemaKeywords& schema, std::string_view name) {
    std::vector<Value> all;
    for (const Value properties : schema.all("properties"))
      if (has_member(properties, name)) all.push_back(properties[name]);
    if (all.size() == 1) return expression(all[0]);
    SchemaKeywords both(all[0], root_);
    for (size_t i = 1; i < all.size(); ++i) both.add(all[i], root_);
    return together(std::move(both));
  }

  std::string object(const SchemaKeywords& schema) {
    schema.require_together("additionalProperties", "properties");
    const Value additional = schema["additionalProperties"];
    const std::vector<Member> members = members_of(schema);
    const auto needed = std::ranges::count_if(members, &Member::needed);
    const int64_t most = count(schema["maxProperties"], -1);
    if (count(schema["minProperties"], 0) > needed)
      fail_schema(schema["minProperties"], "above what is required is not supported");
    if (most >= 0 && most < std::ssize(members))
      fail_schema(schema["maxProperties"], "below the number of properties is not supported");
    if (members.empty())
      return is_false(additional) || schema.has("properties") || most == 0 ? "\"{\" ws \"}\""
                                                                           : map(additional, most);
    // From behind: what may follow if nothing was written yet, and if something was.
    std::string begin, after;
    for (auto member = members.rbegin(); member != members.rend(); ++member) {
      const auto& [rule, is_needed] = *member;
      const std::string alone = rule + (after.empty() ? "" : " " + after);
      begin = new_rule(is_needed ? alone : alone + " | " + (begin.empty() ? "\"\"" : begin));
      const std::string next = is_needed ? "\",\" ws " + rule : "(\",\" ws " + rule + ")?";
      after = new_rule(next + (after.empty() ? "" : " " + after));
    }
    return "\"{\" ws " + begin + " ws \"}\"";
  }

  /// Of any names, `most` at most.
  std::string map(Value values, int64_t most) {
    if (!values.is_object() && most < 0) return "object";
    const std::string value = values.is_object() ? expression(values) : "value";
    const std::string member = new_rule("string \":\" ws " + value);
    return "\"{\" ws (" + member + " (\",\" ws " + member + ")" +
           times(0, most < 0 ? -1 : most - 1) + ")? ws \"}\"";
  }

  Value root_;
  size_t count_ = 0, schemas_ = 0;
  int depth_ = 0;
  std::vector<std::string> rules_;
  std::string root_id_;
  std::map<std::pair<std::string, std::string>, std::string> references_;  // to rules' names
};

}  // namespace

std::string json_schema_gbnf(std::string_view schema) {
  const JsonTree tree(schema, "schema", "llm.schema");
  return SchemaGrammar(tree.root()).text();
}

}  // namespace weft::llm
