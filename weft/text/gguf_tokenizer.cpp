#include "weft/text/gguf_tokenizer.h"

#include <algorithm>
#include <map>

#include "weft/base/file.h"
#include "weft/text/gguf_keys.h"
#include "weft/text/gguf_presets.h"
#include "weft/text/read_parts.h"

namespace weft::text {
namespace {

using Value = JsonTree::Value;
using Entries = std::vector<std::pair<std::string, GgufValue>>;

/// What llama.cpp knows of a tokenizer.
struct Ggml {
  std::string model, pre;  // model "": llama.cpp has no such
  std::vector<std::string> tokens, merges;
  std::vector<int32_t> types;
  std::vector<float> scores;
  std::map<std::string, bool> flags;
  std::string charsmap;
};

// ---- tokens

void put(Ggml& g, std::string_view token, int64_t id, TokenType type) {
  if (id < 0 || id >= static_cast<int64_t>(g.tokens.size()))
    fail("tokenizer.convert", "the tokenizer's token {} has the id {}, and the model {} rows",
         quoted_name(token), id, g.tokens.size());
  g.tokens[static_cast<size_t>(id)] = token;
  g.types[static_cast<size_t>(id)] = type;
}

/// "<0x0A>"
bool is_byte(std::string_view token) {
  return token.size() == 6 && token.starts_with("<0x") && token.ends_with('>');
}

void put_tokens(Ggml& g, Value root, int64_t vocabulary) {
  const Value model = root["model"], list = model["vocab"];
  const bool bytes = model["byte_fallback"].boolean_or(false);
  g.tokens.resize(static_cast<size_t>(vocabulary));
  g.types.assign(g.tokens.size(), Unused);
  int64_t id = 0;
  for (const Value entry : list) {
    std::string_view token = entry.is_array() ? (*entry.begin()).text() : entry.key();
    const int64_t at = entry.is_array() ? id++ : entry.integer(0, INT32_MAX);
    put(g, token, at, bytes && is_byte(token) ? Byte : Normal);
  }
  for (const Value added : root["added_tokens"]) {
    const bool special = added["special"].boolean_or(false);
    put(g, added["content"].text(), added["id"].integer(0, INT32_MAX),
        special ? Control : UserDefined);
  }
  for (size_t i = 0; i < g.tokens.size(); ++i)
    if (g.tokens[i].empty()) g.tokens[i] = strformat("[PAD{}]", i);
}

void put_unknown(Ggml& g, std::string_view token) {
  for (size_t i = 0; i < g.tokens.size(); ++i)
    if (g.tokens[i] == token) g.types[i] = Unknown;
}

// ---- models

/// Whether one of a part's steps is of this type.
bool has_step(Value part, std::string_view steps, std::string_view type) {
  if (part.is_null()) return false;
  if (part["type"].text() == type) return true;
  for (const Value step : part[steps])
    if (step["type"].text() == type) return true;
  return false;
}

/// The expressions whose matches are words, one after another; none where there is a step that is
/// no expression.
std::vector<std::string> patterns_of(Value part) {
  std::vector<std::string> all;
  const std::string gpt2 = find_gguf_preset("gpt-2")->patterns[0];
  const auto add = [&](Value step) {
    const std::string_view type = step["type"].text();
    if (type == "Split" && step["pattern"]["Regex"].is_text())
      all.emplace_back(step["pattern"]["Regex"].text());
    else if (type == "Digits" && step["individual_digits"].boolean_or(false))
      all.emplace_back(R"(\p{N})");
    else if (type == "ByteLevel" && step["use_regex"].boolean_or(true))
      all.push_back(gpt2);
    else if (type != "ByteLevel")
      all.emplace_back();
  };
  if (part["type"].text() != "Sequence") add(part);
  for (const Value step : part["pretokenizers"]) add(step);
  return all;
}

void byte_pairs(Ggml& g, Value root) {
  const Value model = root["model"];
  g.pre =
      gguf_preset_of(patterns_of(root["pre_tokenizer"]), model["ignore_merges"].boolean_or(false));
  if (g.pre.empty()) return;
  g.model = "gpt2";
  for (const Value merge : model["merges"]) {
    if (merge.is_text() && merge.text().starts_with("#version")) continue;
    const auto [left, right] = merge_parts(merge);
    g.merges.push_back(std::string(left) + ' ' + std::string(right));
  }
}

/// A token's score is the higher the earlier it merges.
void sentence_pieces(Ggml& g, Value root) {
  g.model = "llama";
  std::map<std::string, float, std::less<>> ranks;
  float rank = 0;
  for (const Value merge : root["model"]["merges"]) {
    const auto [left, right] = merge_parts(merge);
    ranks.emplace(std::string(left) + std::string(right), rank--);
  }
  for (const std::string& token : g.tokens) {
    const auto at = ranks.find(token);
    g.scores.push_back(at == ranks.end() ? rank : at->second);
  }
  g.flags["add_space_prefix"] = has_step(root["normalizer"], "normalizers", "Prepend") ||
                                has_step(root["pre_tokenizer"], "pretokenizers", "Metaspace");
}

void unigram(Ggml& g, Value root) {
  g.model = "t5";
  g.scores.assign(g.tokens.size(), 0);
  size_t id = 0;
  for (const Value entry : root["model"]["vocab"]) {
    Value score = entry;
    for (const Value part : entry) score = part;
    g.scores[id++] = static_cast<float>(score.number());
  }
  const int64_t unknown = root["model"]["unk_id"].integer_or(-1, -1, INT32_MAX);
  if (unknown >= 0 && unknown < static_cast<int64_t>(id))
    g.types[static_cast<size_t>(unknown)] = Unknown;
  for (const Value step : root["normalizer"]["normalizers"])
    if (step["precompiled_charsmap"].is_text())
      g.charsmap = read_base64(step["precompiled_charsmap"]);
  if (root["normalizer"]["precompiled_charsmap"].is_text())
    g.charsmap = read_base64(root["normalizer"]["precompiled_charsmap"]);
  g.flags["add_space_prefix"] = true;
  g.flags["remove_extra_whitespaces"] = has_step(root["normalizer"], "normalizers", "Replace");
}

/// The file marks what begins a word, where tokenizer.json marks what does not.
void word_pieces(Ggml& g) {
  g.model = "bert";
  for (size_t i = 0; i < g.tokens.size(); ++i) {
    std::string& token = g.tokens[i];
    if (g.types[i] != Normal || (token.starts_with('[') && token.ends_with(']'))) continue;
    token = token.starts_with("##") ? token.substr(2) : std::string(kMark) + token;
  }
}

Ggml ggml_of(Value root, int64_t vocabulary) {
  Ggml g;
  put_tokens(g, root, vocabulary);
  const Value model = root["model"];
  const std::string_view type = model_type(model);
  if (model["unk_token"].is_text()) put_unknown(g, model["unk_token"].text());
  if (type == "BPE" && model["byte_fallback"].boolean_or(false))
    sentence_pieces(g, root);
  else if (type == "BPE" && has_step(root["pre_tokenizer"], "pretokenizers", "ByteLevel"))
    byte_pairs(g, root);
  else if (type == "Unigram")
    unigram(g, root);
  else if (type == "WordPiece")
    word_pieces(g);
  return g;
}

// ---- roles

/// Which token is which, by the names of tokenizer_config.json; what is around a text where that
/// says nothing.
std::map<std::string, TokenId> roles_of(const Tokenizer& tokenizer,
                                        const GgufTokenizerOptions& options) {
  std::map<std::string, TokenId> roles;
  for (const GgufRole& role : kGgufRoles)
    if (const auto id = tokenizer.named_token(role.name)) roles[std::string(role.name)] = *id;
  for (const TokenId id : options.end_tokens) {
    const bool known = std::ranges::any_of(roles, [&](const auto& r) { return r.second == id; });
    for (const char* role : {"eos", "eot", "eom"})
      if (!known && !roles.contains(role)) {
        roles[role] = id;
        break;
      }
  }
  const std::vector<TokenId> around = tokenizer.encode("");
  if (!around.empty() && !roles.contains("bos") && !roles.contains("cls"))
    roles["bos"] = around.front();
  return roles;
}

void put_roles(Entries& entries, Ggml& g, const Tokenizer& tokenizer,
               const GgufTokenizerOptions& options) {
  std::map<std::string, TokenId> roles = roles_of(tokenizer, options);
  const auto unknown = std::ranges::find(g.types, static_cast<int32_t>(Unknown));
  if (unknown != g.types.end())
    roles.emplace("unk", static_cast<TokenId>(unknown - g.types.begin()));
  for (const auto& [name, id] : roles)
    for (const GgufRole& role : kGgufRoles)
      // llama.cpp spells "seperator".
      if (role.name == name && role.key != "separator")
        entries.emplace_back(strformat("tokenizer.ggml.{}_token_id", role.key),
                             GgufValue::of_number(static_cast<uint32_t>(id)));
  const std::vector<TokenId> around = tokenizer.encode("");
  const auto is = [&](const char* role, TokenId id) {
    const auto at = roles.find(role);
    return at != roles.end() && at->second == id;
  };
  const bool begins = !around.empty() && (is("bos", around.front()) || is("cls", around.front()));
  const bool ends = around.size() > (begins ? 1U : 0U);
  g.flags["add_bos_token"] = begins;
  g.flags[g.model == "bert" ? "add_sep_token" : "add_eos_token"] = ends;
}

// ---- together

void put_all(Entries& entries, const Ggml& g) {
  const auto add = [&](const char* key, GgufValue value) {
    entries.emplace_back(strformat("tokenizer.ggml.{}", key), std::move(value));
  };
  if (!g.model.empty()) add("model", GgufValue::of(g.model));
  if (!g.pre.empty()) add("pre", GgufValue::of(g.pre));
  add("tokens", GgufValue::of_texts(g.tokens));
  add("token_type", GgufValue::of_numbers(std::span<const int32_t>(g.types)));
  if (!g.scores.empty()) add("scores", GgufValue::of_numbers(std::span<const float>(g.scores)));
  if (!g.merges.empty()) add("merges", GgufValue::of_texts(g.merges));
  if (!g.charsmap.empty())
    add("precompiled_charsmap",
        GgufValue::made(GgufType::I8, true, std::as_bytes(std::span(g.charsmap))));
  for (const auto& [flag, on] : g.flags) add(flag.c_str(), GgufValue::of_number(on));
}

/// Of many scripts, with what tokenizers treat apart: cases, digits, spaces, marks, line ends,
/// letters that normalise, emoji, contractions, code.
constexpr const char* kProbes[] = {
    "Hello, World! It's  a TEST; we'll SEE: 1234567 3.14 (x) [y] {z} <s> </s> ##a",
    "  two  spaces\tand\ttabs \n\n lines\r\n   end  ",
    " ",
    "",
    "\n\n\n",
    "fa\xc3\xa7"
    "ade fac\xcc\xa7"
    "ade na\xc3\xafve \xef\xac\x81 \xe2\x84\xab \xef\xbd\x81 "
    "\xc3\x9f \xc4\xb0 \xe1\xba\x9b\xcc\xa3",
    "\xd0\x9f\xd1\x80\xd0\xb8\xd0\xb2\xd0\xb5\xd1\x82 \xe4\xbd\xa0\xe5\xa5\xbd\xe4\xb8\x96\xe7\x95"
    "\x8c \xe3\x81\x93\xe3\x82\x93 \xed\x95\x9c\xea\xb5\xad \xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d "
    "\xd9\x85\xd8\xb1\xd8\xad\xd8\xa8\xd8\xa7 \xe0\xa4\xa8\xe0\xa4\xae",
    ("\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb\xf0\x9f\x91\x8d\xf0\x9f\x8f\xbd \xe2\x82\xac "
     "\xe2\x80\x9cq\xe2\x80\x9d \xc2\xa0 \xe2\x80\x83x\xe2\x81\x89"),
    "for (int i = 0; i < n; ++i) { a[i] += b_c->d(\"e\\n\"); } // I'M don't YOU'RE 's 'S",
};

bool same_tokens(const Tokenizer& a, const Tokenizer& b) {
  std::vector<std::string> texts(std::begin(kProbes), std::end(kProbes));
  std::string special;
  for (const SpecialToken& t : a.special_tokens()) special += "a " + t.text + " b" + t.text;
  texts.push_back(special);
  constexpr TokenId kSome = 4096;
  std::vector<TokenId> first;
  for (TokenId id = 0; id < std::min(kSome, static_cast<TokenId>(a.vocab_size())); ++id)
    first.push_back(id);
  texts.push_back(a.decode(first));
  return std::ranges::all_of(texts, [&](const std::string& text) {
    const std::vector<TokenId> ids = a.encode(text);
    return ids == b.encode(text) && a.decode(ids) == b.decode(ids) &&
           a.decode(ids, false) == b.decode(ids, false) &&
           a.encode(text, {true, false}) == b.encode(text, {true, false});
  });
}

bool says_all(const Entries& entries, const Ggml& g, const Tokenizer& tokenizer) {
  if (g.model.empty()) return false;
  GgufContent content;
  content.metadata = entries;
  try {
    return same_tokens(tokenizer, Tokenizer::from_gguf(content));
  } catch (const Error&) {
    return false;  // merges of tokens that are not there, and what else a file may have
  }
}

}  // namespace

std::vector<std::pair<std::string, GgufValue>> gguf_tokenizer(const std::string& folder,
                                                              const GgufTokenizerOptions& options) {
  const Tokenizer tokenizer = Tokenizer::from_file(folder);
  const std::string path = folder + "/tokenizer.json";
  const MappedFile file(path);
  const JsonTree tree(file.text(), path, "tokenizer.json");
  Ggml g = ggml_of(tree.root(), options.vocabulary);
  Entries entries;
  put_roles(entries, g, tokenizer, options);
  put_all(entries, g);
  if (!tokenizer.chat_template().empty())
    entries.emplace_back("tokenizer.chat_template", GgufValue::of(tokenizer.chat_template()));
  if (!says_all(entries, g, tokenizer))
    entries.emplace_back(kWholeTokenizer, GgufValue::of(file.text()));
  return entries;
}

}  // namespace weft::text
