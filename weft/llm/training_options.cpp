#include "weft/llm/training_options.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/io/host_array.h"

namespace weft::llm {

namespace {

using Options = std::vector<TrainingOption>;

constexpr double kMost = static_cast<double>(int64_t{1} << 40);
constexpr double kLeast = 1e-12;  // of what is above 0

Options joined(Options a, const Options& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Options options_of(TrainingData& d) {
  return {
      {"data", &d.paths, "text files and folders of them (.txt .md .rst .text, .gz too)"},
      {"validation", &d.validation, "share of the tokens that is not trained on", 0.0001, 0.9},
  };
}

Options options_of_model(TrainingData& d) {
  return {
      {"config", &d.config, "tiny, small, gpt2, tiny-llama, small-llama, or a config.json"},
      {"tokenizer", &d.tokenizer, "a tokenizer.json; without: one is learnt"},
      {"vocabulary", &d.vocabulary, "tokens of one that is learnt", 257, 1 << 20},
  };
}

Options options_of(FinetuneOptions& f) {
  return {
      {"rank", &f.lora.rank, "of the factors beside a weight", 1, 4096},
      {"alpha", &f.lora.alpha, "what they give is scaled by alpha / rank", kLeast, kMost},
      {"targets", &f.lora.targets, "q, k, v, o, gate, up, down, output, or all"},
      {"context", &f.context, "tokens of a training text", 1, kMost},
  };
}

std::string numbers_text(double least, double most) {
  return most >= kMost ? strformat("{} or more", least) : strformat("from {} to {}", least, most);
}

template <class T>
void check_value(const TrainingOption& o, const T& x) {
  if constexpr (std::is_arithmetic_v<T>) {
    const auto value = static_cast<double>(x);
    if (!(value >= o.least && value <= o.most))
      fail("train.options", "{} is {}: {}", o.name, x, numbers_text(o.least, o.most));
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (o.choices.empty()) return;
    for (std::string_view rest = o.choices; !rest.empty();) {
      const size_t end = std::min(rest.find('|'), rest.size());
      if (rest.substr(0, end) == x) return;
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    fail("train.options", "{} is {}: {}", o.name, quoted_name(x), o.choices);
  }
}

}  // namespace

std::string TrainingOption::text() const {
  return std::visit(
      [](const auto* x) -> std::string {
        if constexpr (std::is_same_v<std::decay_t<decltype(*x)>, std::vector<std::string>>) {
          std::string all;
          for (const std::string& one : *x) all += (all.empty() ? "" : ",") + one;
          return all;
        } else {
          return strformat("{}", *x);
        }
      },
      place);
}

Options options_of(TrainerOptions& o) {
  return {
      {"steps", &o.steps, "in all; the learning rate falls until the last one", 1, kMost},
      {"batch", &o.batch, "texts of a step, as long as the model's context", 1, kMost},
      {"accumulate", &o.accumulate, "micro-batches that a step is computed in", 1, kMost},
      {"lr", &o.lr, "learning rate at its highest", kLeast, kMost},
      {"last_lr", &o.last_lr, "share of it at the end of the cosine", 0, 1},
      {"warmup", &o.warmup, "steps in which it rises; -1: a tenth of all, at most 100", -1, kMost},
      {"weight_decay", &o.weight_decay, "of matrices", 0, kMost},
      {"beta2", &o.beta2, "of AdamW's second moment", 0, 0.999999},
      {"clip", &o.clip, "most that the gradients' norm may be; 0: any", 0, kMost},
      {"dropout", &o.dropout, "share of activations left out", 0, 0.99},
      {"optimizer", &o.optimizer, "muon: of the layers' matrices; the rest by adamw", 0, 0,
       "adamw|muon"},
      {"dtype", &o.dtype, "what products multiply; weights and sums are f32", 0, 0, "f32|bf16"},
      {"seed", &o.seed, "of first weights, order and dropout", 0, 9223372036854775808.0},
  };
}

Options training_options(TrainingPlan& p) {
  return joined(joined(options_of(p.data), options_of_model(p.data)), options_of(p.course));
}

Options finetuning_options(TrainingPlan& p) {
  return joined(joined(options_of(p.data), options_of(p.finetune)), options_of(p.course));
}

const TrainingOption& find_option(std::span<const TrainingOption> options, std::string_view name) {
  const auto at = std::ranges::find(options, name, &TrainingOption::name);
  if (at != options.end()) return *at;
  std::string known;
  for (const TrainingOption& o : options)
    known += (known.empty() ? "" : ", ") + std::string(o.name);
  fail("train.options", "there is no option {}: {}", quoted_name(name), known);
}

void check_options(std::span<const TrainingOption> options) {
  for (const TrainingOption& o : options)
    std::visit([&](const auto* x) { check_value(o, *x); }, o.place);
}

}  // namespace weft::llm
