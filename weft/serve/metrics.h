// Metrics: what /metrics says, in Prometheus's text format.
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft::serve {

/// Cumulative counts below bounds that fit what a model takes.
class Histogram {
 public:
  void add(double seconds);
  void write(std::string& out, std::string_view name, std::string_view help) const;

 private:
  static constexpr std::array<double, 12> kBounds = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                                     0.5,   1,    2.5,   10,   30,  120};
  std::array<uint64_t, kBounds.size() + 1> counts_{};
  double sum_ = 0;
};

/// Of the io thread.
struct Metrics {
  std::map<std::pair<std::string, int>, uint64_t> requests;  ///< by route and status
  uint64_t prompt_tokens = 0, generated_tokens = 0, cancelled = 0, connections_total = 0;
  size_t connections = 0;
  Histogram first_token, answers, between_tokens;

  std::string text(const std::vector<std::pair<std::string, double>>& generator) const;
};

}  // namespace weft::serve
