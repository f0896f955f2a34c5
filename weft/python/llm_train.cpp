// Training language models: weft.llm.Trainer and weft.llm.Finetuner.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "weft/base/error.h"
#include "weft/llm/training.h"
#include "weft/python/bindings.h"

namespace weft::python {

namespace {

using llm::Training, llm::TrainingPlan, llm::TrainingOption;

std::vector<TrainingOption> options_for(bool adapter, TrainingPlan& plan) {
  return adapter ? finetuning_options(plan) : training_options(plan);
}

void give(const std::vector<TrainingOption>& options, const nb::dict& given) {
  for (const auto& [name, value] : given) {
    const TrainingOption& option = llm::find_option(options, nb::cast<std::string>(name));
    std::visit(
        [&](auto* x) {
          if (!nb::try_cast(value, *x))
            fail_type("train.options", "{} is {}", option.name, nb::repr(value).c_str());
        },
        option.place);
  }
  check_options(options);
}

/// Of data: a new training; without: the folder's goes on.
void make(Training* self, const std::string& folder, const std::string& model,
          const nb::dict& given) {
  TrainingPlan plan;
  give(options_for(!model.empty(), plan), given);
  const bool resume = plan.data.paths.empty();
  const Released released;
  if (!resume) llm::prepare(folder, model, plan.data, [](llm::Preparation, size_t, size_t) {});
  new (self) Training(folder, model, plan, resume);
}

/// Names and defaults.
nb::dict known_options(bool adapter) {
  TrainingPlan plan;
  nb::dict all;
  for (const TrainingOption& o : options_for(adapter, plan))
    std::visit([&](const auto* x) { all[nb::cast(std::string(o.name))] = nb::cast(*x); }, o.place);
  return all;
}

nb::dict history(const Training& t) {
  const llm::TrainingHistory& h = t.trainer().history();
  nb::dict all;
  all["loss"] = h.loss;
  all["gradient_norm"] = h.gradient_norm;
  all["validated_at"] = std::vector<int64_t>(h.validated_at.begin(), h.validated_at.end());
  all["validation_loss"] = h.validation_loss;
  return all;
}

nb::object sample(const Training& t, const std::string& prompt, int64_t tokens, uint64_t seed) {
  std::string text;
  {
    const Released released;
    text = t.trainer().sample(prompt, tokens, seed);
  }
  return nb::bytes(text.data(), text.size()).attr("decode")("utf-8", "replace");
}

}  // namespace

void bind_llm_training(nb::module_& m) {
  m.def(
      "export_checkpoint",
      [](const std::string& folder) {
        const Released released;
        llm::export_checkpoint(folder);
      },
      "folder"_a, nb::call_guard<PythonSite>(), "What weft.llm.export_checkpoint is made of.");
  m.def("training_options", known_options, "adapter"_a,
        "Names and defaults of what weft.llm.Trainer and Finetuner are told.");
  nb::class_<Training> c(m, "LanguageTraining",
                         "What weft.llm.Trainer and weft.llm.Finetuner are made of.");
  c.def("__init__", make, "folder"_a, "model"_a, "options"_a, nb::call_guard<PythonSite>());
  method(c, "step", [](Training& t) {
    const Released released;
    return t.trainer().step();
  });
  method(c, "validate", [](Training& t) {
    const Released released;
    return t.trainer().validate();
  });
  method(c, "sample", sample, "prompt"_a, "tokens"_a, "seed"_a);
  method(c, "save", [](const Training& t) {
    const Released released;
    t.trainer().save();
  });
  method(c, "export_made", [](const Training& t) {
    const Released released;
    t.export_made();
  });
  c.def_prop_ro("history", history);
  c.def_prop_ro("steps", [](const Training& t) { return t.trainer().steps(); });
  c.def_prop_ro("finished", [](const Training& t) { return t.trainer().finished(); });
  c.def_prop_ro("parameters", [](const Training& t) { return t.trainer().parameters(); });
  c.def_prop_ro("tokens_per_step", [](const Training& t) { return t.trainer().tokens_per_step(); });
}

}  // namespace weft::python
