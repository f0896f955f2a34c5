#include "weft/serve/tool_grammar.h"

#include "weft/base/json_writer.h"
#include "weft/llm/grammar.h"
#include "weft/serve/fields.h"

namespace weft::serve {

namespace {

bool is_demanded(const ToolChoice& choice) {
  return choice.kind == ToolChoice::Kind::Required || choice.kind == ToolChoice::Kind::Named;
}

std::string call_schema(const Tool& tool, std::string_view arguments) {
  JsonWriter json;
  json.begin_object().field("type", "object").key("properties").begin_object();
  json.key("name").begin_object().field("const", tool.name).end_object();
  json.key("arguments").raw(arguments).end_object();
  json.key("required").begin_array().value("name").value("arguments").end_array();
  return json.field("additionalProperties", false).end_object().take();
}

bool can_be_held_to(const std::string& schema) {
  try {
    llm::Grammar::from_json_schema(schema);
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// The schema as one of its own, in which its references begin.
std::string as_resource(JsonTree::Value schema, const std::string& id) {
  JsonWriter json;
  json.begin_object().field("$id", id);
  for (const JsonTree::Value member : schema)
    if (member.key() != "$id") json.key(member.key()).raw(json_text(member));
  return json.end_object().take();
}

std::string call_schema(const Tool& tool) {
  const JsonTree tree(tool.json, "a tool");
  const JsonTree::Value parameters = tree.root()["function"]["parameters"];
  if (parameters.is_object()) {
    std::string schema = call_schema(tool, as_resource(parameters, tool.name));
    if (can_be_held_to(schema)) return schema;
  }
  return call_schema(tool, R"({"type": "object"})");
}

}  // namespace

std::string answer_beginning(const ToolChoice& choice) {
  return is_demanded(choice) ? "<tool_call>\n" : "";
}

std::string demanded_call_schema(const CompletionRequest& request) {
  const ToolChoice& choice = request.tool_choice;
  if (!is_demanded(choice)) return "";
  JsonWriter json;
  json.begin_object().key("anyOf").begin_array();
  for (const Tool& tool : request.tools)
    if (choice.may_call(tool.name)) json.raw(call_schema(tool));
  return json.end_array().end_object().take();
}

}  // namespace weft::serve
