// What attackers send: each is refused in bounded time, and /health answers afterwards.
#include <gtest/gtest.h>

#include "tests/serve/attacks.h"
#include "weft/base/format.h"
#include "weft/http/http_parser.h"

namespace weft::serve {
namespace {

using std::string;

TEST(Hostile, Http) {
  const ServerHere s;
  for (const HttpAttack& row : http_attacks()) {
    Client client(s.port());
    client.send(row.bytes);
    const Answer answer = client.read_answer(5);
    EXPECT_EQ(answer.status, row.status) << row.what << "\n" << answer.body;
    if (row.status >= 400) {
      EXPECT_TRUE(answer.json().contains("error")) << row.what << answer.body;
      EXPECT_FALSE(answer.message().empty()) << row.what;
    }
    EXPECT_TRUE(s.healthy()) << row.what;
  }
}

// What is legal though few send it.
TEST(Hostile, UnusualRequestsAreAnswered) {
  const ServerHere s;
  const auto status = [&](const string& bytes) {
    const Answer answer = s.ask(bytes);
    EXPECT_NE(answer.status, 0);
    if (answer.status != 200) ADD_FAILURE() << bytes << "\n" << answer.body;
  };
  status("GET /v1/models HTTP/1.0\r\n\r\n");
  status(get("http://localhost/v1/models"));
  status(get("HTTP://127.0.0.1:8080/v1/models?x=1"));
  status("GET http://localhost/v1/models HTTP/1.0\r\n\r\n");
  status("GET http://localhost/health HTTP/1.1\r\nHost: evil.example\r\n\r\n");
  status(get("http://localhost"));
  status("\r\n" + get("/health"));
  status(
      "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      "Transfer-Encoding: chunked\r\n\r\nf;a=b\r\n{\"content\":\"x\"}\r\n0\r\n"
      "Authorization: Bearer x\r\nX-Sum: 1\r\n\r\n");
  Client client(s.port());
  client.send(post("/tokenize", R"({"content": "x"})") + "\r\n" + get("/health"));
  EXPECT_EQ(client.read_answer().status, 200);
  EXPECT_EQ(client.read_answer().status, 200);
}

// Read anew with every byte that comes.
TEST(Hostile, TheLastChunkByteByByte) {
  const string bytes =
      "POST /tokenize HTTP/1.1\r\nHost: l\r\nTransfer-Encoding: chunked\r\n\r\n00\r\n\r\n";
  http::HttpParser parser({});
  string unread;
  for (const char byte : bytes) {
    EXPECT_FALSE(parser.done());
    unread += byte;
    for (int again = 0; again < 2; ++again) unread.erase(0, parser.feed(unread));
  }
  EXPECT_TRUE(parser.done()) << parser.problem();
  EXPECT_EQ(parser.take().body, "");
}

TEST(Hostile, Bodies) {
  const ServerHere s;
  for (const BodyAttack& row : body_attacks()) {
    const Answer answer = s.ask(row.bytes);
    EXPECT_TRUE(answer.status == 400 || answer.status == 404) << answer.status << row.message;
    EXPECT_NE(answer.message().find(row.message), string::npos)
        << answer.body << "\nwithout: " << row.message;
    EXPECT_EQ(answer.message().find("the file"), string::npos) << answer.body;
  }
  EXPECT_TRUE(s.healthy());
  EXPECT_EQ(s.generator.submitted, 0u);
}

TEST(Hostile, KeysAreAskedForEverywhere) {
  ServeOptions options;
  options.api_key = "correct horse";
  const ServerHere s({}, options);
  const auto status = [&](std::string_view path, std::string_view field) {
    return s.ask(get(path, field)).status;
  };
  for (const char* path : {"/v1/models", "/metrics", "/v1/models/fake"}) {
    EXPECT_EQ(status(path, ""), 401) << path;
    EXPECT_EQ(status(path, "Authorization: Bearer correct hors\r\n"), 401) << path;
    EXPECT_EQ(status(path, "Authorization: Bearer correct horse2\r\n"), 401) << path;
    EXPECT_EQ(status(path, "Authorization: Basic correct horse\r\n"), 401) << path;
    EXPECT_EQ(status(path, "Authorization: Bearer correct horse\r\n"), 200) << path;
  }
  EXPECT_EQ(status("/v1/nothing", ""), 404);
  EXPECT_EQ(status("/health", ""), 200);
  EXPECT_EQ(status("/", ""), 200);
  for (const char* path :
       {"/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/tokenize", "/detokenize"})
    EXPECT_EQ(s.ask(post(path, "{}")).status, 401) << path;
}

TEST(Hostile, OriginsThatAreAllowedMayAsk) {
  ServeOptions options;
  options.allowed_origins = {"https://good.example"};
  options.allowed_hosts = {"weft.example"};
  const ServerHere s({}, options);
  const Answer a = s.ask(get("/v1/models", "Origin: https://good.example\r\n"));
  EXPECT_EQ(a.status, 200);
  EXPECT_NE(a.head.find("Access-Control-Allow-Origin: https://good.example"), string::npos);
  EXPECT_EQ(s.ask(get("/v1/models", "Origin: http://localhost\r\n")).status, 200);
  EXPECT_EQ(s.ask("GET /health HTTP/1.1\r\nHost: weft.example:80\r\n\r\n").status, 200);
  EXPECT_EQ(s.ask("OPTIONS /v1/models HTTP/1.1\r\nHost: localhost\r\nOrigin: https://good.example"
                  "\r\nAccess-Control-Request-Method: GET\r\n\r\n")
                .status,
            204);
}

TEST(Hostile, TruncatedRequestsAreWaitedForAndLeft) {
  const ServerHere s;
  const string whole = post("/tokenize", R"({"content": "abc"})");
  for (size_t length = 0; length < whole.size(); length += 7) {
    Client client(s.port());
    client.send(whole.substr(0, length));
    length % 2 == 0 ? client.close() : client.reset();
  }
  EXPECT_TRUE(s.healthy());
}

TEST(Hostile, BytesThatComeOneByOneAndManyRequestsAtOnce) {
  const ServerHere s;
  Client slow(s.port());
  for (const char byte : post("/tokenize", R"({"content": "abc"})")) slow.send({&byte, 1});
  EXPECT_EQ(slow.read_answer().json()["count"], 3);
  slow.send(chunked("5\r\n{\"con\r\n6;x=y\r\ntent\":\r\n5\r\n\"ab\"}\r\n0\r\n\r\n"));
  EXPECT_EQ(slow.read_answer().json()["count"], 2);
  Client client(s.port());
  string many;
  for (int i = 0; i < 100; ++i)
    many += post("/tokenize",
                 strformat(R"({{"content": "{}"}})", string(static_cast<size_t>(i + 1), 'a')));
  std::thread sender([&] { client.send(many); });
  for (int i = 0; i < 100; ++i) EXPECT_EQ(client.read_answer().json()["count"], i + 1);
  sender.join();
  client.send(
      "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      "Content-Length: 17\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send(R"({"content": "ab"})");
  EXPECT_EQ(client.read_answer().status, 200);
}

TEST(Hostile, SlowClientsAreLeft) {
  ServeOptions options;
  options.limits.head_seconds = options.limits.body_seconds = options.limits.idle_seconds = 0.3;
  const ServerHere s({}, options);
  Client nothing(s.port()), head(s.port()), body(s.port()), idle(s.port());
  head.send("GET /health HTTP/1.1\r\nHost: local");
  body.send(with_length("1000"));
  idle.send(get("/health"));
  EXPECT_EQ(idle.read_answer().status, 200);
  EXPECT_EQ(head.read_answer().status, 408);
  EXPECT_EQ(body.read_answer().status, 408);
  EXPECT_TRUE(nothing.closed());
  EXPECT_TRUE(idle.closed());
  EXPECT_TRUE(s.healthy());
}

TEST(Hostile, MoreConnectionsThanThereIsRoomFor) {
  ServeOptions options;
  options.limits.connections = 16;
  const ServerHere s({.step_time = std::chrono::milliseconds(1)}, options);
  Client stream(s.port());
  stream.send(post("/v1/chat/completions", chat_body("LONG 300", {{"stream", true}}).dump()));
  stream.read_until("role");
  std::vector<std::unique_ptr<Client>> many;
  for (int i = 0; i < 100; ++i) {
    many.push_back(std::make_unique<Client>(s.port()));
    many.back()->send("GET /hea");
    EXPECT_TRUE(i % 10 != 0 || s.healthy());
  }
  EXPECT_NE(stream.read_until("[DONE]").find("\"stop\""), string::npos);
}

TEST(Hostile, AClientThatDoesNotReadLosesItsStream) {
  ServeOptions options;
  options.limits.unsent_bytes = 100000;
  ServerHere s({}, options);
  Client client(s.port());
  client.send(post("/v1/chat/completions", chat_body("LONG 200000", {{"stream", true}}).dump()));
  client.read_until("role");
  // It may have run and ended before this is asked the first time.
  EXPECT_TRUE(comes_true(
      [&] { return s.generator.steps > 0 && s.generator.running + s.generator.queued == 0; }, 20));
  EXPECT_LT(s.generator.steps, 199000u);
  EXPECT_TRUE(s.healthy());
}

// Requests of every kind with some of their bytes changed, cut off, sent twice.
void expect_to_survive(int requests) {
  ServeOptions options;
  options.limits.head_seconds = options.limits.body_seconds = 0.5;
  const ServerHere s({}, options);
  Random random(7);
  for (int i = 0; i < requests; ++i) {
    const string bytes = changed_request(random);
    Client client(s.port());
    client.send(bytes);
    if (i % 4 == 0) client.send(bytes);
    if (i % 16 == 0) client.read_answer(1);
    if (i % 3 == 0) client.reset();
    if (i % 100 == 0) {
      ASSERT_TRUE(s.healthy()) << i;
    }
  }
  EXPECT_TRUE(comes_true([&] { return s.generator.running + s.generator.queued == 0; }));
  EXPECT_EQ(s.chat(chat_body("SAY x")).status, 200);
}

TEST(Hostile, RequestsWithChangedBytes) { expect_to_survive(2000); }
TEST(Hostile, SlowRequestsWithChangedBytes) { expect_to_survive(500000); }

TEST(Hostile, AnswersThatTakeTooLongEnd) {
  ServeOptions options;
  options.limits.answer_seconds = 0.3;
  const ServerHere s({.step_time = std::chrono::milliseconds(5)}, options);
  EXPECT_EQ(s.chat(chat_body("LONG 100000")).status, 504);
  EXPECT_NE(s.chat(chat_body("LONG 100000", {{"stream", true}})).events().back().find("timeout"),
            string::npos);
  EXPECT_TRUE(comes_true([&] { return s.generator.running == 0; }));
}

}  // namespace
}  // namespace weft::serve
