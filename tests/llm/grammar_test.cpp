#include "weft/llm/grammar.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "weft/base/error.h"
#include "weft/base/json_writer.h"
#include "weft/io/json_tree.h"
#include "weft/trust/random.h"

namespace weft::llm {
namespace {

using text::TokenId;

/// All bytes, some pieces that go across parts of a grammar, an end.
std::shared_ptr<const GrammarVocabulary> vocabulary() {
  std::vector<std::string> pieces;
  for (int byte = 0; byte < 256; ++byte) pieces.emplace_back(1, static_cast<char>(byte));
  for (const char* piece : {"\":", "\",\"", "}]", "[[", "true", "abc", "日本", "\xe6\x97", "12",
                            "\\u00", "  ", "{\"", "\"}", "1,", ": 1", "abc"})
    pieces.emplace_back(piece);
  pieces.emplace_back("</s>");
  const TokenId end = static_cast<TokenId>(pieces.size()) - 1;
  return std::make_shared<GrammarVocabulary>(pieces, std::vector<TokenId>{end});
}
TokenId end_of(const GrammarVocabulary& v) { return static_cast<TokenId>(v.size()) - 1; }

GrammarMatcher matcher(Grammar grammar) {
  return {std::make_shared<const Grammar>(std::move(grammar)), vocabulary()};
}

/// Whether the text is an answer, byte for byte.
bool takes(const Grammar& grammar, std::string_view text) {
  GrammarMatcher m = matcher(grammar);
  for (const char c : text) {
    const auto byte = static_cast<size_t>(static_cast<uint8_t>(c));
    if ((m.allowed()[byte / 64] >> byte % 64 & 1) == 0) return false;
    m.accept(static_cast<TokenId>(byte));
  }
  return m.complete();
}

std::vector<TokenId> allowed_tokens(GrammarMatcher& m, size_t count) {
  std::vector<TokenId> ids;
  const auto mask = m.allowed();
  for (size_t id = 0; id < count; ++id)
    if (mask[id / 64] >> id % 64 & 1) ids.push_back(static_cast<TokenId>(id));
  return ids;
}

TEST(Grammar, ReadsGbnf) {
  struct Row {
    const char* grammar;
    std::vector<const char*> in, out;
  };
  const Row kRows[] = {
      {"root ::= \"yes\" | \"no\"", {"yes", "no"}, {"", "y", "yesno", "x"}},
      {"root ::= [a-c]+ \"-\" [^0-9] # c\n", {"ab-x", "c-é", "c-日"}, {"-x", "a-1", "d-x", "a-"}},
      {"root ::= x{2,3} y?\nx ::= \"a\" \"b\"\ny ::= \"c\"",
       {"abab", "ababab", "ababc"},
       {"ab", "abababab", "abac"}},
      {"root ::= \"(\" root \")\" |\n  \"1\"", {"1", "((1))"}, {"(1", "()"}},
      {"root ::= ( \"a\" | \"b\" )* \"\\x41\\u00e9\\n\"",
       {"A\xc3\xa9\n", "abbaA\xc3\xa9\n"},
       {"A\xc3"}},
      {"root ::= [à-ý]{2}", {"éè"}, {"é", "eé", "日日"}},
      {"root ::= .", {"a", "日", "😀"}, {"\xff", "ab"}},
      {"root ::= [^\\x00-\\uffff]", {"😀"}, {"日", "a"}},
      {"root ::= a{0,2} a{2,}\na ::= \"a\"", {"aa", "aaaaa"}, {"a"}},
      // Space may stand before what repeats, and around its numbers, as llama.cpp reads it.
      {"root ::= \"a\" * [b] { 2 , 3 } # c\n", {"bb", "aabbb"}, {"b", "a", "aabbbb"}},
      {"root ::= (\"a\"\n  +\n) \"c\" ? \"d\"{ 1, }", {"ad", "aacdd"}, {"d", "ac"}},
      {"root ::= b*\nb ::= \"\" | \"x\" b", {}, {}},
  };
  for (const auto& [grammar, in, out] : kRows) {
    if (in.empty()) {
      EXPECT_THROW(Grammar::from_gbnf(grammar), Error) << grammar;
      continue;
    }
    const Grammar g = Grammar::from_gbnf(grammar);
    for (const char* text : in) EXPECT_TRUE(takes(g, text)) << grammar << ": " << text;
    for (const char* text : out) EXPECT_FALSE(takes(g, text)) << grammar << ": " << text;
  }
}

TEST(Grammar, ReadsPatternsOfWholeAnswers) {
  struct Row {
    const char* pattern;
    std::vector<const char*> in, out;
  };
  const Row kRows[] = {
      {"[0-9]{3}-x?", {"123-", "123-x"}, {"12-", "123-xx", ""}},
      {"^(yes|no \"or\" so)$", {"yes", "no \"or\" so"}, {"y", "no \\\"or\\\" so"}},
      {"\\w+\\s\\S\\D", {"ab \"\\", "a\n\"x"}, {"ab", "a  x", "a bb1"}},
      {".*\\t", {"\t", "a\"\\\t"}, {"a\n\t", "\\t"}},
      {"[^a-c\"]+\\\\", {"x\n\\", "d\\"}, {"a\\", "\"\\", "x"}},
  };
  for (const auto& [pattern, in, out] : kRows) {
    const Grammar g = Grammar::from_pattern(pattern);
    for (const char* text : in) EXPECT_TRUE(takes(g, text)) << pattern << ": " << text;
    for (const char* text : out) EXPECT_FALSE(takes(g, text)) << pattern << ": " << text;
  }
  EXPECT_THROW(Grammar::from_pattern("(?<=a)b"), Error);
  EXPECT_THROW(Grammar::from_pattern("\xff"), Error);
}

TEST(Grammar, ReadsChoices) {
  const std::vector<std::string> choices = {"yes", "no \"or\"\n\\so", "caf\xc3\xa9"};
  const Grammar g = Grammar::from_choices(choices);
  for (const std::string& one : choices) EXPECT_TRUE(takes(g, one)) << one;
  for (const char* text : {"", "ye", "yesno"}) EXPECT_FALSE(takes(g, text)) << text;
  EXPECT_THROW(Grammar::from_choices({}), Error);
}

TEST(Grammar, SaysWhatIsNoGbnf) {
  const std::pair<std::string, const char*> kRows[] = {
      {"root = \"a\"", "1:6: expected '::='"},
      {"root ::= \"a", "a literal or class without an end"},
      {"root ::= [b-a]", "a range whose end is before its beginning"},
      {"root ::= x", "rule 'x' is used and not defined"},
      {"a ::= \"x\"", "there is no rule 'root'"},
      {"root ::= \"a\" root", "each would go on for ever"},
      {"root ::= root \"a\" | \"b\"", "rule 'root' may begin with itself"},
      {"root ::= x root\nx ::= \"a\"?", "rule 'root' may begin with itself"},
      {"root ::= \"a\"\nroot ::= \"b\"", "2:13: rule 'root' is defined twice"},
      {"root ::= \"a\"{3,2}", "whose most is below its least"},
      {"root ::= \"a\"{9999999}", "a repetition of more than 100000"},
      {"root ::= (\"a\"", "expected ')'"},
      {"root ::= \"\\q\"", "an unknown escape"},
      {"root ::= " + std::string(300, '('), "nesting deeper than 100"},
      {[] {
         std::string text = "root ::=";
         for (int i = 0; i < 25; ++i) text += " \"a\"{100000}";
         return text;
       }(),
       "more than 2000000 elements"},
  };
  for (const auto& [grammar, want] : kRows) {
    try {
      Grammar::from_gbnf(grammar);
      ADD_FAILURE() << grammar;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), "llm.grammar");
      EXPECT_NE(e.message().find(want), std::string::npos) << e.message();
    }
  }
}

TEST(Grammar, AllowsTokensAcrossItsParts) {
  GrammarMatcher m = matcher(Grammar::from_gbnf("root ::= \"ab\" (\"c\" | \"日\") \"!\"?"));
  const auto v = vocabulary();
  EXPECT_EQ(allowed_tokens(m, v->size()), (std::vector<TokenId>{'a', 261, 271}));  // a, abc, abc
  m.accept('a');
  EXPECT_EQ(allowed_tokens(m, v->size()), std::vector<TokenId>{'b'});
  m.accept('b');
  EXPECT_EQ(allowed_tokens(m, v->size()), (std::vector<TokenId>{'c', 0xe6, 263}));  // a part of 日
  EXPECT_THROW(m.accept('x'), Error);
  EXPECT_THROW(m.accept(end_of(*v)), Error);
  m.accept(263);
  EXPECT_FALSE(m.complete());
  m.accept(0xa5);
  EXPECT_TRUE(m.complete());
  EXPECT_FALSE(m.finished());
  EXPECT_EQ(allowed_tokens(m, v->size()), (std::vector<TokenId>{'!', end_of(*v)}));
  m.accept('!');
  EXPECT_TRUE(m.finished());
  m.accept(end_of(*v));
  EXPECT_THROW(m.accept('a'), Error);
}

TEST(Grammar, RefusesWhatIsTooAmbiguous) {
  std::string grammar = "root ::= (a | b)* \n";
  grammar += "a ::= x a | x\nb ::= x b | x \nx ::= \"q\"\n";
  GrammarMatcher m = matcher(Grammar::from_gbnf(grammar));
  for (int i = 0; i < 200; ++i) {
    m.allowed();
    m.accept('q');
  }
  EXPECT_TRUE(m.complete());
}

TEST(JsonSchema, HoldsAnswersToIt) {
  struct Row {
    const char* schema;
    std::vector<const char*> in, out;
  };
  const Row kRows[] = {
      {"{}",
       {"1", "[1, {\"a\": null}]", "\"x\\u00e9\\n\"", "-0.5e3", "true"},
       {"01", "[1,]", "\"\n\"", "\"\\ud800\"", "nul", "{a:1}"}},
      {R"({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
           "required": ["b"], "additionalProperties": false})",
       {R"({"b":""})", R"({"a": 1, "b": "x"})"},
       {R"({"a":1})", "{}", R"({"b":"","a":1})", R"({"b":"","c":1})"}},
      {R"({"type": "object", "properties": {"a": {"type": "null"}, "b": {"type": "null"}, "c": {"type": "null"}}})",
       {"{}", R"({"a":null})", R"({"b":null})", R"({"a":null,"c":null})"},
       {"{,}", R"({"a":null,})"}},
      {R"({"type": "array", "items": {"type": "boolean"}, "minItems": 1, "maxItems": 3})",
       {"[true]", "[true,false,true]"},
       {"[]", "[true,true,true,true]", "[1]"}},
      {R"({"prefixItems": [{"const": 1}, {"type": "string"}], "items": false})",
       {"[]", "[1]", "[1,\"a\"]"},
       {"[1,\"a\",1]", "[\"a\"]"}},
      {R"({"prefixItems": [{"const": 1}, {"const": 2}], "items": {"const": 3}, "minItems": 1, "maxItems": 4})",
       {"[1]", "[1,2,3,3]"},
       {"[]", "[1,3]", "[1,2,3,3,3]"}},
      {R"({"enum": ["a\"b", 2, null, {"k": [true]}]})",
       {"\"a\\\"b\"", "2", "null", "{\"k\":[true]}"},
       {"3"}},
      {R"({"type": "string", "minLength": 2, "maxLength": 3})",
       {"\"ab\"", "\"日本語\"", "\"\\n\\u00e9\""},
       {"\"a\"", "\"abcd\""}},
      {R"({"type": "string", "pattern": "^\\d{2,3}-[a-c\"]+$"})",
       {"\"12-a\"", "\"123-\\\"b\""},
       {"\"1-a\"", "\"12-\"", "\"12-d\""}},
      {R"({"type": "string", "format": "date"})",
       {"\"2024-02-28\"", "\"1999-12-31\""},
       {"\"2024-02-30\"", "\"2024-13-01\""}},
      {R"({"type": "integer", "minimum": -3, "exclusiveMaximum": 112})",
       {"-3", "0", "9", "10", "99", "100", "111"},
       {"-4", "112", "1.0", "-0", "00"}},
      {R"({"type": "number", "minimum": 0.5, "maximum": 10.5})", {"1", "10"}, {"0", "11"}},
      {R"({"anyOf": [{"type": "integer"}, {"type": "array", "items": {"$ref": "#"}}]})",
       {"1", "[1,[2,[]]]"},
       {"\"a\"", "[\"a\"]"}},
      {R"({"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"type": ["null", "boolean"]}}})",
       {"null", "true"},
       {"1"}},
      {R"({"type": "object", "additionalProperties": {"type": "integer"}})",
       {"{}", "{\"x\":1, \"y\":2}"},
       {"{\"x\":\"a\"}"}},
      {R"({"type": "object", "required": ["q"]})", {"{\"q\": [1]}"}, {"{}"}},
      {R"({"allOf": [{"type": "null"}]})", {"null"}, {"1"}},
      // All that is said holds.
      {R"({"type": "integer", "anyOf": [{"minimum": 5}, {"maximum": 2}, true]})",
       {"7", "1"},
       {"null", "\"a\""}},
      {R"({"properties": {"a": {"const": 1}, "b": {"const": 2}},
           "anyOf": [{"required": ["a"]}, {"required": ["b"]}], "required": ["b"]})",
       {R"({"b":2})", R"({"a":1,"b":2})"},
       {"{}", R"({"a":1})", R"({"a":2,"b":2})"}},
      {R"({"$ref": "#/$defs/t", "maxLength": 1, "$defs": {"t": {"type": "string", "minLength": 1}}})",
       {"\"a\""},
       {"\"\"", "\"ab\""}},
      {R"({"allOf": [{"$ref": "#/$defs/a%20b"}, {"properties": {"y": {"type": "null"}, "x": {"minimum": 5}}}, true],
           "required": ["x", "x"], "$defs": {"a b": {"properties": {"x": {"type": "integer"}}}}})",
       {R"({"x":5})", R"({"x":7,"y":null})"},
       {"{}", R"({"x":4})", R"({"x":5,"x":5})", R"({"y":null})"}},
      {R"({"allOf": [{"properties": {"a": true}}, {"properties": {"a": true}}], "required": ["a"]})",
       {R"({"a":[1]})"},
       {"{}"}},
      // Where a part would have to be in itself, it is never begun.
      {R"({"properties": {"a": {"$ref": "#", "required": ["a"]}, "b": {"const": 1}}})",
       {"{}", R"({"b":1})"},
       {R"({"a":{})", R"({"a":{"b":1}})"}},
      {R"({"const": null, "type": ["null", "string"]})", {"null"}, {"\"\""}},
      // Schemas that include themselves, as optional parts and lists of parts are written.
      {R"({"$ref": "#/$defs/n", "$defs": {"n": {"properties": {"v": {"type": "integer"}, "next":
           {"anyOf": [{"$ref": "#/$defs/n"}, {"type": "null"}], "default": null}}, "required": ["v", "next"]}}})",
       {R"({"v":1,"next":{"v":2,"next":null}})"},
       {R"({"v":1,"next":2})", R"({"v":1,"next":{"v":null,"next":null}})"}},
      {R"({"$ref": "#/$defs/n", "$defs": {"l": {"properties": {"v": {"const": 1}}, "required": ["v"]}, "n": {
           "properties": {"of": {"type": "array", "items": {"type": "object", "anyOf": [{"$ref": "#/$defs/n"},
           {"$ref": "#/$defs/l"}]}}}, "required": ["of"]}}})",
       {R"({"of":[{"v":1},{"of":[{"of":[]},{"v":1}]}]})"},
       {R"({"of":[1]})", R"({"of":[{"of":[{}]}]})"}},
      {R"({"type": "array", "items": {"allOf": [{"$ref": "#"}], "title": "more"}})",
       {"[[],[[]]]"},
       {"[1]"}},
      {R"({"type": "object", "maxProperties": 1})", {"{}", "{\"a\":1}"}, {"{\"a\":1,\"b\":1}"}},
      {R"({"type": "object", "maxProperties": 0, "additionalProperties": true})",
       {"{}"},
       {"{\"a\":1}"}},
      {R"({"properties": {"t": {"$id": "t", "items": {"$ref": "#"}, "type": "array"}, "u": {"$ref": "#"}},
           "additionalProperties": false})",
       {R"({"t":[[]],"u":{"t":[],"u":{}}})"},
       {R"({"t":[{}]})", R"({"u":[]})"}},
      {"true", {"1"}, {}},
  };
  for (const auto& [schema, in, out] : kRows) {
    const Grammar g = Grammar::from_json_schema(schema);
    for (const char* text : in) EXPECT_TRUE(takes(g, text)) << schema << ": " << text;
    for (const char* text : out) EXPECT_FALSE(takes(g, text)) << schema << ": " << text;
  }
}

TEST(JsonSchema, SaysWhatItCannotHoldTo) {
  const std::pair<const char*, const char*> kRows[] = {
      {R"({"not": {}})", "not: is not supported"},
      {R"({"type": "array", "uniqueItems": true})", "uniqueItems: is not supported"},
      {R"({"type": "number", "multipleOf": 0.5})", "multipleOf: is not supported"},
      {R"({"allOf": [{"type": "null"}, {"type": "string"}]})", "type: of two schemas"},
      {R"({"enum": [1, 2], "minimum": 2})", "minimum: beside enum is not supported"},
      {R"({"const": 1, "anyOf": [{"type": "null"}]})", "const: has no value of the type"},
      {R"({"properties": {"a": {}}, "allOf": [{"additionalProperties": false}]})",
       "additionalProperties: beside a schema with other properties"},
      {R"({"$ref": "#/$defs/a", "not": {}, "$defs": {"a": {}}})", "not: is not supported"},
      {R"({"properties": ["a"]})", "properties: is an object of schemas"},
      {R"({"items": {}, "allOf": [{"prefixItems": [{}]}]})", "items: beside a schema with other"},
      {R"({"allOf": [{"$ref": "#"}], "type": "null"})", "includes itself"},
      {R"({"type": "object", "required": ["a", "b"], "maxProperties": 1})",
       "below the number of properties"},
      {R"({"$ref": "#/$defs/x", "type": "null", "$defs": {"x": {"$id": "y"}}})",
       "$id: of a schema"},
      {R"({"type": "thing"})", "there is no type 'thing'"},
      {R"({"$ref": "other.json"})", "'other.json' is not within the schema"},
      {R"({"$ref": "#/$defs/x"})", "'#/$defs/x' is not there"},
      {R"({"type": "string", "pattern": "(?=a)b"})", "a group that looks around"},
      {R"({"type": "string", "pattern": "a\\b"})", "an escape that is not known"},
      {R"({"type": "string", "pattern": "a", "minLength": 2})", "together with minLength"},
      {R"({"type": "string", "minLength": 3, "maxLength": 2})", "is below minLength"},
      {R"({"type": "number", "minimum": 0.2, "maximum": 0.8})", "no whole number between"},
      {R"({"type": "object", "minProperties": 2})", "above what is required"},
      {R"({"type": "string", "enum": [1]})", "has no value of the type"},
      {"false", "false allows nothing"},
      {"3", "a schema is an object"},
  };
  for (const auto& [schema, want] : kRows) {
    try {
      Grammar::from_json_schema(schema);
      ADD_FAILURE() << schema;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), "llm.schema");
      EXPECT_NE(e.message().find(want), std::string::npos) << e.message();
    }
  }
  EXPECT_THROW(Grammar::from_json_schema("{"), Error);
  EXPECT_THROW(Grammar::from_json_schema(R"({"$ref": "#"})"), Error);
}

/// A random schema of what valid() below can check.
void write_schema(JsonWriter& json, Random& random, int depth) {
  json.begin_object();
  switch (random.below(depth > 0 ? 7 : 4)) {
    case 0: {
      const int64_t least = random.below(300) - 150;
      json.field("type", "integer")
          .field("minimum", least)
          .field("maximum", least + random.below(200));
      break;
    }
    case 1:
      json.field("type", "string").field("minLength", random.below(3));
      json.field("maxLength", 3 + random.below(4));
      break;
    case 2:
      json.key("enum").begin_array().value("a\"").value(random.below(9)).null().end_array();
      break;
    case 3: json.field("type", random.below(2) == 0 ? "boolean" : "number"); break;
    case 4: {
      json.field("type", "array").key("items");
      write_schema(json, random, depth - 1);
      const int64_t least = random.below(3);
      json.field("minItems", least).field("maxItems", least + random.below(3));
      break;
    }
    case 5: {
      json.key("anyOf").begin_array();
      for (int64_t i = random.below(3); i >= 0; --i) write_schema(json, random, depth - 1);
      json.end_array();
      break;
    }
    default: {
      json.field("type", "object").key("properties").begin_object();
      const int64_t count = random.below(4);
      for (int64_t i = 0; i < count; ++i)
        write_schema(json.key(std::string(1, static_cast<char>('a' + i))), random, depth - 1);
      json.end_object().field("additionalProperties", false).key("required").begin_array();
      for (int64_t i = 0; i < count; ++i)
        if (random.below(2) == 0) json.value(std::string(1, static_cast<char>('a' + i)));
      json.end_array();
    }
  }
  json.end_object();
}

using Json = JsonTree::Value;
bool valid(Json v, Json schema);

bool valid_object(Json v, Json schema) {
  for (const Json name : schema["required"]) {
    bool found = false;
    for (const Json member : v) found |= member.key() == name.text();
    if (!found) return false;
  }
  for (const Json member : v) {
    const Json property = schema["properties"][member.key()];
    if (property.is_null() || !valid(member, property)) return false;
  }
  return true;
}

size_t characters_of(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

bool valid(Json v, Json schema) {
  for (const Json one : schema["anyOf"])
    if (valid(v, one)) return true;
  if (!schema["anyOf"].is_null()) return false;
  for (const Json one : schema["enum"])
    if (one.kind() == v.kind() &&
        (v.is_null() || (v.is_text() ? one.text() == v.text() : one.number() == v.number())))
      return true;
  if (!schema["enum"].is_null()) return false;
  const std::string_view type = schema["type"].text();
  if (type == "boolean")
    return v.kind() == JsonTree::Kind::True || v.kind() == JsonTree::Kind::False;
  if (type == "number") return v.kind() == JsonTree::Kind::Number;
  if (type == "integer")
    return v.kind() == JsonTree::Kind::Number && v.number() == std::floor(v.number()) &&
           v.number() >= schema["minimum"].number() && v.number() <= schema["maximum"].number();
  if (type == "string") {
    if (!v.is_text()) return false;
    const auto size = static_cast<double>(characters_of(v.text()));
    return size >= schema["minLength"].number() && size <= schema["maxLength"].number();
  }
  if (type == "object") return v.is_object() && valid_object(v, schema);
  if (!v.is_array() || static_cast<double>(v.size()) < schema["minItems"].number() ||
      static_cast<double>(v.size()) > schema["maxItems"].number())
    return false;
  for (const Json item : v)
    if (!valid(item, schema["items"])) return false;
  return true;
}

/// What a model without any idea says.
std::string random_answer(const Grammar& grammar, Random& random) {
  GrammarMatcher m = matcher(grammar);
  const auto v = vocabulary();
  std::string text;
  for (int i = 0; i < 100000; ++i) {
    const std::vector<TokenId> ids = allowed_tokens(m, v->size());
    if (ids.empty()) return "no token is allowed";
    const TokenId id = random.pick(ids);
    m.accept(id);
    if (id == end_of(*v)) return text;
    text += v->piece(id);
  }
  return "no end";
}

void check_random_schemas(uint64_t seed, int count) {
  Random random(seed);
  for (int i = 0; i < count; ++i) {
    JsonWriter json;
    write_schema(json, random, 3);
    const std::string schema = json.take(),
                      answer = random_answer(Grammar::from_json_schema(schema), random);
    bool good = false;
    try {
      const JsonTree value(answer, "answer"), tree(schema, "schema");
      good = valid(value.root(), tree.root());
    } catch (const Error& e) {
      ADD_FAILURE() << e.message();
    }
    ASSERT_TRUE(good) << schema << "\n" << answer;
  }
}

TEST(JsonSchema, HoldsRandomModelsToRandomSchemas) { check_random_schemas(1, 150); }
TEST(JsonSchema, SlowHoldsRandomModelsToTenThousandSchemas) { check_random_schemas(2, 10000); }

}  // namespace
}  // namespace weft::llm
