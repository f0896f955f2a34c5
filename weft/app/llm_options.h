// What `weft llm` is given, and its subcommands.
#pragma once

#include "weft/app/commands.h"
#include "weft/llm/request_options.h"
#include "weft/llm/training_options.h"

namespace weft {

namespace llm {
struct LoraFile;
class Model;
struct ModelOptions;
}  // namespace llm

struct LlmServeOptions {
  std::string host = "127.0.0.1";
  int64_t port = 8080;
  std::string api_key;
  std::string api_key_file;  // its first line is the key: command lines are seen by others
  std::string alias;         // what the model is called
  std::vector<std::string> allow_hosts, allow_origins;
  bool no_page = false;
  int64_t max_body_mb = 4;
  int64_t max_connections = 512;
};

struct LlmTrainOptions {
  llm::TrainingPlan plan;
  int64_t every = 250;           // steps between validations, samples and checkpoints
  std::string prompt;            // of samples; empty: new texts
  std::string tensorboard = {};  // a folder for curves as TensorBoard reads them
  int64_t sample_tokens = 48;    // 0: no samples
  bool resume = false, export_only = false;
};

struct LlmOptions {
  // run, chat, serve, bench, inspect, perplexity, quantize, convert, merge, random, train or
  // finetune
  std::string action;
  std::string model;          // a GGUF file, or a folder of Hugging Face's
  std::string prompt;         // of run; -: standard input
  std::string file;           // of run, in its place; of perplexity
  std::string system;         // of chat: what the model is told first
  int64_t tokens = 32;        // of bench: generated for a measurement
  int64_t context = 4096;     // 0: the model's
  int64_t slots = 1;          // requests at once
  std::string cache = "f16";  // of keys and values
  std::string factors = "auto";
  std::string draft;                             // a model that guesses ahead
  bool lookup = false;                           // guesses are what followed in the text so far
  int64_t draft_tokens = 5;                      // guessed at most, where anything guesses
  llm::RequestPlan answer;                       // of run and chat
  int64_t seed = 0;                              // of random
  std::string shape = "llama-1b", type, output;  // of random, quantize, convert and merge
  bool requantise = false;                       // of quantize: also what is packed already
  int64_t repeats = 3;                           // of bench: the median counts
  std::string against, python = "python3";       // of bench: a peer, and the Python that has it
  std::vector<std::string> lora = {};            // adapters
  std::vector<double> lora_scales = {};          // of the first of them; 1 for the others
  LlmServeOptions serve = {};
  LlmTrainOptions train = {};
};

int bench_llm(const Session& session, const LlmOptions& options);
int inspect_llm(const Session& session, const LlmOptions& options);
int serve_llm(const Session& session, const LlmOptions& options);
int train_llm(const Session& session, const LlmOptions& options);
int convert_llm(const Session& session, const LlmOptions& options);
int merge_llm(const Session& session, const LlmOptions& options);
llm::ModelOptions model_options(const LlmOptions& options);
/// A long load is seen on a terminal.
llm::Model load_model(const Session& session, const LlmOptions& options);
std::vector<llm::LoraFile> lora_files(const LlmOptions& options);

}  // namespace weft
