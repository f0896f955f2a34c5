// A GGUF model as a folder of Hugging Face's.
#include <algorithm>
#include <functional>
#include <map>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/json_writer.h"
#include "weft/io/safetensors.h"
#include "weft/io/tensors.h"
#include "weft/llm/config_write.h"
#include "weft/llm/convert.h"
#include "weft/llm/rope_order.h"
#include "weft/llm/weights.h"
#include "weft/text/gguf_tokenizer.h"

namespace weft::llm {

namespace {

/// The format of a tensor's file: where adapters were added, numbers are in f32 until they are
/// written.
Codec codec_in(const GgufModel& model, const std::string& name) {
  const GgufTensor* tensor = model.content.find(name);
  WEFT_CHECK(tensor != nullptr, "a tensor of no file");
  return tensor->codec;
}

/// What a GGUF file's tensors are in model.safetensors, each computed when it is written.
class Translation {
 public:
  Translation(const GgufModel& model, const Config& config, const FolderOptions& options)
      : model_(model), config_(config), options_(options), family_(json_family(config)) {
    for (size_t i = 0; i < model.tensors.size(); ++i) add(model.tensors[i]);
  }

  /// Without bytes.
  std::vector<NamedArray> arrays() const {
    std::vector<NamedArray> all;
    for (const auto& [name, x] : tensors_)
      all.push_back({name, {x.dtype(), x.shape(), {}, nullptr}});
    return all;
  }
  /// Once: it is not kept.
  HostArray made(const NamedArray& array) {
    return host_array_of(tensors_.extract(array.name).mapped());
  }

 private:
  void add(const PackedTensor& t) {
    if (t.name.starts_with("rope_f")) return;  // config.json says it
    if (t.name.find(".attn_k_b.") != std::string::npos) return add_halves(t);
    if (t.name.find(".attn_v_b.") != std::string::npos) return;  // with the keys'
    std::string name = t.name;
    const size_t moved = name.find("post_attention_norm.");
    if (family_ == "gpt-oss" && moved != std::string::npos) name.replace(moved, 19, "ffn_norm");
    if (family_ == "gpt-oss" && name.find("_exps.") != std::string::npos) return add_pairs(t);
    const std::string theirs = hugging_face_name(name, family_);
    if (theirs.empty())
      fail("llm.convert", "the tensor {} has no name in a {} of Hugging Face's",
           quoted_name(t.name), family_);
    const size_t star = theirs.find('*');
    const Tensor x = tensor(t);
    if (star == std::string::npos) return put(theirs, x);
    for (int64_t expert = 0; expert < x.size(0); ++expert)
      put(std::string(theirs).replace(star, 1, std::to_string(expert)), x.index({expert}));
  }

  Tensor tensor(const PackedTensor& t) const {
    Tensor x = t.value();
    if (has_pair_order(family_))
      if (const int64_t heads = heads_of(t.name, config_)) x = in_half_order(x, heads);
    if (t.name.find("ffn_gate_inp_shexp") != std::string::npos) x = x.reshape({1, x.numel()});
    const bool offset = family_.starts_with("gemma") || family_ == "nemotron";
    if (offset && t.name.ends_with("norm.weight")) x = x - 1.0F;
    if (family_ == "gpt2" && t.name.find(".attn_norm") == std::string::npos &&
        t.name.starts_with("blk.") && x.ndim() == 2)
      x = x.T();
    const Codec codec = codec_in(model_, t.name);
    const DType dtype =
        options_.all || !is_plain(codec) ? row(options_.packed).dtype : row(codec).dtype;
    return x.dtype() == dtype ? x : x.cast(dtype);
  }

  /// gpt-oss: (experts, in, outputs of gate and up in turns), and biases.
  void add_pairs(const PackedTensor& t) {
    const bool bias = t.name.ends_with(".bias");
    const Tensor x = bias ? tensor(t) : tensor(t).T();
    const std::string theirs = hugging_face_name(t.name, family_);
    if (t.name.find("ffn_down_exps") != std::string::npos) return put(theirs, x);
    if (t.name.find("ffn_gate_exps") == std::string::npos) return;  // with the gate's
    std::string other = t.name;
    other.replace(other.find("ffn_gate_exps"), 13, "ffn_up_exps");
    const PackedTensor* up = model_.find(other);
    if (up == nullptr)
      fail("llm.convert", "the model has {} and no {}", quoted_name(t.name), quoted_name(other));
    const Tensor y = bias ? tensor(*up) : tensor(*up).T();
    put(theirs, Tensor::stack({x, y}, -1).flatten(-2, -1));
  }

  /// Latent attention's (heads, rank, plain) and (heads, value size, rank), which lie together.
  void add_halves(const PackedTensor& keys) {
    std::string other = keys.name, both = keys.name;
    other.replace(other.find("attn_k_b"), 8, "attn_v_b");
    both.replace(both.find("attn_k_b"), 8, "attn_kv_b");
    const PackedTensor* values = model_.find(other);
    if (values == nullptr || keys.shape.size() != 3)
      fail("llm.convert", "the model has {} and no {}", quoted_name(keys.name), quoted_name(other));
    const Tensor x = Tensor::cat({tensor(keys).T(), tensor(*values)}, 1);
    put(hugging_face_name(both, family_), x.flatten(0, 1));
  }

  void put(const std::string& name, const Tensor& x) { tensors_.insert_or_assign(name, x); }

  const GgufModel& model_;
  const Config& config_;
  const FolderOptions& options_;
  std::string family_;
  std::map<std::string, Tensor> tensors_;
};

/// What config.json calls the dtype of most weights.
std::string dtype_of(const GgufModel& model, const FolderOptions& options) {
  const PackedTensor* table = model.find("token_embd.weight");
  const bool kept = table != nullptr && is_plain(table->codec) && !options.all;
  const Codec codec = kept ? table->codec : options.packed;
  return codec == Codec::F32 ? "float32" : codec == Codec::F16 ? "float16" : "bfloat16";
}

std::optional<int64_t> token(const GgufModel& model, std::string_view role) {
  const GgufValue* id = model.content.value(strformat("tokenizer.ggml.{}_token_id", role));
  return id == nullptr ? std::nullopt : id->integer();
}

/// For sentence-transformers.
void save_pooling(const std::string& folder, const Config& c) {
  make_directories(folder + "/1_Pooling");
  JsonWriter pooling;
  pooling.begin_object().field("word_embedding_dimension", c.dim);
  pooling.field("pooling_mode_cls_token", c.pooling == Pooling::First);
  pooling.field("pooling_mode_mean_tokens", c.pooling == Pooling::Mean);
  pooling.field("pooling_mode_lasttoken", c.pooling == Pooling::Last);
  atomic_write_file(folder + "/1_Pooling/config.json", pooling.end_object().text());
  JsonWriter modules;
  modules.begin_array();
  constexpr const char* kModules[][2] = {
      {"", "Transformer"}, {"1_Pooling", "Pooling"}, {"2_Normalize", "Normalize"}};
  for (size_t i = 0; i < std::size(kModules); ++i) {
    modules.begin_object().field("idx", i).field("name", std::to_string(i));
    modules.field("path", kModules[i][0]);
    modules.field("type", strformat("sentence_transformers.models.{}", kModules[i][1]));
    modules.end_object();
  }
  atomic_write_file(folder + "/modules.json", modules.end_array().text());
}

}  // namespace

FolderOptions folder_options(std::string_view type) {
  if (type.empty()) return {};
  const std::optional<Codec> codec = codec_from_name(type);
  if (!codec || (*codec != Codec::F32 && *codec != Codec::F16 && *codec != Codec::BF16))
    fail("llm.convert", "a folder of Hugging Face's in {}: F32, F16 or BF16", quoted_name(type));
  return {.packed = *codec, .all = true};
}

void save_folder(const std::string& folder, const GgufModel& model, const FolderOptions& options,
                 FunctionRef<void(size_t, size_t, std::string_view)> progress) {
  const Config config = read_config(model.content);
  JsonDetails details;
  details.tied = model.find("output.weight") == nullptr;
  details.attention_bias = model.find("blk.0.attn_q.bias") || model.find("blk.0.attn_output.bias");
  details.ffn_bias = model.find("blk.0.ffn_up.bias") != nullptr;
  details.output_bias = model.find("output.bias") != nullptr;
  details.head_norms = model.find("blk.0.attn_q_norm.weight") != nullptr;
  if (const PackedTensor* types = model.find("token_types.weight"))
    details.token_types = types->shape.size() == 2 ? types->shape[0].value() : 1;
  details.dtype = dtype_of(model, options);
  details.begin_token = token(model, "bos");
  details.padding_token = token(model, "padding");
  const std::string description = json_description(config, details);
  const text::TokenizerFiles tokenizer = text::tokenizer_files(model.content);
  Translation translation(model, config, options);
  make_directories(folder);
  const std::vector<NamedArray> arrays = translation.arrays();
  size_t done = 0;
  save_safetensors(folder + "/model.safetensors", arrays, {{"format", "pt"}},
                   [&](const NamedArray& array) {
                     HostArray made = translation.made(array);
                     progress(++done, arrays.size(), array.name);
                     return made;
                   });
  atomic_write_file(folder + "/tokenizer.json", tokenizer.tokenizer);
  atomic_write_file(folder + "/tokenizer_config.json", tokenizer.config);
  if (config.encoder || config.pooling != Pooling::Mean) save_pooling(folder, config);
  atomic_write_file(folder + "/config.json", description);  // the last: without it is no model
}

}  // namespace weft::llm
