#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <optional>

#include "weft/app/app.h"
#include "weft/app/commands.h"
#include "weft/app/interrupt.h"
#include "weft/app/plot.h"
#include "weft/app/progress.h"
#include "weft/app/trainer.h"
#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/json_writer.h"
#include "weft/base/spans.h"
#include "weft/device/device.h"
#include "weft/io/event_file.h"

namespace weft {

namespace {

constexpr int kCurveWidth = 60, kCurveHeight = 8;

// One line of the table (or one JSON object) per epoch.
struct EpochResult {
  int64_t epoch;  // from 1
  double loss;    // mean over its steps
  double accuracy;
  double seconds;
  double images_per_s;
};

double mean_of_last(const std::vector<float>& values, int64_t n) {
  double sum = 0;
  const size_t count = std::min(values.size(), static_cast<size_t>(n));
  for (size_t i = values.size() - count; i < values.size(); ++i) sum += values[i];
  return count == 0 ? 0 : sum / static_cast<double>(count);
}

void report(const Session& session, const EpochResult& r) {
  if (!session.json) {
    session.print("epoch {:>3}  loss {:.4f}  test accuracy {}  {}  {:.0f} images/s\n", r.epoch,
                  r.loss, session.bold(strformat("{:.2f} %", r.accuracy * 100)),
                  human_seconds(r.seconds), r.images_per_s);
  } else {
    JsonWriter json;
    json.begin_object().field("epoch", r.epoch).field("loss", r.loss);
    json.field("accuracy", r.accuracy).field("seconds", r.seconds);
    json.field("images_per_s", r.images_per_s).end_object();
    session.print("{}\n", json.text());
  }
  std::fflush(session.out);
}

Plot curves(const TrainHistory& history, int64_t steps_per_epoch) {
  PlotSeries loss{"training loss", {}, {}}, accuracy{"test accuracy", {}, {}};
  for (size_t i = 0; i < history.loss.size(); ++i) {
    loss.x.push_back(static_cast<double>(i + 1) / static_cast<double>(steps_per_epoch));
    loss.y.push_back(history.loss[i]);
  }
  for (size_t i = 0; i < history.accuracy.size(); ++i) {
    accuracy.x.push_back(static_cast<double>(i + 1));
    accuracy.y.push_back(100.0 * history.accuracy[i]);
  }
  return {"Fashion-MNIST",
          "epoch",
          {{"loss (cross entropy)", {loss}}, {"test accuracy, %", {accuracy}}}};
}

// Found out before the training rather than after its first epoch.
void check_output(const char* option, const std::string& path) {
  if (path.empty()) return;
  const size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  if (::access(directory.c_str(), W_OK) == 0) return;
  fail_errno("train.output", strformat("cannot write {} {}: its directory", option, path), errno);
}

// The whole of one `weft train`.
class TrainRun {
 public:
  TrainRun(const Session& session, const TrainOptions& options)
      : session_(session), options_(options), trainer_(options, session.context) {
    if (!options.tensorboard.empty()) events_.emplace(options.tensorboard);
    if (options.resume) trainer_.resume(options.save);
  }

  int run() {
    const uint64_t start = now_ns();
    while (trainer_.epoch() < options_.epochs) {
      if (!run_epoch()) return stop_early();
      save();
    }
    finish(static_cast<double>(now_ns() - start) * 1e-9);
    return kExitOk;
  }

 private:
  // False: interrupted between two steps.
  bool run_epoch() {
    const int64_t number = trainer_.epoch(), first = trainer_.step_in_epoch();
    const int64_t total = (trainer_.steps_per_epoch() - first) * trainer_.batch();
    const uint64_t start = now_ns();
    {
      ProgressBar bar(strformat("epoch {}/{}", number + 1, options_.epochs), total, "images",
                      session_.context.options(), session_.json ? nullptr : session_.err);
      bar.update(0, started_ ? "" : "compiling kernels");
      started_ = true;
      for (int64_t done = 1; trainer_.epoch() == number; ++done) {
        if (InterruptScope::requested()) return false;
        note("train/learning_rate", trainer_.learning_rate());
        const float loss = trainer_.train_step();
        note("train/loss", loss);
        bar.update(done * trainer_.batch(), strformat("loss {:.3f}", loss));
      }
    }
    const double seconds = static_cast<double>(now_ns() - start) * 1e-9;
    const double accuracy = trainer_.evaluate();
    note("train/images_per_s", static_cast<double>(total) / seconds);
    note("test/accuracy", accuracy);
    report(session_, {number + 1, mean_of_last(trainer_.history().loss, total / trainer_.batch()),
                      accuracy, seconds, static_cast<double>(total) / seconds});
    return true;
  }

  /// At the step that was done last; the learning rate is that of the step to come.
  void note(std::string_view tag, double value) {
    const auto steps = static_cast<int64_t>(trainer_.history().loss.size());
    if (events_) events_->scalar(tag, value, steps);
  }

  void save() {
    if (events_) events_->flush();
    if (!options_.save.empty()) trainer_.save(options_.save);
    plot();
  }
  void plot() const {
    if (options_.plot.empty()) return;
    atomic_write_file(options_.plot,
                      plot_svg(curves(trainer_.history(), trainer_.steps_per_epoch())));
  }

  int stop_early() {
    save();
    const std::string kept =
        options_.save.empty()
            ? "nothing was saved (no --save)"
            : strformat("saved to {0}; go on with --resume --save {0}", options_.save);
    std::fprintf(session_.err, "\nweft: interrupted in epoch %lld, %s\n",
                 static_cast<long long>(trainer_.epoch() + 1), kept.c_str());
    return kExitInterrupted;
  }

  void finish(double seconds) const {
    const TrainHistory& history = trainer_.history();
    if (session_.json) {
      JsonWriter json;
      json.begin_object().field("seconds", seconds).field("epochs", trainer_.epoch());
      json.field("accuracy", history.accuracy.empty() ? 0.0 : history.accuracy.back());
      session_.print("{}\n", json.end_object().text());
      return;
    }
    for (const PlotPanel& panel : curves(history, trainer_.steps_per_epoch()).panels) {
      session_.print("\n{}", plot_text(panel, kCurveWidth, kCurveHeight));
    }
    session_.print("\ntrained in {}{}{}\n", human_seconds(seconds),
                   options_.save.empty() ? "" : ", saved to " + options_.save,
                   options_.plot.empty() ? "" : ", curves in " + options_.plot);
  }

  const Session& session_;
  TrainOptions options_;
  Trainer trainer_;
  std::optional<EventFile> events_;  // with --tensorboard
  bool started_ = false;
};

}  // namespace

void require_computing_device(Context& context) {
  const Device& device = context.get<DeviceTable>().default_device();
  if (device.computes()) return;
  fail("train.device",
       "{} takes kernels and runs none: nothing would be learnt and every number would be "
       "meaningless; use --device CPU, or `weft bench schedule` for what there is to measure on it",
       device.name());
}

int run_train(const Session& session, const TrainOptions& options) {
  require_computing_device(session.context);
  check_output("--save", options.save);
  check_output("--plot", options.plot);
  if (options.resume && options.save.empty()) {
    fail("train.resume", "--resume goes on from the file that --save names; give --save FILE");
  }
  const InterruptScope interrupts;
  return TrainRun(session, options).run();
}

}  // namespace weft
