#include "weft/llm/lora.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "weft/base/error.h"
#include "weft/io/host_array.h"

namespace weft::llm {

namespace {

std::string text_of(const LowRank& part) {
  return strformat("{} by {}", part.b.dims().text(), part.a.dims().text());
}

/// That the factors are those of a matrix of this shape.
void check_part(const std::string& name, const LowRank& part, const Dims& shape) {
  const bool fits = shape.size() == 2 && part.a.ndim() == 2 && part.b.ndim() == 2 &&
                    part.b.dims() == Dims({shape[0], part.a.dim(0)}) && part.a.dim(1) == shape[1];
  if (!fits)
    fail("llm.lora", "the adapter's {} is {}, and the model's {}: it is of another model",
         quoted_name(name), text_of(part), shape.text());
}

[[noreturn]] void fail_missing(const std::string& name) {
  fail("llm.lora", "the adapter changes {}, which the model does not have: it is of another model",
       quoted_name(name));
}

/// B A, scaled: what is added to the weight.
Tensor product_of(const LowRank& part, double strength) {
  return part.b.matmul(part.a) * (part.scale * strength);
}

}  // namespace

void attach(Weights& weights, const Lora& lora, double strength) {
  for (const auto& [name, part] : lora.parts) {
    const Weight* weight = weights.find(name);
    if (weight == nullptr) fail_missing(name);
    check_part(name, part, weight->shape);
    weights.add_factors(name, {part.a, part.b, part.scale * strength});
  }
}

GgufModel merged(GgufModel model, const Lora& lora, double strength) {
  for (const auto& [name, part] : lora.parts) {
    const auto at = std::ranges::find(model.tensors, name, &PackedTensor::name);
    if (at == model.tensors.end()) fail_missing(name);
    check_part(name, part, at->shape);
    const Tensor sum = at->value(DType::F32) + product_of(part, strength);
    *at = {name, Codec::F32, at->shape, sum};
    GgufTensor& written = model.content.tensors[static_cast<size_t>(at - model.tensors.begin())];
    written.bytes = {};  // are made of the sum, in the format that it had
    written.owner = nullptr;
  }
  return model;
}

// ---- new ones

namespace {

struct Target {
  std::string_view name;
  std::vector<std::string_view> parts;  // of a layer, in GGUF files
};
const std::vector<Target>& targets() {
  static const std::vector<Target> all = {
      {"q", {"attn_q", "attn_qkv"}}, {"k", {"attn_k", "attn_qkv"}},
      {"v", {"attn_v", "attn_qkv"}}, {"o", {"attn_output"}},
      {"gate", {"ffn_gate"}},        {"up", {"ffn_up"}},
      {"down", {"ffn_down"}},        {"output", {}},
  };
  return all;
}

LowRank new_factors(const Weight& weight, const LoraShape& shape, std::mt19937_64& random) {
  const int64_t out = weight.shape[0].value(), in = weight.shape[1].value();
  const float most = 1 / std::sqrt(static_cast<float>(in));
  std::uniform_real_distribution<float> uniform(-most, most);
  std::vector<float> a(static_cast<size_t>(shape.rank * in));
  for (float& x : a) x = uniform(random);
  return {Tensor::from(a, {shape.rank, in}),
          Tensor::zeros({out, shape.rank}).contiguous().realize(),
          shape.alpha / static_cast<double>(shape.rank)};
}

std::vector<std::string> weights_of(const Target& target, const Config& c) {
  std::vector<std::string> names;
  if (target.name == "output") names.emplace_back("output.weight");
  for (int64_t i = 0; i < c.layers; ++i)
    for (const std::string_view part : target.parts)
      names.push_back(strformat("blk.{}.{}.weight", i, part));
  return names;
}

}  // namespace

Lora new_lora(const Weights& weights, const Config& config, const LoraShape& shape, uint64_t seed) {
  if (shape.rank < 1 || shape.rank > 4096)
    fail("llm.lora", "a rank of {}: from 1 to 4096", shape.rank);
  Lora lora;
  lora.alpha = shape.alpha;
  std::mt19937_64 random(seed);
  for (const std::string& wanted : shape.targets) {
    bool known = false, found = false;
    for (const Target& target : targets()) {
      if (target.name != wanted && (wanted != "all" || target.name == "output")) continue;
      known = true;
      for (const std::string& name : weights_of(target, config)) {
        const Weight* weight = weights.find(name);
        if (weight == nullptr || weight->shape.size() != 2) continue;
        found = true;
        if (!lora.parts.contains(name)) lora.parts[name] = new_factors(*weight, shape, random);
      }
    }
    if (!known)
      fail("llm.lora", "there is no target {}: q, k, v, o, gate, up, down, output, all",
           quoted_name(wanted));
    if (!found)
      fail("llm.lora", "the model has no matrices for the target {}", quoted_name(wanted));
  }
  return lora;
}

}  // namespace weft::llm
