#include "weft/text/gguf_presets.h"

#include <algorithm>
#include <string>

#include "weft/text/pre_tokenizers.h"

namespace weft::text {
namespace {

// The patterns are those of the models' own tokenizer.json files (their "Split" and "Digits"
// steps); the names that of tokenizer.ggml.pre in ggml-org/llama.cpp
// (convert_hf_to_gguf_update.py).
#define WEFT_CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define WEFT_GPT2 R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"
#define WEFT_LLAMA3(digits)                                \
  WEFT_CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|)" digits \
                    R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"
#define WEFT_CASED(ending, tail, digits)                                                    \
  R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)" ending  \
  R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)" ending \
  "|" digits R"(| ?[^\s\p{L}\p{N}]+)" tail R"(|\s*[\r\n]+|\s+(?!\S)|\s+)"

constexpr const char* kGpt2[] = {WEFT_GPT2};
constexpr const char* kLlama3[] = {WEFT_LLAMA3(R"(\p{N}{1,3})")};
constexpr const char* kQwen2[] = {WEFT_LLAMA3(R"(\p{N})")};
constexpr const char* kQwen35[] = {
    WEFT_CONTRACTIONS
    R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr const char* kDigitsThenGpt2[] = {R"(\p{N})", WEFT_GPT2};
constexpr const char* kFalcon[] = {R"([\p{P}\$\+<=>\^~\|`]+)", WEFT_GPT2, "[0-9][0-9][0-9]"};
constexpr const char* kTekken[] = {WEFT_CASED("", R"([\r\n/]*)", R"(\p{N})")};
constexpr const char* kO200k[] = {
    WEFT_CASED(WEFT_CONTRACTIONS "?", R"([\r\n/]*)", R"(\p{N}{1,3})")};
constexpr const char* kDeepseekLlm[] = {
    R"([\r\n])",
    R"(\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+)",
    R"(\s?[!-/:-~！-／：-～‘-‟　-。]+)",
    R"(\s+$)",
    R"([一-龥ࠀ-一가-퟿]+)",
    R"(\p{N}+)"};
constexpr const char* kDeepseekCoder[] = {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)",
                                          R"([一-龥ࠀ-一가-퟿]+)", R"(\p{N})"};
constexpr const char* kDeepseekV3[] = {
    R"(\p{N}{1,3})", R"([一-龥぀-ゟ゠-ヿ]+)",
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr const char* kKimi[] = {
    R"([\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+)" WEFT_CONTRACTIONS
    R"(?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*)" WEFT_CONTRACTIONS
    R"(?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr const char* kBloom[] = {R"( ?[^(\s|.,!?…。，、।۔،)]+)"};

constexpr GgufPreset kPresets[] = {
    {" gpt-2 default phi-2 gpt-j mpt olmo jais trillion granite-docling jina-es jina-de "
     "jina-v2-es jina-v2-de roberta-bpe gigachat modern-bert ",
     kGpt2},
    {" llama3 llama-v3 llama-bpe falcon3 pixtral falcon-h1 lfm2 midm-2.0 dbrx smaug-bpe "
     "llama4-dbrx ",
     kLlama3, true},
    {" chatglm-bpe glm4 ", kLlama3},
    {" qwen2 stablelm2 hunyuan megrez deepseek-r1-qwen ", kQwen2},
    {" qwen35 ", kQwen35},
    {" starcoder refact command-r smollm codeshell exaone minerva-7b ", kDigitsThenGpt2},
    {" falcon ", kFalcon},
    {" tekken ", kTekken, true},
    {" gpt-4o llama4 gpt-oss kanana2 ", kO200k},
    {" deepseek-llm ", kDeepseekLlm},
    {" deepseek-coder ", kDeepseekCoder},
    {" deepseek-v3 hunyuan-dense joyai-llm ", kDeepseekV3},
    {" kimi-k2 ", kKimi},
    {" bloom poro-chat gpt3-finnish viking ", kBloom},
};
#undef WEFT_CONTRACTIONS
#undef WEFT_GPT2
#undef WEFT_LLAMA3
#undef WEFT_CASED

}  // namespace

const GgufPreset* find_gguf_preset(std::string_view name) {
  if (name.find(' ') != std::string_view::npos) return nullptr;
  const std::string word = ' ' + std::string(name) + ' ';
  for (const GgufPreset& preset : kPresets)
    if (preset.names.find(word) != std::string_view::npos) return &preset;
  return nullptr;
}

std::string_view gguf_preset_of(std::span<const std::string> patterns, bool ignore_merges) {
  // Of the models that are most common; others of the same patterns have the same tokens.
  constexpr std::string_view kUsual[] = {"gpt-2", "llama-bpe", "qwen2", "gpt-4o"};
  std::string_view found;
  for (const GgufPreset& preset : kPresets) {
    if (!std::ranges::equal(preset.patterns, patterns)) continue;
    if (!found.empty() && preset.ignore_merges != ignore_merges) continue;
    found = preset.names.substr(1, preset.names.find(' ', 1) - 1);
    for (const std::string_view usual : kUsual)
      if (preset.names.find(' ' + std::string(usual) + ' ') != std::string_view::npos)
        found = usual;
    if (preset.ignore_merges == ignore_merges) break;
  }
  return found;
}

}  // namespace weft::text
