// What the command line can say, and how its parts are described to CLI11: app.cpp and a file per
// group of commands.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

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

void add_onnx(CLI::App& app, CommandLine& line);
void add_llm(CLI::App& app, CommandLine& line);

}  // namespace weft
