// Many at once: fair, freed when their clients go, and nothing stays behind.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "tests/serve/client.h"
#include "weft/base/format.h"
#include "weft/base/resident_memory.h"
#include "weft/base/sanitizers.h"

namespace weft::serve {
namespace {

std::string stream_of(std::string_view text) {
  return post("/v1/chat/completions", chat_body(text, {{"stream", true}}).dump());
}

size_t count(const std::string& text, std::string_view part) {
  size_t n = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++n;
  return n;
}

TEST(Streams, SixtyFourAtOnceAdvanceTogether) {
  ServerHere s({.places = 64, .step_time = std::chrono::milliseconds(kSanitized ? 5 : 1)});
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 64; ++i) {
    clients.push_back(std::make_unique<Client>(s.port()));
    clients.back()->send(stream_of("LONG 400"));
  }
  std::vector<std::string> seen(64);
  for (size_t i = 0; i < 64; ++i) seen[i] = clients[i]->read_until("content\":\"w\"");
  EXPECT_TRUE(s.healthy());
  size_t least = SIZE_MAX;
  for (size_t i = 0; i < 64; ++i) {
    seen[i] += clients[i]->read_until("[DONE]", 60);
    least = std::min(least, count(seen[i], "\"content\""));
  }
  EXPECT_EQ(least, 401u);  // with the first, which is empty
  EXPECT_EQ(s.generator.most_running, 64u);
  // One after the other they would take 64 times as many steps.
  EXPECT_LT(s.generator.steps, 6400u);
}

TEST(Streams, AClientThatGoesFreesItsPlaceWithinAStep) {
  ServerHere s({.places = 1, .step_time = std::chrono::milliseconds(20)});
  Client first(s.port()), second(s.port());
  first.send(stream_of("LONG 100000"));
  first.read_until("content\":\"w\"");
  second.send(stream_of("SAY x"));
  EXPECT_TRUE(comes_true([&] { return s.generator.queued == 1; }));
  first.close();
  EXPECT_NE(second.read_until("[DONE]", 5).find("\"x\""), std::string::npos);
  EXPECT_EQ(s.generator.running, 0u);
  Client whole(s.port());
  whole.send(post("/v1/chat/completions", chat_body("LONG 100000", {{"n", 1}}).dump()));
  EXPECT_TRUE(comes_true([&] { return s.generator.running == 1; }));
  whole.reset();
  EXPECT_TRUE(comes_true([&] { return s.generator.running == 0; }));
}

TEST(Streams, SeveralAnswersBeginWithTheHead) {
  // Words of the first are there before the last is asked for: they wait for the head of all.
  const ServerHere s;
  Client client(s.port());
  const std::string request =
      post("/v1/chat/completions", chat_body("SAY abc", {{"stream", true}, {"n", 8}}).dump());
  for (int i = 0; i < 300; ++i) {
    client.send(request);
    const std::string answer = client.read_until("[DONE]\n\n\r\n0\r\n\r\n");
    ASSERT_EQ(answer.find("HTTP/1.1 200 "), 0u) << "answer " << i << ": " << answer;
    const size_t first = answer.find("data: "), end = answer.find("\n\n", first);
    ASSERT_NE(end, std::string::npos) << answer;
    EXPECT_NE(answer.substr(first, end - first).find("\"role\""), std::string::npos) << answer;
  }
}

TEST(Streams, WhatNoAnswerWaitsForIsDoneBetweenThem) {
  ServerHere s({.pieces_ahead = 1000});
  EXPECT_TRUE(comes_true([&] { return s.generator.ahead == 1000; })) << "before any request";
  EXPECT_EQ(s.chat(chat_body("SAY x")).status, 200);
  ServerHere busy({.step_time = std::chrono::milliseconds(1), .pieces_ahead = SIZE_MAX});
  EXPECT_TRUE(comes_true([&] { return busy.generator.ahead > 0; }));
  Client client(busy.port());
  client.send(stream_of("LONG 100000"));
  const auto word = [&] { return client.read_until("content\":\"w\"").find("w\""); };
  EXPECT_NE(word(), std::string::npos);
  const size_t before = busy.generator.ahead;
  for (int i = 0; i < 20; ++i) EXPECT_NE(word(), std::string::npos);
  EXPECT_EQ(busy.generator.ahead, before) << "while one is answered";
}

TEST(Streams, EmbeddingsAreGivenBesideStreams) {
  const ServerHere s({.step_time = std::chrono::milliseconds(1)});
  Client stream(s.port());
  stream.send(stream_of("LONG 300"));
  stream.read_until("role");
  const Json inputs = std::vector<std::string>(50, "text");
  EXPECT_EQ(s.ask(post("/v1/embeddings", Json{{"input", inputs}}.dump())).json()["data"].size(),
            50u);
  EXPECT_NE(stream.read_until("[DONE]").find("\"stop\""), std::string::npos);
}

TEST(Streams, EmbeddingsWaitForAPlaceAndAreNext) {
  ServerHere s({.places = 1, .step_time = std::chrono::milliseconds(1)});
  Client first(s.port()), second(s.port()), embedding(s.port());
  first.send(stream_of("LONG 1500"));
  first.read_until("content\":\"w\"");
  second.send(stream_of("LONG 100000"));
  EXPECT_TRUE(comes_true([&] { return s.generator.queued == 1; }));
  embedding.send(post("/v1/embeddings", R"({"input": "x"})"));
  EXPECT_EQ(embedding.read_answer().json()["data"].size(), 1u);
}

// Its place is free after the generator's next step.
TEST(Streams, EmbeddingsGetThePlaceOfAClientThatWent) {
  ServerHere s({.places = 1, .step_time = std::chrono::milliseconds(1)});
  for (int i = 0; i < 20; ++i) {
    Client embedding(s.port());
    {
      Client first(s.port());
      first.send(stream_of("LONG 100000"));
      first.read_until("content\":\"w\"");
      embedding.send(post("/v1/embeddings", R"({"input": "x"})"));
      std::this_thread::sleep_for(std::chrono::milliseconds(5));  // it waits
    }
    EXPECT_EQ(embedding.read_answer().status, 200);
  }
}

TEST(Streams, MoreAnswersThanAreGivenAtOnce) {
  ServeOptions options;
  options.limits.choices_at_once = 4;
  ServerHere s({.places = 2, .queue = 1, .step_time = std::chrono::milliseconds(2)}, options);
  EXPECT_EQ(s.chat(chat_body("LONG 100", {{"n", 5}})).status, 429);
  const Answer full = s.chat(chat_body("LONG 100", {{"n", 3}}));
  EXPECT_EQ(full.status, 429);  // the generator's own queue
  EXPECT_NE(full.head.find("Retry-After: 1"), std::string::npos);
  EXPECT_TRUE(comes_true([&] { return s.generator.running + s.generator.queued == 0; }));
  EXPECT_EQ(s.chat(chat_body("SAY x")).status, 200);
}

// Of each kind, over connections that stay and ones that are dropped in the middle.
void mixed_requests(const ServerHere& s, int requests, uint64_t seed) {
  auto client = std::make_unique<Client>(s.port());
  for (int i = 0; i < requests; ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    const uint64_t kind = seed >> 60;
    if (kind < 4)
      client->send(stream_of("SAY abc"));
    else if (kind < 8)
      client->send(post("/v1/chat/completions", chat_body("SAY abc").dump()));
    else if (kind < 10)
      client->send(post("/v1/completions", R"({"prompt": "SAY x", "n": 3})"));
    else if (kind < 12)
      client->send(post("/v1/embeddings", R"({"input": "x"})"));
    else if (kind < 13)
      client->send(post("/v1/chat/completions", R"({"messages": 1})"));
    else if (kind < 14)
      client->send(get("/metrics"));
    else
      client->send(stream_of("LONG 1000"));
    if (kind < 14) {
      ASSERT_NE(client->read_answer(60).status, 0);
    } else {
      client->read_until("role", 60);
      client = std::make_unique<Client>(s.port());
    }
  }
}

void run_mixed(const ServerHere& s, int requests) {
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] { mixed_requests(s, requests / 4, t); });
  for (std::thread& t : threads) t.join();
}

void expect_nothing_stays(int warm_up, int requests, int64_t most_bytes) {
  ServerHere s({.places = 16});
  run_mixed(s, warm_up);
  const int64_t before = resident_memory().now;
  run_mixed(s, requests);
  EXPECT_TRUE(comes_true([&] { return s.generator.running + s.generator.queued == 0; }));
  const int64_t grown = resident_memory().now - before;
  std::printf("%d requests: memory %+.2f MB, now %.1f MB\n", requests,
              static_cast<double>(grown) / 1e6, static_cast<double>(resident_memory().now) / 1e6);
  if (!kSanitized) {  // else leaks are the sanitizer's to find
    EXPECT_LT(grown, most_bytes);
  }
  EXPECT_TRUE(s.healthy());
  EXPECT_NE(s.ask(get("/metrics")).body.find("weft_generator_running 0"), std::string::npos);
}

TEST(Streams, NothingStaysBehind) { expect_nothing_stays(400, 1600, 4 << 20); }

TEST(Streams, SlowNothingStaysBehindAHundredThousandRequests) {
  expect_nothing_stays(2000, 100000, 4 << 20);
}

}  // namespace
}  // namespace weft::serve
