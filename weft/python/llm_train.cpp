// Training language models: weft.llm.Trainer.
#include <nanobind/stl/string.h>

#include "weft/base/error.h"
#include "weft/llm/trainer.h"
#include "weft/python/bindings.h"

namespace weft::python {

namespace {

using llm::Trainer;

nb::tuple prepare(const std::string& folder, const std::vector<std::string>& data,
                  const std::string& config, const std::string& tokenizer, size_t vocabulary,
                  double validation) {
  llm::TokenCounts counts;
  {
    const Released released;
    counts = llm::prepare_training(folder, {data, config, tokenizer, vocabulary, validation},
                                   [](llm::Preparation, size_t, size_t) {});
  }
  return nb::make_tuple(counts.training, counts.validation, counts.files, counts.left_out);
}

DType factors(const std::string& name) {
  if (name == "f32") return DType::F32;
  if (name == "bf16") return DType::BF16;
  fail("train.options", "dtype is '{}': f32 or bf16", name);
}

bool is_muon(const std::string& name) {
  if (name != "adamw" && name != "muon")
    fail("train.options", "optimizer is '{}': adamw or muon", name);
  return name == "muon";
}

void make(Trainer* self, const std::string& folder, bool resume, int64_t steps, int64_t batch,
          int64_t accumulate, double lr, double last_lr, int64_t warmup, double weight_decay,
          double beta2, double clip, double dropout, const std::string& optimizer,
          const std::string& dtype, uint64_t seed) {
  const llm::TrainerOptions options{steps,   batch,   accumulate,         lr,
                                    last_lr, warmup,  weight_decay,       beta2,
                                    clip,    dropout, is_muon(optimizer), factors(dtype),
                                    seed};
  const Released released;
  new (self) Trainer(folder, options, resume);
}

nb::dict history(const Trainer& t) {
  const llm::TrainingHistory& h = t.history();
  nb::dict all;
  all["loss"] = h.loss;
  all["gradient_norm"] = h.gradient_norm;
  all["validated_at"] = std::vector<int64_t>(h.validated_at.begin(), h.validated_at.end());
  all["validation_loss"] = h.validation_loss;
  return all;
}

nb::object sample(const Trainer& t, const std::string& prompt, int64_t tokens, uint64_t seed) {
  std::string text;
  {
    const Released released;
    text = t.sample(prompt, tokens, seed);
  }
  return nb::bytes(text.data(), text.size()).attr("decode")("utf-8", "replace");
}

}  // namespace

void bind_llm_training(nb::module_& m) {
  m.def("prepare_training", prepare, "folder"_a, "data"_a, "config"_a, "tokenizer"_a,
        "vocabulary"_a, "validation"_a, nb::call_guard<PythonSite>(),
        "What weft.llm.Trainer makes its folder with.");
  m.def(
      "export_checkpoint",
      [](const std::string& folder) {
        const Released released;
        llm::export_checkpoint(folder);
      },
      "folder"_a, nb::call_guard<PythonSite>(), "What weft.llm.export_checkpoint is made of.");
  nb::class_<Trainer> c(m, "LanguageTrainer", "What weft.llm.Trainer is made of.");
  c.def("__init__", make, "folder"_a, "resume"_a, "steps"_a, "batch"_a, "accumulate"_a, "lr"_a,
        "last_lr"_a, "warmup"_a, "weight_decay"_a, "beta2"_a, "clip"_a, "dropout"_a, "optimizer"_a,
        "dtype"_a, "seed"_a, nb::call_guard<PythonSite>());
  method(c, "step", [](Trainer& t) {
    const Released released;
    return t.step();
  });
  method(c, "validate", [](Trainer& t) {
    const Released released;
    return t.validate();
  });
  method(c, "sample", sample, "prompt"_a, "tokens"_a, "seed"_a);
  method(c, "save", [](const Trainer& t) {
    const Released released;
    t.save();
  });
  method(c, "export_model", [](const Trainer& t) {
    const Released released;
    t.export_model();
  });
  c.def_prop_ro("history", history);
  c.def_prop_ro("steps", &Trainer::steps);
  c.def_prop_ro("finished", &Trainer::finished);
  c.def_prop_ro("parameters", &Trainer::parameters);
  c.def_prop_ro("tokens_per_step", &Trainer::tokens_per_step);
}

}  // namespace weft::python
