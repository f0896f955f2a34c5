#include "weft/serve/tool_grammar.h"

#include <gtest/gtest.h>

#include "weft/llm/grammar.h"

namespace weft::serve {
namespace {

CompletionRequest demanding(std::vector<Tool> tools) {
  CompletionRequest request;
  request.tools = std::move(tools);
  request.tool_choice.kind = ToolChoice::Kind::Required;
  return request;
}

TEST(ToolGrammar, ReferencesBeginInAToolsOwnSchema) {
  const char* parameters = R"({"name": "f", "parameters": {"type": "object",
      "properties": {"city": {"$ref": "#/$defs/City"}}, "required": ["city"], "$defs": )";
  const auto tool = [&](const std::string& name, const std::string& city) {
    return Tool{name, R"({"type": "function", "function": )" + std::string(parameters) +
                          R"({"City": {"enum": [")" + city + R"("]}}}}})"};
  };
  const std::string grammar = llm::json_schema_gbnf(
      demanded_call_schema(demanding({tool("f", "Oslo"), tool("g", "Rome")})));
  EXPECT_NE(grammar.find("Oslo"), std::string::npos) << grammar;
  EXPECT_NE(grammar.find("Rome"), std::string::npos) << grammar;
}

TEST(ToolGrammar, ASchemaThatCannotBeHeldToIsAnyObject) {
  const Tool tool{"f", R"({"function": {"name": "f", "parameters": {"not": {}}}})"};
  const std::string schema = demanded_call_schema(demanding({tool}));
  EXPECT_NE(schema.find(R"("arguments":{"type": "object"})"), std::string::npos) << schema;
}

}  // namespace
}  // namespace weft::serve
