#include "weft/app/progress.h"

#include <unistd.h>

#include <algorithm>

#include "weft/base/format.h"
#include "weft/base/options.h"
#include "weft/base/spans.h"

namespace weft {

namespace {
constexpr int kBarWidth = 24;
constexpr uint64_t kRedrawNs = 100'000'000, kPlainLineNs = 10'000'000'000;
}  // namespace

std::string human_seconds(double seconds) {
  if (!(seconds >= 0) || seconds > 1e9) return "?";
  if (seconds < 60) return strformat("{:.1f} s", seconds);
  const auto whole = static_cast<int64_t>(seconds + 0.5);
  if (whole < 3600) return strformat("{} min {:02} s", whole / 60, whole % 60);
  return strformat("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

ProgressBar::ProgressBar(std::string label, int64_t total, std::string unit, const Options& options,
                         std::FILE* out)
    : label_(std::move(label)),
      unit_(std::move(unit)),
      total_(std::max<int64_t>(total, 1)),
      out_(out),
      terminal_(out != nullptr && !options.plain() && ::isatty(::fileno(out)) == 1),
      start_ns_(now_ns()) {
  drawn_ns_ = terminal_ ? 0 : start_ns_;
}

ProgressBar::~ProgressBar() {
  if (!finished_ && terminal_ && drawn_width_ > 0) std::fputc('\n', out_);
}

double ProgressBar::rate() const {
  const double seconds = static_cast<double>(now_ns() - start_ns_) * 1e-9;
  return seconds > 0 ? static_cast<double>(done_) / seconds : 0;
}

std::string ProgressBar::line(int64_t done, double seconds, std::string_view note) const {
  const double share =
      std::clamp(static_cast<double>(done) / static_cast<double>(total_), 0.0, 1.0);
  const int filled = static_cast<int>(share * kBarWidth + 1e-9);
  std::string text = strformat("{} [", label_);
  text.append(static_cast<size_t>(filled), '#')
      .append(static_cast<size_t>(kBarWidth - filled), '.');
  const double per_second = seconds > 0 ? static_cast<double>(done) / seconds : 0;
  append_format(text, "] {:3.0f}% {:.0f} {}/s", share * 100, per_second, unit_);
  if (done < total_ && per_second > 0) {
    append_format(text, ", {} left",
                  human_seconds(static_cast<double>(total_ - done) / per_second));
  } else if (done >= total_) {
    append_format(text, ", {}", human_seconds(seconds));
  }
  if (!note.empty()) append_format(text, ", {}", note);
  return text;
}

void ProgressBar::draw(std::string_view note) {
  const uint64_t now = now_ns();
  drawn_ns_ = now;
  std::string text = line(done_, static_cast<double>(now - start_ns_) * 1e-9, note);
  const size_t width = text.size();
  if (terminal_) {
    if (width < drawn_width_) text.append(drawn_width_ - width, ' ');
    std::fprintf(out_, "\r%s", text.c_str());
  } else {
    std::fprintf(out_, "%s\n", text.c_str());
  }
  std::fflush(out_);
  drawn_width_ = width;
}

void ProgressBar::update(int64_t done, std::string_view note) {
  done_ = done;
  if (out_ == nullptr) return;
  if (now_ns() - drawn_ns_ >= (terminal_ ? kRedrawNs : kPlainLineNs)) draw(note);
}

void ProgressBar::finish(std::string_view note) {
  if (finished_) return;
  finished_ = true;
  done_ = total_;
  if (out_ == nullptr) return;
  draw(note);
  if (terminal_) std::fputc('\n', out_);
}

}  // namespace weft
