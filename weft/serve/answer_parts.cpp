#include "weft/serve/answer_parts.h"

#include <algorithm>

#include "weft/base/exceptions.h"
#include "weft/base/format.h"
#include "weft/serve/fields.h"

namespace weft::serve {

namespace {

constexpr std::string_view kThink = "<think>", kThought = "</think>";
constexpr std::string_view kCall = "<tool_call>", kCalled = "</tool_call>";
constexpr std::string_view kSpace = " \n\r\t";

// How many bytes at the end of the text may be the beginning of the tag.
size_t tag_begun(std::string_view text, std::string_view tag) {
  for (size_t n = std::min(text.size(), tag.size() - 1); n > 0; --n)
    if (text.ends_with(tag.substr(0, n))) return n;
  return 0;
}

size_t first_word(std::string_view text) {
  return std::min(text.find_first_not_of(kSpace), text.size());
}

// Where the JSON object that the text begins with ends; 0: not in it.
size_t object_end(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{') {
      ++depth;
    } else if (c == '}' && --depth <= 0) {
      return i + 1;
    }
  }
  return 0;
}

}  // namespace

AnswerParts::AnswerParts(std::vector<std::string> tools, std::string_view begun)
    : tools_(std::move(tools)) {
  if (!begun.starts_with(kCall)) return;
  state_ = State::Tagged;
  held_ = begun.substr(kCall.size());
}

void AnswerParts::emit(std::vector<AnswerPart>& parts, std::string_view text) {
  if (trim_) text.remove_prefix(first_word(text));
  if (text.empty()) return;
  trim_ = false;
  using Kind = AnswerPart::Kind;
  parts.push_back({state_ == State::Thinking ? Kind::Reasoning : Kind::Content, std::string(text)});
}

// Gives out what is before the tag and goes on behind it. False: more has to come.
bool AnswerParts::until(std::string_view tag, State then, std::vector<AnswerPart>& parts,
                        bool last) {
  const size_t at = held_.find(tag);
  if (at == std::string::npos) {
    const size_t certain = held_.size() - (last ? 0 : tag_begun(held_, tag));
    emit(parts, std::string_view(held_).substr(0, certain));
    held_.erase(0, certain);
    return false;
  }
  emit(parts, std::string_view(held_).substr(0, at));
  held_.erase(0, at + tag.size());
  state_ = then;
  trim_ = true;
  return true;
}

// What the answer begins with decides what it is. False: that cannot be told yet.
bool AnswerParts::start(bool last) {
  const std::string_view word = std::string_view(held_).substr(first_word(held_));
  if (word.empty() && !last) return false;
  if (word.starts_with(kThink)) {
    held_ = word.substr(kThink.size());
    state_ = State::Thinking;
    trim_ = true;
    return true;
  }
  if (!last && kThink.starts_with(word)) return false;
  state_ = !tools_.empty() && word.starts_with('{') ? State::Bare : State::Words;
  return true;
}

bool AnswerParts::read_call(std::string_view json, ToolCall& call) const {
  try {
    const JsonTree tree(json, "a tool call");
    const JsonTree::Value root = tree.root();
    call.name = root["name"].text();
    const std::string_view key = root["arguments"].is_null() ? "parameters" : "arguments";
    const JsonTree::Value arguments = root[key];
    if (!arguments.is_null() && !arguments.is_object()) return false;
    call.arguments = arguments.is_null() ? "{}" : json_text(arguments);
    return std::find(tools_.begin(), tools_.end(), call.name) != tools_.end();
  } catch (const Error&) {
    return false;  // it is text, then
  }
}

// A call whose end tag never comes is one, where its JSON is whole.
bool AnswerParts::tagged_call(std::vector<AnswerPart>& parts, bool last) {
  const size_t at = held_.find(kCalled, searched_);
  searched_ = held_.size() - std::min(held_.size(), kCalled.size());
  if (at == std::string::npos && !last) return false;
  searched_ = 0;
  const std::string json = held_.substr(0, at);
  held_.erase(0, at == std::string::npos ? at : at + kCalled.size());
  state_ = State::Words;
  trim_ = true;
  ToolCall call;
  if (read_call(json, call)) {
    ++calls_;
    parts.push_back({AnswerPart::Kind::Call, "", std::move(call)});
  } else {
    trim_ = false;
    emit(parts, std::string(kCall) + json);
    if (at != std::string::npos) emit(parts, kCalled);
  }
  return true;
}

// The whole answer: objects with nothing but space and semicolons between, or text.
void AnswerParts::bare_calls(std::vector<AnswerPart>& parts) {
  std::vector<AnswerPart> calls;
  std::string_view rest = held_;
  const auto skip = [&] {
    rest.remove_prefix(std::min(rest.find_first_not_of(" \n\r\t;"), rest.size()));
  };
  for (skip(); !rest.empty(); skip()) {
    const size_t end = object_end(rest);
    ToolCall call;
    if (end == 0 || !read_call(rest.substr(0, end), call)) break;
    calls.push_back({AnswerPart::Kind::Call, "", std::move(call)});
    rest.remove_prefix(end);
  }
  if (rest.empty()) {
    calls_ += calls.size();
    parts.insert(parts.end(), calls.begin(), calls.end());
  } else {
    state_ = State::Words;
    emit(parts, held_);
  }
  held_.clear();
}

// False: nothing more can be told from what is held.
bool AnswerParts::step(std::vector<AnswerPart>& parts, bool last) {
  switch (state_) {
    case State::Start: return start(last);
    case State::Thinking: return until(kThought, State::Start, parts, last);
    case State::Tagged: return tagged_call(parts, last);
    case State::Bare:
      if (last) bare_calls(parts);
      return false;
    case State::Words: break;
  }
  if (!tools_.empty()) return until(kCall, State::Tagged, parts, last);
  emit(parts, held_);
  held_.clear();
  return false;
}

std::vector<AnswerPart> AnswerParts::feed(std::string_view text) {
  held_ += text;
  std::vector<AnswerPart> parts;
  while (step(parts, false)) {}
  return parts;
}

std::vector<AnswerPart> AnswerParts::finish() {
  std::vector<AnswerPart> parts;
  while (!held_.empty() && step(parts, true)) {}
  return parts;
}

}  // namespace weft::serve
