// llm_train.hpp: training language models (llm_train.h) in C++17.
//
//   namespace wt = weft::c;
//   wt::Context context;
//   auto training = wt::Training::of_new_model(context, "out", {
//       weft_named("data", weft_text("texts")), weft_named("steps", weft_int(1000))});
//   while (!training.finished()) training.step();
//   training.export_made();  // wt::LanguageModel(context, "out/model.gguf")
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "weft/c/llm_train.h"
#include "weft/c/weft.hpp"

namespace weft::c {

/// A training and its folder. One thread at a time.
class Training {
 public:
  /// weft_llm_train().
  static Training of_new_model(const Context& context, const std::string& folder,
                               const std::vector<weft_value>& options) {
    weft_training made = nullptr;
    check(weft_llm_train(context.get(), folder.c_str(), options.data(), options.size(), &made));
    return Training(made);
  }
  /// weft_llm_finetune().
  static Training of_adapter(const Context& context, const std::string& folder,
                             const std::string& model, const std::vector<weft_value>& options) {
    weft_training made = nullptr;
    check(weft_llm_finetune(context.get(), folder.c_str(), model.c_str(), options.data(),
                            options.size(), &made));
    return Training(made);
  }
  Training(Training&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  ~Training() { weft_training_release(handle_); }
  weft_training get() const { return handle_; }

  weft_training_info info() const {
    weft_training_info info = WEFT_STRUCT(weft_training_info);
    check(weft_training_describe(handle_, &info));
    return info;
  }
  bool finished() const {
    const weft_training_info now = info();
    return now.steps >= now.all_steps;
  }
  float step() {
    float loss = 0;
    check(weft_training_step(handle_, &loss));
    return loss;
  }
  double validate() {
    double loss = 0;
    check(weft_training_validate(handle_, &loss));
    return loss;
  }
  std::string sample(const std::string& prompt, int64_t tokens, uint64_t seed = 0) const {
    return detail::text_of([&](char* text, size_t capacity, size_t* length) {
      return weft_training_sample(handle_, prompt.c_str(), tokens, seed, text, capacity, length);
    });
  }
  void save() const { check(weft_training_save(handle_)); }
  void export_made() const { check(weft_training_export(handle_)); }

 private:
  explicit Training(weft_training handle) : handle_(handle) {}
  weft_training handle_ = nullptr;
};

}  // namespace weft::c
