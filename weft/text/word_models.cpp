// WordPiece, Unigram and whole words.
#include <algorithm>
#include <limits>

#include "weft/base/error.h"
#include "weft/base/utf8.h"
#include "weft/io/host_array.h"
#include "weft/text/models.h"
#include "weft/text/trie.h"

namespace weft::text {
namespace {

TokenId required_token(const Vocabulary& vocabulary, const std::string& token) {
  const std::optional<TokenId> id = vocabulary.id_of(token);
  if (!id)
    fail_runtime("tokenizer.model", "the unknown token {} is not in the vocabulary; add it",
                 quoted_name(token));
  return *id;
}

void require_short(std::string_view token) {
  if (token.size() > Trie::kLongestKey)
    fail_runtime("tokenizer.model", "a token of {} bytes; this model takes them up to {}",
                 token.size(), Trie::kLongestKey);
}

class WordModel : public Model {
 public:
  explicit WordModel(Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {}
  std::optional<TokenId> id_of(std::string_view token) const override {
    return vocabulary_.id_of(token);
  }
  std::optional<std::string_view> token_of(TokenId id) const override {
    return vocabulary_.token_of(id);
  }
  size_t size() const override { return vocabulary_.size(); }

 protected:
  Vocabulary vocabulary_;
};

class WordLevel final : public WordModel {
 public:
  WordLevel(Vocabulary vocabulary, const std::string& unknown)
      : WordModel(std::move(vocabulary)), unknown_(vocabulary_.id_of(unknown)), name_(unknown) {}
  void tokenize(std::string_view word, std::vector<TokenId>& out) const override {
    const std::optional<TokenId> id = vocabulary_.id_of(word);
    if (!id && !unknown_) required_token(vocabulary_, name_);
    out.push_back(id ? *id : *unknown_);
  }

 private:
  std::optional<TokenId> unknown_;
  std::string name_;
};

class WordPiece final : public WordModel {
 public:
  WordPiece(Vocabulary vocabulary, const std::string& unknown, std::string prefix, size_t longest)
      : WordModel(std::move(vocabulary)),
        unknown_(required_token(vocabulary_, unknown)),
        longest_(longest),
        first_(keys("")),
        next_(keys(prefix)) {}

  void tokenize(std::string_view word, std::vector<TokenId>& out) const override {
    const auto begins = [](char c) { return (static_cast<uint8_t>(c) & 0xc0) != 0x80; };
    const size_t start = out.size();
    bool known = static_cast<size_t>(std::count_if(word.begin(), word.end(), begins)) <= longest_;
    for (size_t at = 0; known && at < word.size();) {
      size_t length = 0;
      TokenId id = unknown_;
      (at == 0 ? first_ : next_).for_each_prefix(word.substr(at), [&](size_t size, int32_t value) {
        length = size;
        id = value;
      });
      known = length > 0;
      out.push_back(id);
      at += length;
    }
    if (known) return;
    out.resize(start);
    out.push_back(unknown_);
  }

 private:
  std::vector<std::pair<std::string_view, int32_t>> keys(std::string_view prefix) const {
    std::vector<std::pair<std::string_view, int32_t>> all;
    vocabulary_.for_each([&](std::string_view token, TokenId id) {
      require_short(token);
      if (token.starts_with(prefix) && token.size() > prefix.size())
        all.emplace_back(token.substr(prefix.size()), id);
    });
    return all;
  }

  TokenId unknown_;
  size_t longest_;
  Trie first_, next_;
};

class Unigram final : public WordModel {
 public:
  Unigram(Vocabulary vocabulary, std::vector<double> scores, TokenId unknown, bool fallback)
      : WordModel(std::move(vocabulary)),
        scores_(std::move(scores)),
        unknown_(unknown),
        trie_(keys()) {
    const double least = scores_.empty() ? 0 : *std::min_element(scores_.begin(), scores_.end());
    unknown_score_ = least - 10;  // SentencePiece's kUnkPenalty
    for (int byte = 0; fallback && byte < 256; ++byte)
      if (const auto id = vocabulary_.id_of(byte_token(static_cast<uint8_t>(byte))))
        byte_tokens_.push_back(*id);
    if (byte_tokens_.size() != 256) byte_tokens_.clear();
  }

  void tokenize(std::string_view word, std::vector<TokenId>& out) const override {
    const std::vector<Node> best = best_path(word);
    const size_t start = out.size();
    for (size_t end = word.size(); end > 0;) {
      const size_t last = end;
      const bool known = best[end].id != unknown_;
      do end = best[end].begin;
      while (!known && end > 0 && best[end].id == unknown_);  // those in a row are one
      const std::string_view piece = word.substr(end, last - end);
      add_piece(piece, known ? std::optional(best[last].id) : vocabulary_.id_of(piece), out);
    }
    std::reverse(out.begin() + static_cast<ptrdiff_t>(start), out.end());
  }

 private:
  struct Node {
    TokenId id = 0;
    double score = 0;
    size_t begin = SIZE_MAX;
  };

  std::vector<Node> best_path(std::string_view word) const {
    std::vector<Node> best(word.size() + 1);
    for (size_t begin = 0; begin < word.size();) {
      size_t next = begin;
      next_code_point(word, next);
      const double before = best[begin].score;
      bool single = false;
      const auto offer = [&](size_t end, TokenId id, double score) {
        if (best[end].begin == SIZE_MAX || score > best[end].score) best[end] = {id, score, begin};
      };
      trie_.for_each_prefix(word.substr(begin), [&](size_t length, int32_t id) {
        offer(begin + length, id, scores_[static_cast<size_t>(id)] + before);
        single |= length == next - begin;
      });
      if (!single) {
        if (unknown_ < 0)
          fail_runtime("tokenizer.model",
                       "{} is not in the vocabulary, which has no unknown token; give it one",
                       quoted_name(word.substr(begin, next - begin)));
        offer(next, unknown_, unknown_score_ + before);
      }
      begin = next;
    }
    return best;
  }

  /// Backwards, as the path is walked.
  void add_piece(std::string_view piece, std::optional<TokenId> id,
                 std::vector<TokenId>& out) const {
    if (id) return out.push_back(*id);
    if (byte_tokens_.empty()) return out.push_back(unknown_);
    for (size_t i = piece.size(); i-- > 0;)
      out.push_back(byte_tokens_[static_cast<uint8_t>(piece[i])]);
  }

  std::vector<std::pair<std::string_view, int32_t>> keys() const {
    std::vector<std::pair<std::string_view, int32_t>> all;
    vocabulary_.for_each([&](std::string_view token, TokenId id) {
      require_short(token);
      if (!token.empty()) all.emplace_back(token, id);
    });
    return all;
  }

  std::vector<double> scores_;
  TokenId unknown_;
  double unknown_score_ = 0;
  std::vector<TokenId> byte_tokens_;  // all 256, or none
  Trie trie_;
};

}  // namespace

std::unique_ptr<Model> word_level_model(Vocabulary vocabulary, const std::string& unknown) {
  return std::make_unique<WordLevel>(std::move(vocabulary), unknown);
}

std::unique_ptr<Model> word_piece_model(Vocabulary vocabulary, const std::string& unknown,
                                        std::string continuing_prefix, size_t longest_word) {
  return std::make_unique<WordPiece>(std::move(vocabulary), unknown, std::move(continuing_prefix),
                                     longest_word);
}

std::unique_ptr<Model> unigram_model(Vocabulary vocabulary, std::vector<double> scores,
                                     TokenId unknown, bool byte_fallback) {
  return std::make_unique<Unigram>(std::move(vocabulary), std::move(scores), unknown,
                                   byte_fallback);
}

}  // namespace weft::text
