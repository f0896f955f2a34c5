// The model of a tokenizer.json: its vocabulary and merges.
#include "weft/base/error.h"
#include "weft/io/host_array.h"
#include "weft/text/models.h"
#include "weft/text/read_parts.h"

namespace weft::text {

std::pair<std::string_view, std::string_view> merge_parts(JsonTree::Value merge) {
  if (merge.is_array()) {
    std::vector<std::string_view> parts;
    for (const JsonTree::Value part : merge) parts.push_back(part.text());
    if (parts.size() != 2) merge.fail_here("a merge of other than two tokens");
    return {parts[0], parts[1]};
  }
  const std::string_view text = merge.text();
  const size_t space = text.find(' ');
  if (space == std::string_view::npos || text.find(' ', space + 1) != std::string_view::npos)
    merge.fail_here("a merge of other than two tokens");
  return {text.substr(0, space), text.substr(space + 1)};
}

namespace {

using Value = JsonTree::Value;

Vocabulary read_vocabulary(Value v) {
  if (!v.is_object()) v.fail_here("no object of tokens and ids");
  Vocabulary all;
  for (const Value entry : v) all.add(entry.key(), entry.integer(0, INT32_MAX));
  return all;
}

TokenId id_in_merge(const Vocabulary& vocabulary, std::string_view token, Value merge) {
  const std::optional<TokenId> id = vocabulary.id_of(token);
  if (!id)
    merge.fail_here("a merge with " + quoted_name(token) + ", which is not in the vocabulary");
  return *id;
}

std::vector<Merge> read_merges(Value list, const Vocabulary& vocabulary, size_t prefix) {
  std::vector<Merge> merges;
  for (const Value merge : list) {
    if (merge.is_text() && merge.text().starts_with("#version")) continue;
    const auto [left, right] = merge_parts(merge);
    std::string both(left);
    both += right.substr(std::min(prefix, right.size()));
    merges.push_back({id_in_merge(vocabulary, left, merge), id_in_merge(vocabulary, right, merge),
                      id_in_merge(vocabulary, both, merge), static_cast<uint32_t>(merges.size())});
  }
  return merges;
}

std::unique_ptr<Model> read_bpe(Value v) {
  Vocabulary vocabulary = read_vocabulary(v["vocab"]);
  BpeOptions options;
  options.unknown = v["unk_token"].text_or("");
  options.continuing_prefix = v["continuing_subword_prefix"].text_or("");
  options.end_suffix = v["end_of_word_suffix"].text_or("");
  options.fuse_unknown = v["fuse_unk"].boolean_or(false);
  options.byte_fallback = v["byte_fallback"].boolean_or(false);
  options.ignore_merges = v["ignore_merges"].boolean_or(false);
  const std::vector<Merge> merges =
      read_merges(v["merges"], vocabulary, options.continuing_prefix.size());
  return bpe_model(std::move(vocabulary), merges, std::move(options));
}

std::unique_ptr<Model> read_word_piece(Value v) {
  return word_piece_model(
      read_vocabulary(v["vocab"]), std::string(v["unk_token"].text_or("[UNK]")),
      std::string(v["continuing_subword_prefix"].text_or("##")),
      static_cast<size_t>(v["max_input_chars_per_word"].integer_or(100, 0, int64_t{1} << 40)));
}

std::unique_ptr<Model> read_unigram(Value v) {
  Vocabulary vocabulary;
  std::vector<double> scores;
  for (const Value entry : v["vocab"]) {
    std::vector<Value> pair;
    for (const Value part : entry) pair.push_back(part);
    if (pair.size() != 2) entry.fail_here("no pair of a token and its score");
    vocabulary.add(pair[0].text(), static_cast<int64_t>(scores.size()));
    scores.push_back(pair[1].number());
  }
  const int64_t unknown = v["unk_id"].integer_or(-1, -1, INT32_MAX);
  if (unknown >= static_cast<int64_t>(scores.size()))
    v["unk_id"].fail_here("past the end of the vocabulary");
  return unigram_model(std::move(vocabulary), std::move(scores), static_cast<TokenId>(unknown),
                       v["byte_fallback"].boolean_or(false));
}

std::unique_ptr<Model> read_word_level(Value v) {
  return word_level_model(read_vocabulary(v["vocab"]),
                          std::string(v["unk_token"].text_or("<unk>")));
}

}  // namespace

std::string_view model_type(JsonTree::Value v) {
  if (!v["type"].is_null()) return v["type"].text();
  if (!v["merges"].is_null()) return "BPE";
  if (v["vocab"].is_array()) return "Unigram";
  return v["continuing_subword_prefix"].is_null() ? "WordLevel" : "WordPiece";
}

std::unique_ptr<Model> read_model(Value value) {
  const std::string_view type = model_type(value);
  if (type == "BPE") return read_bpe(value);
  if (type == "WordPiece") return read_word_piece(value);
  if (type == "Unigram") return read_unigram(value);
  if (type == "WordLevel") return read_word_level(value);
  value["type"].fail_here("an unknown model, " + std::string(type));
}

}  // namespace weft::text
