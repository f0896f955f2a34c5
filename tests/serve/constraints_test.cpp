// What clients of vLLM, llama.cpp and lm-evaluation-harness ask for.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "tests/serve/client.h"
#include "weft/llm/grammar.h"

namespace weft::serve {
namespace {

Answer complete(const ServerHere& s, const Json& body) {
  return s.ask(post("/v1/completions", body.dump()));
}

TEST(Harness, AsksForThePromptsOwnProbabilities) {
  const ServerHere s;
  const Json whole =
      complete(s, {{"prompt", "caf\xc3\xa9 x"}, {"echo", true}, {"logprobs", 1}, {"max_tokens", 0}})
          .json();
  const Json& choice = whole["choices"][0];
  EXPECT_EQ(choice["text"], "caf\xc3\xa9 x");
  EXPECT_EQ(choice["finish_reason"], "length");
  const Json& logprobs = choice["logprobs"];
  EXPECT_EQ(logprobs["token_logprobs"], Json::parse("[null,-0.5,-0.5,-0.5,-0.5,-0.5,-0.5]"));
  EXPECT_TRUE(logprobs["top_logprobs"][0].is_null());
  EXPECT_EQ(logprobs["top_logprobs"][1], Json::parse(R"({"a": -0.5})"));
  // Characters: the last two bytes are one.
  EXPECT_EQ(logprobs["text_offset"], Json::array({0, 1, 2, 3, 3, 4, 5}));
  EXPECT_EQ(logprobs["tokens"], Json::array({"c", "a", "f", "bytes:\\xc3", "\xc3\xa9", " ", "x"}));
  EXPECT_EQ(logprobs["top_logprobs"][3], Json::parse(R"({"bytes:\\xc3": -0.5})"));
  EXPECT_EQ(whole["usage"]["completion_tokens"], 0);
  EXPECT_EQ(s.generator.last.prompt_logprobs, 1);
}

TEST(Harness, TheAnswersProbabilitiesFollowThePrompts) {
  const ServerHere s;
  const Json ask = {{"prompt", Json::array({83, 65, 89, 32, 256, 122})},  // one is special
                    {"echo", true},
                    {"logprobs", 0}};
  const Json logprobs = complete(s, ask).json()["choices"][0]["logprobs"];
  EXPECT_EQ(logprobs["tokens"], Json::array({"S", "A", "Y", " ", "<|im_start|>", "z", "<", "|", "i",
                                             "m", "_", "s", "t", "a", "r", "t", "|", ">", "z"}))
      << logprobs;
  EXPECT_EQ(logprobs["token_logprobs"][6], -0.25);
  EXPECT_EQ(logprobs["text_offset"][4], 4);
  EXPECT_EQ(logprobs["text_offset"][5], 4);
  EXPECT_EQ(logprobs["text_offset"][6], 5);
  Json streamed = ask;
  streamed["stream"] = true;
  Json tokens = Json::array(), offsets = Json::array();
  std::string text;
  for (const std::string& event : complete(s, streamed).events()) {
    if (event == "[DONE]") break;
    const Json choice = Json::parse(event)["choices"][0];
    text += choice["text"];
    for (const Json& one : choice["logprobs"]["tokens"]) tokens.push_back(one);
    for (const Json& one : choice["logprobs"]["text_offset"]) offsets.push_back(one);
  }
  EXPECT_EQ(text, "SAY z<|im_start|>z");
  EXPECT_EQ(tokens, logprobs["tokens"]);
  EXPECT_EQ(offsets, logprobs["text_offset"]);
}

TEST(Server, SaysWhatWasThereOfAPrompt) {
  const ServerHere s;
  EXPECT_EQ(s.chat(chat_body("SAY x", {{"n", 2}}))
                .json()["usage"]["prompt_tokens_details"]["cached_tokens"],
            3);
  const Json response =
      s.ask(post("/v1/responses", R"({"input": "SAY x", "cache_prompt": false})")).json();
  EXPECT_EQ(response["usage"]["input_tokens_details"]["cached_tokens"], 3);
  EXPECT_FALSE(s.generator.last.reuse_prefix);
}

TEST(Server, GivesTheBestAnswers) {
  const ServerHere s;
  Json ask = {{"prompt", "RANDOM"}, {"n", 8}, {"seed", 77}};
  // Each answer behind what it costs; of equal ones the first drawn is first.
  std::vector<std::tuple<int, size_t, std::string>> all;
  const Json eight = complete(s, ask).json();
  for (const Json& choice : eight["choices"]) {
    const std::string text = choice["text"];
    int cost = 0;
    for (const char c : text) cost += c - 'a';
    all.emplace_back(cost, all.size(), text);
  }
  std::ranges::sort(all);
  ask["n"] = 2;
  ask["best_of"] = 8;
  const Json best = complete(s, ask).json();
  ASSERT_EQ(best["choices"].size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(best["choices"][i]["index"], i);
    EXPECT_EQ(best["choices"][i]["text"], std::get<std::string>(all[i]));
    EXPECT_TRUE(best["choices"][i]["logprobs"].is_null());
  }
  EXPECT_EQ(best["usage"]["completion_tokens"], 8 * 16);
}

TEST(Server, TakesLlamaCppsAndVllmsNames) {
  const ServerHere s;
  ASSERT_EQ(s.chat(chat_body("SAY x", {{"repeat_penalty", 1.5},
                                       {"repeat_last_n", 7},
                                       {"mirostat", 2},
                                       {"mirostat_eta", 0.25},
                                       {"stop_token_ids", {5, 6}},
                                       {"min_tokens", 3}}))
                .status,
            200);
  const llm::Request& last = s.generator.last;
  EXPECT_EQ(last.sampling.repetition_penalty, 1.5F);
  EXPECT_EQ(last.sampling.penalised_tokens, 7);
  EXPECT_EQ(last.sampling.mirostat_tau, 5.0F);
  EXPECT_EQ(last.sampling.mirostat_eta, 0.25F);
  EXPECT_EQ(last.stop_tokens, (std::vector<llm::TokenId>{5, 6}));
  EXPECT_EQ(last.min_tokens, 3);
  ASSERT_EQ(s.chat(chat_body("SAY x", {{"mirostat", 0}, {"mirostat_tau", 5}})).status, 200);
  EXPECT_EQ(s.generator.last.sampling.mirostat_tau, 0.0F);
}

TEST(Server, AnswersAreHeldToGrammars) {
  const ServerHere s;
  const auto held = [&](const Json& more) {
    const size_t before = s.generator.with_grammar;
    const Answer answer = s.chat(chat_body("SAY 1", more));
    EXPECT_EQ(answer.status, 200) << more << answer.body;
    return s.generator.with_grammar > before;
  };
  EXPECT_TRUE(held({{"grammar", "root ::= \"yes\" | \"no\""}}));
  EXPECT_FALSE(held({{"grammar", ""}}));
  EXPECT_TRUE(held({{"json_schema", {{"type", "integer"}}}}));
  EXPECT_TRUE(held({{"guided_json", R"({"type": "integer"})"}}));
  EXPECT_TRUE(held({{"guided_regex", "[0-9]{3}-x?"}}));
  EXPECT_TRUE(held({{"guided_choice", {"yes", "no \"or\" so"}}}));
  EXPECT_TRUE(held({{"guided_grammar", "root ::= [a-z]+"}}));
  EXPECT_TRUE(held({{"structured_outputs", {{"choice", {"a", "b"}}}}}));
  EXPECT_TRUE(
      held({{"response_format", {{"type", "json_object"}, {"schema", {{"type", "integer"}}}}}}));
  const auto refused = [&](const Json& more, std::string_view part) {
    const Answer answer = s.chat(chat_body("SAY 1", more));
    EXPECT_EQ(answer.status, 400) << more;
    EXPECT_NE(answer.message().find(part), std::string::npos) << answer.body;
  };
  refused({{"grammar", "root ::= x"}}, "rule 'x' is used and not defined");
  refused({{"grammar", "root ::= \"a\""}, {"guided_regex", "a"}},
          "guided_regex is 'a'; grammar is given, too");
  refused({{"guided_choice", Json::array()}}, "there are no texts to choose from");
  refused({{"guided_choice", {1}}}, "it has to be an array of strings that are not empty");
  refused({{"guided_regex", "(?=a)"}}, "a group that looks around");
  refused({{"structured_outputs", {{"structural_tag", {}}}}, {"structured", 1}},
          "there is no parameter 'structured'");
  refused({{"structured_outputs", {{"xml", "x"}}}},
          "there is no parameter 'structured_outputs.xml'");
}

TEST(Server, ToolsMayBeAllowedInPart) {
  const ServerHere s;
  const auto tool = [](const char* name) {
    return Json{{"type", "function"}, {"function", {{"name", name}}}};
  };
  const Json tools = {tool("a"), tool("b"), tool("c")};
  const auto choice = [&](const char* mode) {
    return Json{{"type", "allowed_tools"},
                {"allowed_tools", {{"mode", mode}, {"tools", {tool("a"), tool("b")}}}}};
  };
  const auto ask = [&](const char* call, const Json& how) {
    const std::string text = "SAY <tool_call>" + std::string(R"({"name": ")") + call +
                             R"(", "arguments": {}})" + "</tool_call>";
    return s.chat(chat_body(text, {{"tools", tools}, {"tool_choice", how}}))
        .json()["choices"][0]["finish_reason"];
  };
  EXPECT_EQ(ask("b", choice("auto")), "tool_calls");
  EXPECT_EQ(ask("c", choice("auto")), "stop");
  EXPECT_EQ(s.generator.with_grammar, 0u);
  ask("a", choice("required"));
  EXPECT_EQ(s.generator.with_grammar, 1u);
  const Json response = {
      {"input", "SAY x"},
      {"tools", {{{"type", "function"}, {"name", "a"}}, {{"type", "function"}, {"name", "b"}}}},
      {"tool_choice",
       {{"type", "allowed_tools"},
        {"mode", "auto"},
        {"tools", {{{"type", "function"}, {"name", "b"}}}}}}};
  EXPECT_EQ(s.ask(post("/v1/responses", response.dump())).status, 200);
}

TEST(Server, SaysThatBodiesAreNotPacked) {
  const ServerHere s;
  const Answer packed =
      s.ask(post("/v1/completions", R"({"prompt": "x"})", "Content-Encoding: gzip\r\n"));
  EXPECT_EQ(packed.status, 415);
  EXPECT_NE(packed.message().find("the Content-Encoding is 'gzip'"), std::string::npos);
  EXPECT_EQ(
      s.ask(post("/v1/completions", R"({"prompt": "x"})", "Content-Encoding: identity\r\n")).status,
      200);
}

}  // namespace
}  // namespace weft::serve
