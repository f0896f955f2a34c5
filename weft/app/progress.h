// ProgressBar: one redrawn line with share, rate and time left; plain lines when not a terminal.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace weft {

struct Options;

class ProgressBar {
 public:
  // `unit` names what is counted ("images"). Nothing is drawn when `out` is nullptr.
  ProgressBar(std::string label, int64_t total, std::string unit, const Options& options,
              std::FILE* out = stderr);
  ~ProgressBar();  // ends the line
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // `done` of total so far; `note` follows the bar ("loss 0.31"). Redraws at most 10 times a
  // second.
  void update(int64_t done, std::string_view note = {});
  void finish(std::string_view note = {});

  double rate() const;  // units per second since construction
  std::string line(int64_t done, double seconds, std::string_view note) const;

 private:
  void draw(std::string_view note);

  std::string label_, unit_;
  int64_t total_, done_ = 0;
  std::FILE* out_;
  bool terminal_;
  bool finished_ = false;
  uint64_t start_ns_, drawn_ns_ = 0;
  size_t drawn_width_ = 0;
};

// "3.2 s", "4 min 07 s", "1 h 02 min": for people.
std::string human_seconds(double seconds);

}  // namespace weft
