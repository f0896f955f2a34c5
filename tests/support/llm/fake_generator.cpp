#include "tests/support/llm/fake_generator.h"

#include <algorithm>
#include <cmath>
#include <thread>

#include "weft/base/error.h"
#include "weft/base/json_writer.h"
#include "weft/base/utf8.h"

namespace weft::llm {

namespace {

// GPT-2's printable stand-ins for bytes: those that print stand for themselves, the others for
// U+0100 and up, in order.
std::string stand_in(int byte, int& next) {
  const bool prints = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
  std::string text;
  append_utf8(text, static_cast<char32_t>(prints ? byte : 256 + next++));
  return text;
}

std::string tokenizer_json() {
  JsonWriter json;
  json.begin_object().key("added_tokens").begin_array();
  int id = 256;
  for (const char* content : {"<|im_start|>", "<|im_end|>"}) {
    json.begin_object().field("id", id++).field("content", content);
    json.field("single_word", false).field("lstrip", false).field("rstrip", false);
    json.field("normalized", false).field("special", true).end_object();
  }
  json.end_array();
  json.key("pre_tokenizer").begin_object().field("type", "ByteLevel");
  json.field("add_prefix_space", false).field("use_regex", false).end_object();
  json.key("decoder").begin_object().field("type", "ByteLevel").end_object();
  json.key("model").begin_object().field("type", "BPE").key("merges").begin_array().end_array();
  json.key("vocab").begin_object();
  int next = 0;
  for (int byte = 0; byte < 256; ++byte) json.field(stand_in(byte, next), byte);
  return json.end_object().end_object().end_object().take();
}

// What the user says last; all of a prompt that is no chat.
std::string asked_in(const std::string& prompt) {
  constexpr std::string_view kUser = "<|im_start|>user\n";
  const size_t user = prompt.rfind(kUser);
  if (user == std::string::npos) return prompt;
  const size_t begin = user + kUser.size();
  return prompt.substr(begin, prompt.find("<|im_end|>", begin) - begin);
}

std::string script_in(const std::string& asked) {
  size_t best = std::string::npos;
  for (const std::string_view word : {"SAY ", "LONG ", "RANDOM", "BREAK", "FAIL"}) {
    const size_t at = asked.rfind(word);
    if (at != std::string::npos && (best == std::string::npos || at > best)) best = at;
  }
  if (best == std::string::npos) return "";
  const std::string rest = asked.substr(best);
  return rest.substr(0, rest.find('\n'));
}

std::string answer_to(const std::string& asked, const std::string& script, uint64_t seed) {
  std::string answer;
  if (script.starts_with("SAY ")) {
    answer = script.substr(4);
    for (size_t at; (at = answer.find("\\n")) != std::string::npos;) answer.replace(at, 2, "\n");
  } else if (script.starts_with("LONG ")) {
    const size_t n = std::min<size_t>(std::stoul(script.substr(5)), 1000000);
    while (answer.size() < n) answer += "word ";
    answer.resize(n);
  } else if (script.starts_with("RANDOM")) {
    for (int i = 0; i < 16; ++i) answer += static_cast<char>('a' + (seed >> 3 * i) % 8);
  } else {
    answer = "re: " + asked;
  }
  return answer;
}

// How much of the text may be the beginning of a stop.
size_t held_back(const std::string& text, const std::vector<std::string>& stops) {
  size_t most = 0;
  for (const std::string& stop : stops)
    for (size_t n = 1; n < stop.size() && n <= text.size(); ++n)
      if (text.ends_with(stop.substr(0, n))) most = std::max(most, n);
  return most;
}

}  // namespace

text::Tokenizer byte_tokenizer() { return text::Tokenizer::from_json(tokenizer_json(), "bytes"); }

FakeGenerator::FakeGenerator(FakeOptions given)
    : options(std::move(given)), tokenizer_(byte_tokenizer()) {}

void FakeGenerator::check(std::span<const TokenId> tokens) const {
  if (tokens.empty()) fail("llm.prompt", "the prompt has no tokens; give it one");
  for (const TokenId id : tokens)
    if (id < 0 || id >= 258) fail("llm.prompt", "the prompt has the token {}; there are 258", id);
  if (static_cast<int64_t>(tokens.size()) >= options.context)
    fail("llm.context", "the prompt has {} tokens and the context {}; shorten it", tokens.size(),
         options.context);
}

RequestId FakeGenerator::submit(Request request) {
  check(request.prompt);
  if (queue_.size() >= options.queue)
    fail("llm.queue", "{} requests wait and the queue takes {}", queue_.size(), options.queue);
  last = request;
  const std::string asked = asked_in(prompt()), script = script_in(asked);
  Running r{++last_id_, std::move(request)};
  r.answer = tokenizer_.encode(answer_to(asked, script, last.sampling.seed),
                               {.add_special_tokens = false, .parse_special = false});
  r.random = script.starts_with("RANDOM");
  if (script.starts_with("BREAK")) r.breaks_at = 5;
  if (script.starts_with("FAIL")) r.breaks_at = 0;
  queue_.push_back(std::move(r));
  ++submitted;
  if (queue_.back().request.grammar) ++with_grammar;
  note();
  return last_id_;
}

void FakeGenerator::cancel(RequestId request) {
  const auto is_it = [&](const Running& r) { return r.id == request; };
  if (std::ranges::any_of(queue_, is_it) || std::ranges::any_of(running_, is_it))
    cancelled_.push_back(request);
}

Progress FakeGenerator::advance(Running& r) {
  Progress p;
  p.request = r.id;
  const int64_t most = r.request.max_tokens;
  if (r.at == r.breaks_at) {
    p.finish = Finish::Failed;
    p.error = "the fake broke";
    return p;
  }
  if (r.at == 0 && r.request.prompt_logprobs >= 0)
    for (const TokenId id : r.request.prompt)
      p.prompt.push_back({{id, p.prompt.empty() ? NAN : -0.5f}, {{id, -0.5f}}});
  if (r.at == 0) p.reused_tokens = 3;
  if (most == 0) {
    p.finish = Finish::Length;
  } else if (r.at == r.answer.size()) {
    p.finish = Finish::Stop;
  } else {
    const TokenId id = r.answer[r.at++];
    // Of random letters the later ones are less likely.
    const float logprob = r.random ? static_cast<float>('a' - static_cast<int>(id)) / 8 : -0.25f;
    GeneratedToken token{{id, logprob}, {}};
    for (int i = 0; i < r.request.sampling.logprobs; ++i)
      token.alternatives.push_back({(id + i) % 256, -0.25f - static_cast<float>(i)});
    p.tokens.push_back(std::move(token));
    r.bytes += static_cast<char>(id);
    if (is_utf8(r.bytes)) r.held += std::exchange(r.bytes, "");
    if (most >= 0 && static_cast<int64_t>(r.at) >= most) p.finish = Finish::Length;
  }
  for (const std::string& stop : r.request.stop) {
    const size_t at = r.held.find(stop);
    if (at == std::string::npos) continue;
    r.held.resize(at);
    p.finish = Finish::Stop;
    p.text = std::exchange(r.held, "");
    return p;
  }
  const size_t held = p.finish == Finish::None ? held_back(r.held, r.request.stop) : 0;
  p.text = r.held.substr(0, r.held.size() - held);
  r.held.erase(0, p.text.size());
  return p;
}

std::vector<Progress> FakeGenerator::step() {
  if (break_steps) fail_runtime("llm.step", "the fake's step broke");
  std::this_thread::sleep_for(options.step_time);
  std::vector<Progress> all;
  for (const RequestId id : std::exchange(cancelled_, {})) {
    const auto is_it = [&](const Running& r) { return r.id == id; };
    if (std::erase_if(queue_, is_it) + std::erase_if(running_, is_it) != 0)
      all.push_back({id, {}, "", Finish::Cancelled, ""});
  }
  while (running_.size() < options.places && !queue_.empty()) {
    running_.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  ++steps;
  if (running_.size() > most_running) most_running = running_.size();
  for (Running& r : running_) all.push_back(advance(r));
  std::erase_if(running_, [&](const Running& r) {
    return std::any_of(all.begin(), all.end(), [&](const Progress& p) {
      return p.request == r.id && p.finish != Finish::None;
    });
  });
  note();
  return all;
}

void FakeGenerator::note() {
  running = running_.size();
  queued = queue_.size();
}

std::vector<float> FakeGenerator::embedding(std::span<const TokenId> tokens) {
  check(tokens);
  if (running_.size() == options.places)
    fail("llm.queue", "all {} places are taken", options.places);
  std::vector<float> vector(8, 0);
  for (size_t i = 0; i < tokens.size(); ++i) vector[(i + static_cast<size_t>(tokens[i])) % 8] += 1;
  float square = 0;
  for (const float x : vector) square += x * x;
  for (float& x : vector) x /= std::sqrt(square);
  return vector;
}

std::vector<std::pair<std::string, double>> FakeGenerator::counters() const {
  return {{"running", static_cast<double>(running_.size())},
          {"queued", static_cast<double>(queue_.size())}};
}

}  // namespace weft::llm
