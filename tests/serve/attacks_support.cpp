#include "tests/serve/attacks.h"

#include "weft/base/format.h"

namespace weft::serve {

using std::string;

string repeated(std::string_view text, size_t times) {
  string all;
  for (size_t i = 0; i < times; ++i) all += text;
  return all;
}

string chunked(std::string_view chunks, std::string_view more) {
  return strformat(
      "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      "Transfer-Encoding: chunked\r\n{}\r\n{}",
      more, chunks);
}

string with_length(std::string_view length) {
  return strformat(
      "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      "Content-Length: {}\r\n\r\n{{}}",
      length);
}

const std::vector<HttpAttack>& http_attacks() {
  static const std::vector<HttpAttack> kAttacks = {
      {"no HTTP", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400},
      {"bare LF", "GET /health HTTP/1.1\nHost: localhost\n\n\r\n\r\n", 505},
      {"HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
      {"HTTP/3.7", "GET /health HTTP/3.7\r\nHost: localhost\r\n\r\n", 505},
      {"a body too large", with_length("4194305"), 413},
      {"a length of 2^63", with_length("9223372036854775808"), 413},
      {"a length of 2^64", with_length("18446744073709551616"), 400},
      {"a negative length", with_length("-1"), 400},
      {"a signed length", with_length("+2"), 400},
      {"a hexadecimal length", with_length("0x2"), 400},
      {"two lengths", with_length("2\r\nContent-Length: 2"), 400},
      {"a list of lengths", with_length("2, 3"), 400},
      {"a length and chunks", chunked("0\r\n\r\n", "Content-Length: 5\r\n"), 400},
      {"chunks and a length", with_length("5\r\nTransfer-Encoding: chunked"), 400},
      {"chunks twice", chunked("0\r\n\r\n", "Transfer-Encoding: chunked\r\n"), 400},
      {"an encoding and chunks", with_length("2\r\nTransfer-Encoding: gzip, chunked"), 400},
      {"another encoding",
       "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: identity\r\n\r\n{}", 501},
      {"chunks in HTTP/1.0",
       "POST /tokenize HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
       501},
      {"a chunk without a size", chunked("x\r\n{}\r\n0\r\n\r\n"), 400},
      {"a chunk too long for its size", chunked("1\r\n{}\r\n0\r\n\r\n"), 400},
      {"a chunk's size of 2^64", chunked("10000000000000000\r\n"), 400},
      {"a chunk's size of 2^63", chunked("8000000000000000\r\n"), 413},
      {"a chunk's line without an end", chunked("2;" + string(40000, 'x')), 413},
      {"chunks behind the chunks",
       chunked("2\r\n{}\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"), 400},
      {"a length behind the chunks", chunked("2\r\n{}\r\n0\r\nContent-Length: 2\r\n\r\n"), 400},
      {"a line too long", "GET /" + string(20000, 'a') + " HTTP/1.1\r\n\r\n", 431},
      {"10,000 fields", "GET /health HTTP/1.1\r\n" + repeated("A: b\r\n", 10000) + "\r\n", 431},
      {"a space before the colon", "GET /health HTTP/1.1\r\nHost : localhost\r\n\r\n", 400},
      {"a NUL in a path", string("GET /he\0alth HTTP/1.1\r\nHost: localhost\r\n\r\n", 42), 400},
      {"a NUL in a field", string("GET /health HTTP/1.1\r\nHost: local\0host\r\n\r\n", 42), 400},
      {"no host", "GET /health HTTP/1.1\r\n\r\n", 421},
      {"a host in the target, and none", "GET http://localhost/health HTTP/1.1\r\n\r\n", 421},
      {"no host in the target", get("http:///health"), 400},
      {"two empty lines", "\r\n\r\n" + get("/health"), 400},
      {"another origin in HTTP/1.0", "GET /health HTTP/1.0\r\nOrigin: http://\r\n\r\n", 403},
      {"two hosts", get("/health", "Host: localhost\r\n"), 421},
      {"another host", "GET /health HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421},
      {"a name like ours", "GET /health HTTP/1.1\r\nHost: localhost.evil.example\r\n\r\n", 421},
      {"another origin", get("/health", "Origin: http://evil.example\r\n"), 403},
      {"no origin", get("/health", "Origin: null\r\n"), 403},
      {"a preflight from elsewhere",
       "OPTIONS /v1/models HTTP/1.1\r\nHost: localhost\r\nOrigin: https://evil.example\r\n"
       "Access-Control-Request-Method: POST\r\n\r\n",
       403},
      {"a key in the address", get("/v1/models?api_key=secret"), 400},
      {"a form",
       "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n"
       "Content-Length: 2\r\n\r\n{}",
       415},
      {"another method", "DELETE /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n", 405},
      {"a path upward", get("/../../etc/passwd"), 404},
      {"a path upward, encoded", get("/%2e%2e/%2e%2e/etc/passwd"), 404},
      {"a proxy's request", get("http://evil.example/"), 421},
      {"an upgrade", get("/health", "Connection: upgrade\r\nUpgrade: h2c\r\n"), 200},
      {"what cannot be expected", get("/health", "Expect: money\r\n"), 400},
  };
  return kAttacks;
}

string chat_with(std::string_view more) {
  return post("/v1/chat/completions",
              strformat(R"({{"messages": [{{"role": "user", "content": "SAY x"}}]{}}})", more));
}

const std::vector<BodyAttack>& body_attacks() {
  static const std::vector<BodyAttack> kAttacks = {
      {post("/v1/chat/completions", ""), "the JSON text ends too early"},
      {post("/v1/chat/completions", "[]"), "the body is an array of 0; it has to be a JSON object"},
      {post("/v1/chat/completions", "{\"messages\": \"\xff\"}"), "bytes that are not UTF-8"},
      {post("/v1/chat/completions", repeated("[", 100000)), "nesting deeper than 64"},
      {post("/v1/chat/completions", repeated("{\"a\":", 100000)), "nesting deeper than 64"},
      {post("/v1/chat/completions", R"({"n": 1, "n": 2})"), "there twice"},
      {post("/v1/chat/completions", R"({"temperature": NaN})"), "expected a number"},
      {post("/v1/chat/completions", "{}"), "messages is null; it has to have at least one message"},
      {chat_with(R"(, "temperature": 1e400)"),
       "temperature is null; it has to be a number from 0 to 2"},
      {chat_with(R"(, "temperature": -0.5)"),
       "temperature is -0.5; it has to be a number from 0 to 2"},
      {chat_with(R"(, "temperature": "hot")"),
       "temperature is 'hot'; it has to be a number from 0 to 2"},
      {chat_with(R"(, "top_p": 1.5)"), "top_p is 1.5; it has to be a number from 0 to 1"},
      {chat_with(R"(, "top_k": -2)"), "top_k is -2; it has to be an integer from -1 to 2147483647"},
      {chat_with(R"(, "chat_template_kwargs": [1])"), "chat_template_kwargs is an array of 1"},
      {chat_with(R"(, "chat_template_kwargs": {"messages": []})"),
       "chat_template_kwargs has 'messages', which is not the client's to set"},
      {chat_with(R"(, "n": 1000000)"), "n is 1000000; it has to be an integer from 1 to 64"},
      {chat_with(R"(, "n": 0)"), "n is 0; it has to be an integer from 1 to 64"},
      {chat_with(R"(, "max_tokens": 9223372036854775808)"),
       "it has to be an integer from 1 to 2147483648"},
      {chat_with(R"(, "max_tokens": 3, "max_completion_tokens": 4)"),
       "max_completion_tokens is 4; max_tokens is 3"},
      {chat_with(R"(, "seed": 1.5)"), "seed is 1.5; it has to be an integer"},
      {chat_with(R"(, "stream": 1)"), "stream is 1; it has to be true or false"},
      {chat_with(R"(, "stream_options": {})"), "stream_options is given and stream is not true"},
      {chat_with(R"(, "logit_bias": {"999999": 1})"),
       "logit_bias has the token 999999; the model has 258 tokens"},
      {chat_with(R"(, "logit_bias": {"x": 1})"), "logit_bias has the key 'x'; keys are token ids"},
      {chat_with(R"(, "logit_bias": {"1": 101})"),
       "logit_bias[1] is 101; it has to be a number from -100 to 100"},
      {chat_with(R"(, "stop": ["a", 1])"),
       "stop is an array of 2; it has to be a string or an array of strings"},
      {chat_with(R"(, "stop": [)" + repeated("\"a\",", 100000) + "\"b\"]"),
       "stop is an array of 100001; it has to have at most 16 elements"},
      {chat_with(R"(, "stop": "")"), "a text of stop has 0 bytes; it has to have 1 to 256"},
      {chat_with(R"(, "top_logprobs": 3)"), "top_logprobs is 3; logprobs has to be true for that"},
      {chat_with(R"(, "temprature": 1)"),
       "there is no parameter 'temprature'; did you mean temperature?"},
      {chat_with(R"(, "model": "../../etc/passwd")"),
       "model is '../../etc/passwd'; the one that is served is 'fake'"},
      {chat_with(R"(, "tool_choice": "required")"),
       "tool_choice is 'required'; there are no tools that it could require"},
      {chat_with(R"(, "tools": [{"type": "retrieval"}])"),
       "tools[0].type is 'retrieval'; it has to be function"},
      {chat_with(R"(, "modalities": ["text", "audio"])"),
       "modalities has 'audio'; the model writes text only"},
      {chat_with(R"(, "functions": [])"), "functions is not supported: use tools and tool_choice"},
      {chat_with(R"(, "response_format": {"type": "xml"})"),
       "response_format.type is 'xml'; it has to be text, json_object or json_schema"},
      {post("/v1/chat/completions", R"({"messages": [{"role": "root", "content": "x"}]})"),
       "messages[0].role is 'root'; it has to be system, developer, user, assistant or tool"},
      {post("/v1/chat/completions", R"({"messages": [{"role": "user"}]})"),
       "messages[0].content is null; it has to be a string or an array of parts"},
      {post("/v1/chat/completions",
            R"({"messages": [{"role": "user", "content": [{"type": "image_url",
        "image_url": {"url": "file:///etc/passwd"}}]}]})"),
       "messages[0].content[].type is 'image_url'; the model reads text only: it has to be text"},
      {post("/v1/completions", R"({"prompt": "x", "suffix": "y"})"),
       "suffix is not supported: text is only written behind a prompt"},
      {post("/v1/completions", R"({"prompt": "x", "best_of": 3, "stream": true})"),
       "best_of is 3; with stream it has to be n (1)"},
      {post("/v1/completions", R"({"prompt": "x", "best_of": 99})"),
       "1 prompts and best_of = 99 are 99 answers; at most 64 are given"},
      {chat_with(R"(, "max_tokens": 0)"), "max_tokens is 0; it has to be an integer from 1"},
      {chat_with(R"(, "mirostat": 1)"), "mirostat is 1; it has to be 0 (none) or 2"},
      {chat_with(R"(, "repetition_penalty": 1.5, "repeat_penalty": 2)"),
       "repeat_penalty is 2; repetition_penalty is 1.5"},
      {chat_with(R"(, "stop_token_ids": ["x"])"), "stop_token_ids has 'x' among its tokens"},
      {chat_with(R"(, "tools": [{"type": "function", "function": {"name": "f"}}],
        "tool_choice": {"type": "allowed_tools", "allowed_tools": {"tools": []}})"),
       "tool_choice.allowed_tools.tools is an array of 0; it has to name at least one"},
      {post("/v1/completions", R"({"prompt": {}})"),
       "prompt is an object of 0; it has to be a string, an array of strings"},
      {post("/v1/completions", R"({"prompt": [1, "x"]})"),
       "prompt has 'x' among its tokens; a token is an integer from 0 to 2147483647"},
      {post("/v1/completions", R"({"prompt": ["x", "y"], "n": 64})"),
       "2 prompts and n = 64 are 128 answers; at most 64 are given"},
      {post("/v1/embeddings", R"({"input": []})"), "input is an array of 0; it has to be a string"},
      {post("/v1/embeddings", R"({"input": "x", "encoding_format": "hex"})"),
       "encoding_format is 'hex'; it has to be float or base64"},
      {post("/tokenize", R"({"text": "x"})"), "there is no parameter 'text'"},
      {post("/detokenize", R"({"tokens": [-1]})"), "tokens has -1 among its tokens"},
      {post("/detokenize", R"({"tokens": "x"})"), "tokens is 'x'; it has to be an array of tokens"},
  };
  return kAttacks;
}

string changed_request(Random& random) {
  static const string good[] = {
      get("/health"),
      get("/v1/models"),
      get("/metrics"),
      chat_with(R"(, "stream": true)"),
      chat_with(R"(, "n": 2, "logprobs": true, "top_logprobs": 2, "stop": ["x", "y"])"),
      post("/v1/embeddings", R"({"input": ["a", [1, 2]]})"),
      post("/tokenize", R"({"content": "a"})"),
      chunked("12\r\n{\"content\": \"abcd\"}\r\n0\r\n\r\n")};
  string bytes = random.pick(good);
  for (int64_t changes = random.below(4); changes > 0; --changes) {
    const auto at = static_cast<size_t>(random.below(static_cast<int64_t>(bytes.size())));
    switch (random.below(3)) {
      case 0: bytes[at] = static_cast<char>(random.next()); break;
      case 1: bytes.insert(at, bytes.substr(at / 2, 9)); break;
      default: bytes.resize(at + 1);
    }
  }
  return bytes;
}

}  // namespace weft::serve
