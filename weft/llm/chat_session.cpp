#include "weft/llm/chat_session.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/io/json_tree.h"

namespace weft::llm {

ChatSession::ChatSession(Generator& generator, Request request)
    : generator_(&generator), template_(generator.tokenizer()), request_(std::move(request)) {}

std::vector<text::ChatMessage> ChatSession::with_system() const {
  std::vector<text::ChatMessage> all;
  if (!system_.empty()) all.push_back({"system", system_});
  all.insert(all.end(), messages_.begin(), messages_.end());
  return all;
}

/// Without the oldest questions and answers where all would leave no room to answer.
std::vector<TokenId> ChatSession::prompt(int64_t& forgotten) const {
  std::vector<text::ChatMessage> all = with_system();
  const auto first = all.begin() + (system_.empty() ? 0 : 1);
  const size_t room =
      static_cast<size_t>(std::max<int64_t>(generator_->context_length(), 0)) * 7 / 8;
  const size_t before = all.size();
  while (true) {
    std::vector<TokenId> tokens =
        generator_->tokenizer().encode(template_.prompt(all), text::ChatTemplate::encoding());
    forgotten = static_cast<int64_t>(before - all.size());
    if (tokens.size() <= room || all.end() - first < 3) return tokens;
    all.erase(first, first + 2);
  }
}

ChatAnswer ChatSession::ask(std::string_view text, OnText on_text, WantsStop wants_stop) {
  messages_.push_back({"user", std::string(text)});
  try {
    return answer(on_text, wants_stop);
  } catch (...) {
    messages_.pop_back();
    throw;
  }
}

bool ChatSession::can_retry() const {
  return messages_.size() > 1 && messages_.back().role == "assistant" &&
         messages_[messages_.size() - 2].role == "user";
}

ChatAnswer ChatSession::retry(OnText on_text, WantsStop wants_stop) {
  if (!can_retry()) fail("llm.chat", "there is no answer yet to give again; ask something first");
  const text::ChatMessage before = messages_.back();
  messages_.pop_back();
  ++request_.sampling.seed;
  try {
    return answer(on_text, wants_stop);
  } catch (...) {
    messages_.push_back(before);
    throw;
  }
}

ChatAnswer ChatSession::answer(OnText on_text, WantsStop wants_stop) {
  ChatAnswer answer;
  Request request = request_;
  request.continues = false;
  request.prompt = prompt(answer.forgotten);
  answer.prompt_tokens = static_cast<int64_t>(request.prompt.size());
  const RequestId id = generator_->submit(std::move(request));
  bool cancelled = false;
  while (answer.finish == Finish::None && !generator_->idle()) {
    if (!cancelled && wants_stop()) {
      generator_->cancel(id);
      cancelled = true;
    }
    for (const Progress& progress : generator_->step())
      if (progress.request == id) add(progress, answer, on_text);
  }
  messages_.push_back({"assistant", answer.text});
  return answer;
}

void ChatSession::add(const Progress& progress, ChatAnswer& answer, OnText on_text) const {
  if (progress.finish == Finish::Failed)
    fail_runtime("llm.step", "the answer could not be computed: {}", progress.error);
  answer.tokens += static_cast<int64_t>(progress.tokens.size());
  answer.text += progress.text;
  answer.finish = progress.finish;
  if (!progress.text.empty()) on_text(progress.text);
}

void ChatSession::clear() { messages_.clear(); }

void ChatSession::set_system(std::string_view text) { system_ = text; }

std::string ChatSession::json() const { return text::chat_json(with_system()); }

void ChatSession::load(std::string_view json, std::string_view what) {
  const JsonTree tree(json, what, "llm.chat");
  if (!tree.root().is_array()) tree.root().fail_here("a conversation is a list of messages");
  std::string system;
  std::vector<text::ChatMessage> messages;
  for (const JsonTree::Value message : tree.root()) {
    const std::string role(message["role"].text()), content(message["content"].text_or(""));
    if (role == "system" && messages.empty())
      system = content;
    else
      messages.push_back({role, content});
  }
  system_ = std::move(system);
  messages_ = std::move(messages);
}

}  // namespace weft::llm
