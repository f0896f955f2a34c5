// GgufKeys: the keys tokenizer.ggml.* of a GGUF file
// (github.com/ggml-org/ggml/blob/master/docs/gguf.md).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/error.h"
#include "weft/io/gguf.h"
#include "weft/io/host_array.h"
#include "weft/text/models.h"
#include "weft/text/vocabulary.h"

namespace weft::text {

constexpr std::string_view kMark = "\xe2\x96\x81";  // U+2581, which stands for a space
/// A tokenizer.json as it is.
constexpr std::string_view kWholeTokenizer = "tokenizer.huggingface.json";

/// What a token is called in tokenizer_config.json, and in "tokenizer.ggml.<key>_token_id".
struct GgufRole {
  std::string_view name, key;
};
constexpr GgufRole kGgufRoles[] = {{"bos", "bos"},       {"eos", "eos"},       {"unk", "unknown"},
                                   {"sep", "separator"}, {"sep", "seperator"}, {"pad", "padding"},
                                   {"cls", "cls"},       {"mask", "mask"},     {"eot", "eot"},
                                   {"eom", "eom"}};

enum TokenType : int64_t { Normal = 1, Unknown, Control, UserDefined, Unused, Byte };

/// The keys of a file, by their last word.
class GgufKeys {
 public:
  GgufKeys(const GgufContent& content, std::string_view what) : content_(content), what_(what) {}

  const GgufContent& content() const { return content_; }

  const GgufValue* find(std::string_view key) const {
    return content_.value("tokenizer.ggml." + std::string(key));
  }
  std::string_view text(std::string_view key, std::string_view otherwise) const {
    const GgufValue* v = find(key);
    if (v == nullptr) return otherwise;
    if (v->type != GgufType::String) refuse(key, "is no text");
    return v->text();
  }
  bool flag(std::string_view key, bool otherwise) const {
    const GgufValue* v = find(key);
    return v == nullptr ? otherwise : v->integer().value_or(otherwise ? 1 : 0) != 0;
  }
  std::optional<TokenId> token(std::string_view key) const {
    const GgufValue* v = find(key);
    if (v == nullptr) return {};
    const std::optional<int64_t> id = v->integer();
    if (!id || *id < 0 || *id >= static_cast<int64_t>(tokens().size()))
      refuse(key, strformat("is no token: {} of {}", v->shown(), tokens().size()));
    return static_cast<TokenId>(*id);
  }
  const std::vector<std::string_view>& tokens() const { return texts("tokens"); }
  const std::vector<std::string_view>& texts(std::string_view key) const {
    const GgufValue* v = find(key);
    if (v == nullptr || v->type != GgufType::Array || v->element != GgufType::String)
      refuse(key, "is no list of texts");
    return v->texts;
  }
  /// Numbers, one for each token; none where there is no such key.
  const GgufValue* numbers(std::string_view key) const {
    const GgufValue* v = find(key);
    if (v != nullptr &&
        (v->type != GgufType::Array || v->count != tokens().size() || !v->number(0)))
      refuse(key, strformat("has {} numbers for {} tokens", v->count, tokens().size()));
    return v;
  }
  /// How likely each token is: one above the other, where some may be infinite, or to be added up.
  std::vector<double> scores() const;
  std::vector<double> finite_scores() const;
  /// A tokenizer.json as it is, where the file has one.
  std::optional<std::string_view> whole() const;
  int64_t type_of(size_t id) const {
    const GgufValue* types = numbers("token_type");
    return types == nullptr ? Normal : types->integer(id).value_or(Normal);
  }
  [[noreturn]] void refuse(std::string_view key, std::string_view problem) const {
    fail_runtime("tokenizer.gguf",
                 "{}: tokenizer.ggml.{} {}; the file is damaged or of another kind", what_, key,
                 problem);
  }

 private:
  const GgufContent& content_;
  std::string_view what_;
};

Vocabulary vocabulary_of(const GgufKeys& keys);
/// Every pair of tokens that is a token merges, those of the highest score first.
std::vector<Merge> merges_by_score(const GgufKeys& keys, const Vocabulary& vocabulary);

}  // namespace weft::text
