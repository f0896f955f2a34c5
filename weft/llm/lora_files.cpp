// Adapters in files: GGUF as llama.cpp has them (convert_lora_to_gguf.py), folders as PEFT has them
// (adapter_config.json, adapter_model.safetensors).
#include <cmath>
#include <set>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/json_writer.h"
#include "weft/io/gguf_model.h"
#include "weft/io/json_tree.h"
#include "weft/io/tensors.h"
#include "weft/llm/config_write.h"
#include "weft/llm/lora.h"
#include "weft/llm/rope_order.h"

namespace weft::llm {

namespace {

constexpr std::string_view kDescription = "adapter_config.json",
                           kWeights = "adapter_model.safetensors";

/// B's rows in the order that the model's own have.
Tensor reordered(const std::string& name, const Tensor& b, const Config& c, bool pairs) {
  const int64_t heads = heads_of(name, c);
  if (heads == 0 || pairs == has_pairs(c) || !has_pair_order(c.family)) return b;
  if (b.ndim() != 2 || b.size(0) % (2 * heads) != 0) return b;  // which attach() refuses
  return pairs ? in_half_order(b, heads) : in_pair_order(b, heads);
}

class Collector {
 public:
  Collector(const std::string& path, const Config& config, bool pairs)
      : path_(path), config_(config), pairs_(pairs) {}

  void add(const std::string& name, bool is_b, const Tensor& x) {
    if (x.numel() == 0)
      fail("llm.lora", "{}: a factor of {} is {}, without a number", path_, quoted_name(name),
           x.dims().text());
    LowRank& part = lora_.parts[name];
    (is_b ? part.b : part.a) =
        (is_b ? reordered(name, x, config_, pairs_) : x).contiguous().realize();
  }

  /// `scale` of a rank.
  template <class Scale>
  Lora finish(double alpha, const Scale& scale) {
    lora_.alpha = alpha;
    for (auto& [name, part] : lora_.parts) {
      if (!part.a.defined() || !part.b.defined())
        fail("llm.lora", "{}: {} has one factor of two", path_, quoted_name(name));
      if (part.a.ndim() != 2 || part.b.ndim() != 2 || part.a.size(0) < 1)
        fail("llm.lora", "{}: the factors of {} are {} and {}: matrices with a rank of at least 1",
             path_, quoted_name(name), part.a.dims().text(), part.b.dims().text());
      part.scale = scale(static_cast<double>(part.a.size(0)));
    }
    if (lora_.parts.empty()) fail("llm.lora", "{}: there are no factors in it", path_);
    return std::move(lora_);
  }

 private:
  const std::string& path_;
  const Config& config_;
  bool pairs_;
  Lora lora_;
};

bool cut_end(std::string& name, std::string_view end) {
  if (!name.ends_with(end)) return false;
  name.resize(name.size() - end.size());
  return true;
}

// ---- GGUF

std::string text_value(const GgufContent& content, std::string_view key) {
  const GgufValue* value = content.value(key);
  return value != nullptr && value->type == GgufType::String ? std::string(value->text()) : "";
}

// ---- PEFT

/// What changes more than factors of matrices do.
void check_kind(JsonTree::Value json) {
  const auto refuse = [](std::string_view what) {
    fail("llm.lora", "adapter_config.json has {}, which is not supported", what);
  };
  if (json["peft_type"].text_or("LORA") != "LORA")
    refuse("the peft_type " + quoted_name(json["peft_type"].text()));
  if (json["use_dora"].boolean_or(false)) refuse("use_dora");
  if (json["bias"].text_or("none") != "none") refuse("biases");
  // They begin from factors of the weights, which they take from them.
  const JsonTree::Value start = json["init_lora_weights"];
  for (const std::string_view taken : {"pissa", "olora", "corda", "loftq"})
    if (start.is_text() && start.text().starts_with(taken))
      refuse("init_lora_weights of " + quoted_name(start.text()));
  if (json["lora_alpha"].is_null()) fail("llm.lora", "adapter_config.json does not say lora_alpha");
  for (const char* key : {"modules_to_save", "alpha_pattern"})
    if (json[key].size() != 0) refuse(key);
}

Lora read_peft_lora(const std::string& folder, const Config& config) {
  const std::string path = folder + "/" + std::string(kDescription);
  const MappedFile file(path);
  const JsonTree tree(file.text(), path, "llm.lora");
  const JsonTree::Value json = tree.root();
  check_kind(json);
  const double alpha = json["lora_alpha"].number();
  const bool stabilised = json["use_rslora"].boolean_or(false);
  Collector all(folder, config, false);
  const SafetensorsContent content = read_safetensors(folder + "/" + std::string(kWeights));
  for (const NamedArray& array : content.arrays) {
    std::string name = array.name;
    const bool a = cut_end(name, ".lora_A.weight"), b = !a && cut_end(name, ".lora_B.weight");
    constexpr std::string_view kBase = "base_model.model.";
    if (name.starts_with(kBase)) name = name.substr(kBase.size());
    const TranslatedName to = translated(name + ".weight", false, config.family);
    if ((!a && !b) || to.name.empty() || to.expert >= 0 || to.pairs)
      fail("llm.lora", "{}: {} is no factor of a matrix that this model has", folder,
           quoted_name(array.name));
    all.add(to.name, b, lent_tensor(array.array).cast(DType::F32));
  }
  return all.finish(alpha,
                    [&](double rank) { return alpha / (stabilised ? std::sqrt(rank) : rank); });
}

std::string folder_of(const std::string& path) {
  if (is_directory(path)) return path;
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

int64_t rank_of(const Lora& lora) {
  return lora.parts.empty() ? 1 : lora.parts.begin()->second.a.size(0);
}

void write_peft_config(JsonWriter& json, const Lora& lora, const std::string& family,
                       const std::string& base) {
  std::set<std::string> modules;
  for (const auto& [name, part] : lora.parts) {
    std::string theirs = hugging_face_name(name, family);
    cut_end(theirs, ".weight");
    modules.insert(theirs.substr(theirs.rfind('.') + 1));
  }
  json.begin_object().field("peft_type", "LORA").field("task_type", "CAUSAL_LM");
  json.field("base_model_name_or_path", base).field("r", rank_of(lora));
  json.field("lora_alpha", lora.alpha).field("lora_dropout", 0.0).field("bias", "none");
  json.field("fan_in_fan_out", family == "gpt2").field("inference_mode", true);
  json.key("target_modules").begin_array();
  for (const std::string& module : modules) json.value(module);
  json.end_array().end_object();
}

}  // namespace

Lora gguf_lora(const GgufModel& file, const Config& config, const std::string& path) {
  if (text_value(file.content, "general.type") != "adapter" ||
      text_value(file.content, "adapter.type") != "lora")
    fail("llm.lora", "{}: a GGUF file of the type {}, not a lora adapter", path,
         quoted_name(text_value(file.content, "general.type")));
  const std::string theirs = text_value(file.content, "general.architecture");
  const std::string ours = gguf_architecture(config);
  if (theirs != ours)
    fail("llm.lora", "{}: an adapter of a {}, and the model is a {}", path, quoted_name(theirs),
         quoted_name(ours));
  const GgufValue* given = file.content.value("adapter.lora.alpha");
  const double alpha = given ? given->number().value_or(0) : 0;
  Collector all(path, config, has_pair_order(config.family));
  for (const PackedTensor& tensor : file.tensors) {
    std::string name = tensor.name;
    const bool a = cut_end(name, ".lora_a"), b = !a && cut_end(name, ".lora_b");
    if (!a && !b)
      fail("llm.lora", "{}: the tensor {} is no factor of a matrix", path,
           quoted_name(tensor.name));
    all.add(name, b, tensor.value(DType::F32));
  }
  return all.finish(alpha, [&](double rank) { return alpha != 0 ? alpha / rank : 1; });
}

Lora read_lora(const std::string& path, const Config& config) {
  if (is_gguf(path)) return gguf_lora(load_gguf(path), config, path);
  const std::string folder = folder_of(path);
  if (!file_exists(folder + "/" + std::string(kDescription)))
    fail("llm.lora", "{} is no adapter: a GGUF file, or a folder with {} and {}", quoted_name(path),
         kDescription, kWeights);
  return read_peft_lora(folder, config);
}

void save_lora_gguf(const std::string& path, const Lora& lora, const Config& config) {
  GgufContent content;
  const auto add = [&](const char* key, GgufValue value) {
    content.metadata.emplace_back(key, std::move(value));
  };
  add("general.architecture", GgufValue::of(gguf_architecture(config)));
  add("general.type", GgufValue::of("adapter"));
  add("adapter.type", GgufValue::of("lora"));
  add("adapter.lora.alpha", GgufValue::of_number(static_cast<float>(lora.alpha)));
  for (const auto& [name, part] : lora.parts) {
    Tensor b = part.b;
    if (has_pair_order(config.family) && !has_pairs(config))
      if (const int64_t heads = heads_of(name, config)) b = in_pair_order(b, heads);
    content.tensors.push_back(gguf_tensor(name + ".lora_a", part.a, Codec::F32));
    content.tensors.push_back(gguf_tensor(name + ".lora_b", b, Codec::F32));
  }
  save_gguf(path, content);
}

void save_lora_folder(const std::string& folder, const Lora& lora, const Config& config,
                      const std::string& base) {
  const std::string family = json_family(config);
  std::vector<NamedTensor> tensors;
  for (const auto& [name, part] : lora.parts) {
    std::string theirs = "base_model.model." + hugging_face_name(name, family);
    cut_end(theirs, ".weight");
    Tensor b = part.b;
    if (has_pairs(config))
      if (const int64_t heads = heads_of(name, config)) b = in_half_order(b, heads);
    tensors.push_back({theirs + ".lora_A.weight", part.a});
    tensors.push_back({theirs + ".lora_B.weight", b});
  }
  JsonWriter json;
  write_peft_config(json, lora, family, base);
  make_directories(folder);
  save_tensors(folder + "/" + std::string(kWeights), tensors);
  atomic_write_file(folder + "/" + std::string(kDescription), json.text());
}

}  // namespace weft::llm
