// What the command line can say, and how its parts are described to CLI11: app.cpp and a file per
// group of commands.
#pragma once

#include <CLI/CLI.hpp>
#include <charconv>
#include <limits>
#include <string>
#include <type_traits>

#include "weft/app/llm_options.h"

namespace weft {

/// Everything that can be said.
struct CommandLine {
  bool json = false;
  std::string device, rule, shell, file;
  std::vector<std::string> words = {};  // all of them
  ExplainOptions explain;
  int threads = 0;
  TrainOptions train;
  BenchOptions bench;
  OnnxOptions onnx;
  LlmOptions llm;
  TokenizeOptions tokenize;
  VizOptions viz;
};

/// With what every command has.
CLI::App* subcommand(CLI::App& app, CommandLine& line, const char* name, const char* what);
void add_machine_options(CLI::App* sub, CommandLine& line);

/// Numbers from `least` to `most`, in decimals. CLI11's own let through nan, and what its 64 bits
/// cannot hold.
template <class T>
CLI::Validator in_range(T least, T most = std::numeric_limits<T>::max()) {
  constexpr auto kEndless = static_cast<T>(std::numeric_limits<int32_t>::max());
  const std::string range =
      most > kEndless ? strformat("{} or more", least) : strformat("{} to {}", least, most);
  const auto check = [=](std::string& text) -> std::string {
    const char* const end = text.data() + text.size();
    T value{};
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    const bool number = error == std::errc() && stop == end;
    if (number && value >= least && value <= most) return "";
    return strformat("'{}' is not {} {}", text, std::is_integral_v<T> ? "an integer," : "a number,",
                     range);
  };
  return {check, range};
}

void add_onnx(CLI::App& app, CommandLine& line);
void add_llm(CLI::App& app, CommandLine& line);

}  // namespace weft
