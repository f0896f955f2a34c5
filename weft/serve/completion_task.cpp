#include "weft/serve/completion_task.h"

#include <algorithm>
#include <ctime>

#include "weft/base/format.h"
#include "weft/llm/grammar.h"
#include "weft/serve/chat_prompt.h"
#include "weft/serve/completion_form.h"
#include "weft/serve/response_form.h"
#include "weft/serve/tool_grammar.h"

namespace weft::serve {

namespace {

using Seconds = std::chrono::duration<double>;

std::vector<std::string> names_of(const CompletionRequest& request) {
  std::vector<std::string> names;
  for (const Tool& tool : request.tools)
    if (request.tool_choice.may_call(tool.name)) names.push_back(tool.name);
  return names;
}

void refuse_unknown_tokens(const text::Tokenizer& tokenizer, const CompletionRequest& request) {
  for (const auto& [id, bias] : request.request.sampling.logit_bias)
    if (!tokenizer.id_to_token(id))
      throw Refusal{400, "invalid_parameter", "logit_bias",
                    strformat("logit_bias has the token {}; the model has {} tokens", id,
                              tokenizer.vocab_size())};
}

std::unique_ptr<AnswerForm> form_of(Service& service, const CompletionRequest& request) {
  const auto now = static_cast<int64_t>(std::time(nullptr));
  if (request.api == Api::Responses)
    return std::make_unique<ResponseForm>(request, service.model().name,
                                          service.new_id("").substr(0, 16), now,
                                          service.model().tokenizer);
  return std::make_unique<CompletionForm>(
      CompletionHead{.chat = request.chat(),
                     .logprobs = request.logprobs,
                     .include_usage = request.include_usage,
                     .id = service.new_id(request.chat() ? "chatcmpl-" : "cmpl-"),
                     .model = service.model().name,
                     .created = now},
      service.model().tokenizer);
}

std::string_view route_of(const CompletionRequest& request) {
  if (request.api == Api::Responses) return "/v1/responses";
  return request.chat() ? "/v1/chat/completions" : "/v1/completions";
}

std::string_view finish_name(llm::Finish finish, bool calls) {
  if (finish == llm::Finish::Length) return "length";
  return calls ? "tool_calls" : "stop";
}

}  // namespace

void CompletionTask::start(Service& service, CompletionRequest request,
                           const std::shared_ptr<Exchange>& exchange) {
  service.require_model(request.model);
  const std::string call = demanded_call_schema(request);
  const std::string& schema = call.empty() ? request.answer_schema : call;
  if (!schema.empty())
    request.request.grammar =
        std::make_shared<const llm::Grammar>(llm::Grammar::from_json_schema(schema));
  refuse_unknown_tokens(service.model().tokenizer, request);
  const auto task = std::make_shared<CompletionTask>(service, std::move(request), exchange);
  task->add_choices();
  service.require_room(task->choices_.size());
  task->submit();
}

CompletionTask::CompletionTask(Service& service, CompletionRequest request,
                               const std::shared_ptr<Exchange>& exchange)
    : service_(service),
      request_(std::move(request)),
      exchange_(exchange),
      since_(std::chrono::steady_clock::now()) {
  form_ = form_of(service, request_);
}

void CompletionTask::add_choices() {
  const text::Tokenizer& tokenizer = service_.model().tokenizer;
  if (request_.chat()) {
    begun_ = answer_beginning(request_.tool_choice);
    std::vector<PromptPiece> pieces = service_.prompt_of(request_);
    pieces.push_back({begun_, true});
    return add_choices_of(tokens_of(pieces, tokenizer), "");
  }
  for (const Prompt& prompt : request_.prompts) {
    std::string echo;
    if (request_.echo) echo = prompt.is_text ? prompt.text : tokenizer.decode(prompt.tokens);
    add_choices_of(prompt.is_text ? tokenizer.encode(prompt.text) : prompt.tokens, echo);
  }
}

void CompletionTask::add_choices_of(std::vector<llm::TokenId> prompt, const std::string& echo) {
  usage_.prompt += prompt.size();
  const uint64_t seed = request_.has_seed ? request_.request.sampling.seed : service_.new_seed();
  for (int64_t i = 0; i < request_.written(); ++i) {
    llm::Request request = request_.request;
    request.prompt = prompt;
    request.continues = !request_.chat();
    request.sampling.seed = seed + static_cast<uint64_t>(i);
    to_submit_.push_back(std::move(request));
    choices_.push_back({.index = choices_.size(),
                        .parts = AnswerParts(names_of(request_), begun_),
                        .spelled = text::DecodeStream(service_.model().tokenizer, false),
                        .plain = text::DecodeStream(service_.model().tokenizer),
                        .content = echo});
    // Probabilities list an answer's tokens as its text has them.
    if (request_.chat() || prompt.empty() || (request_.echo && request_.logprobs)) continue;
    choices_.back().spelled.step(prompt.back());
    choices_.back().plain.step(prompt.back());
  }
}

void CompletionTask::submit() {
  std::vector<std::pair<Ticket, llm::Request>> requests;
  for (size_t i = 0; i < choices_.size(); ++i) {
    choices_[i].ticket = service_.open(shared_from_this());
    requests.emplace_back(choices_[i].ticket, std::move(to_submit_[i]));
  }
  to_submit_.clear();
  service_.loop().submit(std::move(requests));
  exchange_->when_abandoned([task = weak_from_this()] {
    if (const auto self = task.lock()) {
      ++self->service_.metrics().cancelled;
      self->leave();
    }
  });
}

// Its answers are cancelled, and nothing of it comes any more.
void CompletionTask::leave() {
  for (const Choice& choice : choices_) {
    if (choice.finish.empty()) service_.loop().cancel(choice.ticket);
    service_.close(choice.ticket);
  }
}

void CompletionTask::on_outcome(Outcome& outcome) {
  if (outcome.kind == Outcome::Kind::Refused) return fail(refusal_of(outcome.code, outcome.error));
  if (outcome.kind == Outcome::Kind::Started) return on_started();
  for (Choice& choice : choices_)
    if (choice.ticket == outcome.ticket) return on_progress(choice, outcome.progress);
}

// Errors are answers of their own as long as the head of none is sent.
void CompletionTask::on_started() {
  if (++started_ < choices_.size()) return;
  service_.metrics().prompt_tokens += usage_.prompt;
  if (!request_.stream) return;
  exchange_->begin_events();
  send(form_->begin(choices_));
}

void CompletionTask::note_time() {
  const auto now = std::chrono::steady_clock::now();
  Metrics& metrics = service_.metrics();
  (any_ ? metrics.between_tokens : metrics.first_token)
      .add(Seconds(now - (any_ ? last_ : since_)).count());
  any_ = true;
  last_ = now;
}

std::vector<AnswerPart> CompletionTask::parts_of(Choice& choice, const llm::Progress& progress) {
  if (!request_.chat() && progress.text.empty()) return {};
  if (!request_.chat()) return {{AnswerPart::Kind::Content, progress.text}};
  std::vector<AnswerPart> parts = choice.parts.feed(progress.text);
  if (progress.finish == llm::Finish::None) return parts;
  for (AnswerPart& part : choice.parts.finish()) parts.push_back(std::move(part));
  return parts;
}

void CompletionTask::add_part(Choice& choice, AnswerPart& part) {
  if (part.kind == AnswerPart::Kind::Call) {
    part.call.id = service_.new_id("call_");
    choice.calls.push_back(part.call);
  } else if (!request_.stream && !form_->gathers_parts()) {
    (part.kind == AnswerPart::Kind::Content ? choice.content : choice.reasoning) += part.text;
  }
}

/// The prompt, where its probabilities are told with it.
void CompletionTask::add_prompt(Choice& choice, llm::Progress& progress) {
  if (progress.prompt.empty()) return;
  const AnswerPart echo{AnswerPart::Kind::Content, choice.content};
  if (request_.stream)
    send(form_->part(choice, &echo, progress.prompt));
  else
    choice.tokens = std::move(progress.prompt);
}

void CompletionTask::on_progress(Choice& choice, llm::Progress& progress) {
  if (progress.finish == llm::Finish::Failed)
    return fail({500, "server_error", "", progress.error});
  // Of the answers to one prompt the first one says what was there before.
  if (choice.index % static_cast<size_t>(request_.written()) == 0)
    usage_.cached += static_cast<size_t>(progress.reused_tokens);
  add_prompt(choice, progress);
  for (const llm::GeneratedToken& token : progress.tokens)
    choice.likelihood.add(static_cast<double>(token.token.logprob));
  if (!progress.tokens.empty()) note_time();
  usage_.completion += progress.tokens.size();
  service_.metrics().generated_tokens += progress.tokens.size();
  std::vector<llm::GeneratedToken> tokens;  // whose probabilities are not told yet
  if (request_.logprobs) tokens.swap(progress.tokens);
  const bool told = request_.stream || form_->gathers_parts();
  for (AnswerPart& part : parts_of(choice, progress)) {
    add_part(choice, part);
    if (!told) continue;
    send(form_->part(choice, &part, tokens));
    tokens.clear();
  }
  if (!told)
    choice.tokens.insert(choice.tokens.end(), tokens.begin(), tokens.end());
  else if (!tokens.empty())
    send(form_->part(choice, nullptr, tokens));
  if (progress.finish != llm::Finish::None) on_finish(choice, progress);
}

void CompletionTask::on_finish(Choice& choice, const llm::Progress& progress) {
  choice.finish = finish_name(progress.finish, choice.parts.has_calls());
  service_.close(choice.ticket);
  if (request_.stream) send(form_->end_choice(choice));
  if (++finished_ == choices_.size()) finish();
}

/// Of the answers to each prompt the n that are likeliest, token by token.
void CompletionTask::keep_best() {
  const auto written = static_cast<size_t>(request_.written()), n = static_cast<size_t>(request_.n);
  if (written == n) return;
  std::ranges::sort(choices_, [&](const Choice& a, const Choice& b) {
    const size_t prompt = a.index / written, other = b.index / written;
    if (prompt != other) return prompt < other;
    const double likely = a.likelihood.mean(), beside = b.likelihood.mean();
    return likely != beside ? likely > beside : a.index < b.index;
  });
  std::vector<Choice> best;
  for (size_t i = 0; i < choices_.size(); ++i) {
    if (i % written >= n) continue;
    choices_[i].index = best.size();
    best.push_back(std::move(choices_[i]));
  }
  choices_ = std::move(best);
}

void CompletionTask::finish() {
  service_.metrics().answers.add(Seconds(std::chrono::steady_clock::now() - since_).count());
  service_.count(route_of(request_), 200);
  keep_best();
  if (!request_.stream) return exchange_->respond({200, form_->whole(choices_, usage_)});
  send(form_->end(usage_));
  exchange_->end_events();
}

void CompletionTask::fail(const Refusal& refusal) {
  leave();
  service_.count(route_of(request_), refusal.status);
  if (!request_.stream || started_ < choices_.size())
    return exchange_->respond(error_response(refusal));
  send(form_->fail(refusal));
  exchange_->end_events();
}

}  // namespace weft::serve
