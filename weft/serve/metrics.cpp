#include "weft/serve/metrics.h"

#include "weft/base/format.h"
#include "weft/base/resident_memory.h"

namespace weft::serve {

namespace {

void describe(std::string& out, std::string_view name, std::string_view type,
              std::string_view help) {
  append_format(out, "# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

template <class T>
void write(std::string& out, std::string_view name, std::string_view type, std::string_view help,
           T value) {
  describe(out, name, type, help);
  append_format(out, "{} {}\n", name, value);
}

// A name of the exposition format: letters, digits, underscores.
std::string metric_name(std::string_view name) {
  std::string out = "weft_generator_";
  for (const char c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    out += letter ? c : '_';
  }
  return out;
}

}  // namespace

void Histogram::add(double seconds) {
  size_t at = 0;
  while (at < kBounds.size() && seconds > kBounds[at]) ++at;
  ++counts_[at];
  sum_ += seconds;
}

void Histogram::write(std::string& out, std::string_view name, std::string_view help) const {
  describe(out, name, "histogram", help);
  uint64_t count = 0;
  for (size_t i = 0; i < counts_.size(); ++i) {
    count += counts_[i];
    const std::string bound = i < kBounds.size() ? strformat("{}", kBounds[i]) : "+Inf";
    append_format(out, "{}_bucket{{le=\"{}\"}} {}\n", name, bound, count);
  }
  append_format(out, "{}_sum {}\n{}_count {}\n", name, sum_, name, count);
}

std::string Metrics::text(const std::vector<std::pair<std::string, double>>& generator) const {
  std::string out;
  describe(out, "weft_requests_total", "counter", "Requests answered, by route and status.");
  for (const auto& [key, count] : requests)
    append_format(out, "weft_requests_total{{route=\"{}\",status=\"{}\"}} {}\n", key.first,
                  key.second, count);
  write(out, "weft_prompt_tokens_total", "counter", "Tokens of prompts.", prompt_tokens);
  write(out, "weft_generated_tokens_total", "counter", "Tokens of answers.", generated_tokens);
  write(out, "weft_cancelled_total", "counter", "Answers whose client went.", cancelled);
  write(out, "weft_connections_total", "counter", "Connections taken.", connections_total);
  write(out, "weft_connections", "gauge", "Connections open.", connections);
  write(out, "weft_resident_bytes", "gauge", "Memory of the process.", resident_memory().now);
  first_token.write(out, "weft_first_token_seconds", "From a request to its first token.");
  between_tokens.write(out, "weft_between_tokens_seconds",
                       "From one part of an answer to the next.");
  answers.write(out, "weft_answer_seconds", "From a request to the end of its answer.");
  for (const auto& [name, value] : generator)
    write(out, metric_name(name), "gauge", "Of the generator.", value);
  return out;
}

}  // namespace weft::serve
