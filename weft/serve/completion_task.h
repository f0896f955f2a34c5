// CompletionTask: one request for completions, from its prompt to the last byte of its answer.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "weft/serve/answer_form.h"
#include "weft/serve/service.h"

namespace weft::serve {

class CompletionTask final : public Task, public std::enable_shared_from_this<CompletionTask> {
 public:
  /// Throws Refusal and Error before it answers anything.
  static void start(Service& service, CompletionRequest request,
                    const std::shared_ptr<Exchange>& exchange);
  CompletionTask(Service& service, CompletionRequest request,
                 const std::shared_ptr<Exchange>& exchange);

  void on_outcome(Outcome& outcome) override;
  void fail(const Refusal& refusal) override;

 private:
  void add_choices();
  void add_choices_of(std::vector<llm::TokenId> prompt, const std::string& echo);
  void submit();
  void on_started();
  void add_prompt(Choice& choice, llm::Progress& progress);
  void on_progress(Choice& choice, llm::Progress& progress);
  std::vector<AnswerPart> parts_of(Choice& choice, const llm::Progress& progress);
  void add_part(Choice& choice, AnswerPart& part);
  void on_finish(Choice& choice, const llm::Progress& progress);
  void note_time();
  void send(const AnswerForm::Events& events) {
    if (!request_.stream) return;
    for (const StreamEvent& event : events) exchange_->event(event.data, event.name);
  }
  void keep_best();
  void finish();
  void leave();

  Service& service_;
  const CompletionRequest request_;
  std::shared_ptr<Exchange> exchange_;
  std::unique_ptr<AnswerForm> form_;
  std::vector<Choice> choices_;
  std::vector<llm::Request> to_submit_;
  std::string begun_;
  Usage usage_;
  size_t started_ = 0, finished_ = 0;
  Service::Time since_, last_;
  bool any_ = false;  // a token has come
};

}  // namespace weft::serve
