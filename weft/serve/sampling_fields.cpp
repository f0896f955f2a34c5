#include "weft/serve/sampling_fields.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "weft/base/format.h"

namespace weft::serve {

namespace {

using llm::Sampling;
using llm::TokenId;

constexpr int64_t kMostTokens = int64_t{1} << 31;
constexpr int64_t kMostSeed = int64_t{1} << 53;  // what a JSON number holds
constexpr size_t kMostStops = 16, kLongestStop = 256, kMostBiases = 1024, kMostStopTokens = 256;

struct NumberRow {
  std::string_view name;
  float Sampling::* member;
  double least, most;
};

constexpr NumberRow kNumbers[] = {
    {"temperature", &Sampling::temperature, 0, 2},
    {"top_p", &Sampling::top_p, 0, 1},
    {"min_p", &Sampling::min_p, 0, 1},
    {"typical_p", &Sampling::typical_p, 0, 1},
    {"repetition_penalty", &Sampling::repetition_penalty, 0.01, 100},
    {"presence_penalty", &Sampling::presence_penalty, -2, 2},
    {"frequency_penalty", &Sampling::frequency_penalty, -2, 2},
    {"mirostat_eta", &Sampling::mirostat_eta, 0, 1},
};

constexpr std::string_view kCommon[] = {
    "model", "stream", "stream_options", "n", "stop", "seed", "max_tokens", "ignore_eos",
    "temperature", "top_p", "top_k", "min_p", "typical_p", "repetition_penalty", "presence_penalty",
    "frequency_penalty", "logit_bias", "logprobs", "response_format", "stop_token_ids",
    "min_tokens",
    // llama.cpp's.
    "repeat_penalty", "repeat_last_n", "mirostat", "mirostat_tau", "mirostat_eta", "cache_prompt",
    "grammar", "json_schema",
    // vLLM's.
    "guided_json", "guided_regex", "guided_choice", "guided_grammar", "structured_outputs",
    // About accounts and services: they change nothing here.
    "user", "store", "metadata", "service_tier", "safety_identifier", "prompt_cache_key",
    "prompt_cache_retention", "verbosity", "reasoning_effort"};

void read_stop(const Fields& fields, std::vector<std::string>& stop) {
  const JsonTree::Value value = fields["stop"];
  if (value.is_null()) return;
  if (value.is_text())
    stop.emplace_back(value.text());
  else
    for (const JsonTree::Value one : fields.array("stop", kMostStops)) {
      if (!one.is_text()) fields.refuse("stop", "it has to be a string or an array of strings");
      stop.emplace_back(one.text());
    }
  for (const std::string& one : stop)
    if (one.empty() || one.size() > kLongestStop)
      refuse_parameter("stop", strformat("a text of stop has {} bytes; it has to have 1 to {}",
                                         one.size(), kLongestStop));
}

void read_logit_bias(const Fields& fields, Sampling& sampling) {
  const JsonTree::Value biases = fields.object("logit_bias");
  if (biases.is_null()) return;
  if (biases.size() > kMostBiases)
    fields.refuse("logit_bias", strformat("it has to have at most {} members", kMostBiases));
  for (const JsonTree::Value bias : biases) {
    const std::string_view key = bias.key();
    TokenId id = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || end != key.data() + key.size() || id < 0)
      refuse_parameter("logit_bias", strformat("logit_bias has the key '{}'; keys are token ids",
                                               valid_start(key)));
    const bool number = bias.kind() == JsonTree::Kind::Number;
    if (!number || !(std::abs(bias.number()) <= 100))
      refuse_parameter("logit_bias", strformat("logit_bias[{}] is {}; it has to be a number from "
                                               "-100 to 100",
                                               id, shown(bias)));
    sampling.logit_bias.emplace_back(id, static_cast<float>(bias.number()));
  }
}

void read_stream(const Fields& fields, CompletionRequest& request) {
  request.stream = fields.flag("stream", false);
  const JsonTree::Value options = fields.object("stream_options");
  if (options.is_null()) return;
  if (!request.stream)
    refuse_parameter("stream_options", "stream_options is given and stream is not true");
  constexpr std::string_view kKnown[] = {"include_usage", "include_obfuscation"};
  const Fields inner(options, "stream_options.");
  inner.only(kKnown);
  request.include_usage = inner.flag("include_usage", false);
}

// llama.cpp's names.
void read_penalties(const Fields& fields, Sampling& sampling) {
  const float otherwise = sampling.repetition_penalty;
  const auto given = static_cast<float>(
      fields.number("repeat_penalty", static_cast<double>(otherwise), 0.01, 100));
  if (fields.has("repetition_penalty") && given != otherwise)
    fields.refuse("repeat_penalty", strformat("repetition_penalty is {}", otherwise));
  sampling.repetition_penalty = given;
  sampling.penalised_tokens = static_cast<int32_t>(
      fields.integer("repeat_last_n", sampling.penalised_tokens, -1, kMostTokens - 1));
}

// llama.cpp's clients send a tau also where they want no Mirostat.
void read_mirostat(const Fields& fields, Sampling& sampling) {
  const int64_t version = fields.integer("mirostat", 0, 0, 2);
  const double tau = fields.number("mirostat_tau", 5, 0.01, 100);
  if (version == 1) fields.refuse("mirostat", "it has to be 0 (none) or 2, the second version");
  if (version == 2) sampling.mirostat_tau = static_cast<float>(tau);
}

void read_ends(const Fields& fields, llm::Request& request) {
  request.ignore_end = fields.flag("ignore_eos", false);
  request.min_tokens = fields.integer("min_tokens", 0, 0, kMostTokens);
  request.stop_tokens =
      read_tokens(fields.array("stop_token_ids", kMostStopTokens), fields.path("stop_token_ids"));
  read_stop(fields, request.stop);
}

}  // namespace

std::string answer_schema(const Fields& format, bool nested) {
  const std::string type = format.text("type");
  if (type == "text") return "";
  if (type == "json_object" && !format.object("schema").is_null())  // llama.cpp's
    return json_text(format["schema"]);
  if (type == "json_object") return R"({"type": "object"})";
  if (type != "json_schema") format.refuse("type", "it has to be text, json_object or json_schema");
  const Fields schema =
      nested ? Fields(format["json_schema"], format.path("json_schema") + ".") : format;
  if (schema.object("schema").is_null()) schema.refuse("schema", "it has to be a JSON schema");
  return json_text(schema["schema"]);
}

std::span<const std::string_view> common_parameters() { return kCommon; }

void read_common(const Fields& fields, const ServeLimits& limits, CompletionRequest& request) {
  Sampling& sampling = request.request.sampling;
  request.model = fields.text("model");
  request.n = fields.integer("n", 1, 1, static_cast<int64_t>(limits.choices));
  for (const NumberRow& row : kNumbers)
    sampling.*row.member = static_cast<float>(
        fields.number(row.name, static_cast<double>(sampling.*row.member), row.least, row.most));
  // vLLM's -1 is all of them, too.
  sampling.top_k =
      std::max(static_cast<int32_t>(fields.integer("top_k", 0, -1, kMostTokens - 1)), 0);
  request.has_seed = fields.has("seed");
  sampling.seed = static_cast<uint64_t>(fields.integer("seed", 0, -kMostSeed, kMostSeed));
  // None: of a text that is only measured.
  const int64_t least = request.api == Api::Text ? 0 : 1;
  request.request.max_tokens = fields.integer("max_tokens", -1, least, kMostTokens);
  request.request.reuse_prefix = fields.flag("cache_prompt", true);
  read_penalties(fields, sampling);
  read_mirostat(fields, sampling);
  read_ends(fields, request.request);
  read_logit_bias(fields, sampling);
  read_stream(fields, request);
  read_constraint(fields, request);
}

std::vector<TokenId> read_tokens(JsonTree::Value array, const std::string& name) {
  std::vector<TokenId> tokens;
  for (const JsonTree::Value value : array) {
    const bool number = value.kind() == JsonTree::Kind::Number;
    const double x = number ? value.number() : -1;
    if (x != std::floor(x) || x < 0 || x > INT32_MAX)
      refuse_parameter(name, strformat("{} has {} among its tokens; a token is an integer from 0 "
                                       "to {}",
                                       name, shown(value), INT32_MAX));
    tokens.push_back(static_cast<TokenId>(x));
  }
  return tokens;
}

std::vector<Prompt> read_prompts(const Fields& fields, std::string_view name, size_t most) {
  const JsonTree::Value value = fields[name];
  if (value.is_text()) return {{std::string(value.text()), {}, true}};
  constexpr std::string_view kWanted =
      "it has to be a string, an array of strings, an array of tokens or an array of those";
  if (!value.is_array() || value.size() == 0) fields.refuse(name, kWanted);
  const std::string path = fields.path(name);
  if ((*value.begin()).kind() == JsonTree::Kind::Number)
    return {{"", read_tokens(value, path), false}};
  std::vector<Prompt> prompts;
  for (const JsonTree::Value one : fields.array(name, most)) {
    if (one.is_text())
      prompts.push_back({std::string(one.text()), {}, true});
    else if (one.is_array())
      prompts.push_back({"", read_tokens(one, path), false});
    else
      fields.refuse(name, kWanted);
  }
  return prompts;
}

}  // namespace weft::serve
