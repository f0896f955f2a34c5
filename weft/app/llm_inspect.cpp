#include <map>

#include "weft/app/app.h"
#include "weft/app/llm_options.h"
#include "weft/base/json_writer.h"
#include "weft/io/host_array.h"
#include "weft/llm/model_file.h"

namespace weft {

namespace {

struct OfType {
  int64_t tensors = 0, bytes = 0;
};

std::map<std::string, OfType> types_of(const llm::Weights& weights, double& parameters) {
  std::map<std::string, OfType> all;
  for (const auto& [name, weight] : weights.all()) {
    OfType& type = all[weight.type];
    ++type.tensors;
    type.bytes += weight.bytes;
    double count = 1;
    for (const Dim& d : weight.shape) count *= static_cast<double>(d.value());
    parameters += count;
  }
  return all;
}

}  // namespace

int inspect_llm(const Session& session, const LlmOptions& options) {
  const llm::ModelFile file = llm::read_model(options.model);
  const llm::Config& c = file.config;
  double parameters = 0;
  const auto types = types_of(file.weights, parameters);
  const int64_t per_token = c.layers * c.kv_heads * (c.head_dim + c.value_dim) * 2;
  const std::vector<std::pair<const char*, int64_t>> numbers = {
      {"layers", c.layers},
      {"width", c.dim},
      {"heads", c.heads},
      {"key heads", c.kv_heads},
      {"head size", c.head_dim},
      {"feed-forward width", c.ffn},
      {"vocabulary", c.vocabulary},
      {"context", c.context},
      {"window", c.window},
      {"experts", c.experts.count},
      {"experts used", c.experts.used},
      {"weights, bytes", file.weights.bytes()},
      {"cache of a token, bytes in f16", per_token}};
  if (!session.json) {
    session.print("{} {}\n", session.bold(c.family), c.name.empty() ? "" : quoted_name(c.name));
    session.print("  {:<32} {:.1f} M\n", "parameters", parameters * 1e-6);
    for (const auto& [what, number] : numbers)
      if (number != 0) session.print("  {:<32} {}\n", what, number);
    for (const auto& [type, of] : types)
      session.print("  {:<32} {} tensors, {} bytes\n", type, of.tensors, of.bytes);
    return kExitOk;
  }
  JsonWriter json;
  json.begin_object().field("family", c.family).field("name", c.name);
  json.field("parameters", parameters);
  for (const auto& [what, number] : numbers) json.field(what, number);
  json.key("types").begin_object();
  for (const auto& [type, of] : types) json.field(type, of.bytes);
  session.print("{}\n", json.end_object().end_object().text());
  return kExitOk;
}

}  // namespace weft
