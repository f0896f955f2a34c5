// tokenizer.json as a whole, and the folders it lies in.
#include <filesystem>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/io/host_array.h"
#include "weft/text/read_parts.h"

namespace weft::text {
namespace {

using Value = JsonTree::Value;

/// Their ids are the file's; a text that the model knows keeps the model's.
std::vector<AddedToken> read_added(Value list, const Model& model) {
  std::vector<AddedToken> tokens;
  for (const Value v : list) {
    AddedToken t;
    t.content = v["content"].text();
    t.id = static_cast<TokenId>(v["id"].integer(0, INT32_MAX));
    t.special = v["special"].boolean_or(false);
    t.normalized = v["normalized"].boolean_or(!t.special);
    t.single_word = v["single_word"].boolean_or(false);
    t.lstrip = v["lstrip"].boolean_or(false);
    t.rstrip = v["rstrip"].boolean_or(false);
    if (const auto known = model.id_of(t.content)) t.id = *known;
    if (const auto other = model.token_of(t.id); other && *other != t.content)
      v["id"].fail_here("the id of the model's token " + quoted_name(*other));
    tokens.push_back(std::move(t));
  }
  return tokens;
}

std::optional<Truncation> read_truncation(Value v) {
  if (v.is_null()) return {};
  Truncation t;
  t.max_length = static_cast<size_t>(v["max_length"].integer(0, int64_t{1} << 40));
  const std::string_view strategy = v["strategy"].text_or("LongestFirst");
  if (strategy == "OnlyFirst")
    t.strategy = Truncation::Strategy::OnlyFirst;
  else if (strategy == "OnlySecond")
    t.strategy = Truncation::Strategy::OnlySecond;
  else if (strategy != "LongestFirst")
    v["strategy"].fail_here("an unknown strategy");
  t.left = v["direction"].text_or("Right") == "Left";
  return t;
}

std::optional<Padding> read_padding(Value v) {
  if (v.is_null()) return {};
  constexpr int64_t kLongest = int64_t{1} << 24;
  Padding p;
  if (v["strategy"].is_object())
    p.length = static_cast<size_t>(v["strategy"]["Fixed"].integer(0, kLongest));
  p.multiple_of = static_cast<size_t>(v["pad_to_multiple_of"].integer_or(1, 0, kLongest));
  p.left = v["direction"].text_or("Right") == "Left";
  p.id = static_cast<TokenId>(v["pad_id"].integer_or(0, 0, INT32_MAX));
  p.type_id = static_cast<int32_t>(v["pad_type_id"].integer_or(0, 0, INT32_MAX));
  return p;
}

/// Texts of tokenizer_config.json: the chat template and which token is which.
void read_config(const std::string& path, TokenizerParts& parts) {
  const MappedFile file(path);
  const JsonTree tree(file.text(), path, "tokenizer.json");
  const Value root = tree.root();
  if (root["chat_template"].is_text()) parts.chat_template = root["chat_template"].text();
  for (const char* role : {"bos", "eos", "unk", "sep", "pad", "cls", "mask"}) {
    Value token = root[std::string(role) + "_token"];
    if (token.is_object()) token = token["content"];
    if (!token.is_text()) continue;
    for (const AddedToken& added : parts.added)
      if (added.content == token.text()) parts.roles[role] = added.id;
  }
}

std::string text_of(const std::string& path) { return std::string(MappedFile(path).text()); }

Tokenizer from_folder(const std::string& folder) {
  const std::string path = folder + "/tokenizer.json", config = folder + "/tokenizer_config.json";
  const std::string chat = folder + "/chat_template.jinja";
  if (!file_exists(path))
    fail_runtime("tokenizer.file",
                 "{}: the folder has no tokenizer.json; save one with the package tokenizers "
                 "(tokenizer.save), or name a GGUF file",
                 folder);
  const MappedFile file(path);
  TokenizerParts parts = read_tokenizer(file.text(), path);
  if (file_exists(config)) read_config(config, parts);
  if (file_exists(chat)) parts.chat_template = text_of(chat);
  return Tokenizer(std::move(parts));
}

}  // namespace

TokenizerParts read_tokenizer(std::string_view json, std::string_view what) {
  const JsonTree tree(json, what, "tokenizer.json");
  const Value root = tree.root();
  if (!root.is_object() || root["model"].is_null())
    fail_runtime("tokenizer.json", "{}: no tokenizer.json: it has no \"model\"", what);
  TokenizerParts parts;
  parts.normalizer = read_normalizer(root["normalizer"]);
  parts.pre_tokenizer = read_pre_tokenizer(root["pre_tokenizer"]);
  parts.model = read_model(root["model"]);
  parts.decoder = read_decoder(root["decoder"]);
  parts.added = read_added(root["added_tokens"], *parts.model);
  parts.around = read_post_processor(root["post_processor"]);
  parts.truncation = read_truncation(root["truncation"]);
  parts.padding = read_padding(root["padding"]);
  return parts;
}

Tokenizer Tokenizer::from_json(std::string_view json, std::string_view what) {
  return Tokenizer(read_tokenizer(json, what));
}

Tokenizer Tokenizer::from_file(const std::string& path) {
  check_path(path);
  if (is_directory(path)) return from_folder(path);
  if (is_gguf(path)) return from_gguf(read_gguf(path), path);
  const MappedFile file(path);
  return from_json(file.text(), path);
}

}  // namespace weft::text
