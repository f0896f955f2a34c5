// What a request is told, and the one list of it: the command, the chat and Python have its names,
// the server and C what stands for them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "weft/llm/generator.h"

namespace weft::llm {

using Texts = std::vector<std::string>;
using TokenBiases = std::vector<std::pair<TokenId, float>>;

/// What an answer has to be: one of them at most.
struct Constraint {
  std::optional<std::string> json_schema = {}, grammar = {}, pattern = {};
  std::optional<Texts> choices = {};
};

/// All of a request but its prompt. What is not said is drawn as llama.cpp draws it.
struct RequestPlan {
  Request request = {
      .sampling = {.temperature = 0.8f, .top_k = 40, .top_p = 0.95f, .min_p = 0.05f}};
  Constraint constraint = {};

  /// With its grammar. Errors: llm.options, for two constraints; llm.grammar, llm.schema.
  Request made() const;
};

/// An option where it is, and what it may be.
struct RequestOption {
  using Place =
      std::variant<bool*, int32_t*, int64_t*, uint64_t*, float*, Texts*, std::vector<TokenId>*,
                   TokenBiases*, std::optional<std::string>*, std::optional<Texts>*>;
  std::string_view name;    ///< as in Python; the command has - for _
  std::string_view served;  ///< the server's name; empty: the route says it
  Place place;
  std::string_view what;
  double least = 0, most = 0;  ///< of numbers

  const char* type_name() const;
  bool several() const;     ///< it takes more than one value
  bool takes_none() const;  ///< it may be without one
  /// As it was typed; tokens may have commas between, biases are TOKEN=BIAS. Error: llm.options.
  void set(std::span<const std::string> texts) const;
  std::string text() const;
};

std::vector<RequestOption> options_of(Sampling& sampling);
std::vector<RequestOption> request_options(RequestPlan& plan);
/// Errors: llm.options for a name that is none, with all that there are.
const RequestOption& find_option(std::span<const RequestOption> options, std::string_view name);
/// Errors: llm.sampling for a number out of its range.
void check_options(std::span<const RequestOption> options);

}  // namespace weft::llm
