// The parts of a tokenizer.json, as the package tokenizers (0.23) writes it.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "weft/io/json_tree.h"
#include "weft/text/build.h"
#include "weft/text/decoders.h"
#include "weft/text/normalizers.h"
#include "weft/text/pre_tokenizers.h"

namespace weft::text {

// Null where the value is null. Errors ("tokenizer.json") for unknown types and wrong fields.
NormalizerPtr read_normalizer(JsonTree::Value value);
PreTokenizerPtr read_pre_tokenizer(JsonTree::Value value);
DecoderPtr read_decoder(JsonTree::Value value);
std::unique_ptr<Model> read_model(JsonTree::Value value);
Template read_post_processor(JsonTree::Value value);
/// All of them; `what` names the text in errors.
TokenizerParts read_tokenizer(std::string_view json, std::string_view what);

Pattern read_pattern(JsonTree::Value value);  // {"String": ..} or {"Regex": ..}
std::string read_base64(JsonTree::Value value);
/// The type of a "model", also where a file of the package's first versions has none.
std::string_view model_type(JsonTree::Value value);
/// "a b" or ["a", "b"].
std::pair<std::string_view, std::string_view> merge_parts(JsonTree::Value merge);
char32_t one_character(JsonTree::Value value);

/// The row of a table that a value's "type" names.
template <class Row, size_t N>
const Row& row_of_type(const Row (&rows)[N], JsonTree::Value value, std::string_view what) {
  const std::string_view type = value["type"].text();
  for (const Row& row : rows)
    if (row.type == type) return row;
  value["type"].fail_here("an unknown " + std::string(what) + ", " + std::string(type));
}

/// Those of a Sequence.
template <class Ptr, class Read>
std::vector<Ptr> read_sequence(JsonTree::Value list, const Read& read) {
  constexpr size_t kMostSteps = 50;
  std::vector<Ptr> steps;
  if (list.size() > kMostSteps) list.fail_here("a sequence of more than 50 steps");
  for (const JsonTree::Value step : list)
    if (Ptr part = read(step)) steps.push_back(std::move(part));
  return steps;
}

}  // namespace weft::text
