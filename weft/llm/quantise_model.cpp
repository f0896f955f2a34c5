#include "weft/llm/quantise_model.h"

#include <algorithm>
#include <charconv>

#include "weft/base/error.h"
#include "weft/io/tensors.h"
#include "weft/llm/convert.h"

namespace weft::llm {
namespace {

/// general.file_type is the number that llama.h has for a mix (enum llama_ftype).
struct Mix {
  std::string_view name;
  Codec codec;
  uint32_t file_type;
};
constexpr Mix kMixes[] = {
    {"F32", Codec::F32, 0},        {"F16", Codec::F16, 1},        {"BF16", Codec::BF16, 32},
    {"Q4_0", Codec::Q4_0, 2},      {"Q4_1", Codec::Q4_1, 3},      {"Q5_0", Codec::Q5_0, 8},
    {"Q5_1", Codec::Q5_1, 9},      {"Q8_0", Codec::Q8_0, 7},      {"Q2_K", Codec::Q2_K, 10},
    {"Q2_K_S", Codec::Q2_K, 21},   {"Q3_K_S", Codec::Q3_K, 11},   {"Q3_K_M", Codec::Q3_K, 12},
    {"Q3_K_L", Codec::Q3_K, 13},   {"Q4_K_S", Codec::Q4_K, 14},   {"Q4_K_M", Codec::Q4_K, 15},
    {"Q5_K_S", Codec::Q5_K, 16},   {"Q5_K_M", Codec::Q5_K, 17},   {"Q6_K", Codec::Q6_K, 18},
    {"IQ4_NL", Codec::IQ4_NL, 25}, {"IQ4_XS", Codec::IQ4_XS, 30}, {"TQ1_0", Codec::TQ1_0, 36},
    {"TQ2_0", Codec::TQ2_0, 37},
};

enum class Where : uint8_t {
  Everywhere,
  Grouped,  // where four heads or more share keys
  Spread,   // in the first and the last eighth of the layers, and every third between
  FirstEighth,
  FirstSixteenth,
  FirstTwo,
  FirstFour,
  EightExperts,  // in models of eight experts
};

/// Which matrices of a layer get another format; the first row that fits. Falcon's own are left
/// out.
struct Exception {
  std::string_view mix, part;  // mix "": all that are packed
  Where where;
  Codec codec;
};
constexpr Exception kExceptions[] = {
    {"", "attn_v", Where::EightExperts, Codec::Q8_0},
    {"", "attn_k", Where::EightExperts, Codec::Q8_0},
    {"Q2_K", "attn_output", Where::EightExperts, Codec::Q5_K},
    {"Q3_K_S", "attn_output", Where::EightExperts, Codec::Q5_K},
    {"Q3_K_M", "attn_output", Where::EightExperts, Codec::Q5_K},
    {"Q4_K_S", "attn_output", Where::EightExperts, Codec::Q5_K},
    {"Q4_K_M", "attn_output", Where::EightExperts, Codec::Q5_K},
    {"IQ4_NL", "attn_output", Where::EightExperts, Codec::Q5_K},
    {"IQ4_XS", "attn_output", Where::EightExperts, Codec::Q5_K},
    {"Q2_K", "attn_v", Where::Grouped, Codec::Q4_K},
    {"Q2_K", "attn_v", Where::Everywhere, Codec::Q3_K},
    {"Q2_K", "ffn_down", Where::Everywhere, Codec::Q3_K},
    {"Q2_K", "attn_output", Where::Everywhere, Codec::Q3_K},
    {"Q2_K_S", "attn_v", Where::Grouped, Codec::Q4_K},
    {"Q2_K_S", "ffn_down", Where::FirstEighth, Codec::Q4_K},
    {"Q3_K_M", "attn_v", Where::FirstTwo, Codec::Q5_K},
    {"Q3_K_M", "attn_v", Where::Everywhere, Codec::Q4_K},
    {"Q3_K_M", "ffn_down", Where::FirstSixteenth, Codec::Q5_K},
    {"Q3_K_M", "ffn_down", Where::Everywhere, Codec::Q4_K},
    {"Q3_K_M", "attn_output", Where::Everywhere, Codec::Q4_K},
    {"Q3_K_M", "attn_qkv", Where::Everywhere, Codec::Q4_K},
    {"Q3_K_L", "attn_v", Where::Everywhere, Codec::Q5_K},
    {"Q3_K_L", "ffn_down", Where::Everywhere, Codec::Q5_K},
    {"Q3_K_L", "attn_output", Where::Everywhere, Codec::Q5_K},
    {"Q3_K_L", "attn_qkv", Where::Everywhere, Codec::Q4_K},
    {"Q4_K_S", "attn_v", Where::FirstFour, Codec::Q5_K},
    {"Q4_K_S", "ffn_down", Where::FirstEighth, Codec::Q5_K},
    {"Q4_K_M", "attn_v", Where::Spread, Codec::Q6_K},
    {"Q4_K_M", "ffn_down", Where::Spread, Codec::Q6_K},
    {"Q4_K_M", "attn_qkv", Where::Everywhere, Codec::Q5_K},
    {"Q5_K_M", "attn_v", Where::Spread, Codec::Q6_K},
    {"Q5_K_M", "ffn_down", Where::Spread, Codec::Q6_K},
    {"Q5_K_M", "attn_qkv", Where::Everywhere, Codec::Q6_K},
    {"IQ4_NL", "attn_v", Where::Grouped, Codec::Q5_K},
    {"IQ4_NL", "ffn_down", Where::FirstEighth, Codec::Q5_K},
    {"IQ4_XS", "attn_v", Where::Grouped, Codec::Q5_K},
    {"IQ4_XS", "ffn_down", Where::FirstEighth, Codec::Q5_K},
};

const Mix& find_mix(std::string_view name) {
  std::string wanted(name);
  if (name == "Q3_K" || name == "Q4_K" || name == "Q5_K") wanted += "_M";
  const Mix* at = std::ranges::find(kMixes, wanted, &Mix::name);
  if (at == std::end(kMixes))
    fail("llm.quantise", "there is no mix of formats {}: {}", quoted_name(name),
         quantisation_mixes());
  return *at;
}

/// Where a tensor's name puts it: "blk.12.attn_v.weight" is attn_v of layer 12.
struct Place {
  std::string_view part;
  int64_t layer = -1;
};
Place place_of(std::string_view name) {
  Place place;
  constexpr std::string_view kLayer = "blk.", kWeight = ".weight";
  if (name.ends_with(kWeight)) name.remove_suffix(kWeight.size());
  if (name.starts_with(kLayer)) {
    const char* end = name.data() + name.size();
    const auto [dot, error] = std::from_chars(name.data() + kLayer.size(), end, place.layer);
    if (error == std::errc() && dot < end) name = {dot + 1, end};
  }
  place.part = name.starts_with("ffn_down") ? "ffn_down" : name;  // of experts, too
  return place;
}

class Chooser {
 public:
  Chooser(const GgufModel& model, const Mix& mix) : content_(model.content), mix_(mix) {
    layers_ = size("block_count", 0);
    experts_ = size("expert_count", 0);
    const int64_t heads = size("attention.head_count", 1);
    group_ = heads / std::max<int64_t>(size("attention.head_count_kv", heads), 1);
  }

  Codec codec_of(const GgufTensor& tensor) const {
    if (stays_f32(tensor.name, tensor.shape.size())) return tensor.codec;
    return is_plain(mix_.codec) ? mix_.codec : that_fits(packed(tensor.name), tensor.shape.back());
  }

 private:
  int64_t size(const char* key, int64_t otherwise) const {
    const GgufValue* family = content_.value("general.architecture");
    const GgufValue* value =
        family ? content_.value(std::string(family->text()) + "." + key) : nullptr;
    return value ? value->integer().value_or(otherwise) : otherwise;
  }

  Codec packed(std::string_view name) const {
    const bool ternary = mix_.codec == Codec::TQ1_0 || mix_.codec == Codec::TQ2_0;
    const std::string_view output =
        content_.find("output.weight") ? "output.weight" : "token_embd.weight";
    if (name == output) return mix_.codec == Codec::Q8_0 ? Codec::Q8_0 : Codec::Q6_K;
    if (name == "token_embd.weight") return ternary ? Codec::Q4_K : mix_.codec;
    const Place place = place_of(name);
    for (const Exception& e : kExceptions)
      if ((e.mix.empty() || e.mix == mix_.name) && e.part == place.part && is(e.where, place.layer))
        return e.codec;
    return mix_.codec;
  }

  bool is(Where where, int64_t layer) const {
    switch (where) {
      case Where::Everywhere: return true;
      case Where::Grouped: return group_ >= 4;
      case Where::Spread:
        return layer < layers_ / 8 || layer >= 7 * layers_ / 8 || (layer - layers_ / 8) % 3 == 2;
      case Where::FirstEighth: return layer < layers_ / 8;
      case Where::FirstSixteenth: return layer < layers_ / 16;
      case Where::FirstTwo: return layer < 2;
      case Where::FirstFour: return layer < 4;
      case Where::EightExperts: return experts_ == 8;
    }
    return false;
  }

  /// A format whose blocks divide a row.
  static Codec that_fits(Codec codec, int64_t columns) {
    const auto fits = [&] { return columns % row(codec).elements == 0; };
    if (!fits()) {
      codec = codec == Codec::Q4_K   ? Codec::Q5_0
              : codec == Codec::Q5_K ? Codec::Q5_1
              : codec == Codec::Q6_K ? Codec::Q8_0
                                     : Codec::IQ4_NL;
    }
    return fits() ? codec : Codec::F16;
  }

  const GgufContent& content_;
  const Mix& mix_;
  int64_t layers_, experts_, group_;
};

void set(GgufContent& content, std::string_view key, uint32_t number) {
  std::erase_if(content.metadata, [&](const auto& entry) { return entry.first == key; });
  content.metadata.emplace_back(key, GgufValue::of_number(number));
}

}  // namespace

std::string quantisation_mixes() {
  std::string all;
  for (const Mix& mix : kMixes) all += (all.empty() ? "" : ", ") + std::string(mix.name);
  return all;
}

namespace {

/// What the file will be, without the bytes of its tensors.
GgufContent planned(const GgufModel& model, const QuantiseOptions& options) {
  GgufContent out;
  out.alignment = model.content.alignment;
  out.owner = model.content.owner;
  for (const auto& entry : model.content.metadata)
    if (!entry.first.starts_with("split.")) out.metadata.push_back(entry);  // it is one file now
  for (const GgufTensor& t : model.content.tensors)
    out.tensors.push_back({t.name, t.codec, t.shape, {}, nullptr});
  if (options.mix.empty()) return out;
  const Mix& mix = find_mix(options.mix);
  const Chooser chooser(model, mix);
  set(out, "general.file_type", mix.file_type);
  set(out, "general.quantization_version", 2);  // ggml's GGML_QNT_VERSION
  for (GgufTensor& t : out.tensors) {
    const Codec before = t.codec;
    t.codec = chooser.codec_of(t);
    if (t.codec == before || is_plain(before) || options.requantise) continue;
    fail("llm.quantise",
         "'{}' is packed already, as {}: quantise the model it was made of, or allow what is lost "
         "twice (--requantize)",
         t.name, name(before));
  }
  return out;
}

/// Tensor i in its format; one that is in that already is what it was.
GgufTensor made(const GgufModel& model, const GgufContent& plan, size_t i) {
  const GgufTensor& given = model.content.tensors[i];
  const PackedTensor& numbers = model.tensors[i];
  const bool same = given.codec == plan.tensors[i].codec;
  if (same && !given.bytes.empty()) return given;
  if (!same || is_plain(numbers.codec))
    return gguf_tensor(given.name, numbers.value(), plan.tensors[i].codec);
  const HostArray bytes = host_array_of(numbers.packed);
  return {given.name, given.codec, given.shape, bytes.bytes, bytes.owner};
}

uint64_t bytes_of(const GgufContent& content) {
  int64_t all = 0;
  for (const GgufTensor& t : content.tensors) all += packed_bytes(t.codec, t.shape).value_or(0);
  return static_cast<uint64_t>(all);
}

}  // namespace

GgufContent quantised_model(const GgufModel& model, const QuantiseOptions& options,
                            QuantiseProgress progress) {
  GgufContent out = planned(model, options);
  for (size_t i = 0; i < out.tensors.size(); ++i) {
    out.tensors[i] = made(model, out, i);
    progress(i + 1, out.tensors.size(), out.tensors[i].name);
  }
  return out;
}

QuantisedSizes save_quantised_model(const std::string& path, GgufModel model,
                                    const QuantiseOptions& options, QuantiseProgress progress) {
  const GgufContent plan = planned(model, options);
  save_gguf(path, plan, [&](size_t i) {
    GgufTensor tensor = made(model, plan, i);
    model.tensors[i].packed = {};  // what was computed of it is not kept
    progress(i + 1, plan.tensors.size(), tensor.name);
    return tensor;
  });
  return {bytes_of(model.content), bytes_of(plan)};
}

}  // namespace weft::llm
