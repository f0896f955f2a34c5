// `weft llm train`: texts in, a model out, with what people want to see in between.
#include <optional>

#include "weft/app/app.h"
#include "weft/app/interrupt.h"
#include "weft/app/llm_options.h"
#include "weft/app/plot.h"
#include "weft/app/progress.h"
#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/json_writer.h"
#include "weft/base/spans.h"
#include "weft/io/event_file.h"
#include "weft/llm/training.h"

namespace weft {

namespace {

constexpr int kCurveWidth = 60, kCurveHeight = 10;

double seconds_since(uint64_t start) { return static_cast<double>(now_ns() - start) * 1e-9; }

/// Makes tokens of texts, with what it does shown as a bar.
void prepare(const Session& session, const LlmOptions& o) {
  if (o.train.plan.data.paths.empty())
    fail("train.data", "there is nothing to learn from: give --data, or --resume");
  std::optional<ProgressBar> bar;
  std::optional<llm::Preparation> now;
  const auto note = [&](llm::Preparation what, size_t done, size_t all) {
    if (now != what) {
      if (bar) bar->finish();
      bar.emplace(what == llm::Preparation::Tokenizer ? "words" : "tokens",
                  static_cast<int64_t>(all), "files", session.context.options(),
                  session.json ? nullptr : session.err);
      now = what;
    }
    bar->update(static_cast<int64_t>(done));
  };
  const llm::TokenCounts counts = llm::prepare(o.output, o.model, o.train.plan.data, note);
  if (bar) bar->finish();
  if (!session.json) {
    session.print("{} tokens of {} files to train on, {} to validate with", counts.training,
                  counts.files, counts.validation);
    session.print("{}\n", counts.left_out == 0
                              ? ""
                              : strformat("; {} files are empty or not UTF-8", counts.left_out));
    return;
  }
  JsonWriter json;
  json.begin_object().field("training_tokens", counts.training);
  json.field("validation_tokens", counts.validation).field("files", counts.files);
  session.print("{}\n", json.field("left_out", counts.left_out).end_object().text());
}

Plot curves(const llm::TrainingHistory& history) {
  PlotSeries loss{"training", {}, {}}, validation{"validation", {}, {}};
  for (size_t i = 0; i < history.loss.size(); ++i) {
    loss.x.push_back(static_cast<double>(i + 1));
    loss.y.push_back(history.loss[i]);
  }
  validation.x.assign(history.validated_at.begin(), history.validated_at.end());
  validation.y.assign(history.validation_loss.begin(), history.validation_loss.end());
  return {"weft llm train", "step", {{"loss (nats of a token)", {loss, validation}}}};
}

/// Steps between two validations.
struct Stretch {
  int64_t last;  // step
  double loss, validation_loss, seconds, tokens_per_s;
  std::string sample;
};

class LlmTraining {
 public:
  LlmTraining(const Session& session, const LlmOptions& options, const llm::Training& training)
      : session_(session),
        options_(options.train),
        folder_(options.output),
        training_(training),
        trainer_(training.trainer()) {
    if (!options_.tensorboard.empty()) events_.emplace(options_.tensorboard);
  }

  int run() {
    const uint64_t start = now_ns();
    if (!session_.json)
      session_.print("{}: {} parameters, context {}\n", trainer_.config().family,
                     trainer_.parameters(), trainer_.tokens_per_step() / trainer_.options().batch);
    while (!trainer_.finished())
      if (!run_stretch()) return stop_early();
    training_.export_made();
    finish(seconds_since(start));
    return kExitOk;
  }

 private:
  // False: interrupted between two steps.
  bool run_stretch() {
    const int64_t first = trainer_.steps();
    const int64_t end =
        std::min(trainer_.options().steps, (first / options_.every + 1) * options_.every);
    const int64_t tokens = trainer_.tokens_per_step();
    const uint64_t start = now_ns();
    double loss = 0;
    {
      ProgressBar bar(strformat("to step {}", end), (end - first) * tokens, "tokens",
                      session_.context.options(), session_.json ? nullptr : session_.err);
      bar.update(0, started_ ? "" : "compiling kernels");
      started_ = true;
      while (trainer_.steps() < end) {
        if (InterruptScope::requested()) return false;
        const float now = trainer_.step();
        note("train/loss", now);
        note("train/gradient_norm", trainer_.history().gradient_norm.back());
        loss += now;
        bar.update((trainer_.steps() - first) * tokens, strformat("loss {:.3f}", now));
      }
    }
    const double seconds = seconds_since(start), count = static_cast<double>(end - first);
    const double validated = trainer_.validate();
    note("validation/loss", validated);
    note("train/tokens_per_s", count * static_cast<double>(tokens) / seconds);
    save();
    report({end, loss / count, validated, seconds, count * static_cast<double>(tokens) / seconds,
            options_.sample_tokens > 0 ? trainer_.sample(options_.prompt, options_.sample_tokens,
                                                         options_.plan.course.seed)
                                       : ""});
    return true;
  }

  void note(std::string_view tag, double value) {
    if (events_) events_->scalar(tag, value, trainer_.steps());
  }

  void report(const Stretch& s) const {
    if (!session_.json) {
      session_.print("step {:>6}  loss {:.4f}  validation {}  {}  {:.0f} tokens/s\n", s.last,
                     s.loss, session_.bold(strformat("{:.4f}", s.validation_loss)),
                     human_seconds(s.seconds), s.tokens_per_s);
      if (!s.sample.empty()) session_.print("  | {}\n", indented(s.sample));
    } else {
      JsonWriter json;
      json.begin_object().field("step", s.last).field("loss", s.loss);
      json.field("validation_loss", s.validation_loss).field("seconds", s.seconds);
      json.field("tokens_per_s", s.tokens_per_s).field("sample", s.sample);
      session_.print("{}\n", json.end_object().text());
    }
    std::fflush(session_.out);
  }
  static std::string indented(std::string_view text) {
    std::string out;
    for (const char c : text) {
      out += c;
      if (c == '\n') out += "  | ";
    }
    return out;
  }

  void save() {
    if (events_) events_->flush();
    trainer_.save();
    atomic_write_file(folder_ + "/loss.svg", plot_svg(curves(trainer_.history())));
  }

  int stop_early() {
    save();
    std::fprintf(session_.err,
                 "\nweft: interrupted after step %lld, saved in %s; go on with --resume, or take "
                 "the model as it is with --export\n",
                 static_cast<long long>(trainer_.steps()), folder_.c_str());
    return kExitInterrupted;
  }

  void finish(double seconds) const {
    const llm::TrainingHistory& history = trainer_.history();
    const double loss = history.validation_loss.empty() ? 0 : history.validation_loss.back();
    if (session_.json) {
      JsonWriter json;
      json.begin_object().field("steps", trainer_.steps()).field("seconds", seconds);
      json.field("parameters", trainer_.parameters()).field("validation_loss", loss);
      session_.print("{}\n",
                     json.field("model", folder_ + "/" + training_.made()).end_object().text());
      return;
    }
    session_.print("\n{}", plot_text(curves(history).panels[0], kCurveWidth, kCurveHeight));
    session_.print("\ntrained in {}: {}/{}, curves in {}/loss.svg\n", human_seconds(seconds),
                   folder_, training_.made(), folder_);
  }

  const Session& session_;
  const LlmTrainOptions& options_;
  std::string folder_;
  const llm::Training& training_;
  llm::Trainer& trainer_;
  std::optional<EventFile> events_;  // with --tensorboard
  bool started_ = false;
};

}  // namespace

int train_llm(const Session& session, const LlmOptions& options) {
  if (options.train.export_only) {
    llm::export_checkpoint(options.output);
    const std::string made = options.output + "/model.gguf";
    if (session.json)
      session.print("{}\n", JsonWriter().begin_object().field("model", made).end_object().text());
    else
      session.print("{} and {}/model.safetensors\n", made, options.output);
    return kExitOk;
  }
  require_computing_device(session.context);
  const InterruptScope interrupts;
  if (!options.train.resume) prepare(session, options);
  const llm::Training training(options.output, options.model, options.train.plan,
                               options.train.resume);
  return LlmTraining(session, options, training).run();
}

}  // namespace weft
