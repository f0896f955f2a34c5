// What weft-trust's subcommands are given, and the functions that are called.
#pragma once
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "weft/base/format.h"
#include "weft/base/options.h"

namespace weft::trust {

struct Printer {
  std::FILE* out;
  bool json = false;

  template <class... Args>
  void print(fmt::format_string<Args...> pattern, Args&&... args) const {
    write(strformat(pattern, std::forward<Args>(args)...));
  }
  void write(std::string_view text) const { std::fwrite(text.data(), 1, text.size(), out); }
};

struct ReproCommand {
  std::string file;
  std::vector<std::string> options = {};  ///< "WEFT_THREADS=1", over the file's
  std::string show = {};                  ///< "graph", "c++" or "python" instead of running it
  bool reduce = false;
  std::string output = {};  ///< of the reduced program
  double limit = 20;        ///< seconds of a run
};

struct BisectCommand {
  std::string file;
  std::vector<std::string> command;  ///< instead of a file
  std::string output;                ///< of the reduced program
  double limit = 20;
  bool show_output = false;  ///< of the command
};

struct FuzzCommand {
  int64_t seed = 0, count = -1, failures = 10;
  double seconds = 10;
  std::vector<std::string> devices = {};
  std::string folder = "weft-fuzz";  ///< for what fails
};

int run_repro(const Printer& printer, const Options& base, const ReproCommand& asked);
int run_bisect(const Printer& printer, const Options& base, const BisectCommand& asked);
int run_fuzz(const Printer& printer, const Options& base, const FuzzCommand& asked);

}  // namespace weft::trust
