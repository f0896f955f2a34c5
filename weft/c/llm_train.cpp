// Training language models behind llm_train.h.
#include "weft/c/llm_train.h"

#include <algorithm>

#include "weft/c/boundary.h"
#include "weft/c/handles.h"
#include "weft/llm/training.h"

namespace weft::c {

struct TrainingObject {
  std::shared_ptr<ContextObject> owner;  // outlives the training
  llm::Training training;
};

namespace {

/// Puts one value where its option is. A list grows from the first value of its name on.
class Giver {
 public:
  Giver(const llm::TrainingOption& option, const weft_value& value, bool first)
      : option_(option), value_(value), first_(first) {}

  void operator()(int64_t* x) const { *x = integer(); }
  void operator()(uint64_t* x) const {
    if (integer() < 0) refuse_value("a whole number that is not below 0");
    *x = static_cast<uint64_t>(integer());
  }
  void operator()(double* x) const {
    *x = value_.kind == WEFT_FLOAT ? value_.as.number : static_cast<double>(integer("a number"));
  }
  void operator()(std::string* x) const { *x = text(); }
  void operator()(std::vector<std::string>* x) const {
    if (first_) x->clear();
    x->push_back(text());
  }

 private:
  int64_t integer(const char* wanted = "a whole number") const {
    if (value_.kind != WEFT_INT) refuse_value(wanted);
    return value_.as.integer;
  }
  std::string text() const {
    if (value_.kind != WEFT_TEXT) refuse_value("a text");
    return std::string(required_text(value_.name, value_.as.text));
  }
  [[noreturn]] void refuse_value(const char* wanted) const {
    refuse("train.options", "{} is {}; its value is of kind {}", option_.name, wanted, value_.kind);
  }

  const llm::TrainingOption& option_;
  const weft_value& value_;
  const bool first_;
};

void give(std::span<const llm::TrainingOption> options, const weft_value* values, size_t count) {
  require_pointer("options", values, count);
  std::vector<std::string_view> given;
  for (size_t i = 0; i < count; ++i) {
    const std::string_view name = required_text("an option's name", values[i].name);
    const llm::TrainingOption& option = llm::find_option(options, name);
    const bool first = std::ranges::find(given, name) == given.end();
    std::visit(Giver(option, values[i], first), option.place);
    given.push_back(name);
  }
}

template <class Options>
weft_training begin(weft_context context, const char* folder, const std::string& model,
                    Options options_of, const weft_value* values, size_t count) {
  const auto owner = object_of(context);
  const std::string to(required_text("folder", folder));
  llm::TrainingPlan plan;
  const std::vector<llm::TrainingOption> options = options_of(plan);
  give(options, values, count);
  check_options(options);
  const ContextScope scope(owner->context);
  const bool resume = plan.data.paths.empty();
  if (!resume) llm::prepare(to, model, plan.data, [](llm::Preparation, size_t, size_t) {});
  return make_handle<weft_training>(std::make_shared<TrainingObject>(
      TrainingObject{owner, llm::Training(to, model, plan, resume)}));
}

/// body(trainer, training) in the training's context.
template <class Body>
weft_status with(weft_training handle, const Body& body) {
  return guarded([&] {
    const auto object = object_of(handle);
    const ContextScope scope(object->owner->context);
    body(object->training.trainer(), object->training);
  });
}

using llm::Trainer, llm::Training;

}  // namespace

}  // namespace weft::c

using namespace weft;     // NOLINT: what weft.h declares is in no namespace
using namespace weft::c;  // NOLINT

extern "C" {

weft_status weft_llm_train(weft_context context, const char* folder, const weft_value* options,
                           size_t count, weft_training* out) {
  return guarded([&] {
    require_pointer("out", out);
    *out = begin(context, folder, "", llm::training_options, options, count);
  });
}

weft_status weft_llm_finetune(weft_context context, const char* folder, const char* model,
                              const weft_value* options, size_t count, weft_training* out) {
  return guarded([&] {
    require_pointer("out", out);
    const std::string of(required_text("model", model));
    *out = begin(context, folder, of, llm::finetuning_options, options, count);
  });
}

weft_status weft_training_describe(weft_training training, weft_training_info* out) {
  return with(training, [&](const Trainer& t, const Training&) {
    weft_training_info info{};
    info.steps = t.steps();
    info.all_steps = t.options().steps;
    info.parameters = t.parameters();
    info.tokens_per_step = t.tokens_per_step();
    info.learning_rate = t.learning_rate();
    write_struct("weft_training_info", info, out, offsetof(weft_training_info, learning_rate));
  });
}

weft_status weft_training_step(weft_training training, float* loss) {
  return with(training, [&](Trainer& t, const Training&) {
    const float made = t.step();
    if (loss) *loss = made;
  });
}

weft_status weft_training_validate(weft_training training, double* loss) {
  return with(training, [&](Trainer& t, const Training&) {
    const double made = t.validate();
    if (loss) *loss = made;
  });
}

weft_status weft_training_sample(weft_training training, const char* prompt, int64_t tokens,
                                 uint64_t seed, char* text, size_t capacity, size_t* length) {
  return with(training, [&](const Trainer& t, const Training&) {
    write_text(t.sample(prompt ? prompt : "", tokens, seed), text, capacity, length);
  });
}

weft_status weft_training_save(weft_training training) {
  return with(training, [](const Trainer& t, const Training&) { t.save(); });
}

weft_status weft_training_export(weft_training training) {
  return with(training, [](const Trainer&, const Training& all) { all.export_made(); });
}

void weft_training_release(weft_training training) { release_handle(training); }

}  // extern "C"
