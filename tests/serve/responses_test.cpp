// /v1/responses: objects, events, and what is refused.
#include <gtest/gtest.h>

#include "tests/serve/client.h"

namespace weft::serve {
namespace {

Answer respond(const ServerHere& s, const Json& body) {
  return s.ask(post("/v1/responses", body.dump()));
}

const Json kTools = Json::parse(R"([{"type": "function", "name": "weather", "strict": true,
  "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}])");
constexpr const char* kCall =
    R"(SAY <think>\nhm\n</think>\n\nWell.\n<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>)";

TEST(Responses, HaveItems) {
  const ServerHere s;
  const Json plain = respond(s, {{"input", "SAY Hé"}, {"temperature", 0.5}}).json();
  EXPECT_EQ(plain["object"], "response");
  EXPECT_EQ(plain["status"], "completed");
  EXPECT_EQ(plain["temperature"], 0.5);
  EXPECT_EQ(plain["model"], "fake");
  EXPECT_EQ(plain["usage"]["output_tokens"], 3);
  ASSERT_EQ(plain["output"].size(), 1u) << plain;
  EXPECT_EQ(plain["output"][0]["type"], "message");
  EXPECT_EQ(plain["output"][0]["content"][0]["text"], "Hé");
  const Json cut = respond(s, {{"input", "SAY abc"}, {"max_output_tokens", 2}}).json();
  EXPECT_EQ(cut["status"], "incomplete");
  EXPECT_EQ(cut["incomplete_details"]["reason"], "max_output_tokens");
  EXPECT_EQ(cut["output"][0]["status"], "incomplete");
  const Json called = respond(s, {{"input", kCall}, {"tools", kTools}}).json();
  ASSERT_EQ(called["output"].size(), 3u) << called;
  EXPECT_EQ(called["output"][0]["type"], "reasoning");
  EXPECT_EQ(called["output"][0]["content"][0]["text"], "hm\n");
  EXPECT_EQ(called["output"][1]["content"][0]["text"], "Well.\n");
  EXPECT_EQ(called["output"][2]["type"], "function_call");
  EXPECT_EQ(called["output"][2]["name"], "weather");
  EXPECT_EQ(called["output"][2]["arguments"], R"({"city":"Oslo"})");
  EXPECT_EQ(called["tools"], kTools);
}

TEST(Responses, TakeItemsOfEarlierOnes) {
  ServerHere s;
  const Json input = Json::parse(R"([
    {"role": "developer", "content": "Be brief."},
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "weather?"}]},
    {"type": "reasoning", "id": "rs_1", "summary": []},
    {"type": "message", "id": "msg_1", "status": "completed", "role": "assistant",
     "content": [{"type": "output_text", "text": "Well.", "annotations": []}]},
    {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{\"city\": \"Oslo\"}"},
    {"type": "function_call_output", "call_id": "c1", "output": "SAY rain"}])");
  const Json j = respond(s, {{"instructions", "In English."}, {"input", input}}).json();
  EXPECT_EQ(j["output"][0]["content"][0]["text"], "rain") << j;
  EXPECT_EQ(j["instructions"], "In English.");
  EXPECT_EQ(s.generator.prompt(),
            "<|im_start|>system\nIn English.<|im_end|>\n<|im_start|>system\nBe brief.<|im_end|>\n"
            "<|im_start|>user\nweather?<|im_end|>\n<|im_start|>assistant\nWell.\n<tool_call>\n"
            "{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\"}}\n</tool_call><|im_end|>\n"
            "<|im_start|>user\n<tool_response>\nSAY rain\n</tool_response><|im_end|>\n"
            "<|im_start|>assistant\n");
}

TEST(Responses, AreStreamed) {
  const ServerHere s;
  std::vector<std::string> types;
  std::string text, arguments;
  Json last;
  size_t number = 0;
  const Answer answer = respond(s, {{"input", kCall}, {"tools", kTools}, {"stream", true}});
  for (const std::string& event : answer.events()) {
    last = Json::parse(event);
    EXPECT_EQ(last["sequence_number"], number++);
    const std::string type = last["type"];
    if (type == "response.output_text.delta") text += last["delta"];
    if (type == "response.function_call_arguments.delta") arguments += last["delta"];
    if (types.empty() || types.back() != type) types.push_back(type);
  }
  EXPECT_EQ(text, "Well.\n");
  EXPECT_EQ(arguments, R"({"city":"Oslo"})");
  const std::vector<std::string> item = {
      "response.output_item.added", "response.content_part.added", "response.output_text.delta",
      "response.output_text.done",  "response.content_part.done",  "response.output_item.done"};
  EXPECT_EQ(types.front(), "response.created");
  EXPECT_NE(std::search(types.begin(), types.end(), item.begin(), item.end()), types.end());
  EXPECT_EQ(last["type"], "response.completed");
  EXPECT_EQ(last["response"]["output"].size(), 3u);
  EXPECT_EQ(last["response"]["output"][1]["content"][0]["text"], "Well.\n");
  EXPECT_GT(last["response"]["usage"]["output_tokens"], 10);
  EXPECT_NE(answer.body.find("event: response.completed\n"), std::string::npos);
}

TEST(Responses, HaveProbabilitiesOfWords) {
  const ServerHere s;
  const Json include = Json::array({"message.output_text.logprobs", "reasoning.encrypted_content"});
  const auto spelled = [](const Json& logprobs) {
    std::string text;
    for (const Json& one : logprobs) text += one["token"];
    return text;
  };
  const Json body = {{"input", kCall}, {"tools", kTools}, {"include", include}};
  const Json j = respond(s, body).json();
  ASSERT_EQ(j["output"].size(), 3u) << j;
  const Json& part = j["output"][1]["content"][0];
  EXPECT_EQ(part["text"], "Well.\n");
  EXPECT_EQ(spelled(part["logprobs"]), "Well.\n");
  EXPECT_EQ(part["logprobs"][0]["logprob"], -0.25);
  EXPECT_TRUE(part["logprobs"][0]["top_logprobs"].empty());
  EXPECT_FALSE(j["output"][0]["content"][0].contains("logprobs"));
  const Json top = respond(s, {{"input", "SAY a\xc3\xa9"}, {"top_logprobs", 2}}).json();
  const Json& tokens = top["output"][0]["content"][0]["logprobs"];
  EXPECT_EQ(tokens.size(), 3u) << "a character of two tokens";
  EXPECT_EQ(tokens[0]["top_logprobs"].size(), 2u);
  EXPECT_EQ(top["top_logprobs"], 2);
  const Json none = respond(s, {{"input", "SAY a"}}).json();
  EXPECT_TRUE(none["output"][0]["content"][0]["logprobs"].empty());
  Json streamed = body;
  streamed["stream"] = true;
  std::string deltas, done;
  for (const std::string& event : respond(s, streamed).events()) {
    const Json e = Json::parse(event);
    if (e["type"] == "response.output_text.delta") deltas += spelled(e["logprobs"]);
    if (e["type"] == "response.output_text.done") done = spelled(e["logprobs"]);
  }
  EXPECT_EQ(deltas, "Well.\n");
  EXPECT_EQ(done, "Well.\n");
}

TEST(Responses, FailInTheirOwnForm) {
  const ServerHere s;
  EXPECT_EQ(respond(s, {{"input", "BREAK"}}).status, 500);
  const auto events = respond(s, {{"input", "BREAK"}, {"stream", true}}).events();
  const Json last = Json::parse(events.back());
  EXPECT_EQ(last["type"], "response.failed");
  EXPECT_EQ(last["response"]["status"], "failed");
  EXPECT_EQ(last["response"]["error"]["message"], "the fake broke");
}

TEST(Responses, AnswersAreHeldToFormats) {
  const ServerHere s;
  const auto with = [&](const Json& format) {
    return respond(s, {{"input", "SAY 1"}, {"text", {{"format", format}}}});
  };
  EXPECT_EQ(with({{"type", "text"}}).status, 200);
  EXPECT_EQ(s.generator.with_grammar, 0u);
  EXPECT_EQ(
      with({{"type", "json_schema"}, {"name", "n"}, {"schema", {{"type", "integer"}}}}).status,
      200);
  EXPECT_EQ(s.generator.with_grammar, 1u);
  const Json forced = {{"type", "function"}, {"name", "weather"}};
  for (const Json& choice : {forced, Json("required")})
    EXPECT_EQ(respond(s, {{"input", "SAY x"}, {"tools", kTools}, {"tool_choice", choice}}).status,
              200);
  EXPECT_EQ(s.generator.with_grammar, 3u);
}

TEST(Responses, SayWhatIsWrong) {
  const ServerHere s;
  const std::pair<Json, const char*> rows[] = {
      {Json::object(), "input is null; it has to be a string or an array of items"},
      {{{"input", Json::array()}}, "input is an array of 0; it has to be a string or an array"},
      {{{"input", {{{"type", "item_reference"}, {"id", "x"}}}}},
       "input[0].type is 'item_reference'; it has to be message, function_call"},
      {{{"input", {{{"role", "user"}, {"content", {{{"type", "input_image"}}}}}}}},
       "input[0].content[].type is 'input_image'; the model reads text only"},
      {{{"input", "x"}, {"previous_response_id", "resp_1"}},
       "previous_response_id is not supported: nothing is kept between requests"},
      {{{"input", "x"}, {"include", Json::array({"message.all"})}},
       "include has 'message.all'; what can be included is message.output_text.logprobs"},
      {{{"input", "x"}, {"top_logprobs", 21}}, "top_logprobs is 21; it has to be an integer"},
      {{{"input", "x"}, {"background", true}}, "background is not supported: nothing is kept"},
      {{{"input", "x"}, {"messages", Json::array()}}, "there is no parameter 'messages'"},
      {{{"input", "x"}, {"max_output_tokens", 0}},
       "max_output_tokens is 0; it has to be an integer"},
      {{{"input", "x"}, {"tools", {{{"type", "web_search"}}}}},
       "tools[0].type is 'web_search'; it has to be function"},
      {{{"input", "x"}, {"tool_choice", {{"type", "function"}, {"name", "f"}}}},
       "tool_choice.name is 'f'; it has to be the name of one of tools"},
      {{{"input", "x"}, {"text", {{"format", {{"type", "xml"}}}}}},
       "text.format.type is 'xml'; it has to be text, json_object or json_schema"},
  };
  for (const auto& [body, message] : rows) {
    const Answer answer = respond(s, body);
    EXPECT_EQ(answer.status, 400) << body;
    EXPECT_NE(answer.message().find(message), std::string::npos) << answer.body << "\n" << message;
  }
  EXPECT_EQ(s.generator.submitted, 0u);
}

}  // namespace
}  // namespace weft::serve
