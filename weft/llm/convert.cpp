#include "weft/llm/convert.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/io/host_array.h"
#include "weft/llm/config_write.h"
#include "weft/llm/model_file.h"
#include "weft/llm/network.h"
#include "weft/llm/rope_order.h"
#include "weft/text/gguf_tokenizer.h"

namespace weft::llm {

namespace {

bool has_one_of(std::string_view name, std::initializer_list<std::string_view> parts) {
  return std::ranges::any_of(
      parts, [&](std::string_view part) { return name.find(part) != std::string_view::npos; });
}

/// The name that llama.cpp has for it.
std::string name_in_gguf(const std::string& name, const Config& c) {
  const size_t at = name.find("ffn_norm.");
  const bool other = c.family == "gpt-oss" || c.encoder;
  if (!other || at == std::string::npos) return name;
  return std::string(name).replace(at, 8, c.encoder ? "attn_output_norm" : "post_attention_norm");
}

/// Of floats that GGUF files have no format for: bf16 is written, of what they are in f32, to which
/// adapters may be added before.
bool is_8_bits(const Weight& weight) { return bits(weight.stored.dtype()) == 8; }

/// What lies in a GGUF file under this name.
Tensor tensor_in_gguf(const std::string& name, const Weight& weight, const Config& c) {
  Tensor x = is_8_bits(weight) ? weight.value() : weight.stored;
  if (name.find("ffn_gate_inp_shexp") != std::string::npos) x = x.reshape({x.dim(-1)});
  // Those of RoBERTa's before the first have no place in files of berts.
  if (name == "position_embd.weight" && c.first_position > 0)
    x = x.index({Slice(c.first_position, std::nullopt)});
  if (has_pair_order(c.family))
    if (const int64_t heads = heads_of(name, c)) x = in_pair_order(x, heads);
  return stays_f32(name, static_cast<size_t>(x.ndim())) ? x.cast(DType::F32) : x;
}

Codec plain_codec(DType dtype, std::string_view name) {
  for (const Codec codec : {Codec::F32, Codec::F16, Codec::BF16})
    if (row(codec).dtype == dtype) return codec;
  fail("llm.convert", "'{}' is {}, which GGUF files of models do not have", name,
       weft::name(dtype));
}

/// The number that llama.h has for files mostly of one format (enum llama_ftype).
uint32_t file_type(const GgufModel& model) {
  std::map<Codec, int64_t> numbers;
  for (const GgufTensor& t : model.content.tensors) {
    int64_t count = 1;
    for (const int64_t size : t.shape) count *= size;
    numbers[t.codec] += count;
  }
  const auto most =
      std::ranges::max_element(numbers, {}, [](const auto& entry) { return entry.second; });
  switch (most->first) {
    case Codec::F32: return 0;
    case Codec::F16: return 1;
    case Codec::MXFP4: return 38;
    default: return 32;  // bf16
  }
}

std::string folder_name(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path.substr(path.rfind('/') + 1);
}

void add(GgufModel& model, const std::string& name, const Tensor& x, Codec codec,
         const std::vector<int64_t>& shape) {
  model.content.tensors.push_back({name, codec, shape, {}, nullptr});
  model.tensors.push_back({name, codec, Dims(shape), x});
}

void add(GgufModel& model, const std::string& name, const Tensor& x) {
  add(model, name, x, plain_codec(x.dtype(), name), x.shape());
}

std::vector<int64_t> sizes_of(const Dims& dims) {
  std::vector<int64_t> sizes;
  for (const Dim& d : dims) sizes.push_back(d.value());
  return sizes;
}

}  // namespace

bool stays_f32(std::string_view name, size_t axes) {
  return axes < 2 || !name.ends_with("weight") ||
         has_one_of(name, {"_norm.", "ffn_gate_inp.", "position_embd.", "token_types.",
                           "rope_freqs.", "attn_sinks."});
}

void check_output(const std::string& from, const std::string& to) {
  std::error_code none;  // one of them is not there
  if (std::filesystem::equivalent(from, to, none))
    fail("llm.convert", "{} is what it would be made of: name another place", quoted_name(to));
}

GgufModel folder_as_gguf(const std::string& folder) {
  const Config config = read_folder_config(folder);
  if (gguf_architecture(config).empty())
    fail("llm.convert", "{} is a {}, which GGUF files have no name for", quoted_name(folder),
         config.family);
  const Weights weights = folder_weights(folder, config, true);
  const Network complete(config, weights, 1);  // else it says what is missing
  GgufModel model;
  GgufDescription described = gguf_description(config);
  model.content.metadata = std::move(described.metadata);
  auto& metadata = model.content.metadata;
  metadata.emplace_back("general.type", GgufValue::of("model"));
  metadata.emplace_back("general.name",
                        GgufValue::of(config.name.empty() ? folder_name(folder) : config.name));
  for (auto& entry : text::gguf_tokenizer(folder, {config.vocabulary, config.end_tokens}))
    metadata.push_back(std::move(entry));
  for (const auto& [given, weight] : weights.all()) {
    const std::string name = name_in_gguf(given, config);
    if (is_plain(weight.codec)) {
      const Tensor x = tensor_in_gguf(given, weight, config);
      add(model, name, x);
      if (is_8_bits(weight) && !stays_f32(name, static_cast<size_t>(x.ndim())))
        model.content.tensors.back().codec = Codec::BF16;
    } else {
      add(model, name, weight.stored.reshape({-1}), weight.codec, sizes_of(weight.shape));
    }
  }
  for (const GgufTensor& t : described.tensors) {
    const std::span numbers(reinterpret_cast<const float*>(t.bytes.data()), t.bytes.size() / 4);
    add(model, t.name, Tensor::from(numbers, Dims(t.shape)));
    model.content.tensors.back() = t;  // which read_config() reads
  }
  metadata.emplace_back("general.file_type", GgufValue::of_number(file_type(model)));
  return model;
}

GgufModel model_as_gguf(const std::string& path) {
  if (is_gguf(checked_model(path))) return load_gguf(path);
  return folder_as_gguf(path);
}

}  // namespace weft::llm
