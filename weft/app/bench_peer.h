// A Python library that computes the same cases in a process of its own, which is stopped but for
// its turns.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "weft/app/bench_cases.h"
#include "weft/base/resident_memory.h"

namespace weft {

class BenchPeer {
 public:
  /// One of kLibraries, by the program `python`: "torch.cuda" computes on a GPU, "openblas" is what
  /// NumPy multiplies with, "onednn" PyTorch's copy of it called directly, "ort" ONNX Runtime,
  /// "llama.cpp" through llama-cpp-python (language models alone). An Error where either is not
  /// there.
  BenchPeer(std::string library, const std::string& python, int threads);
  ~BenchPeer();
  BenchPeer(const BenchPeer&) = delete;
  BenchPeer& operator=(const BenchPeer&) = delete;

  static constexpr const char* kLibraries = "torch, torch.cuda, onednn, openblas, numpy, ort";
  /// Before each turn of anybody: until whoever ran before is stopped, or sleeps.
  static constexpr std::chrono::milliseconds kPause{5};
  const std::string& library() const { return library_; }
  const std::string& version() const { return version_; }

  /// Whether this library has such a thing; prepare() tells whether it can do it.
  bool has(const BenchCase& which) const;
  /// Makes the operands and computes once. False where the library has no such thing, or cannot:
  /// why() then says what it said.
  bool prepare(const BenchCase& which, int64_t size);
  /// An ONNX model with random inputs of these shapes: loads it and runs it once. Of "ort" alone;
  /// an Error where it cannot.
  struct Loaded {
    double load = 0, first = 0;  ///< seconds: until the model is there, until its first result
  };
  Loaded prepare_model(const std::string& path,
                       const std::map<std::string, std::vector<int64_t>>& shapes);
  /// A GGUF file, with memory for so many texts at once. Of "llama.cpp" alone; an Error where it
  /// cannot.
  Loaded prepare_language_model(const std::string& path, int64_t context, int64_t slots);
  struct Steps {
    double first = 0, later = 0;  ///< seconds: of all prompts, and of a token of each text
  };
  Steps language_steps(int64_t prompt, int64_t slots, int64_t tokens);
  const std::string& why() const { return why_; }
  /// Of its process.
  ResidentMemory memory() const { return resident_memory(pid_); }
  /// Of one of `runs` in a row, after one that is not counted.
  double seconds(int64_t runs);

 private:
  std::string ask(const std::string& request);
  std::string read_line();
  void start(const std::string& python, int threads);

  std::string library_, version_, why_, unread_;
  pid_t pid_ = -1;
  int socket_ = -1;
};

/// What that process runs: `python -c PROGRAM library threads`; llama.cpp the second one.
extern const char* const kPeerProgram;
extern const char* const kLlamaProgram;

}  // namespace weft
