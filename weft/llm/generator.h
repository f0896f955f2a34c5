// Generator: prompts in, tokens out, many requests at once. The command, the terminal's chat and
// the server stand on it; what computes the tokens stands behind it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/text/tokenizer.h"

namespace weft::llm {

class Grammar;
using text::TokenId;
using RequestId = uint64_t;

/// How the next token is drawn. Zeros and ones are neutral: what stands here by default draws from
/// the model's own distribution; temperature 0 takes the likeliest token.
struct Sampling {
  float temperature = 1;
  int32_t top_k = 0;              ///< of so many likeliest tokens; 0: all
  float top_p = 1;                ///< of the likeliest whose probabilities sum to this (nucleus)
  float min_p = 0;                ///< of those not below this share of the likeliest one's
  float typical_p = 1;            ///< locally typical sampling (Meister et al. 2023)
  float repetition_penalty = 1;   ///< CTRL's: divides what is above 0, multiplies what is below
  float presence_penalty = 0;     ///< taken from tokens that were generated, once
  float frequency_penalty = 0;    ///< and once for each time
  int32_t penalised_tokens = 64;  ///< looked back for the penalties; -1: all
  std::vector<std::pair<TokenId, float>> logit_bias = {};
  /// Above 0: Mirostat 2 (Basu et al. 2021) at this surprise in bits, in place of top_k to min_p.
  float mirostat_tau = 0;
  float mirostat_eta = 0.1f;  ///< its learning rate
  uint64_t seed = 0;
  int32_t logprobs = -1;  ///< alternatives reported with every token; -1: no probabilities
};

struct Request {
  std::vector<TokenId> prompt = {};       ///< not empty
  int64_t max_tokens = -1;                ///< -1: as far as the context reaches
  std::vector<std::string> stop = {};     ///< texts that end it; not part of the answer
  std::vector<TokenId> stop_tokens = {};  ///< that end it, too
  bool ignore_end = false;                ///< goes on after the model's end-of-text tokens
  int64_t min_tokens = 0;                 ///< before that none is drawn that would end it
  /// Alternatives reported with every token of the prompt; -1: no probabilities of them.
  int32_t prompt_logprobs = -1;
  bool continues = true;     ///< the prompt's text, not a text of its own: words keep their space
  bool reuse_prefix = true;  ///< begins behind what a slot still holds of the prompt
  Sampling sampling = {};
  std::shared_ptr<const Grammar> grammar = nullptr;  ///< that the answer follows (grammar.h)
};

struct TokenProbability {
  TokenId id = 0;
  float logprob = 0;  ///< natural logarithm, of the model's distribution before sampling options
};

struct GeneratedToken {
  TokenProbability token;
  std::vector<TokenProbability> alternatives;  ///< the likeliest first
};

enum class Finish : uint8_t { None, Stop, Length, Cancelled, Failed };

/// "" while it runs, "stop", "length", "cancelled", "failed".
constexpr std::string_view finish_name(Finish finish) {
  constexpr std::string_view kNames[] = {"", "stop", "length", "cancelled", "failed"};
  return kNames[static_cast<size_t>(finish)];
}

/// What one request has become longer by.
struct Progress {
  RequestId request = 0;
  std::vector<GeneratedToken> tokens;
  std::string text;  ///< whole characters; what may be the beginning of a stop text is held back
  Finish finish = Finish::None;
  std::string error;  ///< where it failed
  /// With the first token: those of the prompt, where their probabilities are wanted. The first of
  /// them follows nothing: its own is NaN.
  std::vector<GeneratedToken> prompt = {};
  int64_t reused_tokens = 0;  ///< with the first token: of the prompt, that were not computed again
};

/// Belongs to one thread; nothing happens but in step().
///   const RequestId id = generator.submit({.prompt = tokenizer.encode("Once"), .max_tokens = 20});
///   while (!generator.idle())
///     for (const Progress& p : generator.step()) std::cout << p.text;
class Generator {
 public:
  virtual ~Generator() = default;
  /// Queues it. Errors: llm.prompt (empty, or an id that is no token), llm.context (longer than the
  /// context), llm.queue (full), llm.sampling.
  virtual RequestId submit(Request request) = 0;
  /// Frees its place before the next step, which reports Finish::Cancelled. One that is not there:
  /// no error.
  virtual void cancel(RequestId request) = 0;
  /// One step of all that run: a part of a prompt, or a token of each. Returns what changed.
  virtual std::vector<Progress> step() = 0;
  virtual bool idle() const = 0;  ///< nothing queued, nothing running
  /// A piece, of some milliseconds, of what makes later answers faster and no answer waits for.
  /// False: nothing of it is left.
  virtual bool work_ahead() { return false; }

  /// A text's embedding: unit length, of the hidden states after the last layer, pooled as the
  /// model says or by their mean. Errors: those of submit().
  virtual std::vector<float> embedding(std::span<const TokenId> tokens) = 0;

  virtual const text::Tokenizer& tokenizer() const = 0;
  virtual std::string model_name() const = 0;
  virtual int64_t context_length() const = 0;
  /// Of the numbers for /metrics and the terminal: running, queued, cached_tokens, ...
  virtual std::vector<std::pair<std::string, double>> counters() const = 0;
};

}  // namespace weft::llm
