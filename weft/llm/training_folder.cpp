// What a training needs, made from texts.
#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/io/host_array.h"
#include "weft/llm/trainer.h"

namespace weft::llm {

namespace {

std::string tokenizer_text(std::span<const TextFile> files, const TrainingData& data,
                           PreparationDone progress) {
  if (data.tokenizer.empty())
    return learn_tokenizer(
        files, static_cast<size_t>(data.vocabulary),
        [&](size_t done, size_t all) { progress(Preparation::Tokenizer, done, all); });
  const bool folder = is_directory(data.tokenizer);
  return std::string(MappedFile(data.tokenizer + (folder ? "/tokenizer.json" : "")).text());
}

std::optional<text::TokenId> end_token(const text::Tokenizer& tokenizer) {
  const auto end = tokenizer.token_to_id("<|endoftext|>");
  return end ? end : tokenizer.named_token("eos");
}

}  // namespace

bool has_checkpoint(const std::string& folder) {
  return file_exists(folder + "/checkpoint.safetensors");
}

void check_new_training(const std::string& folder, double validation) {
  if (has_checkpoint(folder))
    fail("train.output", "there is a training in {} already; resume it, or name another folder",
         quoted_name(folder));
  if (!(validation > 0 && validation < 1))
    fail("train.options", "validation is {}: a share of the tokens above 0 and below 1",
         validation);
}

TokenCounts prepare_training(const std::string& folder, const TrainingData& data,
                             PreparationDone progress) {
  check_new_training(folder, data.validation);
  const std::vector<TextFile> files = find_texts(data.paths);
  const std::string json = tokenizer_text(files, data, progress);
  const auto tokenizer = text::Tokenizer::from_json(json);
  const std::optional<text::TokenId> end = end_token(tokenizer);
  const NewModel model = new_model(data.config, static_cast<int64_t>(tokenizer.vocab_size()), end);
  make_directories(folder);
  atomic_write_file(folder + "/tokenizer.json", json);
  const TokenCounts counts =
      write_tokens(folder + "/tokens.safetensors", files, tokenizer, end, data.validation,
                   [&](size_t done, size_t all) { progress(Preparation::Tokens, done, all); });
  atomic_write_file(folder + "/config.json", config_json(model));
  return counts;
}

}  // namespace weft::llm
