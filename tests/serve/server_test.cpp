// What clients of OpenAI's API see: objects, streams, errors.
#include <gtest/gtest.h>

#include "tests/serve/client.h"
#include "weft/base/error.h"

namespace weft::serve {
namespace {

TEST(Server, HealthModelsAndMetrics) {
  const ServerHere s;
  EXPECT_EQ(s.ask(get("/health")).body, R"({"status":"ok"})");
  const Json models = s.ask(get("/v1/models")).json();
  EXPECT_EQ(models["object"], "list");
  EXPECT_EQ(models["data"][0]["id"], "fake");
  EXPECT_EQ(s.ask(get("/v1/models/fake")).json()["object"], "model");
  EXPECT_EQ(s.ask(get("/v1/models/other")).message(),
            "model is 'other'; the one that is served is 'fake'");
  s.chat(chat_body("SAY four"));
  const Answer metrics = s.ask(get("/metrics"));
  EXPECT_NE(metrics.head.find("text/plain; version=0.0.4"), std::string::npos);
  for (const char* line :
       {"\nweft_generated_tokens_total 4\n", "\nweft_first_token_seconds_count 1\n",
        "\nweft_requests_total{route=\"/v1/chat/completions\",status=\"200\"} 1\n",
        "\nweft_generator_running 0\n"})
    EXPECT_NE(metrics.body.find(line), std::string::npos) << line << metrics.body;
}

TEST(Server, ChatAnswersWhole) {
  const ServerHere s;
  const Json j = s.chat(chat_body("SAY caf\xc3\xa9 \xf0\x9f\x98\x80")).json();
  EXPECT_EQ(j["object"], "chat.completion");
  EXPECT_EQ(j["model"], "fake");
  const Json& choice = j["choices"][0];
  EXPECT_EQ(choice["message"]["role"], "assistant");
  EXPECT_EQ(choice["message"]["content"], "caf\xc3\xa9 \xf0\x9f\x98\x80");
  EXPECT_EQ(choice["finish_reason"], "stop");
  EXPECT_TRUE(choice["logprobs"].is_null());
  EXPECT_EQ(j["usage"]["completion_tokens"], 10);
  EXPECT_EQ(j["usage"]["total_tokens"], j["usage"]["prompt_tokens"].get<int>() + 10);
}

TEST(Server, ChatStreams) {
  const ServerHere s;
  const Answer a = s.chat(chat_body(
      "SAY ab\xc3\xa9", {{"stream", true}, {"stream_options", {{"include_usage", true}}}}));
  EXPECT_NE(a.head.find("text/event-stream"), std::string::npos);
  const std::vector<std::string> events = a.events();
  ASSERT_GE(events.size(), 5u);
  EXPECT_EQ(events.back(), "[DONE]");
  std::string text;
  for (size_t i = 0; i + 2 < events.size(); ++i) {
    const Json j = Json::parse(events[i]);
    EXPECT_EQ(j["object"], "chat.completion.chunk");
    EXPECT_TRUE(j["usage"].is_null());
    text += j["choices"][0]["delta"].value("content", "");
  }
  EXPECT_EQ(text, "ab\xc3\xa9");
  EXPECT_EQ(Json::parse(events[0])["choices"][0]["delta"]["role"], "assistant");
  EXPECT_EQ(Json::parse(events[events.size() - 3])["choices"][0]["finish_reason"], "stop");
  const Json usage = Json::parse(events[events.size() - 2]);
  EXPECT_TRUE(usage["choices"].empty());
  EXPECT_EQ(usage["usage"]["completion_tokens"], 4);
}

TEST(Server, SeveralAnswersStopsAndLengths) {
  const ServerHere s;
  const Json j = s.chat(chat_body("RANDOM", {{"n", 3}, {"seed", 77}})).json();
  ASSERT_EQ(j["choices"].size(), 3u);
  EXPECT_NE(j["choices"][0]["message"]["content"], j["choices"][1]["message"]["content"]);
  EXPECT_EQ(s.chat(chat_body("RANDOM", {{"n", 3}, {"seed", 77}})).json()["choices"], j["choices"]);
  EXPECT_EQ(s.chat(chat_body("SAY one two three", {{"stop", "tw"}}))
                .json()["choices"][0]["message"]["content"],
            "one ");
  const Json cut =
      s.chat(chat_body("SAY one two", {{"max_completion_tokens", 5}})).json()["choices"][0];
  EXPECT_EQ(cut["message"]["content"], "one t");
  EXPECT_EQ(cut["finish_reason"], "length");
}

TEST(Server, Probabilities) {
  const ServerHere s;
  const Json j =
      s.chat(chat_body("SAY a\xc3\xa9", {{"logprobs", true}, {"top_logprobs", 2}})).json();
  const Json& content = j["choices"][0]["logprobs"]["content"];
  ASSERT_EQ(content.size(), 3u);
  EXPECT_EQ(content[0]["token"], "a");
  EXPECT_EQ(content[0]["bytes"], Json::array({97}));
  EXPECT_EQ(content[1]["bytes"], Json::array({0xc3}));  // of a character that is not whole
  EXPECT_EQ(content[2]["bytes"], Json::array({0xa9}));
  EXPECT_EQ(content[2]["token"], "\xc3\xa9");
  EXPECT_EQ(content[1]["top_logprobs"][0]["bytes"].size(), 1u);
  EXPECT_EQ(content[0]["logprob"], -0.25);
  EXPECT_EQ(content[0]["top_logprobs"].size(), 2u);
  const Json t =
      s.ask(post("/v1/completions", R"({"prompt": "SAY abc", "logprobs": 1, "max_tokens": 2})"))
          .json()["choices"][0];
  EXPECT_EQ(t["text"], "ab");
  EXPECT_EQ(t["logprobs"]["tokens"], Json::array({"a", "b"}));
  EXPECT_EQ(t["logprobs"]["text_offset"], Json::array({0, 1}));
  EXPECT_EQ(t["logprobs"]["top_logprobs"][1]["b"], -0.25);
}

TEST(Server, CompletionsOfPromptsAndTokens) {
  const ServerHere s;
  const Json j =
      s.ask(post("/v1/completions", R"({"prompt": ["SAY x", "SAY y"], "n": 2, "echo": true})"))
          .json();
  ASSERT_EQ(j["choices"].size(), 4u);
  EXPECT_EQ(j["choices"][1]["text"], "SAY xx");
  EXPECT_EQ(j["choices"][2]["text"], "SAY yy");
  EXPECT_EQ(j["choices"][3]["index"], 3);
  const Json t = s.ask(post("/v1/completions", R"({"prompt": [83, 65, 89, 32, 122]})")).json();
  EXPECT_EQ(t["choices"][0]["text"], "z");
  EXPECT_EQ(t["usage"]["prompt_tokens"], 5);
}

TEST(Server, NamesInAddressesAreEncoded) {
  ServeOptions options;
  options.model_name = "Llama 3/1B";
  const ServerHere s({}, options);
  const Answer found = s.ask(get("/v1/models/Llama%203%2f1B"));
  EXPECT_EQ(found.status, 200);
  EXPECT_EQ(found.json()["id"], "Llama 3/1B");
  EXPECT_EQ(s.ask(get("/v1/models/Llama%203")).message(),
            "model is 'Llama 3'; the one that is served is 'Llama 3/1B'");
  EXPECT_EQ(s.ask(get("/v1/models/100%")).status, 404);
}

TEST(Server, SaysWhichMethodsThereAre) {
  const ServerHere s;
  EXPECT_NE(s.ask(get("/tokenize")).head.find("Allow: POST\r\n"), std::string::npos);
  EXPECT_NE(s.ask(post("/health", "{}")).head.find("Allow: GET, HEAD\r\n"), std::string::npos);
}

TEST(Server, AnswersThatAreOnTheirWayArriveWhenAClientSendsNoMore) {
  const ServerHere s;
  for (int i = 0; i < 50; ++i) {
    Client client(s.port());
    ASSERT_TRUE(client.send(post("/tokenize", R"({"content": "a b c"})")));
    client.finish_sending();
    const Answer answer = client.read_answer();
    ASSERT_EQ(answer.status, 200);
    ASSERT_TRUE(answer.json().contains("tokens")) << answer.body;
    ASSERT_TRUE(client.closed());
  }
}

TEST(Server, Tools) {
  const ServerHere s;
  const Json tools = Json::parse(R"([{"type": "function", "function": {"name": "weather",
      "parameters": {"type": "object"}}}])");
  const std::string call =
      R"(SAY Well.\n<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>)";
  const Json whole = s.chat(chat_body(call, {{"tools", tools}})).json()["choices"][0];
  EXPECT_EQ(whole["finish_reason"], "tool_calls");
  EXPECT_EQ(whole["message"]["content"], "Well.\n");
  EXPECT_EQ(whole["message"]["tool_calls"][0]["function"]["name"], "weather");
  EXPECT_EQ(whole["message"]["tool_calls"][0]["function"]["arguments"], R"({"city":"Oslo"})");
  std::string arguments, finish;
  for (const std::string& event :
       s.chat(chat_body(call, {{"tools", tools}, {"stream", true}})).events()) {
    if (event == "[DONE]") break;
    const Json choice = Json::parse(event)["choices"][0];
    if (choice["delta"].contains("tool_calls"))
      arguments += choice["delta"]["tool_calls"][0]["function"]["arguments"];
    if (choice["finish_reason"].is_string()) finish = choice["finish_reason"];
  }
  EXPECT_EQ(arguments, R"({"city":"Oslo"})");
  EXPECT_EQ(finish, "tool_calls");
  const Json named =
      chat_body(R"(SAY {"name": "weather", "arguments": {"city": "Rome"}}\n</tool_call>)",
                {{"tools", tools},
                 {"tool_choice", {{"type", "function"}, {"function", {{"name", "weather"}}}}}});
  EXPECT_EQ(s.chat(named).json()["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"],
            R"({"city":"Rome"})");
  EXPECT_EQ(s.generator.with_grammar, 1u);  // nothing else could have come
  const Json thought = s.chat(chat_body("SAY <think>\\nhm\\n</think>\\n\\nYes")).json();
  EXPECT_EQ(thought["choices"][0]["message"]["reasoning_content"], "hm\n");
  EXPECT_EQ(thought["choices"][0]["message"]["content"], "Yes");
}

TEST(Server, AnswersAreHeldToSchemas) {
  const ServerHere s;
  EXPECT_EQ(s.chat(chat_body("SAY {}", {{"response_format", {{"type", "text"}}}})).status, 200);
  EXPECT_EQ(s.generator.with_grammar, 0u);
  EXPECT_EQ(s.chat(chat_body("SAY {}", {{"response_format", {{"type", "json_object"}}}})).status,
            200);
  EXPECT_EQ(s.generator.with_grammar, 1u);
  const auto of_schema = [&](const Json& schema) {
    return s.chat(chat_body("SAY 1", {{"response_format",
                                       {{"type", "json_schema"},
                                        {"json_schema", {{"name", "n"}, {"schema", schema}}}}}}));
  };
  EXPECT_EQ(of_schema({{"type", "integer"}}).status, 200);
  EXPECT_EQ(s.generator.with_grammar, 2u);
  const Answer refused = of_schema({{"type", "integer"}, {"multipleOf", 3}});
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(refused.json()["error"]["code"], "invalid_schema") << refused.body;
}

TEST(Server, EmbeddingsAndTokens) {
  const ServerHere s;
  const Json j = s.ask(post("/v1/embeddings", R"({"input": ["a", "bc"], "model": "fake"})")).json();
  ASSERT_EQ(j["data"].size(), 2u);
  EXPECT_EQ(j["data"][1]["index"], 1);
  EXPECT_EQ(j["data"][0]["embedding"].size(), 8u);
  EXPECT_EQ(j["usage"]["prompt_tokens"], 3);
  const Json b =
      s.ask(post("/v1/embeddings", R"({"input": "a", "encoding_format": "base64"})")).json();
  EXPECT_EQ(b["data"][0]["embedding"], "AAAAAAAAgD8AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=");
  EXPECT_EQ(s.ask(post("/v1/embeddings", R"({"input": "a", "dimensions": 9})")).message(),
            "dimensions is 9; the model's embeddings have 8");
  const Json t = s.ask(post("/tokenize", R"({"content": "ab<|im_end|>"})")).json();
  EXPECT_EQ(t["tokens"], Json::array({97, 98, 257}));
  EXPECT_EQ(t["count"], 3);
  EXPECT_EQ(s.ask(post("/detokenize", R"({"tokens": [97, 98]})")).json()["content"], "ab");
}

TEST(Server, ErrorsOfTheGeneratorReachTheClient) {
  ServerHere s({.context = 200});
  const Answer long_one = s.chat(chat_body(std::string(300, 'x')));
  EXPECT_EQ(long_one.status, 400);
  EXPECT_EQ(long_one.json()["error"]["code"], "context_length_exceeded");
  EXPECT_EQ(s.ask(post("/v1/completions", R"({"prompt": [99999]})")).message(),
            "the prompt has the token 99999; there are 258");
  EXPECT_EQ(s.ask(post("/v1/completions", R"({"prompt": ""})")).json()["error"]["code"],
            "invalid_prompt");
  EXPECT_EQ(s.chat(chat_body("BREAK")).status, 500);
  const Answer stream = s.chat(chat_body("BREAK", {{"stream", true}}));
  EXPECT_EQ(stream.status, 200);
  EXPECT_NE(stream.events().back().find("the fake broke"), std::string::npos);
  s.generator.break_steps = true;
  EXPECT_EQ(s.chat(chat_body("SAY x")).message(), "the fake's step broke");
  s.generator.break_steps = false;
  EXPECT_EQ(s.chat(chat_body("SAY x")).status, 200);
}

TEST(Server, ThePageIsThereWithItsPolicy) {
  const ServerHere s;
  const Answer page = s.ask(get("/"));
  EXPECT_EQ(page.status, 200);
  EXPECT_NE(page.head.find("Content-Security-Policy: default-src 'none'; script-src 'self'"),
            std::string::npos);
  EXPECT_NE(page.body.find("<!doctype html>"), std::string::npos);
  ServeOptions without;
  without.page = false;
  EXPECT_EQ(ServerHere({}, without).ask(get("/")).status, 404);
}

TEST(Server, WhereItListens) {
  FakeGenerator generator;
  const auto error_of = [&](ServeOptions options) -> std::string {
    try {
      Server server(generator, std::move(options));
    } catch (const Error& error) {
      return error.code() + ": " + error.message();
    }
    return "";
  };
  EXPECT_EQ(error_of({.host = "0.0.0.0", .port = 0}),
            "serve.key: 0.0.0.0 can be reached from other machines and there is no API key; give "
            "one with --api-key or --api-key-file, or listen on 127.0.0.1");
  EXPECT_EQ(error_of({.host = "0.0.0.0", .port = 0, .api_key = "k"}), "");
  EXPECT_EQ(error_of({.host = "example.org", .port = 0}),
            "serve.address: the host is 'example.org'; it has to be an address, such as 127.0.0.1 "
            "or 0.0.0.0");
  const Server first(generator, {.port = 0});
  EXPECT_EQ(error_of({.port = first.port()}), "serve.address: cannot listen on 127.0.0.1, port " +
                                                  std::to_string(first.port()) +
                                                  ": Address already in use; try another --port");
}

TEST(Server, StopsWhenItsAnswersAreDone) {
  auto s = std::make_unique<ServerHere>(FakeOptions{.step_time = std::chrono::milliseconds(2)});
  Client running(s->port()), late(s->port());
  running.send(post("/v1/chat/completions", chat_body("LONG 500", {{"stream", true}}).dump()));
  running.read_until("\"w\"");
  s->server->stop();
  EXPECT_TRUE(comes_true([&] { return s->ask(get("/health")).status == 503; }));
  late.send(post("/v1/chat/completions", chat_body("SAY x").dump()));
  EXPECT_EQ(late.read_answer().status, 503);
  EXPECT_NE(running.read_until("[DONE]").find("finish_reason\":\"stop\""), std::string::npos);
  s.reset();
}

}  // namespace
}  // namespace weft::serve
