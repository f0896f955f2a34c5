// Tokenizers of GGUF files: the keys tokenizer.ggml.* of
// github.com/ggml-org/ggml/blob/master/docs/gguf.md.
#include <algorithm>
#include <cmath>

#include "weft/base/error.h"
#include "weft/io/host_array.h"
#include "weft/text/build.h"
#include "weft/text/decoders.h"
#include "weft/text/gguf_keys.h"
#include "weft/text/gguf_presets.h"
#include "weft/text/models.h"
#include "weft/text/normalizers.h"
#include "weft/text/pre_tokenizers.h"
#include "weft/text/read_parts.h"

namespace weft::text {

Vocabulary vocabulary_of(const GgufKeys& keys) {
  Vocabulary all;
  int64_t id = 0;
  for (const std::string_view token : keys.tokens()) all.add(token, id++);
  return all;
}

std::vector<double> GgufKeys::scores() const {
  const GgufValue* scores = numbers("scores");
  if (scores == nullptr) refuse("scores", "is missing");
  std::vector<double> by_id;
  for (size_t i = 0; i < tokens().size(); ++i) {
    by_id.push_back(*scores->number(i));
    if (std::isnan(by_id.back())) refuse("scores", "has a score that is no number");
  }
  return by_id;
}

std::vector<double> GgufKeys::finite_scores() const {
  std::vector<double> by_id = scores();
  if (!std::ranges::all_of(by_id, [](double s) { return std::isfinite(s); }))
    refuse("scores", "has a score that is not finite");
  return by_id;
}

std::optional<std::string_view> GgufKeys::whole() const {
  const GgufValue* json = content_.value(kWholeTokenizer);
  if (json == nullptr) return {};
  if (json->type != GgufType::String)
    fail_runtime("tokenizer.gguf", "{}: {} is no text; the file is damaged", what_,
                 kWholeTokenizer);
  return json->text();
}

std::vector<Merge> merges_by_score(const GgufKeys& keys, const Vocabulary& vocabulary) {
  const std::vector<double> by_id = keys.scores();
  std::vector<double> sorted = by_id;
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  std::vector<Merge> merges;
  vocabulary.for_each([&](std::string_view token, TokenId id) {
    if (token.size() > Trie::kLongestKey)
      keys.refuse("tokens", "has a token of more than 1024 bytes");
    if (keys.type_of(static_cast<size_t>(id)) != Normal) return;
    const auto at = std::lower_bound(sorted.begin(), sorted.end(), by_id[static_cast<size_t>(id)],
                                     std::greater<>());
    for (size_t cut = 1; cut < token.size(); ++cut) {
      const auto left = vocabulary.id_of(token.substr(0, cut));
      const auto right = left ? vocabulary.id_of(token.substr(cut)) : std::nullopt;
      if (right) merges.push_back({*left, *right, id, static_cast<uint32_t>(at - sorted.begin())});
    }
  });
  return merges;
}

namespace {

std::vector<AddedToken> added_tokens(const GgufKeys& keys) {
  std::vector<AddedToken> all;
  const auto& tokens = keys.tokens();
  for (size_t i = 0; i < tokens.size(); ++i) {
    const int64_t type = keys.type_of(i);
    if (tokens[i].empty() || (type != Control && type != UserDefined && type != Unknown)) continue;
    AddedToken token;
    token.content = tokens[i];
    token.id = static_cast<TokenId>(i);
    token.special = type != UserDefined;
    all.push_back(std::move(token));
  }
  return all;
}

// ---- models

void read_byte_pairs(const GgufKeys& keys, TokenizerParts& parts) {
  const std::string_view name = keys.text("pre", "default");
  const GgufPreset* preset = find_gguf_preset(name);
  if (preset == nullptr)
    keys.refuse("pre", "names a way to cut words that is not known, " + quoted_name(name));
  std::vector<PreTokenizerPtr> steps;
  for (const char* pattern : preset->patterns)
    steps.push_back(split_pre_tokenizer(Pattern::of_regex(pattern), SplitBehavior::Isolated));
  steps.push_back(byte_level_pre_tokenizer(false, false));
  parts.pre_tokenizer = sequence(std::move(steps));
  Vocabulary vocabulary = vocabulary_of(keys);
  std::vector<Merge> merges;
  for (const std::string_view merge : keys.texts("merges")) {
    const size_t space = merge.find(' ', 1);
    const std::string_view left = merge.substr(0, space);
    const std::string_view right = space == std::string_view::npos ? "" : merge.substr(space + 1);
    const auto a = vocabulary.id_of(left), b = vocabulary.id_of(right);
    const auto both = vocabulary.id_of(std::string(left) + std::string(right));
    if (!a || !b || !both)
      keys.refuse("merges", "has a merge of what is not in the vocabulary, " + quoted_name(merge));
    merges.push_back({*a, *b, *both, static_cast<uint32_t>(merges.size())});
  }
  BpeOptions options;
  options.ignore_merges = preset->ignore_merges;
  parts.model = bpe_model(std::move(vocabulary), merges, options);
  parts.decoder = byte_level_decoder();
}

void read_sentence_pieces(const GgufKeys& keys, TokenizerParts& parts) {
  Vocabulary vocabulary = vocabulary_of(keys);
  const std::vector<Merge> merges = merges_by_score(keys, vocabulary);
  BpeOptions options;
  options.byte_fallback = true;
  options.fuse_unknown = true;
  if (const auto unknown = keys.token("unknown_token_id"))
    options.unknown = keys.tokens()[static_cast<size_t>(*unknown)];
  parts.model = bpe_model(std::move(vocabulary), merges, options);
  const bool prefix = keys.flag("add_space_prefix", true);
  // llama.cpp: a space before every text and behind every special token.
  std::vector<NormalizerPtr> marks;
  if (prefix) marks.push_back(prepend_normalizer(kMark));
  marks.push_back(replace_normalizer(Pattern::of_text(" "), kMark));
  parts.normalizer = sequence(std::move(marks));
  std::vector<DecoderPtr> steps;
  steps.push_back(replace_decoder(Pattern::of_text(kMark), " "));
  steps.push_back(byte_fallback_decoder());
  steps.push_back(fuse_decoder());
  if (prefix) steps.push_back(strip_decoder(' ', 1, 0));
  parts.decoder = sequence(std::move(steps));
}

/// A word's beginning is marked in the file, where BERT marks what is not one.
void read_word_pieces(const GgufKeys& keys, TokenizerParts& parts) {
  Vocabulary vocabulary;
  const auto& tokens = keys.tokens();
  for (size_t i = 0; i < tokens.size(); ++i) {
    std::string token(tokens[i]);
    if (token.starts_with(kMark))
      token = token.substr(kMark.size());
    else if (keys.type_of(i) == Normal && !(token.starts_with('[') && token.ends_with(']')))
      token = "##" + token;
    vocabulary.add(token, static_cast<int64_t>(i));
  }
  const auto unknown = keys.token("unknown_token_id");
  const std::string name(unknown ? tokens[static_cast<size_t>(*unknown)] : "[UNK]");
  parts.normalizer = bert_normalizer({});
  parts.pre_tokenizer = bert_pre_tokenizer();
  parts.model = word_piece_model(std::move(vocabulary), name, "##", 100);
  parts.decoder = word_piece_decoder("##", true);
}

void read_unigram(const GgufKeys& keys, TokenizerParts& parts) {
  parts.model = unigram_model(vocabulary_of(keys), keys.finite_scores(),
                              keys.token("unknown_token_id").value_or(-1), false);
  const GgufValue* table = keys.find("precompiled_charsmap");
  std::vector<NormalizerPtr> steps;
  if (table != nullptr && table->type == GgufType::Array && table->bytes.size() > 4)
    steps.push_back(charsmap_normalizer(table->text()));
  if (keys.flag("remove_extra_whitespaces", true)) {
    steps.push_back(strip_normalizer(true, true));
    steps.push_back(replace_normalizer(Pattern::of_regex(" {2,}"), " "));
  }
  parts.normalizer = sequence(std::move(steps));
  const auto scheme =
      keys.flag("add_space_prefix", true) ? PrependScheme::Always : PrependScheme::Never;
  parts.pre_tokenizer = metaspace_pre_tokenizer(0x2581, scheme, true);
  parts.decoder = metaspace_decoder(0x2581, scheme);
}

struct ModelRow {
  std::string_view name;
  void (*read)(const GgufKeys&, TokenizerParts&);
  bool begins, ends;  // add_bos_token, add_eos_token where the file says nothing
};
constexpr ModelRow kModels[] = {
    {"gpt2", read_byte_pairs, false, false},
    {"llama", read_sentence_pieces, true, false},
    {"bert", read_word_pieces, true, true},
    {"t5", read_unigram, false, true},
};

/// What is put around a text: bos and eos, or what BERT calls cls and sep.
void read_around(const GgufKeys& keys, const ModelRow& row, TokenizerParts& parts) {
  const bool bert = row.name == "bert";
  const auto role = [&](const char* name) { return parts.roles.find(name); };
  const auto token = [&](const char* first, const char* second) -> std::vector<TokenId> {
    for (const char* name : {first, second})
      if (role(name) != parts.roles.end()) return {role(name)->second};
    return {};
  };
  const std::vector<TokenId> begin = bert ? token("cls", "bos") : token("bos", "bos");
  const std::vector<TokenId> end = bert ? token("sep", "eos") : token("eos", "eos");
  const bool begins = keys.flag("add_bos_token", row.begins) && !begin.empty();
  const bool ends = keys.flag(bert ? "add_sep_token" : "add_eos_token", row.ends) && !end.empty();
  using Item = Template::Item;
  parts.around = {};
  auto& [single, pair] = parts.around;
  const auto put = [&](std::vector<Item>& to, const std::vector<TokenId>& ids, int32_t type) {
    to.push_back({Item::Tokens, ids, type});
  };
  if (ends) put(single, end, 0);
  if (ends) put(pair, end, 1);
  if (ends && bert) pair.insert(pair.begin() + 1, {Item::Tokens, end, 0});
  if (!begins) return;
  single.insert(single.begin(), {Item::Tokens, begin, 0});
  pair.insert(pair.begin(), {Item::Tokens, begin, 0});
}

/// Which token is which, and the chat template.
void read_roles(const GgufKeys& keys, TokenizerParts& parts) {
  for (const GgufRole& role : kGgufRoles)
    if (const auto id = keys.token(std::string(role.key) + "_token_id"))
      parts.roles[std::string(role.name)] = *id;
  const GgufValue* chat = keys.content().value("tokenizer.chat_template");
  if (chat != nullptr && chat->type == GgufType::String) parts.chat_template = chat->text();
}

/// A whole tokenizer.json, which says more than the other keys.
Tokenizer from_whole(const GgufKeys& keys, std::string_view json, std::string_view what) {
  TokenizerParts parts = read_tokenizer(json, what);
  read_roles(keys, parts);
  return Tokenizer(std::move(parts));
}

}  // namespace

Tokenizer Tokenizer::from_gguf(const GgufContent& content, std::string_view what) {
  const GgufKeys keys(content, what);
  if (const auto whole = keys.whole()) return from_whole(keys, *whole, what);
  const std::string_view name = keys.text("model", "");
  const auto row = std::find_if(std::begin(kModels), std::end(kModels),
                                [&](const ModelRow& r) { return r.name == name; });
  if (name.empty())
    fail_runtime("tokenizer.gguf", "{}: the file has no tokenizer; name a tokenizer.json", what);
  if (row == std::end(kModels))
    keys.refuse("model", "is " + quoted_name(name) + ", not gpt2, llama, bert or t5");
  TokenizerParts parts;
  read_roles(keys, parts);
  row->read(keys, parts);
  parts.added = added_tokens(keys);
  read_around(keys, *row, parts);
  return Tokenizer(std::move(parts));
}

}  // namespace weft::text
